//! The distributed worker's properties: the keys of connect-distributed, with Java's defaults.
//!
//! Tasks and stores take theirs from [`WorkerConfig`], REST takes its own; here are the group, the internal topics, the
//! sessions between workers, and the merging of all into one start. A key that nobody knows is named in a warning; one
//! whose effect a user relies on and that is missing here is refused.

use oncewire_api::config_def::{ConfigKey, ConfigType, Importance, Validator};
use oncewire_api::{Config, ConfigDef, ConfigProblem, Properties};
use oncewire_membership::ConnectProtocol;
use oncewire_worker::config::worker::ExactlyOnceSource;
use std::collections::BTreeMap;
use std::time::Duration;

/// An internal topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    /// Its name.
    pub name: String,
    /// Partitions when it is made; -1: the broker's default.
    pub partitions: i32,
    /// Replicas when it is made; -1: the broker's default.
    pub replication_factor: i16,
    /// Other topic settings when it is made.
    pub configs: BTreeMap<String, String>,
}

/// Keys between workers (KIP-507).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionKeys {
    /// `inter.worker.key.size` in bytes.
    pub key_bytes: usize,
    /// `inter.worker.key.generation.algorithm`.
    pub key_algorithm: String,
    /// `inter.worker.key.ttl.ms`; zero: never rotated.
    pub ttl: Duration,
    /// `inter.worker.signature.algorithm`.
    pub signature_algorithm: String,
    /// `inter.worker.verification.algorithms`.
    pub verification_algorithms: Vec<String>,
}

/// The distributed part of a worker's configuration, checked.
#[derive(Debug, Clone)]
pub struct DistributedConfig {
    /// `group.id`.
    pub group_id: String,
    /// `client.id`, empty when not set.
    pub client_id: String,
    /// `connect.protocol`.
    pub protocol: ConnectProtocol,
    /// `session.timeout.ms`.
    pub session_timeout: Duration,
    /// `rebalance.timeout.ms`.
    pub rebalance_timeout: Duration,
    /// `heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// `scheduled.rebalance.max.delay.ms`.
    pub rebalance_delay_max: Duration,
    /// `scheduled.rebalance.early.enable`.
    pub deals_early: bool,
    /// `worker.sync.timeout.ms`.
    pub sync_timeout: Duration,
    /// `worker.unsync.backoff.ms`.
    pub unsync_backoff: Duration,
    /// `exactly.once.source.support`.
    pub exactly_once: ExactlyOnceSource,
    /// `config.storage.*`.
    pub config_topic: TopicSettings,
    /// `status.storage.*`.
    pub status_topic: TopicSettings,
    /// `inter.worker.*`.
    pub session_keys: SessionKeys,
    /// `topic.tracking.enable`.
    pub topic_tracking: bool,
    /// `topic.tracking.allow.reset`.
    pub topic_tracking_reset: bool,
    /// Everything as it was given.
    pub originals: Properties,
    /// Warnings for the log.
    pub warnings: Vec<String>,
}

/// The definition of the keys that are read here.
pub fn config_def() -> ConfigDef {
    group_def().merged(topics_def()).merged(between_workers_def())
}

fn text(key: &'static str, kind: ConfigType, default: &str, importance: Importance, doc: &'static str) -> ConfigKey {
    ConfigKey::with_default(key, kind, default, importance, doc)
}

fn group_def() -> ConfigDef {
    use ConfigType::{Int, String};
    use Importance::{High, Low};
    ConfigDef::new()
        .define(
            ConfigKey::required("group.id", String, High, "the group of workers that share connectors")
                .validator(Validator::NonEmpty),
        )
        .define(text("client.id", String, "", Low, "how brokers name this worker's clients"))
        .define(
            text(
                "session.timeout.ms",
                Int,
                "10000",
                High,
                "without a heartbeat for this long the group goes on without the worker",
            )
            .validator(Validator::at_least(1)),
        )
        .define(
            text("rebalance.timeout.ms", Int, "60000", High, "how long workers have to join a rebalance")
                .validator(Validator::at_least(1)),
        )
        .define(
            text("heartbeat.interval.ms", Int, "3000", High, "time between heartbeats")
                .validator(Validator::at_least(1)),
        )
        .merged(protocol_def())
}

