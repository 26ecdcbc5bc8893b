//! Reads a file line by line with the terminators that Kafka Connect's file source knows: `\n`, `\r\n`, and a lone `\r`.
//!
//! Written apart from the connector's own splitter on purpose: an auditor that shares its rules with the code under test would agree
//! with that code's mistakes. A line without a terminator is not a line yet, nor is one that ends in a `\r` at the end of the file (a `\n` may follow).

use std::io::{self, BufRead, Read};

/// The longest line that is read. A broker that takes a record of this size would have to be set up for it.
pub(crate) const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Lines of a byte stream, one at a time; holds no more than the stretch up to the next `\n`.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    input: R,
    stretch: Vec<u8>,
    start: usize,
    position: u64,
    lines: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(input: R) -> Self {
        LineReader { input, stretch: Vec::new(), start: 0, position: 0, lines: 0 }
    }

    /// The byte after the terminator of the last line given out.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// How many lines were given out.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// The next line without its terminator, or `None` when the input holds no further whole line.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        if self.start == self.stretch.len() {
            self.stretch.clear();
            self.start = 0;
        }
        if self.stretch.last() != Some(&b'\n') {
            self.read_stretch()?;
        }
        let Some((length, terminator)) = split(&self.stretch[self.start..]) else {
            return Ok(None);
        };
        let line = self.start..self.start + length;
        self.start += length + terminator;
        self.position += (length + terminator) as u64;
        self.lines += 1;
        Ok(Some(&self.stretch[line]))
    }

    fn read_stretch(&mut self) -> io::Result<()> {
        let room = LINE_BYTES_MAX.saturating_sub(self.stretch.len() as u64);
        self.input.by_ref().take(room).read_until(b'\n', &mut self.stretch)?;
        if self.stretch.len() as u64 >= LINE_BYTES_MAX {
            let told = format!("line {} is longer than {LINE_BYTES_MAX} bytes", self.lines + 1);
            return Err(io::Error::new(io::ErrorKind::InvalidData, told));
        }
        Ok(())
    }
}

/// Length of the first line and of its terminator.
fn split(stretch: &[u8]) -> Option<(usize, usize)> {
    let newline = stretch.last() == Some(&b'\n');
    let body = if newline { &stretch[..stretch.len() - 1] } else { stretch };
    match body.iter().position(|&byte| byte == b'\r') {
        Some(at) if at + 1 < body.len() => Some((at, 1)),
        Some(at) => newline.then_some((at, 2)),
        None => newline.then_some((body.len(), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> (Vec<Vec<u8>>, u64) {
        let mut reader = LineReader::new(input);
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            lines.push(line.to_vec());
        }
        assert_eq!(reader.lines(), lines.len() as u64);
        (lines, reader.position())
    }

    #[test]
    fn all_three_terminators_end_a_line() {
        let (lines, position) = lines(b"a\nb\r\nc\rd\n\n\re\n");
        assert_eq!(lines, [&b"a"[..], b"b", b"c", b"d", b"", b"", b"e"]);
        assert_eq!(position, 13);
    }

    #[test]
    fn a_tail_without_terminator_is_no_line() {
        assert_eq!(lines(b"a\nbc"), (vec![b"a".to_vec()], 2));
        assert_eq!(lines(b"a\nbc\r"), (vec![b"a".to_vec()], 2));
        assert_eq!(lines(b""), (vec![], 0));
    }

    #[test]
    fn two_carriage_returns_before_a_newline_are_two_lines() {
        let (lines, position) = lines(b"a\r\r\nb\n");
        assert_eq!(lines, [&b"a"[..], b"", b"b"]);
        assert_eq!(position, 6);
    }

    #[test]
    fn bytes_that_are_not_text_stay_as_they_are() {
        assert_eq!(lines(b"\xff\xfe\x00\n").0, [b"\xff\xfe\x00".to_vec()]);
    }
}
