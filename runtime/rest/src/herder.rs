//! What the REST interface asks of a worker, as one trait: the seam between HTTP and the herder.
//!
//! The REST layer owns paths, bodies, codes, time limits and the forwarding between workers; the herder owns every decision about connectors. A
//! herder that is not the one to do something says so ([`HerderError::NotLeader`], [`HerderError::Elsewhere`]), and the REST layer sends the
//! request on.
//!
//! **Cancellation**: the REST layer drops a call's future when its time limit has passed or the client has gone. That must only mean that nobody
//! waits for the answer: an operation that was begun goes on to its end (a herder that queues commands to its own loop gives this for free).
//!
//! Source: Kafka Connect's REST interface; KIP-745 (restart), KIP-875 (stop, offsets), KIP-477 (patch), KIP-495 and KIP-976 (loggers), KIP-507
//! (signed requests between workers), KIP-618 (fencing), KIP-1017 (health).

use async_trait::async_trait;
use serde_json::Value;

use crate::model::{
    ConfigMap, ConnectorInfo, ConnectorStateInfo, DrainStatus, InitialState, LoggerLevel, OffsetEntry, PluginInfo,
    RestartRequest, ServerInfo, Stage, TaskInfo, TaskState,
};
use crate::sign::RequestSignature;

/// Why a herder did not do what it was asked. Codes and bodies are decided in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HerderError {
    /// The connector, task, plug-in or logger does not exist: 404.
    NotFound(String),
    /// A connector of that name exists: 409.
    AlreadyExists(String),
    /// The request or the configuration in it is wrong: 400.
    BadRequest(String),
    /// A signature or a setting forbids it: 403.
    Forbidden(String),
    /// It cannot be done in the present state: 409.
    Conflict(String),
    /// Only the leader can do this; its URL, when one is known. The REST layer forwards.
    NotLeader {
        /// The leader's advertised URL.
        leader_url: Option<String>,
    },
    /// Another worker owns the connector or task. The REST layer forwards.
    Elsewhere {
        /// That worker's advertised URL.
        url: String,
    },
    /// The group is about to rebalance, so the answer would be stale: 409 where requests are forwarded, else 500, as in Java.
    RebalanceExpected,
    /// Not now (starting, no session key yet): 503.
    Unavailable(String),
    /// The herder gave up waiting; `stage` is what it was doing, ready to be read: 500.
    Timeout {
        /// What the worker is doing, since when.
        stage: String,
    },
    /// Any other code, such as one passed on from another worker.
    Status {
        /// The HTTP status.
        code: u16,
        /// The error body's message.
        message: String,
    },
    /// Anything else: 500.
    Internal(String),
}

/// Whether `put_connector_config` may replace a connector that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// `PUT /connectors/{name}/config`.
    Allowed,
    /// `POST /connectors`: a connector of that name is [`HerderError::AlreadyExists`].
    Forbidden,
}

/// What a put of a connector's configuration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Whether the connector is new.
    pub created: bool,
    /// The submitted configuration, with the tasks known before the change.
    pub connector: ConnectorInfo,
}

/// A result of a herder's work.
pub type Answer<T> = Result<T, HerderError>;

