//! EndTxn: what the coordinator answers, as one pure decision over the state, the epoch and the goal.
//!
//! The order of the checks is that of Kafka 4.3: a pending transition before a foreign producer id before a wrong
//! epoch (KAFKA-18660 tells why: a client whose id was rotated must not be fenced by itself). Sources: KIP-98,
//! KIP-890 part 2, KAFKA-20785 (the answer to a commit that is repeated after a timeout's abort; here as released in
//! 4.3 and 4.4).

use kafka_protocol::ResponseError;

use super::state::{EPOCH_EXHAUSTED, Generation, Goal, ProducerIdentity, TxnEntry, TxnState};

/// What EndTxn leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndDecision {
    /// Decide the outcome and write the markers.
    Prepare,
    /// It was done before: answer as then.
    AlreadyDone,
}

/// Decides one EndTxn of a client.
///
/// # Errors
/// The code that Kafka answers: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE.
pub(crate) fn decide(
    entry: &TxnEntry,
    producer: ProducerIdentity,
    goal: Goal,
    generation: Generation,
) -> Result<EndDecision, ResponseError> {
    if entry.is_pending() {
        return Err(ResponseError::ConcurrentTransactions);
    }
    decide_settled(entry, producer, goal, generation)
}

/// The rest of the decision: also what a coordinator answers that has loaded Prepare and not yet begun with the
/// markers.
fn decide_settled(
    entry: &TxnEntry,
    producer: ProducerIdentity,
    goal: Goal,
    generation: Generation,
) -> Result<EndDecision, ResponseError> {
    match generation {
        Generation::Explicit => decide_explicit(entry, producer, goal),
        Generation::Implicit => decide_implicit(entry, producer, goal),
    }
}

fn decide_explicit(entry: &TxnEntry, producer: ProducerIdentity, goal: Goal) -> Result<EndDecision, ResponseError> {
    if producer.id != entry.producer.id {
        return Err(ResponseError::InvalidProducerIdMapping);
    }
    if producer.epoch != entry.producer.epoch {
        return Err(ResponseError::ProducerFenced);
    }
    match &entry.state {
        TxnState::Ongoing { .. } => Ok(EndDecision::Prepare),
        TxnState::Complete { goal: done } if *done == goal => Ok(EndDecision::AlreadyDone),
        TxnState::Prepare { goal: decided, .. } if *decided == goal => Err(ResponseError::ConcurrentTransactions),
        TxnState::Empty | TxnState::Complete { .. } | TxnState::Prepare { .. } => Err(ResponseError::InvalidTxnState),
    }
}

