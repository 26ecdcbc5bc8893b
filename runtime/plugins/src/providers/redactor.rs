//! Hides secrets in text: pure, and every occurrence, also where two overlap.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What stands in place of a secret.
pub const MASK: &str = "[hidden]";
/// Shorter values are not masked: their text occurs everywhere, and nobody should use them as a secret.
pub const SECRET_BYTES_MIN: usize = 4;
/// A line of a secret of several lines, such as a key in PEM, is masked for itself from this length.
const LINE_BYTES_MIN: usize = 8;

/// Hides secrets in text. A cheap clone.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret within another costs nothing.
    secrets: Arc<[String]>,
}

impl Redactor {
    /// Hides these, also as they look within JSON and within Rust's debug output.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: BTreeSet<String> = BTreeSet::new();
        for secret in secrets {
            let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES_MIN);
            for text in std::iter::once(secret).chain([secret.trim()]).chain(lines) {
                if text.len() >= SECRET_BYTES_MIN {
                    forms.insert(text.into());
                    forms.insert(json_escaped(text));
                    forms.insert(text.escape_debug().to_string());
                }
            }
        }
        let mut secrets: Vec<String> = forms.into_iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets: secrets.into() }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The text with [`MASK`] in place of every secret. Takes time in proportion to the text and the number of secrets.
    pub fn redact(&self, text: &str) -> String {
        let mut hidden: Vec<(usize, usize)> = Vec::new();
        for secret in self.secrets.iter() {
            let mut from = 0;
            // One byte on, not one secret on: "aa" occurs twice in "aaa".
            while let Some(start) = text.get(from..).and_then(|rest| rest.find(secret.as_str())).map(|at| from + at) {
                hidden.push((start, start + secret.len()));
                from = start + text[start..].chars().next().map_or(1, char::len_utf8);
            }
        }
        hidden.sort_unstable();
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in hidden {
            if start >= done {
                out.push_str(&text[done..start]);
                out.push_str(MASK);
            }
            done = done.max(end);
        }
        out.push_str(&text[done..]);
        out
    }
}

fn json_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} texts)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_is_hidden() {
        let redactor = Redactor::new(["hunter2", "hunter2000"]);
        assert_eq!(redactor.redact("a hunter2, hunter2000 and hunter2"), "a [hidden], [hidden] and [hidden]");
        assert_eq!(redactor.redact("nothing"), "nothing");
        assert_eq!(Redactor::default().redact("hunter2"), "hunter2");
    }

    #[test]
    fn secrets_that_overlap_leave_nothing_behind() {
        let redactor = Redactor::new(["abcd", "cdefgh"]);
        assert_eq!(redactor.redact("xabcdefghy"), "x[hidden]y");
        assert_eq!(Redactor::new(["aaaa"]).redact("aaaaaaab"), "[hidden]b");
        assert_eq!(Redactor::new(["ääää"]).redact("äääääx"), "[hidden]x");
    }

    #[test]
    fn a_secret_is_hidden_within_json_and_debug_output() {
        let secret = "pa\"ss\\w\nord";
        let redactor = Redactor::new([secret]);
        for text in [format!("{secret:?}"), "{\"p\":\"pa\\\"ss\\\\w\\nord\"}".to_string(), format!(" {secret} ")] {
            assert!(!redactor.redact(&text).contains("ss"), "{text}");
        }
    }

    #[test]
    fn lines_of_a_long_secret_are_hidden_and_short_values_are_not() {
        let redactor = Redactor::new(["-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----\n", "abc"]);
        assert_eq!(redactor.redact("bad line MIIEvQIBADAN abc"), "bad line [hidden] abc");
    }

    #[test]
    fn the_redactor_itself_does_not_tell() {
        assert_eq!(format!("{:?}", Redactor::new(["hunter2"])), "Redactor(1 texts)");
    }
}
