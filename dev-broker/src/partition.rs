//! One partition: its log and what it knows of its producers, kept in step.
//!
//! Invariant: whatever is appended to the log is noted with the producers in the same call, so the last stable offset
//! and the aborted index always speak of the same log. One replica, hence the high watermark is the end of the log.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use oncewire_client::batch::{Batch, ControlMarker, MarkerFields, encode_marker};

use crate::log::{PartitionLog, ReadLimit};
use crate::produced;
use crate::producers::{AbortedTransaction, Admission, Marker, ProducerStates};
use crate::time::Timestamp;

/// Where a produced batch came to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) base_offset: i64,
    /// -1 unless the topic uses the broker's time.
    pub(crate) append_time_ms: i64,
}

/// Who reads: everything, or only what is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
}

impl Isolation {
    /// The wire's number; anything but 1 reads everything, as in Kafka.
    pub(crate) fn from_wire(level: i8) -> Self {
        match level {
            1 => Isolation::ReadCommitted,
            _ => Isolation::ReadUncommitted,
        }
    }
}

/// A partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) log: PartitionLog,
    pub(crate) producers: ProducerStates,
}

impl Partition {
    pub(crate) fn new(leader_epoch: i32) -> Self {
        Self { log: PartitionLog::new(leader_epoch), producers: ProducerStates::default() }
    }

    /// Appends a checked batch, or finds that it is there already.
    ///
    /// # Errors
    /// Those of [`ProducerStates::admit`].
    pub(crate) fn append(
        &mut self,
        now: Timestamp,
        batch: &Batch,
        log_append_time: bool,
    ) -> Result<Appended, ResponseError> {
        let stamped = |time_ms| if log_append_time { time_ms } else { -1 };
        match self.producers.admit(batch)? {
            Admission::Duplicate { base_offset, append_time_ms } => {
                Ok(Appended { base_offset, append_time_ms: stamped(append_time_ms) })
            }
            Admission::Append => {
                let (bytes, max_timestamp_ms) = if log_append_time {
                    (produced::with_log_append_time(batch.bytes(), now.millis()), now.millis())
                } else {
                    (batch.bytes().clone(), batch.max_timestamp_ms)
                };
                let base_offset = self.log.append(bytes, batch.record_count, max_timestamp_ms);
                self.producers.appended(now, batch, base_offset);
                Ok(Appended { base_offset, append_time_ms: stamped(now.millis()) })
            }
        }
    }

    /// Writes a transaction's marker.
    ///
    /// # Errors
    /// Those of [`ProducerStates::admit_marker`].
    pub(crate) fn append_marker(&mut self, now: Timestamp, marker: &Marker) -> Result<i64, ResponseError> {
        self.producers.admit_marker(marker)?;
        let bytes = encode_marker(MarkerFields {
            marker: if marker.commit { ControlMarker::Commit } else { ControlMarker::Abort },
            base_offset: self.log.end_offset(),
            leader_epoch: self.log.leader_epoch(),
            timestamp_ms: now.millis(),
            producer_id: marker.producer_id,
            producer_epoch: marker.epoch,
            coordinator_epoch: marker.coordinator_epoch,
        });
        let offset = self.log.append(bytes, 1, now.millis());
        self.producers.marker_appended(now, marker, offset);
        Ok(offset)
    }

    /// The offset that a reader of this isolation may read up to.
    pub(crate) fn readable_end(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::ReadUncommitted => self.log.end_offset(),
            Isolation::ReadCommitted => self.last_stable_offset(),
        }
    }

    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.producers.first_open_offset().unwrap_or(self.log.end_offset())
    }

    /// Batches from `offset`, and for readers of committed data the aborted transactions among them.
    pub(crate) fn read(
        &self,
        offset: i64,
        isolation: Isolation,
        limit: ReadLimit,
    ) -> (Bytes, Option<Vec<AbortedTransaction>>) {
        let end = self.readable_end(isolation);
        let records = self.log.read(offset, end, limit);
        let aborted = (isolation == Isolation::ReadCommitted)
            .then(|| if records.is_empty() { Vec::new() } else { self.producers.aborted_between(offset, end) });
        (records, aborted)
    }

    /// DeleteRecords: the log begins at `offset`.
    pub(crate) fn delete_before(&mut self, offset: i64) {
        self.log.delete_before(offset);
        self.producers.log_starts_at(self.log.start_offset());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleBatch;
    use oncewire_client::batch::batches;

    const NOW: Timestamp = Timestamp::from_millis(1_000);
    const ALL: ReadLimit = ReadLimit { bytes_max: usize::MAX, at_least_one: true };

    fn append(partition: &mut Partition, sample: &SampleBatch) -> Appended {
        let batch = produced::open(&sample.bytes()).unwrap();
        partition.append(NOW, &batch, false).unwrap()
    }

    fn mark(partition: &mut Partition, producer_id: i64, commit: bool) {
        let marker = Marker { producer_id, epoch: 0, coordinator_epoch: 0, commit };
        partition.append_marker(NOW, &marker).unwrap();
    }

    #[test]
    fn committed_readers_stop_at_the_oldest_open_transaction() {
        let mut partition = Partition::new(0);
        append(&mut partition, &SampleBatch::plain(2));
        append(&mut partition, &SampleBatch::transactional(1, 0, 0, 2));
        append(&mut partition, &SampleBatch::plain(2));
        let (all, none) = partition.read(0, Isolation::ReadUncommitted, ALL);
        assert_eq!((batches(&all).count(), none), (3, None));
        let (decided, aborted) = partition.read(0, Isolation::ReadCommitted, ALL);
        assert_eq!((batches(&decided).count(), aborted), (1, Some(Vec::new())));
    }

    #[test]
    fn a_marker_takes_one_offset_and_says_what_the_coordinator_wrote() {
        let mut partition = Partition::new(4);
        append(&mut partition, &SampleBatch::transactional(1, 0, 0, 2));
        mark(&mut partition, 1, false);
        let (records, aborted) = partition.read(0, Isolation::ReadCommitted, ALL);
        let marker = batches(&records).last().unwrap().unwrap();
        marker.check_crc().unwrap();
        assert!(marker.is_control() && marker.is_transactional());
        assert_eq!((marker.base_offset, marker.leader_epoch, marker.base_sequence), (2, 4, -1));
        assert_eq!(ControlMarker::from_batch(&marker).unwrap(), ControlMarker::Abort);
        let record = marker.records().unwrap().next().unwrap().unwrap();
        assert_eq!(record.value.unwrap().len(), 6, "version and coordinator epoch");
        assert_eq!(aborted.unwrap().iter().map(|txn| txn.first_offset).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_duplicate_is_answered_with_its_first_offset_and_stored_once() {
        let mut partition = Partition::new(0);
        append(&mut partition, &SampleBatch::plain(5));
        let sample = SampleBatch::idempotent(9, 0, 0, 2);
        assert_eq!(append(&mut partition, &sample), append(&mut partition, &sample));
        assert_eq!(partition.log.end_offset(), 7);
    }
}
