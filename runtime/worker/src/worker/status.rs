//! What the worker tells its herder, and what it asks of it before a task may write.
//!
//! The herder implements both traits: it writes statuses to the status topic and knows the config topic and its leader. Left
//! out here: worker ids, generations, which of the writes are "safe" ones.

use async_trait::async_trait;

/// The state that a person wants for a connector and its tasks, from the config topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetState {
    /// Work.
    Started,
    /// Keep what is needed to go on, and wait.
    Paused,
    /// Nothing runs; the connector has no tasks.
    Stopped,
}

/// A state that is told, in Kafka Connect's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Was stopped here in good order; runs nowhere that this worker knows of.
    Unassigned,
    /// Works.
    Running,
    /// Waits for a resume.
    Paused,
    /// Ended by an error, told in the trace; a person, or another assignment, starts it again.
    Failed,
    /// Failed, and is started again by itself.
    Restarting,
    /// Connectors only: stopped by a person.
    Stopped,
}

impl State {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unassigned => "UNASSIGNED",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Failed => "FAILED",
            Self::Restarting => "RESTARTING",
            Self::Stopped => "STOPPED",
        }
    }
}

/// Takes what happens to connectors and tasks, in order per connector and per task. Must not block.
pub trait Statuses: Send + Sync {
    /// A connector instance changed its state.
    fn connector(&self, name: &str, state: State, trace: Option<String>);

    /// A task changed its state.
    fn task(&self, connector: &str, task: u32, state: State, trace: Option<String>);

    /// A task writes to a topic. Told once for each batch of records, so the receiver looks first whether it knows.
    fn topic(&self, connector: &str, task: u32, topic: &str);
}

/// Why a task is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateRefusal {
    /// The leader or the brokers could not be asked, or could not do their part in time: a later start may succeed.
    Passing(String),
    /// This task is not to run as it is: its configuration is old, it belongs elsewhere, a permission is missing.
    Final(String),
}

/// What has to be settled with the rest of the group before a task may write exactly once (KIP-618).
#[async_trait]
pub trait TaskGate: Send + Sync {
    /// Every older generation of the connector's tasks is fenced when this returns.
    ///
    /// # Errors
    /// Why it could not be done; after one that passes the task starts again by itself.
    async fn fence(&self) -> Result<(), GateRefusal>;

    /// The task is still assigned here, and its configuration is still the newest. Asked after its producer has taken the
    /// transactional id.
    ///
    /// # Errors
    /// Why not; after one that passes the task starts again by itself.
    async fn verify(&self) -> Result<(), GateRefusal>;

    /// The topics that the connector's tasks are known to have written to (topic tracking). Asked only where
    /// `exactly.once.source=enabled`: their partitions are told of the task's new epoch before it reads its offsets.
    async fn written_topics(&self) -> Vec<String> {
        Vec::new()
    }
}
