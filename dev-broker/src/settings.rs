//! What a dev broker can be told: limits, delays and the broker configs that clients can see.
//!
//! Defaults are Kafka 4.x's own where Kafka has the setting; the name of Kafka's setting stands beside each. The
//! limits at the end are ours: everything that a client can make this process keep is bounded.

use std::time::Duration;

/// Settings of the pure core. See [`crate::DevBrokerConfig`] for the socket side.
#[derive(Debug, Clone)]
pub struct BrokerSettings {
    /// `node.id` of the only node.
    pub node_id: i32,
    /// What Metadata and DescribeCluster call the cluster.
    pub cluster_id: String,
    /// The host that clients are told to connect to (`advertised.listeners`).
    pub advertised_host: String,
    /// The port that clients are told to connect to.
    pub advertised_port: u16,
    /// The finalized level of the feature `transaction.version`: 0, 1 or 2. As in Kafka 4.x this is what is
    /// announced; what a request does depends on the version the client sent it in.
    pub transaction_version: i16,
    /// `num.partitions`: partitions of a topic that is created without saying how many. Default 1.
    pub default_partitions: i32,
    /// `auto.create.topics.enable`. Off here (Kafka: on), so that a wrong topic name shows.
    pub auto_create_topics: bool,
    /// `message.max.bytes`: the largest record batch, with its offset and length fields. Default 1,048,588.
    pub message_bytes_max: usize,
    /// `transaction.max.timeout.ms`. Default 15 minutes.
    pub transaction_timeout_max: Duration,
    /// `transaction.abort.timed.out.transaction.cleanup.interval.ms`: how often open transactions are looked through.
    /// Default 10 s.
    pub transaction_scan_interval: Duration,
    /// `transactional.id.expiration.ms`. Default 7 days.
    pub transactional_id_expiration: Duration,
    /// `producer.id.expiration.ms`: how long a partition remembers an idle producer. Default 1 day.
    pub producer_id_expiration: Duration,
    /// How long after EndTxn was answered the markers are written. Real brokers need 0.2 to 5 ms; zero writes them
    /// before the answer leaves, which is the only thing here that no real broker does.
    pub marker_delay: Duration,
    /// `add.partitions.to.txn.retry.backoff.ms`: a Produce (v12 and later) that meets markers still being written is
    /// tried again after this. Default 20 ms.
    pub add_partitions_retry_backoff: Duration,
    /// `add.partitions.to.txn.retry.backoff.max.ms`: after this the Produce is answered CONCURRENT_TRANSACTIONS.
    /// Default 100 ms.
    pub add_partitions_retry_max: Duration,
    /// `message.timestamp.after.max.ms`: how far in the future a record may be. Default 1 hour.
    pub timestamp_after_max: Duration,
    /// `group.initial.rebalance.delay.ms`: how long a group without members waits for more than its first one. Default
    /// 0, as in the configuration that Kafka's quickstart uses (Kafka's own default is 3 s).
    pub group_initial_rebalance_delay: Duration,
    /// `group.min.session.timeout.ms`. Default 6 s.
    pub group_session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`. Default 30 minutes.
    pub group_session_timeout_max: Duration,
    /// The longest that a Fetch may wait, whatever its `max_wait_ms` says. Default 5 minutes.
    pub fetch_wait_max: Duration,
    /// Bytes of record batches kept over all partitions. Full: KAFKA_STORAGE_ERROR with this limit's name. Default 4
    /// GiB.
    pub log_bytes_max: u64,
    /// Partitions over all topics. Full: POLICY_VIOLATION. Default 10,000.
    pub partitions_max: usize,
    /// Transactional ids the coordinator keeps. Full: COORDINATOR_NOT_AVAILABLE. Default 100,000.
    pub transactional_ids_max: usize,
    /// Producer ids one partition keeps; beyond, the one idle for longest without an open transaction goes. Default
    /// 10,000.
    pub producers_per_partition_max: usize,
}

impl Default for BrokerSettings {
    fn default() -> Self {
        Self {
            node_id: 1,
            cluster_id: "oncewire-dev-broker".to_owned(),
            advertised_host: "127.0.0.1".to_owned(),
            advertised_port: 9092,
            transaction_version: 2,
            default_partitions: 1,
            auto_create_topics: false,
            message_bytes_max: 1_048_588,
            transaction_timeout_max: Duration::from_secs(15 * 60),
            transaction_scan_interval: Duration::from_secs(10),
            transactional_id_expiration: Duration::from_secs(7 * 24 * 3600),
            producer_id_expiration: Duration::from_secs(24 * 3600),
            marker_delay: Duration::ZERO,
            add_partitions_retry_backoff: Duration::from_millis(20),
            add_partitions_retry_max: Duration::from_millis(100),
            timestamp_after_max: Duration::from_secs(3600),
            group_initial_rebalance_delay: Duration::ZERO,
            group_session_timeout_min: Duration::from_secs(6),
            group_session_timeout_max: Duration::from_secs(30 * 60),
            fetch_wait_max: Duration::from_secs(300),
            log_bytes_max: 4 << 30,
            partitions_max: 10_000,
            transactional_ids_max: 100_000,
            producers_per_partition_max: 10_000,
        }
    }
}
