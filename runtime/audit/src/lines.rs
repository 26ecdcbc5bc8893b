//! Holds the visible records against a file: every line once and in order.
//!
//! One partition is read alongside the file, with nothing in memory but the line that comes next; that is the whole check as long as the
//! topic is right. At the first difference, or when the topic has several partitions, the file is indexed by hash (20 bytes a line) and
//! the records are counted against it, which tells gaps, duplicates and misorder apart.
//!
//! Exact are: "content" over one partition, every count for files whose lines differ, and the order within each partition.
//! Where a file repeats a line, the faults found are real but which of the equal lines is named may be another one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::finding::{Content, Place, Progress, preview};
use crate::line_index::{INDEXED_LINES_MAX, LineIndex};
use crate::line_reader::LineReader;
use crate::wrapped;

/// Jumps over lines that are remembered to tell where a gap shows in the topic.
const JUMPS_MAX: usize = 64;

const FILE_BUFFER_BYTES: usize = 256 * 1024;

/// The checker for topics that were filled from a file, line by line.
#[derive(Debug)]
pub struct LinesChecker {
    path: PathBuf,
    mode: Mode,
    content: Content,
    /// Foreign values that are a line in JSON.
    wrapped: u64,
}

#[derive(Debug)]
enum Mode {
    Alongside(LineReader<BufReader<File>>),
    Indexed(Box<Indexed>),
    /// A difference was found, and the file has too many lines to look further.
    GaveUp {
        lines_before: u64,
    },
}

#[derive(Debug)]
struct Indexed {
    index: LineIndex,
    next_line: BTreeMap<i32, u64>,
    jumps: Vec<Jump>,
}

/// A record that skipped the lines `from..to`.
#[derive(Debug)]
struct Jump {
    from: u64,
    to: u64,
    place: Place,
}

impl LinesChecker {
    /// Opens the file. `partitions` is the topic's partition count.
    ///
    /// # Errors
    /// The file cannot be read, or it has more lines than can be indexed and the topic has several partitions.
    pub fn open(path: &Path, partitions: i32) -> io::Result<Self> {
        let content = Content { against: format!("the lines of {}", path.display()), ..Content::default() };
        let mode = if partitions == 1 { Mode::Alongside(LineReader::new(open(path)?)) } else { index(path, 0)? };
        if let Mode::GaveUp { .. } = mode {
            let told =
                format!("more than {INDEXED_LINES_MAX} lines can be held against a topic with one partition only");
            return Err(io::Error::new(io::ErrorKind::InvalidData, told));
        }
        Ok(LinesChecker { path: path.to_owned(), mode, content, wrapped: 0 })
    }

    /// Takes the next visible record; those of one partition come in the order of their offsets.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn observe(&mut self, place: Place, value: Option<&[u8]>) -> io::Result<()> {
        match &mut self.mode {
            Mode::Alongside(reader) => {
                let lines_before = reader.lines();
                if let Some(value) = value
                    && reader.next_line()? == Some(value)
                {
                    return Ok(());
                }
                self.mode = index(&self.path, lines_before)?;
                self.observe_indexed(place, value, lines_before);
            }
            Mode::Indexed(indexed) => {
                let lines_before = indexed.next_line.get(&place.partition).copied().unwrap_or(0);
                self.observe_indexed(place, value, lines_before);
            }
            Mode::GaveUp { .. } => {}
        }
        Ok(())
    }

    fn observe_indexed(&mut self, place: Place, value: Option<&[u8]>, expected: u64) {
        let content = &mut self.content;
        let Mode::Indexed(indexed) = &mut self.mode else {
            content
                .foreign
                .add(|| format!("at {place}: {} is not line {}; no more was checked", preview(value), expected + 1));
            return;
        };
        indexed.next_line.entry(place.partition).or_insert(expected);
        let Some(class) = value.and_then(|value| indexed.index.class(value)) else {
            let in_json = value.and_then(wrapped::text);
            self.wrapped += u64::from(in_json.is_some_and(|text| indexed.index.class(text.as_bytes()).is_some()));
            content.foreign.add(|| {
                format!("at {place}: {} is no line of the file; line {} was next", preview(value), expected + 1)
            });
            return;
        };
        let first = indexed.index.first_from(class, 0).unwrap_or(0);
        let Some(line) = indexed.index.first_from(class, expected) else {
            if indexed.index.count(class) {
                content.misordered.add(|| format!("at {place}: line {} stands after line {expected}", first + 1));
            } else {
                content.duplicates.add(|| format!("at {place}: line {} again, after line {expected}", first + 1));
            }
            return;
        };
        if !indexed.index.count(class) {
            content.duplicates.add(|| format!("at {place}: line {} once more than the file has it", line + 1));
        }
        if line > expected && indexed.jumps.len() < JUMPS_MAX {
            indexed.jumps.push(Jump { from: expected, to: line, place });
        }
        indexed.next_line.insert(place.partition, line + 1);
    }

    /// Looks for lines that no record carried, and gives the result.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn finish(mut self) -> io::Result<Content> {
        let (expected, lines_visible) = match &mut self.mode {
            Mode::Alongside(reader) => {
                let visible = reader.lines();
                let position = reader.position();
                while reader.next_line()?.is_some() {}
                let total = reader.lines();
                self.content.gaps.add_many(total - visible, || ends_early(visible, total));
                self.content.progress.push(Progress::File { path: self.path.display().to_string(), position });
                (Some(total), None)
            }
            Mode::Indexed(indexed) => {
                let (missing, first) = indexed.index.missing();
                let total = indexed.index.line_count();
                let first = first.unwrap_or(total);
                self.content.gaps.add_many(missing, || indexed.describe_gap(first));
                (Some(total), Some(indexed.next_line.values().copied().max().unwrap_or(0)))
            }
            Mode::GaveUp { lines_before } => (None, Some(*lines_before)),
        };
        self.content.expected = expected;
        self.content.hint = wrapped::hint(self.wrapped);
        if let Some(lines) = lines_visible {
            let progress =
                Progress::File { path: self.path.display().to_string(), position: end_of_line(&self.path, lines)? };
            self.content.progress.push(progress);
        }
        Ok(self.content)
    }
}

