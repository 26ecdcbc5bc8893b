//! What a record holds, and the check of it. Pure.
//!
//! ```text
//! {"task":3,"n":17,"pad":"hijklm…"}
//! ```
//!
//! The padding follows from the numbers: its bytes run through an alphabet from a place that `task` and `n` give. So a record that was cut,
//! mixed with another or changed does not pass, and no check sum is needed.

use std::fmt;
use std::io::Write;

const ALPHABET: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LETTERS: usize = ALPHABET.len();
const TASK: &[u8] = b"{\"task\":";
const N: &[u8] = b",\"n\":";
const PAD: &[u8] = b",\"pad\":\"";
const END: &[u8] = b"\"}";

/// How often the alphabet stands in [`RUN`].
const REPEATS: usize = 33;

/// The alphabet again and again, to copy from.
static RUN: [u8; LETTERS * REPEATS] = {
    let mut run = [0; LETTERS * REPEATS];
    let mut place = 0;
    while place < run.len() {
        run[place] = ALPHABET[place % LETTERS];
        place += 1;
    }
    run
};

/// Which record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    /// The task that wrote it.
    pub task: u32,
    /// Its number, from 0.
    pub n: u64,
}

impl Item {
    /// Where in the alphabet the padding starts; neighbours in either number differ.
    fn first_letter(self) -> usize {
        let letters = LETTERS as u64;
        // Below 62, so it fits.
        ((self.n % letters + u64::from(self.task) % letters * 7) % letters) as usize
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} n {}", self.task, self.n)
    }
}

/// Why bytes are no record of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// Not of the form at all.
    Form {
        /// The first byte that is wrong.
        place: usize,
    },
    /// The numbers are readable, the padding is not theirs.
    Padding {
        /// Which record it says it is.
        item: Item,
        /// The first byte that is wrong.
        place: usize,
    },
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { place } => write!(f, "not a record of the sequence connector: byte {place} is wrong"),
            Self::Padding { item, place } => {
                write!(f, "record {item} is damaged: byte {place} of its padding is wrong")
            }
        }
    }
}

impl std::error::Error for PatternError {}

/// Appends a record of this many bytes, or of as few as its numbers need.
pub fn write(item: Item, record_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(TASK);
    // Writing to a Vec does not fail.
    let _ = write!(out, "{}", item.task);
    out.extend_from_slice(N);
    let _ = write!(out, "{}", item.n);
    out.extend_from_slice(PAD);
    let mut padding = record_bytes.saturating_sub(out.len() - start + END.len());
    let mut letter = item.first_letter();
    while padding > 0 {
        let piece = &RUN[letter..];
        let piece = &piece[..padding.min(piece.len())];
        out.extend_from_slice(piece);
        padding -= piece.len();
        letter = 0; // a piece that was not the last ends with the alphabet
    }
    out.extend_from_slice(END);
}

/// Reads and checks a record.
///
/// # Errors
/// [`PatternError`] when it is not, byte for byte, what [`write()`] makes of some numbers and its own length.
pub fn parse(record: &[u8]) -> Result<Item, PatternError> {
    let mut reader = Reader { record, place: 0 };
    reader.expect(TASK)?;
    let task = reader.number()?;
    let task = u32::try_from(task).map_err(|_| PatternError::Form { place: TASK.len() })?;
    reader.expect(N)?;
    let n = reader.number()?;
    reader.expect(PAD)?;
    let item = Item { task, n };
    let end = record.len().checked_sub(END.len()).filter(|end| *end >= reader.place);
    let end = end.ok_or(PatternError::Form { place: record.len() })?;
    let letters = RUN[..LETTERS].iter().cycle().skip(item.first_letter());
    if let Some(wrong) = record[reader.place..end].iter().zip(letters).position(|(found, expected)| found != expected) {
        return Err(PatternError::Padding { item, place: reader.place + wrong });
    }
    reader.place = end;
    reader.expect(END)?;
    Ok(item)
}

struct Reader<'a> {
    record: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn expect(&mut self, text: &[u8]) -> Result<(), PatternError> {
        if !self.record[self.place..].starts_with(text) {
            return Err(PatternError::Form { place: self.place });
        }
        self.place += text.len();
        Ok(())
    }

    /// Digits without a needless 0 before them, so that each number has one form.
    fn number(&mut self) -> Result<u64, PatternError> {
        let wrong = PatternError::Form { place: self.place };
        let rest = &self.record[self.place..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = std::str::from_utf8(&rest[..count]).map_err(|_| wrong)?;
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(wrong);
        }
        self.place += count;
        digits.parse().map_err(|_| wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(task: u32, n: u64, bytes: usize) -> Vec<u8> {
        let mut out = b"before".to_vec();
        write(Item { task, n }, bytes, &mut out);
        out.split_off(6)
    }

    #[test]
    fn every_record_reads_back_at_every_size() {
        for bytes in [0, 26, 27, 84, 62 * 33, 5000, 100_000] {
            for (task, n) in [(0, 0), (3, 17), (7, 61), (u32::MAX, u64::MAX)] {
                let written = record(task, n, bytes);
                assert_eq!(parse(&written), Ok(Item { task, n }), "{bytes} bytes");
                assert!(written.len() == bytes || written.len() > bytes && written.len() < 70);
            }
        }
    }

    #[test]
    fn a_record_looks_like_this() {
        assert_eq!(record(0, 2, 30), b"{\"task\":0,\"n\":2,\"pad\":\"cdefg\"}"[..].to_vec().as_slice());
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let written = record(3, 17, 84);
        for place in 0..written.len() {
            let mut changed = written.clone();
            changed[place] ^= 1;
            assert_ne!(parse(&changed), Ok(Item { task: 3, n: 17 }), "byte {place}");
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let written = record(3, 17, 84);
        for length in 0..written.len() {
            assert!(parse(&written[..length]).is_err(), "{length} bytes");
        }
        assert!(parse(&[&written[..], b"}"].concat()).is_err());
    }

    #[test]
    fn a_number_in_place_of_its_neighbour_is_noticed() {
        let written = String::from_utf8(record(3, 17, 84)).unwrap();
        let n_changed = written.replace("\"n\":17", "\"n\":18");
        assert!(matches!(
            parse(n_changed.as_bytes()),
            Err(PatternError::Padding { item: Item { task: 3, n: 18 }, .. })
        ));
        let task_changed = written.replace("\"task\":3", "\"task\":4");
        assert!(matches!(parse(task_changed.as_bytes()), Err(PatternError::Padding { .. })));
        assert!(parse(written.replace("17", "017").as_bytes()).is_err());
    }

    #[test]
    fn foreign_bytes_are_refused_without_a_panic() {
        for foreign in [
            &b""[..],
            b"hello",
            b"{\"task\":",
            b"{\"task\":99999999999,\"n\":1,\"pad\":\"\"}",
            b"{\"task\":1,\"n\":99999999999999999999,",
        ] {
            assert!(matches!(parse(foreign), Err(PatternError::Form { .. })));
        }
    }
}
