//! Kafka Connect's config topic and status topic: what a distributed worker knows of its cluster, and how it tells it.
//!
//! Both are compacted logs that every worker reads from the beginning and then follows. What the records mean is decided in
//! pure code ([`ConfigFold`], [`StatusFold`]); [`ConfigTopic`] and [`StatusTopic`] are thin drivers around it.
//!
//! ```text
//! ConfigTopic ── tail (LogReader) ─► ConfigFold ─► ConfigSnapshot + Changes
//!      └──────── writer (plain, or transactions of the leader)
//! StatusTopic ── tail (LogReader) ─► StatusFold
//!      └──────── sender (the newest value of each key)
//! ```
//!
//! Keys, values and rules are those of Apache Kafka Connect 4.3, so that Java workers and these can share a cluster. Left
//! out: the offsets topic (each task reads its own), the envelopes that workers before Kafka 2.0 could be told to write.
//!
//! Invariant: whatever the topics hold, a reader logs what it cannot use by key and reason and goes on. Values of connector
//! configs are never logged, they hold passwords.
//!
//! Sources: KIP-415, KIP-507, KIP-618, KIP-745, KIP-875, KIP-976, KIP-980, KAFKA-9228.

mod clock;
mod config;
mod error;
#[cfg(test)]
mod golden_tests;
mod json;
mod keys;
mod settings;
mod setup;
mod status;
mod tail;

pub use config::changes::Changes;
pub use config::fold::ConfigFold;
pub use config::records::{RestartRequest, SessionKey, TargetState};
pub use config::snapshot::ConfigSnapshot;
pub use config::topic::{ConfigTopic, WRITE_TIMEOUT};
pub use error::TopicError;
pub use settings::{ConfigTopicSettings, LeaderProducer, StatusTopicSettings, TopicSettings};
pub use status::fold::{StatusFold, TopicStatus};
pub use status::records::{State, Status};
pub use status::topic::StatusTopic;

/// A connector's or a task's configuration as it stands in the config topic. A value may be JSON null.
pub type Config = std::collections::BTreeMap<String, Option<String>>;
