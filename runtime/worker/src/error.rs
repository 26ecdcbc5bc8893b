//! What ends a task, by what has to happen next.

use crate::acl::{Resource, advice};
use crate::worker::GateRefusal;
use oncewire_client::producer::{ProducerError, StageError};
use std::fmt;

/// Why a task can't go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskFailure {
    /// A newer task with the same transactional id has taken over. It ends quietly and is never restarted by itself: that
    /// would fence the owner.
    Superseded(String),
    /// What was under way is lost, but a new start (new producer, offsets read again) does the work once more. Brokers that
    /// were away, a transaction that timed out, an outcome that is not known.
    Lost(String),
    /// A restart would meet the same again: bad configuration, a record that can't be written, the connector's own verdict.
    Failed(String),
}

impl TaskFailure {
    /// The connector, the configuration or the data is at fault.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// A new start will do.
    pub fn lost(message: impl Into<String>) -> Self {
        Self::Lost(message.into())
    }

    /// The same kind of failure in other words.
    #[must_use]
    pub fn with_message(self, message: String) -> Self {
        match self {
            Self::Superseded(_) => Self::Superseded(message),
            Self::Lost(_) => Self::Lost(message),
            Self::Failed(_) => Self::Failed(message),
        }
    }

    /// The same of what should have gone to a dead letter topic.
    #[must_use]
    pub(crate) fn of_dead_letters(self, topic: &str) -> Self {
        let message = format!("dead letters can't be written to topic {topic:?}: {}", self.message());
        self.with_message(message)
    }

    /// What a producer's error means to a task that writes dead letters to this topic.
    pub(crate) fn of_producer(error: ProducerError, dead_letters: Option<&str>) -> Self {
        let is_of_them = dead_letters.is_some() && refused_topic(&error) == dead_letters;
        let failure = Self::from(error);
        match dead_letters {
            Some(topic) if is_of_them => failure.of_dead_letters(topic),
            _ => failure,
        }
    }

    /// The text for an operator.
    pub fn message(&self) -> &str {
        match self {
            Self::Superseded(message) | Self::Lost(message) | Self::Failed(message) => message,
        }
    }
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for TaskFailure {}

impl From<GateRefusal> for TaskFailure {
    fn from(refusal: GateRefusal) -> Self {
        match refusal {
            GateRefusal::Passing(message) => Self::Lost(message),
            GateRefusal::Final(message) => Self::Failed(message),
        }
    }
}

impl From<StageError> for TaskFailure {
    fn from(error: StageError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ProducerError> for TaskFailure {
    fn from(error: ProducerError) -> Self {
        let mut message = error.to_string();
        if let Some(advice) = refused_topic(&error).and_then(|topic| advice(error.code()?, &Resource::DataTopic(topic)))
        {
            message = format!("{message}; {advice}");
        }
        match error {
            ProducerError::Fenced { .. } => Self::Superseded(message),
            // Only a write with an identity and without a transaction can be told so: a partition knows a newer epoch.
            ProducerError::NotDelivered { .. }
                if matches!(error.code(), Some(INVALID_PRODUCER_EPOCH | PRODUCER_FENCED)) =>
            {
                Self::Superseded(message)
            }
            ProducerError::Stage(_) | ProducerError::Misuse { .. } => Self::Failed(message),
            _ if error.code().is_some_and(is_hopeless) => Self::Failed(message),
            _ => Self::Lost(message),
        }
    }
}

/// The topic that a failed write was about.
fn refused_topic(error: &ProducerError) -> Option<&str> {
    match error {
        ProducerError::NotCommitted { cause, .. }
        | ProducerError::AbortRequired { cause, .. }
        | ProducerError::Fatal { cause, .. }
        | ProducerError::NotDelivered { cause } => cause.topic.as_deref(),
        _ => None,
    }
}

impl From<oncewire_client::error::Error> for TaskFailure {
    fn from(error: oncewire_client::error::Error) -> Self {
        let message = error.to_string();
        match error.code() {
            Some(code) if is_hopeless(code) => Self::Failed(message),
            _ => Self::Lost(message),
        }
    }
}

const INVALID_PRODUCER_EPOCH: i16 = 47;
const PRODUCER_FENCED: i16 = 90;

/// Codes that say the same after any number of restarts: permissions, sizes, wrong settings.
fn is_hopeless(code: i16) -> bool {
    matches!(
        code,
        10  // MESSAGE_TOO_LARGE
        | 17 // INVALID_TOPIC_EXCEPTION
        | 18 // RECORD_LIST_TOO_LARGE
        | 29 // TOPIC_AUTHORIZATION_FAILED
        | 30 // GROUP_AUTHORIZATION_FAILED
        | 31 // CLUSTER_AUTHORIZATION_FAILED
        | 32 // INVALID_TIMESTAMP
        | 35 // UNSUPPORTED_VERSION
        | 37 // INVALID_PARTITIONS
        | 38 // INVALID_REPLICATION_FACTOR
        | 40 // INVALID_CONFIG
        | 42 // INVALID_REQUEST
        | 44 // POLICY_VIOLATION
        | 50 // INVALID_TRANSACTION_TIMEOUT
        | 53 // TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        | 76 // UNSUPPORTED_COMPRESSION_TYPE
        | 87 // INVALID_RECORD
    )
}
