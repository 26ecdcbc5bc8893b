//! A dev broker, a cluster and a topic for the producer's stories.

#![allow(dead_code, reason = "each test binary uses its own part")]

use oncewire_client::cluster::Cluster;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::producer::{PlainConfig, PlainProducer, StagedBatch, TransactionalProducer};
use oncewire_client::reader::{LogReader, ReaderOptions};
use oncewire_dev_broker::{BrokerSettings, DevBroker, DevBrokerConfig};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use kafka_protocol::ResponseError;
pub(crate) use kafka_protocol::messages::ApiKey;
pub(crate) use oncewire_dev_broker::Fault;

/// Both generations of the transaction protocol.
pub(crate) const GENERATIONS: [i16; 2] = [1, 2];

/// What any step of a story may take on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const TOPIC: &str = "orders";

pub(crate) struct Stage {
    pub(crate) broker: DevBroker,
    pub(crate) cluster: Cluster,
    pub(crate) topic: Arc<str>,
}

impl Stage {
    pub(crate) async fn set(transaction_version: i16) -> Self {
        Self::set_with(transaction_version, |_| {}, |_| {}).await
    }

    pub(crate) async fn set_with(
        transaction_version: i16,
        broker: impl FnOnce(&mut BrokerSettings),
        client: impl FnOnce(&mut ClientConfig),
    ) -> Self {
        let mut settings = BrokerSettings {
            transaction_version,
            default_partitions: 3,
            auto_create_topics: true,
            ..BrokerSettings::default()
        };
        broker(&mut settings);
        let broker =
            DevBroker::start(DevBrokerConfig { broker: settings, ..DevBrokerConfig::default() }).await.unwrap();
        let mut config = ClientConfig::new(&broker.bootstrap()).unwrap();
        config.retry_backoff = Duration::from_millis(5);
        config.retry_backoff_max = Duration::from_millis(50);
        config.reconnect_backoff = Duration::from_millis(5);
        client(&mut config);
        let cluster = Cluster::connect(config).await.unwrap();
        let stage = Self { broker, cluster, topic: TOPIC.into() };
        oncewire_client::admin::Admin::new(stage.cluster.clone())
            .create_topic(&oncewire_client::admin::NewTopic {
                name: TOPIC.to_owned(),
                partitions: Some(3),
                replication_factor: None,
                configs: Default::default(),
            })
            .await
            .unwrap();
        stage
    }

    pub(crate) fn producer(&self, id: &str) -> TransactionalProducer {
        self.producer_with(id, |_| {})
    }

    pub(crate) fn producer_with(&self, id: &str, change: impl FnOnce(&mut ProducerConfig)) -> TransactionalProducer {
        let mut config = ProducerConfig::new(id).unwrap();
        change(&mut config);
        TransactionalProducer::new(self.cluster.clone(), config)
    }

    pub(crate) async fn ready(&self, id: &str) -> TransactionalProducer {
        let producer = self.producer(id);
        producer.init().await.unwrap();
        producer
    }

    pub(crate) fn plain(&self, change: impl FnOnce(&mut PlainConfig)) -> PlainProducer {
        let mut config = PlainConfig::default();
        change(&mut config);
        PlainProducer::new(self.cluster.clone(), config)
    }

    /// Makes the next `times` requests of an API suffer.
    pub(crate) fn suffer(&self, api: ApiKey, times: u64, fault: Fault) {
        for nth in 1..=times {
            self.broker.faults().inject(api, nth, fault);
        }
    }

    /// The committed values of one partition, in order.
    pub(crate) async fn committed(&self, partition: i32) -> Vec<String> {
        let options = ReaderOptions {
            partitions: Some(vec![partition]),
            max_wait: Duration::from_millis(20),
            ..ReaderOptions::default()
        };
        let mut reader = LogReader::open(&self.cluster, TOPIC, options).await.unwrap();
        let mut values = Vec::new();
        reader
            .read_to_end(tokio::time::Instant::now() + PATIENCE, |_, records| {
                values.extend(
                    records.iter().map(|record| {
                        String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned()
                    }),
                );
            })
            .await
            .unwrap();
        values
    }
}

/// One sealed batch for a partition.
pub(crate) fn batch(
    producer: &TransactionalProducer,
    topic: &Arc<str>,
    partition: u32,
    values: &[&str],
) -> Vec<StagedBatch> {
    let mut stage = producer.stage();
    for value in values {
        stage.append(topic, partition, 1_700_000_000_000, None, Some(value.as_bytes()), &[]).unwrap();
    }
    stage.seal()
}

/// A future that is to end within a test's patience.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("the step took too long")
}
