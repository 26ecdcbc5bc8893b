//! The offsets of one connector, folded from the records of an offsets topic. Pure.
//!
//! Two spellings of one source partition (`{"a":1,"b":2}` and `{"b":2,"a":1}`) are one partition here: the newest record
//! wins, and the next write reuses its key bytes, so that compaction and a Java worker see one key (Aiven's
//! cloud-storage-connectors issue 599 tells what happens otherwise). A null value removes the offset. Keys that are not of
//! this form belong to someone else and are passed over. Bound: the source partitions of one connector.

use bytes::Bytes;
use oncewire_api::{SourceOffset, SourcePartition};
use oncewire_plugins::json::{parse_offset_key, parse_offset_value};
use std::collections::HashMap;

/// Other spellings that are remembered for one partition.
const SPELLINGS_MAX: usize = 16;

#[derive(Debug, Clone)]
struct Entry {
    key: Bytes,
    timestamp_ms: i64,
    offset: Option<SourceOffset>,
    /// Spellings that were found besides `key`, newest last: a removal has to reach them too.
    others: Vec<Bytes>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct OffsetFold {
    connector: String,
    entries: HashMap<SourcePartition, Entry>,
}

impl OffsetFold {
    /// For one connector.
    pub fn new(connector: &str) -> Self {
        Self { connector: connector.to_owned(), entries: HashMap::new() }
    }

    /// Takes one record of the topic. Records of one topic partition must come in order.
    pub fn apply(&mut self, key: Option<&Bytes>, value: Option<&Bytes>, timestamp_ms: i64) {
        let Some(key) = key else { return };
        let parsed = match parse_offset_key(key) {
            Ok((connector, Some(partition))) if connector == self.connector => partition,
            Ok(_) => return,
            Err(problem) => {
                tracing::debug!("an offsets topic holds a key that is not one: {problem}");
                return;
            }
        };
        let offset = match value.map(|value| parse_offset_value(value)).transpose() {
            Ok(offset) => offset.flatten(),
            Err(problem) => {
                tracing::warn!(connector = self.connector, partition = %parsed, "stored offset can't be read, passed over: {problem}");
                return;
            }
        };
        self.take(parsed, key, offset, timestamp_ms);
    }

    /// Takes one record whose key was parsed already.
    pub fn take(&mut self, partition: SourcePartition, key: &Bytes, offset: Option<SourceOffset>, timestamp_ms: i64) {
        let Some(known) = self.entries.get_mut(&partition) else {
            let entry = Entry { key: key.clone(), timestamp_ms, offset, others: Vec::new() };
            self.entries.insert(partition, entry);
            return;
        };
        if known.key == *key {
            (known.timestamp_ms, known.offset) = (timestamp_ms, offset);
            return;
        }
        if !known.others.contains(key) && known.others.len() < SPELLINGS_MAX {
            known.others.push(key.clone());
        }
        if known.timestamp_ms <= timestamp_ms {
            let before = std::mem::replace(&mut known.key, key.clone());
            known.others.retain(|other| other != key);
            known.others.push(before);
            (known.timestamp_ms, known.offset) = (timestamp_ms, offset);
        }
    }

    /// Lets another store stand behind this one: where this one has no record at all for a partition, the other's counts. A
    /// removal here hides what is behind.
    pub fn fall_through_to(&mut self, behind: &OffsetFold) {
        for (partition, entry) in &behind.entries {
            self.entries.entry(partition.clone()).or_insert_with(|| entry.clone());
        }
    }

    /// Notes what this worker has committed itself.
    pub fn committed(&mut self, partition: &SourcePartition, key: &Bytes, offset: Option<SourceOffset>, now_ms: i64) {
        match self.entries.get_mut(partition) {
            Some(entry) => {
                entry.offset = offset;
                entry.timestamp_ms = now_ms;
            }
            None => {
                let entry = Entry { key: key.clone(), timestamp_ms: now_ms, offset, others: Vec::new() };
                self.entries.insert(partition.clone(), entry);
            }
        }
    }

    /// The stored offset of a partition.
    pub fn offset(&self, partition: &SourcePartition) -> Option<&SourceOffset> {
        self.entries.get(partition)?.offset.as_ref()
    }

    /// The key bytes under which a partition's offset is stored, if it ever was.
    pub fn key(&self, partition: &SourcePartition) -> Option<&Bytes> {
        self.entries.get(partition).map(|entry| &entry.key)
    }

