//! The traits of a source: a connector, which knows the configuration, and a task, which reads.

use std::error::Error;
use std::fmt;

use async_trait::async_trait;

use crate::{
    CheckedValue, ConfigDef, ConnectorContext, NullableProperties, Properties, SourceOffset, SourcePartition,
    SourceRecord, TaskContext,
};

type Cause = Box<dyn Error + Send + Sync>;

/// Why a task cannot go on.
#[derive(Debug)]
pub enum TaskError {
    /// Worth another try: the worker treats a `poll` that says so as one without data.
    Retriable {
        /// What failed and with what; for a person's mistake also what to change.
        message: String,
        /// The error beneath.
        source: Option<Cause>,
    },
    /// The task fails.
    Fatal {
        /// What failed and with what; for a person's mistake also what to change.
        message: String,
        /// The error beneath.
        source: Option<Cause>,
    },
}

impl TaskError {
    /// Worth another try.
    pub fn retriable(message: impl Into<String>) -> Self {
        Self::Retriable { message: message.into(), source: None }
    }

    /// The task fails.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::Fatal { message: message.into(), source: None }
    }

    /// The same with the error beneath.
    pub fn caused_by(self, cause: impl Into<Cause>) -> Self {
        let source = Some(cause.into());
        match self {
            Self::Retriable { message, .. } => Self::Retriable { message, source },
            Self::Fatal { message, .. } => Self::Fatal { message, source },
        }
    }

    /// Whether another try is worth it.
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Retriable { .. })
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retriable { message, .. } | Self::Fatal { message, .. } => f.write_str(message),
        }
    }
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Retriable { source, .. } | Self::Fatal { source, .. } => {
                source.as_deref().map(|cause| -> &(dyn Error + 'static) { cause })
            }
        }
    }
}

/// Why a connector cannot start or refuses something: what failed, and what to change.
#[derive(Debug)]
pub struct ConnectorError {
    /// What failed and with what; for a person's mistake also what to change.
    pub message: String,
}

impl ConnectorError {
    /// With this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for ConnectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ConnectorError {}

/// Whether a connector can deliver exactly once with a given configuration (KIP-618).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExactlyOnceSupport {
    /// It can.
    Supported,
    /// It cannot.
    Unsupported,
}

/// Whether a connector can define transaction boundaries with a given configuration (KIP-618).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectorTransactionBoundaries {
    /// It can.
    Supported,
    /// It cannot.
    Unsupported,
}

/// Where a record ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMetadata {
    /// The partition of the topic.
    pub partition: u32,
    /// The offset there.
    pub offset: i64,
}

/// A source connector: turns one configuration into the configurations of tasks. It moves no data.
#[async_trait]
pub trait SourceConnector: Send {
    /// The version that the operator sees.
    fn version(&self) -> &str;

    /// The properties that it knows.
    fn config_def(&self) -> ConfigDef;

    /// Starts with a configuration that [`SourceConnector::config_def`] has accepted.
    ///
    /// # Errors
    /// [`ConnectorError`] when it cannot work with it.
    async fn start(&mut self, context: ConnectorContext, properties: &Properties) -> Result<(), ConnectorError>;

    /// At most `tasks_max` configurations; each becomes a task.
    ///
    /// # Errors
    /// [`ConnectorError`] when the source cannot be asked.
    async fn task_configs(&mut self, tasks_max: usize) -> Result<Vec<Properties>, ConnectorError>;

    /// A task that was not started yet.
    fn task(&self) -> Box<dyn SourceTask>;

    /// Checks its own properties, one answer for each that [`SourceConnector::config_def`] knows. A connector that can say more than its
    /// definition (that two properties clash, that a database refuses the password) adds errors to what
    /// [`ConfigDef::check`] returns. Asked before `start`, of an instance that is not started afterwards.
    ///
    /// # Cancel safety
    /// The caller may drop the future when its patience ends; nothing may depend on the check having come to its end.
    async fn validate(&mut self, properties: &NullableProperties) -> Vec<CheckedValue> {
        self.config_def().check(properties)
    }

    /// Whether exactly once is possible with this configuration; `None` when the connector does not know. May be asked before `start`.
    fn exactly_once_support(&self, properties: &Properties) -> Option<ExactlyOnceSupport> {
        // What a connector does not say, nobody can vouch for.
        let _ = properties;
        None
    }

    /// Whether the connector can define transaction boundaries with this configuration; `None` when it does not know. May be asked
    /// before `start`.
    fn can_define_transaction_boundaries(&self, properties: &Properties) -> Option<ConnectorTransactionBoundaries> {
        // Not all connectors have boundaries of their own.
        let _ = properties;
        Some(ConnectorTransactionBoundaries::Unsupported)
    }

    /// Checks offsets that an operator wants to write (`None` removes one), and does what the source needs for it. Returns whether the
    /// connector has checked them. May be asked before `start`.
    ///
    /// # Errors
    /// [`ConnectorError`] when they make no sense for this connector.
    async fn alter_offsets(
        &mut self,
        properties: &Properties,
        offsets: &[(SourcePartition, Option<SourceOffset>)],
    ) -> Result<bool, ConnectorError> {
        // The default checks nothing, and says so.
        let _ = (properties, offsets);
        Ok(false)
    }

    /// Ends what `start` began.
    async fn stop(&mut self) {}
}

/// A source task: reads.
///
/// The worker calls one method at a time, and never drops a `poll` that is under way: it asks through the stop signal of the
/// [`TaskContext`] and waits. Only a task that does not come back in time is abandoned, its transaction aborted and its result ignored;
/// the author need not make `poll` cancel safe for that.
#[async_trait]
pub trait SourceTask: Send {
    /// Starts with one of the configurations that the connector made.
    ///
    /// # Errors
    /// [`TaskError`] when it cannot work with it; the task fails.
    async fn start(&mut self, context: TaskContext, properties: &Properties) -> Result<(), TaskError>;

    /// The next batch. `None`: nothing at the moment; the task may wait a while for data before it says so, but returns soon after the
    /// stop signal. An empty batch is a batch: transaction boundaries are looked at after it.
    ///
    /// # Errors
    /// [`TaskError`]; a retriable one counts as "nothing at the moment".
    async fn poll(&mut self) -> Result<Option<Vec<SourceRecord>>, TaskError>;

    /// Called after the offsets of what was returned so far were committed, between two polls. Batches that were polled ahead may not be
    /// committed yet.
    ///
    /// # Errors
    /// [`TaskError`]; it is logged and the task goes on.
    async fn commit(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    /// Whether the worker shall call [`SourceTask::commit_record`]; it then has to keep each record until its transaction is committed.
    /// Asked once, after `start`.
    fn wants_commit_record(&self) -> bool {
        false
    }

    /// Called for each record after its transaction was committed, in order, when [`SourceTask::wants_commit_record`] said so.
    /// `None` in place of the metadata: the record was dropped by a transformation or a tolerated error.
    ///
    /// # Errors
    /// [`TaskError`]; it is logged and the task goes on.
    async fn commit_record(
        &mut self,
        record: &SourceRecord,
        metadata: Option<RecordMetadata>,
    ) -> Result<(), TaskError> {
        // By default nobody is interested.
        let _ = (record, metadata);
        Ok(())
    }

    /// Ends what `start` began; called once, after the last `poll`, also when `start` failed.
    async fn stop(&mut self) {}
}
