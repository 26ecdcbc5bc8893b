//! Hides secrets in text: pure, and every occurrence, also where two overlap.
//!
//! One walk over the text, whatever the number of secrets: they are found by their first [`SECRET_BYTES_MIN`] bytes.
//!
//! What is not found: a secret that somebody encoded in a way that is not among [`forms`], such as base64, or changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Write as _};

/// What stands in place of a secret.
pub const MASK: &str = "[hidden]";
/// Shorter values are not masked, not even as words of their own: `1`, `yes` or `en` stand in every line, and a log in which such words
/// are missing helps nobody and tells what is missing. Nobody should use them as a secret.
pub const SECRET_BYTES_MIN: usize = 4;
/// A line of a secret of several lines, such as a key in PEM, is masked for itself from this length.
const LINE_BYTES_MIN: usize = 8;

type Start = [u8; SECRET_BYTES_MIN];

/// Hides secrets in text.
#[derive(Default)]
pub struct Redactor {
    /// The forms of all secrets by their first bytes, each with the number of secrets that have it.
    forms: HashMap<Start, BTreeMap<String, usize>>,
}

impl Redactor {
    /// Hides this secret, too, also as it looks within JSON, a URL and Rust's debug output.
    pub fn hide(&mut self, secret: &str) {
        for form in forms(secret) {
            if let Some(start) = start_of(form.as_bytes()) {
                *self.forms.entry(start).or_default().entry(form).or_default() += 1;
            }
        }
    }

    /// No longer hides a secret that was hidden, apart from what it has in common with others.
    pub fn forget(&mut self, secret: &str) {
        for form in forms(secret) {
            let Some(start) = start_of(form.as_bytes()) else { continue };
            let Some(alike) = self.forms.get_mut(&start) else { continue };
            match alike.get_mut(&form) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(alike.remove(&form)),
            }
            if alike.is_empty() {
                self.forms.remove(&start);
            }
        }
    }

    /// The text with [`MASK`] in place of every secret.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        // Up to here the text is in `out`; up to there it belongs to a secret.
        let (mut done, mut hidden) = (0, 0);
        // Each place, not each secret: "aa" occurs twice in "aaa".
        for (at, window) in text.as_bytes().windows(SECRET_BYTES_MIN).enumerate() {
            let Some(length) = self.longest_at(window, &text.as_bytes()[at..]) else { continue };
            if at >= hidden {
                out.push_str(&text[done..at]);
                out.push_str(MASK);
            }
            hidden = hidden.max(at + length);
            done = hidden;
        }
        if done == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    fn longest_at(&self, window: &[u8], rest: &[u8]) -> Option<usize> {
        let alike = self.forms.get(&start_of(window)?)?;
        alike.keys().filter(|form| rest.starts_with(form.as_bytes())).map(String::len).max()
    }
}

fn start_of(bytes: &[u8]) -> Option<Start> {
    bytes.get(..SECRET_BYTES_MIN)?.try_into().ok()
}

/// How a secret may look: itself, without the white space around it, its longer lines; and each of these as others write it.
fn forms(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES_MIN);
    for text in std::iter::once(secret).chain([secret.trim()]).chain(lines) {
        if text.len() < SECRET_BYTES_MIN {
            continue;
        }
        let debug = format!("{text:?}");
        forms.insert(debug[1..debug.len() - 1].to_owned());
        forms.insert(text.as_bytes().escape_ascii().to_string());
        forms.insert(json_escaped(text));
        forms.insert(percent_encoded(text));
        forms.insert(text.to_owned());
    }
    forms
}

/// As within a JSON string (RFC 8259); characters beyond ASCII stay.
fn json_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c)); // Writing to a string does not fail.
            }
            c => out.push(c),
        }
    }
    out
}

/// As within a URL (RFC 3986): all but the unreserved characters.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}"); // Writing to a string does not fail.
        }
    }
    out
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} texts)", self.forms.values().map(BTreeMap::len).sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
        let mut redactor = Redactor::default();
        secrets.into_iter().for_each(|secret| redactor.hide(secret));
        redactor
    }

    #[test]
    fn every_occurrence_is_hidden() {
        let redactor = redactor(["hunter2", "hunter2000"]);
        assert_eq!(redactor.redact("a hunter2, hunter2000 and hunter2"), "a [hidden], [hidden] and [hidden]");
        assert_eq!(redactor.redact("nothing"), "nothing");
        assert_eq!(redactor.redact("xhunter2y"), "x[hidden]y", "also within a word");
        assert_eq!(Redactor::default().redact("hunter2"), "hunter2");
    }

    #[test]
    fn secrets_that_overlap_leave_nothing_behind() {
        assert_eq!(redactor(["abcd", "cdefgh"]).redact("xabcdefghy"), "x[hidden]y");
        assert_eq!(redactor(["aaaa"]).redact("aaaaaaab"), "[hidden]b");
        assert_eq!(redactor(["ääää"]).redact("äääääx"), "[hidden]x");
        assert_eq!(redactor(["abcdefgh", "cdef"]).redact("abcdefghcdef-"), "[hidden][hidden]-", "one within another");
    }

    #[test]
    fn a_secret_is_hidden_as_others_write_it() {
        let secret = "pa\"ss\\w'o\nrd\u{1}ü/x";
        let redactor = redactor([secret]);
        let bytes = format!("b\"{}\"", secret.as_bytes().escape_ascii());
        let url = "http://scott:pa%22ss%5Cw%27o%0Ard%01%C3%BC%2Fx@host".to_owned();
        let json = "{\"p\":\"pa\\\"ss\\\\w'o\\nrd\\u0001ü/x\"}".to_owned();
        for text in [format!("{secret:?}"), json, bytes, url, format!(" {secret} ")] {
            let redacted = redactor.redact(&text);
            assert!(redacted.contains(MASK) && !redacted.contains("ss"), "{text}");
        }
    }

    #[test]
    fn lines_of_a_long_secret_are_hidden_and_short_values_are_not() {
        let redactor = redactor(["-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----\n", "abc", "", "\n\n\n\n"]);
        assert_eq!(redactor.redact("bad line MIIEvQIBADAN abc"), "bad line [hidden] abc");
        assert_eq!(redactor.redact(""), "");
    }

    #[test]
    fn what_two_secrets_have_in_common_is_hidden_until_both_are_forgotten() {
        let both = ["common line\none of two\n", "common line\nthe other\n"];
        let mut redactor = redactor(both);
        redactor.forget(both[0]);
        assert_eq!(redactor.redact("common line, one of two, the other"), "[hidden], one of two, [hidden]");
        redactor.forget(both[1]);
        assert_eq!(redactor.redact("common line"), "common line");
        assert!(redactor.forms.is_empty());
    }

    #[test]
    fn the_redactor_itself_does_not_tell() {
        assert_eq!(format!("{:?}", redactor(["hunter2"])), "Redactor(1 texts)");
    }
}
