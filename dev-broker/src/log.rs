//! One partition's log: encoded batches in memory, in offset order, each a slice of the request frame that brought it.
//!
//! Assigning offsets costs nothing per record: the base offset and the leader epoch stand outside the CRC, so the
//! stored bytes stay as they came and both fields are written into the copy that a Fetch takes anyway.
//!
//! Left out: segments, retention by time or size, compaction (see LEFT_OUT.md): what was appended stays until
//! DeleteRecords or the topic goes. Invariant: `batches` is contiguous, sorted by base offset, and ends at
//! `end_offset`.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use oncewire_client::batch::{Batch, batches};

/// Bytes that a broker writes over: base offset (8), then after the length (4) the leader epoch (4).
const LENGTH_AT: usize = 8;
const LEADER_EPOCH_AT: usize = 12;
const MAGIC_AT: usize = 16;

/// A batch and what is needed to find it.
#[derive(Debug, Clone)]
struct StoredBatch {
    base_offset: i64,
    last_offset: i64,
    max_timestamp_ms: i64,
    bytes: Bytes,
}

impl StoredBatch {
    fn write_to(&self, leader_epoch: i32, buffer: &mut BytesMut) {
        buffer.put_i64(self.base_offset);
        buffer.put_slice(&self.bytes[LENGTH_AT..LEADER_EPOCH_AT]);
        buffer.put_i32(leader_epoch);
        buffer.put_slice(&self.bytes[MAGIC_AT..]);
    }
}

/// An offset and the timestamp of the record there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundOffset {
    pub(crate) offset: i64,
    pub(crate) timestamp_ms: i64,
}

/// How much a read may return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimit {
    /// Whole batches up to this many bytes.
    pub(crate) bytes_max: usize,
    /// Return the first batch even when it alone is larger (KIP-74): else a reader would never get past it.
    pub(crate) at_least_one: bool,
}

/// The append-only log of a partition.
#[derive(Debug)]
pub(crate) struct PartitionLog {
    leader_epoch: i32,
    start_offset: i64,
    end_offset: i64,
    batches: VecDeque<StoredBatch>,
    bytes: u64,
}

