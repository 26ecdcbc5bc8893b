//! What can go wrong with a topic of the cluster's own, sorted by whose fault it is.

use oncewire_client::error::Error;
use oncewire_client::producer::ProducerError;
use std::fmt;
use std::time::Duration;

/// Why an operation on the config or status topic failed.
#[derive(Debug, Clone)]
pub enum TopicError {
    // The brokers' or the network's.
    /// The cluster did not do what it was asked for.
    Client(Error),
    /// A record was not written, or not surely.
    Write(ProducerError),
    /// A write of the leader failed, or another leader has taken over. The transactional producer was closed:
    /// [`ConfigTopic::claim_write_privileges`](crate::ConfigTopic::claim_write_privileges) before the next one.
    Privileged(String),
    /// The topic cannot be followed any further; it is tried again, but what is known grows old.
    Unreadable {
        /// Which topic.
        topic: String,
        /// What the reader met last.
        cause: String,
    },
    /// The time was over first. A write may have taken effect all the same.
    Timeout {
        /// What was being done.
        what: String,
        /// For how long.
        after: Duration,
    },

    // The configuration's.
    /// The topic is not fit for its purpose.
    Config {
        /// Which topic.
        topic: String,
        /// What is wrong with it and what to change.
        problem: String,
    },

    // The caller's.
    /// A write of the leader without having claimed the privilege for it.
    NotPrivileged,
    /// The topic was closed.
    Closed,
}

impl fmt::Display for TopicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::Privileged(cause) => {
                write!(f, "write of the leader to the config topic failed, it may be tried again: {cause}")
            }
            Self::Unreadable { topic, cause } => write!(f, "topic {topic:?} can't be read any further: {cause}"),
            Self::Timeout { what, after } => write!(f, "{what} did not succeed within {} ms", after.as_millis()),
            Self::Config { topic, problem } => write!(f, "topic {topic:?} {problem}"),
            Self::NotPrivileged => {
                f.write_str("this worker has not claimed the write privileges of the leader for the config topic")
            }
            Self::Closed => f.write_str("the topic was closed"),
        }
    }
}

impl std::error::Error for TopicError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Client(error) => Some(error),
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for TopicError {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<ProducerError> for TopicError {
    fn from(error: ProducerError) -> Self {
        Self::Write(error)
    }
}
