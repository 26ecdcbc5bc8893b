//! What can go wrong for a producer, sorted by what its owner has to do about it.
//!
//! The line that matters runs between [`ProducerError::NotCommitted`] and [`ProducerError::Unknown`]: after the first the
//! same records may be sent again, after the second only a look at what is committed tells (KIP-98, KIP-890). Which code
//! leads to which variant is decided by the machine's table in `oncewire-txn`, never here.

use super::stage::StageError;
use oncewire_txn::{Cause, RequestKind};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why something failed, with the names that an operator needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was asked of a broker, if anything was.
    pub request: Option<RequestKind>,
    /// The Kafka error code that answered, if one did.
    pub code: Option<i16>,
    /// The topic it was about, if it was about one.
    pub topic: Option<Arc<str>>,
    /// The partition it was about, if it was about one.
    pub partition: Option<u32>,
    /// What happened, in words, without the names above. With a code: what the broker said beyond it, mostly nothing.
    pub reason: String,
}

impl Failure {
    /// A failure that no broker answered with.
    pub(crate) fn local(reason: impl Into<String>) -> Self {
        Self { request: None, code: None, topic: None, partition: None, reason: reason.into() }
    }

    /// Says one thing more of what happened. A code alone has no words of its own to be added to.
    pub(crate) fn add_words(&mut self, words: &str) {
        if !self.reason.is_empty() {
            self.reason.push_str("; ");
        }
        self.reason.push_str(words);
    }

    /// Gives the machine's cause its names back. `names` turns the machine's partition index into topic and partition.
    pub(crate) fn from_cause(cause: &Cause, name: Option<(Arc<str>, u32)>) -> Self {
        let (topic, partition) = match name {
            Some((topic, partition)) => (Some(topic), Some(partition)),
            None => (None, None),
        };
        match cause {
            Cause::Code { request, code, .. } => {
                Self { request: Some(*request), code: Some(code.0), topic, partition, reason: String::new() }
            }
            Cause::DeadlinePassed { request, .. } => Self {
                request: Some(*request),
                code: None,
                topic,
                partition,
                reason:
                    "no answer that counts came before the deadline (delivery.timeout.ms or transaction.timeout.ms)"
                        .to_owned(),
            },
            Cause::TransactionTooOld => {
                Self::local("the transaction was open for too long; commit more often or raise transaction.timeout.ms")
            }
            Cause::BatchRejected { reason, .. } => {
                Self { request: None, code: None, topic, partition, reason: reason.clone() }
            }
            Cause::Requested => Self::local("the caller asked for it"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.request, &self.topic, self.partition) {
            (Some(request), Some(topic), Some(partition)) => {
                write!(f, "{} for partition {topic}-{partition}: ", request_name(request))?;
            }
            (None, Some(topic), Some(partition)) => write!(f, "partition {topic}-{partition}: ")?,
            (Some(request), ..) => write!(f, "{}: ", request_name(request))?,
            (None, ..) => {}
        }
        match self.code {
            Some(code) if self.reason.is_empty() => f.write_str(&super::code_name(code)),
            Some(code) => write!(f, "{}: {}", super::code_name(code), self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

fn request_name(request: RequestKind) -> &'static str {
    match request {
        RequestKind::FindCoordinator => "FindCoordinator",
        RequestKind::InitProducerId => "InitProducerId",
        RequestKind::AddPartitions => "AddPartitionsToTxn",
        RequestKind::Produce => "Produce",
        RequestKind::EndTxn => "EndTxn",
    }
}

/// What a producer's owner is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProducerError {
    /// Nothing of the transaction is or will be visible. The records may be sent again in a new transaction.
    NotCommitted {
        /// Whose transaction.
        transactional_id: Arc<str>,
        /// Why.
        cause: Failure,
        /// True when this producer can go on (after [`abort`](super::TransactionalProducer::abort), if the transaction is
        /// still open); false when a new producer is needed.
        recoverable: bool,
    },
    /// The answer to EndTxn was lost for good: the transaction may be visible or not. Read what is committed to find out.
    Unknown {
        /// Whose transaction.
        transactional_id: Arc<str>,
        /// Why.
        cause: Failure,
    },
    /// The open transaction can only be aborted.
    AbortRequired {
        /// Whose transaction.
        transactional_id: Arc<str>,
        /// Why.
        cause: Failure,
    },
    /// A newer owner has the transactional id. Stop quietly; a restart would fence the owner.
    Fenced {
        /// Whose.
        transactional_id: Arc<str>,
        /// Why.
        cause: Failure,
    },
    /// This producer is of no use any more; a new one may do.
    Fatal {
        /// Whose.
        transactional_id: Arc<str>,
        /// Why.
        cause: Failure,
    },
    /// No producer id could be had. `init` may be called again.
    InitFailed {
        /// Whose.
        transactional_id: Arc<str>,
        /// Why.
        cause: Failure,
    },
    /// Records of a producer without transactions are not, or not surely, in the log.
    NotDelivered {
        /// Why.
        cause: Failure,
    },
    /// The topic's partitions could not be found out.
    Metadata {
        /// Which topic.
        topic: Arc<str>,
        /// Why.
        reason: String,
    },
    /// `buffer.memory` stayed full for `max.block.ms`.
    BufferFull {
        /// What was asked for.
        wanted_bytes: usize,
        /// `buffer.memory`.
        limit_bytes: usize,
        /// How long it waited.
        waited: Duration,
    },
    /// A record was refused before it was sent.
    Stage(StageError),
    /// Calls in an order that makes no sense, say `send` without `begin`.
    Misuse {
        /// Whose.
        transactional_id: Arc<str>,
        /// What to call first.
        reason: String,
    },
    /// The producer was closed.
    Closed {
        /// Whose.
        transactional_id: Arc<str>,
    },
    /// The call's own deadline passed; what it waited for goes on.
    TimedOut {
        /// Whose.
        transactional_id: Arc<str>,
        /// Which call.
        call: &'static str,
        /// How long it waited.
        waited: Duration,
    },
}

impl ProducerError {
    /// True when a newer owner has taken the transactional id: end quietly, never restart by itself.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    /// True when only the committed data tells whether the transaction is visible.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// True when the same producer can go on (after an abort, where a transaction is still open).
    pub fn is_recoverable(&self) -> bool {
        match self {
            Self::NotCommitted { recoverable, .. } => *recoverable,
            Self::NotDelivered { .. } => true,
            Self::AbortRequired { .. }
            | Self::InitFailed { .. }
            | Self::Metadata { .. }
            | Self::BufferFull { .. }
            | Self::Stage(_)
            | Self::Misuse { .. }
            | Self::TimedOut { .. } => true,
            Self::Unknown { .. } | Self::Fenced { .. } | Self::Fatal { .. } | Self::Closed { .. } => false,
        }
    }

    /// The Kafka error code behind this, if a broker gave one.
    pub fn code(&self) -> Option<i16> {
        match self {
            Self::NotCommitted { cause, .. }
            | Self::Unknown { cause, .. }
            | Self::AbortRequired { cause, .. }
            | Self::Fenced { cause, .. }
            | Self::Fatal { cause, .. }
            | Self::InitFailed { cause, .. }
            | Self::NotDelivered { cause } => cause.code,
            _ => None,
        }
    }
}

impl fmt::Display for ProducerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCommitted { transactional_id, cause, .. } => {
                write!(f, "transaction of {transactional_id:?} was not committed: {cause}")
            }
            Self::Unknown { transactional_id, cause } => write!(
                f,
                "it is not known whether the transaction of {transactional_id:?} was committed, read what is committed \
                 to find out: {cause}"
            ),
            Self::AbortRequired { transactional_id, cause } => {
                write!(f, "the open transaction of {transactional_id:?} can only be aborted: {cause}")
            }
            Self::Fenced { transactional_id, cause } => {
                write!(f, "producer {transactional_id:?} was superseded by a newer one with the same id: {cause}")
            }
            Self::Fatal { transactional_id, cause } => {
                write!(f, "producer {transactional_id:?} cannot go on: {cause}")?;
                if cause.code == Some(INVALID_TRANSACTION_TIMEOUT) {
                    f.write_str("; lower transaction.timeout.ms, or raise the brokers' transaction.max.timeout.ms")?;
                }
                Ok(())
            }
            Self::InitFailed { transactional_id, cause } => {
                write!(f, "producer {transactional_id:?} got no producer id: {cause}")?;
                if cause.code == Some(TRANSACTIONAL_ID_AUTHORIZATION_FAILED) {
                    write!(f, "; grant the principal WRITE and DESCRIBE on the transactional id {transactional_id:?}")?;
                }
                Ok(())
            }
            Self::NotDelivered { cause } => write!(f, "records were not delivered: {cause}"),
            Self::Metadata { topic, reason } => write!(f, "partitions of topic {topic:?} are not known: {reason}"),
            Self::BufferFull { wanted_bytes, limit_bytes, waited } => write!(
                f,
                "no room for {wanted_bytes} bytes after {waited:?}: {limit_bytes} bytes (buffer.memory) are waiting to be \
                 acknowledged"
            ),
            Self::Stage(error) => error.fmt(f),
            Self::Misuse { transactional_id, reason } => write!(f, "producer {transactional_id:?}: {reason}"),
            Self::Closed { transactional_id } => write!(f, "producer {transactional_id:?} is closed"),
            Self::TimedOut { transactional_id, call, waited } => {
                write!(f, "producer {transactional_id:?}: {call} did not finish within {waited:?}")
            }
        }
    }
}

