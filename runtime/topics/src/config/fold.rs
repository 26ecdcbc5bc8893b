//! What the records of the config topic come to. Pure.
//!
//! ```text
//! connector-c ─► configs[c]                     the tasks' view changes at a commit only:
//! task-c-n    ─► deferred[c][n] ──┐
//! commit-c    ─► all of 0..count there? ── yes ─► tasks[c] = deferred, generation + 1, consistent
//!                                  └─────── no ─► inconsistent: no tasks until a complete set
//! ```
//!
//! Every way in which compaction can thin the log out is an order of records that must be understood. Three are worth telling:
//! task configs of an earlier commit are gone (inconsistent); a connector's config was written again after its last commit, so
//! that the commit comes first and is passed over (its tasks are lost, the connector makes them anew); everything of a deleted
//! connector is gone but its tasks and commit (passed over, too). Whether a passed-over commit matters is known at the end of the
//! replay only. In all three the visible state is the one that Java workers have, since a cluster's members have to agree on it.
//!
//! Records that take effect once (restarts, logger levels) count only after the replay.
//!
//! Sources: the class documentation of Kafka Connect's `KafkaConfigBackingStore`; KIP-618, KIP-745, KIP-875, KIP-976.

use super::changes::Changes;
use super::records::{self, TargetState};
use super::snapshot::ConfigSnapshot;
use crate::json::{self, Read};
use crate::{Config, keys};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A record that could not be used; `Err` holds the reason, which quotes no values of configs.
type Applied = Result<(), String>;

/// The fold of the config topic.
#[derive(Debug, Clone, Default)]
pub struct ConfigFold {
    snapshot: ConfigSnapshot,
    /// Task configs that no commit has made visible. An empty map says that there were some, as Java's does: that counts for
    /// the generation.
    deferred: BTreeMap<String, BTreeMap<u32, Arc<Config>>>,
    changes: Changes,
    live: bool,
}

impl ConfigFold {
    /// Nothing read yet. `live`: the replay is over, so restarts and logger levels count.
    #[must_use]
    pub fn new(live: bool) -> Self {
        Self { live, ..Self::default() }
    }

    /// Ends the replay: what was told until now is where the worker starts, not a change.
    pub fn go_live(&mut self) {
        self.live = true;
        self.changes = Changes::default();
        let ConfigSnapshot { configs, lost_tasks, .. } = &mut self.snapshot;
        // The others are leftovers of connectors that were deleted.
        lost_tasks.retain(|connector| configs.contains_key(connector));
        for connector in self.snapshot.connectors().filter(|connector| self.snapshot.lost_tasks(connector)) {
            tracing::info!(
                connector,
                "compaction left the connector without its task configs; it has no tasks until it has made them again"
            );
        }
    }

    /// The state after the last record.
    #[must_use]
    pub fn snapshot(&self) -> &ConfigSnapshot {
        &self.snapshot
    }

    /// What is new since the last call.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Takes in the next record of the log. Transaction markers are none.
    pub fn apply(&mut self, offset: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
        let Some(key) = key.map(String::from_utf8_lossy) else {
            self.snapshot.offset = offset + 1;
            tracing::error!(offset, "config topic: a record without a key was passed over");
            return;
        };
        let value = match json::read(value) {
            Ok(value) => value,
            // Java doesn't count such a record either.
            Err(reason) => {
                tracing::error!(offset, key = %key, "config topic: a record's value is no JSON and was passed over: {reason}");
                return;
            }
        };
        self.snapshot.offset = offset + 1;
        if let Err(reason) = self.dispatch(&key, value) {
            tracing::error!(offset, key = %key, "config topic: a record was passed over: {reason}");
        }
    }

    fn dispatch(&mut self, key: &str, value: Read) -> Applied {
        if let Some(connector) = key.strip_prefix(records::TARGET_STATE) {
            self.target_state(connector, value)
        } else if let Some(connector) = key.strip_prefix(records::CONNECTOR) {
            self.connector(connector, value)
        } else if let Some(rest) = key.strip_prefix(records::TASK) {
            self.task(rest, value)
        } else if let Some(connector) = key.strip_prefix(records::COMMIT) {
            self.commit(connector, value)
        } else if let Some(connector) = key.strip_prefix(records::RESTART) {
            self.restart(connector, value)
        } else if let Some(connector) = key.strip_prefix(records::TASK_COUNT) {
            self.task_count(connector, value)
        } else if key == records::SESSION_KEY {
            self.session_key(value)
        } else if let Some(namespace) = key.strip_prefix(records::LOGGER) {
            self.logger(namespace, value)
        } else {
            Err("its key is of no known kind".to_owned())
        }
    }

