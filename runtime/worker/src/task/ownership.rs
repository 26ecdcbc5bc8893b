//! Has a newer task taken our transactional id, or did we only lose a transaction? Asked before a lost task is started again.
//!
//! A broker refuses the epoch of a zombie in the same words as the epoch of a transaction that timed out. Starting again on a guess
//! fences the very successor that replaced us, which then starts again and fences us, for ever. Asking with InitProducerId under our own
//! id and epoch (KIP-360) is no way out: while the successor has a transaction open, the coordinator looks at the producer id only,
//! aborts that transaction and fences its owner. DescribeTransactions (KIP-664) changes nothing, and a principal that may write under
//! the id may ask it.
//!
//! ```text
//! epoch told   state told                     who
//! ours         any                            we
//! ours + 1     CompleteAbort                  the coordinator, for age; or our own abort (V2); or a newer owner, whose InitProducerId had
//!                                             our transaction aborted and is about to be repeated for an epoch of its own
//! ours + 1     CompleteCommit, V2             we: each end takes the next epoch
//! else                                        a newer owner: it took an epoch of its own, and nothing or a fresh transaction under it
//! ```

use crate::error::TaskFailure;
use oncewire_client::admin::{Admin, TransactionDescription, TransactionState};
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::{ProducerIdentity, TransactionalProducer};
use std::time::Duration;

/// How often a transaction that is just being ended is asked about: markers take milliseconds.
const ASKED_MAX: u32 = 40;

const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// How often an aborted transaction is asked about before nobody newer is behind it: 600 ms. A newer owner repeats its InitProducerId
/// after its retry.backoff.ms, 100 ms in Java and 20 ms here; taken back from it in between, it would be the one that is fenced.
const ABORTED_MAX: u32 = 12;

/// The level of `transaction.version` from which each end of a transaction takes the next epoch (KIP-890).
const EPOCH_PER_TRANSACTION: i16 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    We,
    Newer,
    /// The coordinator is at it.
    Deciding,
    /// We, unless a newer owner comes forward in a moment.
    Aborted,
}

/// Turns "lost" into "superseded" where a newer owner is the reason.
///
/// # Cancel safety
/// Safe; an abort goes on by itself.
pub(super) async fn lost_or_superseded(
    cluster: &Cluster,
    producer: &TransactionalProducer,
    cause: String,
) -> TaskFailure {
    let before = producer.identity();
    // An EndTxn is checked against our epoch, so it harms nobody; it also frees the readers that wait for our transaction.
    if let Err(error) = producer.abort().await
        && error.is_fenced()
    {
        return TaskFailure::Superseded(error.to_string());
    }
    let Some(ours) = producer.identity().or(before) else {
        // It never had an epoch, so there is none that somebody could have taken.
        return TaskFailure::Lost(cause);
    };
    match ask(cluster, producer.transactional_id(), ours).await {
        Some(Owner::We | Owner::Aborted) => TaskFailure::Lost(cause),
        Some(Owner::Newer) => TaskFailure::Superseded(format!(
            "a newer owner has the transactional id {:?}; this one's last words: {cause}",
            producer.transactional_id()
        )),
        // A broker before 3.0, or one that does not decide. What is left is to ask in the way that may disturb an owner once.
        Some(Owner::Deciding) | None => match producer.init().await {
            Err(error) if error.is_fenced() => TaskFailure::Superseded(error.to_string()),
            _ => TaskFailure::Lost(cause),
        },
    }
}

async fn ask(cluster: &Cluster, transactional_id: &str, ours: ProducerIdentity) -> Option<Owner> {
    let admin = Admin::new(cluster.clone());
    let mut aborted = 0;
    for _ in 0..ASKED_MAX {
        let found = match admin.describe_transaction(transactional_id).await {
            // Forgotten after `transactional.id.expiration.ms`: nobody has it.
            Ok(None) => Owner::We,
            Ok(Some(now)) => owner(ours, &now, cluster.transaction_version().level),
            Err(error) => {
                tracing::debug!(transactional_id, "who has the transactional id can't be asked: {error}");
                return None;
            }
        };
        match found {
            Owner::Deciding => {}
            Owner::Aborted if aborted < ABORTED_MAX => aborted += 1,
            settled => return Some(settled),
        }
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
    Some(Owner::Deciding)
}

fn owner(ours: ProducerIdentity, now: &TransactionDescription, transaction_version: i16) -> Owner {
    use TransactionState::{CompleteAbort, CompleteCommit, PrepareAbort, PrepareCommit, PrepareEpochFence};
    if now.producer_id != ours.id {
        return Owner::Newer;
    }
    match (i32::from(now.epoch) - i32::from(ours.epoch), &now.state) {
        (0, _) => Owner::We,
        (1, PrepareAbort | PrepareCommit | PrepareEpochFence) => Owner::Deciding,
        (1, CompleteAbort) => Owner::Aborted,
        (1, CompleteCommit) if transaction_version >= EPOCH_PER_TRANSACTION => Owner::We,
        _ => Owner::Newer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: ProducerIdentity = ProducerIdentity { id: 7, epoch: 4 };

    fn told(producer_id: i64, epoch: i16, state: TransactionState, transaction_version: i16) -> Owner {
        let now = TransactionDescription {
            state,
            producer_id,
            epoch,
            timeout: Duration::from_secs(60),
            start_time_ms: -1,
            partitions: Vec::new(),
        };
        owner(OURS, &now, transaction_version)
    }

    #[test]
    fn a_transaction_that_timed_out_leaves_the_id_with_us() {
        for version in 0..=2 {
            assert_eq!(told(7, 5, TransactionState::CompleteAbort, version), Owner::Aborted);
            assert_eq!(told(7, 5, TransactionState::PrepareAbort, version), Owner::Deciding);
            assert_eq!(told(7, 4, TransactionState::Ongoing, version), Owner::We);
        }
    }

    #[test]
    fn a_successor_is_seen_whatever_it_does() {
        for version in 0..=2 {
            for state in [TransactionState::Empty, TransactionState::Ongoing] {
                assert_eq!(told(7, 5, state.clone(), version), Owner::Newer, "it came while nothing was open");
                assert_eq!(told(7, 6, state, version), Owner::Newer, "it came while our transaction was open");
            }
            assert_eq!(told(7, 6, TransactionState::CompleteCommit, version), Owner::Newer);
            assert_eq!(told(8, 0, TransactionState::CompleteAbort, version), Owner::Newer, "our epochs were used up");
        }
    }

    #[test]
    fn a_commit_under_the_next_epoch_is_ours_only_where_each_transaction_takes_one() {
        assert_eq!(told(7, 5, TransactionState::CompleteCommit, 2), Owner::We);
        assert_eq!(told(7, 5, TransactionState::CompleteCommit, 1), Owner::Newer);
    }
}
