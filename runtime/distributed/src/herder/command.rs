//! What is asked of the herder's loop, with the way back for the answer.
//!
//! Whoever asked may have gone when the answer is there: sending it then fails, and that is all right. The queue holds
//! [`QUEUE_MAX`] commands; a full one makes those who ask wait, up to the REST interface's time limit.

use oncewire_rest::herder::{Answer, Put, Replace};
use oncewire_rest::model::{ConfigMap, ConnectorStateInfo, DrainStatus, InitialState, OffsetEntry, RestartRequest};
use oncewire_topics::TargetState;
use tokio::sync::oneshot;

/// Commands that may wait: 1,000.
pub const QUEUE_MAX: usize = 1_000;

/// The way back.
pub type Reply<T> = oneshot::Sender<Answer<T>>;

/// A command.
#[derive(Debug)]
pub enum Command {
    /// Nothing: the answer says that the loop goes round.
    Ping(Reply<()>),
    /// Create or replace; the configuration was validated.
    Put {
        /// The connector.
        name: String,
        /// Its configuration, raw.
        config: ConfigMap,
        /// For a new one.
        initial_state: Option<InitialState>,
        /// Whether it may exist.
        replace: Replace,
        /// The answer.
        reply: Reply<Put>,
    },
    /// Delete.
    Delete {
        /// The connector.
        name: String,
        /// The answer.
        reply: Reply<()>,
    },
    /// Pause or resume.
    Target {
        /// The connector.
        name: String,
        /// PAUSED or STARTED.
        state: TargetState,
        /// The answer.
        reply: Reply<()>,
    },
    /// Stop.
    Stop {
        /// The connector.
        name: String,
        /// The answer.
        reply: Reply<()>,
    },
    /// Restart one connector instance.
    RestartConnector {
        /// The connector.
        name: String,
        /// The answer.
        reply: Reply<()>,
    },
    /// Restart one task.
    RestartTask {
        /// The connector.
        name: String,
        /// The task.
        task: u32,
        /// The answer.
        reply: Reply<()>,
    },
    /// Restart by plan.
    RestartPlan {
        /// What.
        request: RestartRequest,
        /// The answer.
        reply: Reply<ConnectorStateInfo>,
    },
    /// Alter offsets; `None` resets them.
    Offsets {
        /// The connector.
        name: String,
        /// The new ones.
        entries: Option<Vec<OffsetEntry>>,
        /// The answer: a message.
        reply: Reply<String>,
    },
    /// Set a level on every worker.
    ClusterLogger {
        /// The namespace.
        namespace: String,
        /// The level.
        level: String,
        /// The answer.
        reply: Reply<()>,
    },
    /// Task configurations from the connector's owner.
    TaskConfigs {
        /// The connector.
        name: String,
        /// In order of their numbers.
        configs: Vec<ConfigMap>,
        /// The answer.
        reply: Reply<()>,
    },
    /// A round of fencing, for a task that wants to start.
    Fence {
        /// The connector.
        name: String,
        /// The answer.
        reply: Reply<()>,
    },
    /// Whether a task may still start after its producer has taken its id.
    Verify {
        /// The connector.
        name: String,
        /// The task.
        task: u32,
        /// The generation of task configurations that it was made from.
        generation: u64,
        /// The answer.
        reply: Reply<()>,
    },
    /// Hand everything over.
    Drain(Reply<DrainStatus>),
}

impl Command {
    /// What the loop is doing while it carries this out, for messages.
    pub fn description(&self) -> String {
        match self {
            Self::Ping(_) => "answering a health check".to_owned(),
            Self::Put { name, .. } => format!("writing the configuration of connector {name}"),
            Self::Delete { name, .. } => format!("deleting connector {name}"),
            Self::Target { name, .. } => format!("writing the target state of connector {name}"),
            Self::Stop { name, .. } => format!("stopping connector {name}"),
            Self::RestartConnector { name, .. } => format!("restarting connector {name}"),
            Self::RestartTask { name, task, .. } => format!("restarting task {name}-{task}"),
            Self::RestartPlan { request, .. } => format!("restarting connector {} by plan", request.connector),
            Self::Offsets { name, .. } => format!("modifying the offsets of connector {name}"),
            Self::ClusterLogger { namespace, .. } => format!("setting the level of logger {namespace} on all workers"),
            Self::TaskConfigs { name, .. } => format!("writing the task configurations of connector {name}"),
            Self::Fence { name, .. } => format!("fencing the old tasks of connector {name}"),
            Self::Verify { name, task, .. } => format!("verifying that task {name}-{task} may start"),
            Self::Drain(_) => "handing over connectors and tasks".to_owned(),
        }
    }

    /// Whether it needs a formed group: such a command waits while one is being formed. Fencing does not: a task that waits
    /// for it may be what holds the rebalance up (KAFKA-15059).
    pub fn needs_group(&self) -> bool {
        let alone = matches!(self, Self::Ping(_) | Self::Verify { .. } | Self::Fence { .. } | Self::Drain(_));
        !alone && !matches!(self, Self::Target { .. } | Self::ClusterLogger { .. })
    }
}
