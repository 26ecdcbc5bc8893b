//! A dev broker and the settings of a worker's topics on it.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use oncewire_client::admin::{Admin, NewTopic};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::producer::PlainConfig;
use oncewire_client::reader::Isolation;
use oncewire_dev_broker::{DevBroker, DevBrokerConfig};
use oncewire_topics::{Config, ConfigTopicSettings, LeaderProducer, StatusTopicSettings, TopicSettings};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Stage {
    pub broker: DevBroker,
    pub cluster: Cluster,
}

impl Stage {
    pub async fn start() -> Self {
        Self::with(DevBrokerConfig::default()).await
    }

    pub async fn with(config: DevBrokerConfig) -> Self {
        let broker = DevBroker::start(config).await.expect("the dev broker starts on a free port");
        let cluster = Cluster::connect(client(&broker)).await.expect("the dev broker answers");
        Self { broker, cluster }
    }

    pub fn config_topic(&self, exactly_once: bool) -> ConfigTopicSettings {
        let leader = LeaderProducer {
            client: client(&self.broker),
            producer: ProducerConfig::new("connect-cluster-g").expect("an id"),
        };
        ConfigTopicSettings {
            topic: topic("configs"),
            cluster: self.cluster.clone(),
            isolation: if exactly_once { Isolation::Committed } else { Isolation::Uncommitted },
            producer: PlainConfig::default(),
            leader: exactly_once.then_some(leader),
        }
    }

    pub fn status_topic(&self) -> StatusTopicSettings {
        StatusTopicSettings {
            topic: topic("statuses"),
            cluster: self.cluster.clone(),
            isolation: Isolation::Uncommitted,
            producer: PlainConfig::default(),
        }
    }

    pub async fn make(&self, name: &str, partitions: i32, policy: &str) {
        let configs = BTreeMap::from([("cleanup.policy".to_owned(), policy.to_owned())]);
        let topic = NewTopic { name: name.into(), partitions: Some(partitions), replication_factor: Some(1), configs };
        Admin::new(self.cluster.clone()).create_topic(&topic).await.expect("the dev broker makes topics");
    }
}

fn client(broker: &DevBroker) -> ClientConfig {
    ClientConfig::new(&broker.bootstrap()).expect("an address")
}

fn topic(name: &str) -> TopicSettings {
    TopicSettings { name: name.into(), partitions: Some(3), replication_factor: Some(1), configs: BTreeMap::new() }
}

pub fn config(version: &str) -> Config {
    Config::from([("version".to_owned(), Some(version.to_owned()))])
}

/// Fails the test instead of hanging.
pub async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.expect("it happens within the test's patience")
}
