//! The file that both sides copy: numbered lines of one length.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Bytes of a line without its end, so of a record's value.
pub const LINE_BYTES: usize = 84;

/// Writes `count` lines, and waits for the disk: otherwise the first run would share it with our own writing.
///
/// # Errors
/// The file can't be written.
pub fn write(path: &Path, count: u64) -> Result<()> {
    let work = || {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for number in 0..count {
            writeln!(out, "{}", line(number))?;
        }
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    };
    work().with_context(|| format!("can't write {}", path.display()))
}

/// A line: its number, then letters that change with it, as a log's would.
fn line(number: u64) -> String {
    let head = format!("{number:012} ");
    let tail: String = (0..LINE_BYTES as u64 - head.len() as u64)
        .map(|at| char::from(b'a' + u8::try_from((number * 7 + at * (number % 5 + 1)) % 26).unwrap_or(0)))
        .collect();
    head + &tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_of_one_length_and_all_different() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        write(&path, 1_000).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: std::collections::BTreeSet<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1_000);
        assert!(lines.iter().all(|line| line.len() == LINE_BYTES));
    }
}
