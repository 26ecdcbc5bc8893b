//! What the answers say beyond what was recorded from Java: connectors of every kind, secrets, our additions, odd input.

#![allow(clippy::unwrap_used, reason = "a test: the helpers may panic as the tests do")]

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use oncewire_api::config_def::{CheckedValue, ConfigValue, NullableProperties};
use oncewire_api::plugin::{Plugin, PluginFactory, PluginRegistry};
use oncewire_api::{
    ConfigDef, ConfigKey, ConfigType, ConnectorContext, ConnectorError, ConnectorTransactionBoundaries,
    ExactlyOnceSupport, Importance, Properties, SourceConnector, SourceTask,
};
use oncewire_plugins::providers::ConfigProviders;
use oncewire_validation::{ConfigInfos, Mode, OverridePolicy, Validator, WorkerFacts};

/// Says of exactly-once and boundaries what the properties `support` and `boundaries` say.
struct Scripted;

#[async_trait]
impl SourceConnector for Scripted {
    fn version(&self) -> &str {
        "1"
    }

    fn config_def(&self) -> ConfigDef {
        ConfigDef::new()
            .define(ConfigKey::optional("password", ConfigType::Password, Importance::High, "a secret"))
            .define(ConfigKey::with_default("port", ConfigType::Int, "1", Importance::Low, "a number"))
    }

    async fn start(&mut self, _: ConnectorContext, _: &Properties) -> Result<(), ConnectorError> {
        Err(ConnectorError::new("not in this test"))
    }

    async fn task_configs(&mut self, _: usize) -> Result<Vec<Properties>, ConnectorError> {
        Err(ConnectorError::new("not in this test"))
    }

    fn task(&self) -> Box<dyn SourceTask> {
        unreachable!("not in this test")
    }

    async fn validate(&mut self, properties: &NullableProperties) -> Vec<CheckedValue> {
        assert!(!properties.contains_key("panic"), "as the test wants");
        let mut values = self.config_def().check(properties);
        if let (Some(Some(password)), true) = (properties.get("password"), properties.contains_key("tell")) {
            // As one that offers databases, or derives an address.
            let told = format!("scott:{password}@host");
            values.push(CheckedValue {
                value: ConfigValue::List(vec![told.clone()]),
                recommended: vec![told.clone()],
                errors: vec![told.clone()],
                ..CheckedValue::new("tell")
            });
            values[1].value = ConfigValue::Text(told);
        }
        values
    }

    fn exactly_once_support(&self, properties: &Properties) -> Option<ExactlyOnceSupport> {
        match properties.get("support").map(String::as_str) {
            Some("yes") => Some(ExactlyOnceSupport::Supported),
            Some("no") => Some(ExactlyOnceSupport::Unsupported),
            Some("panic") => panic!("as the test wants"),
            _ => None,
        }
    }

    fn can_define_transaction_boundaries(&self, properties: &Properties) -> Option<ConnectorTransactionBoundaries> {
        match properties.get("boundaries").map(String::as_str) {
            Some("yes") => Some(ConnectorTransactionBoundaries::Supported),
            Some("no") => Some(ConnectorTransactionBoundaries::Unsupported),
            Some("panic") => panic!("as the test wants"),
            _ => None,
        }
    }
}

fn registry() -> PluginRegistry {
    let scripted = Plugin {
        class: "org.example.ScriptedConnector",
        version: "1",
        summary: "for tests",
        factory: PluginFactory::Source(|| Box::new(Scripted)),
    };
    PluginRegistry::new([scripted, oncewire_connector_file::plugin()].into_iter().chain(oncewire_plugins::converters()))
}

fn validator_with(exactly_once: bool, worker: &[(&str, &str)]) -> Validator {
    let properties: Properties = worker.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let providers = ConfigProviders::from_worker(&properties).unwrap();
    let facts = WorkerFacts { mode: Mode::Distributed, exactly_once, overrides: OverridePolicy::All, properties };
    Validator::new(registry(), facts, providers)
}

fn config(entries: &[(&str, &str)]) -> NullableProperties {
    let base = [("name", "c"), ("connector.class", "Scripted")];
    base.iter().chain(entries).map(|(key, value)| (key.to_string(), Some(value.to_string()))).collect()
}

async fn validate(exactly_once: bool, entries: &[(&str, &str)]) -> ConfigInfos {
    validator_with(exactly_once, &[]).validate(&config(entries)).await.unwrap()
}

fn errors_of(infos: &ConfigInfos, key: &str) -> Vec<String> {
    let values = infos.configs.iter().filter_map(|info| info.value.as_ref());
    values.filter(|value| value.name == key).flat_map(|value| value.errors.clone()).collect()
}

fn names(infos: &ConfigInfos) -> Vec<&str> {
    infos.configs.iter().filter_map(|info| info.value.as_ref()).map(|value| value.name.as_str()).collect()
}