fn decide_implicit(entry: &TxnEntry, producer: ProducerIdentity, goal: Goal) -> Result<EndDecision, ResponseError> {
    // The epoch was raised when the first copy of this request was served, and the client did not hear of it ...
    let repeats_raise = producer.id == entry.producer.id && producer.epoch.checked_add(1) == Some(entry.producer.epoch);
    // ... or even the id was changed, because its epochs were used up.
    let repeats_rotation =
        producer.id == entry.previous_producer_id && producer.epoch == EPOCH_EXHAUSTED && entry.producer.epoch == 0;
    if producer.id != entry.producer.id && !repeats_rotation {
        return Err(ResponseError::InvalidProducerIdMapping);
    }
    let is_current = producer == entry.producer;
    let repeats = repeats_raise || repeats_rotation;
    let epoch_fits = match &entry.state {
        TxnState::Empty | TxnState::Ongoing { .. } => is_current,
        TxnState::Prepare { .. } => repeats_raise,
        TxnState::Complete { .. } => is_current || repeats,
    };
    if !epoch_fits {
        return Err(ResponseError::ProducerFenced);
    }
    match &entry.state {
        TxnState::Ongoing { .. } => Ok(EndDecision::Prepare),
        TxnState::Prepare { goal: decided, .. } if *decided == goal => Err(ResponseError::ConcurrentTransactions),
        TxnState::Prepare { .. } => Err(ResponseError::InvalidTxnState),
        TxnState::Complete { goal: done } if repeats && *done == goal => Ok(EndDecision::AlreadyDone),
        TxnState::Complete { .. } if repeats => Err(ResponseError::InvalidTxnState),
        // Nothing is open. A client whose every Produce failed cannot know that, so its abort is served, and raises
        // the epoch.
        TxnState::Empty | TxnState::Complete { .. } => match goal {
            Goal::Abort => Ok(EndDecision::Prepare),
            Goal::Commit => Err(ResponseError::InvalidTxnState),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::time::Timestamp;

    const PID: i64 = 40;
    const EPOCH: i16 = 9;
    const NOW: Timestamp = Timestamp::from_millis(5);

    fn entry(state: TxnState) -> TxnEntry {
        let mut entry = TxnEntry::new(NOW, PID, Duration::from_secs(60));
        entry.producer.epoch = EPOCH;
        entry.state = state;
        entry
    }

    fn ongoing() -> TxnState {
        TxnState::Ongoing { started: NOW, partitions: BTreeSet::new() }
    }

    fn prepare(goal: Goal) -> TxnState {
        TxnState::Prepare { goal, started: NOW, partitions: BTreeSet::new(), markers_due: NOW, next_producer_id: None }
    }

    fn complete(goal: Goal) -> TxnState {
        TxnState::Complete { goal }
    }

    /// The four columns: abort and commit, each repeated with the epoch before the raise and with the current epoch.
    fn implicit_row(state: TxnState) -> [Result<EndDecision, ResponseError>; 4] {
        let entry = entry(state);
        let ask = |epoch, goal| decide_settled(&entry, ProducerIdentity { id: PID, epoch }, goal, Generation::Implicit);
        [ask(EPOCH - 1, Goal::Abort), ask(EPOCH, Goal::Abort), ask(EPOCH - 1, Goal::Commit), ask(EPOCH, Goal::Commit)]
    }

    const PREPARES: Result<EndDecision, ResponseError> = Ok(EndDecision::Prepare);
    const DONE: Result<EndDecision, ResponseError> = Ok(EndDecision::AlreadyDone);
    const FENCED: Result<EndDecision, ResponseError> = Err(ResponseError::ProducerFenced);
    const CONCURRENT: Result<EndDecision, ResponseError> = Err(ResponseError::ConcurrentTransactions);
    const INVALID: Result<EndDecision, ResponseError> = Err(ResponseError::InvalidTxnState);

    #[test]
    fn implicit_in_empty_only_an_abort_with_the_current_epoch_is_served() {
        assert_eq!(implicit_row(TxnState::Empty), [FENCED, PREPARES, FENCED, INVALID]);
    }

    #[test]
    fn implicit_after_an_abort_its_repetition_is_done_and_a_commit_never_succeeds() {
        assert_eq!(implicit_row(complete(Goal::Abort)), [DONE, PREPARES, INVALID, INVALID]);
    }

    #[test]
    fn implicit_after_a_commit_its_repetition_is_done_and_an_abort_of_it_never_succeeds() {
        assert_eq!(implicit_row(complete(Goal::Commit)), [INVALID, PREPARES, DONE, INVALID]);
    }

    #[test]
    fn implicit_while_aborting_the_repetition_must_wait() {
        assert_eq!(implicit_row(prepare(Goal::Abort)), [CONCURRENT, FENCED, INVALID, FENCED]);
    }

    #[test]
    fn implicit_while_committing_the_repetition_must_wait() {
        assert_eq!(implicit_row(prepare(Goal::Commit)), [INVALID, FENCED, CONCURRENT, FENCED]);
    }

    #[test]
    fn implicit_in_ongoing_the_epoch_must_be_the_current_one() {
        assert_eq!(implicit_row(ongoing()), [FENCED, PREPARES, FENCED, PREPARES]);
    }

    #[test]
    fn implicit_repetition_with_the_used_up_id_is_recognised() {
        let mut rotated = entry(complete(Goal::Commit));
        rotated.producer = ProducerIdentity { id: PID + 1, epoch: 0 };
        rotated.previous_producer_id = PID;
        let old = ProducerIdentity { id: PID, epoch: EPOCH_EXHAUSTED };
        assert_eq!(decide(&rotated, old, Goal::Commit, Generation::Implicit), DONE);
        assert_eq!(decide(&rotated, old, Goal::Abort, Generation::Implicit), INVALID);
        let older = ProducerIdentity { id: PID, epoch: EPOCH_EXHAUSTED - 1 };
        let foreign = Err(ResponseError::InvalidProducerIdMapping);
        assert_eq!(decide(&rotated, older, Goal::Commit, Generation::Implicit), foreign);
    }

    #[test]
    fn in_the_marker_window_everything_must_wait_even_a_foreign_id() {
        for generation in [Generation::Explicit, Generation::Implicit] {
            for producer in [ProducerIdentity { id: PID, epoch: EPOCH }, ProducerIdentity { id: 1, epoch: 0 }] {
                for goal in [Goal::Abort, Goal::Commit] {
                    assert_eq!(decide(&entry(prepare(Goal::Commit)), producer, goal, generation), CONCURRENT);
                }
            }
        }
    }

    #[test]
    fn a_foreign_id_comes_before_a_wrong_epoch() {
        let foreign = ProducerIdentity { id: PID + 5, epoch: 0 };
        for generation in [Generation::Explicit, Generation::Implicit] {
            assert_eq!(
                decide(&entry(ongoing()), foreign, Goal::Commit, generation),
                Err(ResponseError::InvalidProducerIdMapping)
            );
        }
    }

    #[test]
    fn explicit_table() {
        let current = ProducerIdentity { id: PID, epoch: EPOCH };
        let rows = [
            (TxnState::Empty, INVALID, INVALID),
            (ongoing(), PREPARES, PREPARES),
            (prepare(Goal::Abort), CONCURRENT, INVALID),
            (prepare(Goal::Commit), INVALID, CONCURRENT),
            (complete(Goal::Abort), DONE, INVALID),
            (complete(Goal::Commit), INVALID, DONE),
        ];
        for (state, abort, commit) in rows {
            let entry = entry(state);
            let settled = |goal| decide_settled(&entry, current, goal, Generation::Explicit);
            assert_eq!((settled(Goal::Abort), settled(Goal::Commit)), (abort, commit), "{:?}", entry.state);
        }
    }

    #[test]
    fn explicit_needs_the_very_epoch() {
        for epoch in [EPOCH - 1, EPOCH + 1] {
            let producer = ProducerIdentity { id: PID, epoch };
            assert_eq!(decide(&entry(ongoing()), producer, Goal::Commit, Generation::Explicit), FENCED);
        }
    }
}
