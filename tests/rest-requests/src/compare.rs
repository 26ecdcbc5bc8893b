//! Compares two workers' answers, apart from the differences that are meant.
//!
//! `intended-differences.md` holds a table: which requests (ids, `*` at the end for a prefix, several parted by blanks), what may differ, and why.
//! What may differ is one or more of
//! - `code:N`: ours answers N in place of Java's code, and its own body, content type and headers;
//! - `message`: an error body's text (its code and its members must agree);
//! - `body`: the whole body;
//! - `content-type`, `allow`, `location`: that header;
//! - `page`: Java's server answers with a page of its own (or with nothing), ours with the same code and a JSON error;
//! - `unreadable`: as `message`, where Java's text is one of its JSON library's or of a null pointer;
//! - `error-content-type`: Java's error has no content type, ours says `application/json`;
//! - `allow-of-405`: Java's 405 has no `Allow`, ours has.
//!
//! An entry that no difference needs is itself an error, so that the list stays true.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::answer::Answer;
use crate::list::folder;

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intended {
    /// Ids or prefixes.
    pub requests: Vec<String>,
    /// What may differ.
    pub aspects: Vec<String>,
    /// Why.
    pub reason: String,
}

/// Reads `intended-differences.md`.
///
/// # Panics
/// It cannot be read, or a row has not three cells.
pub fn intended() -> Vec<Intended> {
    let path = folder().join("intended-differences.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

fn row(line: &str) -> Intended {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [requests, aspects, reason] = cells[..] else { panic!("not three cells: {line}") };
    let words = |cell: &str| cell.split_whitespace().map(|word| word.trim_matches('`').to_owned()).collect();
    Intended { requests: words(requests), aspects: words(aspects), reason: reason.to_owned() }
}

impl Intended {
    fn covers(&self, id: &str) -> bool {
        self.requests.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => id.starts_with(prefix),
            None => id == pattern,
        })
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Differences that nobody meant, ready to be read.
    pub differences: Vec<String>,
    /// Entries that covered a request but no difference.
    pub unused: Vec<Intended>,
}

/// Compares answer by answer.
pub fn compare(java: &[Answer], ours: &[Answer], intended: &[Intended]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut used = BTreeSet::new();
    for (java, ours) in java.iter().zip(ours) {
        assert_eq!(java.id, ours.id, "both answer the same list");
        let covering: Vec<(usize, &str)> = intended
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.covers(&java.id))
            .flat_map(|(at, entry)| entry.aspects.iter().map(move |aspect| (at, aspect.as_str())))
            .collect();
        for difference in differences(java, ours) {
            let excuse = covering.iter().find(|(_, aspect)| excuses(aspect, difference, java, ours));
            match excuse {
                Some((at, _)) => {
                    used.insert(*at);
                }
                None => outcome.differences.push(format!(
                    "{}: {difference} differs\n  java {}\n  ours {}",
                    java.id,
                    shown(java),
                    shown(ours)
                )),
            }
        }
    }
    let unused = intended.iter().enumerate().filter(|(at, _)| !used.contains(at));
    outcome.unused = unused.map(|(_, entry)| entry.clone()).collect();
    outcome
}

fn shown(answer: &Answer) -> String {
    let mut text = serde_json::to_string(answer).unwrap_or_default();
    let end = (0..=1500.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    text
}

fn differences(java: &Answer, ours: &Answer) -> Vec<&'static str> {
    let checks = [
        ("code", java.code != ours.code),
        ("content-type", java.content_type != ours.content_type),
        ("allow", java.allow != ours.allow),
        ("location", java.location != ours.location),
        ("body", java.body != ours.body),
    ];
    checks.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

fn excuses(aspect: &str, difference: &str, java: &Answer, ours: &Answer) -> bool {
    match aspect {
        "message" => difference == "body" && same_but_message(&java.body, &ours.body),
        "error-content-type" => {
            difference == "content-type"
                && java.code >= 400
                && java.content_type.is_none()
                && ours.content_type.as_deref() == Some("application/json")
        }
        "unreadable" => {
            let text = java.body["message"].as_str().unwrap_or_default();
            let of_java = ["Cannot invoke \"", "[Source: ", "No content to map"].iter().any(|part| text.contains(part));
            of_java && excuses("message", difference, java, ours)
        }
        "page" => {
            matches!(difference, "content-type" | "body")
                && java.code == ours.code
                && !java.body.is_object()
                && ours.content_type.as_deref() == Some("application/json")
        }
        "allow-of-405" => difference == "allow" && java.code == 405 && java.allow.is_none(),
        _ => match aspect.strip_prefix("code:") {
            Some(code) => code.parse() == Ok(ours.code),
            None => aspect == difference,
        },
    }
}

/// Two error bodies with the same members and code, both with a message.
fn same_but_message(java: &Value, ours: &Value) -> bool {
    let has_message = |body: &Value| body["message"].as_str().is_some_and(|text| !text.is_empty());
    has_message(java)
        && has_message(ours)
        && java["error_code"] == ours["error_code"]
        && java.as_object().map(|body| body.keys().collect::<Vec<_>>())
            == ours.as_object().map(|body| body.keys().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(code: u16, body: Value) -> Answer {
        Answer { id: "a-b".to_owned(), code, content_type: None, allow: None, location: None, body }
    }

    #[test]
    fn a_message_may_differ_but_not_the_code() {
        let intended = [row("| `a-*` | `message` | because |")];
        let java = [answer(500, json!({"error_code": 500, "message": "x"}))];
        let ours = [answer(500, json!({"error_code": 500, "message": "y"}))];
        assert!(compare(&java, &ours, &intended).differences.is_empty());
        let ours = [answer(400, json!({"error_code": 400, "message": "y"}))];
        assert_eq!(compare(&java, &ours, &intended).differences.len(), 2);
    }

    #[test]
    fn an_entry_without_a_difference_is_told() {
        let intended = [row("| `a-b` `c` | `code:200` | because |")];
        let same = [answer(200, json!(1))];
        assert_eq!(compare(&same, &same, &intended).unused.len(), 1);
    }
}
