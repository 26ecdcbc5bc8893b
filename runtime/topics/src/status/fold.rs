//! What the records of the status topic come to. Pure.
//!
//! Source: the class documentation of Kafka Connect's `KafkaStatusBackingStore`; KIP-558 for topics.

use super::records::{self, State, Status, Subject};
use crate::json::{self, Read};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A topic that a connector has used (KIP-558).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicStatus {
    /// The task that used it first.
    pub task: u32,
    /// When, in milliseconds since 1970.
    pub discovered_ms: i64,
}

/// The fold of the status topic. Several partitions may be folded in any order: all records of a key are in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusFold {
    connectors: BTreeMap<String, Status>,
    tasks: BTreeMap<String, BTreeMap<u32, TaskEntry>>,
    topics: BTreeMap<String, BTreeMap<String, TopicStatus>>,
}

/// What the topic says of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TaskEntry {
    status: Status,
    /// The worker that is said to run it has told since that it does no more.
    is_given_up: bool,
}

/// What a record took away, so that nobody writes it anew out of an old queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Removed {
    Nothing,
    Task(String, u32),
    /// A connector and the statuses of these tasks.
    Connector(String, Vec<u32>),
}

impl StatusFold {
    /// Takes in one record.
    pub fn apply(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.take(key, value);
    }

    /// Takes in one record and tells what it removed.
    pub(crate) fn take(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) -> Removed {
        let key = key.map(String::from_utf8_lossy).unwrap_or_default();
        match self.read(&key, value) {
            Ok(removed) => removed,
            Err(reason) => {
                tracing::warn!(key = %key, "status topic: a record was passed over: {reason}");
                Removed::Nothing
            }
        }
    }

    /// A connector's status.
    #[must_use]
    pub fn connector(&self, connector: &str) -> Option<&Status> {
        self.connectors.get(connector)
    }

    /// A task's status.
    #[must_use]
    pub fn task(&self, connector: &str, task: u32) -> Option<&Status> {
        Some(&self.tasks.get(connector)?.get(&task)?.status)
    }

    /// Whether the last worker that had a task told that it has stopped it.
    ///
    /// The status may still say RUNNING: told in the generation in which the task began, UNASSIGNED is taken for late, here as in Java.
    #[must_use]
    pub fn is_given_up(&self, connector: &str, task: u32) -> bool {
        self.tasks.get(connector).and_then(|tasks| tasks.get(&task)).is_some_and(|entry| entry.is_given_up)
    }

    /// The statuses of a connector's tasks.
    pub fn tasks(&self, connector: &str) -> impl Iterator<Item = (u32, &Status)> {
        self.tasks.get(connector).into_iter().flatten().map(|(task, entry)| (*task, &entry.status))
    }

    /// The connectors that have a status.
    pub fn connectors(&self) -> impl Iterator<Item = &str> {
        self.connectors.keys().map(String::as_str)
    }

    /// The topics that a connector has used.
    pub fn topics(&self, connector: &str) -> impl Iterator<Item = (&str, TopicStatus)> {
        self.topics.get(connector).into_iter().flatten().map(|(topic, status)| (topic.as_str(), *status))
    }

    /// A topic that a connector has used.
    #[must_use]
    pub fn topic(&self, connector: &str, topic: &str) -> Option<TopicStatus> {
        self.topics.get(connector)?.get(topic).copied()
    }

    fn read(&mut self, key: &str, value: Option<&[u8]>) -> Result<Removed, String> {
        let subject = records::subject(key)?;
        // Unlike the text `null`, which Java fails on.
        let members = if value.is_none() { None } else { Some(members(json::read(value)?)?) };
        match (subject, members) {
            (Subject::Connector(connector), None) => {
                self.connectors.remove(connector);
                let tasks = self.tasks.remove(connector).unwrap_or_default();
                return Ok(Removed::Connector(connector.to_owned(), tasks.into_keys().collect()));
            }
            (Subject::Connector(connector), Some(members)) => {
                self.connectors.insert(connector.to_owned(), records::read_status(&members)?);
            }
            (Subject::Task(connector, task), None) => {
                if let Some(tasks) = self.tasks.get_mut(connector) {
                    tasks.remove(&task);
                    if tasks.is_empty() {
                        self.tasks.remove(connector);
                    }
                }
                return Ok(Removed::Task(connector.to_owned(), task));
            }
            (Subject::Task(connector, task), Some(members)) => {
                let status = records::read_status(&members)?;
                let tasks = self.tasks.entry(connector.to_owned()).or_default();
                match tasks.get_mut(&task) {
                    // The worker that gave the task up told it late, or another runs it by now.
                    Some(known) if is_stale(&known.status, &status) => {
                        known.is_given_up |= known.status.worker_id == status.worker_id;
                    }
                    _ => {
                        let is_given_up = status.state == State::Unassigned;
                        tasks.insert(task, TaskEntry { status, is_given_up });
                    }
                }
            }
            (Subject::Topic { topic, connector }, None) => {
                if let Some(topics) = self.topics.get_mut(connector) {
                    topics.remove(topic);
                    if topics.is_empty() {
                        self.topics.remove(connector);
                    }
                }
            }
            (Subject::Topic { topic, connector }, Some(members)) => {
                let (task, discovered_ms) = records::read_topic(&members)?;
                let status = TopicStatus { task, discovered_ms };
                self.topics.entry(connector.to_owned()).or_default().insert(topic.to_owned(), status);
            }
        }
        Ok(Removed::Nothing)
    }
}

/// Whether a task that runs was given up by someone else before that.
fn is_stale(known: &Status, told: &Status) -> bool {
    told.state == State::Unassigned && known.state == State::Running && known.generation >= told.generation
}

fn members(value: Read) -> Result<Map<String, Value>, String> {
    match value {
        Read::Object(members) => Ok(members),
        Read::Tombstone => Err("its value is null".to_owned()),
        Read::Other(kind) => Err(format!("its value is {kind} and not an object")),
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
