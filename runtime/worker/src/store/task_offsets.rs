//! One connector's offsets as an exactly-once task reads and writes them: in its own transactions, and behind them perhaps
//! a copy in the worker's topic.
//!
//! ```text
//! 1  remove_behind   removals to the worker's topic, awaited: if they fail, nothing is committed
//! 2  stage           everything to the primary topic, inside the transaction
//! 3  committed       the rest to the worker's topic, best effort, after the commit
//! ```
//!
//! In this order a removal is never undone by falling through to an old copy (KAFKA-15018), and a copy is never ahead of
//! what is committed.

use super::connector_offsets::{ConnectorOffsets, write_value};
use super::offset_fold::OffsetFold;
use super::topic_writer::TopicWriter;
use crate::error::TaskFailure;
use crate::task::offset_buffer::OffsetBuffer;
use oncewire_api::{OffsetReader, SourceOffset, SourcePartition};
use oncewire_client::producer::{Stage, partition_for_key};
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub struct TaskOffsets {
    topic: Arc<str>,
    partitions: u32,
    offsets: ConnectorOffsets,
    behind: Option<TopicWriter>,
}

impl TaskOffsets {
    /// From what both stores hold. `behind`: the worker's topic, where there is one behind the primary.
    pub fn new(topic: &str, partitions: u32, connector: &str, fold: OffsetFold, behind: Option<TopicWriter>) -> Self {
        Self { topic: topic.into(), partitions, offsets: ConnectorOffsets::new(connector, fold), behind }
    }

    /// The primary topic.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// How many source partitions have an offset.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether no source partition has an offset.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The source partitions that have an offset, with it.
    pub fn known(&self) -> Vec<(SourcePartition, SourceOffset)> {
        self.offsets.known()
    }

    /// Step 1.
    ///
    /// # Errors
    /// The worker's topic can't be written: the transaction must not be committed.
    pub async fn remove_behind(&mut self, offsets: &OffsetBuffer) -> Result<(), TaskFailure> {
        let Some(behind) = &self.behind else { return Ok(()) };
        let removals = self.offsets.encode(offsets.entries().iter().filter(|(_, offset)| offset.is_none()))?;
        behind
            .write(removals)
            .await
            .map_err(|problem| TaskFailure::lost(format!("offsets were not removed from the {problem}")))
    }

    /// Step 2: encodes the offsets as records of the primary topic.
    ///
    /// # Errors
    /// An offset that can't be stored: the transaction must not be committed without it (KAFKA-14339).
    pub fn stage(&mut self, offsets: &OffsetBuffer, stage: &mut Stage, now_ms: i64) -> Result<(), TaskFailure> {
        let mut value = Vec::new();
        for (partition, offset) in offsets.entries() {
            let key = self.offsets.key(partition)?;
            value.clear();
            let Some(offset) = offset else {
                for key in std::iter::once(key).chain(self.offsets.other_keys(partition)) {
                    let to = partition_for_key(&key, self.partitions);
                    stage.append(&self.topic, to, now_ms, Some(&key), None, &[])?;
                }
                continue;
            };
            write_value(partition, offset, &mut value)?;
            let to = partition_for_key(&key, self.partitions);
            stage.append(&self.topic, to, now_ms, Some(&key), Some(&value), &[])?;
        }
        Ok(())
    }

    /// Step 3: notes offsets whose transaction was committed.
    pub fn committed(&mut self, offsets: &OffsetBuffer, now_ms: i64) {
        if let Some(behind) = &self.behind {
            match self.offsets.encode(offsets.entries().iter().filter(|(_, offset)| offset.is_some())) {
                Ok(copies) => behind.copy(copies),
                Err(failure) => tracing::warn!("offsets were not copied to the worker's offsets topic: {failure}"),
            }
        }
        self.offsets.committed(offsets, now_ms);
    }

    /// What the task reads its offsets through.
    pub fn reader(&self) -> Arc<dyn OffsetReader> {
        self.offsets.reader()
    }
}
