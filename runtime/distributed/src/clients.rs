//! Which properties the worker's own clients get. Names as a Java worker's, so that quotas and broker logs fit both.

use crate::config::{DistributedConfig, TopicSettings};
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::group::GroupConfig;
use oncewire_client::producer::PlainConfig;
use oncewire_client::reader::Isolation;
use oncewire_topics::LeaderProducer;
use oncewire_worker::config::clients::{internal_producer, plain};
use oncewire_worker::config::worker::ExactlyOnceSource;
use std::time::Duration;

/// How long one attempt to write a status may take: 30 s, after which the newest status is sent anew.
const STATUS_DELIVERY: Duration = Duration::from_secs(30);

/// The first wait before a request is sent again, unless the user says otherwise; as for tasks.
const RETRY_BACKOFF_MS: &str = "20";

/// `request.timeout.ms` of the membership's connection, unless the user says otherwise: 40 s, Connect's own default for it, above the
/// 30 s of Kafka's clients that hold for all others.
const GROUP_REQUEST_TIMEOUT: Duration = Duration::from_secs(40);

/// `transaction.timeout.ms` of the leader's producer, unless the user says otherwise: 10 s, where Java leaves Kafka's default of
/// 60 s. A write is one short transaction. When all workers are killed during one, nobody is there to claim the producer anew,
/// and no worker can read the config topic to its end, so none starts, before the coordinator gives the transaction up.
const LEADER_TRANSACTION_TIMEOUT_MS: &str = "10000";

/// A connection's configuration from the worker's top-level properties.
///
/// # Errors
/// What the client refuses, naming the property.
pub fn client(config: &DistributedConfig, role: &str) -> Result<ClientConfig, String> {
    let mut properties = config.originals.clone();
    properties.entry("retry.backoff.ms".to_owned()).or_insert_with(|| RETRY_BACKOFF_MS.to_owned());
    let (mut client, _) = ClientConfig::from_properties(&properties).map_err(|error| error.to_string())?;
    client.client_id = format!("{}{role}", config.client_id_base());
    Ok(client)
}

/// The membership's connection: `client.id` if it is set, else `connect-<worker id>`.
///
/// # Errors
/// As [`client`].
pub fn group_client(config: &DistributedConfig, worker_id: &str) -> Result<ClientConfig, String> {
    let mut group = client(config, "")?;
    group.client_id = match config.client_id.trim() {
        "" => format!("connect-{worker_id}"),
        given => given.to_owned(),
    };
    if !config.originals.contains_key("request.timeout.ms") {
        group.request_timeout = GROUP_REQUEST_TIMEOUT;
    }
    Ok(group)
}

/// The membership.
pub fn group(config: &DistributedConfig) -> GroupConfig {
    GroupConfig {
        group_id: config.group_id.clone(),
        protocol_type: "connect".to_owned(),
        session_timeout: config.session_timeout,
        rebalance_timeout: config.rebalance_timeout,
        heartbeat_interval: config.heartbeat_interval,
    }
}

/// How internal topics are read: committed data only where exactly-once is enabled, else as the user says.
pub fn isolation(config: &DistributedConfig) -> Isolation {
    let given = config.originals.get("isolation.level").map(|level| level.trim().to_ascii_lowercase());
    match (config.exactly_once, given.as_deref()) {
        (ExactlyOnceSource::Enabled, _) | (_, Some("read_committed")) => Isolation::Committed,
        _ => Isolation::Uncommitted,
    }
}

/// Writes without privilege.
///
/// # Errors
/// What the producer refuses.
pub fn plain_producer(config: &DistributedConfig) -> Result<PlainConfig, String> {
    // The sizes and times have one definition; the transactional id is not used.
    let properties = internal_producer(&config.originals, "none");
    let (read, _) = ProducerConfig::from_properties(&properties).map_err(|error| error.to_string())?;
    Ok(PlainConfig {
        delivery_timeout: STATUS_DELIVERY,
        max_block: read.max_block.min(STATUS_DELIVERY),
        max_in_flight: 1,
        ..plain(&read)
    })
}

