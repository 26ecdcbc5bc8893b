//! The names behind the machine's partition indexes.
//!
//! The machine counts partitions and never sees a topic's name. An index is handed out once and kept for the producer's
//! life, whatever the metadata says meanwhile: sequence numbers hang on it, and a partition that vanished from one metadata
//! answer and came back must go on where it was.

use oncewire_txn::PartitionIndex;
use std::collections::HashMap;
use std::sync::Arc;

/// Both directions of the naming.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    names: Vec<(Arc<str>, u32)>,
    indexes: HashMap<(Arc<str>, u32), PartitionIndex>,
}

impl Partitions {
    /// The index of a partition, made on first sight.
    pub(crate) fn index(&mut self, topic: &Arc<str>, partition: u32) -> PartitionIndex {
        if let Some(index) = self.indexes.get(&(topic.clone(), partition)) {
            return *index;
        }
        let index = PartitionIndex(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push((topic.clone(), partition));
        self.indexes.insert((topic.clone(), partition), index);
        index
    }

    /// The name of an index that this object handed out.
    pub(crate) fn name(&self, index: PartitionIndex) -> Option<&(Arc<str>, u32)> {
        self.names.get(index.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_of_a_partition_never_changes() {
        let mut partitions = Partitions::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let first = partitions.index(&a, 0);
        let second = partitions.index(&b, 0);
        assert_ne!(first, second);
        assert_eq!(partitions.index(&"a".into(), 0), first);
        assert_eq!(partitions.name(second), Some(&(b, 0)));
        assert_eq!(partitions.name(PartitionIndex(9)), None);
    }
}
