//! A connector's properties: those that every source connector has (KIP-618, KIP-158, KIP-298), around the connector's own.

use super::dead_letters::{self, DeadLetters};
use super::properties::Properties;
use super::topic_creation::TopicCreation;
use super::worker::{Delivery, ExactlyOnceSource, WorkerConfig};
use super::{ConfigErrors, client_keys, meant};
use crate::task::boundary::Boundary;
use crate::task::error_rules::ErrorRules;
use crate::task::prepare::{ConverterClasses, Converters, Tolerance};
use oncewire_api::converter::ConverterUse;
use oncewire_api::plugin::{Plugin, PluginError, PluginKind, PluginRegistry};
use oncewire_api::{Config, ConfigDef, ConnectorTransactionBoundaries, Converter, ExactlyOnceSupport, SourceConnector};
use oncewire_validation::{ClientKind, NO_TRANSFORMS, refused_version, source_connector_def};
use std::time::Duration;

/// Used for headers when no `header.converter` is set and the registry lacks Connect's own.
const HEADER_CONVERTERS: [&str; 2] =
    ["org.apache.kafka.connect.storage.SimpleHeaderConverter", "org.apache.kafka.connect.storage.StringConverter"];

const CONNECTOR_VERSION: &str = "connector.plugin.version";

/// The largest `tasks.max`: a slip of the hand must not fill the internal topics with task configurations.
pub const TASKS_MAX_LIMIT: usize = 10_000;

/// What the runtime reads of a connector's properties.
#[derive(Debug, Clone)]
pub struct ConnectorConfig {
    /// Its name.
    pub name: String,
    /// `tasks.max`.
    pub tasks_max: usize,
    /// `transaction.boundary`, with its interval.
    pub boundary: Boundary,
    /// `errors.*`.
    pub errors: ErrorRules,
    /// `errors.deadletterqueue.*`, where they mean something.
    pub dead_letters: Option<DeadLetters>,
    /// `topic.creation.*`.
    pub topic_creation: TopicCreation,
    /// `tasks.max.enforce`.
    pub tasks_max_enforce: bool,
    /// `offsets.storage.topic`.
    pub offsets_topic: Option<String>,
    /// `exactly.once.source`.
    pub source: SourceChoice,
    /// Everything as it was given.
    pub originals: Properties,
    /// Warnings for the log, each naming a key.
    pub warnings: Vec<String>,
}

/// `exactly.once.source`: a connector's own choice in a worker that writes exactly once (KIP-618 leaves it to future work).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceChoice {
    /// Not set: exactly once, and it never was otherwise.
    Unset,
    /// Exactly once, and it may have been otherwise: partitions are told of the new epoch before offsets are read.
    Enabled,
    /// At least once, without transactions, by a producer that can be fenced.
    Disabled,
}

impl ConnectorConfig {
    /// Checks everything about a connector that can be checked without starting it; `connector` is the instance for its class.
    ///
    /// # Errors
    /// Every problem that was found, each naming its key.
    pub fn check(
        worker: &WorkerConfig,
        originals: Properties,
        connector: &dyn SourceConnector,
    ) -> Result<Self, ConfigErrors> {
        let of = format!("connector {:?}", originals.get("name").map(String::as_str).unwrap_or_default());
        let (common, own) = (source_connector_def(), connector.config_def());
        let mut problems: Vec<String> = Vec::new();
        if let Err(found) = own.parse(&originals) {
            problems.extend(found.iter().map(ToString::to_string));
        }
        let topic_creation = TopicCreation::parse(&originals).unwrap_or_else(|found| {
            problems.extend(found);
            TopicCreation::default()
        });
        let config = match common.parse(&originals) {
            Ok(config) => config,
            Err(found) => {
                problems.extend(found.iter().map(ToString::to_string));
                return Err(ConfigErrors { of, problems });
            }
        };
        problems.extend(unsupported(&config));
        problems.extend(too_many_tasks(&config));
        let producer = ClientKind::Producer.prefix();
        problems.extend(client_keys::refusal(&client_keys::below(&originals, producer), producer));
        problems.extend(other_version(&originals, CONNECTOR_VERSION, connector.version()));
        problems.extend(exactly_once_problems(worker, &config, &originals, connector));
        let warned = warnings(worker, &config, &originals, &common, &own);
        let read = Self::read(worker, &config, originals, topic_creation, warned);
        match read {
            Ok(read) if problems.is_empty() => Ok(read),
            Ok(_) => Err(ConfigErrors { of, problems }),
            Err(problem) => {
                problems.push(problem.to_string());
                Err(ConfigErrors { of, problems })
            }
        }
    }

    /// Whether its tasks write in transactions under this worker.
    pub fn writes_exactly_once(&self, worker: &WorkerConfig) -> bool {
        let is_distributed = matches!(worker.delivery, Delivery::Distributed { .. });
        self.can_be_fenced(worker) && !(is_distributed && self.source == SourceChoice::Disabled)
    }

