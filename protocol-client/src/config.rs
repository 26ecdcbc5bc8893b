//! Settings of the client under Kafka's own property names, as typed values with units.
//!
//! Each struct documents its defaults; they are those of Apache Kafka's Java client 4.x unless the field says otherwise.
//! `from_properties` gives the keys that it does not know back to the caller: whether an unknown key is an error or a
//! warning is for the program to say. Left out: SASL mechanisms other than PLAIN and SCRAM (refused by name), metrics
//! reporters, interceptors.

mod address;
mod jaas;
mod parse;
mod producer;
mod sasl;
mod secret;
mod security;
mod tls;

use std::collections::BTreeMap;
use std::time::Duration;

pub use address::BrokerAddress;
pub use parse::ConfigError;
pub use producer::{CompressionConfig, ProducerConfig};
pub use sasl::{SaslConfig, SaslMechanism};
pub use secret::Secret;
pub use security::SecurityConfig;
pub use tls::{IdentityConfig, StoreFile, StoreFormat, TlsConfig, TrustConfig};

use parse::Properties;

/// How to reach a cluster, and how patient to be with it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientConfig {
    /// `bootstrap.servers`: where to ask first, and again whenever no known broker answers. Never empty.
    pub bootstrap_servers: Vec<BrokerAddress>,
    /// `client.id`: how brokers name us in logs, metrics and quotas. Default `oncewire`.
    pub client_id: String,
    /// `client.rack`: our rack, for brokers that can pick a near replica. Default empty.
    pub client_rack: String,
    /// `request.timeout.ms`: how long one request may wait for its answer. Default 30 s.
    pub request_timeout: Duration,
    /// `default.api.timeout.ms`: the deadline of a whole operation with its retries. Default 60 s.
    pub default_api_timeout: Duration,
    /// `socket.connection.setup.timeout.ms`: for one address of a broker, the first time. Default 10 s.
    pub connection_setup_timeout: Duration,
    /// `socket.connection.setup.timeout.max.ms`: the same after repeated failures (doubling up to here). Default 30 s.
    pub connection_setup_timeout_max: Duration,
    /// `reconnect.backoff.ms`: pause after a failed connect (doubling). Default 50 ms.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`: the longest such pause. Default 1 s.
    pub reconnect_backoff_max: Duration,
    /// `retry.backoff.ms`: pause before a failed request is sent again (doubling). Default 100 ms.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`: the longest such pause. Default 1 s.
    pub retry_backoff_max: Duration,
    /// `metadata.max.age.ms`: metadata older than this is looked up again before use. Default 5 min.
    pub metadata_max_age: Duration,
    /// `metadata.recovery.strategy`. Default `rebootstrap`. `metadata.recovery.rebootstrap.trigger.ms` is checked and has nothing to
    /// bound: when no known broker answers, the bootstrap servers are asked at once.
    pub metadata_recovery: MetadataRecovery,
    /// `connections.max.idle.ms`: an unused connection is closed after this. Default 9 min, below the broker's 10.
    pub connections_max_idle: Duration,
    /// `send.buffer.bytes`: the socket's send buffer; `None` (property -1) leaves it to the operating system.
    /// Default `None`: the kernel's own tuning does better than Java's fixed 128 KiB on every current platform.
    pub send_buffer_bytes: Option<u32>,
    /// `receive.buffer.bytes`: likewise for receiving. Default `None` (Java: 32 KiB or 64 KiB).
    pub receive_buffer_bytes: Option<u32>,
    /// `security.protocol` with its `ssl.*` and `sasl.*`. Default `PLAINTEXT`.
    pub security: SecurityConfig,
}

/// `metadata.recovery.strategy` (KIP-899, KIP-1102): what to do when no known broker answers any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataRecovery {
    /// The bootstrap servers are asked again, also when a broker says so.
    #[default]
    Rebootstrap,
    /// Only brokers that were told are asked, as by clients before Kafka 4.0.
    None,
}

impl ClientConfig {
    /// Defaults for the given `bootstrap.servers` text, such as `broker1:9092,broker2:9092`.
    ///
    /// # Errors
    /// When the text names no usable `host:port`.
    pub fn new(bootstrap_servers: &str) -> Result<Self, ConfigError> {
        Ok(Self::with_servers(address::parse_list(bootstrap_servers)?))
    }