    fn target_state(&mut self, connector: &str, value: Read) -> Applied {
        let is_known = self.snapshot.contains(connector);
        if matches!(value, Read::Tombstone) {
            self.snapshot.target_states.remove(connector);
            if is_known {
                self.snapshot.target_states.insert(connector.to_owned(), TargetState::Started);
            }
            return Ok(());
        }
        let state = records::read_target_state(&members(value)?)?;
        let before = self.snapshot.target_states.insert(connector.to_owned(), state);
        // A connector that is about to be created starts in this state, it does not change to it.
        if is_known && before != Some(state) {
            self.changes.target_states.insert(connector.to_owned());
        }
        Ok(())
    }

    fn connector(&mut self, connector: &str, value: Read) -> Applied {
        if matches!(value, Read::Tombstone) {
            if self.snapshot.contains(connector) {
                self.changes.removed(connector);
            }
            self.forget(connector);
            self.snapshot.lost_tasks.remove(connector);
            return Ok(());
        }
        let config = records::read_properties(&members(value)?)?;
        let before = self.snapshot.configs.insert(connector.to_owned(), Arc::new(config));
        self.snapshot.target_states.entry(connector.to_owned()).or_default();
        self.changes.configured(connector, before.is_none());
        Ok(())
    }

    fn task(&mut self, rest: &str, value: Read) -> Applied {
        let (connector, task) = keys::task(rest).ok_or("its key names no task")?;
        let config = records::read_properties(&members(value)?)?;
        self.deferred.entry(connector.to_owned()).or_default().insert(task, Arc::new(config));
        Ok(())
    }

    fn commit(&mut self, connector: &str, value: Read) -> Applied {
        let Some(config) = self.snapshot.configs.get(connector).cloned() else {
            self.forget(connector);
            if !self.live {
                self.snapshot.lost_tasks.insert(connector.to_owned());
            }
            tracing::debug!(
                connector,
                "config topic: a commit of tasks was passed over: the connector has no config yet"
            );
            return Ok(());
        };
        let count = records::read_count(&members(value)?, "tasks")?;
        let deferred = self.deferred.get_mut(connector);
        let found = deferred.as_ref().map_or(0, |deferred| deferred.range(..count).count());
        let tasks = self.snapshot.tasks.entry(connector.to_owned()).or_default();
        tasks.count = count;
        if u32::try_from(found) == Ok(count) {
            if let Some(deferred) = deferred {
                let mut configs = std::mem::take(deferred);
                configs.split_off(&count);
                tasks.configs = configs;
                *self.snapshot.generations.entry(connector.to_owned()).or_default() += 1;
            }
            self.snapshot.inconsistent.remove(connector);
            self.snapshot.lost_tasks.remove(connector);
            self.snapshot.applied.insert(connector.to_owned(), config);
        } else {
            tracing::debug!(connector, count, found, "config topic: a commit of tasks is not complete");
            if let Some(deferred) = deferred {
                deferred.clear();
            }
            self.snapshot.inconsistent.insert(connector.to_owned());
        }
        self.snapshot.pending_fencing.insert(connector.to_owned());
        self.changes.task_commits.insert(connector.to_owned());
        Ok(())
    }

    fn restart(&mut self, connector: &str, value: Read) -> Applied {
        let members = members(value)?;
        if self.live {
            self.changes.restart(records::read_restart(connector, &members));
        }
        Ok(())
    }

    fn task_count(&mut self, connector: &str, value: Read) -> Applied {
        let count = records::read_count(&members(value)?, "task-count")?;
        self.snapshot.task_count_records.insert(connector.to_owned(), count);
        self.snapshot.pending_fencing.remove(connector);
        Ok(())
    }

    fn session_key(&mut self, value: Read) -> Applied {
        self.snapshot.session_key = Some(records::read_session_key(&members(value)?)?);
        self.changes.session_key = true;
        Ok(())
    }

    fn logger(&mut self, namespace: &str, value: Read) -> Applied {
        let members = members(value)?;
        if self.live {
            self.changes.loggers.insert(namespace.to_owned(), records::read_level(&members)?);
        }
        Ok(())
    }

    /// What goes with a connector's config. Its task count record, generation and pending fencing stay: a connector that is
    /// made again under the name must still fence the tasks of the old one.
    fn forget(&mut self, connector: &str) {
        self.snapshot.configs.remove(connector);
        self.snapshot.tasks.remove(connector);
        self.snapshot.applied.remove(connector);
        self.deferred.remove(connector);
    }
}

fn members(value: Read) -> Result<Map<String, Value>, String> {
    match value {
        Read::Object(members) => Ok(members),
        Read::Tombstone => Err("its value is empty, which has no meaning for its key".to_owned()),
        Read::Other(kind) => Err(format!("its value is {kind} and not an object")),
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