impl std::error::Error for ProducerError {}

impl From<StageError> for ProducerError {
    fn from(error: StageError) -> Self {
        Self::Stage(error)
    }
}

const INVALID_TRANSACTION_TIMEOUT: i16 = 50;
const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i16 = 53;

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(request: Option<RequestKind>, code: Option<i16>, reason: &str) -> Failure {
        let (topic, partition) = (Some(Arc::from("t")), Some(3));
        Failure { request, code, topic, partition, reason: reason.to_owned() }
    }

    #[test]
    fn what_is_added_to_a_failure_follows_what_is_there_and_nothing_else() {
        let mut by_code = failure(Some(RequestKind::Produce), Some(5), "");
        by_code.add_words("delivery.timeout.ms is over");
        assert_eq!(
            by_code.to_string(),
            "Produce for partition t-3: LEADER_NOT_AVAILABLE (5): delivery.timeout.ms is over"
        );
        let mut with_words = failure(None, None, "it was never sent");
        with_words.add_words("delivery.timeout.ms is over");
        assert_eq!(with_words.to_string(), "partition t-3: it was never sent; delivery.timeout.ms is over");
    }

    #[test]
    fn a_code_without_words_ends_the_line() {
        assert_eq!(
            failure(Some(RequestKind::Produce), Some(5), "").to_string(),
            "Produce for partition t-3: LEADER_NOT_AVAILABLE (5)"
        );
        assert_eq!(Failure::local("the caller asked for it").to_string(), "the caller asked for it");
    }
}
