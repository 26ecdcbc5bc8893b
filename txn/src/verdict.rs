//! The table: what a code means for a request. The only place that decides it.
//!
//! Only 0 is success. A code that stands in no row takes the row of its request without codes; for EndTxn that is
//! "indefinite", because a commit that was answered with a code we do not know may have happened all the same
//! (UNKNOWN_SERVER_ERROR on EndTxn was once reported as a commit).
//!
//! Left out: what a verdict leads to. That depends on the state, and stands in the machine.

use crate::ids::ErrorCode;
use crate::outcome::RequestKind;

/// What to make of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Success.
    Done,
    /// Success whose details the broker no longer has.
    DoneBefore,
    /// Send the same again after the ordinary back-off.
    Retry,
    /// Send the same again after the ordinary back-off; the broker may have acted on this copy.
    RetryUnsure,
    /// Another transaction step is still being written: send the same again after the short back-off.
    RetryConcurrent,
    /// Look up the coordinator or the leader, then send the same again.
    RetryElsewhere,
    /// Send the same again, but only once.
    RetryOnce,
    /// A gap before this batch: send it again if an earlier one is open, otherwise abort.
    OutOfOrder,
    /// The transaction can only be aborted.
    Abort,
    /// The transaction or the producer id is gone at the coordinator: nothing to end, init again.
    Gone,
    /// The coordinator says that no transaction is in the state for this.
    NotOpen,
    /// Our epoch is old: the transaction timed out, or somebody else owns the transactional id.
    StaleEpoch,
    /// Somebody else owns the transactional id.
    Fenced,
    /// Refused, and worth another `Init` once a person has changed something.
    Refused,
    /// The producer id is unknown: ask for a new one.
    StartOver,
    /// Nobody can say whether the broker acted.
    Indefinite,
    /// Of no use any more.
    Fatal,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The request that was answered.
    pub request: RequestKind,
    /// The codes, or none for all codes that no other row of this request has.
    pub codes: &'static [i16],
    /// What they mean.
    pub verdict: Verdict,
    /// Where that comes from.
    pub source: &'static str,
}

const fn row(request: RequestKind, codes: &'static [i16], verdict: Verdict, source: &'static str) -> Row {
    Row { request, codes, verdict, source }
}

use RequestKind::{AddPartitions, EndTxn, FindCoordinator, InitProducerId, Produce};

