//! Reading a topic without a group: "read to the end, then tail".
//!
//! [`LogReader`] fetches from all leaders at once, each on a connection of its own, and gives out records by partition.
//! Its end is a snapshot of the log ends taken at READ_UNCOMMITTED, also for read_committed readers: an open
//! transaction makes it wait, it never stops short (a reader that stops at the last stable offset misses what commits a
//! moment later). Left out: groups, fetch sessions, reading from followers.

mod options;

use std::collections::BTreeMap;

use tokio::time::Instant;

pub use options::{Isolation, ReaderOptions, Start};

use crate::cluster::Cluster;
use crate::error::Error;

/// What a reader met.
#[derive(Debug)]
pub enum ReaderEvent {
    /// Visible records of one partition, in the order of their offsets. Never empty.
    Records {
        /// The partition.
        partition: i32,
        /// The records.
        records: Vec<crate::batch::Record>,
    },
    /// Every partition's position reached the end that was taken last (at the opening, or by [`LogReader::mark_end`]).
    /// Given once for each end.
    ReachedEnd,
    /// A fetch came back without anything visible: nothing new was written, or only aborted or control records.
    Idle,
}

/// Reads all or some partitions of one topic.
#[derive(Debug)]
pub struct LogReader {
    _cluster: Cluster,
}

impl LogReader {
    /// Looks up the topic, its start offsets and its present end.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; what the broker refuses; [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn open(_cluster: &Cluster, _topic: &str, _options: ReaderOptions) -> Result<Self, Error> {
        Err(Error::Closed)
    }

    /// The next thing that happens. Waits up to the options' `max_wait` when there is nothing.
    ///
    /// # Errors
    /// What retrying cannot mend: the topic was deleted, no permission, corrupt records, a start offset that is out of range
    /// while the options forbid a reset. Lost connections and moved leaders are retried within `default.api.timeout.ms`.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped: fetches in flight live in the reader.
    pub async fn next(&mut self) -> Result<ReaderEvent, Error> {
        Err(Error::Closed)
    }

    /// Takes the present end of every partition as the next [`ReaderEvent::ReachedEnd`].
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub async fn mark_end(&mut self) -> Result<(), Error> {
        Err(Error::Closed)
    }

    /// Reads until every partition reached the end that was taken last; each batch of records goes to `on_records`.
    /// Call [`LogReader::mark_end`] first to read up to now.
    ///
    /// # Errors
    /// As [`LogReader::next`]; [`Error::Timeout`] at the deadline, naming the partitions that are behind and, where an open
    /// transaction holds them back, saying so. What was read until then was given to `on_records`; it may be called again.
    pub async fn read_to_end(
        &mut self,
        _deadline: Instant,
        _on_records: impl FnMut(i32, Vec<crate::batch::Record>),
    ) -> Result<(), Error> {
        Err(Error::Closed)
    }

    /// Per partition the offset that is read next; control, aborted and compacted records count as read.
    #[must_use]
    pub fn positions(&self) -> BTreeMap<i32, i64> {
        BTreeMap::new()
    }

    /// Per partition the end that was taken last (READ_UNCOMMITTED).
    #[must_use]
    pub fn end_offsets(&self) -> BTreeMap<i32, i64> {
        BTreeMap::new()
    }

    /// Per partition the last stable offset that the last fetch told; -1 before the first.
    #[must_use]
    pub fn last_stable_offsets(&self) -> BTreeMap<i32, i64> {
        BTreeMap::new()
    }
}
