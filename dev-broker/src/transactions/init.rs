//! InitProducerId for a transactional id: what the coordinator does, as one pure decision.
//!
//! Sources: KIP-98, KIP-360 (a producer may bring its id and epoch), KAFKA-18660 (pending before fenced), KIP-588
//! (codes).

use kafka_protocol::ResponseError;

use super::state::{EPOCH_EXHAUSTED, NO_EPOCH, ProducerIdentity, TxnEntry, TxnState};

/// What InitProducerId leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitDecision {
    /// Epoch + 1; the old one is remembered only when the client named it, so that it may ask again.
    Raise {
        /// Remember the old epoch?
        remember_last: bool,
    },
    /// The epochs are used up: a new producer id with epoch 0.
    Rotate {
        /// Remember the old epoch?
        remember_last: bool,
    },
    /// A repetition: the raised epoch is answered again.
    AlreadyDone,
    /// A transaction is open: raise the epoch, abort it, and let the client ask again.
    Fence,
}

/// Decides one InitProducerId for a known transactional id; `brought` is the identity that the client already has.
///
/// # Errors
/// CONCURRENT_TRANSACTIONS or PRODUCER_FENCED.
pub(crate) fn decide(entry: &TxnEntry, brought: Option<ProducerIdentity>) -> Result<InitDecision, ResponseError> {
    if entry.is_pending() {
        return Err(ResponseError::ConcurrentTransactions);
    }
    if brought.is_some_and(|producer| !may_ask(entry, producer)) {
        return Err(ResponseError::ProducerFenced);
    }
    if matches!(entry.state, TxnState::Ongoing { .. }) {
        return Ok(InitDecision::Fence);
    }
    let remember_last = brought.is_some();
    if entry.is_epoch_exhausted() && brought.is_none_or(|producer| producer.epoch == entry.producer.epoch) {
        return Ok(InitDecision::Rotate { remember_last });
    }
    match brought {
        None => Ok(InitDecision::Raise { remember_last }),
        Some(_) if entry.producer.epoch == NO_EPOCH => Ok(InitDecision::Raise { remember_last }),
        Some(producer) if producer.epoch == entry.producer.epoch => Ok(InitDecision::Raise { remember_last }),
        Some(producer) if producer.epoch == entry.last_epoch => Ok(InitDecision::AlreadyDone),
        Some(_) => Err(ResponseError::ProducerFenced),
    }
}

/// The id must be the current one, or the one before it when its epochs were used up; anything goes for an id made
/// this instant.
fn may_ask(entry: &TxnEntry, producer: ProducerIdentity) -> bool {
    entry.producer.epoch == NO_EPOCH
        || producer.id == entry.producer.id
        || (producer.id == entry.previous_producer_id && producer.epoch >= EPOCH_EXHAUSTED)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::time::Timestamp;
    use crate::transactions::state::Goal;

    const PID: i64 = 40;
    const NOW: Timestamp = Timestamp::from_millis(5);

    fn entry(epoch: i16, last_epoch: i16) -> TxnEntry {
        let mut entry = TxnEntry::new(NOW, PID, Duration::from_secs(60));
        entry.producer.epoch = epoch;
        entry.last_epoch = last_epoch;
        entry
    }

    fn with(id: i64, epoch: i16) -> Option<ProducerIdentity> {
        Some(ProducerIdentity { id, epoch })
    }

    #[test]
    fn a_new_id_begins_with_epoch_zero_even_if_the_client_brought_another_identity() {
        assert_eq!(decide(&entry(NO_EPOCH, NO_EPOCH), None), Ok(InitDecision::Raise { remember_last: false }));
        assert_eq!(decide(&entry(NO_EPOCH, NO_EPOCH), with(3, 9)), Ok(InitDecision::Raise { remember_last: true }));
    }

    #[test]
    fn without_an_identity_the_epoch_is_raised_and_the_old_one_forgotten() {
        assert_eq!(decide(&entry(4, 3), None), Ok(InitDecision::Raise { remember_last: false }));
    }

    #[test]
    fn the_current_epoch_is_raised_and_the_last_one_answered_again() {
        assert_eq!(decide(&entry(4, 3), with(PID, 4)), Ok(InitDecision::Raise { remember_last: true }));
        assert_eq!(decide(&entry(4, 3), with(PID, 3)), Ok(InitDecision::AlreadyDone));
        assert_eq!(decide(&entry(4, 3), with(PID, 2)), Err(ResponseError::ProducerFenced));
        assert_eq!(decide(&entry(4, 3), with(PID, 5)), Err(ResponseError::ProducerFenced));
        assert_eq!(decide(&entry(4, NO_EPOCH), with(PID, 3)), Err(ResponseError::ProducerFenced));
    }

    #[test]
    fn a_foreign_id_is_fenced() {
        assert_eq!(decide(&entry(4, 3), with(PID - 1, 4)), Err(ResponseError::ProducerFenced));
    }

    #[test]
    fn used_up_epochs_lead_to_a_new_id_and_its_repetition_is_recognised() {
        let mut used_up = entry(EPOCH_EXHAUSTED, 5);
        assert_eq!(decide(&used_up, with(PID, EPOCH_EXHAUSTED)), Ok(InitDecision::Rotate { remember_last: true }));
        assert_eq!(decide(&used_up, None), Ok(InitDecision::Rotate { remember_last: false }));
        used_up.previous_producer_id = PID;
        used_up.producer = ProducerIdentity { id: PID + 1, epoch: 0 };
        used_up.last_epoch = EPOCH_EXHAUSTED;
        assert_eq!(decide(&used_up, with(PID, EPOCH_EXHAUSTED)), Ok(InitDecision::AlreadyDone));
        assert_eq!(decide(&used_up, with(PID, 7)), Err(ResponseError::ProducerFenced));
    }

    #[test]
    fn an_open_transaction_is_fenced_and_a_pending_one_waited_for() {
        let mut open = entry(4, 3);
        open.state = TxnState::Ongoing { started: NOW, partitions: BTreeSet::new() };
        assert_eq!(decide(&open, None), Ok(InitDecision::Fence));
        assert_eq!(decide(&open, with(PID, 4)), Ok(InitDecision::Fence));
        open.state = TxnState::Prepare {
            goal: Goal::Commit,
            started: NOW,
            partitions: BTreeSet::new(),
            markers_due: NOW,
            next_producer_id: None,
        };
        assert_eq!(decide(&open, with(PID + 9, 0)), Err(ResponseError::ConcurrentTransactions));
    }
}
