//! The worker's own properties, standalone mode: Kafka Connect's keys, and a few of ours.
//!
//! With `exactly.once.source.support=enabled` (our default unless `offset.storage.file.filename` is given) source offsets
//! live in the topic `offset.storage.topic` and are written in the records' own transactions (KIP-618, which leaves
//! standalone workers to future work).

use super::{ConfigErrors, client_keys, meant};
use oncewire_api::config_def::{ConfigKey, ConfigType, Importance, Validator, topic_name_refusal};
use oncewire_api::{Config, ConfigDef, ConfigProblem, Properties};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Prefixes that belong to clients and plug-ins; their keys are checked by those.
pub(super) const PASS_THROUGH: &[&str] = &[
    "producer.",
    "consumer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "offset.storage.",
    "config.providers",
];

/// Keys of clients at the top level, which Connect hands to every client.
pub(super) const CLIENT_KEYS: &[&str] = &[
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "security.protocol",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
];

/// Keys of Java's worker that mean nothing here; they are named in one warning.
const NOT_HERE: &[&str] = &[
    "access.control.allow.methods",
    "access.control.allow.origin",
    "admin.listeners",
    "internal.key.converter",
    "internal.value.converter",
    "listeners",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "plugin.discovery",
    "plugin.path",
    "rest.advertised.host.name",
    "rest.advertised.listener",
    "rest.advertised.port",
    "rest.host.name",
    "rest.port",
    "topic.tracking.allow.reset",
    "topic.tracking.enable",
];

/// Keys whose effect a user relies on: without it the worker must not start.
const UNSUPPORTED: &[&str] = &["rest.extension.classes"];

/// Where the offsets topic is and how it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetsTopic {
    /// Its name.
    pub name: String,
    /// Partitions when it is made.
    pub partitions: Option<i32>,
    /// Replicas when it is made; `None`: the broker's default.
    pub replication_factor: Option<i16>,
    /// Other topic settings when it is made (`offset.storage.<setting>`).
    pub configs: BTreeMap<String, String>,
}

/// How offsets are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// In a topic, in the records' own transactions.
    ExactlyOnce(OffsetsTopic),
    /// In a file, after the records were acknowledged; records may repeat after a crash.
    AtLeastOnce(PathBuf),
    /// A distributed worker: in the worker's topic or in a connector's own, with or without transactions.
    Distributed {
        /// `exactly.once.source.support`.
        source: ExactlyOnceSource,
        /// The worker's offsets topic.
        offsets: OffsetsTopic,
    },
}

/// `exactly.once.source.support`: how the source connectors of a group are delivered (KIP-618).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExactlyOnceSource {
    /// Plain writes of the leader; tasks write at least once, and nothing can be fenced.
    Disabled,
    /// The leader writes in transactions, tasks still at least once: the first rolling upgrade.
    Preparing,
    /// Tasks write exactly once.
    Enabled,
}

impl ExactlyOnceSource {
    /// What a property says, whatever the case of its letters; [`Self::Disabled`] for all that the definition would refuse.
    pub fn from_property(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "enabled" => Self::Enabled,
            "preparing" => Self::Preparing,
            _ => Self::Disabled,
        }
    }

    /// Whether the leader's writes are fenced transactions.
    pub fn leader_is_transactional(self) -> bool {
        self != Self::Disabled
    }
}

/// When a task that failed is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Starts in a row without a commit in between; 0 switches restarts off.
    pub attempts_max: u32,
    /// The first wait; each further one is twice as long.
    pub backoff: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
}

/// A worker's configuration, checked.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// `group.id`: the first part of every transactional id.
    pub group_id: String,
    /// How offsets are kept.
    pub delivery: Delivery,
    /// `offset.flush.interval.ms`: the default interval of interval boundaries, and of offset flushes in at-least-once mode.
    pub offset_flush_interval: Duration,
    /// `offset.flush.timeout.ms`: at-least-once mode only.
    pub offset_flush_timeout: Duration,
    /// `task.shutdown.graceful.timeout.ms`: how long a task may take to stop before it is abandoned.
    pub graceful_timeout: Duration,
    /// `topic.creation.enable`.
    pub topic_creation: bool,
    /// When failed tasks start again.
    pub restart: RestartPolicy,
    /// `offsets.storage.topic.template`: the own offsets topic of each new connector, `${connector}` stands for its name.
    pub offsets_topic_template: Option<String>,
    /// Everything as it was given.
    pub originals: Properties,
    /// Warnings for the log, each naming a key.
    pub warnings: Vec<String>,
}