impl Indexed {
    fn describe_gap(&self, line: u64) -> String {
        let total = self.index.line_count();
        let reached = self.next_line.values().copied().max().unwrap_or(0);
        if line >= reached {
            return ends_early(line, total);
        }
        let jump = self.jumps.iter().find(|jump| (jump.from..jump.to).contains(&line));
        match jump {
            // With several partitions every record jumps over the lines of the others: that tells nothing.
            Some(jump) if self.next_line.len() == 1 => {
                format!(
                    "line {} is missing: at {} line {} follows line {}",
                    line + 1,
                    jump.place,
                    jump.to + 1,
                    jump.from
                )
            }
            _ => format!("line {} is missing", line + 1),
        }
    }
}

fn ends_early(visible: u64, total: u64) -> String {
    format!("line {} is missing: the topic ends after line {visible} of {total}", visible + 1)
}

fn open(path: &Path) -> io::Result<BufReader<File>> {
    Ok(BufReader::with_capacity(FILE_BUFFER_BYTES, File::open(path)?))
}

fn index(path: &Path, lines_before: u64) -> io::Result<Mode> {
    Ok(match LineIndex::build(open(path)?, INDEXED_LINES_MAX)? {
        Some(mut index) => {
            index.count_all_below(lines_before);
            Mode::Indexed(Box::new(Indexed { index, next_line: BTreeMap::new(), jumps: Vec::new() }))
        }
        None => Mode::GaveUp { lines_before },
    })
}

