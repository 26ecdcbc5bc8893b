//! What a content checker found: four kinds of fault, each counted, with the first one told in full.
//!
//! A topic that was damaged once is often damaged a million times, so only the first of each kind keeps its details: memory does not grow
//! with the damage, and the first place is where a person starts to look.

use std::fmt;

/// Where a record stands in the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The partition's number.
    pub partition: i32,
    /// The record's offset in that partition.
    pub offset: i64,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "partition {}, offset {}", self.partition, self.offset)
    }
}

/// One kind of fault: how often it was seen, and the first one in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many records, lines or numbers are concerned.
    pub count: u64,
    /// The first one, with its line or number and its place in the topic.
    pub first: Option<String>,
}

impl Tally {
    /// Counts one fault; `describe` runs for the first one only.
    pub(crate) fn add(&mut self, describe: impl FnOnce() -> String) {
        self.add_many(1, describe);
    }

    /// Counts `count` faults that have one description.
    pub(crate) fn add_many(&mut self, count: u64, describe: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        self.count += count;
        if self.first.is_none() {
            self.first = Some(describe());
        }
    }
}

/// How far the source must have got, judged from the visible records alone. The offsets topic has to say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A file: the byte at which the first line stands that is not visible.
    File {
        /// The file's path as it was given to the auditor.
        path: String,
        /// Bytes from the file's start, terminators included.
        position: u64,
    },
    /// One task of the sequence connector: the last number that is visible.
    Task {
        /// The task's number within its connector.
        task: u32,
        /// The last number.
        last: u64,
    },
}

/// What a checker has to say about the visible records of one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// What the records were held against, in words: a file, the sequence pattern, or nothing.
    pub against: String,
    /// How many records there ought to be, where the checker can know.
    pub expected: Option<u64>,
    /// Lines or numbers that ought to be visible and are not.
    pub gaps: Tally,
    /// Records beyond the number of times that their line or number ought to appear.
    pub duplicates: Tally,
    /// Records that stand after a later one of the same partition.
    pub misordered: Tally,
    /// Records that belong to no line and to no sequence: torn, or written by someone else.
    pub foreign: Tally,
    /// How far the source got, to be compared with the offsets topic.
    pub progress: Vec<Progress>,
    /// What may be behind the faults, and what to change; no part of the verdict.
    pub hint: Option<String>,
}

impl Content {
    /// Each kind of fault with its name, in the order in which reports show them.
    pub fn faults(&self) -> [(&'static str, &Tally); 4] {
        [
            ("gaps", &self.gaps),
            ("duplicates", &self.duplicates),
            ("out of order", &self.misordered),
            ("foreign", &self.foreign),
        ]
    }

    /// Whether no fault was found.
    pub fn is_content(&self) -> bool {
        self.faults().iter().all(|(_, tally)| tally.count == 0)
    }
}

/// How many bytes of a value a finding shows.
const PREVIEW_BYTES_MAX: usize = 48;

/// The start of a value, made safe to print on one line of a terminal.
pub(crate) fn preview(value: Option<&[u8]>) -> String {
    let Some(value) = value else {
        return "null".to_owned();
    };
    let shown = &value[..value.len().min(PREVIEW_BYTES_MAX)];
    let more = if shown.len() < value.len() { format!("… ({} bytes)", value.len()) } else { String::new() };
    format!("\"{}\"{more}", shown.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_fault_is_described() {
        let mut tally = Tally::default();
        tally.add(|| "first".to_owned());
        tally.add_many(4, || unreachable!("the first description stays"));
        assert_eq!(tally, Tally { count: 5, first: Some("first".to_owned()) });
    }

    #[test]
    fn preview_is_one_line_and_short() {
        assert_eq!(preview(None), "null");
        assert_eq!(preview(Some(b"a\nb\xff")), "\"a\\nb\\xff\"");
        assert!(preview(Some(&[b'x'; 4000])).ends_with("… (4000 bytes)"));
    }
}
