//! What runs here: connector instances and tasks of a distributed worker, under a herder that decides which.
//!
//! ```text
//! herder ──start, stop, set_target──► Worker ──► connector instance (connector.rs; connector_state.rs decides)
//!    ▲                                      └──► task (tasks.rs → herder/supervisor.rs → task/run.rs)
//!    └── Statuses, ConnectorRequest ────────┘
//! ```
//!
//! Nothing here blocks the herder: starting is a command, stopping waits for a bounded time and then abandons. What was
//! abandoned tells no state any more and its producer is closed. Source: KIP-618, KIP-875.

pub mod status;

use crate::config::worker::WorkerConfig;
use crate::metrics::TaskCounts;
use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{ConnectorRequest, Properties, SourceOffset, SourcePartition};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub use status::{State, Statuses, TargetState, TaskGate};

/// Stored offsets: source partitions with where each stands.
pub type Offsets = Vec<(SourcePartition, Option<SourceOffset>)>;

/// What a connector instance asks of the herder; must not block.
pub type Requests = Arc<dyn Fn(ConnectorRequest) + Send + Sync>;

/// A task to be started.
pub struct TaskStart {
    /// Its connector.
    pub connector: String,
    /// Its number, from 0.
    pub task: u32,
    /// How many tasks the connector has in all.
    pub task_count: usize,
    /// The connector's configuration, `${…}` resolved.
    pub connector_config: Properties,
    /// The configuration that the connector made for the task, `${…}` resolved.
    pub task_config: Properties,
    /// Whether it begins paused.
    pub target: TargetState,
    /// What has to be settled before it may write; asked in exactly-once mode only.
    pub gate: Arc<dyn TaskGate>,
}

/// The news of one transition of a connector instance. Dropping it changes nothing.
#[must_use = "only this tells whether the connector got there"]
pub struct Transition(tokio::sync::oneshot::Receiver<Result<TargetState, String>>);

impl Transition {
    /// Waits until the instance is in the wanted state.
    ///
    /// # Errors
    /// It failed, was stopped, or a newer wish took the place of this one.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn done(self) -> Result<TargetState, String> {
        self.0.await.unwrap_or_else(|_| Err("the connector instance is gone".to_owned()))
    }
}

/// Why there are no task configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconfigureError {
    /// The connector instance is not here, or is not in the state STARTED.
    NotRunning,
    /// It made more tasks than `tasks.max`; the instance has failed, and trying again is of no use.
    TooManyTasks(String),
    /// The connector's words; worth another try.
    Failed(String),
}

impl fmt::Display for ReconfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => f.write_str("the connector is not running here"),
            Self::TooManyTasks(problem) | Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for ReconfigureError {}

/// A change of stored offsets.
#[derive(Debug, Clone, PartialEq)]
pub enum OffsetChange {
    /// These partitions get these offsets; `None` removes one.
    Alter(Offsets),
    /// All that are known are removed.
    Reset,
}

/// Why offsets were not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterError {
    /// The connector refuses them, in its words.
    Refused(String),
    /// The connector's configuration can't be used.
    Config(String),
    /// A source partition or offset that can't be stored.
    Illegal(String),
    /// The brokers, or what lies on them; nothing was changed, or not all.
    Store(String),
    /// A newer owner took the transactional id meanwhile: a task of the connector runs again.
    Fenced(String),
}

impl fmt::Display for AlterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(problem)
            | Self::Config(problem)
            | Self::Illegal(problem)
            | Self::Store(problem)
            | Self::Fenced(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for AlterError {}

/// Runs connectors and tasks; a handle, clones speak of the same worker.
#[derive(Clone)]
pub struct Worker(Arc<Inner>);

struct Inner {
    config: Arc<WorkerConfig>,
    registry: PluginRegistry,
    statuses: Arc<dyn Statuses>,
}

const NOT_YET: &str = "not there yet";

impl Worker {
    /// Connects, and makes or checks the worker's offsets topic.
    ///
    /// # Errors
    /// One line for the operator.
    pub async fn start(
        config: Arc<WorkerConfig>,
        registry: PluginRegistry,
        statuses: Arc<dyn Statuses>,
    ) -> Result<Self, String> {
        Ok(Self(Arc::new(Inner { config, registry, statuses })))
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<WorkerConfig> {
        &self.0.config
    }

    /// Makes an instance of a connector and brings it into the target state. `config` has `${…}` resolved.
    pub fn start_connector(
        &self,
        name: &str,
        config: Properties,
        target: TargetState,
        requests: Requests,
    ) -> Transition {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let _unused = (name, config, target, requests, &self.0.registry, &self.0.statuses);
        drop(sender);
        Transition(receiver)
    }

    /// Stops instances at once together: 5 s, then they are abandoned. UNASSIGNED is told of each. Unknown names are passed over.
    pub async fn stop_connectors(&self, names: &[String]) {
        let _unused = names;
    }

    /// Brings the connector instance, if it is here, and its tasks here into a target state; tasks end at STOPPED.
    pub fn set_target(&self, connector: &str, target: TargetState) -> Option<Transition> {
        let _unused = (connector, target);
        None
    }

    /// Asks a connector instance for task configurations, as the connector made them.
    ///
    /// # Errors
    /// [`ReconfigureError`].
    pub async fn task_configs(&self, connector: &str) -> Result<Vec<Properties>, ReconfigureError> {
        let _unused = connector;
        Err(ReconfigureError::NotRunning)
    }

    /// Starts a task; what goes wrong is told as its state.
    ///
    /// # Errors
    /// When a task of this id is here already.
    pub fn start_task(&self, start: TaskStart) -> Result<(), String> {
        let _unused = start;
        Err(NOT_YET.to_owned())
    }

    /// Stops tasks with one deadline for all, `task.shutdown.graceful.timeout.ms`; those that are not back then are abandoned.
    /// Failed tasks are forgotten. Unknown ids are passed over.
    pub async fn stop_tasks(&self, tasks: &[(String, u32)]) {
        let _unused = tasks;
    }

    /// Connectors whose instance is here, failed ones too.
    pub fn running_connectors(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Tasks that are here, failed ones too.
    pub fn running_tasks(&self) -> BTreeSet<(String, u32)> {
        BTreeSet::new()
    }

    /// Whether a connector instance is here and in the state STARTED.
    pub fn is_connector_running(&self, name: &str) -> bool {
        let _unused = name;
        false
    }

    /// What a task has counted; `None` when it is not here.
    pub fn task_counts(&self, connector: &str, task: u32) -> Option<TaskCounts> {
        let _unused = (connector, task);
        None
    }

    /// The stored offsets of a connector, as a task would find them; `None` for a partition without one is left out, unless
    /// it is known from the global topic only.
    ///
    /// # Errors
    /// One line for the operator.
    pub async fn offsets(&self, connector: &str, config: &Properties) -> Result<Offsets, String> {
        let _unused = (connector, config);
        Err(NOT_YET.to_owned())
    }

    /// Changes the stored offsets of a connector that has no tasks. In exactly-once mode older tasks must have been fenced.
    /// True: the connector has checked them, or has changed what it keeps itself.
    ///
    /// # Errors
    /// [`AlterError`].
    pub async fn alter_offsets(
        &self,
        connector: &str,
        config: &Properties,
        change: OffsetChange,
    ) -> Result<bool, AlterError> {
        let _unused = (connector, config, change);
        Err(AlterError::Store(NOT_YET.to_owned()))
    }

    /// Stops everything that is left, then closes the worker's own connections.
    pub async fn close(&self) {}
}