/// The byte at which line `lines` (counted from 0) starts.
fn end_of_line(path: &Path, lines: u64) -> io::Result<u64> {
    let mut reader = LineReader::new(open(path)?);
    while reader.lines() < lines && reader.next_line()?.is_some() {}
    Ok(reader.position())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn check(file: &str, partitions: &[&[&str]]) -> Content {
        let mut source = tempfile::NamedTempFile::new().unwrap();
        source.write_all(file.as_bytes()).unwrap();
        let mut checker = LinesChecker::open(source.path(), partitions.len() as i32).unwrap();
        for (partition, values) in partitions.iter().enumerate() {
            for (offset, value) in values.iter().enumerate() {
                let place = Place { partition: partition as i32, offset: offset as i64 };
                checker.observe(place, Some(value.as_bytes())).unwrap();
            }
        }
        checker.finish().unwrap()
    }

    fn counts(content: &Content) -> [u64; 4] {
        content.faults().map(|(_, tally)| tally.count)
    }

    fn position(content: &Content) -> u64 {
        match &content.progress[..] {
            [Progress::File { position, .. }] => *position,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_line_once_and_in_order_is_content() {
        let content = check("a\nb\r\nc\n", &[&["a", "b", "c"]]);
        assert!(content.is_content());
        assert_eq!((content.expected, position(&content)), (Some(3), 7));
    }

    #[test]
    fn empty_file_and_empty_topic_are_content() {
        let content = check("", &[&[]]);
        assert!(content.is_content());
        assert_eq!(position(&content), 0);
    }

    #[test]
    fn gap_is_told_with_line_and_offset() {
        let content = check("a\nb\nc\nd\ne\n", &[&["a", "d", "e"]]);
        assert_eq!(counts(&content), [2, 0, 0, 0]);
        assert_eq!(
            content.gaps.first.as_deref(),
            Some("line 2 is missing: at partition 0, offset 1 line 4 follows line 1")
        );
        assert_eq!(position(&content), 10);
    }

    #[test]
    fn topic_that_ends_early_is_a_gap() {
        let content = check("a\nb\nc\n", &[&["a"]]);
        assert_eq!(counts(&content), [2, 0, 0, 0]);
        assert_eq!(content.gaps.first.as_deref(), Some("line 2 is missing: the topic ends after line 1 of 3"));
        assert_eq!(position(&content), 2);
    }

    #[test]
    fn batch_written_twice_is_so_many_duplicates_and_nothing_else() {
        let content = check("a\nb\nc\nd\n", &[&["a", "b", "c", "b", "c", "d"]]);
        assert_eq!(counts(&content), [0, 2, 0, 0]);
        assert_eq!(content.duplicates.first.as_deref(), Some("at partition 0, offset 3: line 2 again, after line 3"));
        assert_eq!(position(&content), 8);
    }

    #[test]
    fn swapped_lines_are_out_of_order_and_no_gap() {
        let content = check("a\nb\nc\nd\n", &[&["a", "c", "b", "d"]]);
        assert_eq!(counts(&content), [0, 0, 1, 0]);
        assert_eq!(content.misordered.first.as_deref(), Some("at partition 0, offset 2: line 2 stands after line 3"));
    }

    #[test]
    fn torn_line_is_foreign_and_its_line_is_missing() {
        let content = check("first\nsecond\nthird\n", &[&["first", "sec", "ond", "third"]]);
        assert_eq!(counts(&content), [1, 0, 0, 2]);
        assert_eq!(
            content.foreign.first.as_deref(),
            Some("at partition 0, offset 1: \"sec\" is no line of the file; line 2 was next")
        );
    }

    #[test]
    fn record_beyond_the_end_of_the_file_is_a_duplicate() {
        let content = check("a\n", &[&["a", "a"]]);
        assert_eq!(counts(&content), [0, 1, 0, 0]);
    }

    #[test]
    fn lines_in_json_are_foreign_and_their_converter_is_named() {
        let envelope = r#"{"schema":{"type":"string","optional":false},"payload":"c"}"#;
        let content = check("a\n\"b\"\nc\n", &[&["\"a\"", "\"b\"", envelope, "\"x\""]]);
        assert_eq!(counts(&content), [2, 0, 0, 3]);
        let hint = content.hint.unwrap();
        assert!(hint.starts_with("2 of the foreign values") && hint.contains("StringConverter"), "{hint}");
        assert_eq!(check("a\n", &[&["b"]]).hint, None);
    }

    #[test]
    fn null_value_is_foreign() {
        let mut source = tempfile::NamedTempFile::new().unwrap();
        source.write_all(b"a\n").unwrap();
        let mut checker = LinesChecker::open(source.path(), 1).unwrap();
        checker.observe(Place { partition: 0, offset: 0 }, None).unwrap();
        checker.observe(Place { partition: 0, offset: 1 }, Some(b"a")).unwrap();
        assert_eq!(counts(&checker.finish().unwrap()), [0, 0, 0, 1]);
    }

    #[test]
    fn lines_spread_over_partitions_keep_their_order_in_each() {
        let file = "x\na\nx\nb\n";
        assert!(check(file, &[&["x"], &["x", "a"]]).gaps.count == 1);
        assert_eq!(counts(&check(file, &[&["a", "b"], &["x", "x"]])), [0, 0, 0, 0]);
        assert_eq!(counts(&check(file, &[&["x"], &["x", "a", "b"]])), [0, 0, 0, 0]);
        assert_eq!(counts(&check(file, &[&["b", "a"], &["x", "x"]])), [0, 0, 1, 0]);
    }

    #[test]
    fn equal_lines_are_counted_not_confused() {
        assert!(check("x\nx\nx\n", &[&["x", "x", "x"]]).is_content());
        assert_eq!(counts(&check("x\nx\nx\n", &[&["x", "x"]])), [1, 0, 0, 0]);
        assert_eq!(counts(&check("x\nx\nx\n", &[&["x", "x", "x", "x"]])), [0, 1, 0, 0]);
    }
}
