//! The clients that people use with Connect's REST interface, unchanged, against Java's worker and ours: monitors, health checks, command lines, and a
//! fuzzer that holds the answers against the OpenAPI document.
//!
//! What one cannot do, here as there: `kc validate-config` of kafka-connect-py sends its configuration as one JSON string, which is no configuration.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use oncewire_system_tests::connect_cluster::ConnectCluster;
use oncewire_system_tests::process::Process;
use oncewire_system_tests::rest::Rest;
use oncewire_system_tests::services::{KafkaOptions, RealKafka};
use oncewire_system_tests::worker::{Kind, wait_until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A worker with a connector that runs, `lines`, and one whose task has failed, `broken`.
struct Place {
    // Ends before the broker.
    cluster: ConnectCluster,
    _kafka: RealKafka,
}

impl Place {
    fn new(kind: Kind) -> Self {
        let kafka = RealKafka::start(KafkaOptions { version: "4.3.1", transaction_version: None, properties: &[] });
        let mut cluster = ConnectCluster::new(&format!("clients-{kind}"), kafka.bootstrap(), 1);
        cluster.start(0, kind);
        let place = Place { cluster, _kafka: kafka };
        std::fs::write(place.input(), "one\ntwo\n").expect("a file can be written");
        let mut broken = place.config();
        broken["producer.override.acks"] = json!("nonsense");
        place.rest().create("lines", &place.config());
        place.rest().create("broken", &broken);
        place.wait("lines", "RUNNING");
        place.wait("broken", "FAILED");
        place
    }

    fn rest(&self) -> Rest {
        self.cluster.rest(0)
    }

    fn url(&self) -> String {
        format!("http://{}", self.rest().worker_id())
    }

    fn port(&self) -> String {
        self.rest().worker_id().rsplit(':').next().expect("host:port").to_owned()
    }

    fn input(&self) -> PathBuf {
        self.cluster.path("input.txt")
    }

    fn config(&self) -> Value {
        json!({
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": self.input(), "topic": "lines", "tasks.max": "1",
        })
    }

    /// Waits until the connector's one task is in `state`.
    fn wait(&self, connector: &str, state: &str) {
        let path = format!("/connectors/{connector}/tasks/0/status");
        let reached = || {
            let answer = self.rest().request("GET", &path, None).expect("the worker answers");
            answer.body["state"] == state
        };
        let last =
            || self.rest().request("GET", &path, None).map_or_else(|error| error.to_string(), |last| last.to_string());
        wait_until(&format!("task 0 of {connector} is {state}"), PATIENCE, reached, last);
    }
}

/// Where the programs of a client are; installed at the first use.
fn programs(client: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../services/rest-clients");
    let output = Command::new(script).args(["path", client]).output().expect("the script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// `kc` of kafka-connect-py.
fn kafka_connect_py(place: &Place) {
    let kc = programs("kafka-connect-py").join("kc");
    let run = |arguments: &[&str]| {
        let output = Command::new(&kc).args(["-u", &place.url()]).args(arguments).output().expect("kc runs");
        assert!(output.status.success(), "kc {arguments:?}: {}", text(&output));
        text(&output)
    };
    let json = |arguments: &[&str]| -> Value {
        let text = run(arguments);
        serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("kc {arguments:?}: {error}: {text}"))
    };
    assert!(json(&["info"])["kafka_cluster_id"].is_string());
    assert_eq!(json(&["list"]), json!(["broken", "lines"]));
    let body = json!({ "name": "made", "config": place.config() }).to_string();
    assert_eq!(json(&["create", "-d", &body])["name"], "made");
    place.wait("made", "RUNNING");
    assert!(run(&["create", "-d", &body]).contains("409"));
    let mut other = place.config();
    other["topic"] = json!("other");
    assert_eq!(json(&["update", "made", "-d", &other.to_string()])["config"]["topic"], "other");
    assert_eq!(json(&["config", "made"])["topic"], "other");
    assert_eq!(json(&["get", "made"])["type"], "source");
    place.wait("made", "RUNNING");
    assert_eq!(json(&["list-tasks", "made"])[0]["id"]["connector"], "made");
    assert_eq!(json(&["task-status", "made", "0"])["id"], 0);
    run(&["pause", "made"]);
    place.wait("made", "PAUSED");
    run(&["resume", "made"]);
    place.wait("made", "RUNNING");
    run(&["restart", "made", "--include-tasks"]);
    place.wait("made", "RUNNING");
    run(&["restart-task", "made", "0"]);
    place.wait("made", "RUNNING");
    assert_eq!(json(&["list-topics", "lines"]), json!({ "lines": { "topics": ["lines"] } }));
    run(&["reset-topics", "lines"]);
    assert!(json(&["list-plugins"]).as_array().is_some_and(|plugins| !plugins.is_empty()));
    assert_eq!(json(&["status", "broken"])["tasks"][0]["state"], "FAILED");
    run(&["delete", "made"]);
    assert!(run(&["get", "made"]).contains("404"));
}

/// connectorctl keeps its settings in the home directory.
fn connectorctl(place: &Place) {
    let program = programs("connectorctl").join("connectorctl");
    let home = place.cluster.path("home");
    std::fs::create_dir_all(&home).expect("a folder can be made");
    let run = |arguments: &[&str]| {
        let output = Command::new(&program).env("HOME", &home).args(arguments).output().expect("connectorctl runs");
        assert!(output.status.success(), "connectorctl {arguments:?}: {}", text(&output));
        text(&output)
    };
    run(&["set-env", "test", "--server", "127.0.0.1", "--port", &place.port()]);
    assert!(run(&["list"]).contains("broken"));
    let body = json!({ "name": "made", "config": place.config() }).to_string();
    assert!(run(&["create", &body]).contains("created successfully"));
    place.wait("made", "RUNNING");
    assert!(run(&["status", "made"]).contains("RUNNING"));
    assert!(run(&["update", "made", &place.config().to_string()]).contains("updated successfully"));
    place.wait("made", "RUNNING");
    for (command, told) in [("pause", "Paused"), ("resume", "Resumed"), ("restart", "Restarted")] {
        assert!(run(&[command, "made"]).contains(&format!("{told} successfully")), "{command}");
    }
    assert!(run(&["get", "made"]).contains("FileStreamSourceConnector"));
    assert!(run(&["delete", "made"]).contains("deleted successfully"));
}

/// connectmon restarts what has failed and tells a chat of it, for which a socket stands here.
fn connectmon(place: &Place) {
    let chat = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let hook = format!("http://{}/hook", chat.local_addr().expect("it is bound"));
    let channels = place.cluster.path("channels.yaml");
    std::fs::write(&channels, format!("channels: [{{name: a, type: teams, url: '{hook}'}}]\n")).expect("a file");
    let told = std::thread::spawn(move || {
        let (mut stream, _) = chat.accept().expect("connectmon connects");
        let mut message = Vec::new();
        let mut part = [0; 4096];
        while !String::from_utf8_lossy(&message).contains("broken") {
            let read = stream.read(&mut part).expect("a message");
            assert!(read > 0, "connectmon said: {}", String::from_utf8_lossy(&message));
            message.extend_from_slice(&part[..read]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1").expect("an answer");
        String::from_utf8_lossy(&message).into_owned()
    });
    let python = programs("connectmon").join("python");
    let output = Command::new(python)
        .args(["-m", "connectmon"])
        .env("CONNECT_URL", place.url())
        .env("CONFIG_PATH", &channels)
        .env("CHANNELS", "{}")
        .output()
        .expect("connectmon runs");
    assert!(output.status.success(), "{}", text(&output));
    assert!(told.join().expect("connectmon has told").contains("Restarting task 0 for broken"));
    place.wait("broken", "FAILED");
}

/// kafka-connect-healthcheck serves one page.
fn healthcheck(place: &Place) {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let program = programs("kafka-connect-healthcheck").join("kafka-connect-healthcheck");
    let mut command = Command::new(program);
    command.args(["--port", &free.port().to_string(), "--connect-url", &place.url()]);
    let running = Process::start(&mut command, &place.cluster.path("healthcheck.log")).expect("it starts");
    let page = Rest::new(&free.to_string());
    wait_until("the health check answers", PATIENCE, || page.request("GET", "/", None).is_ok(), || running.log());
    let verdict = page.request("GET", "/", None).expect("it answers");
    assert_eq!(verdict.status, 503, "{verdict}");
    assert_eq!(verdict.body["failures"][0]["connector"], "broken");
    assert_eq!(verdict.body["failures"].as_array().map(Vec::len), Some(1), "{verdict}");
}

/// kafka-connect-watcher restarts what has failed, for ever.
fn watcher(place: &Place) {
    let config = place.cluster.path("watcher.yaml");
    let rules = "[{include_regex: ['.*'], auto_correct_actions: [{action: restart}]}]";
    let cluster = format!("clusters: [{{hostname: 127.0.0.1, port: {}, evaluation_rules: {rules}}}]\n", place.port());
    std::fs::write(&config, cluster).expect("a file");
    // It logs to its standard output.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$1\" -c \"$2\" >&2", "sh"]);
    command.arg(programs("kafka-connect-watcher").join("kafka-connect-watcher")).arg(&config);
    let running = Process::start(&mut command, &place.cluster.path("watcher.log")).expect("it starts");
    wait_until(
        "a round is over",
        PATIENCE,
        || running.log().contains("Clusters processing finished"),
        || running.log(),
    );
    let log = running.log();
    assert!(log.contains("Applied corrective action 'restart' to connector broken"), "{log}");
    assert!(!log.contains("Traceback") && !log.contains("to connector lines"), "{log}");
}

/// Every operation of the OpenAPI document with right and wrong input: codes, types, headers and bodies as described. Malformed bodies get 500, as in
/// Java; and what is right by the document can still be no connector.
fn schemathesis(place: &Place) {
    let output = Command::new(programs("schemathesis").join("schemathesis"))
        .args(["run", &format!("{}/openapi.json", place.url()), "--no-color", "--seed", "1", "--max-examples", "25"])
        .args(["--phases", "coverage,fuzzing", "--exclude-path", "/worker/drain"])
        .args(["--exclude-checks", "not_a_server_error,positive_data_acceptance"])
        .current_dir(place.cluster.path(""))
        .output()
        .expect("schemathesis runs");
    assert!(output.status.success(), "{}", text(&output));
    let health = place.rest().request("GET", "/health", None).expect("the worker is alive");
    assert_eq!(health.status, 200, "{health}");
}

fn all(kind: Kind) -> Place {
    let place = Place::new(kind);
    kafka_connect_py(&place);
    connectorctl(&place);
    healthcheck(&place);
    connectmon(&place);
    watcher(&place);
    place
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn the_fields_clients_work_with_javas_worker() {
    all(Kind::Java);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn the_fields_clients_work_with_our_worker() {
    let place = all(Kind::Ours);
    schemathesis(&place);
}