#[tokio::test]
async fn required_needs_a_worker_and_a_connector_that_deliver_exactly_once() {
    for worker_is_on in [true, false] {
        for (support, part) in [
            ("yes", None),
            ("no", Some("does not support exactly-once semantics")),
            ("silent", Some("does not say whether it can deliver exactly once")),
            ("panic", Some("An unexpected error occurred during validation")),
        ] {
            for asked in ["required", "REQUIRED"] {
                let infos = validate(worker_is_on, &[("exactly.once.support", asked), ("support", support)]).await;
                let errors = errors_of(&infos, "exactly.once.support");
                assert_eq!(errors.len(), usize::from(!worker_is_on) + usize::from(part.is_some()), "{errors:?}");
                assert_eq!(errors.iter().any(|error| error.contains("This worker does not have")), !worker_is_on);
                assert!(part.is_none_or(|part| errors.iter().any(|error| error.contains(part))), "{errors:?}");
            }
            let infos = validate(worker_is_on, &[("exactly.once.support", "requested"), ("support", support)]).await;
            assert_eq!(infos.error_count(), 0, "requested asks nothing");
        }
    }
}

#[tokio::test]
async fn boundaries_of_the_connector_need_a_connector_that_can_define_them() {
    for worker_is_on in [true, false] {
        for (boundaries, count) in [("yes", 0), ("no", 1), ("silent", 1), ("panic", 1)] {
            let infos =
                validate(worker_is_on, &[("transaction.boundary", "Connector"), ("boundaries", boundaries)]).await;
            assert_eq!(errors_of(&infos, "transaction.boundary").len(), count, "{boundaries}");
            assert_eq!(infos.error_count(), count);
        }
    }
    let infos = validate(true, &[("transaction.boundary", "nonsense"), ("boundaries", "panic")]).await;
    assert_eq!(errors_of(&infos, "transaction.boundary").len(), 1, "only that the value is none");
}

#[tokio::test]
async fn exactly_once_source_is_listed_when_it_is_given() {
    let key = "exactly.once.source";
    assert!(!names(&validate(true, &[]).await).contains(&key));
    let infos = validate(true, &[(key, "disabled")]).await;
    assert!(names(&infos).contains(&key) && infos.error_count() == 0);
    assert_eq!(errors_of(&validate(true, &[(key, "maybe")]).await, key).len(), 1);
    let both = [(key, "disabled"), ("exactly.once.support", "required"), ("support", "yes")];
    assert!(errors_of(&validate(true, &both).await, key)[0].contains("remove one of the two"));
}

#[tokio::test]
async fn a_dead_letter_topic_is_listed_when_it_is_given_and_its_name_is_checked() {
    let (topic, replicas) = ("errors.deadletterqueue.topic.name", "errors.deadletterqueue.topic.replication.factor");
    assert!(!names(&validate(true, &[]).await).iter().any(|name| name.contains("deadletterqueue")));
    for name in ["", "dead.Letters_1-x"] {
        let infos = validate(true, &[(topic, name), (replicas, "-1"), ("errors.tolerance", "all")]).await;
        assert!(names(&infos).contains(&topic) && infos.error_count() == 0, "{name}");
    }
    let too_long = "x".repeat(250);
    for name in ["dead letters", "dead/letters", "..", too_long.as_str()] {
        let infos = validate(true, &[(topic, name)]).await;
        assert!(errors_of(&infos, topic)[0].contains("up to 249"), "{name}: {:?}", errors_of(&infos, topic));
    }
    for count in ["0", "-2", "many", "32768"] {
        assert_eq!(errors_of(&validate(true, &[(topic, "d"), (replicas, count)]).await, replicas).len(), 1, "{count}");
    }
}

#[tokio::test]
async fn an_addition_of_a_connector_is_listed_when_it_is_given() {
    let file = [("connector.class", "FileStreamSource"), ("file", "/in"), ("topic", "t")];
    assert!(!names(&validate(true, &file).await).contains(&"line.bytes.max"));
    let given = [&file[..], &[("line.bytes.max", "0")]].concat();
    assert_eq!(errors_of(&validate(true, &given).await, "line.bytes.max").len(), 1);
}

#[tokio::test]
async fn a_connector_that_panics_is_an_error_and_nothing_else() {
    let error = validator_with(true, &[]).validate(&config(&[("panic", "")])).await.unwrap_err();
    assert!(error.contains("panicked"), "{error}");
}

