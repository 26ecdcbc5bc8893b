//! Files of lines for the tests: the same bytes on every run, each line different from every other.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The line width of the project's benches and of the figures that peers are known for.
pub const LINE_BYTES: usize = 84;

/// What fills a line after its number.
const FILLING: &[u8] = b" the quick brown fox jumps over the lazy dog";

/// The line with that number, without its terminator: the number, then text up to `width - 1` bytes.
///
/// # Panics
/// `width` leaves no room for a 10-digit number.
pub fn line(number: u64, width: usize) -> Vec<u8> {
    assert!(width > 10, "a line is its number and a terminator at least");
    let mut line = format!("{number:010}").into_bytes();
    line.extend(FILLING.iter().cycle().take(width - 1 - line.len()));
    line
}

/// Writes lines `0..count` to a new file, each of `width` bytes with its `\n`. Returns the file's length.
///
/// # Errors
/// The file cannot be written.
pub fn write_lines(path: &Path, count: u64, width: usize) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut bytes = line(0, width);
    bytes.push(b'\n');
    for number in 0..count {
        write_number(&mut bytes[..10], number);
        out.write_all(&bytes)?;
    }
    out.flush()?;
    Ok(count * width as u64)
}

fn write_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_width_and_differ() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.txt");
        assert_eq!(write_lines(&path, 12, LINE_BYTES).unwrap(), 12 * 84);
        let text = std::fs::read(&path).unwrap();
        let lines: Vec<_> = text.split_inclusive(|&byte| byte == b'\n').collect();
        assert_eq!(lines.len(), 12);
        for (number, with_terminator) in lines.iter().enumerate() {
            assert_eq!(with_terminator.len(), LINE_BYTES);
            assert_eq!(with_terminator[..83], line(number as u64, LINE_BYTES));
        }
    }
}
