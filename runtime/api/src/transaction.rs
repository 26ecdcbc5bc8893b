//! Transaction boundaries that a connector defines itself (`transaction.boundary=connector`, KIP-618).
//!
//! The context is only state: the task writes requests into it, the worker takes them. Records have their *place in the batch* as
//! identity: a request made during a `poll` speaks of the batch which that `poll` returns, so the worker takes the requests the moment
//! `poll` returned and keeps them with the batch. That stays right when the next batch is polled before this one is sent. (Java remembers
//! record objects, so there two equal records share a request.)
//!
//! ```text
//! task, in poll:  commit_transaction_after(2); abort_transaction()      worker: let requests = context.take();
//! batch:          r0 r1 r2 ┤commit├ r3 r4 ┤abort├                               requests.after_record(i) for each, requests.after_batch()
//! ```
//!
//! A request both to commit and to abort at one place is a contradiction: the worker fails the task when it gets there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What a task asks the worker to do at a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Commit the transaction.
    Commit,
    /// Abort the transaction. The worker then commits the source offsets of what it dropped, so that it is not read again.
    Abort,
}

/// The task asked both to commit and to abort at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundaryContradiction {
    /// After the record at this place of the batch.
    Record(usize),
    /// After the whole batch.
    Batch,
}

impl fmt::Display for BoundaryContradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connector asked both to commit and to abort the transaction ")?;
        match self {
            Self::Record(place) => write!(f, "after record {place} of the batch"),
            Self::Batch => f.write_str("after the batch"),
        }
    }
}

impl std::error::Error for BoundaryContradiction {}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Asked {
    commit: bool,
    abort: bool,
}

impl Asked {
    fn note(&mut self, boundary: Boundary) {
        match boundary {
            Boundary::Commit => self.commit = true,
            Boundary::Abort => self.abort = true,
        }
    }

    fn verdict(self, contradiction: BoundaryContradiction) -> Result<Option<Boundary>, BoundaryContradiction> {
        match (self.commit, self.abort) {
            (true, true) => Err(contradiction),
            (true, false) => Ok(Some(Boundary::Commit)),
            (false, true) => Ok(Some(Boundary::Abort)),
            (false, false) => Ok(None),
        }
    }
}

/// The requests that belong to one batch; each is given out once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundaryRequests {
    records: BTreeMap<usize, Asked>,
    batch: Asked,
}

impl BoundaryRequests {
    /// What to do after the record at this place was dispatched or dropped. A second question about the same place gets nothing, so a
    /// record that is sent again after a retriable error does not commit twice.
    ///
    /// # Errors
    /// [`BoundaryContradiction`] when both were asked; the task is to fail.
    pub fn after_record(&mut self, place: usize) -> Result<Option<Boundary>, BoundaryContradiction> {
        if self.records.is_empty() {
            return Ok(None); // nearly every record of nearly every batch
        }
        let asked = self.records.remove(&place).unwrap_or_default();
        asked.verdict(BoundaryContradiction::Record(place))
    }

    /// What to do after the batch. A second question gets nothing.
    ///
    /// # Errors
    /// [`BoundaryContradiction`] when both were asked; the task is to fail.
    pub fn after_batch(&mut self) -> Result<Option<Boundary>, BoundaryContradiction> {
        std::mem::take(&mut self.batch).verdict(BoundaryContradiction::Batch)
    }

    /// Whether a request is left.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.batch == Asked::default()
    }

    /// The greatest place for which there is a request: when it is not in the batch, the connector has miscounted.
    pub fn last_place(&self) -> Option<usize> {
        self.records.last_key_value().map(|(place, _)| *place)
    }
}

/// The task's side of transaction boundaries; a clone speaks of the same transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionContext(Arc<Mutex<BoundaryRequests>>);

impl TransactionContext {
    /// A context without requests; the worker makes one for each task.
    pub fn new() -> Self {
        Self::default()
    }

    /// Commit after the batch that this `poll` (or, outside of `poll`, the next one) returns.
    pub fn commit_transaction(&self) {
        self.with(|requests| requests.batch.note(Boundary::Commit));
    }

    /// Commit after the record at this place (from 0) of the batch that this `poll` returns: it is the last of its transaction.
    pub fn commit_transaction_after(&self, place: usize) {
        self.with(|requests| requests.records.entry(place).or_default().note(Boundary::Commit));
    }

    /// Abort after the batch that this `poll` (or, outside of `poll`, the next one) returns: nobody sees the records since the last
    /// boundary, and their source offsets are committed, so that they are not read again.
    pub fn abort_transaction(&self) {
        self.with(|requests| requests.batch.note(Boundary::Abort));
    }

    /// Abort after the record at this place (from 0) of the batch that this `poll` returns: it is the last that is dropped.
    pub fn abort_transaction_after(&self, place: usize) {
        self.with(|requests| requests.records.entry(place).or_default().note(Boundary::Abort));
    }

    /// For the worker: everything asked since the last time, to be called when `poll` returned (also with no batch).
    pub fn take(&self) -> BoundaryRequests {
        self.with(std::mem::take)
    }

    /// A panic elsewhere leaves plain flags that are still right, so a poisoned lock is taken as it is.
    fn with<R>(&self, change: impl FnOnce(&mut BoundaryRequests) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_request_is_given_out_once() {
        let context = TransactionContext::new();
        context.commit_transaction_after(1);
        let mut requests = context.take();
        assert_eq!(requests.after_record(0), Ok(None));
        assert_eq!(requests.after_record(1), Ok(Some(Boundary::Commit)));
        assert_eq!(requests.after_record(1), Ok(None));
        assert_eq!(requests.after_batch(), Ok(None));
        assert!(requests.is_empty());
    }

    /// E68 conflicting-requests
    #[test]
    fn a_contradiction_is_raised_in_the_worker_not_in_the_task() {
        let context = TransactionContext::new();
        context.commit_transaction_after(0);
        context.abort_transaction_after(0);
        context.commit_transaction();
        context.abort_transaction();
        let mut requests = context.take();
        assert_eq!(requests.after_record(0), Err(BoundaryContradiction::Record(0)));
        assert_eq!(requests.after_batch(), Err(BoundaryContradiction::Batch));
    }

    #[test]
    fn commit_after_the_last_record_and_abort_of_the_batch_are_two_boundaries() {
        let context = TransactionContext::new();
        context.commit_transaction_after(4);
        context.abort_transaction();
        let mut requests = context.take();
        assert_eq!(requests.last_place(), Some(4));
        assert_eq!(requests.after_record(4), Ok(Some(Boundary::Commit)));
        assert_eq!(requests.after_batch(), Ok(Some(Boundary::Abort)));
    }

    #[test]
    fn requests_of_the_next_batch_do_not_mix_with_those_taken() {
        let context = TransactionContext::new();
        context.commit_transaction();
        let mut first = context.take();
        context.abort_transaction();
        assert_eq!(first.after_batch(), Ok(Some(Boundary::Commit)));
        assert_eq!(context.take().after_batch(), Ok(Some(Boundary::Abort)));
    }
}
