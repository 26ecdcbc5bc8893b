//! The source offsets of the records that were taken over since the last commit: one per source partition, the last one wins.
//!
//! The bound is the number of source partitions that a task touches in one transaction, which the connector decides. The common
//! case, one partition after the other, compares an address and moves the offset.

use oncewire_api::{SourceOffset, SourcePartition};
use std::collections::HashMap;

/// See the module.
#[derive(Debug, Default)]
pub struct OffsetBuffer {
    entries: Vec<(SourcePartition, Option<SourceOffset>)>,
    places: HashMap<SourcePartition, usize>,
    last: usize,
}

impl OffsetBuffer {
    /// Takes over the offset of one record; `None` removes what is stored for the partition.
    pub fn put(&mut self, partition: SourcePartition, offset: Option<SourceOffset>) {
        if let Some((known, place)) = self.entries.get_mut(self.last).map(|(known, place)| (&*known, place))
            && known.same_instance(&partition)
        {
            *place = offset;
            return;
        }
        match self.places.get(&partition) {
            Some(&at) => {
                self.last = at;
                self.entries[at].1 = offset;
            }
            None => {
                self.last = self.entries.len();
                self.places.insert(partition.clone(), self.last);
                self.entries.push((partition, offset));
            }
        }
    }

    /// Takes over everything of a later buffer.
    pub fn absorb(&mut self, later: OffsetBuffer) {
        for (partition, offset) in later.entries {
            self.put(partition, offset);
        }
    }

    /// The partitions with their offsets, in the order in which they were first seen.
    pub fn entries(&self) -> &[(SourcePartition, Option<SourceOffset>)] {
        &self.entries
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets everything, after it was stored.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.last = 0;
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

    #[test]
    fn the_last_offset_of_a_partition_wins_and_a_tombstone_is_an_offset() {
        let mut buffer = OffsetBuffer::default();
        let a = partition("a");
        buffer.put(a.clone(), offset(1));
        buffer.put(a.clone(), offset(2));
        buffer.put(partition("b"), offset(7));
        buffer.put(partition("a"), None);
        assert_eq!(buffer.entries(), [(a, None), (partition("b"), offset(7))]);
    }

    /// D49 flush-cancel-merge
    #[test]
    fn a_later_buffer_overwrites_an_earlier_one() {
        let (mut first, mut second) = (OffsetBuffer::default(), OffsetBuffer::default());
        first.put(partition("a"), offset(1));
        first.put(partition("b"), offset(1));
        second.put(partition("b"), offset(2));
        first.absorb(second);
        assert_eq!(first.entries(), [(partition("a"), offset(1)), (partition("b"), offset(2))]);
        first.clear();
        assert!(first.is_empty());
    }
}
