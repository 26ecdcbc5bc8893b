//! What the status topic tells of a run: every state that a connector or task ever had, so that a failure that mended itself is seen too.
//!
//! The topic is compacted, but not before its active segment is rolled, which takes longer than any test.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use oncewire_client::reader::Isolation;
use serde_json::Value;

use crate::client::Client;

/// Something that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The key of its status, such as `status-task-orders-0`.
    pub who: String,
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// The state that followed, and after how long; `None`: it stayed.
    pub next: Option<(String, Duration)>,
    /// Which worker said so.
    pub worker: String,
    /// Why.
    pub trace: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.next.as_ref();
        let next = next.map_or("stayed so".to_owned(), |(state, after)| format!("{state} after {after:.1?}"));
        write!(f, "{} on {} at {}: {next}; {}", self.who, self.worker, self.at_ms, self.trace)
    }
}

/// One state of a task, as it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The task's number.
    pub task: usize,
    /// Its state.
    pub state: String,
    /// Which worker said so.
    pub worker: String,
    /// The group's generation of which that worker was.
    pub generation: i64,
    /// When, in ms since 1970.
    pub at_ms: i64,
}

/// All that was told of a connector's tasks so far; of each task in its order.
///
/// # Panics
/// The topic cannot be read.
pub fn told_of_tasks(client: &Client, status_topic: &str, connector: &str) -> Vec<Told> {
    let records = client.records(status_topic, Isolation::Uncommitted);
    let told = records.into_iter().filter_map(|record| {
        let key = String::from_utf8_lossy(record.key.as_ref()?).into_owned();
        let task = key.strip_prefix(&format!("status-task-{connector}-"))?.parse().ok()?;
        let status: Value = serde_json::from_slice(record.value.as_ref()?).ok()?;
        let text = |field: &str| status[field].as_str().map(str::to_owned);
        let generation = status["generation"].as_i64()?;
        Some(Told { task, state: text("state")?, worker: text("worker_id")?, generation, at_ms: record.timestamp_ms })
    });
    told.collect()
}

/// All failures, in their order of time.
///
/// # Panics
/// The topic cannot be read.
pub fn failures(client: &Client, status_topic: &str) -> Vec<Failure> {
    let mut states: BTreeMap<String, Vec<(i64, Value)>> = BTreeMap::new();
    for record in client.records(status_topic, Isolation::Uncommitted) {
        let text = |bytes: Option<&bytes::Bytes>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let key = text(record.key.as_ref()).unwrap_or_default();
        // A tombstone says that it is no more, which ends a failure too.
        let value = text(record.value.as_ref()).unwrap_or(r#"{"state":"gone"}"#.to_owned());
        let value = serde_json::from_str(&value).unwrap_or(Value::Null);
        if key.starts_with("status-task-") || key.starts_with("status-connector-") {
            states.entry(key).or_default().push((record.timestamp_ms, value));
        }
    }
    let mut failures: Vec<Failure> = states.iter().flat_map(|(who, states)| of_one(who, states)).collect();
    failures.sort_by_key(|failure| failure.at_ms);
    failures
}

fn of_one(who: &str, states: &[(i64, Value)]) -> Vec<Failure> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let failed = states.iter().enumerate().filter(|(_, (_, status))| status["state"] == "FAILED");
    let failure = |(place, (at_ms, status)): (usize, &(i64, Value))| {
        let next = states.get(place + 1).map(|(next_ms, next)| {
            (text(next, "state"), Duration::from_millis(u64::try_from(next_ms - at_ms).unwrap_or(0)))
        });
        let (worker, trace) = (text(status, "worker_id"), text(status, "trace"));
        Failure { who: who.to_owned(), at_ms: *at_ms, next, worker, trace }
    };
    failed.map(failure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_what_followed() {
        let status = |state: &str| serde_json::json!({"state": state, "worker_id": "w", "trace": "why"});
        let states =
            [(5, status("RUNNING")), (10, status("FAILED")), (1_010, status("RUNNING")), (9, status("FAILED"))];
        let failures = of_one("status-task-c-0", &states);
        assert_eq!(failures.len(), 2);
        assert_eq!(failures[0].next, Some(("RUNNING".to_owned(), Duration::from_secs(1))));
        assert_eq!(failures[1].next, None);
    }
}
