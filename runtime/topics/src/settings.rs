//! What a worker's properties say about its topics, as values. Reading properties is the caller's.

use oncewire_client::cluster::Cluster;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::producer::PlainConfig;
use oncewire_client::reader::Isolation;
use std::collections::BTreeMap;

/// A topic of the cluster's own, and how to make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    /// `config.storage.topic` or `status.storage.topic`.
    pub name: String,
    /// `status.storage.partitions`; `None` (the property's -1): the broker's default. Without effect on the config topic,
    /// which has one.
    pub partitions: Option<i32>,
    /// `….storage.replication.factor`; `None` (the property's -1): the broker's default.
    pub replication_factor: Option<i16>,
    /// Topic configs out of `….storage.<topic config>`, without the prefix. `cleanup.policy` has no effect: it is compact.
    pub configs: BTreeMap<String, String>,
}

/// The config topic.
#[derive(Debug, Clone)]
pub struct ConfigTopicSettings {
    /// The topic.
    pub topic: TopicSettings,
    /// For administration, reading, and writes that need no privilege.
    pub cluster: Cluster,
    /// `isolation.level`; has to be [`Isolation::Committed`] where exactly-once is enabled, and is what the user says (Kafka's
    /// default: uncommitted) where it is not.
    pub isolation: Isolation,
    /// For writes that need no privilege, and for all of them without a [`LeaderProducer`].
    pub producer: PlainConfig,
    /// How the leader writes where `exactly.once.source.support` is preparing or enabled; `None` where it is disabled.
    pub leader: Option<LeaderProducer>,
}

/// The leader's transactional producer, whose id no two workers of a cluster can own at once (KIP-618).
#[derive(Debug, Clone)]
pub struct LeaderProducer {
    /// Its connections, with a `client.id` of their own.
    pub client: ClientConfig,
    /// Its `transactional.id` is `connect-cluster-<group.id>`.
    pub producer: ProducerConfig,
}

/// The status topic.
#[derive(Debug, Clone)]
pub struct StatusTopicSettings {
    /// The topic.
    pub topic: TopicSettings,
    /// For everything.
    pub cluster: Cluster,
    /// `isolation.level`, as the user says (Kafka's default: uncommitted).
    pub isolation: Isolation,
    /// For writes; `delivery_timeout` is one attempt's, see [`StatusTopic`](crate::StatusTopic).
    pub producer: PlainConfig,
}
