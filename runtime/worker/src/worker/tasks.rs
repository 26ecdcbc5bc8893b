//! The tasks that run here: made from what the herder assigns, stopped with one deadline for all, abandoned after it.
//!
//! A task that is abandoned tells no state any more, and aborting it drops its producer, which then aborts what is open and
//! ends; its successor fences it all the same. A panic anywhere in it fails it alone.

use super::TaskStart;
use super::status::{State, Statuses, TargetState};
use crate::config::connector::ConnectorConfig;
use crate::config::worker::WorkerConfig;
use crate::herder::supervisor::{TaskState, supervise};
use crate::metrics::{TaskCounts, TaskMetrics};
use crate::task::ahead::Target;
use crate::task::run::{Surroundings, TaskSpec};
use crate::task::teller::Teller;
use oncewire_api::plugin::{PluginFactory, PluginKind, PluginRegistry};
use oncewire_api::{Properties, StopSignal, StopTrigger, stop_signal};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long an aborted task is waited for: it may sit in code that never awaits.
const ABORTED_MAX: Duration = Duration::from_millis(100);

/// A task's id.
pub(super) type TaskId = (String, u32);

struct Entry {
    stop: StopTrigger,
    target: watch::Sender<Target>,
    teller: Arc<Teller>,
    metrics: Arc<TaskMetrics>,
    /// It ended because a newer owner has its transactional id.
    superseded: Arc<AtomicBool>,
    run: Guarded,
}

/// A spawned task that ends with its owner.
struct Guarded(JoinHandle<()>);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What tasks are made with.
pub(super) struct Tasks {
    pub config: Arc<WorkerConfig>,
    pub registry: PluginRegistry,
    pub statuses: Arc<dyn Statuses>,
    entries: Mutex<BTreeMap<TaskId, Entry>>,
}

