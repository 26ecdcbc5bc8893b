//! What one partition knows of the producers that write to it: sequences, epochs, open transactions, the aborted index.
//!
//! Pure: it is told of batches and markers and says whether they may be appended; the log itself is elsewhere.
//! Sources: KIP-98 (sequences, markers, last stable offset), KIP-360 (epochs), KIP-854 (expiry), KAFKA-9144 (a marker
//! keeps its producer from expiring). Left out: snapshots on disk, and the `lowestSequence` memory of Kafka's
//! verification state.
//!
//! Invariant: `open` holds exactly the producers whose entry has an `open_since`, keyed by that offset.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use kafka_protocol::ResponseError;
use oncewire_client::batch::{Batch, sequence_after};

use crate::time::Timestamp;

/// Batches remembered for each producer, hence the most that a client may have in flight to a partition.
const WINDOW_BATCHES: usize = 5;
const NO_SEQUENCE: i32 = -1;

/// A batch that was appended, remembered so that a second copy is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AppendedBatch {
    base_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    append_time_ms: i64,
}

/// One producer as this partition knows it.
#[derive(Debug, Clone)]
pub(crate) struct ProducerEntry {
    pub(crate) epoch: i16,
    pub(crate) coordinator_epoch: i32,
    pub(crate) last_timestamp: Timestamp,
    /// First offset of the open transaction.
    pub(crate) open_since: Option<i64>,
    window: VecDeque<AppendedBatch>,
}

impl ProducerEntry {
    pub(crate) fn last_sequence(&self) -> i32 {
        self.window.back().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    fn move_to_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.window.clear();
        }
    }
}

/// What to do with a batch that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Append,
    /// It is in the log already: answer as the first time and append nothing.
    Duplicate {
        base_offset: i64,
        append_time_ms: i64,
    },
}

/// A transaction that was aborted: readers of committed data skip its producer's batches in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AbortedTransaction {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// Offset of the marker.
    pub(crate) last_offset: i64,
    /// The last stable offset once this marker stood: later entries cannot concern anything below it.
    last_stable_offset: i64,
}

/// A marker about to be appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marker {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) coordinator_epoch: i32,
    pub(crate) commit: bool,
}

/// The producers of one partition.
#[derive(Debug, Default)]
pub(crate) struct ProducerStates {
    entries: HashMap<i64, ProducerEntry>,
    /// First offset → producer id, for every open transaction.
    open: BTreeMap<i64, i64>,
    /// In marker order, which is also the order of `last_offset`.
    aborted: Vec<AbortedTransaction>,
}

impl ProducerStates {
    /// May this client batch be appended?
    ///
    /// # Errors
    /// INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
    pub(crate) fn admit(&self, batch: &Batch) -> Result<Admission, ResponseError> {
        if batch.producer_id < 0 {
            return Ok(Admission::Append);
        }
        // No entry: everything of this producer was deleted or expired, or is yet to come. Any sequence may begin
        // (KIP-360).
        let Some(entry) = self.entries.get(&batch.producer_id) else { return Ok(Admission::Append) };
        if let Some(known) = entry.duplicate_of(batch) {
            return Ok(Admission::Duplicate { base_offset: known.base_offset, append_time_ms: known.append_time_ms });
        }
        if batch.producer_epoch < entry.epoch {
            return Err(ResponseError::InvalidProducerEpoch);
        }
        let expected = match entry.last_sequence() {
            _ if batch.producer_epoch > entry.epoch => 0,
            NO_SEQUENCE => 0,
            last => sequence_after(last, 1),
        };
        if batch.base_sequence != expected {
            return Err(ResponseError::OutOfOrderSequenceNumber);
        }
        if entry.open_since.is_some() && !batch.is_transactional() {
            return Err(ResponseError::InvalidTxnState);
        }
        Ok(Admission::Append)
    }

    /// Notes an admitted batch that was appended at `base_offset`.
    pub(crate) fn appended(&mut self, now: Timestamp, batch: &Batch, base_offset: i64) {
        if batch.producer_id < 0 {
            return;
        }
        let entry =
            self.entries.entry(batch.producer_id).or_insert_with(|| ProducerEntry::new(batch.producer_epoch, now));
        entry.move_to_epoch(batch.producer_epoch);
        entry.last_timestamp = now;
        if entry.window.len() == WINDOW_BATCHES {
            entry.window.pop_front();
        }
        entry.window.push_back(AppendedBatch {
            base_sequence: batch.base_sequence,
            last_sequence: batch.last_sequence(),
            base_offset,
            append_time_ms: now.millis(),
        });
        if batch.is_transactional() && entry.open_since.is_none() {
            entry.open_since = Some(base_offset);
            self.open.insert(base_offset, batch.producer_id);
        }
    }

