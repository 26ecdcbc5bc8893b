//! Splits chunks of a file into lines. Pure: it is handed bytes and knows their position.
//!
//! A line ends with `\n`, `\r\n` or `\r`. A `\r` at the end of what is known waits for the next byte, which may belong to it; a line
//! without its end waits for more (both as in Java's FileStreamSource). Lines are slices of the chunk: nothing is copied but the
//! unfinished tail, once for each further chunk.

use bytes::Bytes;
use memchr::memchr2;

/// The lines of the chunk at hand.
///
/// ```text
/// file:  …|‑‑ given out ‑‑|‑‑ searched, no line end ‑‑|‑‑ not searched ‑‑|… not read
/// chunk:                  ^start                      ^searched          ^end of chunk
///                         = position                                     = read_position
/// ```
#[derive(Debug)]
pub(crate) struct Lines {
    chunk: Bytes,
    start: usize,
    searched: usize,
    position: u64,
}

/// One line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: Bytes,
    /// Where the next line starts.
    pub(crate) position_after: u64,
}

impl Lines {
    /// Starts at a position of the file.
    pub(crate) fn new(position: u64) -> Self {
        Self { chunk: Bytes::new(), start: 0, searched: 0, position }
    }

    /// Where the next line starts.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Where to go on reading.
    #[cfg(test)]
    pub(crate) fn read_position(&self) -> u64 {
        self.position + self.tail().len() as u64
    }

    /// What is known of the next line or lines.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.chunk[self.start..]
    }

    /// Takes a chunk that begins with the [`Lines::tail`], to which something was appended.
    pub(crate) fn replace(&mut self, chunk: Bytes) {
        debug_assert!(chunk.starts_with(self.tail()), "the tail is the start of the next chunk");
        self.searched -= self.start;
        self.start = 0;
        self.chunk = chunk;
    }

    /// The next complete line.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        let Some(found) = memchr2(b'\n', b'\r', &self.chunk[self.searched..]) else {
            self.searched = self.chunk.len();
            return None;
        };
        let end = self.searched + found;
        let next = match (self.chunk[end], self.chunk.get(end + 1)) {
            (b'\n', _) => end + 1,
            (_, Some(b'\n')) => end + 2,
            (_, Some(_)) => end + 1,
            (_, None) => {
                self.searched = end;
                return None;
            }
        };
        let text = self.chunk.slice(self.start..end);
        self.position += (next - self.start) as u64;
        self.start = next;
        self.searched = next;
        Some(Line { text, position_after: self.position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the text in pieces of this size and collects the lines.
    fn split(text: &[u8], piece: usize) -> (Vec<(Vec<u8>, u64)>, Vec<u8>) {
        let mut lines = Lines::new(100);
        let mut found = Vec::new();
        for piece in text.chunks(piece) {
            let chunk = [lines.tail(), piece].concat();
            lines.replace(chunk.into());
            while let Some(line) = lines.next_line() {
                found.push((line.text.to_vec(), line.position_after));
            }
        }
        assert_eq!(lines.read_position(), 100 + text.len() as u64);
        (found, lines.tail().to_vec())
    }

    fn owned(lines: &[(&[u8], u64)]) -> Vec<(Vec<u8>, u64)> {
        lines.iter().map(|(text, position)| (text.to_vec(), 100 + position)).collect()
    }

    #[test]
    fn the_three_line_ends_give_the_same_lines_however_the_file_is_cut() {
        let text = b"a\nbb\r\n\rc\r\r\n\n\xff\xfe\r\ntail";
        let expected = owned(&[(b"a", 2), (b"bb", 6), (b"", 7), (b"c", 9), (b"", 11), (b"", 12), (b"\xff\xfe", 16)]);
        for piece in 1..=text.len() {
            assert_eq!(split(text, piece), (expected.clone(), b"tail".to_vec()), "pieces of {piece}");
        }
    }

    #[test]
    fn a_carriage_return_at_the_end_waits_for_what_may_belong_to_it() {
        assert_eq!(split(b"a\r", 10), (vec![], b"a\r".to_vec()));
        assert_eq!(split(b"a\r\n", 2), (owned(&[(b"a", 3)]), b"".to_vec()));
        assert_eq!(split(b"a\rb", 2), (owned(&[(b"a", 2)]), b"b".to_vec()));
    }

    #[test]
    fn an_unfinished_line_waits() {
        assert_eq!(split(b"abc", 1), (vec![], b"abc".to_vec()));
        assert_eq!(split(b"", 1), (vec![], b"".to_vec()));
    }

    #[test]
    fn lines_are_slices_of_the_chunk() {
        let chunk = Bytes::from_static(b"one\ntwo\n");
        let mut lines = Lines::new(0);
        lines.replace(chunk.clone());
        let one = lines.next_line().unwrap();
        assert_eq!(one.text.as_ptr(), chunk.as_ptr());
    }
}
