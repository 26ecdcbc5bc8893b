//! A stretch of a topic that a sequence connector fills, from a mark that was set while it was written: whether every number follows the one before.
//!
//! For topics of which only a part was written exactly once; the whole is the auditor's. A task must write to a partition of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use oncewire_connector_sequence::pattern::{self, Item};

use crate::client::Client;

/// Far more than a test's topic takes.
const READ_PATIENCE: Duration = Duration::from_secs(60);

/// Where each partition ended at a moment, records of open transactions included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(BTreeMap<i32, i64>);

impl Mark {
    /// Here and now.
    ///
    /// # Panics
    /// The broker refuses.
    pub fn set(client: &Client, topic: &str) -> Self {
        Mark(client.ends(topic, Isolation::Uncommitted))
    }

    fn of(&self, partition: i32) -> i64 {
        self.0.get(&partition).copied().unwrap_or(0)
    }
}

/// The visible numbers between two marks, by partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch(BTreeMap<i32, Vec<(i64, Item)>>);

impl Stretch {
    /// Reads what stands from one mark on up to another.
    ///
    /// # Panics
    /// The topic can't be read, or holds what is not of the pattern.
    pub fn read(client: &Client, topic: &str, from: &Mark, to: &Mark) -> Self {
        let mut partitions: BTreeMap<i32, Vec<(i64, Item)>> = BTreeMap::new();
        client.block_on(async {
            let options = ReaderOptions { isolation: Isolation::Committed, ..ReaderOptions::default() };
            let mut reader = LogReader::open(client.cluster(), topic, options).await.expect("the topic is there");
            let deadline = Instant::now() + READ_PATIENCE;
            let take = |partition, records: Vec<oncewire_client::batch::Record>| {
                for record in records {
                    if (from.of(partition)..to.of(partition)).contains(&record.offset) {
                        let item =
                            pattern::parse(record.value.as_deref().unwrap_or_default()).expect("it is of the pattern");
                        partitions.entry(partition).or_default().push((record.offset, item));
                    }
                }
            };
            reader.read_to_end(deadline.into(), take).await.expect("the topic can be read to its end");
        });
        Stretch(partitions)
    }

    /// How many numbers a partition has.
    pub fn len_of(&self, partition: i32) -> usize {
        self.0.get(&partition).map_or(0, Vec::len)
    }

    /// Every place where a number is not the one after its predecessor.
    pub fn breaks(&self) -> Vec<String> {
        let pairs = self.0.iter().flat_map(|(partition, items)| items.windows(2).map(move |pair| (partition, pair)));
        let broken = pairs.filter(|(_, pair)| {
            let [(_, before), (_, after)] = pair else { return false };
            after.task != before.task || after.n != before.n + 1
        });
        broken
            .map(|(partition, pair)| {
                format!("partition {partition}, offset {}: {} after {}", pair[1].0, pair[1].1, pair[0].1)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_again_a_gap_and_a_stranger_are_breaks() {
        let items = |numbers: &[(u32, u64)]| {
            let items = numbers.iter().map(|&(task, n)| Item { task, n });
            (10..).zip(items).collect::<Vec<_>>()
        };
        let stretch = |numbers: &[(u32, u64)]| Stretch(BTreeMap::from([(0, items(numbers))]));
        assert_eq!(stretch(&[(0, 7), (0, 8), (0, 9)]).breaks(), Vec::<String>::new());
        for broken in [[(0, 7), (0, 8), (0, 8)], [(0, 7), (0, 8), (0, 10)], [(0, 7), (0, 8), (1, 9)]] {
            assert_eq!(stretch(&broken).breaks().len(), 1, "{broken:?}");
        }
    }
}
