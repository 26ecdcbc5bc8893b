//! Which records of a fetched partition are visible, and where reading goes on. Pure.
//!
//! Under read_committed a leader sends, beside the batches, a list of the aborted transactions among them: producer id and
//! first offset. A producer's batches are hidden from there on until its abort marker. What one might get wrong:
//!
//! - The list need not be sorted; we sort it. It is used under read_committed only.
//! - An abort marker whose transaction has no entry (an empty one in this partition) must change nothing.
//! - The state is rebuilt from each response's own list. Carried over, it would hide or show the wrong batches.
//! - Markers, hidden and emptied (compacted) batches move the position all the same: a reader whose position stays before a
//!   marker at the end of the log waits for ever.
//!
//! Source: KIP-98, and what the consumer of Apache Kafka does with `aborted_transactions`.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use super::Isolation;
use crate::batch::{Batch, Batches, ControlMarker, DecodeError, Record, batches};

/// One entry of a response's list of aborted transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aborted {
    pub(super) producer_id: i64,
    pub(super) first_offset: i64,
}

/// The visible part of one batch; the records may be none.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) records: Vec<Record>,
    /// Where reading goes on after this batch.
    pub(super) next_offset: i64,
}

/// Walks the batches of one fetched partition. After an error it ends.
#[derive(Debug)]
pub(super) struct VisibleRecords {
    batches: Batches,
    isolation: Isolation,
    position: i64,
    /// Sorted by first offset; an entry moves to `aborting` when its offset is reached.
    to_come: VecDeque<Aborted>,
    /// Producers whose batches are hidden until their abort marker.
    aborting: HashSet<i64>,
    failed: bool,
}

impl VisibleRecords {
    /// `records` as fetched at `position`, with the aborted transactions that came along.
    pub(super) fn new(records: &Bytes, position: i64, isolation: Isolation, mut aborted: Vec<Aborted>) -> Self {
        if isolation == Isolation::Uncommitted {
            aborted.clear();
        }
        aborted.sort_by_key(|entry| entry.first_offset);
        Self {
            batches: batches(records),
            isolation,
            position,
            to_come: aborted.into(),
            aborting: HashSet::new(),
            failed: false,
        }
    }

    fn read(&mut self, batch: &Batch) -> Result<Chunk, DecodeError> {
        batch.check_crc()?;
        let records = if batch.next_offset() <= self.position || self.hides(batch)? {
            Vec::new()
        } else {
            // A fetch begins with the whole batch that holds the position: what lies before it was read already.
            let from = self.position;
            batch
                .records()?
                .filter(|record| record.as_ref().map_or(true, |record| record.offset >= from))
                .collect::<Result<_, _>>()?
        };
        self.position = self.position.max(batch.next_offset());
        Ok(Chunk { records, next_offset: self.position })
    }

    fn hides(&mut self, batch: &Batch) -> Result<bool, DecodeError> {
        if self.isolation == Isolation::Uncommitted {
            return Ok(batch.is_control());
        }
        while let Some(entry) = self.to_come.pop_front_if(|entry| entry.first_offset < batch.next_offset()) {
            self.aborting.insert(entry.producer_id);
        }
        if batch.is_control() {
            // Compaction can leave a marker's batch without its record; it then ends nothing that is still here.
            if batch.record_count > 0 && ControlMarker::from_batch(batch)? == ControlMarker::Abort {
                self.aborting.remove(&batch.producer_id);
            }
            return Ok(true);
        }
        Ok(batch.is_transactional() && self.aborting.contains(&batch.producer_id))
    }
}

impl Iterator for VisibleRecords {
    type Item = Result<Chunk, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let chunk = match self.batches.next()? {
            Ok(batch) => self.read(&batch),
            Err(error) => Err(error),
        };
        self.failed = chunk.is_err();
        Some(chunk)
    }
}