    /// Whether its tasks hold transactional ids under this worker.
    pub fn can_be_fenced(&self, worker: &WorkerConfig) -> bool {
        match &worker.delivery {
            Delivery::ExactlyOnce(_) => true,
            Delivery::AtLeastOnce(_) => false,
            Delivery::Distributed { source, .. } => *source == ExactlyOnceSource::Enabled,
        }
    }

    fn read(
        worker: &WorkerConfig,
        config: &Config,
        originals: Properties,
        topic_creation: TopicCreation,
        warnings: Vec<String>,
    ) -> Result<Self, oncewire_api::ConfigProblem> {
        let interval = config
            .optional_long("transaction.boundary.interval.ms")?
            .and_then(|ms| u64::try_from(ms).ok())
            .map_or(worker.offset_flush_interval, Duration::from_millis);
        let boundary = match config.text("transaction.boundary")?.to_ascii_lowercase().as_str() {
            "interval" => Boundary::Interval(interval),
            "connector" => Boundary::Connector,
            _ => Boundary::Poll,
        };
        let tolerance =
            if config.text("errors.tolerance")?.eq_ignore_ascii_case("all") { Tolerance::All } else { Tolerance::None };
        Ok(Self {
            name: config.text("name")?.to_owned(),
            tasks_max: config.size("tasks.max")?,
            boundary,
            errors: ErrorRules {
                tolerance,
                log: config.boolean("errors.log.enable")?,
                log_records: config.boolean("errors.log.include.messages")?,
            },
            dead_letters: DeadLetters::read(config, tolerance)?,
            tasks_max_enforce: config.boolean("tasks.max.enforce")?,
            offsets_topic: config.optional_text("offsets.storage.topic")?.map(str::to_owned),
            source: match config.text("exactly.once.source")? {
                choice if choice.eq_ignore_ascii_case("disabled") => SourceChoice::Disabled,
                _ if originals.contains_key("exactly.once.source") => SourceChoice::Enabled,
                _ => SourceChoice::Unset,
            },
            topic_creation: if worker.topic_creation { topic_creation } else { TopicCreation::default() },
            originals,
            warnings,
        })
    }

    /// The converters of one task of this connector: its own where it names a class, the worker's else. The sub-properties
    /// belong to whoever names the class.
    ///
    /// # Errors
    /// An unknown class, or what a converter refuses, naming the property.
    pub fn converters(&self, worker: &WorkerConfig, registry: &PluginRegistry) -> Result<Converters, ConfigErrors> {
        let make = |key: &str, converter_use| self.converter(worker, registry, key, converter_use);
        let converters = (|| {
            let (key, of_keys) = make("key.converter", ConverterUse::Key)?;
            let (value, of_values) = make("value.converter", ConverterUse::Value)?;
            let (header, of_headers) = make("header.converter", ConverterUse::Header)?;
            let classes = ConverterClasses { key: of_keys, value: of_values, header: of_headers };
            Ok(Converters { key, value, header, classes })
        })();
        converters.map_err(|problem: String| ConfigErrors::one(format!("connector {:?}", self.name), problem))
    }

    /// The converter, and its class.
    fn converter(
        &self,
        worker: &WorkerConfig,
        registry: &PluginRegistry,
        key: &str,
        converter_use: ConverterUse,
    ) -> Result<(Box<dyn Converter>, &'static str), String> {
        let own = self.originals.get(key).filter(|class| !class.is_empty());
        let (class, properties) = match own {
            Some(class) => (Some(class), &self.originals),
            None => (worker.originals.get(key), &worker.originals),
        };
        let plugin = match class {
            Some(class) => converter_plugin(registry, class, converter_use)
                .map_err(|error| format!("property '{key}': {error}"))?,
            None => HEADER_CONVERTERS
                .iter()
                .find_map(|class| converter_plugin(registry, class, converter_use).ok())
                .ok_or_else(|| format!("property '{key}' is not set, and there is no default converter"))?,
        };
        if class.is_some()
            && let Some(problem) = other_version(properties, &format!("{key}.plugin.version"), plugin.version)
        {
            return Err(problem);
        }
        let made = match converter_use {
            ConverterUse::Header => registry.header_converter(plugin.class),
            ConverterUse::Key | ConverterUse::Value => registry.converter(plugin.class),
        };
        let mut converter = made.map_err(|error| format!("property '{key}': {error}"))?;
        let prefix = format!("{key}.");
        let sub = properties
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(&prefix)?.to_owned(), value.clone())))
            .collect();
        converter.configure(&sub, converter_use).map_err(|problems| {
            problems.iter().map(|problem| format!("{prefix}*: {problem}")).collect::<Vec<_>>().join("; ")
        })?;
        Ok((converter, plugin.class))
    }
}

/// The plug-in of this name: for headers one that is made for them, or any other converter.
fn converter_plugin<'a>(
    registry: &'a PluginRegistry,
    name: &str,
    converter_use: ConverterUse,
) -> Result<&'a Plugin, PluginError> {
    match registry.find(PluginKind::HeaderConverter, name) {
        Ok(plugin) if converter_use == ConverterUse::Header => Ok(plugin),
        _ => registry.find(PluginKind::Converter, name),
    }
}