/// The definition of the worker's properties, for `--help` and documentation too.
pub fn config_def() -> ConfigDef {
    use ConfigType::{Boolean, Class, Int, List, Long, String};
    use Importance::{High, Low};
    let text =
        |key, kind, default: &str, importance, doc: &str| ConfigKey::with_default(key, kind, default, importance, doc);
    ConfigDef::new()
        .define(text("bootstrap.servers", List, "localhost:9092", High, "brokers to begin with, as host:port,host:port")
            .validator(Validator::NonEmpty))
        .define(text("group.id", String, "oncewire-standalone", High, "first part of every transactional id; two workers with one group.id and connector name supersede each other")
            .validator(Validator::NonEmpty))
        .define(ConfigKey::required("key.converter", Class, High, "converter class for record keys"))
        .define(ConfigKey::required("value.converter", Class, High, "converter class for record values"))
        .define(ConfigKey::optional("header.converter", Class, Low, "converter class for record headers"))
        .define(ConfigKey::optional("exactly.once.source.support", String, High, "enabled: offsets in a topic, in the records' transactions; disabled: offsets in offset.storage.file.filename")
            .validator(Validator::one_of_ignoring_case(&["enabled", "disabled"])))
        .define(ConfigKey::optional("offset.storage.file.filename", String, High, "file for offsets, at-least-once mode"))
        .define(ConfigKey::optional("offset.storage.topic", String, High, "topic for offsets; default <group.id>-offsets"))
        .define(text("offset.storage.partitions", Int, "25", Low, "partitions of the offsets topic when it is made, -1: the broker's default")
            .validator(Validator::between(-1, 100_000)))
        .define(text("offset.storage.replication.factor", Int, "-1", Low, "replicas of the offsets topic when it is made, -1: the broker's default")
            .validator(Validator::between(-1, i64::from(i16::MAX))))
        .define(text("offset.flush.interval.ms", Long, "60000", Low, "default of transaction.boundary.interval.ms; at-least-once mode: time between offset flushes")
            .validator(Validator::at_least(1)))
        .define(text("offset.flush.timeout.ms", Long, "5000", Low, "at-least-once mode: how long an offset flush may take")
            .validator(Validator::at_least(1)))
        .define(text("task.shutdown.graceful.timeout.ms", Long, "5000", Low, "how long tasks may take to stop before they are abandoned")
            .validator(Validator::at_least(0)))
        .define(text("topic.creation.enable", Boolean, "true", Low, "whether connectors may make topics"))
        .merged(restart_def())
}

/// When failed tasks start again.
pub(super) fn restart_def() -> ConfigDef {
    use ConfigType::{Int, Long};
    use Importance::{Low, Medium};
    let text =
        |key, kind, default: &str, importance, doc: &str| ConfigKey::with_default(key, kind, default, importance, doc);
    ConfigDef::new()
        .define(
            text(
                "task.restart.attempts.max",
                Int,
                "10",
                Medium,
                "starts in a row, without a commit in between, after which a task stays FAILED; 0: never restart",
            )
            .validator(Validator::between(0, 1_000_000)),
        )
        .define(
            text(
                "task.restart.backoff.ms",
                Long,
                "500",
                Low,
                "wait before the first restart; doubles from one to the next",
            )
            .validator(Validator::at_least(0)),
        )
        .define(
            text("task.restart.backoff.max.ms", Long, "30000", Low, "longest wait before a restart")
                .validator(Validator::at_least(0)),
        )
}

impl RestartPolicy {
    pub(super) fn read(config: &Config) -> Result<Self, ConfigProblem> {
        Ok(Self {
            attempts_max: u32::try_from(config.int("task.restart.attempts.max")?).unwrap_or(0),
            backoff: millis(config, "task.restart.backoff.ms")?,
            backoff_max: millis(config, "task.restart.backoff.max.ms")?,
        })
    }
}

