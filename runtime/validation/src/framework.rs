//! The properties that every source connector has, in the order, groups and widths of Java 4.3.1 (KIP-66, KIP-158, KIP-298, KIP-618,
//! KIP-891). The documentation texts are ours.

use oncewire_api::config_def::{
    ConfigDef, ConfigKey, ConfigType, ConfigValue, Importance, NullableProperties, Validator, Width, topic_name_refusal,
};
use oncewire_api::plugin::PluginRegistry;

use crate::classes::{ClassRole, classes, find, find_any};

pub(crate) const NAME: &str = "name";
pub(crate) const CONNECTOR_CLASS: &str = "connector.class";
pub(crate) const CONNECTOR_VERSION: &str = "connector.plugin.version";
pub(crate) const TRANSFORMS: &str = "transforms";
pub(crate) const PREDICATES: &str = "predicates";
pub(crate) const EXACTLY_ONCE_SUPPORT: &str = "exactly.once.support";
pub(crate) const EXACTLY_ONCE_SOURCE: &str = "exactly.once.source";
pub(crate) const TRANSACTION_BOUNDARY: &str = "transaction.boundary";
pub(crate) const OFFSETS_TOPIC: &str = "offsets.storage.topic";
/// Where records go that a source connector leaves out.
pub const DEAD_LETTER_TOPIC: &str = "errors.deadletterqueue.topic.name";

const COMMON: &str = "Common";
const ERRORS: &str = "Error Handling";
const EXACTLY_ONCE: &str = "Exactly Once Support";

/// For which records a converter of the connector works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConverterSlot {
    /// `key.converter`
    Key,
    /// `value.converter`
    Value,
    /// `header.converter`
    Header,
}

impl ConverterSlot {
    /// In the order of the definition.
    pub(crate) const ALL: [Self; 3] = [Self::Key, Self::Value, Self::Header];

    /// The property that names the class.
    pub(crate) fn property(self) -> &'static str {
        match self {
            Self::Key => "key.converter",
            Self::Value => "value.converter",
            Self::Header => "header.converter",
        }
    }

    /// What Java calls it in `converter.type`.
    pub(crate) fn converter_type(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
            Self::Header => "header",
        }
    }

    /// What the class must be.
    pub(crate) fn role(self) -> ClassRole {
        match self {
            Self::Key | Self::Value => ClassRole::Converter,
            Self::Header => ClassRole::HeaderConverter,
        }
    }

    /// The property that asks for a version.
    pub(crate) fn version_property(self) -> String {
        format!("{}.plugin.version", self.property())
    }
}

/// What the worker says of one converter: the defaults and offers of its two properties.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConverterDefault {
    class: Option<String>,
    offered: Vec<&'static str>,
    version: Option<&'static str>,
    offered_versions: Vec<&'static str>,
    /// Whether the version shows in a form: only when the class is known.
    pub(crate) shows_version: bool,
}

impl ConverterDefault {
    /// For this configuration in this worker.
    pub(crate) fn new(
        registry: &PluginRegistry,
        slot: ConverterSlot,
        config: &NullableProperties,
        worker_class: Option<&str>,
    ) -> Self {
        let of_worker = worker_class.and_then(|class| find(registry, slot.role(), class));
        let base = Self {
            class: of_worker.map(|plugin| plugin.class.to_owned()),
            offered: classes(registry, slot.role()),
            version: of_worker.map(|plugin| plugin.version),
            offered_versions: Vec::new(),
            shows_version: false,
        };
        match config.get(slot.property()) {
            None => Self {
                offered_versions: base.version.into_iter().collect(),
                shows_version: of_worker.is_some(),
                ..base
            },
            Some(None) => base,
            Some(Some(class)) => match find(registry, slot.role(), class) {
                Some(plugin) => Self {
                    version: Some(plugin.version),
                    offered_versions: vec![plugin.version],
                    shows_version: true,
                    ..base
                },
                None => Self { version: None, shows_version: find_any(registry, class).is_some(), ..base },
            },
        }
    }
}

/// The defaults of the three converters, in the order of [`ConverterSlot::ALL`]; empty ones for a definition without a worker.
pub(crate) type ConverterDefaults = [ConverterDefault; 3];

fn key(name: &str, kind: ConfigType, default: &str, importance: Importance, doc: &str) -> ConfigKey {
    ConfigKey::with_default(name, kind, default, importance, doc)
}

fn place(key: ConfigKey, group: &str, order: i32, width: Width, display_name: &str) -> ConfigKey {
    key.group(group).order(order).width(width).display_name(display_name)
}

/// A text with a default, or null.
fn text_or_null(name: &str, kind: ConfigType, default: Option<&str>, importance: Importance, doc: &str) -> ConfigKey {
    match default {
        Some(default) => key(name, kind, default, importance, doc),
        None => ConfigKey::optional(name, kind, importance, doc),
    }
}

