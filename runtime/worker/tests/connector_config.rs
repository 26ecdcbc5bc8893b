//! What a worker says of a connector's configuration before it runs any of it.

#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{Properties, SourcePartition, SourceRecord, Value};
use oncewire_worker::config::connector::{ConnectorConfig, SourceChoice, TASKS_MAX_LIMIT};
use oncewire_worker::config::worker::WorkerConfig;

fn registry() -> PluginRegistry {
    PluginRegistry::new(oncewire_plugins::converters().into_iter().chain([oncewire_connector_sequence::plugin()]))
}

fn worker(more: &[(&str, &str)]) -> WorkerConfig {
    let text = "org.apache.kafka.connect.storage.StringConverter";
    let mut properties = map(&[("bootstrap.servers", "h:1"), ("key.converter", text), ("value.converter", text)]);
    properties.extend(map(more));
    WorkerConfig::standalone("worker", properties).expect("a worker's properties")
}

fn map(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn check(more: &[(&str, &str)]) -> Result<ConnectorConfig, String> {
    let mut properties = map(&[("name", "c"), ("connector.class", "SequenceSource"), ("topic", "t")]);
    properties.extend(map(more));
    let connector = registry().source("SequenceSource").expect("it is built in");
    ConnectorConfig::check(&worker(&[]), properties, &*connector).map_err(|errors| errors.to_string())
}

#[test]
fn a_version_that_the_connector_does_not_have_is_refused() {
    let version = registry().source("SequenceSource").unwrap().version().to_owned();
    check(&[("connector.plugin.version", &version)]).unwrap();
    let error = check(&[("connector.plugin.version", "[99,)")]).unwrap_err();
    assert!(error.contains("'connector.plugin.version' asks for [99,)") && error.contains(&version), "{error}");
}

#[test]
fn a_version_that_a_converter_does_not_have_is_refused_where_the_class_is_named() {
    let converter = ("value.converter", "org.apache.kafka.connect.json.JsonConverter");
    let config = check(&[converter, ("value.converter.plugin.version", "99")]).unwrap();
    let error = config.converters(&worker(&[]), &registry()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("'value.converter.plugin.version' asks for 99"), "{error}");
    let of_worker = worker(&[("key.converter.plugin.version", "99")]);
    let error = check(&[]).unwrap().converters(&of_worker, &registry()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("'key.converter.plugin.version' asks for 99"), "{error}");
}

#[test]
fn header_values_are_written_by_connects_own_converter_for_them_unless_another_is_named() {
    let simple = "org.apache.kafka.connect.storage.SimpleHeaderConverter";
    let list = Value::Array(vec![Some(Value::from("a"))]);
    let written = |config: ConnectorConfig, worker: &WorkerConfig| {
        let (converters, mut bytes) = (config.converters(worker, &registry()).unwrap(), Vec::new());
        converters.header.from_connect("t", None, Some(&list), &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let plain = worker(&[]);
    assert_eq!(written(check(&[]).unwrap(), &plain), r#"["a"]"#);
    assert_eq!(written(check(&[("header.converter", simple)]).unwrap(), &plain), r#"["a"]"#);
    assert_eq!(written(check(&[]).unwrap(), &worker(&[("header.converter", simple)])), r#"["a"]"#);
    assert_eq!(written(check(&[("header.converter", "String")]).unwrap(), &plain), "[a]");
    let config = check(&[("value.converter", simple)]).unwrap();
    assert!(config.converters(&plain, &registry()).is_err(), "it is no converter for values");
}

#[test]
fn more_tasks_than_a_worker_runs_are_refused() {
    let most = TASKS_MAX_LIMIT.to_string();
    assert_eq!(check(&[("tasks.max", &most)]).unwrap().tasks_max, TASKS_MAX_LIMIT);
    for (asked, says) in [("10001", "at most 10000"), ("0", "tasks.max"), ("2147483647", "at most 10000")] {
        let error = check(&[("tasks.max", asked)]).unwrap_err();
        assert!(error.contains(says), "{asked}: {error}");
    }
}

#[test]
fn exactly_once_that_was_never_mentioned_differs_from_exactly_once_that_is_asked_for() {
    for (given, meant) in [("enabled", SourceChoice::Enabled), ("DISABLED", SourceChoice::Disabled)] {
        assert_eq!(check(&[("exactly.once.source", given)]).unwrap().source, meant, "{given}");
    }
    assert_eq!(check(&[]).unwrap().source, SourceChoice::Unset);
}

#[test]
fn a_slip_in_an_override_is_named_and_an_interceptor_is_refused() {
    let warnings =
        check(&[("producer.override.lingr.ms", "7"), ("producer.override.linger.ms", "7")]).unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("did you mean 'producer.override.linger.ms'?"), "{warnings:?}");
    let error = check(&[("producer.override.interceptor.classes", "a.B")]).unwrap_err();
    assert!(error.contains("'producer.override.interceptor.classes' is not supported"), "{error}");
}

/// No provider here says how long its values live, as none of Kafka's own does: there is nothing to reload by itself.
#[test]
fn either_reload_action_is_kept() {
    for action in ["restart", "none"] {
        assert_eq!(check(&[("config.action.reload", action)]).unwrap().warnings, Vec::<String>::new());
    }
}

#[test]
fn failed_records_are_logged_as_the_connector_says() {
    let mut record = SourceRecord::new(SourcePartition::single("file", "f"), None, "t");
    record.value = Some(Value::from("secret"));
    let line = |more: &[(&str, &str)]| check(more).unwrap().errors.line(&record, &"no string");
    assert_eq!(line(&[("errors.tolerance", "all"), ("errors.log.include.messages", "true")]), None);
    let without = line(&[("errors.log.enable", "true")]).unwrap();
    assert!(without.contains("\"t\"") && without.contains("no string") && !without.contains("secret"), "{without}");
    let with = line(&[("errors.log.enable", "true"), ("errors.log.include.messages", "true")]).unwrap();
    assert!(with.contains("no string") && with.contains("secret"), "{with}");
    record.value = Some(Value::from("ä".repeat(50_000).as_str()));
    let rules = check(&[("errors.log.enable", "true"), ("errors.log.include.messages", "true")]).unwrap().errors;
    assert!(rules.line(&record, &"x").unwrap().len() < 20_000);
}

#[test]
fn dead_letters_need_tolerance_and_a_topic_and_what_has_no_effect_is_told() {
    let (topic, headers) = ("errors.deadletterqueue.topic.name", "errors.deadletterqueue.context.headers.enable");
    let replicas = "errors.deadletterqueue.topic.replication.factor";
    let config = check(&[("errors.tolerance", "all"), (topic, "dead")]).unwrap();
    let letters = config.dead_letters.unwrap();
    assert_eq!((&*letters.topic, letters.replication_factor, letters.context_headers), ("dead", Some(3), false));
    assert_eq!(config.warnings, Vec::<String>::new());
    let given = [("errors.tolerance", "all"), (topic, "dead"), (replicas, "-1"), (headers, "true")];
    let letters = check(&given).unwrap().dead_letters.unwrap();
    assert_eq!((letters.replication_factor, letters.context_headers), (None, true), "-1 leaves it to the brokers");

    let intolerant = check(&[(topic, "dead")]).unwrap();
    assert_eq!(intolerant.dead_letters, None);
    assert!(intolerant.warnings[0].contains(topic) && intolerant.warnings[0].contains("errors.tolerance=all"));
    let without = check(&[("errors.tolerance", "all"), (headers, "true")]).unwrap();
    assert_eq!((without.dead_letters, without.warnings.len()), (None, 1));
    assert!(without.warnings[0].contains(headers) && without.warnings[0].contains(topic), "{:?}", without.warnings);
    let error = check(&[("errors.tolerance", "all"), (topic, "dead letters"), (replicas, "0")]).unwrap_err();
    assert!(error.contains("'dead letters'") && error.contains("up to 249") && error.contains(replicas), "{error}");
}
