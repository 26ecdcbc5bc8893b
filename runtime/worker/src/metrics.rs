//! Counters of a task, for its log lines, for Kafka Connect's task metrics, and for whoever embeds the worker.
//!
//! Every count is one atomic addition per poll or per commit, none per record that is written. Rates and averages are for the reader: counts
//! and sums are told, with the greatest single value beside them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts since the task was created, over its restarts.
#[derive(Debug, Default)]
pub struct TaskMetrics {
    polls: AtomicU64,
    poll_micros: AtomicU64,
    poll_micros_max: AtomicU64,
    records_received: AtomicU64,
    batch_records_max: AtomicU64,
    records_polled: AtomicU64,
    records_committed: AtomicU64,
    records_aborted: AtomicU64,
    records_skipped: AtomicU64,
    records_given_up: AtomicU64,
    dead_letters: AtomicU64,
    transactions_committed: AtomicU64,
    transactions_aborted: AtomicU64,
    transaction_records_max: AtomicU64,
    commit_micros: AtomicU64,
    commit_micros_max: AtomicU64,
    commits_failed: AtomicU64,
    last_error_ms: AtomicI64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskCounts {
    /// Polls that returned a batch.
    pub polls: u64,
    /// Time spent in them, microseconds.
    pub poll_micros: u64,
    /// The longest of them, microseconds.
    pub poll_micros_max: u64,
    /// Records that `poll` returned (Connect's source-record-poll).
    pub records_received: u64,
    /// The largest batch.
    pub batch_records_max: u64,
    /// Records that `poll` returned and that were not dropped.
    pub records_polled: u64,
    /// Records in committed transactions; without transactions, acknowledged ones (Connect's source-record-write).
    pub records_committed: u64,
    /// Records in transactions that the connector aborted.
    pub records_aborted: u64,
    /// Records that could not be converted or sent and were left out (Connect's total-records-skipped).
    pub records_skipped: u64,
    /// Records of `records_polled` that a tolerant connector without transactions lost on the way to the brokers.
    pub records_given_up: u64,
    /// Records of `records_skipped` whose dead letter is in a batch (Connect's deadletterqueue-produce-requests).
    pub dead_letters: u64,
    /// Committed transactions; without transactions, acknowledged polls.
    pub transactions_committed: u64,
    /// Transactions that the connector aborted.
    pub transactions_aborted: u64,
    /// Records in the largest committed transaction.
    pub transaction_records_max: u64,
    /// Time spent in commits, microseconds.
    pub commit_micros: u64,
    /// The longest commit, microseconds.
    pub commit_micros_max: u64,
    /// Commits, or offset flushes, that failed.
    pub commits_failed: u64,
    /// When a record was last left out, milliseconds since 1970; 0: never.
    pub last_error_ms: i64,
}

impl TaskCounts {
    /// Records that were polled and are neither committed nor given up (Connect's source-record-active-count).
    pub fn records_active(&self) -> u64 {
        self.records_polled.saturating_sub(self.records_committed + self.records_aborted + self.records_given_up)
    }
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

impl TaskMetrics {
    pub(crate) fn received(&self, records: usize, took: Duration) {
        let records = records as u64;
        self.polls.fetch_add(1, Relaxed);
        self.poll_micros.fetch_add(micros(took), Relaxed);
        self.poll_micros_max.fetch_max(micros(took), Relaxed);
        self.records_received.fetch_add(records, Relaxed);
        self.batch_records_max.fetch_max(records, Relaxed);
    }

    pub(crate) fn polled(&self, records: u64) {
        self.records_polled.fetch_add(records, Relaxed);
    }

    pub(crate) fn committed(&self, records: u64, took: Duration) {
        self.records_committed.fetch_add(records, Relaxed);
        self.transactions_committed.fetch_add(1, Relaxed);
        self.transaction_records_max.fetch_max(records, Relaxed);
        self.commit_micros.fetch_add(micros(took), Relaxed);
        self.commit_micros_max.fetch_max(micros(took), Relaxed);
    }

    pub(crate) fn aborted(&self, records: u64) {
        self.records_aborted.fetch_add(records, Relaxed);
        self.transactions_aborted.fetch_add(1, Relaxed);
    }

    pub(crate) fn commit_failed(&self) {
        self.commits_failed.fetch_add(1, Relaxed);
    }

    pub(crate) fn skipped(&self, now_ms: i64) {
        self.records_skipped.fetch_add(1, Relaxed);
        self.last_error_ms.store(now_ms, Relaxed);
    }

    pub(crate) fn dead_letter(&self) {
        self.dead_letters.fetch_add(1, Relaxed);
    }

    /// Records that were polled but are lost, with a tolerant connector's consent.
    pub(crate) fn given_up(&self, records: u64, now_ms: i64) {
        self.records_skipped.fetch_add(records, Relaxed);
        self.records_given_up.fetch_add(records, Relaxed);
        self.last_error_ms.store(now_ms, Relaxed);
    }

    /// The counts now.
    pub fn counts(&self) -> TaskCounts {
        TaskCounts {
            polls: self.polls.load(Relaxed),
            poll_micros: self.poll_micros.load(Relaxed),
            poll_micros_max: self.poll_micros_max.load(Relaxed),
            records_received: self.records_received.load(Relaxed),
            batch_records_max: self.batch_records_max.load(Relaxed),
            records_polled: self.records_polled.load(Relaxed),
            records_committed: self.records_committed.load(Relaxed),
            records_aborted: self.records_aborted.load(Relaxed),
            records_skipped: self.records_skipped.load(Relaxed),
            records_given_up: self.records_given_up.load(Relaxed),
            dead_letters: self.dead_letters.load(Relaxed),
            transactions_committed: self.transactions_committed.load(Relaxed),
            transactions_aborted: self.transactions_aborted.load(Relaxed),
            transaction_records_max: self.transaction_records_max.load(Relaxed),
            commit_micros: self.commit_micros.load(Relaxed),
            commit_micros_max: self.commit_micros_max.load(Relaxed),
            commits_failed: self.commits_failed.load(Relaxed),
            last_error_ms: self.last_error_ms.load(Relaxed),
        }
    }
}