/// The properties of every connector.
pub(crate) fn connector_def(version: Option<&str>, converters: &ConverterDefaults) -> ConfigDef {
    use ConfigType::{List, String};
    use Importance::Low;
    let mut def = identity_def(version);
    for (order, (slot, defaults)) in (6..).step_by(2).zip(ConverterSlot::ALL.into_iter().zip(converters)) {
        def = converter_keys(def, order, slot, defaults);
    }
    let aliases = |name, order, display, doc| {
        place(key(name, List, "", Low, doc).validator(Validator::Distinct), display, order, Width::Long, display)
    };
    def.define(aliases(
        TRANSFORMS,
        12,
        "Transforms",
        "The names of the transformations, in the order in which they work.",
    ))
    .define(aliases(PREDICATES, 13, "Predicates", "The names of the conditions that transformations refer to."))
    .define(place(
        key(
            "config.action.reload",
            String,
            "restart",
            Low,
            "What happens when a value from a config provider expires: restart the connector, or none.",
        )
        .validator(Validator::one_of(&["none", "restart"])),
        COMMON,
        14,
        Width::Medium,
        "Reload Action",
    ))
    .merged(errors_def())
}

/// Who the connector is, and how large.
fn identity_def(version: Option<&str>) -> ConfigDef {
    use ConfigType::{Boolean, Int, String};
    use Importance::{High, Low, Medium};
    ConfigDef::new()
        .define(place(
            ConfigKey::required(NAME, String, High, "The name of the connector, which no other of the cluster has.")
                .validator(Validator::Printable),
            COMMON,
            1,
            Width::Medium,
            "Connector name",
        ))
        .define(place(
            ConfigKey::required(
                CONNECTOR_CLASS,
                String,
                High,
                "The class of the connector: its full name, its last part, or that part without the ending Connector.",
            ),
            COMMON,
            2,
            Width::Long,
            "Connector class",
        ))
        .define(place(
            text_or_null(CONNECTOR_VERSION, String, version, Medium, "Which versions of the connector will do.")
                .recommended(version),
            COMMON,
            3,
            Width::Medium,
            "Connector version",
        ))
        .define(place(
            key("tasks.max", Int, "1", High, "How many tasks the connector may have at most.")
                .validator(Validator::at_least(1)),
            COMMON,
            4,
            Width::Short,
            "Tasks max",
        ))
        .define(place(
            key(
                "tasks.max.enforce",
                Boolean,
                "true",
                Low,
                "Whether more tasks than tasks.max fail the connector. Deprecated.",
            ),
            COMMON,
            5,
            Width::Short,
            "Enforce tasks max",
        ))
}

fn converter_keys(def: ConfigDef, order: i32, slot: ConverterSlot, defaults: &ConverterDefault) -> ConfigDef {
    use ConfigType::{Class, String};
    let (doc, display) = match slot {
        ConverterSlot::Key => ("The converter for keys, in place of the worker's.", "Key"),
        ConverterSlot::Value => ("The converter for values, in place of the worker's.", "Value"),
        ConverterSlot::Header => ("The converter for the values of headers, in place of the worker's.", "Header"),
    };
    let class = text_or_null(slot.property(), Class, defaults.class.as_deref(), Importance::Low, doc)
        .recommended(defaults.offered.iter().copied());
    let version = text_or_null(
        &slot.version_property(),
        String,
        defaults.version,
        Importance::Low,
        "Which versions of that converter will do.",
    )
    .recommended(defaults.offered_versions.iter().copied());
    def.define(place(class, COMMON, order, Width::Short, &format!("{display} converter class"))).define(place(
        version,
        COMMON,
        order + 1,
        Width::Short,
        &format!("{display} converter version"),
    ))
}

/// What becomes of records that cannot be converted (KIP-298).
fn errors_def() -> ConfigDef {
    use ConfigType::{Boolean, Long, String};
    use Importance::Medium;
    ConfigDef::new()
        .define(place(
            key(
                "errors.retry.timeout",
                Long,
                "0",
                Medium,
                "For how many milliseconds an operation that failed is tried again; -1: without end.",
            ),
            ERRORS,
            1,
            Width::Medium,
            "Retry Timeout for Errors",
        ))
        .define(place(
            key(
                "errors.retry.delay.max.ms",
                Long,
                "60000",
                Medium,
                "How many milliseconds lie between two tries at most.",
            ),
            ERRORS,
            2,
            Width::Medium,
            "Maximum Delay Between Retries for Errors",
        ))
        .define(place(
            key(
                "errors.tolerance",
                String,
                "none",
                Medium,
                "none: a record that cannot be converted fails the task; all: it is left out.",
            )
            .validator(Validator::one_of(&["none", "all"])),
            ERRORS,
            3,
            Width::Short,
            "Error Tolerance",
        ))
        .define(place(
            key("errors.log.enable", Boolean, "false", Medium, "Whether records that are left out are logged."),
            ERRORS,
            4,
            Width::Short,
            "Log Errors",
        ))
        .define(place(
            key(
                "errors.log.include.messages",
                Boolean,
                "false",
                Medium,
                "Whether the log of such a record shows what is in it.",
            ),
            ERRORS,
            5,
            Width::Short,
            "Log Error Details",
        ))
}

