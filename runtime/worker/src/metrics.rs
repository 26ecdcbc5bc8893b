//! Counters of a task, for its log lines and for whoever embeds the worker.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts since the task was created, over its restarts.
#[derive(Debug, Default)]
pub struct TaskMetrics {
    records_polled: AtomicU64,
    records_committed: AtomicU64,
    records_aborted: AtomicU64,
    transactions_committed: AtomicU64,
    transactions_aborted: AtomicU64,
    commit_micros: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskCounts {
    /// Records that `poll` returned and that were not dropped.
    pub records_polled: u64,
    /// Records in committed transactions.
    pub records_committed: u64,
    /// Records in transactions that the connector aborted.
    pub records_aborted: u64,
    /// Committed transactions.
    pub transactions_committed: u64,
    /// Transactions that the connector aborted.
    pub transactions_aborted: u64,
    /// Time spent in commits, microseconds.
    pub commit_micros: u64,
}

impl TaskMetrics {
    pub(crate) fn polled(&self, records: u64) {
        self.records_polled.fetch_add(records, Relaxed);
    }

    pub(crate) fn committed(&self, records: u64, took: Duration) {
        self.records_committed.fetch_add(records, Relaxed);
        self.transactions_committed.fetch_add(1, Relaxed);
        self.commit_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn aborted(&self, records: u64) {
        self.records_aborted.fetch_add(records, Relaxed);
        self.transactions_aborted.fetch_add(1, Relaxed);
    }

    /// The counts now.
    pub fn counts(&self) -> TaskCounts {
        TaskCounts {
            records_polled: self.records_polled.load(Relaxed),
            records_committed: self.records_committed.load(Relaxed),
            records_aborted: self.records_aborted.load(Relaxed),
            transactions_committed: self.transactions_committed.load(Relaxed),
            transactions_aborted: self.transactions_aborted.load(Relaxed),
            commit_micros: self.commit_micros.load(Relaxed),
        }
    }
}