impl WorkerConfig {
    /// Checks a standalone worker's properties. `of` names them in errors: the path of the file.
    ///
    /// # Errors
    /// Every problem that was found, each naming its key.
    pub fn standalone(of: &str, originals: Properties) -> Result<Self, ConfigErrors> {
        let def = config_def();
        let config = def.parse(&originals).map_err(|problems| ConfigErrors::from_problems(of, &problems))?;
        let refused: Vec<String> = UNSUPPORTED
            .iter()
            .filter(|key| originals.get(**key).is_some_and(|value| !value.trim().is_empty()))
            .map(|key| format!("property '{key}' is not supported; remove it"))
            .chain(client_keys::refusal(&client_keys::below(&originals, "producer."), "producer."))
            .collect();
        if !refused.is_empty() {
            return Err(ConfigErrors { of: of.to_owned(), problems: refused });
        }
        let mut warnings = warnings(&def, &config);
        warnings.extend(client_keys::warnings_below_prefixes(&originals));
        Self::read(&config, originals, warnings).map_err(|problem| ConfigErrors::from_problems(of, &[problem]))
    }

    fn read(config: &Config, originals: Properties, warnings: Vec<String>) -> Result<Self, ConfigProblem> {
        let group_id = config.text("group.id")?.to_owned();
        Ok(Self {
            delivery: delivery(config, &group_id, &originals)?,
            group_id,
            offset_flush_interval: millis(config, "offset.flush.interval.ms")?,
            offset_flush_timeout: millis(config, "offset.flush.timeout.ms")?,
            graceful_timeout: millis(config, "task.shutdown.graceful.timeout.ms")?,
            topic_creation: config.boolean("topic.creation.enable")?,
            restart: RestartPolicy::read(config)?,
            offsets_topic_template: None,
            originals,
            warnings,
        })
    }
}

pub(super) fn millis(config: &Config, key: &str) -> Result<Duration, ConfigProblem> {
    Ok(Duration::from_millis(u64::try_from(config.long(key)?).unwrap_or(0)))
}

fn delivery(config: &Config, group_id: &str, originals: &Properties) -> Result<Delivery, ConfigProblem> {
    let file = config.optional_text("offset.storage.file.filename")?.filter(|file| !file.is_empty());
    let enabled = match config.optional_text("exactly.once.source.support")? {
        Some(text) => text.eq_ignore_ascii_case("enabled"),
        None => file.is_none(),
    };
    match (enabled, file) {
        (true, _) => Ok(Delivery::ExactlyOnce(offsets_topic(config, group_id, originals)?)),
        (false, Some(file)) => Ok(Delivery::AtLeastOnce(file.into())),
        (false, None) => Err(ConfigProblem::Missing {
            key: "offset.storage.file.filename".into(),
            allowed: "the path of a file".into(),
            doc: "exactly.once.source.support is disabled, so offsets need a file".into(),
        }),
    }
}

pub(super) fn offsets_topic(
    config: &Config,
    group_id: &str,
    originals: &Properties,
) -> Result<OffsetsTopic, ConfigProblem> {
    let name = match config.optional_text("offset.storage.topic")?.filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => format!("{group_id}-offsets"),
    };
    if let Some(refusal) = topic_name_refusal(&name) {
        return Err(ConfigProblem::Conflict {
            key: "offset.storage.topic".into(),
            message: format!("source offsets would live in {name:?} (default: <group.id>-offsets). {refusal}"),
        });
    }
    let own = ["topic", "partitions", "replication.factor", "file.filename", "cleanup.policy"];
    let configs = originals
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix("offset.storage.")?, value)))
        .filter(|(key, _)| !own.contains(key))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    let positive = |number: i32| (number > 0).then_some(number);
    Ok(OffsetsTopic {
        name,
        partitions: positive(config.int("offset.storage.partitions")?),
        replication_factor: positive(config.int("offset.storage.replication.factor")?)
            .and_then(|n| i16::try_from(n).ok()),
        configs,
    })
}