    /// May this marker be appended?
    ///
    /// # Errors
    /// INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
    pub(crate) fn admit_marker(&self, marker: &Marker) -> Result<(), ResponseError> {
        match self.entries.get(&marker.producer_id) {
            Some(entry) if marker.epoch < entry.epoch => Err(ResponseError::InvalidProducerEpoch),
            Some(entry) if marker.coordinator_epoch < entry.coordinator_epoch => {
                Err(ResponseError::TransactionCoordinatorFenced)
            }
            _ => Ok(()),
        }
    }

    /// Notes an admitted marker that was appended at `offset`. A transaction without data here leaves no trace but
    /// the marker.
    pub(crate) fn marker_appended(&mut self, now: Timestamp, marker: &Marker, offset: i64) {
        let entry = self.entries.entry(marker.producer_id).or_insert_with(|| ProducerEntry::new(marker.epoch, now));
        entry.move_to_epoch(marker.epoch);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = now;
        let Some(first_offset) = entry.open_since.take() else { return };
        self.open.remove(&first_offset);
        if !marker.commit {
            let last_stable_offset = self.first_open_offset().unwrap_or(offset + 1);
            self.aborted.push(AbortedTransaction {
                producer_id: marker.producer_id,
                first_offset,
                last_offset: offset,
                last_stable_offset,
            });
        }
    }

    /// Is this producer in a transaction here, at this epoch? Then its partition need not be verified again (KIP-890).
    pub(crate) fn is_in_transaction(&self, producer_id: i64, epoch: i16) -> bool {
        self.entries.get(&producer_id).is_some_and(|entry| entry.epoch == epoch && entry.open_since.is_some())
    }

    /// The offset that read_committed readers may not pass.
    pub(crate) fn first_open_offset(&self) -> Option<i64> {
        self.open.keys().next().copied()
    }

    /// Aborted transactions with data or marker in `[fetch_offset, upper_bound)`.
    pub(crate) fn aborted_between(&self, fetch_offset: i64, upper_bound: i64) -> Vec<AbortedTransaction> {
        let first = self.aborted.partition_point(|txn| txn.last_offset < fetch_offset);
        let mut found = Vec::new();
        for txn in &self.aborted[first..] {
            if txn.first_offset < upper_bound {
                found.push(*txn);
            }
            if txn.last_stable_offset >= upper_bound {
                break;
            }
        }
        found
    }

    /// Forgets aborted transactions that ended before the log's start.
    pub(crate) fn log_starts_at(&mut self, start_offset: i64) {
        self.aborted.retain(|txn| txn.last_offset >= start_offset);
    }

    /// Forgets producers that were idle for too long, and the most idle ones over the limit; never one with an open
    /// transaction.
    pub(crate) fn expire(&mut self, now: Timestamp, idle_max: Duration, entries_max: usize) {
        self.entries.retain(|_, entry| entry.open_since.is_some() || now.since(entry.last_timestamp) < idle_max);
        let surplus = self.entries.len().saturating_sub(entries_max);
        if surplus == 0 {
            return;
        }
        let mut idle: Vec<(Timestamp, i64)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.open_since.is_none())
            .map(|(producer_id, entry)| (entry.last_timestamp, *producer_id))
            .collect();
        idle.sort_unstable();
        for (_, producer_id) in idle.into_iter().take(surplus) {
            self.entries.remove(&producer_id);
        }
    }

    /// Number of producers kept.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All producers by id, for DescribeProducers.
    pub(crate) fn by_id(&self) -> BTreeMap<i64, &ProducerEntry> {
        self.entries.iter().map(|(producer_id, entry)| (*producer_id, entry)).collect()
    }
}

impl ProducerEntry {
    fn new(epoch: i16, now: Timestamp) -> Self {
        Self { epoch, coordinator_epoch: -1, last_timestamp: now, open_since: None, window: VecDeque::new() }
    }

