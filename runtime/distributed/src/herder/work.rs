//! Starting and stopping what is assigned.

use super::gate::Gate;
use super::group::task_pair;
use super::job::Done;
use super::tick::Tick;
use oncewire_api::ConnectorRequest;
use oncewire_membership::{Load, TaskId};
use oncewire_topics::TargetState as Written;
use oncewire_worker::worker::{State, Statuses, TargetState, TaskStart, Transition};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Tick {
    /// Starts what is assigned and not here, stops what is here and not assigned.
    pub(super) async fn start_assigned(&mut self) {
        if self.draining.is_on() {
            return;
        }
        let Some(held) = &self.held else { return };
        let assigned = held.assignment.assigned.clone();
        let here = self.running();
        let surplus = here.difference(&assigned);
        if !surplus.is_empty() {
            self.stop_load(&surplus).await;
        }
        let missing = assigned.difference(&here);
        for connector in &missing.connectors {
            self.start_connector(connector);
        }
        for task in &missing.tasks {
            self.start_task(task);
        }
    }

    /// What is here, failed or not.
    pub(super) fn running(&self) -> Load {
        let tasks = self.parts.worker.running_tasks().into_iter();
        let tasks = tasks.filter_map(|(connector, task)| Some(TaskId::new(connector, i32::try_from(task).ok()?)));
        Load { connectors: self.parts.worker.running_connectors(), tasks: tasks.collect() }
    }

    /// Brings a connector instance up; its tasks are looked at when it is there.
    pub(super) fn start_connector(&mut self, name: &str) {
        if let Some(transition) = self.begin_connector(name) {
            let connector = name.to_owned();
            self.jobs.spawn(async move {
                let result = transition.done().await;
                Done::ConnectorReady { connector, result }
            });
        }
    }

    /// The first half of a start; the state is told to the status topic by the worker. `None`: it failed at once, or is gone.
    pub(super) fn begin_connector(&mut self, name: &str) -> Option<Transition> {
        let snapshot = self.parts.view.snapshot();
        let raw = snapshot.config(name)?;
        let target = target(snapshot.target_state(name));
        let config = match crate::kinds::resolved(&self.parts.providers, name, raw) {
            Ok(config) => config,
            Err(problem) => {
                self.statuses().connector(name, State::Failed, Some(problem.to_string()));
                return None;
            }
        };
        tracing::info!(connector = name, "starting");
        let (wishes, connector) = (self.wishes.clone(), name.to_owned());
        let requests = Arc::new(move |request: ConnectorRequest| wishes.note(&connector, request));
        Some(self.parts.worker.start_connector(name, config, target, requests))
    }

    /// Starts one task; what goes wrong is its status.
    pub(super) fn start_task(&mut self, id: &TaskId) {
        let Some((connector, task)) = task_pair(id) else { return };
        let snapshot = self.parts.view.snapshot();
        let Some(start) = self.task_start(&connector, task) else {
            let trace = format!("task {connector}-{task} has no configuration in the config topic");
            if snapshot.contains(&connector) {
                self.statuses().task(&connector, task, State::Failed, Some(trace));
            }
            return;
        };
        match start {
            Ok(start) => {
                tracing::info!(task = %id, "starting");
                self.slept.forget(&connector, task);
                if let Err(problem) = self.parts.worker.start_task(start) {
                    tracing::warn!(task = %id, "not started: {problem}");
                }
            }
            Err(problem) => self.statuses().task(&connector, task, State::Failed, Some(problem)),
        }
    }

    fn task_start(&self, connector: &str, task: u32) -> Option<Result<TaskStart, String>> {
        let snapshot = self.parts.view.snapshot();
        let raw = snapshot.config(connector)?;
        let raw_task = snapshot.task_config(connector, task)?;
        let providers = &self.parts.providers;
        let both = (crate::kinds::resolved(providers, connector, raw), providers.resolve(raw_task));
        let (connector_config, task_config) = match both {
            (Ok(connector), Ok(task)) => (connector, task),
            (Err(problem), _) | (_, Err(problem)) => return Some(Err(problem.to_string())),
        };
        let gate = Gate {
            connector: connector.to_owned(),
            task,
            generation: snapshot.generation(connector),
            view: self.parts.view.clone(),
            commands: self.parts.commands.clone(),
            rest: self.parts.rest.clone(),
            signature_algorithm: self.parts.config.session_keys.signature_algorithm.clone(),
        };
        Some(Ok(TaskStart {
            connector: connector.to_owned(),
            task,
            task_count: usize::try_from(snapshot.task_count(connector)).unwrap_or(usize::MAX),
            connector_config,
            task_config,
            target: target(snapshot.target_state(connector)),
            gate: Arc::new(gate),
        }))
    }

    /// Stops connectors, then tasks, and has their statuses written.
    pub(super) async fn stop_load(&mut self, load: &Load) {
        let connectors: Vec<String> = load.connectors.iter().cloned().collect();
        let tasks: Vec<(String, u32)> = load.tasks.iter().filter_map(task_pair).collect();
        for connector in &connectors {
            self.reconfigurations.forget(connector);
        }
        tokio::join!(self.parts.worker.stop_connectors(&connectors), self.parts.worker.stop_tasks(&tasks));
    }

    /// Stops everything that is here.
    pub(super) async fn stop_everything(&mut self) {
        let load = self.running();
        self.stop_load(&load).await;
        self.forget_topics(&load);
    }

    /// Of connectors that are deleted the topics that they wrote to are no longer known. Told by who ran them, after they
    /// have stopped: told by the leader at once, a task that still writes would make it known again.
    pub(super) fn forget_topics(&self, stopped: &Load) {
        let snapshot = self.parts.view.snapshot();
        let names = stopped.connectors.iter().chain(stopped.tasks.iter().map(|task| &task.connector));
        let gone: BTreeSet<&String> = names.filter(|name| !snapshot.contains(name)).collect();
        gone.into_iter().for_each(|connector| self.parts.view.statuses.delete_topics(connector));
    }

    pub(super) fn statuses(&self) -> crate::statuses::Told {
        crate::statuses::Told::new(
            self.parts.view.clone(),
            self.parts.worker_id.clone(),
            self.parts.registry.clone(),
            self.parts.providers.secrets().clone(),
            self.parts.config.topic_tracking,
        )
    }
}

/// The worker's word for a written target state; a connector without one is to run.
pub(super) fn target(written: Option<Written>) -> TargetState {
    match written {
        Some(Written::Paused) => TargetState::Paused,
        Some(Written::Stopped) => TargetState::Stopped,
        Some(Written::Started) | None => TargetState::Started,
    }
}
