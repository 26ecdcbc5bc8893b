//! The bodies of the REST interface as structs, their members in Java's order and under Java's names.
//!
//! Left out: definitions and validation results, which `oncewire-validation` makes as JSON values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::calendar::instant;

/// A connector's or task's configuration. JSON null is legal and kept.
pub type ConfigMap = BTreeMap<String, Option<String>>;

/// `GET /`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Of the worker.
    pub version: String,
    /// It was built from.
    pub commit: String,
    /// Of the Kafka cluster that the worker serves.
    pub kafka_cluster_id: String,
}

/// `GET /health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// `healthy`, `starting` or `unhealthy`.
    pub status: String,
    /// To be read by a person.
    pub message: String,
}

/// A task by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    /// The connector.
    pub connector: String,
    /// Its number, from 0.
    pub task: i32,
}

/// What kind of connector it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectorType {
    /// Into Kafka.
    Source,
    /// Out of Kafka.
    Sink,
    /// The class is not known here.
    Unknown,
}

/// A connector with its configuration and tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorInfo {
    /// Its name.
    pub name: String,
    /// Raw, with `name`.
    pub config: ConfigMap,
    /// In order.
    pub tasks: Vec<TaskId>,
    /// Null when it is not known yet.
    #[serde(rename = "type")]
    pub kind: Option<ConnectorType>,
}

/// One element of `GET /connectors/{name}/tasks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInfo {
    /// Which task.
    pub id: TaskId,
    /// Raw.
    pub config: ConfigMap,
}

/// The state of a connector instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorState {
    /// `RUNNING`, `FAILED`, …
    pub state: String,
    /// `host:port` of the worker's advertised URL.
    pub worker_id: String,
    /// The plug-in's version; shown as null when it never ran, left out when it is [`UNDEFINED`].
    #[serde(default, skip_serializing_if = "is_undefined")]
    pub version: Option<String>,
    /// Why it failed; left out when empty.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub trace: Option<String>,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskState {
    /// Its number.
    pub id: i32,
    /// `RUNNING`, `FAILED`, …
    pub state: String,
    /// `host:port` of the worker's advertised URL.
    pub worker_id: String,
    /// The plug-in's version; shown as null when it never ran, left out when it is [`UNDEFINED`].
    #[serde(default, skip_serializing_if = "is_undefined")]
    pub version: Option<String>,
    /// Why it failed; left out when empty.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub trace: Option<String>,
}

/// The version of a plug-in that tells none.
pub const UNDEFINED: &str = "undefined";

fn has_no_version(version: &Option<String>) -> bool {
    version.is_none() || is_undefined(version)
}

fn is_undefined(version: &Option<String>) -> bool {
    version.as_deref() == Some(UNDEFINED)
}

fn is_absent(text: &Option<String>) -> bool {
    text.as_ref().is_none_or(String::is_empty)
}

/// `GET /connectors/{name}/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorStateInfo {
    /// The connector.
    pub name: String,
    /// Its instance.
    pub connector: ConnectorState,
    /// By number.
    pub tasks: Vec<TaskState>,
    /// What kind it is.
    #[serde(rename = "type")]
    pub kind: ConnectorType,
}

/// What `GET /connectors?expand=…` tells of one connector, in the order asked for.
pub type Expanded = Map<String, Value>;

/// One source partition's (or sink partition's) offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetEntry {
    /// An object, or null.
    pub partition: Option<Map<String, Value>>,
    /// An object, or null for a tombstone.
    pub offset: Option<Map<String, Value>>,
}

/// The body of the offsets endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorOffsets {
    /// In the order in which they were read.
    pub offsets: Vec<OffsetEntry>,
}

/// A body with nothing but a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// To be read by a person.
    pub message: String,
}

/// One element of `GET /connector-plugins`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginInfo {
    /// The class name to use in configurations.
    pub class: String,
    /// `source`, `sink`, `converter`, `header_converter`, `transformation` or `predicate`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Left out when it is [`UNDEFINED`] or absent.
    #[serde(default, skip_serializing_if = "has_no_version")]
    pub version: Option<String>,
}

/// One logger's level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggerLevel {
    /// Upper case.
    pub level: Option<String>,
    /// Milliseconds since 1970, null when it is as it was at the start.
    pub last_modified: Option<i64>,
}

/// The error body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage {
    /// Equal to the HTTP status.
    pub error_code: u16,
    /// What is wrong.
    pub message: String,
}

/// The state in which `POST /connectors` creates a connector (KIP-980).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialState {
    /// As without it.
    Running,
    /// With tasks that wait.
    Paused,
    /// Without tasks.
    Stopped,
}

impl InitialState {
    /// Upper or lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_uppercase().as_str() {
            "RUNNING" => Some(InitialState::Running),
            "PAUSED" => Some(InitialState::Paused),
            "STOPPED" => Some(InitialState::Stopped),
            _ => None,
        }
    }
}

/// `POST /connectors/{name}/restart` with `includeTasks` or `onlyFailed` (KIP-745).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartRequest {
    /// Which connector.
    pub connector: String,
    /// Only what has failed.
    pub only_failed: bool,
    /// The tasks as well.
    pub include_tasks: bool,
}

/// Answer of `POST /worker/drain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainStatus {
    /// How far it is.
    pub state: DrainState,
    /// Connector instances that still run here.
    pub connectors: usize,
    /// Tasks that still run here.
    pub tasks: usize,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum DrainState {
    /// Something still runs here.
    Draining,
    /// All handed over; the worker has left the group and may be stopped.
    Drained,
}

/// What a herder is doing or has done last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Such as `reading to the end of the config topic`.
    pub description: String,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    /// Milliseconds since 1970; `None` while it goes on.
    pub completed_ms: Option<i64>,
}

impl Stage {
    /// In words, with times in UTC.
    pub fn summary(&self) -> String {
        let Stage { description, started_ms, completed_ms } = self;
        let started = instant(*started_ms);
        match completed_ms {
            None => format!("The worker is currently {description}, which began at {started}."),
            Some(completed) => format!(
                "The last operation the worker completed was {description}, which began at {started} and completed at {}.",
                instant(*completed)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_tells_since_when() {
        let mut stage = Stage { description: "reading".to_owned(), started_ms: 951_827_696_789, completed_ms: None };
        assert_eq!(stage.summary(), "The worker is currently reading, which began at 2000-02-29T12:34:56.789Z.");
        stage.completed_ms = Some(0);
        assert!(stage.summary().ends_with("and completed at 1970-01-01T00:00:00.000Z."));
    }

    #[test]
    fn members_stand_in_javas_order() {
        let task = TaskState {
            id: 0,
            state: "FAILED".to_owned(),
            worker_id: "h:1".to_owned(),
            version: None,
            trace: Some("t".to_owned()),
        };
        let json = serde_json::to_string(&task).expect("JSON");
        assert_eq!(json, r#"{"id":0,"state":"FAILED","worker_id":"h:1","version":null,"trace":"t"}"#);
        let told = TaskState { version: Some(UNDEFINED.to_owned()), trace: Some(String::new()), ..task };
        assert_eq!(serde_json::to_string(&told).expect("JSON"), r#"{"id":0,"state":"FAILED","worker_id":"h:1"}"#);
    }
}
