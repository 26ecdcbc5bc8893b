//! Letting the markers of one transaction land before the next one's first request.
//!
//! A coordinator answers EndTxn as soon as the decision is durable; the markers follow. What arrives meanwhile is refused
//! with CONCURRENT_TRANSACTIONS: AddPartitionsToTxn tells the client, but with transactions V2 it is the partition's leader
//! that meets it, and it parks the Produce for `add.partitions.to.txn.retry.backoff.ms` (20 ms) before it tries again
//! (KAFKA-18654), although the markers need less than one. So we ask the coordinator (DescribeTransactions, KIP-664) on the
//! connection that is open anyway until it says that the transaction is complete, starting right after EndTxn's answer while
//! the caller is busy with its next records.
//!
//! It is a courtesy, never a condition: after a bounded number of questions, or any error, the request goes out and the
//! broker sorts it out as ever.

use super::coordinator::{self, Coordinator};
use super::counters::{Counters, add};
use super::requests;
use crate::cluster::Versions;
use kafka_protocol::messages::{DescribeTransactionsRequest, DescribeTransactionsResponse};
use std::time::Duration;

/// Questions that follow each other without a pause: each takes a round trip, and the markers are mostly there by the third.
const EAGER_POLLS: u32 = 12;
/// Between the later ones.
const PAUSE: Duration = Duration::from_millis(1);
/// After this the Produce goes out; the broker's own pause is not longer.
const PATIENCE: Duration = Duration::from_millis(20);

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The coordinator says that the transaction is complete.
    Landed,
    /// It did not say so in time.
    GaveUp,
    /// It can't be asked: not permitted, not known to the broker, or it failed. Not to be tried again.
    Refused,
}

/// What one answer means. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Landed,
    NotYet,
    Refused,
}

/// Asks until the markers have landed, within the limits.
pub(crate) async fn markers_landed(coordinator: &Coordinator, counters: &Counters) -> Settled {
    tokio::time::timeout(PATIENCE, ask_until_landed(coordinator, counters)).await.unwrap_or(Settled::GaveUp)
}

async fn ask_until_landed(coordinator: &Coordinator, counters: &Counters) -> Settled {
    let mut polls = 0;
    loop {
        add(&counters.marker_polls, 1);
        polls += 1;
        let call = coordinator::call_to(coordinator.node, Versions::ANY);
        let request = requests::describe(&coordinator.transactional_id);
        let answer = coordinator.cluster.call::<DescribeTransactionsRequest, _>(call, |_version| request).await;
        let sight = answer.map_or_else(
            |error| {
                tracing::debug!(%error, "the coordinator can't be asked for the transaction's state");
                Sight::Refused
            },
            |reply| sight(&reply.body),
        );
        match sight {
            Sight::Landed => return Settled::Landed,
            Sight::Refused => return Settled::Refused,
            Sight::NotYet if polls < EAGER_POLLS => {}
            Sight::NotYet => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn sight(response: &DescribeTransactionsResponse) -> Sight {
    let [state] = response.transaction_states.as_slice() else { return Sight::Refused };
    if state.error_code != 0 {
        return Sight::Refused;
    }
    match state.transaction_state.as_str() {
        "PrepareCommit" | "PrepareAbort" | "PrepareEpochFence" | "Ongoing" => Sight::NotYet,
        "CompleteCommit" | "CompleteAbort" | "Empty" => Sight::Landed,
        _ => Sight::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::describe_transactions_response::TransactionState;
    use kafka_protocol::protocol::StrBytes;

    fn response(code: i16, state: &'static str) -> DescribeTransactionsResponse {
        DescribeTransactionsResponse::default().with_transaction_states(vec![
            TransactionState::default().with_error_code(code).with_transaction_state(StrBytes::from_static_str(state)),
        ])
    }

    #[test]
    fn complete_states_mean_that_the_markers_are_there() {
        for state in ["CompleteCommit", "CompleteAbort", "Empty"] {
            assert_eq!(sight(&response(0, state)), Sight::Landed, "{state}");
        }
        for state in ["PrepareCommit", "PrepareAbort", "Ongoing"] {
            assert_eq!(sight(&response(0, state)), Sight::NotYet, "{state}");
        }
    }

    #[test]
    fn a_refusal_or_an_unknown_state_switches_it_off() {
        assert_eq!(sight(&response(53, "")), Sight::Refused);
        assert_eq!(sight(&response(0, "SomethingNew")), Sight::Refused);
        assert_eq!(sight(&DescribeTransactionsResponse::default()), Sight::Refused);
    }
}
