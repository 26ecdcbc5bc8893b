//! Without knowledge of the content: counts records, and on request those whose value was seen before.
//!
//! Equal values may be right (a file may repeat a line), so a repeat is told as a duplicate only because the caller asked for it.
//! Repeats are found by 64-bit hash, 8 bytes a distinct value and hash-set overhead; past a named limit the count stops and says so.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

use crate::finding::{Content, Place, preview};

/// The most distinct values that are remembered (about 300 MB).
const DISTINCT_VALUES_MAX: usize = 16_000_000;

/// Whether values that repeat are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Equal values are nobody's business.
    Ignore,
    /// Each value that was seen before is a duplicate.
    Count,
}

/// The checker that knows nothing about the content.
#[derive(Debug)]
pub struct PlainChecker {
    repeats: Repeats,
    values: HashSet<u64>,
    unchecked: u64,
    content: Content,
}

impl PlainChecker {
    /// A checker that has seen nothing.
    pub fn new(repeats: Repeats) -> Self {
        PlainChecker { repeats, values: HashSet::new(), unchecked: 0, content: Content::default() }
    }

    /// Takes the next visible record.
    pub fn observe(&mut self, place: Place, value: Option<&[u8]>) {
        if self.repeats == Repeats::Ignore {
            return;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(u8::from(value.is_some()));
        hasher.write(value.unwrap_or_default());
        let hash = hasher.finish();
        if self.values.contains(&hash) {
            self.content.duplicates.add(|| format!("at {place}: {} was seen before", preview(value)));
        } else if self.values.len() < DISTINCT_VALUES_MAX {
            self.values.insert(hash);
        } else {
            self.unchecked += 1;
        }
    }

    /// Gives the result.
    pub fn finish(mut self) -> Content {
        self.content.against = match (self.repeats, self.unchecked) {
            (Repeats::Ignore, _) => "nothing (counted only)".to_owned(),
            (Repeats::Count, 0) => "repeated values".to_owned(),
            (Repeats::Count, unchecked) => {
                format!("repeated values among the first {DISTINCT_VALUES_MAX} ({unchecked} unchecked)")
            }
        };
        self.content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicates(repeats: Repeats, values: &[Option<&[u8]>]) -> u64 {
        let mut checker = PlainChecker::new(repeats);
        for (offset, value) in values.iter().enumerate() {
            checker.observe(Place { partition: 0, offset: offset as i64 }, *value);
        }
        checker.finish().duplicates.count
    }

    #[test]
    fn repeats_count_only_when_asked_for() {
        let values = [Some(&b"a"[..]), Some(b""), None, Some(b"a")];
        assert_eq!(duplicates(Repeats::Ignore, &values), 0);
        assert_eq!(duplicates(Repeats::Count, &values), 1);
    }
}
