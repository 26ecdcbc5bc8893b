//! The auditor's result: what the topic holds, what is wrong with it, and whether the offsets topic agrees; as a table and as JSON.
//!
//! Only visible records (read_committed) and committed offsets decide whether the auditor is content. Aborted records and open transactions are
//! told but are no fault: a killed worker leaves one behind, and its successor or the broker's time limit ends it.

use std::fmt;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, ContentArrangement, Table};
use serde_json::{Value, json};

use crate::finding::Content;
use crate::offsets::OffsetCheck;

/// A transaction that holds back the readers of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The partition.
    pub partition: i32,
    /// The last stable offset: readers at read_committed see nothing from here on.
    pub last_stable_offset: i64,
    /// The high watermark: what readers at read_uncommitted see ends here.
    pub high_watermark: i64,
    /// The producers with an open transaction here; empty when the broker did not tell.
    pub producers: Vec<OpenProducer>,
}

/// A producer that has a transaction open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenProducer {
    /// Its producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i32,
    /// The first offset of its open transaction.
    pub first_offset: i64,
}

/// How many records of each kind the topic holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// What a reader at read_committed gets.
    pub visible: u64,
    /// What a reader at read_uncommitted gets: visible, aborted and undecided records.
    pub in_log: u64,
    /// Records below the last stable offset that are not visible.
    pub aborted: u64,
    /// Records at and above the last stable offset: their transaction, or an earlier one, is open.
    pub undecided: u64,
    /// Offsets without a data record: control markers, and what compaction or retention took away.
    pub without_record: u64,
}

/// The offsets topic, held against the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetsReport {
    /// The offsets topic.
    pub topic: String,
    /// The connector's name.
    pub connector: String,
    /// Visible records of this connector in the offsets topic.
    pub records: u64,
    /// Records of the offsets topic that are not of Kafka Connect's form.
    pub malformed: u64,
    /// One comparison for each source partition.
    pub checks: Vec<OffsetCheck>,
}

/// What the auditor found in one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The topic.
    pub topic: String,
    /// Its number of partitions.
    pub partitions: i32,
    /// How many records there are.
    pub records: RecordCounts,
    /// Gaps, duplicates, order.
    pub content: Content,
    /// Transactions that are open.
    pub open: Vec<OpenTransaction>,
    /// The offsets topic, if one was named.
    pub offsets: Option<OffsetsReport>,
}

impl Report {
    /// Whether every line or number is visible once and in order, and the offsets topic says the same.
    pub fn is_content(&self) -> bool {
        self.content.is_content() && self.offsets.iter().flat_map(|offsets| &offsets.checks).all(|check| check.agrees)
    }

    /// The report for programs. Member names are stable; `content` is [`Report::is_content`].
    pub fn to_json(&self) -> Value {
        let faults = self
            .content
            .faults()
            .map(|(name, tally)| (name.replace(' ', "_"), json!({ "count": tally.count, "first": tally.first })));
        json!({
            "content": self.is_content(),
            "topic": self.topic,
            "partitions": self.partitions,
            "records": {
                "visible": self.records.visible,
                "in_log": self.records.in_log,
                "aborted": self.records.aborted,
                "undecided": self.records.undecided,
                "without_record": self.records.without_record,
            },
            "against": self.content.against,
            "expected": self.content.expected,
            "faults": faults.into_iter().collect::<serde_json::Map<_, _>>(),
            "hint": self.content.hint,
            "open_transactions": self.open.iter().map(open_to_json).collect::<Vec<_>>(),
            "offsets": self.offsets.as_ref().map(offsets_to_json),
        })
    }
}

fn open_to_json(open: &OpenTransaction) -> Value {
    let producers = open.producers.iter().map(|producer| {
        json!({ "producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch, "first_offset": producer.first_offset })
    });
    json!({
        "partition": open.partition,
        "last_stable_offset": open.last_stable_offset,
        "high_watermark": open.high_watermark,
        "producers": producers.collect::<Vec<_>>(),
    })
}

fn offsets_to_json(offsets: &OffsetsReport) -> Value {
    let checks = offsets.checks.iter().map(|check| {
        json!({ "partition": check.partition, "committed": check.committed, "due": check.due, "agrees": check.agrees })
    });
    json!({
        "topic": offsets.topic,
        "connector": offsets.connector,
        "records": offsets.records,
        "malformed": offsets.malformed,
        "checks": checks.collect::<Vec<_>>(),
    })
}

/// A table of at most three columns: what, how many, and remarks.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
        let counts = &self.records;
        table.add_row(row("topic", &self.topic, format!("{} partition(s)", self.partitions)));
        table.add_row(row("visible records", counts.visible, "read_committed".to_owned()));
        table.add_row(row("records in the log", counts.in_log, "read_uncommitted".to_owned()));
        table.add_row(row("aborted records", counts.aborted, String::new()));
        if counts.undecided > 0 {
            table.add_row(row(
                "undecided records",
                counts.undecided,
                "their transaction, or an earlier one, is open".to_owned(),
            ));
        }
        table.add_row(row("offsets without record", counts.without_record, "markers, or compacted away".to_owned()));
        let expected = self.content.expected.map_or_else(|| "?".to_owned(), |expected| expected.to_string());
        table.add_row(row("expected records", expected, format!("by {}", self.content.against)));
        for (name, tally) in self.content.faults() {
            table.add_row(row(name, tally.count, tally.first.clone().unwrap_or_default()));
        }
        for open in &self.open {
            table.add_row(row("open transaction", format!("partition {}", open.partition), describe_open(open)));
        }
        if let Some(offsets) = &self.offsets {
            add_offsets(&mut table, offsets);
        }
        table.add_row(row("verdict", if self.is_content() { "content" } else { "NOT content" }, String::new()));
        write!(formatter, "{table}")?;
        // Below the table: it is a sentence, and would make every row as wide.
        self.content.hint.iter().try_for_each(|hint| write!(formatter, "\n{hint}"))
    }
}

