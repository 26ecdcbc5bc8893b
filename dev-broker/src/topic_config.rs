//! Topic configs: which names a topic accepts, their defaults, and which of them do something here.
//!
//! Every name of Kafka 4.3 is known, so that a real topic's configs can be given and are shown by DescribeConfigs.
//! Those that this broker has no machinery for are kept and shown, and LEFT_OUT.md lists them; a value that would
//! change what clients read, such as another `compression.type`, is refused by name. Source: Kafka documentation,
//! "Topic configs".

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;

use crate::refusal::Refusal;
use crate::settings::BrokerSettings;

/// DescribeConfigs' number for each type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigType {
    Boolean = 1,
    String = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// One config that a topic accepts.
#[derive(Debug)]
pub(crate) struct TopicConfig {
    pub(crate) name: &'static str,
    pub(crate) kind: ConfigType,
    default: &'static str,
    allowed: Allowed,
}

#[derive(Debug)]
enum Allowed {
    OneOf(&'static [&'static str]),
    AtLeast(i64),
    Number,
    Anything,
    /// Each of a comma-separated list.
    EachOf(&'static [&'static str]),
}

pub(crate) const CLEANUP_POLICY: &str = "cleanup.policy";
pub(crate) const MAX_MESSAGE_BYTES: &str = "max.message.bytes";
pub(crate) const MESSAGE_TIMESTAMP_TYPE: &str = "message.timestamp.type";
pub(crate) const MESSAGE_TIMESTAMP_AFTER_MAX_MS: &str = "message.timestamp.after.max.ms";

const MAX_LONG: &str = "9223372036854775807";
const BOOLEANS: Allowed = Allowed::OneOf(&["true", "false"]);

const fn config(name: &'static str, kind: ConfigType, default: &'static str, allowed: Allowed) -> TopicConfig {
    TopicConfig { name, kind, default, allowed }
}

/// All of them, by name.
pub(crate) const TOPIC_CONFIGS: &[TopicConfig] = &[
    config(CLEANUP_POLICY, ConfigType::List, "delete", Allowed::EachOf(&["delete", "compact"])),
    config("compression.gzip.level", ConfigType::Int, "-1", Allowed::Number),
    config("compression.lz4.level", ConfigType::Int, "9", Allowed::Number),
    config("compression.type", ConfigType::String, "producer", Allowed::OneOf(&["producer"])),
    config("compression.zstd.level", ConfigType::Int, "3", Allowed::Number),
    config("delete.retention.ms", ConfigType::Long, "86400000", Allowed::AtLeast(0)),
    config("file.delete.delay.ms", ConfigType::Long, "60000", Allowed::AtLeast(0)),
    config("flush.messages", ConfigType::Long, MAX_LONG, Allowed::AtLeast(1)),
    config("flush.ms", ConfigType::Long, MAX_LONG, Allowed::AtLeast(0)),
    config("follower.replication.throttled.replicas", ConfigType::List, "", Allowed::Anything),
    config("index.interval.bytes", ConfigType::Int, "4096", Allowed::AtLeast(0)),
    config("leader.replication.throttled.replicas", ConfigType::List, "", Allowed::Anything),
    config("local.retention.bytes", ConfigType::Long, "-2", Allowed::AtLeast(-2)),
    config("local.retention.ms", ConfigType::Long, "-2", Allowed::AtLeast(-2)),
    config("max.compaction.lag.ms", ConfigType::Long, MAX_LONG, Allowed::AtLeast(1)),
    config(MAX_MESSAGE_BYTES, ConfigType::Int, "", Allowed::AtLeast(0)),
    config(MESSAGE_TIMESTAMP_AFTER_MAX_MS, ConfigType::Long, "", Allowed::AtLeast(0)),
    config("message.timestamp.before.max.ms", ConfigType::Long, MAX_LONG, Allowed::AtLeast(0)),
    config(MESSAGE_TIMESTAMP_TYPE, ConfigType::String, "CreateTime", Allowed::OneOf(&["CreateTime", "LogAppendTime"])),
    config("min.cleanable.dirty.ratio", ConfigType::Double, "0.5", Allowed::Anything),
    config("min.compaction.lag.ms", ConfigType::Long, "0", Allowed::AtLeast(0)),
    config("min.insync.replicas", ConfigType::Int, "1", Allowed::AtLeast(1)),
    config("preallocate", ConfigType::Boolean, "false", BOOLEANS),
    config("remote.storage.enable", ConfigType::Boolean, "false", Allowed::OneOf(&["false"])),
    config("retention.bytes", ConfigType::Long, "-1", Allowed::Number),
    config("retention.ms", ConfigType::Long, "604800000", Allowed::AtLeast(-1)),
    config("segment.bytes", ConfigType::Int, "1073741824", Allowed::AtLeast(14)),
    config("segment.index.bytes", ConfigType::Int, "10485760", Allowed::AtLeast(4)),
    config("segment.jitter.ms", ConfigType::Long, "0", Allowed::AtLeast(0)),
    config("segment.ms", ConfigType::Long, "604800000", Allowed::AtLeast(1)),
    config("unclean.leader.election.enable", ConfigType::Boolean, "false", BOOLEANS),
];