    fn duplicate_of(&self, batch: &Batch) -> Option<&AppendedBatch> {
        let last_sequence = batch.last_sequence();
        self.window.iter().find(|known| {
            self.epoch == batch.producer_epoch
                && known.base_sequence == batch.base_sequence
                && known.last_sequence == last_sequence
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::produced::open;
    use crate::sample::SampleBatch;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    #[derive(Default)]
    struct Partition {
        states: ProducerStates,
        end: i64,
    }

    impl Partition {
        fn send(&mut self, sample: &SampleBatch) -> Result<Admission, ResponseError> {
            let batch = open(&sample.bytes()).unwrap();
            let admission = self.states.admit(&batch)?;
            if admission == Admission::Append {
                self.states.appended(NOW, &batch, self.end);
                self.end += i64::from(batch.record_count);
            }
            Ok(admission)
        }

        fn mark(&mut self, producer_id: i64, epoch: i16, commit: bool) -> Result<(), ResponseError> {
            let marker = Marker { producer_id, epoch, coordinator_epoch: 0, commit };
            self.states.admit_marker(&marker)?;
            self.states.marker_appended(NOW, &marker, self.end);
            self.end += 1;
            Ok(())
        }

        fn stable(&self) -> i64 {
            self.states.first_open_offset().unwrap_or(self.end)
        }
    }

    fn data(epoch: i16, sequence: i32, records: i32) -> SampleBatch {
        SampleBatch::idempotent(7, epoch, sequence, records)
    }

    fn in_txn(producer_id: i64, epoch: i16, sequence: i32, records: i32) -> SampleBatch {
        SampleBatch::transactional(producer_id, epoch, sequence, records)
    }

    #[test]
    fn each_of_the_last_five_batches_is_recognised_in_any_order() {
        let mut partition = Partition::default();
        for sequence in 0..6 {
            partition.send(&data(0, sequence * 10, 10)).unwrap();
        }
        for sequence in [5, 1, 3, 2, 4] {
            let expected = Admission::Duplicate { base_offset: i64::from(sequence) * 10, append_time_ms: 1_000 };
            assert_eq!(partition.send(&data(0, sequence * 10, 10)), Ok(expected));
        }
        assert_eq!(partition.send(&data(0, 0, 10)), Err(ResponseError::OutOfOrderSequenceNumber));
        assert_eq!(partition.end, 60);
    }

    #[test]
    fn a_gap_in_the_sequence_is_refused() {
        let mut partition = Partition::default();
        partition.send(&data(0, 0, 10)).unwrap();
        assert_eq!(partition.send(&data(0, 11, 1)), Err(ResponseError::OutOfOrderSequenceNumber));
    }

    #[test]
    fn a_part_of_a_known_batch_is_no_duplicate() {
        let mut partition = Partition::default();
        partition.send(&data(0, 0, 10)).unwrap();
        assert_eq!(partition.send(&data(0, 0, 5)), Err(ResponseError::OutOfOrderSequenceNumber));
    }

    #[test]
    fn an_unknown_producer_may_begin_with_any_sequence() {
        assert_eq!(Partition::default().send(&data(3, 812, 1)), Ok(Admission::Append));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let mut partition = Partition::default();
        partition.send(&data(0, i32::MAX - 7, 20)).unwrap();
        assert_eq!(partition.send(&data(0, 12, 1)), Ok(Admission::Append));
        assert!(matches!(partition.send(&data(0, i32::MAX - 7, 20)), Ok(Admission::Duplicate { .. })));
    }

    #[test]
    fn a_new_epoch_begins_at_sequence_zero_and_an_old_one_is_refused() {
        let mut partition = Partition::default();
        partition.send(&data(1, 0, 3)).unwrap();
        assert_eq!(partition.send(&data(2, 3, 1)), Err(ResponseError::OutOfOrderSequenceNumber));
        assert_eq!(partition.send(&data(2, 0, 1)), Ok(Admission::Append));
        assert_eq!(partition.send(&data(1, 3, 1)), Err(ResponseError::InvalidProducerEpoch));
    }

    #[test]
    fn a_new_epoch_forgets_the_window_of_the_old_one() {
        let mut partition = Partition::default();
        partition.send(&data(0, 0, 3)).unwrap();
        assert_eq!(partition.send(&data(1, 0, 3)), Ok(Admission::Append));
        assert_eq!(partition.end, 6);
    }

    #[test]
    fn data_outside_the_open_transaction_is_refused() {
        let mut partition = Partition::default();
        partition.send(&in_txn(7, 0, 0, 1)).unwrap();
        assert_eq!(partition.send(&data(0, 1, 1)), Err(ResponseError::InvalidTxnState));
    }

    #[test]
    fn the_stable_offset_is_that_of_the_oldest_open_transaction() {
        let mut partition = Partition::default();
        partition.send(&in_txn(1, 0, 0, 2)).unwrap();
        partition.send(&in_txn(2, 0, 0, 2)).unwrap();
        assert_eq!(partition.stable(), 0);
        partition.mark(1, 0, true).unwrap();
        assert_eq!(partition.stable(), 2);
        partition.mark(2, 0, false).unwrap();
        assert_eq!(partition.stable(), 6);
    }

    #[test]
    fn an_aborted_transaction_is_listed_for_every_fetch_that_meets_it() {
        let mut partition = Partition::default();
        partition.send(&in_txn(1, 0, 0, 2)).unwrap(); // 0, 1
        partition.mark(1, 0, false).unwrap(); // 2
        partition.send(&in_txn(1, 0, 2, 2)).unwrap(); // 3, 4
        partition.mark(1, 0, false).unwrap(); // 5
        let firsts = |from, to| -> Vec<i64> {
            partition.states.aborted_between(from, to).iter().map(|txn| txn.first_offset).collect()
        };
        assert_eq!(firsts(0, 6), [0, 3]);
        assert_eq!(firsts(1, 3), [0]);
        assert_eq!(firsts(2, 3), [0]);
        assert_eq!(firsts(3, 6), [3]);
        assert_eq!(firsts(6, 7), [0; 0]);
    }

    #[test]
    fn aborting_a_transaction_without_data_leaves_no_entry_in_the_index() {
        let mut partition = Partition::default();
        partition.mark(1, 0, false).unwrap();
        assert!(partition.states.aborted_between(0, 10).is_empty());
        assert_eq!(partition.stable(), 1);
    }

    #[test]
    fn a_marker_moves_the_epoch_so_that_delayed_data_is_refused() {
        let mut partition = Partition::default();
        partition.send(&in_txn(1, 4, 0, 1)).unwrap();
        partition.mark(1, 5, true).unwrap();
        assert_eq!(partition.send(&in_txn(1, 4, 1, 1)), Err(ResponseError::InvalidProducerEpoch));
        assert_eq!(partition.send(&in_txn(1, 5, 1, 1)), Err(ResponseError::OutOfOrderSequenceNumber));
        assert_eq!(partition.send(&in_txn(1, 5, 0, 1)), Ok(Admission::Append));
    }

    #[test]
    fn a_marker_at_the_same_epoch_keeps_the_sequence_going() {
        let mut partition = Partition::default();
        partition.send(&in_txn(1, 4, 0, 3)).unwrap();
        partition.mark(1, 4, true).unwrap();
        assert_eq!(partition.send(&in_txn(1, 4, 3, 1)), Ok(Admission::Append));
    }

    #[test]
    fn a_marker_of_an_old_epoch_is_refused() {
        let mut partition = Partition::default();
        partition.send(&in_txn(1, 4, 0, 1)).unwrap();
        assert_eq!(partition.mark(1, 3, false), Err(ResponseError::InvalidProducerEpoch));
    }

    #[test]
    fn an_old_coordinator_is_fenced() {
        let mut partition = Partition::default();
        let marker = |coordinator_epoch| Marker { producer_id: 1, epoch: 0, coordinator_epoch, commit: true };
        partition.states.marker_appended(NOW, &marker(2), 0);
        assert_eq!(partition.states.admit_marker(&marker(1)), Err(ResponseError::TransactionCoordinatorFenced));
        assert_eq!(partition.states.admit_marker(&marker(2)), Ok(()));
    }

    #[test]
    fn an_idle_producer_is_forgotten_but_never_in_mid_transaction() {
        let mut partition = Partition::default();
        partition.send(&in_txn(1, 0, 0, 1)).unwrap();
        partition.send(&data(0, 0, 1)).unwrap();
        partition.states.expire(NOW + Duration::from_secs(60), Duration::from_secs(60), usize::MAX);
        assert_eq!(partition.states.by_id().keys().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(partition.send(&data(0, 99, 1)), Ok(Admission::Append));
    }

    #[test]
    fn over_the_limit_the_most_idle_producer_goes() {
        let mut partition = Partition::default();
        for (producer_id, seconds) in [(1, 3), (2, 1), (3, 2)] {
            let batch = open(&SampleBatch::idempotent(producer_id, 0, 0, 1).bytes()).unwrap();
            partition.states.appended(NOW + Duration::from_secs(seconds), &batch, 0);
        }
        partition.states.expire(NOW, Duration::from_secs(60), 2);
        assert_eq!(partition.states.by_id().keys().copied().collect::<Vec<_>>(), [1, 3]);
    }
}
