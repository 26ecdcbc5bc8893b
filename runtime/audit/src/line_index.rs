//! Every line of a file by hash: 20 bytes a line, built only when a topic cannot be read alongside the file.
//!
//! Equal lines form one class: which of them a record is cannot be told, so a class is counted as a whole. Two different lines with one
//! 64-bit hash would be taken for equal ones; with 16 million lines the odds of any such pair are below 1 in 100,000.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead};

use crate::line_reader::LineReader;

/// The most lines that are indexed (320 MB).
pub(crate) const INDEXED_LINES_MAX: usize = 16_000_000;

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(line);
    hasher.finish()
}

/// All lines with one content: a range of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    start: usize,
    end: usize,
}

/// The lines of a file, sorted by hash, with the number of times each content was seen in the topic.
#[derive(Debug)]
pub(crate) struct LineIndex {
    lines: Vec<(u64, u32)>,
    seen: Vec<u32>,
}

impl LineIndex {
    /// Indexes every whole line of `input`; `None` when there are more than `lines_max`.
    pub(crate) fn build(input: impl BufRead, lines_max: usize) -> io::Result<Option<Self>> {
        let mut reader = LineReader::new(input);
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line()? {
            if lines.len() == lines_max.min(u32::MAX as usize) {
                return Ok(None);
            }
            lines.push((hash(line), lines.len() as u32));
        }
        lines.sort_unstable();
        let seen = vec![0; lines.len()];
        Ok(Some(LineIndex { lines, seen }))
    }

    pub(crate) fn line_count(&self) -> u64 {
        self.lines.len() as u64
    }

    /// The class of lines that read as `value`.
    pub(crate) fn class(&self, value: &[u8]) -> Option<Class> {
        let wanted = hash(value);
        let start = self.lines.partition_point(|&(hash, _)| hash < wanted);
        let end = self.class_end(start);
        (self.lines.get(start)?.0 == wanted).then_some(Class { start, end })
    }

    fn class_end(&self, start: usize) -> usize {
        let Some(&(wanted, _)) = self.lines.get(start) else {
            return start;
        };
        // Classes are nearly always single lines, so stepping beats a search.
        start + self.lines[start..].iter().take_while(|&&(hash, _)| hash == wanted).count()
    }

    /// The first line of the class whose number is at least `at_least` (numbers count from 0).
    pub(crate) fn first_from(&self, class: Class, at_least: u64) -> Option<u64> {
        let lines = &self.lines[class.start..class.end];
        let at = lines.partition_point(|&(_, line)| u64::from(line) < at_least);
        lines.get(at).map(|&(_, line)| u64::from(line))
    }

    /// Counts one more record of this content; `true` if there is a line for it, `false` if it is one too many.
    pub(crate) fn count(&mut self, class: Class) -> bool {
        let seen = &mut self.seen[class.start];
        *seen = seen.saturating_add(1);
        *seen as usize <= class.end - class.start
    }

    /// Marks every line below `below` as seen once.
    pub(crate) fn count_all_below(&mut self, below: u64) {
        let mut start = 0;
        while start < self.lines.len() {
            let end = self.class_end(start);
            let count = self.lines[start..end].partition_point(|&(_, line)| u64::from(line) < below);
            self.seen[start] = self.seen[start].saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
            start = end;
        }
    }

    /// How many lines were not seen, and the first of them. Of equal lines the last ones are taken for the missing ones.
    pub(crate) fn missing(&self) -> (u64, Option<u64>) {
        let (mut count, mut first) = (0, None::<u64>);
        let mut start = 0;
        while start < self.lines.len() {
            let end = self.class_end(start);
            let seen = (self.seen[start] as usize).min(end - start);
            if let Some(&(_, line)) = self.lines[start + seen..end].first() {
                count += (end - start - seen) as u64;
                first = Some(first.map_or(u64::from(line), |other| other.min(u64::from(line))));
            }
            start = end;
        }
        (count, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &[u8]) -> LineIndex {
        LineIndex::build(text, INDEXED_LINES_MAX).unwrap().unwrap()
    }

    #[test]
    fn equal_lines_are_one_class_with_as_many_places() {
        let mut index = index(b"x\na\nx\n");
        let class = index.class(b"x").unwrap();
        assert_eq!(index.first_from(class, 0), Some(0));
        assert_eq!(index.first_from(class, 1), Some(2));
        assert_eq!(index.first_from(class, 3), None);
        assert!(index.count(class) && index.count(class) && !index.count(class));
        assert_eq!(index.missing(), (1, Some(1)));
        assert_eq!(index.class(b"y"), None);
    }

    #[test]
    fn lines_read_before_the_index_was_built_count_as_seen() {
        let mut index = index(b"x\na\nx\nb\n");
        index.count_all_below(2);
        assert_eq!(index.missing(), (2, Some(2)));
    }

    #[test]
    fn too_many_lines_are_not_indexed() {
        assert!(LineIndex::build(&b"a\nb\nc\n"[..], 2).unwrap().is_none());
    }
}