/// How the group divides its work, and how workers keep up.
fn protocol_def() -> ConfigDef {
    use ConfigType::{Boolean, Int, String};
    use Importance::{High, Low, Medium};
    ConfigDef::new()
        .define(
            text("connect.protocol", String, "sessioned", Low, "the newest group protocol that the worker offers")
                .validator(Validator::one_of_ignoring_case(&["eager", "compatible", "sessioned"])),
        )
        .define(
            text(
                "scheduled.rebalance.max.delay.ms",
                Int,
                "300000",
                Low,
                "how long the work of a worker that left waits for its return",
            )
            .validator(Validator::at_least(0)),
        )
        .define(text(
            "scheduled.rebalance.early.enable",
            Boolean,
            "true",
            Low,
            "where this worker leads: whether that work is handed out as soon as as many workers have come as have left; false: when the \
             delay is over, as in Java",
        ))
        .define(
            text(
                "worker.sync.timeout.ms",
                Int,
                "3000",
                Medium,
                "how long the worker may take to catch up with the config topic before it leaves the group",
            )
            .validator(Validator::at_least(1)),
        )
        .define(
            text(
                "worker.unsync.backoff.ms",
                Int,
                "300000",
                Medium,
                "eager protocol: how long a worker that could not catch up stays away",
            )
            .validator(Validator::at_least(0)),
        )
        .define(
            text(
                "exactly.once.source.support",
                String,
                "disabled",
                High,
                "disabled, preparing or enabled; two rolling restarts lead from the first to the last",
            )
            .validator(Validator::one_of_ignoring_case(&["disabled", "preparing", "enabled"])),
        )
}

fn topics_def() -> ConfigDef {
    use ConfigType::{Boolean, Int, Short, String};
    use Importance::{High, Low};
    let replicas = |key, doc| text(key, Short, "3", Low, doc).validator(Validator::between(-1, i64::from(i16::MAX)));
    ConfigDef::new()
        .define(
            ConfigKey::required("config.storage.topic", String, High, "topic of connector configurations")
                .validator(Validator::TopicName),
        )
        .define(replicas(
            "config.storage.replication.factor",
            "replicas of the config topic when it is made; -1: the broker's default",
        ))
        .define(
            ConfigKey::required("offset.storage.topic", String, High, "topic of source offsets")
                .validator(Validator::TopicName),
        )
        .define(
            text(
                "offset.storage.partitions",
                Int,
                "25",
                Low,
                "partitions of the offsets topic when it is made; -1: the broker's default",
            )
            .validator(Validator::between(-1, 100_000)),
        )
        .define(replicas(
            "offset.storage.replication.factor",
            "replicas of the offsets topic when it is made; -1: the broker's default",
        ))
        .define(
            ConfigKey::required("status.storage.topic", String, High, "topic of states")
                .validator(Validator::TopicName),
        )
        .define(
            text(
                "status.storage.partitions",
                Int,
                "5",
                Low,
                "partitions of the status topic when it is made; -1: the broker's default",
            )
            .validator(Validator::between(-1, 100_000)),
        )
        .define(replicas(
            "status.storage.replication.factor",
            "replicas of the status topic when it is made; -1: the broker's default",
        ))
        .define(text(
            "topic.tracking.enable",
            Boolean,
            "true",
            Low,
            "whether the topics that connectors write are remembered",
        ))
        .define(text("topic.tracking.allow.reset", Boolean, "true", Low, "whether users may have them forgotten"))
}

fn between_workers_def() -> ConfigDef {
    use ConfigType::{Int, List, String};
    use Importance::Low;
    ConfigDef::new()
        .define(text(
            "inter.worker.key.generation.algorithm",
            String,
            "HmacSHA256",
            Low,
            "algorithm of the keys between workers",
        ))
        .define(
            ConfigKey::optional(
                "inter.worker.key.size",
                Int,
                Low,
                "size of such a key in bits; default: the algorithm's",
            )
            .validator(Validator::between(KEY_BITS_MIN, KEY_BITS_MAX)),
        )
        .define(
            text("inter.worker.key.ttl.ms", Int, "3600000", Low, "how long such a key lives; 0: for ever")
                .validator(Validator::at_least(0)),
        )
        .define(text("inter.worker.signature.algorithm", String, "HmacSHA256", Low, "how internal requests are signed"))
        .define(text("inter.worker.verification.algorithms", List, "HmacSHA256", Low, "which signatures are accepted"))
}

