//! Replays what Java Kafka Connect 4.3.1 workers answered (`tests/golden/validate`) against ours.
//!
//! Everything is compared but documentation texts and what [`DIFFERENCES`] lists.

#![allow(clippy::unwrap_used, reason = "a test: the helpers may panic as the tests do")]

use std::collections::BTreeMap;
use std::path::Path;

use oncewire_api::Properties;
use oncewire_api::config_def::NullableProperties;
use oncewire_api::plugin::PluginRegistry;
use oncewire_plugins::providers::ConfigProviders;
use oncewire_validation::{Mode, OverridePolicy, PluginConfigError, Validator, WorkerFacts};
use serde_json::{Value, json};

/// What a Java worker says that we do not, and why. A case that is listed must differ, so that the list does not rot.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "no-class",
        "Java answers 500 with the whole configuration, secrets and all, in the text; here it is a 400 without",
    ),
    ("null-class", "as no-class"),
    ("empty", "as no-class"),
    ("version-wrong", "Java answers 500 for a version that cannot be read; here it is a 400"),
    (
        "topic-null",
        "Java lets a null pass where the connector requires a value, and the task fails; here it is an error",
    ),
    (
        "key-converter-spaces",
        "Java finds the class in spite of the spaces, then not its version; here they do not count",
    ),
    ("key-converter-encoding", "Java notices an unknown encoding when the task starts; here it is an error before"),
    ("override-class-empty", "Java answers 500 for a value that cannot be read; here it is an error at its key"),
    ("override-producer-value-wrong", "as override-class-empty"),
    ("creation-default-missing", "Java looks at topic.creation.* when the task starts; here it is an error before"),
    ("creation-default-half", "as creation-default-missing"),
    ("creation-default-wrong", "as creation-default-missing"),
    ("creation-default-text", "as creation-default-missing"),
    ("creation-group-wrong", "as creation-default-missing"),
    ("creation-regex-wrong", "as creation-default-missing"),
    ("creation-no-group", "as creation-default-missing"),
    ("reference", "Java shows the value behind a reference to everybody; here the reference is shown"),
    ("reference-dir", "as reference"),
    ("reference-env", "as reference"),
    (
        "reference-in-transforms",
        "as reference; Java names other properties by what is behind it, here that is an error",
    ),
    (
        "reference-env-not-allowed",
        "Java takes any text for a topic's name; a reference that nobody resolves can be none",
    ),
    ("reference-no-such-key", "as reference-env-not-allowed"),
    ("reference-path-not-allowed", "as reference-env-not-allowed"),
    ("reference-no-such-provider", "as reference-env-not-allowed"),
    ("reference-no-such-file", "Java answers 500 for a file that cannot be read; here it is a 400"),
];

fn golden(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/validate").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn registry() -> PluginRegistry {
    PluginRegistry::new([oncewire_connector_file::plugin()].into_iter().chain(oncewire_plugins::converters()))
}

/// The workers of `record.py`.
fn validator(worker: &str, secrets: &str) -> Validator {
    let mut properties = Properties::new();
    let mut set = |key: &str, value: &str| properties.insert(key.into(), value.into());
    set("key.converter", "org.apache.kafka.connect.storage.StringConverter");
    set("value.converter", "org.apache.kafka.connect.storage.StringConverter");
    let (exactly_once, policy) = match worker {
        "enabled-all" => (true, "All"),
        "disabled-none" => (false, "None"),
        "preparing-principal" => (false, "Principal"),
        "disabled-all" => (false, "All"),
        "enabled-none" => (true, "None"),
        "enabled-allowlist" => (true, "Allowlist"),
        other => panic!("no such worker: {other}"),
    };
    set("connector.client.config.override.policy", policy);
    set("connector.client.config.override.allowlist", "acks,retries");
    if worker == "enabled-all" {
        set("config.providers", "file,dir,env");
        let package = "org.apache.kafka.common.config.provider";
        set("config.providers.file.class", &format!("{package}.FileConfigProvider"));
        set("config.providers.file.param.allowed.paths", secrets);
        set("config.providers.dir.class", &format!("{package}.DirectoryConfigProvider"));
        set("config.providers.dir.param.allowed.paths", secrets);
        set("config.providers.env.class", &format!("{package}.EnvVarConfigProvider"));
        set("config.providers.env.param.allowlist.pattern", "ONCEWIRE_.*");
    }
    let providers = ConfigProviders::from_worker(&properties).unwrap();
    let overrides = OverridePolicy::from_worker(&properties).unwrap();
    let facts = WorkerFacts { mode: Mode::Distributed, exactly_once, overrides, properties };
    Validator::new(registry(), facts, providers)
}