    /// Every other spelling of a partition's key that was found.
    pub fn other_keys(&self, partition: &SourcePartition) -> &[Bytes] {
        self.entries.get(partition).map_or(&[], |entry| &entry.others)
    }

    /// The partitions that have an offset, with it.
    pub fn iter(&self) -> impl Iterator<Item = (&SourcePartition, &SourceOffset)> {
        self.entries.iter().filter_map(|(partition, entry)| Some((partition, entry.offset.as_ref()?)))
    }

    /// Partitions with an offset.
    pub fn len(&self) -> usize {
        self.entries.values().filter(|entry| entry.offset.is_some()).count()
    }

    /// Whether no partition has an offset.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn fold(records: &[(&str, Option<&str>, i64)]) -> OffsetFold {
        let mut fold = OffsetFold::new("c");
        for (key, value, at) in records {
            fold.apply(Some(&bytes(key)), value.map(bytes).as_ref(), *at);
        }
        fold
    }

    #[test]
    fn two_spellings_are_one_partition_and_the_newer_record_wins() {
        let fold = fold(&[
            (r#"["c",{"k":"k","b":"b"}]"#, Some(r#"{"pos":7}"#), 200),
            (r#"["c",{"b":"b","k":"k"}]"#, Some(r#"{"pos":10}"#), 100),
        ]);
        let partition = SourcePartition::new([("b", "b".into()), ("k", oncewire_api::OffsetValue::from("k"))]);
        assert_eq!(fold.offset(&partition).and_then(|offset| offset.get("pos")?.as_int()), Some(7));
        assert_eq!(fold.key(&partition).unwrap(), &bytes(r#"["c",{"k":"k","b":"b"}]"#));
    }

    #[test]
    fn every_spelling_is_remembered_for_a_removal() {
        let mut fold = fold(&[
            (r#"["c",{"k":"k","b":"b"}]"#, Some(r#"{"pos":7}"#), 200),
            (r#"["c",{"b":"b","k":"k"}]"#, Some(r#"{"pos":10}"#), 100),
        ]);
        let partition = SourcePartition::new([("b", "b".into()), ("k", oncewire_api::OffsetValue::from("k"))]);
        assert_eq!(fold.other_keys(&partition), [bytes(r#"["c",{"b":"b","k":"k"}]"#)]);
        fold.apply(Some(&bytes(r#"["c",{"b":"b","k":"k"}]"#)), Some(&bytes(r#"{"pos":11}"#)), 300);
        assert_eq!(fold.other_keys(&partition), [bytes(r#"["c",{"k":"k","b":"b"}]"#)]);
        assert_eq!(fold.key(&partition), Some(&bytes(r#"["c",{"b":"b","k":"k"}]"#)));
    }

    #[test]
    fn scenario_47_only_a_partition_without_any_record_falls_through_to_the_global_store() {
        let mut own = fold(&[(r#"["c",{"f":"a"}]"#, Some(r#"{"pos":1}"#), 1), (r#"["c",{"f":"b"}]"#, None, 1)]);
        let global = fold(&[
            (r#"["c",{"f":"a"}]"#, Some(r#"{"pos":9}"#), 9),
            (r#"["c",{"f":"b"}]"#, Some(r#"{"pos":9}"#), 9),
            (r#"["c",{"f":"c"}]"#, Some(r#"{"pos":9}"#), 9),
        ]);
        own.fall_through_to(&global);
        let pos =
            |name: &str| own.offset(&SourcePartition::single("f", name)).and_then(|offset| offset.get("pos")?.as_int());
        assert_eq!((pos("a"), pos("b"), pos("c")), (Some(1), None, Some(9)));
    }

    #[test]
    fn a_tombstone_removes_the_offset_and_keeps_the_spelling() {
        let fold = fold(&[(r#"["c",{"f":"a"}]"#, Some(r#"{"pos":1}"#), 1), (r#"["c",{"f":"a"}]"#, None, 2)]);
        let partition = SourcePartition::single("f", "a");
        assert_eq!(fold.offset(&partition), None);
        assert!(fold.is_empty());
        assert!(fold.key(&partition).is_some());
    }

    #[test]
    fn records_of_others_and_rubbish_are_passed_over() {
        let mut fold = fold(&[
            (r#"["d",{"f":"a"}]"#, Some(r#"{"pos":1}"#), 1),
            ("rubbish", Some("x"), 1),
            (r#"["c",{"f":"a"}]"#, Some("rubbish"), 1),
            (r#"["c"]"#, Some("{}"), 1),
        ]);
        fold.apply(None, None, 1);
        assert!(fold.is_empty());
    }
}
