//! The binary with a value from a config provider that its connector quotes: in the log at TRACE, over REST and in the last words on
//! standard error a mask stands in its place. What a connector can say where is shown in `runtime/distributed/tests/secrets.rs`.

#![allow(clippy::unwrap_used, reason = "a test's own set-up, where a panic names the line")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use oncewire_system_tests::binary::oncewire;
use oncewire_system_tests::process::{Process, Signal};
use oncewire_system_tests::rest::Rest;
use oncewire_system_tests::target::{Broker, Target, free_port};
use oncewire_system_tests::worker::wait_until;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(30);
const SECRET: &str = "tiger22";
const TASK_FAILED: i32 = 1;

/// A folder with a secret in the file `key`, and a directory of that name, which no FileStreamSource can read.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("key"), SECRET).unwrap();
        fs::create_dir(folder.path().join(SECRET)).unwrap();
        Place(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The file of the connector: a directory whose name is the secret.
    fn reference(&self) -> String {
        let folder = self.0.path().display();
        format!("{folder}/${{dir:{folder}:key}}")
    }

    fn write(&self, name: &str, lines: &[String]) -> PathBuf {
        fs::write(self.path(name), lines.join("\n")).unwrap();
        self.path(name)
    }

    fn start(&self, command: &str, files: &[&Path]) -> Process {
        let mut process = Command::new(oncewire());
        process.arg(command).args(files).env("ONCEWIRE_LOG", "trace");
        Process::start(&mut process, &self.path(&format!("{command}.log"))).unwrap()
    }
}

fn worker(broker: &Broker, group: &str) -> Vec<String> {
    let mut lines = vec![format!("bootstrap.servers={}", broker.bootstrap()), format!("group.id={group}")];
    lines.extend(
        [
            "key.converter=String",
            "value.converter=String",
            "offset.storage.replication.factor=1",
            "offset.storage.partitions=1",
            "config.providers=dir",
            "config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        ]
        .map(str::to_owned),
    );
    lines
}

fn assert_masked(log: &str) {
    let lines = |part: &str| log.lines().filter(|line| line.contains(part)).collect::<Vec<_>>();
    assert_eq!(lines(SECRET), [""; 0]);
    assert!(lines("[hidden]").iter().any(|line| line.contains("is a directory")), "the error itself is there:\n{log}");
    assert!(!lines("DEBUG").is_empty(), "all levels are looked at");
}

fn standalone(broker: &Broker) {
    let place = Place::new();
    let worker = place.write("worker.properties", &worker(broker, "alone"));
    let connector = ["name=c", "connector.class=FileStreamSource", "topic=alone"].map(str::to_owned);
    let file = format!("file={}", place.reference());
    let connector = place.write("connector.properties", &[&connector[..], &[file]].concat());
    let mut process = place.start("standalone", &[&worker, &connector]);
    assert_eq!(process.wait(PATIENCE).code(), Some(TASK_FAILED), "{}", process.log());
    let log = process.log();
    assert_masked(&log);
    let last = log.lines().rfind(|line| line.starts_with("oncewire: ")).unwrap_or_default();
    assert!(last.contains("[hidden]"), "the last words, which are no line of the log: {last:?}");
}

fn distributed(broker: &Broker) {
    let place = Place::new();
    let port = free_port();
    let mut lines = worker(broker, "group");
    lines.push(format!("listeners=http://127.0.0.1:{port}"));
    lines.push("exactly.once.source.support=enabled".to_owned());
    for topic in ["config", "offset", "status"] {
        lines.push(format!("{topic}.storage.topic=group-{topic}"));
        lines.push(format!("{topic}.storage.replication.factor=1"));
    }
    let mut process = place.start("distributed", &[&place.write("worker.properties", &lines)]);
    let rest = Rest::new(&format!("127.0.0.1:{port}"));
    let healthy = || rest.request("GET", "/health", None).is_ok_and(|answer| answer.status == 200);
    wait_until("health", PATIENCE, healthy, || process.log());
    rest.create("c", &json!({"connector.class": "FileStreamSource", "topic": "group", "file": place.reference()}));
    let traced = || rest.status("c").is_some_and(|status| !status.traces.is_empty());
    wait_until("a trace", PATIENCE, traced, || process.log());
    let traces = rest.status("c").unwrap_or_default().traces;
    assert!(traces.iter().all(|trace| trace.contains("[hidden]") && !trace.contains(SECRET)), "{traces:?}");
    for path in ["/connectors/c", "/connectors/c/tasks", "/connectors?expand=status&expand=info"] {
        let answer = rest.request("GET", path, None).unwrap();
        assert!(!answer.body.to_string().contains(SECRET), "{path}: {answer}");
    }
    process.signal(Signal::Terminate);
    assert_eq!(process.wait(PATIENCE).code(), Some(0), "{}", process.log());
    assert_masked(&process.log());
}

#[test]
fn a_value_of_a_config_provider_is_masked_in_all_that_the_binary_says() {
    let broker = Target::DevBroker.start();
    standalone(&broker);
    distributed(&broker);
}