impl PartitionLog {
    pub(crate) fn new(leader_epoch: i32) -> Self {
        Self { leader_epoch, start_offset: 0, end_offset: 0, batches: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The first offset that can be read.
    pub(crate) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// The offset that the next record gets: with one replica also the high watermark.
    pub(crate) fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Bytes of all batches that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a checked batch; returns the offset of its first record.
    pub(crate) fn append(&mut self, bytes: Bytes, record_count: i32, max_timestamp_ms: i64) -> i64 {
        let base_offset = self.end_offset;
        let last_offset = base_offset + i64::from(record_count.max(1)) - 1;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.end_offset = last_offset + 1;
        self.batches.push_back(StoredBatch { base_offset, last_offset, max_timestamp_ms, bytes });
        base_offset
    }

    /// Whole batches from the one that holds `offset`, none that begins at or after `upper_bound`.
    pub(crate) fn read(&self, offset: i64, upper_bound: i64, limit: ReadLimit) -> Bytes {
        let range = self.batches_between(offset, upper_bound);
        let mut taken = 0;
        let mut bytes = 0_usize;
        for batch in range.clone() {
            let is_owed = taken == 0 && limit.at_least_one;
            if bytes + batch.bytes.len() > limit.bytes_max && !is_owed {
                break;
            }
            bytes += batch.bytes.len();
            taken += 1;
        }
        let mut buffer = BytesMut::with_capacity(bytes);
        for batch in range.take(taken) {
            batch.write_to(self.leader_epoch, &mut buffer);
        }
        buffer.freeze()
    }

    /// Bytes that [`read`](Self::read) could return, counted until `enough`.
    pub(crate) fn readable_bytes(&self, offset: i64, upper_bound: i64, enough: usize) -> usize {
        let mut bytes = 0;
        for batch in self.batches_between(offset, upper_bound) {
            bytes += batch.bytes.len();
            if bytes >= enough {
                break;
            }
        }
        bytes
    }

    /// The first offset whose record is at least this recent, below `upper_bound`.
    ///
    /// In a batch whose records cannot be read it is the batch's first offset: not later than the record that was
    /// asked for.
    pub(crate) fn first_at_or_after(&self, timestamp_ms: i64, upper_bound: i64) -> Option<FoundOffset> {
        let batch = self
            .batches_between(self.start_offset, upper_bound)
            .find(|batch| batch.max_timestamp_ms >= timestamp_ms)?;
        let fallback = FoundOffset { offset: batch.base_offset, timestamp_ms: batch.max_timestamp_ms };
        Some(self.search(batch, |candidate| candidate.timestamp_ms >= timestamp_ms).unwrap_or(fallback))
    }

    /// The record with the highest timestamp (KIP-734); the first of them when several share it.
    pub(crate) fn max_timestamp(&self, upper_bound: i64) -> Option<FoundOffset> {
        let mut newest: Option<&StoredBatch> = None;
        for batch in self.batches_between(self.start_offset, upper_bound) {
            if newest.is_none_or(|known| batch.max_timestamp_ms > known.max_timestamp_ms) {
                newest = Some(batch);
            }
        }
        let batch = newest?;
        let fallback = FoundOffset { offset: batch.last_offset, timestamp_ms: batch.max_timestamp_ms };
        Some(self.search(batch, |candidate| candidate.timestamp_ms == batch.max_timestamp_ms).unwrap_or(fallback))
    }

    /// Moves the log's start (DeleteRecords) and drops the batches that lie wholly before it.
    pub(crate) fn delete_before(&mut self, offset: i64) {
        self.start_offset = self.start_offset.max(offset.min(self.end_offset));
        while self.batches.front().is_some_and(|batch| batch.last_offset < self.start_offset) {
            let dropped = self.batches.pop_front().map_or(0, |batch| batch.bytes.len());
            self.bytes = self.bytes.saturating_sub(u64::try_from(dropped).unwrap_or(u64::MAX));
        }
    }

    fn batches_between(&self, offset: i64, upper_bound: i64) -> impl Iterator<Item = &StoredBatch> + Clone {
        let first = self.batches.partition_point(|batch| batch.last_offset < offset);
        self.batches.range(first..).take_while(move |batch| batch.base_offset < upper_bound)
    }

    fn search(&self, stored: &StoredBatch, wanted: impl Fn(FoundOffset) -> bool) -> Option<FoundOffset> {
        let mut placed = BytesMut::with_capacity(stored.bytes.len());
        stored.write_to(self.leader_epoch, &mut placed);
        let batch: Batch = batches(&placed.freeze()).next()?.ok()?;
        batch.records().ok()?.map_while(Result::ok).find_map(|record| {
            let found = FoundOffset { offset: record.offset, timestamp_ms: record.timestamp_ms };
            (found.offset >= self.start_offset && wanted(found)).then_some(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleBatch;

    const ALL: ReadLimit = ReadLimit { bytes_max: usize::MAX, at_least_one: true };

    fn log_of(batch_sizes: &[i32]) -> PartitionLog {
        let mut log = PartitionLog::new(3);
        for (index, records) in batch_sizes.iter().enumerate() {
            let timestamp = i64::try_from(index).unwrap() * 1_000;
            let sample = SampleBatch { timestamp, ..SampleBatch::plain(*records) };
            log.append(sample.bytes(), *records, timestamp + i64::from(records - 1));
        }
        log
    }

    fn offsets(records: &Bytes) -> Vec<(i64, i64)> {
        batches(records).map(|batch| batch.unwrap()).map(|batch| (batch.base_offset, batch.last_offset)).collect()
    }

    #[test]
    fn offsets_and_leader_epoch_are_written_without_breaking_the_crc() {
        let records = log_of(&[2, 3]).read(0, i64::MAX, ALL);
        assert_eq!(offsets(&records), [(0, 1), (2, 4)]);
        for batch in batches(&records) {
            let batch = batch.unwrap();
            assert_eq!(batch.leader_epoch, 3);
            batch.check_crc().unwrap();
        }
    }

    #[test]
    fn a_read_starts_with_the_batch_that_holds_the_offset_and_stops_at_the_bound() {
        let log = log_of(&[2, 3, 4]);
        assert_eq!(offsets(&log.read(3, 5, ALL)), [(2, 4)]);
        assert_eq!(offsets(&log.read(9, i64::MAX, ALL)), []);
    }

    #[test]
    fn the_first_batch_comes_whole_even_over_the_limit() {
        let log = log_of(&[5, 5]);
        let tight = ReadLimit { bytes_max: 1, at_least_one: true };
        assert_eq!(offsets(&log.read(0, i64::MAX, tight)), [(0, 4)]);
        assert!(log.read(0, i64::MAX, ReadLimit { bytes_max: 1, at_least_one: false }).is_empty());
    }

    #[test]
    fn a_timestamp_finds_the_record_not_only_the_batch() {
        let log = log_of(&[4, 4]);
        assert_eq!(log.first_at_or_after(1_002, i64::MAX), Some(FoundOffset { offset: 6, timestamp_ms: 1_002 }));
        assert_eq!(log.first_at_or_after(5_000, i64::MAX), None);
        assert_eq!(log.max_timestamp(i64::MAX), Some(FoundOffset { offset: 7, timestamp_ms: 1_003 }));
    }

    #[test]
    fn deleting_moves_the_start_and_frees_whole_batches() {
        let mut log = log_of(&[2, 2]);
        let before = log.bytes();
        log.delete_before(3);
        assert_eq!((log.start_offset(), log.end_offset()), (3, 4));
        assert!(log.bytes() < before && log.bytes() > 0);
    }
}
