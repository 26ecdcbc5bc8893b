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

mod connector;
mod connector_state;
mod offsets;
pub mod status;
mod tasks;

use crate::config::clients::{admin_client, offsets_client, offsets_producer};
use crate::config::worker::{Delivery, ExactlyOnceSource, WorkerConfig};
use crate::metrics::TaskCounts;
use crate::store::offset_topic;
use crate::store::topic_reader::TopicReader;
use crate::store::topic_writer::TopicWriter;
use crate::task::epochs;
use crate::task::run::Surroundings;
use connector::Instance;
use offsets::ConnectorStores;
use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{ConnectorRequest, Properties, SourceOffset, SourcePartition};
use oncewire_client::cluster::Cluster;
use oncewire_client::reader::Isolation;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tasks::{Tasks, check};

/// How long connector instances may take to stop before they are abandoned: 5 s, as in Kafka Connect.
const CONNECTOR_STOP_MAX: Duration = Duration::from_secs(5);

pub use status::{GateRefusal, State, Statuses, TargetState, TaskGate};

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
    tasks: Tasks,
    connectors: Mutex<BTreeMap<String, Instance>>,
    cluster: Cluster,
    reader: TopicReader,
    writer: TopicWriter,
}

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
        let Delivery::Distributed { source, offsets } = &config.delivery else {
            return Err("a worker under a herder needs a distributed worker's configuration".to_owned());
        };
        // Also without exactly-once support: a cluster that was set back from it may hold a killed task's open transaction, whose offset is
        // not one that its records have reached.
        let isolation = match config.originals.get("isolation.level") {
            Some(level) if *source != ExactlyOnceSource::Enabled && level.eq_ignore_ascii_case("read_uncommitted") => {
                Isolation::Uncommitted
            }
            _ => Isolation::Committed,
        };
        let cluster = Cluster::connect(offsets_client(&config)?).await.map_err(|error| error.to_string())?;
        offset_topic::ensure(&cluster, offsets).await.map_err(|failure| failure.to_string())?;
        let reader = TopicReader::start(cluster.clone(), &offsets.name, isolation);
        let writer = TopicWriter::start(cluster.clone(), &offsets.name, offsets_producer(&config)?);
        let tasks = Tasks::new(config.clone(), registry, statuses);
        Ok(Self(Arc::new(Inner { config, tasks, connectors: Mutex::default(), cluster, reader, writer })))
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<WorkerConfig> {
        &self.0.config
    }

    /// Makes an instance of a connector and brings it into the target state. `config` has `${…}` resolved. An instance of
    /// that name must have been stopped before; one that was not is abandoned.
    pub fn start_connector(
        &self,
        name: &str,
        config: Properties,
        target: TargetState,
        requests: Requests,
    ) -> Transition {
        let tasks = &self.0.tasks;
        let made = check(&self.0.config, &tasks.registry, config).map(|(config, make)| {
            for warning in &config.warnings {
                tracing::warn!(connector = name, "{warning}");
            }
            (config, make)
        });
        let instance = Instance::new(name, made, tasks.statuses.clone(), requests);
        let transition = instance.wish(target);
        if self.connectors().insert(name.to_owned(), instance).is_some() {
            tracing::warn!(connector = name, "was here already; the older instance is abandoned");
        }
        transition
    }

    /// Stops instances together: 5 s, then they are abandoned. UNASSIGNED is told of each. Unknown names are passed over.
    pub async fn stop_connectors(&self, names: &[String]) {
        let leaving: Vec<Instance> = {
            let mut connectors = self.connectors();
            names.iter().filter_map(|name| connectors.remove(name)).collect()
        };
        leaving.iter().for_each(Instance::ask_to_stop);
        let deadline = tokio::time::Instant::now() + CONNECTOR_STOP_MAX;
        for instance in leaving {
            instance.ended(deadline).await;
        }
    }

    /// Brings the connector instance, if it is here, and its tasks here into a target state; tasks end at STOPPED.
    pub fn set_target(&self, connector: &str, target: TargetState) -> Option<Transition> {
        self.0.tasks.set_target(connector, target);
        self.connectors().get(connector).map(|instance| instance.wish(target))
    }

    /// Asks a connector instance for task configurations, as the connector made them.
    ///
    /// # Errors
    /// [`ReconfigureError`].
    ///
    /// # Cancel safety
    /// Safe; the answer is thrown away.
    pub async fn task_configs(&self, connector: &str) -> Result<Vec<Properties>, ReconfigureError> {
        let asked = self.connectors().get(connector).ok_or(ReconfigureError::NotRunning)?.question();
        let too_many = || ReconfigureError::Failed("the connector is asked for task configurations already".to_owned());
        let answer = asked.ok_or_else(too_many)?.await;
        answer.unwrap_or(Err(ReconfigureError::NotRunning))
    }

    /// Starts a task; what goes wrong is told as its state.
    ///
    /// # Errors
    /// When a task of this id is here already.
    pub fn start_task(&self, start: TaskStart) -> Result<(), String> {
        self.0.tasks.start(start, |start| Surroundings {
            reader: self.0.reader.clone(),
            writer: self.0.writer.clone(),
            gate: start.gate.clone(),
        })
    }

    /// Stops tasks with one deadline for all, `task.shutdown.graceful.timeout.ms`; those that are not back then are abandoned.
    /// Failed tasks are forgotten. Unknown ids are passed over.
    ///
    /// # Cancel safety
    /// Not safe: those that were asked to stop and are not back are abandoned when the future is dropped.
    pub async fn stop_tasks(&self, tasks: &[(String, u32)]) {
        self.0.tasks.stop(tasks).await;
    }

    /// Connectors whose instance is here, failed ones too.
    pub fn running_connectors(&self) -> BTreeSet<String> {
        self.connectors().keys().cloned().collect()
    }

    /// Tasks that are here, failed ones too.
    pub fn running_tasks(&self) -> BTreeSet<(String, u32)> {
        self.0.tasks.ids().into_iter().collect()
    }

    /// Of them those that ended because a newer owner has their transactional id.
    pub fn superseded_tasks(&self) -> BTreeSet<(String, u32)> {
        self.0.tasks.superseded().into_iter().collect()
    }

    /// Whether a connector instance is here and in the state STARTED.
    pub fn is_connector_running(&self, name: &str) -> bool {
        self.connector_state(name) == Some(State::Running)
    }

    /// The state of a connector instance; `None` when it is not here.
    pub fn connector_state(&self, name: &str) -> Option<State> {
        self.connectors().get(name).map(|instance| instance.phase().state())
    }

    /// The state that a task told last; `None` when it is not here.
    pub fn task_state(&self, connector: &str, task: u32) -> Option<State> {
        self.0.tasks.state(&(connector.to_owned(), task))
    }

    /// What a task has counted; `None` when it is not here.
    pub fn task_counts(&self, connector: &str, task: u32) -> Option<TaskCounts> {
        self.0.tasks.counts(&(connector.to_owned(), task))
    }

    /// The stored offsets of a connector, as a task would find them. Partitions whose offset was removed are not among them.
    ///
    /// # Errors
    /// One line for the operator.
    pub async fn offsets(&self, connector: &str, config: &Properties) -> Result<Offsets, String> {
        self.stores(connector, config)?.list().await
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
        self.stores(connector, config).map_err(AlterError::Config)?.alter(change).await
    }

    /// Fences transactional ids of a connector that get no new owner (tasks that it has no longer), and lets the partitions
    /// of these topics know, so that plain writes of their zombies are refused too. For the round of zombie fencing of a
    /// connector with `exactly.once.source=enabled`; else fencing alone is enough.
    ///
    /// # Errors
    /// One line for the operator.
    pub async fn fence_out(
        &self,
        connector: &str,
        config: &Properties,
        ids: &[String],
        written_topics: &[String],
    ) -> Result<(), String> {
        let stores = self.stores(connector, config)?;
        let mut topics: BTreeSet<String> = written_topics.iter().cloned().collect();
        topics.extend(stores.topic());
        let client = admin_client(&self.0.config, config, connector)?;
        let cluster = Cluster::connect(client).await.map_err(|error| error.to_string())?;
        let fenced = epochs::fence_out(&cluster, ids, &topics).await;
        cluster.close().await;
        fenced
    }

    /// Stops everything that is left, then closes the worker's own connections.
    pub async fn close(&self) {
        let names: Vec<String> = self.running_connectors().into_iter().collect();
        let tasks: Vec<(String, u32)> = self.running_tasks().into_iter().collect();
        self.stop_connectors(&names).await;
        self.stop_tasks(&tasks).await;
        self.0.writer.close().await;
        self.0.reader.close().await;
        self.0.cluster.close().await;
    }

    fn connectors(&self) -> MutexGuard<'_, BTreeMap<String, Instance>> {
        self.0.connectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stores(&self, connector: &str, config: &Properties) -> Result<ConnectorStores<'_>, String> {
        let shared = (&self.0.reader, &self.0.writer);
        let stores = ConnectorStores::new(&self.0.config, &self.0.tasks.registry, shared, config)?;
        if stores.connector.name != connector {
            return Err(format!("the configuration is of connector {:?}, not {connector:?}", stores.connector.name));
        }
        Ok(stores)
    }
}
