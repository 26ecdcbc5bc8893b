//! What a member runs: connector instances and tasks, as sets to calculate with.

use std::collections::BTreeSet;
use std::fmt;

/// One task of a connector. Ordered by connector, then by number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// The connector's name.
    pub connector: String,
    /// Its number, from 0.
    pub task: i32,
}

impl TaskId {
    /// Task `task` of `connector`.
    pub fn new(connector: impl Into<String>, task: i32) -> Self {
        Self { connector: connector.into(), task }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.connector, self.task)
    }
}

/// Connector instances and tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// Names of the connectors whose instance is meant.
    pub connectors: BTreeSet<String>,
    /// Tasks.
    pub tasks: BTreeSet<TaskId>,
}

impl Load {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.connectors.is_empty() && self.tasks.is_empty()
    }

    /// How many connectors and tasks there are.
    pub fn len(&self) -> usize {
        self.connectors.len() + self.tasks.len()
    }

    /// This and `other`.
    pub fn union(&self, other: &Load) -> Load {
        let mut union = self.clone();
        union.insert_all(other);
        union
    }

    /// What is here and not in `other`.
    pub fn difference(&self, other: &Load) -> Load {
        Load {
            connectors: self.connectors.difference(&other.connectors).cloned().collect(),
            tasks: self.tasks.difference(&other.tasks).cloned().collect(),
        }
    }

    /// What is here and in `other`.
    pub fn intersection(&self, other: &Load) -> Load {
        Load {
            connectors: self.connectors.intersection(&other.connectors).cloned().collect(),
            tasks: self.tasks.intersection(&other.tasks).cloned().collect(),
        }
    }

    /// Adds what is in `other`.
    pub fn insert_all(&mut self, other: &Load) {
        self.connectors.extend(other.connectors.iter().cloned());
        self.tasks.extend(other.tasks.iter().cloned());
    }

    /// Takes away what is in `other`.
    pub fn remove_all(&mut self, other: &Load) {
        self.connectors.retain(|connector| !other.connectors.contains(connector));
        self.tasks.retain(|task| !other.tasks.contains(task));
    }
}