fn row(name: &str, figure: impl fmt::Display, remark: String) -> [Cell; 3] {
    [Cell::new(name), Cell::new(figure), Cell::new(remark)]
}

fn describe_open(open: &OpenTransaction) -> String {
    let mut told = format!("offsets {} to {} wait", open.last_stable_offset, open.high_watermark);
    for producer in &open.producers {
        told += &format!(
            "; producer id {} epoch {} since offset {}",
            producer.producer_id, producer.producer_epoch, producer.first_offset
        );
    }
    told
}

/// The most source partitions that the table shows; the JSON form has them all.
const OFFSET_ROWS_MAX: usize = 50;

fn add_offsets(table: &mut Table, offsets: &OffsetsReport) {
    table.add_row(row("offset records", offsets.records, format!("{} for {}", offsets.topic, offsets.connector)));
    if offsets.malformed > 0 {
        table.add_row(row("malformed offsets", offsets.malformed, "not of Kafka Connect's form".to_owned()));
    }
    let (wrong, right): (Vec<_>, Vec<_>) = offsets.checks.iter().partition(|check| !check.agrees);
    for check in wrong.into_iter().chain(right).take(OFFSET_ROWS_MAX) {
        let committed = check.committed.as_deref().unwrap_or("none");
        let remark = match (&check.due, check.agrees) {
            (Some(_), true) => format!("agrees with the data: {}", check.partition),
            (Some(due), false) => format!("the data say {due}: {}", check.partition),
            (None, true) => format!("not compared: {}", check.partition),
            (None, false) => format!("no visible record belongs to it: {}", check.partition),
        };
        table.add_row(row("source offset", committed, remark));
    }
    let hidden = offsets.checks.len().saturating_sub(OFFSET_ROWS_MAX);
    if hidden > 0 {
        table.add_row(row("source offset", "…", format!("{hidden} more in the JSON form")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Tally;

    fn report() -> Report {
        Report {
            topic: "lines".to_owned(),
            partitions: 1,
            records: RecordCounts { visible: 3, in_log: 5, aborted: 1, undecided: 1, without_record: 2 },
            content: Content { against: "the lines of in.txt".to_owned(), expected: Some(3), ..Content::default() },
            open: vec![OpenTransaction {
                partition: 0,
                last_stable_offset: 6,
                high_watermark: 7,
                producers: vec![OpenProducer { producer_id: 9, producer_epoch: 2, first_offset: 6 }],
            }],
            offsets: Some(OffsetsReport {
                topic: "offsets".to_owned(),
                connector: "c".to_owned(),
                records: 2,
                malformed: 0,
                checks: vec![OffsetCheck {
                    partition: r#"{"filename":"in.txt"}"#.to_owned(),
                    committed: Some(r#"{"position":6}"#.to_owned()),
                    due: Some(r#"{"position":6}"#.to_owned()),
                    agrees: true,
                }],
            }),
        }
    }

    #[test]
    fn open_transactions_are_told_but_are_no_fault() {
        let report = report();
        assert!(report.is_content());
        let table = report.to_string();
        assert!(table.contains("producer id 9 epoch 2 since offset 6"), "{table}");
        assert_eq!(report.to_json()["open_transactions"][0]["producers"][0]["producer_id"], 9);
    }

    #[test]
    fn one_fault_or_one_offset_that_disagrees_spoils_it() {
        let mut damaged = report();
        damaged.content.gaps = Tally { count: 1, first: Some("line 2 is missing".to_owned()) };
        assert!(!damaged.is_content());
        assert_eq!(damaged.to_json()["faults"]["gaps"]["first"], "line 2 is missing");
        assert!(damaged.to_string().contains("NOT content"));
        let mut behind = report();
        behind.offsets.as_mut().unwrap().checks[0].agrees = false;
        assert!(!behind.is_content());
        assert_eq!(behind.to_json()["content"], false);
    }
}
