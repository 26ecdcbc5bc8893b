//! The list of requests, and how a line of it is read.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// One request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Names it in answers and intended differences.
    pub id: String,
    /// Sent as it is.
    pub method: String,
    /// Sent as it is, after `${dir}`.
    pub path: String,
    /// Sent as they are.
    #[serde(default)]
    pub headers: serde_json::Map<String, Value>,
    /// A JSON body, with its content type unless `headers` names one.
    pub json: Option<Value>,
    /// A body that need not be JSON.
    pub body: Option<String>,
    /// What must hold before it is sent.
    #[serde(default)]
    pub until: Vec<Until>,
}

/// A condition: a GET of `path` answers with `code`, and what `pointer` points at is as told.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// What to get.
    pub path: String,
    /// 200 when absent.
    pub code: Option<u16>,
    /// A JSON pointer.
    pub pointer: Option<String>,
    /// The value there.
    pub equals: Option<Value>,
    /// The number of elements there.
    pub length: Option<usize>,
    /// Whether there is a value.
    pub present: Option<bool>,
}

impl Until {
    /// Whether an answer meets it.
    pub fn is_met(&self, code: u16, body: &[u8]) -> bool {
        if code != self.code.unwrap_or(200) {
            return false;
        }
        let Some(pointer) = &self.pointer else { return true };
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let there = body.pointer(pointer);
        self.equals.as_ref().is_none_or(|equals| there == Some(equals))
            && self.length.is_none_or(|length| there.and_then(Value::as_array).is_some_and(|list| list.len() == length))
            && self.present.is_none_or(|present| there.is_some() == present)
    }
}

/// The folder of the list.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Java's answers.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/rest/java-4.3.1.jsonl")
}

/// Reads the whole list.
///
/// # Panics
/// It cannot be read; the message names the line.
pub fn requests() -> Vec<Request> {
    read_lines(&folder().join("requests.jsonl"))
}

/// Reads a file with one JSON value per line.
///
/// # Panics
/// It cannot be read; the message names the line.
pub fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), at + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_there_are_enough() {
        let requests = super::requests();
        let ids: BTreeSet<_> = requests.iter().map(|request| &request.id).collect();
        assert_eq!(ids.len(), requests.len());
        assert!(ids.len() >= 300, "{}", ids.len());
    }
}
