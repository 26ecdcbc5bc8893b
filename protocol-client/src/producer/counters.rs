//! What a producer counts about itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters since the producer was made. Taken at one moment, but not under one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProducerMetrics {
    /// Transactions that were committed; those without a record do not count.
    pub transactions_committed: u64,
    /// Transactions that were aborted, or refused at their commit.
    pub transactions_aborted: u64,
    /// Transactions whose end could not be found out.
    pub transactions_unknown: u64,
    /// Records that a broker acknowledged.
    pub records_acknowledged: u64,
    /// Bytes of acknowledged batches, as they were on the wire.
    pub bytes_acknowledged: u64,
    /// Batches that went out a second time or more.
    pub batch_retries: u64,
    /// Produce requests sent.
    pub produce_requests: u64,
    /// Bytes that wait to be sent or acknowledged.
    pub buffered_bytes: u64,
    /// Questions to the coordinator whether the markers are written.
    pub marker_polls: u64,
    /// Times that a transaction's first Produce was held back for the markers of the one before.
    pub marker_holds: u64,
    /// How long those holds took together.
    pub marker_hold_time: Duration,
    /// Times that the markers were not seen to land within the limit, so that the Produce went out anyway.
    pub marker_give_ups: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) committed: AtomicU64,
    pub(crate) aborted: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) buffered: AtomicU64,
    pub(crate) marker_polls: AtomicU64,
    pub(crate) marker_holds: AtomicU64,
    pub(crate) marker_hold_micros: AtomicU64,
    pub(crate) marker_give_ups: AtomicU64,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> ProducerMetrics {
        ProducerMetrics {
            transactions_committed: self.committed.load(Relaxed),
            transactions_aborted: self.aborted.load(Relaxed),
            transactions_unknown: self.unknown.load(Relaxed),
            records_acknowledged: self.records.load(Relaxed),
            bytes_acknowledged: self.bytes.load(Relaxed),
            batch_retries: self.retries.load(Relaxed),
            produce_requests: self.requests.load(Relaxed),
            buffered_bytes: self.buffered.load(Relaxed),
            marker_polls: self.marker_polls.load(Relaxed),
            marker_holds: self.marker_holds.load(Relaxed),
            marker_hold_time: Duration::from_micros(self.marker_hold_micros.load(Relaxed)),
            marker_give_ups: self.marker_give_ups.load(Relaxed),
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Relaxed);
}

/// Takes from a gauge.
pub(crate) fn subtract(counter: &AtomicU64, amount: u64) {
    counter.fetch_sub(amount, Relaxed);
}