/// Properties whose effect a user relies on, and that there is not here.
fn unsupported(config: &Config) -> Vec<String> {
    let named = |key: &str| Some(config.list(key).ok()?.join(", ")).filter(|names| !names.is_empty());
    ["transforms", "predicates"]
        .into_iter()
        .filter_map(|key| Some(format!("property '{key}' ({}) is not supported: {NO_TRANSFORMS}", named(key)?)))
        .collect()
}

/// A version is asked for (KIP-891), and the plug-in has another.
fn other_version(properties: &Properties, key: &str, version: &str) -> Option<String> {
    let problem = refused_version(properties.get(key)?, version)?;
    Some(format!("property '{key}' {problem}"))
}

/// The definition is Java's, which knows no limit.
fn too_many_tasks(config: &Config) -> Option<String> {
    let asked = config.size("tasks.max").ok().filter(|asked| *asked > TASKS_MAX_LIMIT)?;
    Some(format!("property 'tasks.max' is {asked}; this worker runs at most {TASKS_MAX_LIMIT} tasks of a connector"))
}

fn exactly_once_problems(
    worker: &WorkerConfig,
    config: &Config,
    originals: &Properties,
    connector: &dyn SourceConnector,
) -> Vec<String> {
    let mut out = Vec::new();
    let is_distributed = matches!(worker.delivery, Delivery::Distributed { .. });
    let asks = |key: &str, value: &str| {
        config.optional_text(key).is_ok_and(|text| text.is_some_and(|text| text.eq_ignore_ascii_case(value)))
    };
    if asks("exactly.once.support", "required") && asks("exactly.once.source", "disabled") {
        out.push(
            "property 'exactly.once.source' is 'disabled', but 'exactly.once.support' is 'required'; remove one"
                .to_owned(),
        );
    }
    // Under a distributed herder that was validated before the configuration was stored; a worker that is rolled back from
    // `enabled` runs what it is given, as Kafka Connect does.
    if !is_distributed && asks("exactly.once.support", "required") {
        if matches!(worker.delivery, Delivery::AtLeastOnce(_)) {
            out.push(
                "property 'exactly.once.support' is 'required', but exactly-once is off in this worker; set \
                      exactly.once.source.support=enabled in the worker's properties"
                    .to_owned(),
            );
        }
        match connector.exactly_once_support(originals) {
            Some(ExactlyOnceSupport::Supported) => {}
            Some(ExactlyOnceSupport::Unsupported) => out.push(
                "property 'exactly.once.support' is 'required', but the \
                      connector can't deliver exactly once with this configuration"
                    .to_owned(),
            ),
            None => out.push(
                "property 'exactly.once.support' is 'required', but the connector does not say whether it can \
                      deliver exactly once; read its documentation, and use 'requested' if it can"
                    .to_owned(),
            ),
        }
    }
    let can =
        || connector.can_define_transaction_boundaries(originals) == Some(ConnectorTransactionBoundaries::Supported);
    if asks("transaction.boundary", "connector") && !can() {
        out.push("property 'transaction.boundary' is 'connector', but the connector can't define transaction boundaries with \
                  this configuration; use poll or interval".to_owned());
    }
    out
}

fn warnings(
    worker: &WorkerConfig,
    config: &Config,
    originals: &Properties,
    common: &ConfigDef,
    own: &ConfigDef,
) -> Vec<String> {
    let prefixes = [
        "producer.override.",
        "consumer.override.",
        "admin.override.",
        "topic.creation.",
        "key.converter.",
        "value.converter.",
        "header.converter.",
    ];
    let mut out = Vec::new();
    for key in config.unknown() {
        if own.key(key).is_some() || prefixes.iter().any(|prefix| key.starts_with(prefix)) {
            continue;
        }
        let names = common.keys().iter().chain(own.keys()).map(|key| key.name.as_str());
        let hint = meant(key, names).map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
        out.push(format!("property '{key}' is not known and has no effect{hint}"));
    }
    for kind in [ClientKind::Producer, ClientKind::Consumer, ClientKind::Admin] {
        out.extend(client_keys::warnings(&client_keys::below(originals, kind.prefix()), kind, kind.prefix()));
    }
    if config.long("errors.retry.timeout").is_ok_and(|ms| ms != 0) {
        out.push("property 'errors.retry.timeout' has no effect: a conversion that failed fails again".to_owned());
    }
    out.extend(dead_letters::warnings(config, originals));
    let is_distributed = matches!(worker.delivery, Delivery::Distributed { .. });
    if !is_distributed && config.optional_text("offsets.storage.topic").is_ok_and(|topic| topic.is_some()) {
        out.push("property 'offsets.storage.topic' has no effect in standalone mode".to_owned());
    }
    if !is_distributed && originals.contains_key("exactly.once.source") {
        out.push("property 'exactly.once.source' has no effect in standalone mode".to_owned());
    }
    out
}
