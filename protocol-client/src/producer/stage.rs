//! Records gathered into sealed batches, one partition each, before a transaction takes them.
//!
//! A stage belongs to its caller and does no I/O, so the next transaction's records can be encoded while the last one
//! commits. It knows nothing of producer ids and sequences: those are stamped when a batch leaves. Its size is bounded by
//! whoever fills it; [`Stage::bytes`] tells.

use crate::batch::{AppendError, BatchBuilder, BatchLimits, Header, SealedBatch};
use crate::config::CompressionConfig;
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
    record_bytes_max: usize,
    compression: CompressionConfig,
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
        Self {
            limits,
            record_bytes_max: limits.bytes_max,
            compression: CompressionConfig::None,
            slots: Vec::new(),
            index: HashMap::new(),
            last: 0,
            full: Vec::new(),
            records: 0,
            full_bytes: 0,
        }
    }

    /// Lets a record that is larger than a batch may be have a batch of its own, up to this many bytes with its header. `batch.size`
    /// says when a batch is full, not which records are allowed: that is `max.request.size`, as in Java.
    #[must_use]
    pub fn with_record_bytes_max(mut self, record_bytes_max: usize) -> Self {
        self.record_bytes_max = record_bytes_max.max(self.limits.bytes_max);
        self
    }

    /// Compresses each batch when it is sealed, in the thread that seals it. Limits are of what is not yet compressed.
    #[must_use]
    pub fn with_compression(mut self, compression: CompressionConfig) -> Self {
        self.compression = compression;
        self
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
        let mut limits = self.limits;
        // At most three rounds: the batch at hand, an empty one, one that is made for this record alone.
        loop {
            let builder = self.slots[at].builder.get_or_insert_with(|| BatchBuilder::new(limits));
            match builder.append(timestamp_ms, key, value, headers) {
                Ok(()) => {
                    self.records += 1;
                    return Ok(());
                }
                Err(AppendError::Full) => limits = self.limits,
                Err(AppendError::TooLarge { size, .. }) if size <= self.record_bytes_max => {
                    limits = BatchLimits { bytes_max: size, records_max: 1 };
                }
                Err(AppendError::TooLarge { size, .. }) => return Err(too_large(topic, size, self.record_bytes_max)),
            }
            self.seal_slot(at);
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
            let mut batch = builder.seal();
            batch.compress(self.compression);
            let staged = StagedBatch::new(slot.topic.clone(), slot.partition, batch);
            self.full_bytes += staged.size_bytes();
            self.full.push(staged);
        }
    }
}

fn too_large(topic: &Arc<str>, size_bytes: usize, limit_bytes: usize) -> StageError {
    StageError::RecordTooLarge { topic: topic.clone(), size_bytes, limit_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Compression;

    fn sizes(stage: &mut Stage) -> Vec<(u32, usize)> {
        stage.seal().iter().map(|batch| (batch.records(), batch.size_bytes())).collect()
    }

    #[test]
    fn a_record_larger_than_a_batch_has_one_of_its_own_and_keeps_its_place() {
        let mut stage = Stage::new(BatchLimits { bytes_max: 200, records_max: 100 }).with_record_bytes_max(1_000);
        let topic: Arc<str> = "t".into();
        let mut append = |bytes: usize| stage.append(&topic, 0, 1, None, Some(&vec![b'x'; bytes]), &[]);
        for bytes in [10, 300, 500, 20, 20] {
            append(bytes).unwrap();
        }
        let error = append(990).unwrap_err().to_string();
        assert!(error.contains("limit of 1000 bytes"), "{error}");
        append(30).unwrap();
        assert_eq!(stage.records(), 6);
        let sizes = sizes(&mut stage);
        assert_eq!(sizes.iter().map(|(records, _)| *records).collect::<Vec<_>>(), [1, 1, 1, 3]);
        assert!(sizes[1].1 > 300 && sizes[2].1 > 500);
    }

    #[test]
    fn batches_are_compressed_when_that_makes_them_smaller() {
        let mut stage = Stage::new(BatchLimits::default()).with_compression(CompressionConfig::Lz4);
        stage.append(&"t".into(), 0, 1, None, Some(&[7; 10_000]), &[]).unwrap();
        stage.append(&"t".into(), 1, 1, None, Some(b"short"), &[]).unwrap();
        let batches = stage.seal();
        assert_eq!(batches[0].batch.compression(), Compression::Lz4);
        assert!(batches[0].size_bytes() < 1_000);
        assert_eq!(batches[1].batch.compression(), Compression::None);
    }

    #[test]
    fn without_a_larger_limit_the_batch_is_the_limit() {
        let mut stage = Stage::new(BatchLimits { bytes_max: 200, records_max: 100 });
        assert!(stage.append(&"t".into(), 0, 1, None, Some(&[0; 300]), &[]).is_err());
        assert!(stage.is_empty() && stage.seal().is_empty());
    }
}
