//! What follows from new records in the config topic.
//!
//! ```text
//! connector added, removed; tasks committed → rebalance, one for a wave of them (tasks of the connector that run here stop at once)
//! connector deleted and made again           → what runs here of the old one stops at once
//! connector reconfigured                    → its instance here starts anew, and then looks at its tasks
//! target state                              → applied to what runs here
//! restart, logger level                     → carried out on what is here
//! ```

use super::tick::Tick;
use super::work::target;
use crate::view::now_ms;
use oncewire_membership::Load;
use oncewire_rest::HerderError;
use oncewire_topics::Changes;
use oncewire_worker::worker::TargetState;
use tokio::time::Instant;

impl Tick {
    pub(super) async fn on_config_changes(&mut self) {
        self.parts.view.begin_stage("following the config topic");
        let changes = self.parts.view.configs.take_changes();
        if let Some(trouble) = &changes.trouble {
            // Whoever follows it has told it already.
            tracing::debug!("the config topic can't be followed: {trouble}");
        }
        self.apply(changes).await;
        self.parts.view.note_config_changes();
    }

    async fn apply(&mut self, changes: Changes) {
        for (namespace, level) in &changes.loggers {
            if self.parts.loggers.set(namespace, level, now_ms()).is_none() {
                tracing::warn!(namespace, "too many loggers have a level of their own; this one is passed over");
            }
        }
        let eager = self.held.as_ref().is_some_and(|held| held.protocol.is_eager());
        let rebalance = !changes.added.is_empty() || !changes.removed.is_empty() || !changes.task_commits.is_empty();
        for connector in &changes.task_commits {
            self.rounds.supersede(connector);
        }
        self.stop_predecessors(&changes).await;
        if !eager {
            self.stop_recommitted_tasks(&changes).await;
        }
        for connector in changes.reconfigured.iter().filter(|connector| !changes.removed.contains(*connector)) {
            self.bounce_connector(connector).await;
        }
        for connector in &changes.target_states {
            self.apply_target(connector);
        }
        for request in changes.restarts.into_values() {
            self.carry_out_restart(&request).await;
        }
        if rebalance {
            self.wave.note(Instant::now());
        }
    }

    /// What runs here of a connector that was deleted and made again before a round took it away is not the new one's: it would
    /// be taken for it by the next round, and never be started.
    async fn stop_predecessors(&mut self, changes: &Changes) {
        let mut load = self.running();
        load.connectors.retain(|connector| changes.added.contains(connector));
        load.tasks.retain(|task| changes.added.contains(&task.connector));
        if !load.is_empty() {
            self.stop_load(&load).await;
        }
    }

    /// Tasks whose configurations were committed anew are started again by the rebalance that follows.
    async fn stop_recommitted_tasks(&mut self, changes: &Changes) {
        let mut tasks = self.running().tasks;
        tasks.retain(|task| changes.task_commits.contains(&task.connector));
        if !tasks.is_empty() {
            self.stop_load(&Load { tasks, ..Load::default() }).await;
        }
    }

    /// A connector whose configuration changed starts anew with it.
    pub(super) async fn bounce_connector(&mut self, connector: &str) {
        if !self.parts.worker.running_connectors().contains(connector) {
            return;
        }
        self.reconfigurations.forget(connector);
        self.parts.worker.stop_connectors(&[connector.to_owned()]).await;
        self.start_connector(connector);
    }

    fn apply_target(&mut self, connector: &str) {
        let snapshot = self.parts.view.snapshot();
        if !snapshot.contains(connector) {
            return;
        }
        let target = target(snapshot.target_state(connector));
        if let Some(transition) = self.parts.worker.set_target(connector, target) {
            let connector = connector.to_owned();
            self.jobs.spawn(async move {
                let result = transition.done().await;
                super::job::Done::ConnectorReady { connector, result }
            });
        }
    }

    /// A connector instance is where it was to be: if it works, its tasks are looked at.
    pub(super) fn on_connector_ready(&mut self, connector: &str, result: Result<TargetState, String>) {
        match result {
            Ok(TargetState::Started) => self.reconfigurations.ask(connector),
            Ok(_) => {}
            Err(problem) => tracing::debug!(connector, "did not reach its state: {problem}"),
        }
    }

    /// What connectors asked for since the last look.
    pub(super) fn on_wishes(&mut self) {
        let asked = self.wishes.take();
        for connector in &asked.reconfigure {
            self.reconfigurations.ask(connector);
        }
        for (connector, problem) in asked.failed {
            tracing::error!(connector, "connector failed: {problem}");
        }
    }

    /// Whether a task may still start after its producer took its id.
    pub(super) fn verify(&self, connector: &str, task: u32, generation: u64) -> Result<(), HerderError> {
        let snapshot = self.parts.view.snapshot();
        if snapshot.generation(connector) != generation {
            return Err(HerderError::Conflict(super::gate::old(connector, task)));
        }
        let assigned = self.held.as_ref().is_some_and(|held| {
            let mut tasks = held.assignment.assigned.tasks.iter();
            tasks.any(|id| id.connector == connector && u32::try_from(id.task) == Ok(task))
        });
        if !assigned || self.draining.is_on() {
            return Err(HerderError::Conflict(format!(
                "Cannot start source task {connector}-{task} as it has already been revoked from this worker"
            )));
        }
        Ok(())
    }
}
