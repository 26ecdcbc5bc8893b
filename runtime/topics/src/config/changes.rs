//! What the config topic has told since the herder last asked, as sets.

use super::records::RestartRequest;
use std::collections::{BTreeMap, BTreeSet};

/// News since the last [`ConfigTopic::take_changes`](crate::ConfigTopic::take_changes). Bounded by the names in the topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Connectors that got a config and had none.
    pub added: BTreeSet<String>,
    /// Connectors whose config was written again, also when it is the same.
    pub reconfigured: BTreeSet<String>,
    /// Connectors whose config was removed. A name that is also in `added` was made again since.
    pub removed: BTreeSet<String>,
    /// Connectors whose target state is another.
    pub target_states: BTreeSet<String>,
    /// Connectors whose task configs were committed, complete or not.
    pub task_commits: BTreeSet<String>,
    /// There is a new session key.
    pub session_key: bool,
    /// Restarts by connector; of several the one with the highest impact.
    pub restarts: BTreeMap<String, RestartRequest>,
    /// Logger levels by namespace, the newest.
    pub loggers: BTreeMap<String, String>,
    /// The topic cannot be followed any further, with the reason; told once for each time.
    pub trouble: Option<String>,
}

impl Changes {
    /// Whether there is nothing new.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn configured(&mut self, connector: &str, is_new: bool) {
        if is_new {
            self.added.insert(connector.to_owned());
        } else if !self.added.contains(connector) {
            self.reconfigured.insert(connector.to_owned());
        }
    }

    pub(crate) fn removed(&mut self, connector: &str) {
        self.removed.insert(connector.to_owned());
        for set in [&mut self.added, &mut self.reconfigured, &mut self.target_states, &mut self.task_commits] {
            set.remove(connector);
        }
    }

    pub(crate) fn restart(&mut self, request: RestartRequest) {
        match self.restarts.get(&request.connector) {
            Some(known) if known.impact() >= request.impact() => {}
            _ => {
                self.restarts.insert(request.connector.clone(), request);
            }
        }
    }

    /// Adds what came later.
    pub(crate) fn merge(&mut self, later: Self) {
        let Self { added, reconfigured, removed, target_states, task_commits, session_key, restarts, loggers, trouble } =
            later;
        removed.iter().for_each(|connector| self.removed(connector));
        added.iter().for_each(|connector| self.configured(connector, true));
        reconfigured.iter().for_each(|connector| self.configured(connector, false));
        self.target_states.extend(target_states);
        self.task_commits.extend(task_commits);
        self.session_key |= session_key;
        restarts.into_values().for_each(|request| self.restart(request));
        self.loggers.extend(loggers);
        self.trouble = trouble.or(self.trouble.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(only_failed: bool) -> RestartRequest {
        RestartRequest { connector: "c".into(), only_failed, include_tasks: false }
    }

    #[test]
    fn the_restart_with_the_highest_impact_counts() {
        let mut changes = Changes::default();
        changes.restart(request(false));
        changes.restart(request(true));
        assert!(!changes.restarts["c"].only_failed);
    }

    #[test]
    fn a_connector_that_was_removed_and_made_again_is_in_both_sets() {
        let mut changes = Changes::default();
        changes.configured("c", false);
        let mut later = Changes::default();
        later.removed("c");
        later.configured("c", true);
        changes.merge(later);
        assert!(changes.removed.contains("c") && changes.added.contains("c") && changes.reconfigured.is_empty());
    }

    #[test]
    fn a_connector_that_came_and_went_is_only_removed() {
        let mut changes = Changes::default();
        changes.configured("c", true);
        changes.task_commits.insert("c".into());
        changes.removed("c");
        assert!(changes.added.is_empty() && changes.task_commits.is_empty() && changes.removed.contains("c"));
    }
}