fn warnings(def: &ConfigDef, config: &Config) -> Vec<String> {
    let mut out = Vec::new();
    let mut idle = Vec::new();
    for key in config.unknown() {
        if NOT_HERE.contains(&key.as_str()) || key.starts_with("listeners.https.") || key.starts_with("rest.extension.")
        {
            idle.push(key.as_str());
        } else if key == "offset.storage.cleanup.policy" {
            out.push(
                "property 'offset.storage.cleanup.policy' is ignored: the offsets topic is always compacted".to_owned(),
            );
        } else if !CLIENT_KEYS.contains(&key.as_str())
            && !PASS_THROUGH.iter().any(|prefix| key.starts_with(prefix))
            && !is_secret_key(key)
        {
            let names = def.keys().iter().map(|key| key.name.as_str()).chain(CLIENT_KEYS.iter().copied());
            let hint = meant(key, names).map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
            out.push(format!("property '{key}' is not known and has no effect{hint}"));
        }
    }
    if !idle.is_empty() {
        out.push(format!(
            "these properties have no effect in standalone mode here (no REST interface, plug-ins are built in, no metrics go out): {}",
            idle.join(", ")
        ));
    }
    out
}

/// Keys of security settings are checked where connections are made, which refuses what it can't do.
pub(super) fn is_secret_key(key: &str) -> bool {
    key.starts_with("ssl.") || key.starts_with("sasl.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<WorkerConfig, ConfigErrors> {
        let mut properties: Properties =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        for key in ["key.converter", "value.converter"] {
            properties.entry(key.to_owned()).or_insert_with(|| "String".to_owned());
        }
        WorkerConfig::standalone("w.properties", properties)
    }

    #[test]
    fn exactly_once_is_the_default_without_an_offsets_file() {
        let Delivery::ExactlyOnce(topic) = config(&[("group.id", "g")]).unwrap().delivery else { panic!() };
        assert_eq!((topic.name.as_str(), topic.partitions, topic.replication_factor), ("g-offsets", Some(25), None));
    }

    #[test]
    fn a_file_of_java_standalone_mode_keeps_its_meaning() {
        let read =
            config(&[("offset.storage.file.filename", "/tmp/o"), ("offset.flush.interval.ms", "10000")]).unwrap();
        assert_eq!(read.delivery, Delivery::AtLeastOnce("/tmp/o".into()));
        assert_eq!(read.offset_flush_interval, Duration::from_secs(10));
        let both = config(&[("offset.storage.file.filename", "/tmp/o"), ("exactly.once.source.support", "ENABLED")]);
        assert!(matches!(both.unwrap().delivery, Delivery::ExactlyOnce(_)));
    }

    #[test]
    fn a_bad_value_is_named_with_what_is_allowed() {
        let error =
            config(&[("offset.flush.interval.ms", "soon"), ("exactly.once.source.support", "maybe")]).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("w.properties: "), "{text}");
        assert!(text.contains("'exactly.once.source.support' is 'maybe'") && text.contains("enabled"), "{text}");
        assert!(text.contains("'offset.flush.interval.ms' is 'soon'"), "{text}");
        let missing = config(&[("exactly.once.source.support", "disabled")]).unwrap_err().to_string();
        assert!(missing.contains("offset.storage.file.filename"), "{missing}");
    }

    #[test]
    fn a_group_id_that_makes_no_topics_name_is_told_with_the_key_that_helps() {
        let error = config(&[("group.id", "my worker")]).unwrap_err().to_string();
        assert!(error.contains("'offset.storage.topic'") && error.contains("\"my worker-offsets\""), "{error}");
        assert!(error.contains("cannot contain ' '"), "{error}");
        assert!(config(&[("group.id", "my worker"), ("offset.storage.topic", "offsets")]).is_ok());
    }

    #[test]
    fn unknown_keys_are_warned_about_and_unsupported_ones_refused() {
        let read = config(&[("bootstrap.server", "x"), ("producer.linger.ms", "1"), ("plugin.path", "/p")]).unwrap();
        assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
        assert!(
            read.warnings[0].contains("'bootstrap.server'")
                && read.warnings[0].contains("did you mean 'bootstrap.servers'")
        );
        assert!(read.warnings[1].contains("plugin.path"));
        let refused = config(&[("rest.extension.classes", "org.example.Extension")]).unwrap_err().to_string();
        assert!(refused.contains("'rest.extension.classes' is not supported"), "{refused}");
        assert_eq!(config(&[("config.providers", "f"), ("config.providers.f.class", "x")]).unwrap().warnings, [""; 0]);
    }
}