impl Tasks {
    pub(super) fn new(config: Arc<WorkerConfig>, registry: PluginRegistry, statuses: Arc<dyn Statuses>) -> Self {
        Self { config, registry, statuses, entries: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(
        &self,
        start: TaskStart,
        around: impl FnOnce(&TaskStart) -> Surroundings,
    ) -> Result<(), String> {
        let id = (start.connector.clone(), start.task);
        let mut entries = self.lock();
        if entries.contains_key(&id) {
            return Err(format!("task {}-{} is here already", id.0, id.1));
        }
        let teller = Arc::new(Teller::new(Some(self.statuses.clone()), &start.connector, start.task));
        let metrics = Arc::new(TaskMetrics::default());
        let (trigger, signal) = stop_signal();
        let begins = if start.target == TargetState::Paused { Target::Paused } else { Target::Running };
        if start.target == TargetState::Stopped {
            trigger.stop();
        }
        let (target, targets) = watch::channel(begins);
        let surroundings = around(&start);
        let spec = self.spec(start, teller.clone(), metrics.clone(), surroundings);
        let superseded = Arc::new(AtomicBool::new(false));
        let run = Guarded(tokio::spawn(run(spec, signal, targets, teller.clone(), superseded.clone())));
        entries.insert(id, Entry { stop: trigger, target, teller, metrics, superseded, run });
        Ok(())
    }

    fn spec(
        &self,
        start: TaskStart,
        teller: Arc<Teller>,
        metrics: Arc<TaskMetrics>,
        surroundings: Surroundings,
    ) -> Result<TaskSpec, String> {
        let (connector, make) = check(&self.config, &self.registry, start.connector_config)?;
        if start.task_count > connector.tasks_max {
            let problem = format!(
                "the connector has {} tasks, more than tasks.max={}; raise tasks.max, or set tasks.max.enforce=false to let it",
                start.task_count, connector.tasks_max
            );
            if connector.tasks_max_enforce {
                return Err(problem);
            }
            tracing::warn!(connector = connector.name, "{problem}");
        }
        Ok(TaskSpec {
            worker: self.config.clone(),
            connector: Arc::new(connector),
            registry: self.registry.clone(),
            number: start.task,
            properties: start.task_config,
            file: None,
            make: Box::new(move || make().task()),
            metrics,
            teller,
            surroundings: Some(surroundings),
        })
    }

    /// Stops those that are here, with one deadline.
    pub(super) async fn stop(&self, ids: &[TaskId]) {
        let leaving: Vec<(TaskId, Entry)> = {
            let mut entries = self.lock();
            ids.iter().filter_map(|id| entries.remove_entry(id)).collect()
        };
        for (_, entry) in &leaving {
            entry.stop.stop();
        }
        let deadline = tokio::time::Instant::now() + self.config.graceful_timeout;
        for ((connector, task), mut entry) in leaving {
            if tokio::time::timeout_at(deadline, &mut entry.run.0).await.is_ok() {
                continue;
            }
            entry.teller.silence();
            tracing::warn!(connector, task, "did not stop within task.shutdown.graceful.timeout.ms and was abandoned");
            entry.run.0.abort();
            // Only to see it gone, if it can be.
            let _ = tokio::time::timeout(ABORTED_MAX, &mut entry.run.0).await;
        }
    }

    pub(super) fn set_target(&self, connector: &str, target: TargetState) {
        let entries = self.lock();
        for (_, entry) in entries.iter().filter(|((of, _), _)| of == connector) {
            match target {
                TargetState::Started => entry.target.send_replace(Target::Running),
                TargetState::Paused => entry.target.send_replace(Target::Paused),
                TargetState::Stopped => {
                    entry.stop.stop();
                    continue;
                }
            };
        }
    }

    pub(super) fn ids(&self) -> Vec<TaskId> {
        self.lock().keys().cloned().collect()
    }

    pub(super) fn superseded(&self) -> Vec<TaskId> {
        let entries = self.lock();
        let superseded = entries.iter().filter(|(_, entry)| entry.superseded.load(Ordering::Acquire));
        superseded.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn counts(&self, id: &TaskId) -> Option<TaskCounts> {
        self.lock().get(id).map(|entry| entry.metrics.counts())
    }

    pub(super) fn state(&self, id: &TaskId) -> Option<State> {
        self.lock().get(id).map(|entry| entry.teller.state())
    }
}

/// A connector's checked configuration, and what makes an instance of its class.
pub(super) type Checked = (ConnectorConfig, fn() -> Box<dyn oncewire_api::SourceConnector>);

/// Checks a connector's configuration.
pub(super) fn check(
    config: &WorkerConfig,
    registry: &PluginRegistry,
    properties: Properties,
) -> Result<Checked, String> {
    let class = properties.get("connector.class").cloned().unwrap_or_default();
    let plugin =
        registry.find(PluginKind::Source, &class).map_err(|error| format!("property 'connector.class': {error}"))?;
    let PluginFactory::Source(make) = plugin.factory else {
        return Err(format!("property 'connector.class': {class:?} is not a source connector"));
    };
    let checked = ConnectorConfig::check(config, properties, &*make()).map_err(|errors| errors.to_string())?;
    Ok((checked, make))
}

async fn run(
    spec: Result<TaskSpec, String>,
    stop: StopSignal,
    target: watch::Receiver<Target>,
    teller: Arc<Teller>,
    superseded: Arc<AtomicBool>,
) {
    let spec = match spec {
        Ok(spec) => spec,
        Err(problem) => {
            tracing::error!("task can't start: {problem}");
            teller.tell(State::Failed, Some(problem));
            return;
        }
    };
    let (states, _) = watch::channel(TaskState::Unassigned);
    let supervised = async move {
        // Its final state was told already.
        if let TaskState::Superseded { .. } = supervise(spec, stop, target, states).await {
            superseded.store(true, Ordering::Release);
        }
    };
    let mut inner = Guarded(tokio::spawn(supervised));
    if let Err(error) = (&mut inner.0).await
        && error.is_panic()
    {
        teller.tell(State::Failed, Some(format!("the task panicked: {error}")));
    }
}