fn request(value: &Value, secrets: &str) -> NullableProperties {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.replace("SECRETS", secrets).replace("VERSION", env!("CARGO_PKG_VERSION"))),
        // The REST server makes texts of numbers and booleans, as Java's does.
        other => Some(other.to_string()),
    };
    value.as_object().unwrap().iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// Ours in the form of the recording.
fn recorded_form(mut value: Value, secrets: &str) -> Value {
    let strip = |entry: &mut Value| {
        entry.as_object_mut().map(|entry| entry.shift_remove("documentation"));
        entry.get_mut("definition").and_then(Value::as_object_mut).map(|entry| entry.shift_remove("documentation"));
    };
    match &mut value {
        Value::Array(entries) => entries.iter_mut().for_each(strip),
        value => value.get_mut("configs").and_then(Value::as_array_mut).unwrap().iter_mut().for_each(strip),
    }
    serde_json::from_str(&value.to_string().replace(secrets, "SECRETS")).unwrap()
}

/// Differences that many cases have.
fn without_general_differences(value: &mut Value) {
    let mut dropped = 0;
    for entry in value["configs"].as_array_mut().unwrap() {
        let name = entry["value"]["name"].as_str().unwrap().to_owned();
        // Java lists the transformations and predicates that it has; there are none here, and the lists that name some say so.
        if name.ends_with(".type") && (name.starts_with("transforms.") || name.starts_with("predicates.")) {
            entry["value"]["recommended_values"] = json!([]);
        }
        // Java's file connector reads standard input without a file; ours refuses that, and says so early.
        let errors = entry["value"]["errors"].as_array_mut().unwrap();
        let before = errors.len();
        let ours_alone = ["reads standard input", "are classes of Java, which cannot run in this worker"];
        errors.retain(|error| !ours_alone.iter().any(|words| error.as_str().unwrap().contains(words)));
        dropped += before - errors.len();
    }
    value["error_count"] = (value["error_count"].as_u64().unwrap() - dropped as u64).into();
}

fn expected(case: &Value, configs: &[Value]) -> Value {
    let version = |value: Value| {
        serde_json::from_str::<Value>(&value.to_string().replace("VERSION", env!("CARGO_PKG_VERSION"))).unwrap()
    };
    let entries = |key: &str| -> Vec<Value> {
        case[key].as_array().unwrap().iter().map(|n| configs[n.as_u64().unwrap() as usize].clone()).collect()
    };
    if case.get("listing").is_some() {
        return version(Value::Array(entries("listing")));
    }
    version(json!({
        "name": case["name"],
        "error_count": case["error_count"],
        "groups": case["groups"],
        "configs": entries("configs"),
    }))
}

/// What differs, entry by entry, for a person to read.
fn difference(ours: &Value, java: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for key in ["name", "error_count", "groups"] {
        if ours.get(key) != java.get(key) {
            out.push(format!("{key}: ours {} java {}", ours[key], java[key]));
        }
    }
    let list = |value: &Value| value.get("configs").unwrap_or(value).as_array().cloned().unwrap_or_default();
    let (ours, java) = (list(ours), list(java));
    for n in 0..ours.len().max(java.len()) {
        let (a, b) = (ours.get(n).map(Value::to_string), java.get(n).map(Value::to_string));
        if a != b {
            let show = |text: Option<String>| text.unwrap_or_else(|| "nothing".into());
            out.push(format!("[{n}]\n   ours {}\n   java {}", show(a), show(b)));
        }
    }
    out
}

