//! Records gathered into sealed batches, one partition each, before a transaction takes them.
//!
//! A stage belongs to its caller and does no I/O, so the next transaction's records can be encoded while the last one
//! commits. It knows nothing of producer ids and sequences: those are stamped when a batch leaves. Its size is bounded by
//! whoever fills it; [`Stage::bytes`] tells.

use crate::batch::{AppendError, BatchBuilder, BatchLimits, Header, SealedBatch};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A record that can't become part of any batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageError {
    /// The record alone is larger than a batch may be.
    RecordTooLarge {
        /// Where it was to go.
        topic: Arc<str>,
        /// The record's size when encoded.
        size_bytes: usize,
        /// `max.request.size`.
        limit_bytes: usize,
    },
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RecordTooLarge { topic, size_bytes, limit_bytes } => write!(
                f,
                "record of {size_bytes} bytes for topic {topic:?} is larger than the limit of {limit_bytes} bytes; raise \
                 max.request.size, and message.max.bytes on the topic"
            ),
        }
    }
}

impl std::error::Error for StageError {}

/// A sealed batch and where it goes.
#[derive(Debug)]
pub struct StagedBatch {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: u32,
    pub(crate) batch: SealedBatch,
}

impl StagedBatch {
    /// Names the destination of a batch that the caller sealed.
    pub fn new(topic: Arc<str>, partition: u32, batch: SealedBatch) -> Self {
        Self { topic, partition, batch }
    }

    /// The topic it goes to.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The partition it goes to.
    pub fn partition(&self) -> u32 {
        self.partition
    }

    /// Records in it.
    pub fn records(&self) -> u32 {
        self.batch.record_count()
    }

    /// Bytes of it on the wire.
    pub fn size_bytes(&self) -> usize {
        self.batch.size_bytes()
    }
}

/// One partition's batch that is being filled.
struct Slot {
    topic: Arc<str>,
    partition: u32,
    /// `None` after its batch was taken, until the next record.
    builder: Option<BatchBuilder>,
}

/// The accumulator. See the module.
pub struct Stage {
    limits: BatchLimits,
    slots: Vec<Slot>,
    index: HashMap<(Arc<str>, u32), usize>,
    /// The slot of the record before: runs of one partition skip the hash.
    last: usize,
    full: Vec<StagedBatch>,
    records: u64,
    /// Bytes in `full`; open builders are counted when asked.
    full_bytes: usize,
}

impl Stage {
    /// An empty stage whose batches stay within `limits`.
    pub fn new(limits: BatchLimits) -> Self {
        Self { limits, slots: Vec::new(), index: HashMap::new(), last: 0, full: Vec::new(), records: 0, full_bytes: 0 }
    }

    /// Adds one record to its partition's batch; a full batch is sealed first.
    ///
    /// # Errors
    /// [`StageError::RecordTooLarge`]: nothing was added. In a transaction the caller must not commit without the record.
    pub fn append(
        &mut self,
        topic: &Arc<str>,
        partition: u32,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<(), StageError> {
        let at = self.slot_of(topic, partition);
        let slot = &mut self.slots[at];
        let builder = slot.builder.get_or_insert_with(|| BatchBuilder::new(self.limits));
        match builder.append(timestamp_ms, key, value, headers) {
            Ok(()) => {
                self.records += 1;
                Ok(())
            }
            Err(AppendError::TooLarge { size, limit }) => Err(too_large(topic, size, limit)),
            Err(AppendError::Full) => {
                self.seal_slot(at);
                let mut builder = BatchBuilder::new(self.limits);
                let appended = builder.append(timestamp_ms, key, value, headers);
                match appended {
                    Ok(()) => {
                        self.slots[at].builder = Some(builder);
                        self.records += 1;
                        Ok(())
                    }
                    Err(AppendError::TooLarge { size, limit }) => Err(too_large(topic, size, limit)),
                    // An empty batch refuses a record only for its size.
                    Err(AppendError::Full) => Err(too_large(topic, self.limits.bytes_max, self.limits.bytes_max)),
                }
            }
        }
    }

    /// Records in it, full batches included.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes in it, full batches included.
    pub fn bytes(&self) -> usize {
        let open: usize =
            self.slots.iter().filter_map(|slot| slot.builder.as_ref()).map(BatchBuilder::size_bytes).sum();
        open + self.full_bytes
    }

    /// True when there is no record in it.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Takes the batches that can take no more records, in the order in which they were filled. Send them early.
    pub fn take_full(&mut self) -> Vec<StagedBatch> {
        self.full_bytes = 0;
        self.records -= self.full.iter().map(|batch| u64::from(batch.records())).sum::<u64>();
        std::mem::take(&mut self.full)
    }

    /// Seals and takes everything; the stage is empty afterwards and may be filled again.
    pub fn seal(&mut self) -> Vec<StagedBatch> {
        for at in 0..self.slots.len() {
            self.seal_slot(at);
        }
        self.take_full()
    }

    /// Forgets everything in it.
    pub fn clear(&mut self) {
        for slot in &mut self.slots {
            slot.builder = None;
        }
        self.full.clear();
        self.full_bytes = 0;
        self.records = 0;
    }

    fn slot_of(&mut self, topic: &Arc<str>, partition: u32) -> usize {
        if let Some(slot) = self.slots.get(self.last)
            && slot.partition == partition
            && (Arc::ptr_eq(&slot.topic, topic) || slot.topic == *topic)
        {
            return self.last;
        }
        let at = match self.index.get(&(topic.clone(), partition)) {
            Some(at) => *at,
            None => {
                self.slots.push(Slot { topic: topic.clone(), partition, builder: None });
                self.index.insert((topic.clone(), partition), self.slots.len() - 1);
                self.slots.len() - 1
            }
        };
        self.last = at;
        at
    }

    fn seal_slot(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        if let Some(builder) = slot.builder.take()
            && !builder.is_empty()
        {
            let staged = StagedBatch::new(slot.topic.clone(), slot.partition, builder.seal());
            self.full_bytes += staged.size_bytes();
            self.full.push(staged);
        }
    }
}

fn too_large(topic: &Arc<str>, size_bytes: usize, limit_bytes: usize) -> StageError {
    StageError::RecordTooLarge { topic: topic.clone(), size_bytes, limit_bytes }
}