    /// Reads Kafka's property names. The second value lists the keys that are not the client's.
    ///
    /// # Errors
    /// A missing or malformed value, named with what is allowed; a security setting that is not supported.
    pub fn from_properties(properties: &BTreeMap<String, String>) -> Result<(Self, Vec<String>), ConfigError> {
        let mut read = Properties::new(properties);
        let servers = read.required("bootstrap.servers")?;
        let mut config = Self::with_servers(address::parse_list(servers)?);
        read.text("client.id", &mut config.client_id);
        read.text("client.rack", &mut config.client_rack);
        read.millis("request.timeout.ms", 1, &mut config.request_timeout)?;
        read.millis("default.api.timeout.ms", 1, &mut config.default_api_timeout)?;
        read.millis("socket.connection.setup.timeout.ms", 1, &mut config.connection_setup_timeout)?;
        read.millis("socket.connection.setup.timeout.max.ms", 1, &mut config.connection_setup_timeout_max)?;
        read.millis("reconnect.backoff.ms", 0, &mut config.reconnect_backoff)?;
        read.millis("reconnect.backoff.max.ms", 0, &mut config.reconnect_backoff_max)?;
        read.millis("retry.backoff.ms", 0, &mut config.retry_backoff)?;
        read.millis("retry.backoff.max.ms", 0, &mut config.retry_backoff_max)?;
        read.millis("metadata.max.age.ms", 0, &mut config.metadata_max_age)?;
        read.millis("connections.max.idle.ms", 1000, &mut config.connections_max_idle)?;
        read.socket_buffer("send.buffer.bytes", &mut config.send_buffer_bytes)?;
        read.socket_buffer("receive.buffer.bytes", &mut config.receive_buffer_bytes)?;
        config.metadata_recovery = MetadataRecovery::read(&mut read)?;
        config.security = SecurityConfig::read(&mut read)?;
        read.only("client.dns.lookup", &["use_all_dns_ips"], "all addresses of a name are always tried")?;
        Ok((config, read.unknown()))
    }

    fn with_servers(bootstrap_servers: Vec<BrokerAddress>) -> Self {
        Self {
            bootstrap_servers,
            client_id: "oncewire".to_owned(),
            client_rack: String::new(),
            request_timeout: Duration::from_secs(30),
            default_api_timeout: Duration::from_secs(60),
            connection_setup_timeout: Duration::from_secs(10),
            connection_setup_timeout_max: Duration::from_secs(30),
            reconnect_backoff: Duration::from_millis(50),
            reconnect_backoff_max: Duration::from_secs(1),
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            metadata_max_age: Duration::from_secs(300),
            metadata_recovery: MetadataRecovery::Rebootstrap,
            connections_max_idle: Duration::from_secs(540),
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            security: SecurityConfig::default(),
        }
    }
}

impl MetadataRecovery {
    fn read(read: &mut Properties<'_>) -> Result<Self, ConfigError> {
        let mut trigger = Duration::ZERO;
        read.millis("metadata.recovery.rebootstrap.trigger.ms", 0, &mut trigger)?;
        let key = "metadata.recovery.strategy";
        match read.filled(key).unwrap_or("rebootstrap").to_ascii_lowercase().as_str() {
            "rebootstrap" => Ok(Self::Rebootstrap),
            "none" => Ok(Self::None),
            other => Err(parse::invalid(key, other, "rebootstrap or none".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn kafka_property_names_become_typed_settings() {
        let (config, unknown) = ClientConfig::from_properties(&properties(&[
            ("bootstrap.servers", "one:9092, [::1]:9093"),
            ("request.timeout.ms", "1500"),
            ("send.buffer.bytes", "65536"),
            ("receive.buffer.bytes", "-1"),
            ("group.id", "g"),
        ]))
        .unwrap();
        assert_eq!(config.bootstrap_servers.len(), 2);
        assert_eq!(config.bootstrap_servers[1].to_string(), "[::1]:9093");
        assert_eq!(config.request_timeout, Duration::from_millis(1500));
        assert_eq!(config.send_buffer_bytes, Some(65536));
        assert_eq!(config.receive_buffer_bytes, None);
        assert_eq!(unknown, vec!["group.id".to_owned()]);
    }

    #[test]
    fn a_malformed_value_is_named_with_what_is_allowed() {
        let error = ClientConfig::from_properties(&properties(&[
            ("bootstrap.servers", "one:9092"),
            ("request.timeout.ms", "30s"),
        ]))
        .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("request.timeout.ms") && text.contains("30s") && text.contains("milliseconds"), "{text}");
    }

    #[test]
    fn both_strategies_of_recovery_are_read_and_another_is_refused() {
        let read = |value: &str| {
            ClientConfig::from_properties(&properties(&[
                ("bootstrap.servers", "one:9092"),
                ("metadata.recovery.strategy", value),
                ("metadata.recovery.rebootstrap.trigger.ms", "300000"),
            ]))
        };
        let (none, unknown) = read("NONE").unwrap();
        assert_eq!((none.metadata_recovery, unknown.len()), (MetadataRecovery::None, 0));
        assert_eq!(read("rebootstrap").unwrap().0.metadata_recovery, MetadataRecovery::Rebootstrap);
        assert!(read("sometimes").unwrap_err().to_string().contains("rebootstrap or none"));
    }

    #[test]
    fn bootstrap_servers_are_required() {
        let error = ClientConfig::from_properties(&BTreeMap::new()).unwrap_err();
        assert!(error.to_string().contains("bootstrap.servers"), "{error}");
    }
}
