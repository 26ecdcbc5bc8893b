//! Config and status topics that we wrote, under a Java worker: it runs what they say and shows it; what it writes we read; and of two
//! leaders, one of them Java's, only the newer one writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::producer::PlainConfig;
use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::rest::Rest;
use oncewire_system_tests::services::{KafkaOptions, RealKafka};
use oncewire_system_tests::target::free_low_port;
use oncewire_system_tests::worker::{Kind, Worker, WorkerOptions, wait_until};
use oncewire_topics::{
    Config, ConfigTopic, ConfigTopicSettings, LeaderProducer, RestartRequest, State, Status, StatusTopic,
    StatusTopicSettings, TargetState, TopicError, TopicSettings,
};
use serde_json::{Value, json};

/// The group of `tests/services/connect`, which names the topics and the leader's transactional id.
const GROUP: &str = "oncewire-java";
const FILE_SOURCE: &str = "org.apache.kafka.connect.file.FileStreamSource";
/// Everything but the start of a worker happens well within this.
const PATIENCE: Duration = Duration::from_secs(40);

fn topic(kind: &str) -> TopicSettings {
    TopicSettings {
        name: format!("{GROUP}-{kind}"),
        partitions: Some(5),
        replication_factor: Some(1),
        configs: BTreeMap::new(),
    }
}

async fn open_configs(client: &Client, bootstrap: &str) -> ConfigTopic {
    let leader = LeaderProducer {
        client: ClientConfig::new(bootstrap).expect("a test's address is one"),
        producer: ProducerConfig::new(&format!("connect-cluster-{GROUP}")).expect("not empty"),
    };
    let settings = ConfigTopicSettings {
        topic: topic("configs"),
        cluster: client.cluster().clone(),
        isolation: Isolation::Committed,
        producer: PlainConfig::default(),
        leader: Some(leader),
    };
    ConfigTopic::start(settings).await.expect("the config topic is made")
}

async fn open_statuses(client: &Client) -> StatusTopic {
    let settings = StatusTopicSettings {
        topic: topic("status"),
        cluster: client.cluster().clone(),
        isolation: Isolation::Uncommitted,
        producer: PlainConfig::default(),
    };
    StatusTopic::start(settings).await.expect("the status topic is made")
}

/// A file source's config, as the connector's or, with the class, as its task's.
fn file_source(name: &str, folder: &Path, is_task: bool) -> Config {
    let file = folder.join("lines.txt");
    let mut config: Config = [
        ("name", name),
        ("connector.class", &format!("{FILE_SOURCE}Connector")),
        ("file", file.to_str().expect("temporary folders have text names")),
        ("topic", "lines"),
        ("tasks.max", "1"),
        ("note", "é \"\u{1}\" \\/ \u{2028}"),
    ]
    .map(|(key, value)| (key.to_owned(), Some(value.to_owned())))
    .into();
    if is_task {
        config.insert("task.class".to_owned(), Some(format!("{FILE_SOURCE}Task")));
    }
    config
}

fn status(state: State) -> Status {
    Status { state, trace: None, worker_id: "ghost:8083".to_owned(), generation: 1, version: Some("1".to_owned()) }
}

/// A cluster that was set up without a Java worker: one connector that runs, one that pauses, one that is stopped, one deleted.
async fn write(configs: &ConfigTopic, statuses: &StatusTopic, folder: &Path) -> Result<(), TopicError> {
    configs.claim_write_privileges().await?;
    for (name, state) in
        [("runs", None), ("pauses", Some(TargetState::Paused)), ("stands", Some(TargetState::Stopped)), ("gone", None)]
    {
        configs.put_connector(name, &file_source(name, folder, false), state).await?;
        let tasks = if name == "stands" { vec![] } else { vec![file_source(name, folder, true)] };
        configs.put_task_configs(name, &tasks).await?;
        configs.put_task_count(name, u32::try_from(tasks.len()).expect("one")).await?;
    }
    configs.remove_connector("gone").await?;
    let request = RestartRequest { connector: "runs".to_owned(), only_failed: false, include_tasks: true };
    configs.put_restart(&request).await?;
    statuses.put_connector("stands", &status(State::Stopped));
    statuses.put_topic("stands", 0, "told-by-us");
    statuses.flush(PATIENCE).await
}

fn config_of(rest: &Rest, connector: &str) -> Value {
    rest.must(200, "GET", &format!("/connectors/{connector}/config"), None)
}