/// Every row. A code stands at most once for each request.
pub const TABLE: &[Row] = &[
    row(FindCoordinator, &[14, 15, 13, 7], Verdict::Retry, "protocol guide: retriable"),
    row(FindCoordinator, &[53], Verdict::Refused, "KAFKA-13668: init again once the ACL is there"),
    row(FindCoordinator, &[120], Verdict::Abort, "KIP-890, FindCoordinator v5"),
    row(FindCoordinator, &[], Verdict::Fatal, "Java client: any other code is fatal"),
    //
    row(InitProducerId, &[15, 16], Verdict::RetryElsewhere, "KIP-98"),
    row(InitProducerId, &[14, 7, 13], Verdict::Retry, "KAFKA-14417: a time-out is no verdict"),
    row(
        InitProducerId,
        &[51],
        Verdict::RetryConcurrent,
        "KIP-98: answered at least once over a predecessor's transaction",
    ),
    row(InitProducerId, &[47, 90], Verdict::Fenced, "KIP-360, KIP-588"),
    row(InitProducerId, &[53, 31, 120], Verdict::Refused, "KAFKA-13668; KIP-890 for 120"),
    row(InitProducerId, &[49, 59], Verdict::StartOver, "KIP-360: the id has expired"),
    row(InitProducerId, &[50, 42, 35], Verdict::Fatal, "protocol guide: a setting that this broker refuses"),
    row(InitProducerId, &[], Verdict::Fatal, "Java client: any other code is fatal"),
    //
    row(AddPartitions, &[15, 16], Verdict::RetryElsewhere, "KIP-98"),
    row(AddPartitions, &[14, 3, 13], Verdict::Retry, "KIP-98; 3 may be a topic that was just made"),
    row(AddPartitions, &[7, 20], Verdict::RetryUnsure, "the coordinator's own append timed out"),
    row(AddPartitions, &[55], Verdict::Retry, "KIP-98: another partition of the request is at fault"),
    row(AddPartitions, &[51], Verdict::RetryConcurrent, "KAFKA-5482"),
    row(AddPartitions, &[47, 90], Verdict::StaleEpoch, "KIP-588"),
    row(AddPartitions, &[49], Verdict::Gone, "KIP-360: the id has expired"),
    row(AddPartitions, &[53, 48], Verdict::Fatal, "Java client"),
    row(AddPartitions, &[29, 59, 120], Verdict::Abort, "Java client; KIP-890 for 120"),
    row(AddPartitions, &[], Verdict::Indefinite, "Java client aborts on any other code; it may have been added"),
    //
    row(Produce, &[46], Verdict::DoneBefore, "KIP-98: the broker has these sequences"),
    row(Produce, &[5, 6, 3, 9, 74, 75, 100, 103], Verdict::RetryElsewhere, "protocol guide: metadata is old"),
    row(Produce, &[7, 20], Verdict::RetryUnsure, "KIP-98: appended, perhaps not replicated"),
    row(Produce, &[19, 13, 14, 15, 16, 56], Verdict::Retry, "protocol guide: retriable"),
    row(Produce, &[51], Verdict::RetryConcurrent, "KIP-890, KAFKA-18654"),
    row(Produce, &[2], Verdict::RetryOnce, "protocol guide: retriable; bytes that we sealed ourselves rarely heal"),
    row(Produce, &[45], Verdict::OutOfOrder, "KIP-98, KIP-360"),
    row(Produce, &[90], Verdict::Fenced, "KIP-588"),
    row(Produce, &[53, 31, 35], Verdict::Fatal, "Java client"),
    row(Produce, &[47, 48], Verdict::Abort, "KAFKA-14278: the coordinator decides, not the leader"),
    row(Produce, &[49, 59, 120], Verdict::Abort, "KIP-360, KIP-890"),
    row(Produce, &[10, 18, 17, 29, 32, 43, 76, 87], Verdict::Abort, "a batch is never rebuilt after it got a sequence"),
    row(Produce, &[], Verdict::Abort, "Java client: any other code fails the batch"),
    //
    row(EndTxn, &[15, 16], Verdict::RetryElsewhere, "KIP-98"),
    row(EndTxn, &[14, 7, 13], Verdict::RetryUnsure, "a coordinator that moves may have appended our request"),
    row(EndTxn, &[51], Verdict::RetryConcurrent, "KIP-98"),
    row(EndTxn, &[47, 90], Verdict::StaleEpoch, "KIP-588, KAFKA-20785"),
    row(EndTxn, &[48], Verdict::NotOpen, "KAFKA-20785: the coordinator timed it out"),
    row(EndTxn, &[49, 59], Verdict::Gone, "KIP-360"),
    row(EndTxn, &[53], Verdict::Fatal, "Java client"),
    row(EndTxn, &[120], Verdict::Abort, "KIP-890"),
    row(EndTxn, &[], Verdict::Indefinite, "an unknown answer to a commit is no answer"),
];

/// What `code` means as the answer to `request`.
#[must_use]
pub fn verdict(request: RequestKind, code: ErrorCode) -> Verdict {
    if code.is_none() {
        return Verdict::Done;
    }
    let rows = || TABLE.iter().filter(|row| row.request == request);
    let named = rows().find(|row| row.codes.contains(&code.0));
    let found = named.or_else(|| rows().find(|row| row.codes.is_empty()));
    found.map_or(Verdict::Fatal, |row| row.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: [RequestKind; 5] = [FindCoordinator, InitProducerId, AddPartitions, Produce, EndTxn];

    #[test]
    fn only_zero_is_success_for_an_end() {
        for code in i16::MIN..=i16::MAX {
            let done = matches!(verdict(EndTxn, ErrorCode(code)), Verdict::Done | Verdict::DoneBefore);
            assert_eq!(done, code == 0, "code {code}");
        }
    }

    #[test]
    fn each_code_stands_at_most_once_for_each_request_and_each_request_has_a_row_for_the_rest() {
        for request in REQUESTS {
            let mut seen = Vec::new();
            for row in TABLE.iter().filter(|row| row.request == request) {
                for code in row.codes {
                    assert!(!seen.contains(code), "{request:?} {code} stands twice");
                    seen.push(*code);
                }
            }
            let rest = TABLE.iter().filter(|row| row.request == request && row.codes.is_empty()).count();
            assert_eq!(rest, 1, "{request:?}");
        }
    }

    #[test]
    fn unknown_answer_to_an_end_is_indefinite() {
        for code in [-1, 999, 89, 133, i16::MIN] {
            assert_eq!(verdict(EndTxn, ErrorCode(code)), Verdict::Indefinite);
        }
    }

    #[test]
    fn concurrent_transactions_is_a_wait_for_every_transactional_request() {
        for request in [InitProducerId, AddPartitions, Produce, EndTxn] {
            assert_eq!(verdict(request, ErrorCode(51)), Verdict::RetryConcurrent, "{request:?}");
        }
    }

    #[test]
    fn every_row_has_a_source() {
        assert!(TABLE.iter().all(|row| !row.source.is_empty()));
    }
}
