//! The source offsets of one connector, folded from the offsets topic, and whether they agree with the visible records.
//!
//! A key is the JSON array `["<connector>", {<partition>}]`, a value the JSON object with the offset or null for "none" (KIP-618; the format is
//! Kafka Connect's). The last record of a key wins. What is not of that form belongs to nobody: it is counted, never an error, as in Connect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value};

use crate::finding::Progress;

/// The most source partitions of one connector that are held.
const PARTITIONS_MAX: usize = 1_000_000;

/// Folds the offsets topic for one connector.
#[derive(Debug)]
pub struct SourceOffsets {
    connector: String,
    entries: BTreeMap<String, Entry>,
    records: u64,
    malformed: u64,
}

/// One source partition and its last offset (null after a reset).
#[derive(Debug)]
struct Entry {
    partition: Map<String, Value>,
    offset: Value,
}

/// One comparison of the offsets topic with the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCheck {
    /// The source partition, as JSON.
    pub partition: String,
    /// What the offsets topic says, as JSON; `None` when it says nothing.
    pub committed: Option<String>,
    /// What it ought to say, judged from the visible records; `None` for a partition of which the data tell nothing.
    pub due: Option<String>,
    /// Whether the two agree.
    pub agrees: bool,
}

impl SourceOffsets {
    /// Nothing folded yet.
    pub fn new(connector: &str) -> Self {
        SourceOffsets { connector: connector.to_owned(), entries: BTreeMap::new(), records: 0, malformed: 0 }
    }

    /// The connector's name.
    pub fn connector(&self) -> &str {
        &self.connector
    }

    /// How many records of this connector were folded.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many records of the topic were not of the known form.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Takes the next record of the offsets topic, in the order of offsets within its partition.
    pub fn apply(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let Some((connector, partition)) = key.and_then(parse_key) else {
            self.malformed += 1;
            return;
        };
        if connector != self.connector {
            return;
        }
        let offset = match value.map(serde_json::from_slice::<Value>) {
            None => Value::Null,
            Some(Ok(offset @ (Value::Object(_) | Value::Null))) => offset,
            Some(_) => {
                self.malformed += 1;
                return;
            }
        };
        self.records += 1;
        let identity = Value::Object(partition.clone()).to_string();
        if self.entries.len() < PARTITIONS_MAX || self.entries.contains_key(&identity) {
            self.entries.insert(identity, Entry { partition, offset });
        } else {
            self.malformed += 1;
        }
    }

    /// Holds the folded offsets against how far the data got.
    pub fn check(&self, progress: &[Progress]) -> Vec<OffsetCheck> {
        let mut used = BTreeSet::new();
        let mut checks = Vec::new();
        for progress in progress {
            let entry = self.entry_of(progress);
            used.extend(entry.map(|(identity, _)| identity));
            checks.push(check_one(progress, entry));
        }
        let rest =
            self.entries.iter().filter(|(identity, _)| !used.contains(identity.as_str())).map(|(identity, entry)| {
                OffsetCheck {
                    partition: identity.clone(),
                    committed: Some(entry.offset.to_string()),
                    due: None,
                    // An offset of which the data know nothing is a contradiction only where the data were checked.
                    agrees: progress.is_empty() || entry.offset.is_null(),
                }
            });
        checks.extend(rest);
        checks
    }

    fn entry_of(&self, progress: &Progress) -> Option<(&str, &Entry)> {
        let entries = || self.entries.iter().map(|(identity, entry)| (identity.as_str(), entry));
        match progress {
            Progress::File { path, .. } => {
                let named = |entry: &Entry| same_file(entry.partition.get("filename").and_then(Value::as_str), path);
                let only = if self.entries.len() == 1 { entries().next() } else { None };
                entries().find(|(_, entry)| named(entry)).or(only)
            }
            Progress::Task { task, .. } => entries()
                .find(|(_, entry)| entry.partition.get("task").and_then(Value::as_u64) == Some(u64::from(*task))),
        }
    }
}