#[tokio::test]
async fn topics_that_cannot_be_made_are_found_before_a_task_starts() {
    let entries = [
        ("topic.creation.groups", "a"),
        ("topic.creation.default.partitions", "0"),
        ("topic.creation.a.include", "x.*,["),
        ("topic.creation.a.partitions", "many"),
        ("topic.creation.a.cleanup.policy", "compact"),
    ];
    let infos = validate(true, &entries).await;
    for (key, part) in [
        ("topic.creation.default.replication.factor", "Missing required configuration"),
        ("topic.creation.default.partitions", "1 or more, or -1"),
        ("topic.creation.a.include", "'[' is no regular expression"),
        ("topic.creation.a.partitions", "Not a number of type INT"),
    ] {
        assert!(errors_of(&infos, key)[0].contains(part), "{key}");
    }
    assert_eq!(infos.error_count(), 4);
    let off = validator_with(true, &[("topic.creation.enable", "false")]).validate(&config(&entries)).await.unwrap();
    assert_eq!(off.error_count(), 0);
}

static DIRECTORIES: AtomicU32 = AtomicU32::new(0);

/// A directory with a secret, and the reference to it.
fn secret() -> (std::path::PathBuf, String) {
    let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("oncewire-answers-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("port"), "hunter2\n").unwrap();
    let reference = format!("${{dir:{}:port}}", directory.display());
    (directory, reference)
}

#[tokio::test]
async fn what_a_connector_says_of_another_property_does_not_tell_a_secret() {
    let (directory, reference) = secret();
    let validator =
        validator_with(true, &[("config.providers", "dir"), ("config.providers.dir.class", "DirectoryConfigProvider")]);
    let given = config(&[("password", &reference), ("tell", "literally"), ("port", "7")]);
    let infos = validator.validate(&given).await.unwrap();
    let text = format!("{}{:?}{infos:?}", infos.to_json(), infos.invalid_message());
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(errors_of(&infos, "tell"), ["scott:[hidden]@host"]);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_resolved_value_is_nowhere_in_the_answer() {
    let (directory, reference) = secret();
    let validator =
        validator_with(true, &[("config.providers", "dir"), ("config.providers.dir.class", "DirectoryConfigProvider")]);
    let keys = [
        "connector.class",
        "transforms",
        "predicates",
        "port",
        "password",
        "tasks.max",
        "errors.tolerance",
        "key.converter",
        "value.converter",
        "producer.override.linger.ms",
        "producer.override.bogus",
        "topic.creation.default.partitions",
        "topic.creation.groups",
        "connector.plugin.version",
        "transaction.boundary",
    ];
    for key in keys {
        let answer = validator.validate(&config(&[(key, &reference)])).await;
        let text = match &answer {
            Ok(infos) => format!("{}{:?}{infos:?}", infos.to_json(), infos.invalid_message()),
            Err(error) => error.clone(),
        };
        assert!(!text.contains("hunter2"), "{key}: {text}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn transformations_are_refused_by_name_with_what_to_do_instead() {
    let none = [("transforms", ""), ("predicates", " ")];
    assert_eq!(validate(true, &none).await.error_count(), 0);
    for key in ["transforms", "predicates"] {
        let infos = validate(true, &[(key, "mask, route")]).await;
        let errors = errors_of(&infos, key);
        assert_eq!(errors.len(), 1, "{errors:?}");
        for words in [key, "[mask, route]", "cannot run in this worker", "group of Java workers alone"] {
            assert!(errors[0].contains(words), "{words}: {errors:?}");
        }
    }
}

#[tokio::test]
async fn a_validation_can_run_in_any_thread() {
    let (validator, given) = (validator_with(true, &[]), config(&[]));
    let infos = tokio::spawn(async move { validator.validate(&given).await }).await.unwrap();
    assert_eq!(infos.unwrap().error_count(), 0);
}

#[tokio::test]
async fn the_text_of_a_refusal_counts_and_lists_the_errors() {
    assert_eq!(validate(true, &[]).await.invalid_message(), None);
    let message = validate(true, &[("tasks.max", "0"), ("port", "x")]).await.invalid_message().unwrap();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "Connector configuration is invalid and contains the following 2 error(s):");
    assert_eq!(lines.len(), 4, "{message}");
}

#[tokio::test]
async fn any_configuration_gets_an_answer() {
    let odd =
        ["", " ", ",", ",,,", "${", "${a:b}", "\u{0}", "ä😀", "[", "[1,", "-1", "99999999999999999999", "a.b.C", "$"];
    let keys = [
        "name",
        "connector.plugin.version",
        "tasks.max",
        "key.converter",
        "key.converter.plugin.version",
        "header.converter",
        "transforms",
        "predicates",
        "transforms..type",
        "topic.creation.groups",
        "topic.creation..include",
        "producer.override.",
        "producer.override.acks",
        "admin.override.x",
        "",
        ".",
    ];
    let validator = validator_with(true, &[]);
    for key in keys {
        for value in odd {
            if let Ok(infos) = validator.validate(&config(&[(key, value), ("transforms.a.negate", value)])).await {
                infos.to_json().to_string();
            }
        }
    }
    let many: String = (0..5000).map(|n| format!("t{n},")).collect();
    let infos = validate(true, &[("transforms", &many)]).await;
    assert!(infos.configs.len() < 2100, "{}", infos.configs.len());
}
