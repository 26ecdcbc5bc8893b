//! Keys and values of the config topic, as bytes.
//!
//! | key | value |
//! |---|---|
//! | `target-state-<connector>` | `{"state":…,"state.v2":…}` |
//! | `connector-<connector>` | `{"properties":{…}}` |
//! | `task-<connector>-<n>` | `{"properties":{…}}` |
//! | `commit-<connector>` | `{"tasks":n}` |
//! | `restart-connector-<connector>` | `{"include-tasks":…,"only-failed":…}` (KIP-745) |
//! | `tasks-fencing-<connector>` | `{"task-count":n}` (KIP-618) |
//! | `session-key` | `{"key":…,"algorithm":…,"creation-timestamp":…}` (KIP-507) |
//! | `logger-cluster-<namespace>` | `{"level":…}` (KIP-976) |

use crate::{Config, json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::fmt;

pub(crate) const TARGET_STATE: &str = "target-state-";
pub(crate) const CONNECTOR: &str = "connector-";
pub(crate) const TASK: &str = "task-";
pub(crate) const COMMIT: &str = "commit-";
pub(crate) const RESTART: &str = "restart-connector-";
pub(crate) const TASK_COUNT: &str = "tasks-fencing-";
pub(crate) const SESSION_KEY: &str = "session-key";
pub(crate) const LOGGER: &str = "logger-cluster-";

/// A record of the config topic: its key and its value, `None` for a tombstone.
pub(crate) type KeyValue = (String, Option<Vec<u8>>);

/// What a user wants a connector to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetState {
    /// Run.
    #[default]
    Started,
    /// Keep the tasks, but idle.
    Paused,
    /// Have no tasks (KIP-875).
    Stopped,
}

impl TargetState {
    /// As in the topic: `STARTED`, `PAUSED`, `STOPPED`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "STARTED",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
        }
    }

    /// The reverse of [`TargetState::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Started, Self::Paused, Self::Stopped].into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for TargetState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A restart that the leader tells all workers of (KIP-745).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartRequest {
    /// Which connector.
    pub connector: String,
    /// Leave out what has not failed.
    pub only_failed: bool,
    /// Its tasks, too.
    pub include_tasks: bool,
}

impl RestartRequest {
    /// How much it restarts: of several requests for one connector the one with the highest impact counts.
    #[must_use]
    pub fn impact(&self) -> u8 {
        match (self.only_failed, self.include_tasks) {
            (true, false) => 0,
            (true, true) => 1,
            (false, false) => 2,
            (false, true) => 3,
        }
    }
}

/// What requests between workers are signed with (KIP-507). Debug output leaves the key out.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    /// The key's bytes.
    pub key: Vec<u8>,
    /// Java's name of its algorithm, such as `HmacSHA256`.
    pub algorithm: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, algorithm, created_ms } = self;
        write!(f, "SessionKey({} bytes, {algorithm}, created {created_ms})", key.len())
    }
}

pub(crate) fn connector(name: &str, config: &Config) -> KeyValue {
    (format!("{CONNECTOR}{name}"), Some(with_properties(config)))
}

pub(crate) fn connector_tombstone(name: &str) -> KeyValue {
    (format!("{CONNECTOR}{name}"), None)
}

pub(crate) fn task(connector: &str, task: u32, config: &Config) -> KeyValue {
    (format!("{TASK}{connector}-{task}"), Some(with_properties(config)))
}

pub(crate) fn commit(connector: &str, tasks: u32) -> KeyValue {
    (format!("{COMMIT}{connector}"), Some(json::write(&json::object([("tasks", tasks.into())]))))
}

/// `state` is for workers before Kafka 3.5, which know no `STOPPED`.
pub(crate) fn target_state(connector: &str, state: TargetState) -> KeyValue {
    let old = if state == TargetState::Stopped { TargetState::Paused } else { state };
    let value = json::object([("state", old.name().into()), ("state.v2", state.name().into())]);
    (format!("{TARGET_STATE}{connector}"), Some(json::write(&value)))
}

pub(crate) fn target_state_tombstone(connector: &str) -> KeyValue {
    (format!("{TARGET_STATE}{connector}"), None)
}

pub(crate) fn task_count(connector: &str, tasks: u32) -> KeyValue {
    (format!("{TASK_COUNT}{connector}"), Some(json::write(&json::object([("task-count", tasks.into())]))))
}