/// The one algorithm for keys and signatures here: Java's default, and the only one that any worker is told to use.
const HMAC: &str = "HmacSHA256";

/// Java makes no smaller key for it.
const KEY_BITS_MIN: i64 = 40;
/// The block of SHA-256: of a longer key HMAC uses the digest alone (RFC 2104, section 2). Java takes any size, and then its leader
/// cannot write the key into the config topic.
const KEY_BITS_MAX: i64 = 512;

impl DistributedConfig {
    /// Checks the properties; config providers' references are resolved already.
    ///
    /// # Errors
    /// Every problem as one line that names its key.
    pub fn read(originals: &Properties) -> Result<Self, Vec<String>> {
        let lines = |problems: Vec<ConfigProblem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let config = config_def().parse(originals).map_err(lines)?;
        let read = Self::from_config(&config, originals).map_err(|problem| lines(vec![problem]))?;
        let problems = read.contradictions();
        if problems.is_empty() { Ok(read) } else { Err(problems) }
    }

    fn from_config(config: &Config, originals: &Properties) -> Result<Self, ConfigProblem> {
        let mut warnings = Vec::new();
        let protocol = match config.text("connect.protocol")?.to_ascii_lowercase().as_str() {
            "eager" => ConnectProtocol::Eager,
            "compatible" => ConnectProtocol::Compatible,
            _ => ConnectProtocol::Sessioned,
        };
        let exactly_once = ExactlyOnceSource::from_property(config.text("exactly.once.source.support")?);
        if originals.get("config.storage.partitions").is_some_and(|given| given.trim() != "1") {
            warnings.push("property 'config.storage.partitions' is ignored: the config topic has one partition".into());
        }
        let mut topic = |prefix: &str, partitions: i32, replicas: i32| TopicSettings {
            name: originals.get(&format!("{prefix}topic")).map(|name| name.trim().to_owned()).unwrap_or_default(),
            partitions,
            replication_factor: i16::try_from(replicas).unwrap_or(-1),
            configs: extra_settings(originals, prefix, &mut warnings),
        };
        let config_topic = topic("config.storage.", 1, config.int("config.storage.replication.factor")?);
        let status_partitions = config.int("status.storage.partitions")?;
        let status_topic =
            topic("status.storage.", status_partitions, config.int("status.storage.replication.factor")?);
        Ok(Self {
            group_id: config.text("group.id")?.to_owned(),
            client_id: config.text("client.id")?.to_owned(),
            protocol,
            session_timeout: millis(config.int("session.timeout.ms")?),
            rebalance_timeout: millis(config.int("rebalance.timeout.ms")?),
            heartbeat_interval: millis(config.int("heartbeat.interval.ms")?),
            rebalance_delay_max: millis(config.int("scheduled.rebalance.max.delay.ms")?),
            deals_early: config.boolean("scheduled.rebalance.early.enable")?,
            sync_timeout: millis(config.int("worker.sync.timeout.ms")?),
            unsync_backoff: millis(config.int("worker.unsync.backoff.ms")?),
            exactly_once,
            config_topic,
            status_topic,
            session_keys: session_keys(config)?,
            topic_tracking: config.boolean("topic.tracking.enable")?,
            topic_tracking_reset: config.boolean("topic.tracking.allow.reset")?,
            originals: originals.clone(),
            warnings,
        })
    }

    /// Values that are well formed but cannot work together.
    fn contradictions(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (key, algorithm) in [
            ("inter.worker.key.generation.algorithm", &self.session_keys.key_algorithm),
            ("inter.worker.signature.algorithm", &self.session_keys.signature_algorithm),
        ] {
            if algorithm != HMAC {
                problems.push(format!("property '{key}' is '{algorithm}', which is not supported; allowed: {HMAC}"));
            }
        }
        if !self.session_keys.verification_algorithms.contains(&self.session_keys.signature_algorithm) {
            problems.push(format!(
                "property 'inter.worker.verification.algorithms' must contain inter.worker.signature.algorithm, '{}'",
                self.session_keys.signature_algorithm
            ));
        }
        if self.heartbeat_interval >= self.session_timeout {
            problems.push(format!(
                "property 'heartbeat.interval.ms' is {}, which must be less than session.timeout.ms, {}",
                self.heartbeat_interval.as_millis(),
                self.session_timeout.as_millis()
            ));
        }
        problems
    }