/// Where the next fetch begins: behind the last whole batch. `None`: there is no whole batch.
pub(super) fn next_fetch_offset(records: &Bytes) -> Option<i64> {
    batches(records).filter_map(Result::ok).last().map(|batch| batch.next_offset())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchBuilder, BatchLimits, MarkerFields, ProducerStamp, encode_marker};

    /// A log in the making; each method appends one batch at the next offset.
    #[derive(Default)]
    struct Log {
        bytes: Vec<u8>,
        end: i64,
    }

    impl Log {
        fn data(mut self, producer_id: i64, count: usize) -> Self {
            self.append(producer_id, true, count);
            self
        }

        fn plain(mut self, producer_id: i64, count: usize) -> Self {
            self.append(producer_id, false, count);
            self
        }

        fn append(&mut self, producer_id: i64, transactional: bool, count: usize) {
            let mut builder = BatchBuilder::new(BatchLimits::default());
            for _ in 0..count {
                builder.append(0, None, Some(b"v"), &[]).unwrap();
            }
            let mut sealed = builder.seal();
            let stamped =
                sealed.stamp(ProducerStamp { producer_id, producer_epoch: 0, base_sequence: 0, transactional });
            let batch = batches(&stamped).next().unwrap().unwrap();
            self.bytes.extend_from_slice(&batch.placed_at(self.end, 0));
            self.end += i64::try_from(count).unwrap();
        }

        fn marker(mut self, producer_id: i64, marker: ControlMarker) -> Self {
            self.bytes.extend_from_slice(&encode_marker(MarkerFields {
                marker,
                base_offset: self.end,
                leader_epoch: 0,
                timestamp_ms: 0,
                producer_id,
                producer_epoch: 0,
                coordinator_epoch: 0,
            }));
            self.end += 1;
            self
        }

        fn commit(self, producer_id: i64) -> Self {
            self.marker(producer_id, ControlMarker::Commit)
        }

        fn abort(self, producer_id: i64) -> Self {
            self.marker(producer_id, ControlMarker::Abort)
        }

        fn gap(mut self, offsets: i64) -> Self {
            self.end += offsets;
            self
        }
    }

    fn aborted(entries: &[(i64, i64)]) -> Vec<Aborted> {
        entries.iter().map(|&(producer_id, first_offset)| Aborted { producer_id, first_offset }).collect()
    }

    /// Visible offsets and the position behind them.
    fn read(log: &Log, from: i64, isolation: Isolation, entries: &[(i64, i64)]) -> (Vec<i64>, i64) {
        let records = Bytes::copy_from_slice(&log.bytes);
        let mut offsets = Vec::new();
        let mut position = from;
        for chunk in VisibleRecords::new(&records, from, isolation, aborted(entries)) {
            let chunk = chunk.unwrap();
            offsets.extend(chunk.records.iter().map(|record| record.offset));
            position = chunk.next_offset;
        }
        (offsets, position)
    }

    #[test]
    fn an_unsorted_list_of_aborted_transactions_hides_the_same_records() {
        // Offsets: 0-1 of producer 1, 2 its abort, 3-4 of producer 2, 5 its abort, 6 of producer 1, 7 its commit.
        let log = Log::default().data(1, 2).abort(1).data(2, 2).abort(2).data(1, 1).commit(1);
        assert_eq!(read(&log, 0, Isolation::Committed, &[(2, 3), (1, 0)]), (vec![6], 8));
        assert_eq!(read(&log, 0, Isolation::Committed, &[(1, 0), (2, 3)]), (vec![6], 8));
    }

    #[test]
    fn an_abort_marker_without_an_entry_hides_nothing() {
        let log = Log::default().abort(3).data(1, 2).abort(3).commit(1).data(3, 1).commit(3);
        assert_eq!(read(&log, 0, Isolation::Committed, &[]), (vec![1, 2, 5], 7));
        // Producer 1's entry is not taken off by producer 3's markers.
        let log = Log::default().abort(3).data(1, 2).abort(3).abort(1).data(1, 1).commit(1);
        assert_eq!(read(&log, 0, Isolation::Committed, &[(1, 1)]), (vec![5], 7));
    }

    #[test]
    fn a_fetch_of_aborted_data_only_moves_the_position() {
        let log = Log::default().data(1, 5).data(1, 5).abort(1);
        assert_eq!(read(&log, 0, Isolation::Committed, &[(1, 0)]), (vec![], 11));
        // Cut before the marker: the next response brings its own list.
        let cut = Log::default().data(1, 5);
        assert_eq!(read(&cut, 0, Isolation::Committed, &[(1, 0)]), (vec![], 5));
    }

    #[test]
    fn two_aborted_transactions_of_one_producer_are_both_hidden() {
        let log = Log::default().data(1, 1).abort(1).data(1, 1).commit(1).data(1, 1).abort(1);
        assert_eq!(read(&log, 0, Isolation::Committed, &[(1, 4), (1, 0)]), (vec![2], 6));
    }

    #[test]
    fn read_uncommitted_ignores_the_list_and_shows_all_but_markers() {
        let log = Log::default().data(1, 2).abort(1).plain(-1, 1);
        assert_eq!(read(&log, 0, Isolation::Uncommitted, &[(1, 0)]), (vec![0, 1, 3], 4));
    }

    #[test]
    fn records_outside_transactions_are_shown_even_from_an_aborting_producer() {
        let log = Log::default().data(1, 1).plain(1, 1).plain(-1, 1).abort(1);
        assert_eq!(read(&log, 0, Isolation::Committed, &[(1, 0)]), (vec![1, 2], 4));
    }

    #[test]
    fn a_position_inside_a_batch_skips_what_was_read_before() {
        let log = Log::default().data(1, 5).commit(1);
        assert_eq!(read(&log, 3, Isolation::Committed, &[]), (vec![3, 4], 6));
        assert_eq!(read(&log, 5, Isolation::Committed, &[]), (vec![], 6));
    }

    #[test]
    fn gaps_left_by_compaction_are_stepped_over() {
        let log = Log::default().plain(-1, 1).gap(10).plain(-1, 1);
        assert_eq!(read(&log, 1, Isolation::Committed, &[]), (vec![11], 12));
    }

    #[test]
    fn an_emptied_batch_moves_the_position() {
        // Compaction keeps the header of a producer's last batch: last offset delta 4, no records.
        let full = Log::default().plain(7, 5);
        let mut header = full.bytes[..61].to_vec();
        header[8..12].copy_from_slice(&49_i32.to_be_bytes());
        header[57..61].copy_from_slice(&0_i32.to_be_bytes());
        let crc = crc32c::crc32c(&header[21..]);
        header[17..21].copy_from_slice(&crc.to_be_bytes());
        let log = Log { bytes: header, end: 5 };
        assert_eq!(read(&log, 0, Isolation::Committed, &[]), (vec![], 5));
        assert_eq!(next_fetch_offset(&Bytes::from(log.bytes)), Some(5));
    }

    #[test]
    fn a_corrupt_batch_is_an_error_and_ends_the_walk() {
        let log = Log::default().data(1, 1).data(1, 1);
        let mut bytes = log.bytes.clone();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let results: Vec<bool> = VisibleRecords::new(&Bytes::from(bytes), 0, Isolation::Committed, vec![])
            .map(|chunk| chunk.is_ok())
            .collect();
        assert_eq!(results, vec![true, false]);
    }

    #[test]
    fn a_batch_that_was_cut_off_is_left_for_the_next_fetch() {
        let log = Log::default().data(1, 1).data(1, 1);
        let cut = Bytes::copy_from_slice(&log.bytes[..log.bytes.len() - 3]);
        assert_eq!(next_fetch_offset(&cut), Some(1));
        assert_eq!(next_fetch_offset(&cut.slice(..30)), None);
    }
}
