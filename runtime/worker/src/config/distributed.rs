//! The part of a distributed worker's properties that tasks and offset stores need. Its names and defaults are those of
//! Kafka Connect; the four about restarts and the template are ours.
//!
//! Keys of the group, of REST and of the other internal topics are the distributed herder's. It asks [`is_known`] about the
//! rest, so that each unknown key is warned about once.

use super::worker::{
    CLIENT_KEYS, Delivery, ExactlyOnceSource, PASS_THROUGH, RestartPolicy, WorkerConfig, is_secret_key, millis,
    offsets_topic, restart_def,
};
use super::{ConfigErrors, client_keys};
use oncewire_api::config_def::{ConfigKey, ConfigType, Importance, Validator};
use oncewire_api::{Config, ConfigDef, ConfigProblem, Properties};

/// Stands for the connector's name in `offsets.storage.topic.template`.
const CONNECTOR: &str = "${connector}";

/// The longest name of a topic (Kafka's own limit).
const TOPIC_NAME_MAX: usize = 249;

/// The definition of the keys.
pub fn config_def() -> ConfigDef {
    use ConfigType::{Boolean, Class, Int, List, Long, String};
    use Importance::{High, Low};
    let text =
        |key, kind, default: &str, importance, doc: &str| ConfigKey::with_default(key, kind, default, importance, doc);
    ConfigDef::new()
        .define(text("bootstrap.servers", List, "localhost:9092", High, "brokers to begin with, as host:port,host:port")
            .validator(Validator::NonEmpty))
        .define(ConfigKey::required("group.id", String, High, "the Connect cluster; first part of every transactional id")
            .validator(Validator::NonEmpty))
        .define(ConfigKey::required("key.converter", Class, High, "converter class for record keys"))
        .define(ConfigKey::required("value.converter", Class, High, "converter class for record values"))
        .define(ConfigKey::optional("header.converter", Class, Low, "converter class for record headers"))
        .define(text("exactly.once.source.support", String, "disabled", High, "enabled: source tasks write exactly once; preparing: between two rolling restarts; disabled")
            .validator(Validator::one_of_ignoring_case(&["disabled", "preparing", "enabled"])))
        .define(ConfigKey::required("offset.storage.topic", String, High, "topic for source offsets")
            .validator(Validator::TopicName))
        .define(text("offset.storage.partitions", Int, "25", Low, "partitions of the offsets topic when it is made, -1: the broker's default")
            .validator(Validator::between(-1, 100_000)))
        .define(text("offset.storage.replication.factor", Int, "3", Low, "replicas of the offsets topic when it is made, -1: the broker's default")
            .validator(Validator::between(-1, i64::from(i16::MAX))))
        .define(ConfigKey::optional("offsets.storage.topic.template", String, Low, "name of the own offsets topic that each new connector gets, ${connector} stands for the connector's name; unset: none"))
        .define(text("offset.flush.interval.ms", Long, "60000", Low, "default of transaction.boundary.interval.ms; without exactly-once: time between offset flushes")
            .validator(Validator::at_least(1)))
        .define(text("offset.flush.timeout.ms", Long, "5000", Low, "without exactly-once: how long an offset flush may take")
            .validator(Validator::at_least(1)))
        .define(text("task.shutdown.graceful.timeout.ms", Long, "5000", Low, "how long tasks may take to stop, together, before they are abandoned")
            .validator(Validator::at_least(0)))
        .define(text("topic.creation.enable", Boolean, "true", Low, "whether connectors may make topics"))
        .merged(restart_def())
}

/// Whether a key of a distributed worker is read here, by a client or by a converter.
pub fn is_known(key: &str) -> bool {
    config_def().key(key).is_some()
        || CLIENT_KEYS.contains(&key)
        || PASS_THROUGH.iter().any(|prefix| key.starts_with(prefix))
        || is_secret_key(key)
}

impl WorkerConfig {
    /// Checks the part of a distributed worker's properties that tasks and offset stores need. `of` names them in errors.
    /// Unknown keys are not looked at.
    ///
    /// # Errors
    /// Every problem that was found, each naming its key.
    pub fn distributed(of: &str, originals: Properties) -> Result<Self, ConfigErrors> {
        let config = config_def().parse(&originals).map_err(|problems| ConfigErrors::from_problems(of, &problems))?;
        if let Some(problem) = client_keys::refusal(&client_keys::below(&originals, "producer."), "producer.") {
            return Err(ConfigErrors::one(of, problem));
        }
        let read = read(&config, originals).map_err(|problem| ConfigErrors::from_problems(of, &[problem]))?;
        if let Some(template) = &read.offsets_topic_template
            && let Err(problem) = offsets_topic_name(template, "c")
        {
            return Err(ConfigErrors::one(of, format!("property 'offsets.storage.topic.template': {problem}")));
        }
        Ok(read)
    }
}

