//! Restarts that a person asks for (KIP-745).

use super::command::Reply;
use super::errors::{not_leader, unknown_connector};
use super::job::Done;
use super::tick::{Tick, answer};
use crate::decide::restart::{Plan, Wish, plan};
use crate::status_info::{connector_state, task_state};
use oncewire_membership::{Load, TaskId};
use oncewire_rest::HerderError;
use oncewire_rest::herder::Answer;
use oncewire_rest::model::{ConnectorStateInfo, RestartRequest};
use oncewire_topics::State;
use oncewire_worker::worker::{State as Told, Statuses};

impl Tick {
    /// Restarts a connector instance that is here; the answer waits for its start.
    pub(super) async fn restart_connector(&mut self, name: String, reply: Reply<()>) {
        if !self.parts.view.snapshot().contains(&name) {
            return answer(reply, Err(HerderError::NotFound(format!("Unknown connector: {name}"))));
        }
        let assigned = self.held.as_ref().is_some_and(|held| held.assignment.assigned.connectors.contains(&name));
        if !assigned {
            let owner = self.owners.connector_url(&name).map(str::to_owned);
            return answer(reply, Err(self.not_here(owner)));
        }
        if self.draining.is_on() {
            return answer(reply, Err(HerderError::RebalanceExpected));
        }
        self.parts.worker.stop_connectors(std::slice::from_ref(&name)).await;
        match self.begin_connector(&name) {
            Some(transition) => self.jobs.spawn(async move {
                let result = transition.done().await;
                Done::Restarted { connector: name, result, reply }
            }),
            None => answer(reply, Err(HerderError::Internal(format!("Failed to start connector: {name}")))),
        }
    }

    /// Restarts a task that is here.
    pub(super) async fn restart_task(&mut self, name: &str, task: u32) -> Answer<()> {
        let snapshot = self.parts.view.snapshot();
        if !snapshot.contains(name) {
            return Err(HerderError::NotFound(format!("Unknown connector: {name}")));
        }
        if snapshot.task_config(name, task).is_none() {
            return Err(HerderError::NotFound(format!("Unknown task: {name}-{task}")));
        }
        let id = TaskId::new(name, i32::try_from(task).unwrap_or(i32::MAX));
        let assigned = self.held.as_ref().is_some_and(|held| held.assignment.assigned.tasks.contains(&id));
        if !assigned {
            let owner = self.owners.task_url(&id).map(str::to_owned);
            return Err(self.not_here(owner));
        }
        if self.draining.is_on() {
            // What came back stays until the worker leaves, and nothing starts here any more.
            return Err(HerderError::RebalanceExpected);
        }
        self.parts.worker.stop_tasks(&[(name.to_owned(), task)]).await;
        self.start_task(&id);
        Ok(())
    }

    /// The leader knows where it is; others ask the leader.
    fn not_here(&self, owner: Option<String>) -> HerderError {
        match owner {
            Some(url) if self.leads() => HerderError::Elsewhere { url },
            None if self.leads() => HerderError::NotLeader { leader_url: None },
            _ => not_leader(&self.parts.view),
        }
    }

    /// Writes the request for all workers, and tells what will be restarted.
    pub(super) async fn restart_by_plan(&mut self, request: RestartRequest) -> Answer<ConnectorStateInfo> {
        if !self.leads() {
            return Err(not_leader(&self.parts.view));
        }
        let name = &request.connector;
        if !self.parts.view.snapshot().contains(name) {
            return Err(HerderError::NotFound(format!("Unknown connector: {name}")));
        }
        let wish = Wish { only_failed: request.only_failed, include_tasks: request.include_tasks };
        let Some(plan) = self.plan(name, wish) else {
            return Err(HerderError::NotFound(format!("Status for connector {name} not found")));
        };
        let written = oncewire_topics::RestartRequest {
            connector: name.clone(),
            only_failed: request.only_failed,
            include_tasks: request.include_tasks,
        };
        let written = self.parts.view.configs.put_restart(&written).await;
        self.written(written)?;
        self.planned(name, &plan).ok_or_else(|| unknown_connector(name))
    }

    fn plan(&self, name: &str, wish: Wish) -> Option<Plan> {
        let statuses = &self.parts.view.statuses;
        let connector = statuses.connector(name)?;
        let tasks = statuses.tasks(name).into_iter().map(|(task, status)| (task, status.state == State::Failed));
        Some(plan(wish, connector.state == State::Failed, tasks))
    }

    /// The states as they will be.
    fn planned(&self, name: &str, plan: &Plan) -> Option<ConnectorStateInfo> {
        let statuses = &self.parts.view.statuses;
        let mut connector = connector_state(&statuses.connector(name)?);
        if plan.connector {
            connector.state = State::Restarting.name().to_owned();
            connector.trace = None;
        }
        let tasks = statuses.tasks(name).into_iter().map(|(task, status)| {
            let mut state = task_state(task, &status);
            if plan.tasks.contains(&task) {
                state.state = State::Restarting.name().to_owned();
                state.trace = None;
            }
            state
        });
        let snapshot = self.parts.view.snapshot();
        let kind = crate::kinds::kind(&self.parts.registry, snapshot.config(name)?);
        Some(ConnectorStateInfo { name: name.to_owned(), connector, tasks: tasks.collect(), kind })
    }

    /// Every worker does its part: what of the plan is here stops, is shown as RESTARTING, and starts.
    pub(super) async fn carry_out_restart(&mut self, request: &oncewire_topics::RestartRequest) {
        let name = &request.connector;
        if self.draining.is_on() {
            tracing::info!(connector = name, "not restarted here: it starts where it is handed over to");
            return;
        }
        let wish = Wish { only_failed: request.only_failed, include_tasks: request.include_tasks };
        let Some(plan) = self.plan(name, wish) else { return };
        let Some(held) = &self.held else { return };
        let assigned = &held.assignment.assigned;
        let connector = plan.connector && assigned.connectors.contains(name);
        let tasks: Vec<TaskId> = plan
            .tasks
            .iter()
            .filter_map(|task| Some(TaskId::new(name.clone(), i32::try_from(*task).ok()?)))
            .filter(|task| assigned.tasks.contains(task))
            .collect();
        tracing::info!(connector = name, instance = connector, tasks = tasks.len(), "restarting");
        let load = Load {
            connectors: connector.then(|| name.clone()).into_iter().collect(),
            tasks: tasks.iter().cloned().collect(),
        };
        self.stop_load(&load).await;
        let told = self.statuses();
        if connector {
            told.connector(name, Told::Restarting, None);
            self.start_connector(name);
        }
        for task in &tasks {
            told.task(name, task.task.unsigned_abs(), Told::Restarting, None);
            self.start_task(task);
        }
    }
}