pub(crate) fn restart(request: &RestartRequest) -> KeyValue {
    let members = [("include-tasks", request.include_tasks.into()), ("only-failed", request.only_failed.into())];
    (format!("{RESTART}{}", request.connector), Some(json::write(&json::object(members))))
}

pub(crate) fn session_key(key: &SessionKey) -> KeyValue {
    let value = json::object([
        ("key", STANDARD.encode(&key.key).into()),
        ("algorithm", key.algorithm.as_str().into()),
        ("creation-timestamp", key.created_ms.into()),
    ]);
    (SESSION_KEY.to_owned(), Some(json::write(&value)))
}

pub(crate) fn logger_level(namespace: &str, level: &str) -> KeyValue {
    (format!("{LOGGER}{namespace}"), Some(json::write(&json::object([("level", level.into())]))))
}

fn with_properties(config: &Config) -> Vec<u8> {
    json::write(&json::object([("properties", json::properties(config))]))
}

/// Reads `properties`.
pub(crate) fn read_properties(members: &Map<String, Value>) -> Result<Config, String> {
    match members.get("properties") {
        Some(Value::Object(properties)) => json::config(properties),
        other => Err(format!("member \"properties\" is {} and not an object", json::kind_of(other))),
    }
}

/// Reads a count; a negative one has no tasks, as in Java.
pub(crate) fn read_count(members: &Map<String, Value>, name: &str) -> Result<u32, String> {
    match members.get(name).and_then(Value::as_i64).map(i32::try_from) {
        Some(Ok(count)) => Ok(u32::try_from(count).unwrap_or(0)),
        Some(Err(_)) => Err(format!("member {name:?} is no 32-bit number")),
        None => Err(format!("member {name:?} is {} and not an integer", json::kind_of(members.get(name)))),
    }
}

/// Reads a target state: `state.v2` wins where it is text, else `state` counts.
pub(crate) fn read_target_state(members: &Map<String, Value>) -> Result<TargetState, String> {
    let name = match members.get("state.v2") {
        Some(Value::String(name)) => name,
        _ => match members.get("state") {
            Some(Value::String(name)) => name,
            other => return Err(format!("member \"state\" is {} and not text", json::kind_of(other))),
        },
    };
    TargetState::from_name(name).ok_or_else(|| format!("{name:?} is no target state"))
}

/// Reads a restart request; what is missing or no boolean is false.
pub(crate) fn read_restart(connector: &str, members: &Map<String, Value>) -> RestartRequest {
    let flag = |name: &str| match members.get(name) {
        Some(Value::Bool(flag)) => *flag,
        other => {
            tracing::warn!(connector, "restart request: {name} is {} and is taken as false", json::kind_of(other));
            false
        }
    };
    RestartRequest {
        connector: connector.to_owned(),
        only_failed: flag("only-failed"),
        include_tasks: flag("include-tasks"),
    }
}

/// Reads a session key.
pub(crate) fn read_session_key(members: &Map<String, Value>) -> Result<SessionKey, String> {
    let text = |name: &str| match members.get(name) {
        Some(Value::String(text)) => Ok(text.as_str()),
        other => Err(format!("member {name:?} is {} and not text", json::kind_of(other))),
    };
    let key = STANDARD.decode(text("key")?).map_err(|_| "member \"key\" is not base64".to_owned())?;
    if key.is_empty() {
        return Err("the key is empty".to_owned());
    }
    let algorithm = text("algorithm")?.to_owned();
    match members.get("creation-timestamp").and_then(Value::as_i64) {
        Some(created_ms) => Ok(SessionKey { key, algorithm, created_ms }),
        None => Err("member \"creation-timestamp\" is not an integer".to_owned()),
    }
}

