//! How a transaction ended, and why something failed.
//!
//! A commit has three outcomes. From `Unknown` only the same EndTxn may follow, or a new owner who reads what is committed.

use crate::ids::{BatchId, ErrorCode, PartitionIndex};
use std::fmt;

/// What an EndTxn asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndGoal {
    /// Make the transaction visible.
    Commit,
    /// Throw the transaction away.
    Abort,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything of it is visible, or there was nothing in it.
    Committed,
    /// Nothing of it is visible, as asked.
    Aborted,
    /// A commit was asked for, and nothing of it is or will be visible.
    NotCommitted(Cause),
    /// The answer was lost for good. Read the committed offsets to find out.
    Unknown(Cause),
}

/// Which request a code answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// FindCoordinator.
    FindCoordinator,
    /// InitProducerId.
    InitProducerId,
    /// AddPartitionsToTxn.
    AddPartitions,
    /// Produce.
    Produce,
    /// EndTxn.
    EndTxn,
}

/// Why something failed, with what an operator needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A broker answered with this code.
    Code {
        /// What was asked.
        request: RequestKind,
        /// What it said.
        code: ErrorCode,
        /// About which partition, if about one.
        partition: Option<PartitionIndex>,
    },
    /// A deadline passed while waiting for this.
    DeadlinePassed {
        /// What was asked.
        request: RequestKind,
        /// About which partition, if about one.
        partition: Option<PartitionIndex>,
    },
    /// The transaction was open longer than the local limit below `transaction.timeout.ms`.
    TransactionTooOld,
    /// A batch was refused before it was sent, or failed at the driver.
    BatchRejected {
        /// Which one, if it had become a batch.
        batch: Option<BatchId>,
        /// The driver's words.
        reason: String,
    },
    /// The caller asked to abort or close.
    Requested,
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestKind::FindCoordinator => "FindCoordinator",
            RequestKind::InitProducerId => "InitProducerId",
            RequestKind::AddPartitions => "AddPartitionsToTxn",
            RequestKind::Produce => "Produce",
            RequestKind::EndTxn => "EndTxn",
        })
    }
}

/// Partitions show as their index: the driver knows the names and words its own messages with them.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partition = match self {
            Cause::Code { partition, .. } | Cause::DeadlinePassed { partition, .. } => *partition,
            _ => None,
        };
        match self {
            Cause::Code { request, code, .. } => write!(f, "{request} was answered with code {}", code.0)?,
            Cause::DeadlinePassed { request, .. } => write!(f, "deadline passed while waiting for {request}")?,
            Cause::TransactionTooOld => {
                f.write_str("the transaction was open almost as long as transaction.timeout.ms allows")?;
            }
            Cause::BatchRejected { batch: Some(batch), reason } => {
                write!(f, "batch {} was rejected: {reason}", batch.0)?
            }
            Cause::BatchRejected { batch: None, reason } => write!(f, "a record was rejected: {reason}")?,
            Cause::Requested => f.write_str("the caller asked for it")?,
        }
        match partition {
            Some(partition) => write!(f, " (partition index {})", partition.0),
            None => Ok(()),
        }
    }
}
