//! Task configurations: asked of connector instances, compared with those in force, written by the leader or sent to it.

use super::errors::{not_leader, unknown_connector};
use super::job::Done;
use super::tick::Tick;
use crate::decide::backoff::repeat_wait;
use crate::decide::reconfigure::{InForce, reason};
use oncewire_api::Properties;
use oncewire_plugins::providers::ConfigProviders;
use oncewire_rest::herder::Answer;
use oncewire_rest::model::ConfigMap;
use oncewire_rest::{HerderError, SigningKey};
use oncewire_topics::TargetState;
use oncewire_worker::worker::ReconfigureError;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// The class of a connector's tasks, for Java workers.
const TASK_CLASS: &str = "task.class";

/// Connectors whose tasks are to be looked at. Bound: one entry for each connector here.
#[derive(Debug, Default)]
pub(super) struct Reconfigurations(BTreeMap<String, Reconfiguration>);

#[derive(Debug)]
struct Reconfiguration {
    /// Tries that failed in a row.
    failed: u32,
    /// When it is due; `None` while a job is at it.
    due: Option<Instant>,
    /// It was asked for again while a job was at it.
    again: bool,
}

impl Reconfigurations {
    /// As soon as possible.
    pub(super) fn ask(&mut self, connector: &str) {
        let now = Instant::now();
        let entry =
            self.0.entry(connector.to_owned()).or_insert(Reconfiguration { failed: 0, due: Some(now), again: false });
        match &mut entry.due {
            Some(due) => *due = now.min(*due),
            None => entry.again = true,
        }
    }

    /// No longer.
    pub(super) fn forget(&mut self, connector: &str) {
        self.0.remove(connector);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.values().filter_map(|entry| entry.due).min()
    }

    /// Whether something is due or being worked on; not what waits because it failed.
    pub(super) fn more_to_come(&self, now: Instant) -> bool {
        self.0.values().any(|entry| entry.due.is_none_or(|due| due <= now))
    }

    /// When the round has ended.
    fn postponed(&mut self, connector: &str) {
        if let Some(entry) = self.0.get_mut(connector) {
            entry.due = Some(Instant::now());
        }
    }

    fn take_due(&mut self, now: Instant) -> Vec<String> {
        let mut due = Vec::new();
        for (connector, entry) in &mut self.0 {
            if entry.due.is_some_and(|at| at <= now) {
                entry.due = None;
                due.push(connector.clone());
            }
        }
        due
    }

    fn succeeded(&mut self, connector: &str) {
        if self.0.remove(connector).is_some_and(|entry| entry.again) {
            self.ask(connector);
        }
    }

    fn failed(&mut self, connector: &str) {
        if let Some(entry) = self.0.get_mut(connector) {
            entry.failed = entry.failed.saturating_add(1);
            entry.due = Some(Instant::now() + repeat_wait(entry.failed));
        }
    }
}

impl Tick {
    pub(super) fn start_due_reconfigurations(&mut self) {
        if self.is_rebalancing() {
            return;
        }
        for connector in self.reconfigurations.take_due(Instant::now()) {
            let worker = self.parts.worker.clone();
            self.jobs.spawn(async move {
                let result = worker.task_configs(&connector).await;
                Done::TaskConfigs { connector, result }
            });
        }
    }

    pub(super) async fn on_task_configs(
        &mut self,
        connector: String,
        result: Result<Vec<Properties>, ReconfigureError>,
    ) {
        let made = match result {
            Ok(made) => made,
            Err(ReconfigureError::NotRunning) => return self.reconfigurations.forget(&connector),
            Err(ReconfigureError::TooManyTasks(problem)) => {
                tracing::error!(connector, "{problem}");
                return self.reconfigurations.forget(&connector);
            }
            Err(ReconfigureError::Failed(problem)) => {
                tracing::warn!(connector, "making task configurations failed, trying again: {problem}");
                return self.reconfigurations.failed(&connector);
            }
        };
        let Some(configs) = self.changed_configs(&connector, &made) else {
            return self.reconfigurations.succeeded(&connector);
        };
        if self.is_rebalancing() {
            return self.reconfigurations.postponed(&connector);
        }
        if self.leads() {
            let written = self.parts.view.configs.put_task_configs(&connector, &configs).await;
            match self.written(written) {
                Ok(()) => self.reconfigurations.succeeded(&connector),
                Err(_) => self.reconfigurations.failed(&connector),
            }
        } else {
            self.send_to_leader(connector, configs);
        }
    }

    /// The configurations to publish; `None` when those in force are the same.
    fn changed_configs(&self, connector: &str, made: &[Properties]) -> Option<Vec<ConfigMap>> {
        let snapshot = self.parts.view.snapshot();
        let current = snapshot.config(connector)?;
        if snapshot.target_state(connector).is_some_and(|state| state == TargetState::Stopped) {
            return None;
        }
        let class = crate::kinds::task_class(&self.parts.registry, current);
        let configs: Vec<ConfigMap> = made
            .iter()
            .map(|made| {
                let kept = ConfigProviders::keep_references(current, made);
                let mut config: ConfigMap = kept.into_iter().map(|(key, value)| (key, Some(value))).collect();
                if let Some(class) = &class {
                    config.insert(TASK_CLASS.to_owned(), Some(class.clone()));
                }
                config
            })
            .collect();
        let tasks: Vec<ConfigMap> = snapshot.task_configs(connector).iter().map(|config| (**config).clone()).collect();
        let applied = snapshot.applied_config(connector).map(|config| &**config);
        let reason = if snapshot.inconsistent(connector) || snapshot.lost_tasks(connector) {
            Some("the task configurations in the config topic are not complete")
        } else {
            reason(&configs, InForce { tasks: &tasks, applied, current })
        };
        tracing::debug!(connector, reason, "task configurations were made");
        reason.map(|_| configs)
    }

    fn send_to_leader(&mut self, connector: String, configs: Vec<ConfigMap>) {
        let Some(url) = self.parts.view.group().leader_url else {
            return self.reconfigurations.failed(&connector);
        };
        let (rest, view) = (self.parts.rest.clone(), self.parts.view.clone());
        let algorithm = self.parts.config.session_keys.signature_algorithm.clone();
        self.jobs.spawn(async move {
            let snapshot = view.snapshot();
            let key = snapshot.session_key().filter(|_| view.group().is_signed());
            let key = key.map(|key| SigningKey { algorithm: &algorithm, key: &key.key });
            let sent = rest.put_task_configs(&url, &connector, &configs, key).await;
            let result = sent.map_err(|error| format!("{error:?}"));
            Done::Forwarded { connector, result }
        });
    }

    pub(super) fn on_forwarded(&mut self, connector: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.reconfigurations.succeeded(connector),
            Err(problem) => {
                tracing::info!(connector, "the leader did not take the task configurations, trying again: {problem}");
                self.reconfigurations.failed(connector);
            }
        }
    }

    /// Task configurations from the connector's owner.
    pub(super) async fn take_task_configs(&mut self, name: &str, configs: Vec<ConfigMap>) -> Answer<()> {
        if !self.leads() {
            return Err(not_leader(&self.parts.view));
        }
        let snapshot = self.parts.view.snapshot();
        if !snapshot.contains(name) {
            return Err(unknown_connector(name));
        }
        if !configs.is_empty() && snapshot.target_state(name) == Some(TargetState::Stopped) {
            return Err(HerderError::BadRequest(
                "Cannot submit non-empty set of task configs for stopped connector".to_owned(),
            ));
        }
        let written = self.parts.view.configs.put_task_configs(name, &configs).await;
        self.written(written)
    }
}