impl TopicConfig {
    /// The default, which for two configs is a setting of the broker.
    pub(crate) fn default(&self, settings: &BrokerSettings) -> String {
        match self.name {
            MAX_MESSAGE_BYTES => settings.message_bytes_max.to_string(),
            MESSAGE_TIMESTAMP_AFTER_MAX_MS => settings.timestamp_after_max.as_millis().to_string(),
            _ => self.default.to_owned(),
        }
    }

    fn check(&self, value: &str) -> Result<(), Refusal> {
        let refuse = |expected: String| {
            let message = format!("invalid value {value} for configuration {}: {expected}", self.name);
            Err(Refusal::new(ResponseError::InvalidConfig, message))
        };
        match &self.allowed {
            Allowed::Anything => Ok(()),
            Allowed::OneOf(values) if values.contains(&value) => Ok(()),
            Allowed::OneOf(values) => refuse(format!("the dev broker takes one of {}", values.join(", "))),
            Allowed::EachOf(values) if value.split(',').all(|part| values.contains(&part.trim())) => Ok(()),
            Allowed::EachOf(values) => refuse(format!("each must be one of {}", values.join(", "))),
            Allowed::AtLeast(least) => match value.trim().parse::<i64>() {
                Ok(number) if number >= *least => Ok(()),
                Ok(_) => refuse(format!("must be at least {least}")),
                Err(_) => refuse("must be a number".to_owned()),
            },
            Allowed::Number => match value.trim().parse::<i64>() {
                Ok(_) => Ok(()),
                Err(_) => refuse("must be a number".to_owned()),
            },
        }
    }
}

/// What the data path needs of a topic's configs, parsed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicRules {
    pub(crate) is_compacted: bool,
    pub(crate) message_bytes_max: usize,
    pub(crate) log_append_time: bool,
    pub(crate) timestamp_after_max_ms: i64,
}

/// Checks the configs of a new topic.
///
/// # Errors
/// INVALID_CONFIG, naming the config and what it takes.
pub(crate) fn rules(settings: &BrokerSettings, given: &BTreeMap<String, String>) -> Result<TopicRules, Refusal> {
    for (name, value) in given {
        let Some(known) = TOPIC_CONFIGS.iter().find(|config| config.name == name) else {
            return Err(Refusal::new(ResponseError::InvalidConfig, format!("unknown topic config name: {name}")));
        };
        known.check(value)?;
    }
    let number =
        |name: &str, default: i64| given.get(name).and_then(|value| value.trim().parse().ok()).unwrap_or(default);
    let text = |name: &str| given.get(name).map_or("", String::as_str);
    let bytes_default = i64::try_from(settings.message_bytes_max).unwrap_or(i64::MAX);
    let after_default = i64::try_from(settings.timestamp_after_max.as_millis()).unwrap_or(i64::MAX);
    Ok(TopicRules {
        is_compacted: text(CLEANUP_POLICY).split(',').any(|policy| policy.trim() == "compact"),
        message_bytes_max: usize::try_from(number(MAX_MESSAGE_BYTES, bytes_default)).unwrap_or(usize::MAX),
        log_append_time: text(MESSAGE_TIMESTAMP_TYPE) == "LogAppendTime",
        timestamp_after_max_ms: number(MESSAGE_TIMESTAMP_AFTER_MAX_MS, after_default),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<TopicRules, Refusal> {
        let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        rules(&BrokerSettings::default(), &given)
    }

    #[test]
    fn a_topic_without_configs_has_kafkas_defaults() {
        let rules = of(&[]).unwrap();
        assert_eq!((rules.is_compacted, rules.message_bytes_max), (false, 1_048_588));
    }

    #[test]
    fn compaction_is_seen_in_a_list_too() {
        assert!(of(&[(CLEANUP_POLICY, "compact")]).unwrap().is_compacted);
        assert!(of(&[(CLEANUP_POLICY, "compact,delete")]).unwrap().is_compacted);
    }

    #[test]
    fn unknown_names_and_bad_values_are_refused_by_name() {
        for (name, value) in [("cleanup.polcy", "compact"), (CLEANUP_POLICY, "compat"), ("retention.ms", "a week")] {
            let refusal = of(&[(name, value)]).unwrap_err();
            assert_eq!(refusal.code, ResponseError::InvalidConfig);
            assert!(refusal.message.contains(name), "{}", refusal.message);
        }
    }

    #[test]
    fn the_table_is_sorted_and_its_defaults_pass_its_own_checks() {
        assert!(TOPIC_CONFIGS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for config in TOPIC_CONFIGS {
            assert!(config.check(&config.default(&BrokerSettings::default())).is_ok(), "{}", config.name);
        }
    }
}
