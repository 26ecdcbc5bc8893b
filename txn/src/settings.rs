//! Every limit of the machine, by name.
//!
//! Left out: validation of what a person wrote. That belongs to the configuration of the client, which knows the property
//! names; the machine takes any numbers and stays safe, if perhaps slow, with all of them.

use crate::ids::Span;

/// Limits and waits. [`Settings::default`] has Apache Kafka's own defaults where Kafka has a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What InitProducerId told the coordinator. Default 60 s (`transaction.timeout.ms`).
    ///
    /// Decides how a refusal is read: a transaction younger than this cannot have timed out, so a refused epoch means that
    /// somebody else took the transactional id.
    pub transaction_timeout: Span,
    /// The age at which an open transaction becomes abort-only, counted from its first request. Default 54 s.
    ///
    /// Slightly below `transaction_timeout`, because aborting ourselves is cheaper than being fenced by the coordinator
    /// (its abort bumps the epoch). See [`Settings::with_transaction_timeout`].
    pub transaction_age_max: Span,
    /// From `Append` to the acknowledgement of a batch. Default 120 s (`delivery.timeout.ms`).
    pub delivery_timeout: Span,
    /// For `Init`, `Commit` and `Abort`, each from its command to its event. Default 60 s (`max.block.ms`).
    pub max_block: Span,
    /// For the abort that follows when a commit could not be finished within `max_block`. Default 5 s (ours: long enough for
    /// a coordinator to move, short enough that a caller who gave `max_block` is not kept much longer).
    pub abort_grace: Span,
    /// For the abort within `Close`. Default 3 s (ours: well under the 5 s of `task.shutdown.graceful.timeout.ms`).
    pub close_timeout: Span,
    /// First wait before a request is tried again; doubles. Default 100 ms (`retry.backoff.ms`).
    pub retry_backoff: Span,
    /// Longest such wait. Default 1 s (`retry.backoff.max.ms`).
    pub retry_backoff_max: Span,
    /// First wait after CONCURRENT_TRANSACTIONS; doubles. Default 1 ms (ours: markers need less than that on a healthy
    /// cluster; KAFKA-5482 and KAFKA-18654 tell what a large first wait costs).
    pub concurrent_backoff: Span,
    /// Longest wait after CONCURRENT_TRANSACTIONS. Default 20 ms (Kafka's `ADD_PARTITIONS_RETRY_BACKOFF_MS`).
    pub concurrent_backoff_max: Span,
    /// Partitions whose sequences are remembered. Default 10,000 (ours; about 200 bytes each).
    pub partitions_max: usize,
    /// Batches that were appended and are neither acknowledged nor dropped. Default 10,000 (ours; the driver's memory
    /// bound is meant to be met long before).
    pub batches_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            transaction_timeout: Span::from_millis(60_000),
            transaction_age_max: Span::from_millis(54_000),
            delivery_timeout: Span::from_millis(120_000),
            max_block: Span::from_millis(60_000),
            abort_grace: Span::from_millis(5_000),
            close_timeout: Span::from_millis(3_000),
            retry_backoff: Span::from_millis(100),
            retry_backoff_max: Span::from_millis(1_000),
            concurrent_backoff: Span::from_millis(1),
            concurrent_backoff_max: Span::from_millis(20),
            partitions_max: 10_000,
            batches_max: 10_000,
        }
    }
}

impl Settings {
    /// These settings with another transaction timeout, and nine tenths of it as the greatest age.
    #[must_use]
    pub fn with_transaction_timeout(self, timeout: Span) -> Settings {
        Settings { transaction_timeout: timeout, transaction_age_max: Span(timeout.0 - timeout.0 / 10), ..self }
    }
}
