//! One connector's offsets in memory, whatever they are kept in: how keys are spelled, and what a task may read.

use super::offset_fold::OffsetFold;
use crate::error::TaskFailure;
use crate::task::offset_buffer::OffsetBuffer;
use async_trait::async_trait;
use bytes::Bytes;
use oncewire_api::{OffsetReader, SourceOffset, SourcePartition, TaskError};
use oncewire_plugins::json::{offset_key_bytes, write_offset_value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A record of an offsets topic: its key, and its value or a removal.
pub type StoredRecord = (Bytes, Option<Bytes>);

/// See the module. What a task sees are the offsets at its start and those that it has committed since.
#[derive(Debug, Clone)]
pub struct ConnectorOffsets {
    connector: Arc<str>,
    fold: Arc<Mutex<OffsetFold>>,
    /// Keys of the source partitions that were written since the start.
    keys: HashMap<SourcePartition, Bytes>,
}

impl ConnectorOffsets {
    /// From what was stored.
    pub fn new(connector: &str, fold: OffsetFold) -> Self {
        Self { connector: connector.into(), fold: Arc::new(Mutex::new(fold)), keys: HashMap::new() }
    }

    /// How many source partitions have an offset.
    pub fn len(&self) -> usize {
        self.with(|fold| fold.len())
    }

    /// Whether no source partition has an offset.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The source partitions that have an offset, with it.
    pub fn known(&self) -> Vec<(SourcePartition, SourceOffset)> {
        self.with(|fold| fold.iter().map(|(partition, offset)| (partition.clone(), offset.clone())).collect())
    }

    /// The key bytes of a source partition: those already stored, else the canonical ones.
    ///
    /// # Errors
    /// A partition that can't be stored.
    pub fn key(&mut self, partition: &SourcePartition) -> Result<Bytes, TaskFailure> {
        if let Some(key) = self.keys.get(partition) {
            return Ok(key.clone());
        }
        let key = match self.with(|fold| fold.key(partition).cloned()) {
            Some(key) => key,
            None => Bytes::from(offset_key_bytes(&self.connector, partition).map_err(|error| {
                TaskFailure::failed(format!("source partition {partition} can't be stored: {error}"))
            })?),
        };
        self.keys.insert(partition.clone(), key.clone());
        Ok(key)
    }

    /// Every other spelling of the partition's key that is stored.
    pub fn other_keys(&self, partition: &SourcePartition) -> Vec<Bytes> {
        self.with(|fold| fold.other_keys(partition).to_vec())
    }

    /// The records that store these offsets; a removal reaches every spelling of its key.
    ///
    /// # Errors
    /// A partition or an offset that can't be stored.
    pub fn encode<'a>(
        &mut self,
        offsets: impl Iterator<Item = &'a (SourcePartition, Option<SourceOffset>)>,
    ) -> Result<Vec<StoredRecord>, TaskFailure> {
        let mut records = Vec::new();
        for (partition, offset) in offsets {
            let key = self.key(partition)?;
            match offset {
                None => {
                    records.push((key, None));
                    records.extend(self.other_keys(partition).into_iter().map(|key| (key, None)));
                }
                Some(offset) => {
                    let mut value = Vec::new();
                    write_value(partition, offset, &mut value)?;
                    records.push((key, Some(Bytes::from(value))));
                }
            }
        }
        Ok(records)
    }

    /// Notes offsets that are stored for good.
    pub fn committed(&mut self, offsets: &OffsetBuffer, now_ms: i64) {
        let mut fold = self.fold.lock().unwrap_or_else(PoisonError::into_inner);
        for (partition, offset) in offsets.entries() {
            if let Some(key) = self.keys.get(partition) {
                fold.committed(partition, key, offset.clone(), now_ms);
            }
        }
    }

    /// What the task reads its offsets through.
    pub fn reader(&self) -> Arc<dyn OffsetReader> {
        Arc::new(Snapshot(self.fold.clone()))
    }

    fn with<R>(&self, look: impl FnOnce(&OffsetFold) -> R) -> R {
        // A panic elsewhere leaves whole entries, so a poisoned lock is taken as it is.
        look(&self.fold.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Appends the stored form of an offset of `partition`.
///
/// # Errors
/// An offset that can't be stored: what came with it must not be committed without it (KAFKA-14339).
pub fn write_value(partition: &SourcePartition, offset: &SourceOffset, out: &mut Vec<u8>) -> Result<(), TaskFailure> {
    write_offset_value(offset, out)
        .map_err(|error| TaskFailure::failed(format!("offset {offset} of {partition} can't be stored: {error}")))
}

struct Snapshot(Arc<Mutex<OffsetFold>>);

#[async_trait]
impl OffsetReader for Snapshot {
    async fn offsets(&self, partitions: &[SourcePartition]) -> Result<Vec<Option<SourceOffset>>, TaskError> {
        let fold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(partitions.iter().map(|partition| fold.offset(partition).cloned()).collect())
    }
}
