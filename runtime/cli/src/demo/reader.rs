//! The demo's own read_committed reader: counts lines as they become visible, and notices at once when one is out of order.

use oncewire_client::cluster::Cluster;
use oncewire_client::reader::{Isolation, LogReader, ReaderEvent, ReaderOptions};
use tokio::sync::watch;

/// What the reader has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Visible lines.
    pub(crate) lines: u64,
    /// The first line that was not the next one, with the line that was expected.
    pub(crate) fault: Option<String>,
}

/// Reads until nobody listens any more. The lines start with their number, from 1.
///
/// # Errors
/// What the client can't mend by itself.
pub(crate) async fn read(cluster: Cluster, topic: String, seen: watch::Sender<Seen>) -> Result<(), String> {
    let options = ReaderOptions { isolation: Isolation::Committed, ..ReaderOptions::default() };
    let mut reader = LogReader::open(&cluster, &topic, options).await.map_err(|error| error.to_string())?;
    let mut expected = 1;
    while !seen.is_closed() {
        let ReaderEvent::Records { records, .. } = reader.next().await.map_err(|error| error.to_string())? else {
            continue;
        };
        let mut fault = None;
        for record in &records {
            let number = record.value.as_deref().and_then(line_number);
            if number != Some(expected) && fault.is_none() {
                fault = Some(format!("line {expected} was due at offset {}, and line {number:?} came", record.offset));
            }
            expected += 1;
        }
        seen.send_modify(|seen| {
            seen.lines += records.len() as u64;
            seen.fault = seen.fault.take().or(fault);
        });
    }
    Ok(())
}

/// The number at the start of a line.
pub(crate) fn line_number(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()
}

/// A line of 83 characters, 84 bytes with its end.
pub(crate) fn line(number: u64) -> String {
    format!("{number:010} {:072x}\n", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_84_bytes_and_tells_its_number() {
        for number in [1, 42, 9_999_999_999] {
            let line = line(number);
            assert_eq!(line.len(), 84);
            assert_eq!(line_number(line.trim_end().as_bytes()), Some(number));
        }
    }
}
