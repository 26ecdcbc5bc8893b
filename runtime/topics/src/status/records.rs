//! Keys and values of the status topic, as bytes.
//!
//! | key | value |
//! |---|---|
//! | `status-connector-<connector>` | `{"state":…,"trace":…,"worker_id":…,"generation":n,"version":…}` |
//! | `status-task-<connector>-<n>` | the same |
//! | `status-topic-<topic>:connector-<connector>` | `{"topic":{"name":…,"connector":…,"task":n,"discoverTimestamp":ms}}` (KIP-558) |
//!
//! `version` is the plug-in's (KIP-891, Kafka 4.1); workers before that leave it out and pass over it.

use crate::{json, keys};
use serde_json::{Map, Value};
use std::fmt;

pub(crate) const CONNECTOR: &str = "status-connector-";
pub(crate) const TASK: &str = "status-task-";
pub(crate) const TOPIC: &str = "status-topic-";
const TOPIC_CONNECTOR: &str = ":connector-";

/// The state of a connector or a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// On no worker, for now.
    Unassigned,
    /// At work.
    Running,
    /// Idle as the user wants it.
    Paused,
    /// Ended by an error.
    Failed,
    /// Being restarted.
    Restarting,
    /// Without tasks as the user wants it; connectors only.
    Stopped,
}

impl State {
    /// As in the topic, such as `RUNNING`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unassigned => "UNASSIGNED",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Failed => "FAILED",
            Self::Restarting => "RESTARTING",
            Self::Stopped => "STOPPED",
        }
    }

    /// The reverse of [`State::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Unassigned, Self::Running, Self::Paused, Self::Failed, Self::Restarting, Self::Stopped]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a worker says of a connector or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The state.
    pub state: State,
    /// Why it failed, as text of several lines; only when it did.
    pub trace: Option<String>,
    /// Who says it: the host and port that the worker advertises.
    pub worker_id: String,
    /// The group's generation that the worker knew.
    pub generation: i32,
    /// The plug-in's version.
    pub version: Option<String>,
}

/// What a key of the topic is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    Connector(&'a str),
    Task(&'a str, u32),
    Topic { topic: &'a str, connector: &'a str },
}

pub(crate) fn connector_key(connector: &str) -> String {
    format!("{CONNECTOR}{connector}")
}

pub(crate) fn task_key(connector: &str, task: u32) -> String {
    format!("{TASK}{connector}-{task}")
}

pub(crate) fn topic_key(connector: &str, topic: &str) -> String {
    format!("{TOPIC}{topic}{TOPIC_CONNECTOR}{connector}")
}

pub(crate) fn status(status: &Status) -> Vec<u8> {
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
    json::write(&json::object([
        ("state", status.state.name().into()),
        ("trace", text(&status.trace)),
        ("worker_id", status.worker_id.as_str().into()),
        ("generation", status.generation.into()),
        ("version", text(&status.version)),
    ]))
}

pub(crate) fn topic(connector: &str, task: u32, topic: &str, discovered_ms: i64) -> Vec<u8> {
    let members = json::object([
        ("name", topic.into()),
        ("connector", connector.into()),
        ("task", task.into()),
        ("discoverTimestamp", discovered_ms.into()),
    ]);
    json::write(&json::object([("topic", members)]))
}

/// Takes a key apart.
pub(crate) fn subject(key: &str) -> Result<Subject<'_>, &'static str> {
    if let Some(connector) = key.strip_prefix(CONNECTOR) {
        return if connector.is_empty() { Err("it names no connector") } else { Ok(Subject::Connector(connector)) };
    }
    if let Some(rest) = key.strip_prefix(TASK) {
        let (connector, task) = keys::task(rest).ok_or("it names no task")?;
        return Ok(Subject::Task(connector, task));
    }
    let Some(rest) = key.strip_prefix(TOPIC) else { return Err("it is of no known kind") };
    let (topic, rest) = rest.split_once(':').ok_or("it names no connector")?;
    // Java passes over what stands between, whatever it is.
    let connector = rest.get(TOPIC_CONNECTOR.len() - 1..).unwrap_or_default();
    if topic.is_empty() || connector.is_empty() {
        return Err("it names no topic or no connector");
    }
    Ok(Subject::Topic { topic, connector })
}

/// Reads a status.
pub(crate) fn read_status(members: &Map<String, Value>) -> Result<Status, String> {
    let text = |name: &str| match members.get(name) {
        Some(Value::String(text)) => Ok(Some(text.clone())),
        None | Some(Value::Null) => Ok(None),
        Some(other) => Err(format!("member {name:?} is {} and not text", json::kind(other))),
    };
    let required = |name: &str| text(name)?.ok_or_else(|| format!("member {name:?} is missing"));
    let state = required("state")?;
    let generation = members.get("generation").and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok());
    Ok(Status {
        state: State::from_name(&state).ok_or_else(|| format!("{state:?} is no state"))?,
        trace: text("trace")?,
        worker_id: required("worker_id")?,
        generation: generation.ok_or("member \"generation\" is no 32-bit integer")?,
        version: text("version")?,
    })
}

/// Reads the task and the timestamp of a topic's record.
pub(crate) fn read_topic(members: &Map<String, Value>) -> Result<(u32, i64), String> {
    let Some(Value::Object(topic)) = members.get("topic") else {
        return Err(format!("member \"topic\" is {} and not an object", json::kind_of(members.get("topic"))));
    };
    let number =
        |name: &str| topic.get(name).and_then(Value::as_i64).ok_or_else(|| format!("member {name:?} is no integer"));
    let task = u32::try_from(number("task")?).map_err(|_| "member \"task\" is out of range".to_owned())?;
    Ok((task, number("discoverTimestamp")?))
}