fn java_shows_what_we_wrote(rest: &Rest, folder: &Path) {
    let names = || {
        let mut names = rest.must(200, "GET", "/connectors", None);
        names.as_array_mut().expect("a list").sort_by_key(|name| name.to_string());
        names
    };
    // Java answers a moment before it has read the topic, and then with nothing.
    let read = || names() == json!(["pauses", "runs", "stands"]);
    wait_until("the connectors are there", PATIENCE, read, || names().to_string());
    for name in ["runs", "pauses", "stands"] {
        assert_eq!(config_of(rest, name), json!(file_source(name, folder, false)));
    }
    for (name, state, tasks) in [("runs", "RUNNING", 1), ("pauses", "PAUSED", 1), ("stands", "STOPPED", 0)] {
        let is_there = || rest.status(name).is_some_and(|status| status.all_are(state, tasks));
        wait_until(&format!("{name} is {state}"), PATIENCE, is_there, || format!("{:?}", rest.status(name)));
    }
    let tasks = rest.must(200, "GET", "/connectors/runs/tasks", None);
    assert_eq!(tasks[0]["config"], json!(file_source("runs", folder, true)));
    let topics = rest.must(200, "GET", "/connectors/stands/topics", None);
    assert_eq!(topics, json!({"stands": {"topics": ["told-by-us"]}}));
}

async fn we_read_what_java_writes(configs: &ConfigTopic, statuses: &StatusTopic, rest: &Rest) {
    drop(configs.take_changes());
    rest.must(202, "PUT", "/connectors/runs/pause", None);
    tokio::time::timeout(PATIENCE, configs.changed()).await.expect("the change is told");
    assert!(configs.take_changes().target_states.contains("runs"));
    configs.refresh(PATIENCE).await.expect("it can be read");
    assert_eq!(configs.snapshot().target_state("runs"), Some(TargetState::Paused));
    assert_eq!(configs.snapshot().tasks("runs"), [0]);
    assert!(configs.snapshot().session_key().is_some(), "Java's leader made one");
    statuses.refresh(PATIENCE).await.expect("it can be read");
    let task = statuses.task("pauses", 0).expect("Java told it");
    assert_eq!(
        (task.state, task.worker_id.as_str(), task.version.as_deref()),
        (State::Paused, rest.worker_id(), Some("4.3.1"))
    );
}

async fn leaders_fence_each_other(configs: &ConfigTopic, rest: &Rest, folder: &Path) {
    let config = file_source("late", folder, false);
    let fenced = configs.put_connector("late", &config, Some(TargetState::Stopped)).await;
    assert!(matches!(fenced, Err(TopicError::Privileged(_))), "Java's leader came after ours: {fenced:?}");
    assert!(!configs.snapshot().contains("late"));
    configs.claim_write_privileges().await.expect("it is free to be claimed");
    configs.put_connector("late", &config, Some(TargetState::Stopped)).await.expect("it is ours now");
    let is_there = || rest.status("late").is_some_and(|status| status.all_are("STOPPED", 0));
    wait_until("late is STOPPED", PATIENCE, is_there, || format!("{:?}", rest.status("late")));
    // Now Java's leader is the fenced one: it says so, and claims again by itself.
    let body = json!({"name": "last", "config": file_source("last", folder, false), "initial_state": "STOPPED"});
    let fenced = rest.request("POST", "/connectors", Some(&body)).expect("an answer");
    assert_eq!(fenced.status, 500, "{fenced}");
    let created =
        || rest.request("POST", "/connectors", Some(&body)).is_ok_and(|answer| [201, 409].contains(&answer.status));
    wait_until("Java's leader writes again", PATIENCE, created, || "it does not".to_owned());
    configs.refresh(PATIENCE).await.expect("it can be read");
    assert_eq!(configs.snapshot().target_state("last"), Some(TargetState::Stopped));
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn a_java_worker_runs_what_we_wrote_and_shares_it_with_us() {
    let kafka = RealKafka::start(KafkaOptions { version: "4.3.1", transaction_version: None, properties: &[] });
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("lines.txt"), "one\ntwo\n").expect("it can be written");
    let client = Client::connect(kafka.bootstrap());
    let (configs, statuses) = client.block_on(async {
        let configs = open_configs(&client, kafka.bootstrap()).await;
        let statuses = open_statuses(&client).await;
        write(&configs, &statuses, folder.path()).await.expect("all is written");
        (configs, statuses)
    });
    let options = WorkerOptions { bootstrap: kafka.bootstrap(), port: free_low_port(), properties: &[] };
    let worker = Worker::start(Kind::Java, &folder.path().join("worker"), &options);
    java_shows_what_we_wrote(worker.rest(), folder.path());
    client.block_on(we_read_what_java_writes(&configs, &statuses, worker.rest()));
    client.block_on(leaders_fence_each_other(&configs, worker.rest(), folder.path()));
    client.block_on(async {
        configs.close().await;
        statuses.close(PATIENCE).await;
    });
    worker.kill9();
}