    /// Prefix of the client ids of the worker's own clients, as a Java worker names them.
    pub fn client_id_base(&self) -> String {
        match self.client_id.trim() {
            "" => format!("{}-", self.group_id),
            client => format!("{}-{client}-", self.group_id),
        }
    }
}

fn millis(number: i32) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap_or(0))
}

fn session_keys(config: &Config) -> Result<SessionKeys, ConfigProblem> {
    let bits = config.value("inter.worker.key.size").and_then(|_| config.int("inter.worker.key.size").ok());
    Ok(SessionKeys {
        key_bytes: bits.and_then(|bits| usize::try_from(bits).ok()).map_or(32, |bits| bits.div_ceil(8)),
        key_algorithm: config.text("inter.worker.key.generation.algorithm")?.to_owned(),
        ttl: millis(config.int("inter.worker.key.ttl.ms")?),
        signature_algorithm: config.text("inter.worker.signature.algorithm")?.to_owned(),
        verification_algorithms: config.list("inter.worker.verification.algorithms")?.to_vec(),
    })
}

/// `<prefix><topic setting>` apart from those that have a meaning of their own.
fn extra_settings(originals: &Properties, prefix: &str, warnings: &mut Vec<String>) -> BTreeMap<String, String> {
    let own = ["topic", "partitions", "replication.factor", "file.filename"];
    let mut settings = BTreeMap::new();
    for (key, value) in originals {
        let Some(setting) = key.strip_prefix(prefix).filter(|setting| !own.contains(setting)) else { continue };
        if setting == "cleanup.policy" {
            warnings.push(format!("property '{key}' is ignored: internal topics are always compacted"));
        } else {
            settings.insert(setting.to_owned(), value.clone());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(more: &[(&str, &str)]) -> Properties {
        let least = [
            ("group.id", "g"),
            ("config.storage.topic", "c"),
            ("offset.storage.topic", "o"),
            ("status.storage.topic", "s"),
        ];
        least.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn defaults_are_those_of_connect_distributed() {
        let config = DistributedConfig::read(&properties(&[])).unwrap();
        assert_eq!(config.protocol, ConnectProtocol::Sessioned);
        assert_eq!(config.exactly_once, ExactlyOnceSource::Disabled);
        assert_eq!(config.session_timeout.as_millis(), 10_000);
        assert_eq!(config.rebalance_timeout.as_millis(), 60_000);
        assert_eq!(config.heartbeat_interval.as_millis(), 3_000);
        assert_eq!(config.rebalance_delay_max.as_millis(), 300_000);
        assert_eq!((config.config_topic.partitions, config.config_topic.replication_factor), (1, 3));
        assert_eq!((config.status_topic.partitions, config.status_topic.replication_factor), (5, 3));
        assert_eq!(config.session_keys.key_bytes, 32);
        assert_eq!(config.client_id_base(), "g-");
    }

    #[test]
    fn topic_settings_are_taken_and_a_cleanup_policy_is_not() {
        let given = properties(&[
            ("config.storage.min.insync.replicas", "2"),
            ("config.storage.cleanup.policy", "delete"),
            ("config.storage.partitions", "7"),
        ]);
        let config = DistributedConfig::read(&given).unwrap();
        assert_eq!(config.config_topic.configs.get("min.insync.replicas").map(String::as_str), Some("2"));
        assert_eq!(config.config_topic.configs.len(), 1);
        assert_eq!(config.warnings.len(), 2);
    }

    #[test]
    fn a_key_has_a_size_that_its_algorithm_can_use() {
        let bytes = |bits: &str| {
            let read = DistributedConfig::read(&properties(&[("inter.worker.key.size", bits)]));
            read.map(|config| config.session_keys.key_bytes)
        };
        // Java rounds up, too.
        assert_eq!([bytes("40"), bytes("41"), bytes("512")], [Ok(5), Ok(6), Ok(64)]);
        for bits in ["39", "0", "-1", "513", "8000000"] {
            let problems = bytes(bits).unwrap_err();
            let named = ["inter.worker.key.size", bits, "40", "512"].iter().all(|part| problems[0].contains(part));
            assert!(named && problems.len() == 1, "{problems:?}");
        }
    }

    #[test]
    fn every_contradiction_is_named() {
        let given = properties(&[("heartbeat.interval.ms", "10000"), ("inter.worker.signature.algorithm", "HmacMD5")]);
        let problems = DistributedConfig::read(&given).unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