/// Reads a logger's level.
pub(crate) fn read_level(members: &Map<String, Value>) -> Result<String, String> {
    match members.get("level") {
        Some(Value::String(level)) => Ok(level.clone()),
        other => Err(format!("member \"level\" is {} and not text", json::kind_of(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and text of a record.
    fn shown((key, value): KeyValue) -> (String, String) {
        (key, String::from_utf8(value.expect("no tombstone")).unwrap())
    }

    fn is(record: KeyValue, key: &str, value: &str) {
        assert_eq!(shown(record), (key.to_owned(), value.to_owned()));
    }

    // The texts below were written by the classes of Apache Kafka Connect 4.3.1.

    #[test]
    fn records_are_written_byte_for_byte_as_java_writes_them() {
        is(target_state("c", TargetState::Stopped), "target-state-c", r#"{"state":"PAUSED","state.v2":"STOPPED"}"#);
        is(target_state("c", TargetState::Started), "target-state-c", r#"{"state":"STARTED","state.v2":"STARTED"}"#);
        is(commit("c", 2), "commit-c", r#"{"tasks":2}"#);
        is(task_count("c", 2), "tasks-fencing-c", r#"{"task-count":2}"#);
        is(logger_level("org.apache", "DEBUG"), "logger-cluster-org.apache", r#"{"level":"DEBUG"}"#);
        let request = RestartRequest { connector: "c".into(), only_failed: false, include_tasks: true };
        is(restart(&request), "restart-connector-c", r#"{"include-tasks":true,"only-failed":false}"#);
    }

    #[test]
    fn a_config_is_written_with_its_nulls_and_escapes() {
        let config: Config = [("name", Some("c")), ("x", Some("é\"\u{1}/")), ("n", None)]
            .map(|(key, value)| (key.to_owned(), value.map(str::to_owned)))
            .into();
        is(connector("c", &config), "connector-c", r#"{"properties":{"n":null,"name":"c","x":"é\"\u0001/"}}"#);
        is(task("c", 1, &config), "task-c-1", r#"{"properties":{"n":null,"name":"c","x":"é\"\u0001/"}}"#);
    }

    #[test]
    fn a_session_key_is_written_as_java_writes_it_and_read_back() {
        let key = SessionKey { key: vec![0; 32], algorithm: "HmacSHA256".into(), created_ms: 1_700_000_000_000 };
        let text = r#"{"key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","algorithm":"HmacSHA256","creation-timestamp":1700000000000}"#;
        is(session_key(&key), "session-key", text);
        let Ok(json::Read::Object(members)) = json::read(Some(text.as_bytes())) else { panic!("an object") };
        assert_eq!(read_session_key(&members), Ok(key.clone()));
        assert!(!format!("{key:?}").contains("0, 0"), "{key:?}");
    }

    fn members(text: &str) -> Map<String, Value> {
        match json::read(Some(text.as_bytes())) {
            Ok(json::Read::Object(members)) => members,
            _ => panic!("{text} is an object"),
        }
    }

    /// B28 state-v2-fallback
    #[test]
    fn the_newer_target_state_wins_where_it_is_text() {
        let read = |text| read_target_state(&members(text));
        assert_eq!(read(r#"{"state":"PAUSED","state.v2":"STOPPED"}"#), Ok(TargetState::Stopped));
        assert_eq!(read(r#"{"state":"PAUSED"}"#), Ok(TargetState::Paused));
        assert_eq!(read(r#"{"state":"PAUSED","state.v2":7}"#), Ok(TargetState::Paused));
        assert!(read(r#"{"state":"PAUSED","state.v2":"FLYING"}"#).is_err());
        assert!(read(r#"{"state":7}"#).is_err());
        assert!(read("{}").is_err());
    }

    #[test]
    fn a_restart_flag_that_is_missing_or_no_boolean_is_false() {
        let request = read_restart("c", &members(r#"{"include-tasks":"true"}"#));
        assert_eq!(request, RestartRequest { connector: "c".into(), only_failed: false, include_tasks: false });
    }

    #[test]
    fn counts_are_integers() {
        assert_eq!(read_count(&members(r#"{"tasks":3}"#), "tasks"), Ok(3));
        assert_eq!(read_count(&members(r#"{"tasks":-1}"#), "tasks"), Ok(0));
        for text in [r#"{"tasks":3.0}"#, r#"{"tasks":"3"}"#, "{}", r#"{"tasks":99999999999}"#] {
            assert!(read_count(&members(text), "tasks").is_err(), "{text}");
        }
    }

    #[test]
    fn restarts_are_ordered_by_what_they_restart() {
        let impact =
            |only_failed, include_tasks| RestartRequest { connector: "c".into(), only_failed, include_tasks }.impact();
        assert!(impact(true, false) < impact(true, true));
        assert!(impact(true, true) < impact(false, false));
        assert!(impact(false, false) < impact(false, true));
    }
}