/// A worker as the REST interface sees it.
#[async_trait]
pub trait Herder: Send + Sync + 'static {
    /// Version, commit and Kafka cluster id.
    fn server_info(&self) -> ServerInfo;

    /// Whether start-up is over: topics read, group joined once.
    fn is_ready(&self) -> bool;

    /// What the herder is doing or did last, for the message of a request that ran out of time.
    fn stage(&self) -> Option<Stage>;

    /// The text with a mask in place of every resolved secret that this worker knows of. The REST layer has it applied to all that a
    /// connector or another worker may have worded: error messages, traces and the configurations of tasks. It must not wait.
    fn masked(&self, text: String) -> String;

    /// Goes through the herder's loop and does nothing: answered means alive. [`HerderError::Unavailable`]: alive, but for this
    /// reason it can't do its work at present, such as brokers that are away.
    async fn ping(&self) -> Answer<()>;

    /// The names of all connectors; from the last snapshot, never waiting for a rebalance.
    async fn connectors(&self) -> Answer<Vec<String>>;

    /// Configuration and tasks. [`HerderError::NotFound`]: `Connector c not found`.
    async fn connector_info(&self, name: &str) -> Answer<ConnectorInfo>;

    /// The raw configuration, references unresolved. [`HerderError::NotFound`]: `Connector c not found`.
    async fn connector_config(&self, name: &str) -> Answer<ConfigMap>;

    /// Creates or replaces a connector. `name` equals the configuration's `name`; the REST layer has seen to that.
    async fn put_connector_config(
        &self,
        name: &str,
        config: ConfigMap,
        initial_state: Option<InitialState>,
        replace: Replace,
    ) -> Answer<Put>;

    /// KIP-477: null removes a key, anything else sets it.
    async fn patch_connector_config(&self, name: &str, patch: ConfigMap) -> Answer<ConnectorInfo>;

    /// Deletes a connector.
    async fn delete_connector(&self, name: &str) -> Answer<()>;

    /// [`HerderError::NotFound`]: `No status found for connector c`.
    async fn connector_status(&self, name: &str) -> Answer<ConnectorStateInfo>;

    /// [`HerderError::NotFound`]: `No status found for task c-0`.
    async fn task_status(&self, name: &str, task: i32) -> Answer<TaskState>;

    /// The tasks with their raw configurations. [`HerderError::NotFound`]: `Connector c not found`.
    async fn tasks(&self, name: &str) -> Answer<Vec<TaskInfo>>;

    /// Restarts the connector instance alone, here if it is here ([`HerderError::Elsewhere`] otherwise).
    async fn restart_connector(&self, name: &str) -> Answer<()>;

    /// KIP-745; answers with the plan, where what is to be restarted shows as `RESTARTING`.
    async fn restart_connector_and_tasks(&self, request: RestartRequest) -> Answer<ConnectorStateInfo>;

    /// Restarts one task, here if it is here.
    async fn restart_task(&self, name: &str, task: i32) -> Answer<()>;

    /// Target state PAUSED; any worker. [`HerderError::NotFound`]: `Unknown connector c`.
    async fn pause_connector(&self, name: &str) -> Answer<()>;

    /// Target state STARTED; any worker. [`HerderError::NotFound`]: `Unknown connector c`.
    async fn resume_connector(&self, name: &str) -> Answer<()>;

    /// Target state STOPPED, without tasks; the leader.
    async fn stop_connector(&self, name: &str) -> Answer<()>;

    /// KIP-558; empty for an unknown connector. Whether topics are tracked at all is the REST layer's setting.
    async fn connector_topics(&self, name: &str) -> Answer<Vec<String>>;

    /// Forgets the topics that the connector has used.
    async fn reset_connector_topics(&self, name: &str) -> Answer<()>;

    /// KIP-875.
    async fn connector_offsets(&self, name: &str) -> Answer<Vec<OffsetEntry>>;

    /// KIP-875; answers with the message to show. An entry whose offset is null is a tombstone.
    async fn alter_connector_offsets(&self, name: &str, offsets: Vec<OffsetEntry>) -> Answer<String>;

    /// KIP-875; answers with the message to show.
    async fn reset_connector_offsets(&self, name: &str) -> Answer<String>;

    /// The validation result as JSON. [`HerderError::BadRequest`] when there is no usable `connector.class`.
    async fn validate(&self, config: ConfigMap) -> Answer<Value>;

    /// All plug-ins, or the connectors alone.
    async fn plugins(&self, which: Plugins) -> Answer<Vec<PluginInfo>>;

    /// The plug-in's definitions as JSON. [`HerderError::NotFound`]: `Unknown plugin p.`
    async fn plugin_config(&self, plugin: &str, version: Option<&str>) -> Answer<Vec<Value>>;

    /// Every logger with a level of its own.
    async fn loggers(&self) -> Answer<Vec<(String, LoggerLevel)>>;

    /// One logger, `None` when unknown.
    async fn logger(&self, name: &str) -> Answer<Option<LoggerLevel>>;

    /// Sets the level here; answers with the loggers that changed. `level` is upper case and known ([`crate::loggers::LEVELS`]).
    async fn set_logger_level(&self, namespace: &str, level: &str) -> Answer<Vec<String>>;

    /// KIP-976: writes the record that makes every worker set it.
    async fn set_cluster_logger_level(&self, namespace: &str, level: &str) -> Answer<()>;

    /// Internal: task configurations from the connector's owner to the leader. The herder verifies with [`crate::sign::verify`] when its group
    /// protocol is `sessioned`.
    async fn put_task_configs(
        &self,
        name: &str,
        configs: Vec<ConfigMap>,
        signature: Option<RequestSignature>,
    ) -> Answer<()>;

    /// Internal: a round of zombie fencing before the tasks of a source connector start. Verified as above.
    async fn fence_zombies(&self, name: &str, signature: Option<RequestSignature>) -> Answer<()>;

    /// Ours: hands this worker's connectors and tasks over to others, then leaves the group. Repeatable; tells how far it is.
    async fn drain(&self) -> Answer<DrainStatus>;
}

/// Which plug-ins to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugins {
    /// Source and sink connectors.
    Connectors,
    /// Converters, transformations and predicates as well.
    All,
}