/// The properties of every source connector.
pub(crate) fn source_def(version: Option<&str>, converters: &ConverterDefaults) -> ConfigDef {
    use ConfigType::{List, String};
    use Importance::Low;
    connector_def(version, converters)
        .define(place(
            key(
                "topic.creation.groups",
                List,
                "",
                Low,
                "The groups of topics that the connector may make, in the order in which they are asked.",
            )
            .validator(Validator::Distinct),
            "Topic Creation",
            1,
            Width::Long,
            "Topic Creation Groups",
        ))
        .merged(exactly_once_def())
        .define(place(
            ConfigKey::optional(
                OFFSETS_TOPIC,
                String,
                Low,
                "A topic of the connector's own for its source offsets, in the cluster that it writes to.",
            )
            .validator(Validator::TopicName),
            "offsets.topic",
            1,
            Width::Long,
            "Offsets topic",
        ))
        .define(exactly_once_source())
        .merged(dead_letters_def())
}

/// Transactions (KIP-618).
fn exactly_once_def() -> ConfigDef {
    use ConfigType::{Long, String};
    use Importance::{Low, Medium};
    ConfigDef::new()
        .define(place(
            key(
                EXACTLY_ONCE_SUPPORT,
                String,
                "requested",
                Medium,
                "required: refuse a configuration with which exactly-once cannot be had; requested: do not ask.",
            )
            .validator(Validator::one_of_ignoring_case(&["REQUIRED", "REQUESTED"])),
            EXACTLY_ONCE,
            2,
            Width::Short,
            "Exactly once support",
        ))
        .define(place(
            key(
                TRANSACTION_BOUNDARY,
                String,
                "poll",
                Medium,
                "Where a transaction ends: after each batch (poll), after a time (interval), or where the connector says (connector).",
            )
            .validator(Validator::one_of_ignoring_case(&["INTERVAL", "POLL", "CONNECTOR"])),
            EXACTLY_ONCE,
            3,
            Width::Short,
            "Transaction Boundary",
        ))
        .define(place(
            ConfigKey::optional(
                "transaction.boundary.interval.ms",
                Long,
                Low,
                "With transaction.boundary=interval: how many milliseconds a transaction lasts; else offset.flush.interval.ms of the worker.",
            )
            .validator(Validator::at_least(0)),
            EXACTLY_ONCE,
            4,
            Width::Short,
            "Transaction boundary interval",
        ))
}

/// Ours: exactly-once for one connector (what KIP-618 leaves to future work).
fn exactly_once_source() -> ConfigKey {
    use ConfigType::String;
    use Importance::Medium;
    place(
        key(
            EXACTLY_ONCE_SOURCE,
            String,
            "enabled",
            Medium,
            "disabled: this connector writes at least once, although the worker could deliver exactly once.",
        )
        .validator(Validator::one_of_ignoring_case(&["ENABLED", "DISABLED"]))
        .addition(),
        EXACTLY_ONCE,
        5,
        Width::Short,
        "Exactly once delivery",
    )
}

/// Ours: what Java has for sinks alone (KIP-298), by the same names, at the same places.
fn dead_letters_def() -> ConfigDef {
    use ConfigType::{Boolean, Short, String};
    use Importance::Medium;
    let replicas = Validator::Rule {
        allowed: "1 or more, or -1 for the brokers' default",
        accepts: |value| matches!(value, ConfigValue::Int(-1 | 1..)),
    };
    let addition = |key: ConfigKey, order, display| place(key.addition(), ERRORS, order, Width::Medium, display);
    ConfigDef::new()
        .define(addition(
            key(
                DEAD_LETTER_TOPIC,
                String,
                "",
                Medium,
                "With errors.tolerance=all: the topic to which records that are left out go, in the transaction in which they are; \
                 empty: none.",
            )
            .validator(Validator::Rule { allowed: TOPIC_NAME, accepts: is_topic_or_empty }),
            6,
            "Dead Letter Queue Topic Name",
        ))
        .define(addition(
            key(
                "errors.deadletterqueue.topic.replication.factor",
                Short,
                "3",
                Medium,
                "The replication factor of that topic, if it has to be made.",
            )
            .validator(replicas),
            7,
            "Dead Letter Queue Topic Replication Factor",
        ))
        .define(addition(
            key(
                "errors.deadletterqueue.context.headers.enable",
                Boolean,
                "false",
                Medium,
                "Whether records in that topic say in headers what failed and where; their names begin with __connect.errors. and \
                 __oncewire.errors.",
            ),
            8,
            "Enable Error Context Headers",
        ))
}

const TOPIC_NAME: &str =
    "the name of a topic: up to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', not '.' or '..'";

/// A topic's name, or none.
fn is_topic_or_empty(value: &ConfigValue) -> bool {
    matches!(value, ConfigValue::Text(name) if name.is_empty() || topic_name_refusal(name).is_none())
}

/// The properties that every source connector has, without a worker's defaults: for reading them, where [`crate::Validator`] is for
/// judging them.
pub fn source_connector_def() -> ConfigDef {
    source_def(None, &ConverterDefaults::default())
}
