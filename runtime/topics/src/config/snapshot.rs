//! What the config topic says, up to one offset. Cheap to clone: configs are shared.

use super::records::{SessionKey, TargetState};
use crate::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state of a Connect cluster's configuration at [`offset`](Self::offset).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSnapshot {
    /// One more than the last record's offset, -1 before the first. Transaction markers and values that are no JSON don't
    /// count, so that all workers that read the same records tell the same offset.
    pub(crate) offset: i64,
    pub(crate) configs: BTreeMap<String, Arc<Config>>,
    pub(crate) target_states: BTreeMap<String, TargetState>,
    pub(crate) tasks: BTreeMap<String, CommittedTasks>,
    pub(crate) applied: BTreeMap<String, Arc<Config>>,
    pub(crate) task_count_records: BTreeMap<String, u32>,
    pub(crate) generations: BTreeMap<String, u64>,
    pub(crate) pending_fencing: BTreeSet<String>,
    pub(crate) inconsistent: BTreeSet<String>,
    pub(crate) lost_tasks: BTreeSet<String>,
    pub(crate) session_key: Option<SessionKey>,
}

/// What the last commits of a connector's tasks left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CommittedTasks {
    /// The last commit's count.
    pub(crate) count: u32,
    /// The configs of the last complete set.
    pub(crate) configs: BTreeMap<u32, Arc<Config>>,
}

impl Default for ConfigSnapshot {
    fn default() -> Self {
        Self {
            offset: -1,
            configs: BTreeMap::new(),
            target_states: BTreeMap::new(),
            tasks: BTreeMap::new(),
            applied: BTreeMap::new(),
            task_count_records: BTreeMap::new(),
            generations: BTreeMap::new(),
            pending_fencing: BTreeSet::new(),
            inconsistent: BTreeSet::new(),
            lost_tasks: BTreeSet::new(),
            session_key: None,
        }
    }
}

impl ConfigSnapshot {
    /// One more than the offset of the last record, -1 when there is none. What group members tell each other.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The connectors that have a config, in the order of their names.
    pub fn connectors(&self) -> impl Iterator<Item = &str> {
        self.configs.keys().map(String::as_str)
    }

    /// Whether a connector has a config.
    #[must_use]
    pub fn contains(&self, connector: &str) -> bool {
        self.configs.contains_key(connector)
    }

    /// A connector's config.
    #[must_use]
    pub fn config(&self, connector: &str) -> Option<&Arc<Config>> {
        self.configs.get(connector)
    }

    /// A connector's target state; every connector with a config has one.
    #[must_use]
    pub fn target_state(&self, connector: &str) -> Option<TargetState> {
        self.target_states.get(connector).copied()
    }

    /// The count of the last commit, whether or not its task configs are there; 0 without one.
    #[must_use]
    pub fn task_count(&self, connector: &str) -> u32 {
        self.tasks.get(connector).map_or(0, |tasks| tasks.count)
    }

    /// A connector's tasks; none where the last set is not complete.
    #[must_use]
    pub fn tasks(&self, connector: &str) -> Vec<u32> {
        if self.inconsistent.contains(connector) {
            return Vec::new();
        }
        // By what is there, not by the count alone: nobody should get a task without its config.
        self.tasks
            .get(connector)
            .map_or_else(Vec::new, |tasks| tasks.configs.range(..tasks.count).map(|(task, _)| *task).collect())
    }

    /// A task's config out of the last complete set.
    #[must_use]
    pub fn task_config(&self, connector: &str, task: u32) -> Option<&Arc<Config>> {
        self.tasks.get(connector)?.configs.get(&task)
    }

    /// The configs of all tasks of the last complete set, in order.
    #[must_use]
    pub fn task_configs(&self, connector: &str) -> Vec<Arc<Config>> {
        self.tasks(connector).into_iter().filter_map(|task| self.task_config(connector, task).cloned()).collect()
    }

    /// Whether the last commit's task configs are not all there, so that they must be made again.
    #[must_use]
    pub fn inconsistent(&self, connector: &str) -> bool {
        self.inconsistent.contains(connector)
    }

    /// Whether the connector had task configs that can't be used any more: the last commit is incomplete, or compaction
    /// left it in front of the connector's config. They must be made again by the connector.
    #[must_use]
    pub fn lost_tasks(&self, connector: &str) -> bool {
        self.inconsistent.contains(connector) || self.lost_tasks.contains(connector)
    }

    /// How many tasks may have to be fenced (KIP-618): the last task count record.
    #[must_use]
    pub fn task_count_record(&self, connector: &str) -> Option<u32> {
        self.task_count_records.get(connector).copied()
    }

    /// How many complete sets of task configs this worker has seen; 0 for none. Only to be compared with itself: workers that
    /// read the topic before and after a compaction count differently.
    #[must_use]
    pub fn generation(&self, connector: &str) -> u64 {
        self.generations.get(connector).copied().unwrap_or(0)
    }

    /// Whether task configs were committed after the last task count record, so that older tasks must be fenced first.
    #[must_use]
    pub fn pending_fencing(&self, connector: &str) -> bool {
        self.pending_fencing.contains(connector)
    }

    /// The connector config that was in force at the last complete set of task configs (KAFKA-9228).
    #[must_use]
    pub fn applied_config(&self, connector: &str) -> Option<&Arc<Config>> {
        self.applied.get(connector)
    }

    /// What requests between workers are signed with.
    #[must_use]
    pub fn session_key(&self) -> Option<&SessionKey> {
        self.session_key.as_ref()
    }
}
