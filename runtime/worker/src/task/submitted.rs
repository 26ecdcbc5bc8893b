//! Which offsets may be stored while records without transactions are on their way. Pure.
//!
//! Per source partition there is a queue in the order in which the connector gave the records; what may be stored is the
//! offset of the last record of its acknowledged prefix. A slow Kafka partition so holds back only the source partitions
//! whose records wait there (KAFKA-12226, KAFKA-13469). Records are acknowledged in units: what one poll sent to one Kafka
//! partition. Bound: the caller limits the units that are open.

use super::offset_buffer::OffsetBuffer;
use oncewire_api::{SourceOffset, SourcePartition};
use std::collections::{HashMap, HashSet, VecDeque};

/// Records that are acknowledged together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub u64);

#[derive(Debug)]
struct Entry {
    offset: Option<SourceOffset>,
    /// `None`: nothing was sent (the record was dropped), so nothing is waited for.
    unit: Option<UnitId>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Submitted {
    queues: HashMap<SourcePartition, VecDeque<Entry>>,
    open: HashMap<UnitId, HashSet<SourcePartition>>,
    /// Source partitions whose front may have become free.
    touched: HashSet<SourcePartition>,
}

impl Submitted {
    /// A record's offset, in the connector's order. `unit`: what it waits for.
    pub fn submit(&mut self, partition: SourcePartition, offset: Option<SourceOffset>, unit: Option<UnitId>) {
        match unit {
            Some(unit) => {
                self.open.entry(unit).or_default().insert(partition.clone());
            }
            None => {
                self.touched.insert(partition.clone());
            }
        }
        let queue = self.queues.entry(partition).or_default();
        match queue.back_mut() {
            // Of a run that waits for the same, only the last offset matters.
            Some(last) if last.unit == unit => last.offset = offset,
            _ => queue.push_back(Entry { offset, unit }),
        }
    }

    /// The unit's records are in the log, or are given up by a tolerant connector.
    pub fn acknowledged(&mut self, unit: UnitId) {
        if let Some(partitions) = self.open.remove(&unit) {
            self.touched.extend(partitions);
        }
    }

    /// Units that are not acknowledged.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Takes what may be stored now.
    pub fn take_committable(&mut self) -> OffsetBuffer {
        let mut buffer = OffsetBuffer::default();
        for partition in self.touched.drain() {
            let Some(queue) = self.queues.get_mut(&partition) else { continue };
            let mut last = None;
            while let Some(front) =
                queue.pop_front_if(|entry| entry.unit.is_none_or(|unit| !self.open.contains_key(&unit)))
            {
                last = Some(front);
            }
            if queue.is_empty() {
                self.queues.remove(&partition);
            }
            if let Some(entry) = last {
                buffer.put(partition, entry.offset);
            }
        }
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(name: &str) -> SourcePartition {
        SourcePartition::single("p", name)
    }

    fn offset(n: i64) -> Option<SourceOffset> {
        Some(SourceOffset::single("n", n))
    }

    fn taken(submitted: &mut Submitted) -> Vec<(SourcePartition, Option<SourceOffset>)> {
        let mut taken = submitted.take_committable().entries().to_vec();
        taken.sort_by_key(|(partition, _)| partition.to_string());
        taken
    }

    #[test]
    fn scenario_85_out_of_order_acks_commit_the_acked_prefix_and_other_partitions_are_not_held_back() {
        let mut submitted = Submitted::default();
        for n in 1..=3 {
            submitted.submit(partition("a"), offset(n), Some(UnitId(n.unsigned_abs())));
        }
        submitted.submit(partition("b"), offset(9), Some(UnitId(9)));
        assert!(taken(&mut submitted).is_empty());
        submitted.acknowledged(UnitId(1));
        submitted.acknowledged(UnitId(3));
        submitted.acknowledged(UnitId(9));
        assert_eq!(taken(&mut submitted), [(partition("a"), offset(1)), (partition("b"), offset(9))]);
        assert!(taken(&mut submitted).is_empty(), "what was taken is not told again");
        submitted.acknowledged(UnitId(2));
        assert_eq!(taken(&mut submitted), [(partition("a"), offset(3))]);
        assert_eq!(submitted.open(), 0);
    }

    #[test]
    fn a_unit_with_records_of_two_partitions_frees_both() {
        let mut submitted = Submitted::default();
        submitted.submit(partition("a"), offset(1), Some(UnitId(1)));
        submitted.submit(partition("b"), offset(1), Some(UnitId(1)));
        submitted.submit(partition("a"), offset(2), Some(UnitId(2)));
        submitted.acknowledged(UnitId(1));
        assert_eq!(taken(&mut submitted), [(partition("a"), offset(1)), (partition("b"), offset(1))]);
    }

    #[test]
    fn a_dropped_record_is_progress_but_never_overtakes_one_that_is_on_its_way() {
        let mut submitted = Submitted::default();
        submitted.submit(partition("a"), offset(1), None);
        assert_eq!(taken(&mut submitted), [(partition("a"), offset(1))]);
        submitted.submit(partition("a"), offset(2), Some(UnitId(1)));
        submitted.submit(partition("a"), None, None);
        assert!(taken(&mut submitted).is_empty());
        submitted.acknowledged(UnitId(1));
        assert_eq!(
            taken(&mut submitted),
            [(partition("a"), None)],
            "a null offset is a tombstone, and the newest wins"
        );
    }

    #[test]
    fn interleaved_units_of_one_partition_keep_their_order() {
        let mut submitted = Submitted::default();
        for (n, unit) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
            submitted.submit(partition("a"), offset(n), Some(UnitId(unit)));
        }
        submitted.acknowledged(UnitId(1));
        assert_eq!(taken(&mut submitted), [(partition("a"), offset(1))], "2 waits, so 3 does too");
        submitted.acknowledged(UnitId(2));
        assert_eq!(taken(&mut submitted), [(partition("a"), offset(4))]);
    }
}