fn check_one(progress: &Progress, entry: Option<(&str, &Entry)>) -> OffsetCheck {
    let (field, due, absent_is_right) = match progress {
        Progress::File { position, .. } => ("position", *position, *position == 0),
        Progress::Task { last, .. } => ("n", *last, false),
    };
    let committed = entry.map(|(_, entry)| &entry.offset).filter(|offset| !offset.is_null());
    let partition = match (entry, progress) {
        (Some((identity, _)), _) => identity.to_owned(),
        (None, Progress::File { path, .. }) => serde_json::json!({ "filename": path }).to_string(),
        (None, Progress::Task { task, .. }) => serde_json::json!({ "task": task }).to_string(),
    };
    OffsetCheck {
        partition,
        committed: committed.map(Value::to_string),
        due: Some(serde_json::json!({ field: due }).to_string()),
        agrees: committed.map_or(absent_is_right, |offset| offset.get(field).and_then(Value::as_u64) == Some(due)),
    }
}

fn parse_key(key: &[u8]) -> Option<(String, Map<String, Value>)> {
    let (connector, partition) = serde_json::from_slice::<(String, Option<Map<String, Value>>)>(key).ok()?;
    Some((connector, partition?))
}

/// The connector may have been given the path in another spelling than the auditor.
fn same_file(filename: Option<&str>, path: &str) -> bool {
    let Some(filename) = filename else {
        return false;
    };
    filename == path
        || matches!((Path::new(filename).canonicalize(), Path::new(path).canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(records: &[(&str, Option<&str>)]) -> SourceOffsets {
        let mut offsets = SourceOffsets::new("local-file");
        for (key, value) in records {
            offsets.apply(Some(key.as_bytes()), value.map(str::as_bytes));
        }
        offsets
    }

    fn file(position: u64) -> [Progress; 1] {
        [Progress::File { path: "/no/such/in.txt".to_owned(), position }]
    }

    const KEY: &str = r#"["local-file",{"filename":"/no/such/in.txt"}]"#;

    #[test]
    fn last_offset_of_a_partition_wins() {
        let offsets = folded(&[(KEY, Some(r#"{"position":5}"#)), (KEY, Some(r#"{"position":9}"#))]);
        assert_eq!(offsets.records(), 2);
        let checks = offsets.check(&file(9));
        assert_eq!(checks.len(), 1);
        assert!(checks[0].agrees);
        assert!(!offsets.check(&file(5))[0].agrees);
    }

    #[test]
    fn no_offset_agrees_with_no_data_only() {
        assert!(folded(&[]).check(&file(0))[0].agrees);
        assert!(!folded(&[]).check(&file(1))[0].agrees);
        assert!(folded(&[(KEY, Some(r#"{"position":5}"#)), (KEY, None)]).check(&file(0))[0].agrees);
    }

    #[test]
    fn other_connectors_and_strange_records_change_nothing() {
        let offsets = folded(&[
            (KEY, Some(r#"{"position":5}"#)),
            (r#"["other",{"filename":"/no/such/in.txt"}]"#, Some(r#"{"position":7}"#)),
            (r#"["local-file",null]"#, Some("{}")),
            ("not json", Some("{}")),
            (KEY, Some("[1]")),
        ]);
        assert_eq!((offsets.records(), offsets.malformed()), (1, 3));
        assert!(offsets.check(&file(5)).iter().all(|check| check.agrees));
    }

    #[test]
    fn position_that_is_no_integer_does_not_agree() {
        assert!(!folded(&[(KEY, Some(r#"{"position":5.0}"#))]).check(&file(5))[0].agrees);
    }

    #[test]
    fn offset_of_a_task_that_wrote_nothing_does_not_agree() {
        let mut offsets = SourceOffsets::new("numbers");
        offsets.apply(Some(br#"["numbers",{"task":0}]"#), Some(br#"{"n":4}"#));
        offsets.apply(Some(br#"["numbers",{"task":1}]"#), Some(br#"{"n":2}"#));
        let checks = offsets.check(&[Progress::Task { task: 0, last: 4 }]);
        assert_eq!(checks.iter().map(|check| check.agrees).collect::<Vec<_>>(), [true, false]);
    }
}
