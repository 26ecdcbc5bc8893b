//! On a broker with ACLs: what `oncewire check-acls` prints is enough for a worker and its connector, under SASL; and without one
//! of the rights the task fails with the name of what is missing, and works after it was granted and the task restarted.

use oncewire_system_tests::binary::oncewire;
use oncewire_system_tests::services::{KafkaOptions, Protection, RealKafka, java_tool};
use oncewire_system_tests::target::free_port;
use oncewire_system_tests::worker::{Kind, Worker, WorkerOptions, wait_until};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const VERSION: &str = "4.3.1";
const PATIENCE: Duration = Duration::from_secs(60);
const JAAS: &str =
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"bob\" password=\"bob-secret\";";

/// The commands of `oncewire check-acls`, as arguments of Java's tool.
fn needed(worker: &Path, connector: &Path) -> Vec<Vec<String>> {
    let output = Command::new(oncewire())
        .arg("check-acls")
        .args([worker, connector])
        .args(["--principal", "User:bob"])
        .output()
        .expect("oncewire runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines()
        .filter_map(|line| line.strip_prefix("kafka-acls "))
        .map(|line| line.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect())
        .collect()
}

/// Carries a command out as the broker itself (its listener in plain text belongs to a super user).
fn grant(broker: &RealKafka, command: &[String]) {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    let at = arguments.iter().position(|word| *word == "--bootstrap-server").expect("the command names a broker");
    arguments[at + 1] = broker.bootstrap();
    java_tool(VERSION, "org.apache.kafka.tools.AclCommand", &arguments, "");
}

/// The worker's, with bob's credentials for its tasks too.
fn properties() -> Vec<(String, String)> {
    [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.jaas.config", JAAS),
        ("group.id", "acls"),
        ("exactly.once.source.support", "enabled"),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("value.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("config.storage.topic", "acls-configs"),
        ("config.storage.replication.factor", "1"),
        ("offset.storage.topic", "acls-offsets"),
        ("offset.storage.replication.factor", "1"),
        ("status.storage.topic", "acls-status"),
        ("status.storage.replication.factor", "1"),
    ]
    .iter()
    .flat_map(|(key, value)| {
        let tasks = ["security.protocol", "sasl.mechanism", "sasl.jaas.config"].contains(key);
        let prefixes: &[&str] = if tasks { &["", "producer.", "consumer.", "admin."] } else { &[""] };
        prefixes.iter().map(|prefix| (format!("{prefix}{key}"), (*value).to_owned())).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
#[ignore = "needs Apache Kafka"]
fn what_check_acls_prints_is_enough_and_less_is_told_by_name() {
    let options = KafkaOptions { version: VERSION, transaction_version: None, properties: &[] };
    let super_users = ["ANONYMOUS"];
    let protection =
        Protection { listeners: &["SASL_PLAINTEXT"], users: &["bob=bob-secret"], super_users: Some(&super_users) };
    let broker = RealKafka::start_protected(options, protection);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("in.txt");
    std::fs::write(&file, "one\ntwo\nthree\n").expect("the folder can be written");
    let properties = properties();
    let text: String = properties.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    let worker_file = folder.path().join("check.properties");
    let bootstrap = broker.listener("SASL_PLAINTEXT").to_owned();
    std::fs::write(&worker_file, format!("bootstrap.servers={bootstrap}\n{text}")).expect("it can be written");
    let config = serde_json::json!({
        "connector.class": "FileStreamSource", "file": file, "topic": "acls-lines", "tasks.max": "1",
        "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "acls-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
    });
    let connector_file = folder.path().join("lines.json");
    let request = serde_json::json!({"name": "lines", "config": config});
    std::fs::write(&connector_file, request.to_string()).expect("it can be written");

    let commands = needed(&worker_file, &connector_file);
    let (tasks, rest): (Vec<_>, Vec<_>) =
        commands.iter().partition(|command| command.iter().any(|word| word.starts_with("acls-lines-")));
    let (dead, rest): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|command| command.iter().any(|word| word == "acls-dead"));
    assert!(!tasks.is_empty() && !dead.is_empty(), "ids of the tasks and the dead letters are among {commands:?}");
    rest.iter().for_each(|command| grant(&broker, command));

    let options = WorkerOptions { bootstrap: &bootstrap, port: free_port(), properties: &properties };
    let worker = Worker::start(Kind::Ours, &folder.path().join("worker"), &options);
    worker.rest().create("lines", &config);
    let status = || worker.rest().must(200, "GET", "/connectors/lines/status", None).to_string();
    let failed =
        || worker.rest().status("lines").is_some_and(|status| status.tasks.iter().any(|task| task.0 == "FAILED"));
    wait_until("the task fails", PATIENCE, failed, || worker.log());
    let trace = status();
    for word in ["acls-lines-0", "transactional id", "WRITE", "User:bob"] {
        assert!(trace.contains(word), "{word} is not named in {trace}");
    }

    let restart = || {
        let answer = worker.rest().request("POST", "/connectors/lines/tasks/0/restart", None);
        answer.is_ok_and(|answer| answer.status == 204)
    };
    tasks.iter().for_each(|command| grant(&broker, command));
    // Rights reach the brokers' answers a moment after they were granted.
    let names_dead_letters = || status().contains("acls-dead") || (failed() && !restart());
    wait_until("the task fails for its dead letters", PATIENCE, names_dead_letters, status);
    let trace = status();
    for word in ["dead letters can't be written", "Write and Describe", "User:bob"] {
        assert!(trace.contains(word), "{word} is not named in {trace}");
    }

    dead.iter().for_each(|command| grant(&broker, command));
    let restarted = || {
        restart()
            && worker
                .rest()
                .request("GET", "/connectors/lines/offsets", None)
                .is_ok_and(|answer| answer.body.to_string().contains("position"))
    };
    wait_until("the lines arrive after the right was granted", PATIENCE, restarted, || worker.log());
    assert!(!worker.log().contains("bob-secret"), "a password is in the log");
    worker.stop();
}