async fn compare(
    case: &Value,
    configs: &[Value],
    validators: &BTreeMap<String, Validator>,
    secrets: &str,
) -> Vec<String> {
    let validator = &validators[case["worker"].as_str().unwrap()];
    let status = case["status"].as_u64().unwrap_or(200);
    if let Some(plugin) = case.get("plugin").and_then(Value::as_str) {
        let plugin = plugin.replace("VERSION", env!("CARGO_PKG_VERSION"));
        let (name, version) = plugin.split_once("?version=").map_or((&*plugin, None), |(name, v)| (name, Some(v)));
        return match validator.plugin_config(name, version) {
            Ok(list) if status == 200 => {
                difference(&recorded_form(Value::Array(list), secrets), &expected(case, configs))
            }
            Ok(_) => vec![format!("ours is a listing, java's {status}")],
            Err(error) => {
                let ours = if matches!(error, PluginConfigError::Unknown(_)) { 404 } else { 400 };
                let java = case["message"].as_str().unwrap_or_default().replace("VERSION", env!("CARGO_PKG_VERSION"));
                if ours == status && error.to_string() == java {
                    vec![]
                } else {
                    vec![format!("{ours} {error}; java {status} {java}")]
                }
            }
        };
    }
    if let Some(config) = case.get("create") {
        let infos = validator.validate(&request(config, secrets)).await.unwrap();
        let ours = infos.invalid_message().unwrap_or_default();
        return if case["message"] == ours.as_str() { vec![] } else { vec![ours] };
    }
    let Some(config) = case.get("request") else { return vec![] };
    if case["message"].as_str().is_some_and(|text| text.contains("does not match request type")) {
        // The resource of the REST server refuses these before the validation.
        return vec![];
    }
    match validator.validate(&request(config, secrets)).await {
        Err(message) => vec![format!("ours 400 {message}; java {status} {}", case["message"])],
        Ok(_) if status != 200 => vec![format!("ours 200; java {status} {}", case["message"])],
        Ok(infos) => {
            let (mut ours, mut java) = (recorded_form(infos.to_json(), secrets), expected(case, configs));
            without_general_differences(&mut ours);
            without_general_differences(&mut java);
            difference(&ours, &java)
        }
    }
}

/// G100 validate-shape
#[tokio::test]
async fn ours_are_the_answers_of_java() {
    let secrets = std::env::temp_dir().join(format!("oncewire-golden-{}", std::process::id()));
    std::fs::create_dir_all(&secrets).unwrap();
    std::fs::write(
        secrets.join("secrets.properties"),
        format!("topic=from-file\nclass={}\n", oncewire_connector_file::CLASS),
    )
    .unwrap();
    std::fs::write(secrets.join("topic.txt"), "from-dir").unwrap();
    let secrets_text = secrets.to_str().unwrap();
    let (configs, cases) = (golden("configs.jsonl"), golden("cases.jsonl"));
    let workers = cases.iter().map(|case| case["worker"].as_str().unwrap().to_owned());
    let validators: BTreeMap<String, Validator> =
        workers.map(|worker| (worker.clone(), validator(&worker, secrets_text))).collect();
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["case"].as_str().unwrap();
        let found = compare(case, &configs, &validators, secrets_text).await;
        match DIFFERENCES.iter().find(|(listed, _)| *listed == name) {
            Some((_, reason)) if found.is_empty() => {
                wrong.push(format!("{name} is listed but does not differ: {reason}"))
            }
            Some(_) => {}
            None => wrong.extend(found.into_iter().map(|one| format!("{}/{name}: {one}", case["worker"]))),
        }
    }
    std::fs::remove_dir_all(&secrets).unwrap();
    assert!(cases.len() > 200, "{}", cases.len());
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}