fn read(config: &Config, originals: Properties) -> Result<WorkerConfig, ConfigProblem> {
    let group_id = config.text("group.id")?.to_owned();
    let source = ExactlyOnceSource::from_property(config.text("exactly.once.source.support")?);
    let mut warnings = Vec::new();
    if originals.contains_key("offset.storage.cleanup.policy") {
        warnings
            .push("property 'offset.storage.cleanup.policy' is ignored: the offsets topic is always compacted".into());
    }
    let template = config.optional_text("offsets.storage.topic.template")?.filter(|template| !template.is_empty());
    Ok(WorkerConfig {
        delivery: Delivery::Distributed { source, offsets: offsets_topic(config, &group_id, &originals)? },
        group_id,
        offset_flush_interval: millis(config, "offset.flush.interval.ms")?,
        offset_flush_timeout: millis(config, "offset.flush.timeout.ms")?,
        graceful_timeout: millis(config, "task.shutdown.graceful.timeout.ms")?,
        topic_creation: config.boolean("topic.creation.enable")?,
        restart: RestartPolicy::read(config)?,
        offsets_topic_template: template.map(str::to_owned),
        originals,
        warnings,
    })
}

/// The name of a new connector's own offsets topic. Characters that a topic name can't have become `_`.
///
/// # Errors
/// A template that can't make a topic's name, or would make the same one for every connector.
pub fn offsets_topic_name(template: &str, connector: &str) -> Result<String, String> {
    if !template.contains(CONNECTOR) {
        return Err(format!("{template:?} does not contain {CONNECTOR}; with one topic for all, unset it"));
    }
    let legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    if let Some(letter) = template.replace(CONNECTOR, "").chars().find(|letter| !legal(*letter)) {
        return Err(format!("{template:?} contains {letter:?}, which no topic's name can"));
    }
    let of_connector: String = connector.chars().map(|letter| if legal(letter) { letter } else { '_' }).collect();
    let name = template.replace(CONNECTOR, &of_connector);
    if name.len() > TOPIC_NAME_MAX {
        return Err(format!("the name {name:?} is longer than {TOPIC_NAME_MAX} characters"));
    }
    if name == "." || name == ".." {
        return Err(format!("{name:?} can't be a topic's name"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn config(pairs: &[(&str, &str)]) -> Result<WorkerConfig, ConfigErrors> {
        let mut properties: Properties =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        for (key, value) in [
            ("key.converter", "String"),
            ("value.converter", "String"),
            ("group.id", "g"),
            ("offset.storage.topic", "connect-offsets"),
        ] {
            properties.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
        WorkerConfig::distributed("w.properties", properties)
    }

    #[test]
    fn defaults_are_those_of_connect() {
        let read = config(&[]).unwrap();
        let Delivery::Distributed { source, offsets } = read.delivery else { panic!() };
        assert_eq!(source, ExactlyOnceSource::Disabled);
        assert_eq!(
            (offsets.name.as_str(), offsets.partitions, offsets.replication_factor),
            ("connect-offsets", Some(25), Some(3))
        );
        assert_eq!(read.offset_flush_interval, Duration::from_secs(60));
        assert_eq!(read.graceful_timeout, Duration::from_secs(5));
        assert_eq!(read.offsets_topic_template, None);
    }

    #[test]
    fn support_is_read_in_any_case_and_a_bad_one_is_named() {
        for (text, wanted) in [("ENABLED", ExactlyOnceSource::Enabled), ("Preparing", ExactlyOnceSource::Preparing)] {
            let Delivery::Distributed { source, .. } =
                config(&[("exactly.once.source.support", text)]).unwrap().delivery
            else {
                panic!()
            };
            assert_eq!(source, wanted);
        }
        let error = config(&[("exactly.once.source.support", "on")]).unwrap_err().to_string();
        assert!(error.contains("'exactly.once.source.support' is 'on'") && error.contains("preparing"), "{error}");
        let error = config(&[("group.id", ""), ("offset.storage.topic", "")]).unwrap_err().to_string();
        assert!(error.contains("group.id") && error.contains("offset.storage.topic"), "{error}");
    }

    #[test]
    fn keys_of_clients_converters_and_topics_are_known() {
        for key in
            ["producer.linger.ms", "offset.storage.min.insync.replicas", "sasl.mechanism", "group.id", "client.id"]
        {
            assert!(is_known(key), "{key}");
        }
        assert!(!is_known("rest.port") && !is_known("bootstrap.server"));
    }

    #[test]
    fn a_template_names_a_topic_for_each_connector() {
        assert_eq!(offsets_topic_name("${connector}-offsets", "a b/ü").unwrap(), "a_b__-offsets");
        assert!(offsets_topic_name("offsets", "a").unwrap_err().contains("${connector}"));
        assert!(offsets_topic_name("${connector} x", "a").unwrap_err().contains("' '"));
        assert!(offsets_topic_name("${connector}", &"x".repeat(250)).unwrap_err().contains("longer"));
        let error = config(&[("offsets.storage.topic.template", "x")]).unwrap_err().to_string();
        assert!(error.contains("offsets.storage.topic.template"), "{error}");
    }
}
