//! Why a command was refused. A refused command changed nothing.

use crate::ids::BatchId;
use crate::outcome::{Cause, EndGoal};
use std::fmt;

/// The answer to a command that is illegal now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no usable producer id: `Init` first, and read again what is committed.
    InitRequired,
    /// `Init` is still under way.
    Initializing,
    /// `Init` is done already.
    AlreadyInitialized,
    /// There is no open transaction: `Begin` first.
    NoTransaction,
    /// There is an open transaction: `Commit` or `Abort` first.
    TransactionOpen,
    /// The transaction is ending this way; wait for [`crate::Event::Ended`].
    Ending(EndGoal),
    /// The open transaction can only be aborted, for this reason.
    AbortRequired(Cause),
    /// As many batches as allowed wait for their acknowledgement. Try again after [`crate::Event::Acked`].
    Full {
        /// The limit, [`crate::Settings::batches_max`].
        batches_max: usize,
    },
    /// As many partitions as allowed are in use.
    TooManyPartitions {
        /// The limit, [`crate::Settings::partitions_max`].
        partitions_max: usize,
    },
    /// A batch needs 1 to 2147483647 records.
    RecordCount(u32),
    /// This batch was appended before and is not yet acknowledged or dropped.
    DuplicateBatch(BatchId),
    /// Somebody else owns the transactional id.
    Fenced(Cause),
    /// The machine is of no use any more.
    Fatal(Cause),
    /// The machine was closed, or is being closed.
    Closed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::InitRequired => write!(f, "no producer id yet: init first"),
            Refusal::Initializing => write!(f, "init is still under way"),
            Refusal::AlreadyInitialized => write!(f, "init is done already"),
            Refusal::NoTransaction => write!(f, "no transaction is open: begin first"),
            Refusal::TransactionOpen => write!(f, "a transaction is open: commit or abort it first"),
            Refusal::Ending(EndGoal::Commit) => write!(f, "the transaction is being committed: wait for its end"),
            Refusal::Ending(EndGoal::Abort) => write!(f, "the transaction is being aborted: wait for its end"),
            Refusal::AbortRequired(cause) => write!(f, "the transaction can only be aborted: {cause}"),
            Refusal::Full { batches_max } => write!(f, "{batches_max} batches wait for acknowledgement already"),
            Refusal::TooManyPartitions { partitions_max } => {
                write!(f, "{partitions_max} partitions are in use already")
            }
            Refusal::RecordCount(records) => write!(f, "a batch needs 1 to 2147483647 records, not {records}"),
            Refusal::DuplicateBatch(batch) => write!(f, "batch {} was appended already", batch.0),
            Refusal::Fenced(cause) => write!(f, "fenced by another owner of the transactional id: {cause}"),
            Refusal::Fatal(cause) => write!(f, "the producer has failed for good: {cause}"),
            Refusal::Closed => write!(f, "the producer is closed"),
        }
    }
}

impl std::error::Error for Refusal {}