/// The leader's transactional producer, where its writes are fenced (KIP-618).
///
/// # Errors
/// What the clients refuse.
pub fn leader_producer(config: &DistributedConfig) -> Result<Option<LeaderProducer>, String> {
    if !config.exactly_once.leader_is_transactional() {
        return Ok(None);
    }
    let mut properties = internal_producer(&config.originals, &format!("connect-cluster-{}", config.group_id));
    properties.entry("transaction.timeout.ms".to_owned()).or_insert_with(|| LEADER_TRANSACTION_TIMEOUT_MS.to_owned());
    let (producer, _) = ProducerConfig::from_properties(&properties).map_err(|error| error.to_string())?;
    Ok(Some(LeaderProducer { client: client(config, "configs-leader")?, producer }))
}

/// As the topic crate has it.
pub fn topic(settings: &TopicSettings) -> oncewire_topics::TopicSettings {
    oncewire_topics::TopicSettings {
        name: settings.name.clone(),
        partitions: Some(settings.partitions).filter(|partitions| *partitions > 0),
        replication_factor: Some(settings.replication_factor).filter(|replicas| *replicas > 0),
        configs: settings.configs.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &[(&str, &str)]) -> DistributedConfig {
        let least = [
            ("bootstrap.servers", "h:1"),
            ("group.id", "g"),
            ("config.storage.topic", "c"),
            ("offset.storage.topic", "o"),
            ("status.storage.topic", "s"),
            ("exactly.once.source.support", "enabled"),
        ];
        let given = least.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        DistributedConfig::read(&given).unwrap()
    }

    fn leader_timeout(more: &[(&str, &str)]) -> Duration {
        leader_producer(&config(more)).unwrap().unwrap().producer.transaction_timeout
    }

    /// B32: a user's own id and isolation do not count where they would break the fencing; `preparing` leaves the isolation alone.
    #[test]
    fn fencable_props() {
        let mode = |mode| ("exactly.once.source.support", mode);
        let given =
            [("transactional.id", "mine"), ("enable.idempotence", "false"), ("isolation.level", "read_uncommitted")];
        let leader = |more: &'static str| leader_producer(&config(&[&given[..], &[mode(more)]].concat())).unwrap();
        assert_eq!(leader("enabled").unwrap().producer.transactional_id, "connect-cluster-g");
        assert_eq!(leader("preparing").unwrap().producer.transactional_id, "connect-cluster-g");
        assert!(leader("disabled").is_none());
        assert_eq!(isolation(&config(&given)), Isolation::Committed);
        for other in ["preparing", "disabled"] {
            assert_eq!(isolation(&config(&[&given[..], &[mode(other)]].concat())), Isolation::Uncommitted);
            assert_eq!(isolation(&config(&[mode(other), ("isolation.level", "read_committed")])), Isolation::Committed);
        }
    }

    #[test]
    fn the_top_level_holds_for_the_internal_topics_clients_and_the_group_has_a_patience_of_its_own() {
        let given =
            config(&[("compression.type", "gzip"), ("max.request.size", "7000000"), ("producer.batch.size", "9")]);
        let plain = plain_producer(&given).unwrap();
        assert_eq!((plain.max_request_bytes, plain.batch_bytes), (7_000_000, 1_000_000));
        assert_ne!(plain.compression, PlainConfig::default().compression);
        let timeouts = |config: &DistributedConfig| {
            let of = |client: ClientConfig| client.request_timeout.as_secs();
            (of(group_client(config, "w").unwrap()), of(client(config, "r").unwrap()))
        };
        assert_eq!(timeouts(&given), (40, 30));
        assert_eq!(timeouts(&config(&[("request.timeout.ms", "7000")])), (7, 7));
    }

    #[test]
    fn a_transaction_of_a_killed_leader_holds_the_starting_workers_up_for_seconds_only() {
        assert_eq!(leader_timeout(&[]), Duration::from_secs(10));
        assert_eq!(leader_timeout(&[("transaction.timeout.ms", "30000")]), Duration::from_secs(30));
    }
}
