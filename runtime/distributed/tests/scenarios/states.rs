//! Connectors and tasks through their states, at-least-once delivery, and a cluster that takes over what another one left.

use crate::exactly_once::epoch;
use crate::support::{CONFIGS, DATA, Group, OFFSETS, eventually};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_client::admin::{Admin, OffsetSpec};
use oncewire_client::reader::Isolation;
use oncewire_dev_broker::Fault;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::atomic::Ordering;

async fn partitions(group: &Group, topic: &str) -> usize {
    let cluster = group.cluster().await;
    let found = Admin::new(cluster.clone()).list_offsets(topic, None, OffsetSpec::Latest, Default::default()).await;
    cluster.close().await;
    found.map_or(0, |found| found.len())
}

/// F86 to F88 end to end: what was acknowledged is stored, by a pause, a failure and a stop; nothing is lost.
#[tokio::test]
async fn failed_task_final_commit() {
    let group =
        Group::with(&[("exactly.once.source.support", "disabled"), ("offset.flush.interval.ms", "600000")]).await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("records", "6")])).await;
    group.until_number(1, 6).await;
    assert!(group.newest(OFFSETS).await.is_empty(), "the interval is not over");
    group.stage.set("on.poll", "fail");
    node.rest.until_states("c", "RUNNING", &["FAILED"]).await;
    eventually("the final commit", async || {
        let stored = group.newest(OFFSETS).await;
        let stored = stored.get(r#"["c",{"task":"0"}]"#).cloned().flatten();
        if stored.as_deref() == Some(r#"{"n":6}"#) { Ok(()) } else { Err(format!("{stored:?}")) }
    })
    .await;
    group.close([node]).await;
}

/// F89
#[tokio::test]
async fn topic_creation_groups() {
    let group = Group::new().await;
    let node = group.join().await;
    let config = group.scripted(&[
        ("topic", "wide-1,wide-2,plain,refused"),
        ("tasks", "3"),
        ("records", "3"),
        ("topic.creation.groups", "wide"),
        ("topic.creation.wide.include", "wide.*"),
        ("topic.creation.wide.exclude", "wide-2"),
        ("topic.creation.wide.partitions", "3"),
    ]);
    node.rest.create("c", &config).await;
    eventually("the topics", async || {
        let found =
            [partitions(&group, "wide-1").await, partitions(&group, "wide-2").await, partitions(&group, "plain").await];
        if found == [3, 1, 1] { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    let mut more = config.clone();
    more["topic.creation.wide.partitions"] = json!("5");
    node.rest.put("c", &more).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    assert_eq!(partitions(&group, "wide-1").await, 3, "a topic that is there stays as it is");
    for nth in 1..=100 {
        group.broker.faults().inject(ApiKey::CreateTopics, nth, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    }
    more["tasks"] = json!("4");
    node.rest.put("c", &more).await;
    let status = node.rest.until_states("c", "RUNNING", &["RUNNING", "RUNNING", "RUNNING", "FAILED"]).await;
    assert!(status["tasks"][3]["trace"].as_str().unwrap().contains("refused"), "{status}");
    group.broker.faults().clear();
    group.close([node]).await;
}

/// H103 in a group: a start that hangs or fails is pre-empted by a stop, and a restart mends it.
#[tokio::test]
async fn connector_pre_empted_transition() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("on.start", "fail"), ("records", "0")])).await;
    let status = node.rest.until_states("c", "FAILED", &[]).await;
    assert!(status["connector"]["trace"].as_str().unwrap().contains("the source says no"), "{status}");
    node.rest.must(204, "PUT", "/connectors/c/stop", None).await;
    node.rest.until_states("c", "STOPPED", &[]).await;
    node.rest.must(202, "PUT", "/connectors/c/resume", None).await;
    node.rest.until_states("c", "FAILED", &[]).await;
    group.stage.set("on.start", "hang");
    let rest = node.rest.clone();
    let restart = tokio::spawn(async move { rest.send("POST", "/connectors/c/restart", None).await });
    eventually("it hangs", async || {
        if group.stage.count("connector start") == 3 { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    node.rest.must(204, "PUT", "/connectors/c/stop", None).await;
    group.stage.set("on.start", "");
    node.rest.must(204, "DELETE", "/connectors/c", None).await;
    let answer = restart.await.unwrap();
    assert!(answer.status >= 400, "the restart did not come to its end: {answer}");
    node.rest.create("c", &group.scripted(&[("records", "0")])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.close([node]).await;
}

/// H104
#[tokio::test]
async fn too_many_tasks() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("tasks", "3"), ("tasks.max", "2"), ("records", "0")])).await;
    let status = node.rest.until_states("c", "FAILED", &[]).await;
    assert!(status["connector"]["trace"].as_str().unwrap().contains("tasks.max"), "{status}");
    let lenient = [("tasks", "3"), ("tasks.max", "2"), ("tasks.max.enforce", "false"), ("records", "0")];
    node.rest.put("c", &group.scripted(&lenient)).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    node.rest.put("c", &group.scripted(&lenient[..2])).await;
    let status = node.rest.until_status("c", "fails", |status| status["connector"]["state"] == "FAILED").await;
    assert!(status["connector"]["trace"].as_str().unwrap().contains("tasks.max"), "{status}");
    group.close([node]).await;
}

/// H105: the task's configuration has no converter, and yet it has to start anew with it. With the file connector.
#[tokio::test]
async fn runtime_property_only_change_restarts_tasks() {
    let group = Group::new().await;
    let node = group.join().await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "one").unwrap();
    let config = |converter: &str| {
        json!({
            "connector.class": "FileStreamSource",
            "file": file.path(),
            "topic": DATA,
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
            "value.converter": converter,
            "value.converter.schemas.enable": "false",
        })
    };
    let lines = async |expected: &[&str]| {
        eventually("the lines", async || {
            let lines = group.read(DATA, Isolation::Committed).await;
            let lines: Vec<String> = lines.into_iter().filter_map(|(_, line)| line).collect();
            if lines == expected { Ok(()) } else { Err(format!("{lines:?}")) }
        })
        .await;
    };
    node.rest.create("c", &config("String")).await;
    lines(&["one"]).await;
    let (commits, before) = (commits(&group).await, epoch(&group, 0).await);
    node.rest.put("c", &config("org.apache.kafka.connect.json.JsonConverter")).await;
    eventually("the tasks are committed anew", async || {
        if self::commits(&group).await > commits { Ok(()) } else { Err(String::new()) }
    })
    .await;
    // Until its successor has its id the old task may still read the next line.
    eventually("the task starts anew", async || {
        let now = epoch(&group, 0).await;
        if now > before { Ok(()) } else { Err(now.to_string()) }
    })
    .await;
    std::fs::OpenOptions::new().append(true).open(file.path()).unwrap().write_all(b"two\n").unwrap();
    lines(&["one", "\"two\""]).await;
    group.close([node]).await;
}

async fn commits(group: &Group) -> usize {
    group.read(CONFIGS, Isolation::Committed).await.iter().filter(|(key, _)| key == "commit-c").count()
}

/// H106
#[tokio::test]
async fn reconfiguration_retries() {
    let group = Group::new().await;
    let node = group.join().await;
    group.stage.failing_configs.store(2, Ordering::SeqCst);
    node.rest.create("c", &group.scripted(&[])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    assert_eq!(group.stage.count("task configs"), 3);
    // The same when a running connector is reconfigured: the old tasks go on until the new ones can be had.
    group.stage.failing_configs.store(2, Ordering::SeqCst);
    node.rest.put("c", &group.scripted(&[("batch", "2")])).await;
    eventually("the first look fails", async || {
        if group.stage.count("task configs") > 3 { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    assert_eq!(group.stage.count("task 0 start"), 1, "{:?}", group.stage.events());
    eventually("the task starts anew, with the new configuration", async || {
        let tasks = node.rest.get("/connectors/c/tasks").await.body;
        let is_new = tasks[0]["config"]["batch"] == "2" && group.stage.count("task 0 start") == 2;
        if is_new { Ok(()) } else { Err(format!("{tasks} {:?}", group.stage.events())) }
    })
    .await;
    assert_eq!(group.stage.count("task configs"), 6);
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.until_delivered(1, 3).await;
    group.close([node]).await;
}

/// H107
#[tokio::test]
async fn secrets_stay_references() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("key"), "hunter2hunter2").unwrap();
    let group = Group::with(&[
        ("config.providers", "dir"),
        ("config.providers.dir.class", "org.apache.kafka.common.config.provider.DirectoryConfigProvider"),
    ])
    .await;
    let node = group.join().await;
    let reference = format!("${{dir:{}:key}}", directory.path().display());
    node.rest.create("c", &group.scripted(&[("secret", &reference), ("records", "3")])).await;
    group.until_number(1, 3).await;
    assert_eq!(node.rest.get("/connectors/c/tasks").await.body[0]["config"]["secret"], reference.as_str());
    assert_eq!(node.rest.get("/connectors/c").await.body["config"]["secret"], reference.as_str());
    let written = group.read(CONFIGS, Isolation::Committed).await;
    assert!(written.iter().any(|(key, value)| key == "task-c-0" && value.as_deref().unwrap().contains("${dir:")));
    assert!(!format!("{written:?}").contains("hunter2"));
    group.close([node]).await;
}

/// H110: a whole cluster is gone from one moment to the next, in the middle of transactions; the next one fences what is left,
/// goes on at the committed offsets, and shows the states as they were.
#[tokio::test]
async fn takeover() {
    let group = Group::with(&[("session.timeout.ms", "1500")]).await;
    let nodes = [group.join().await, group.join().await];
    nodes[0].rest.create("c", &group.scripted(&[("tasks", "3"), ("batch", "50")])).await;
    nodes[0].rest.create("idle", &group.scripted(&[("records", "0")])).await;
    nodes[0].rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    nodes[0].rest.until_states("idle", "RUNNING", &["RUNNING"]).await;
    nodes[0].rest.must(202, "PUT", "/connectors/idle/pause", None).await;
    group.until_delivered(3, 100).await;
    let before = nodes[0].rest.get("/connectors?expand=info").await.body;
    nodes.into_iter().for_each(super::support::Node::kill);
    let next = group.join().await;
    assert_eq!(next.rest.get("/connectors?expand=info").await.body, before);
    next.rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    next.rest.until_states("idle", "PAUSED", &["PAUSED"]).await;
    group.until_delivered(3, 100).await;
    let status: Value = next.rest.status("c").await;
    let here = |state: &Value| state["worker_id"] == next.id();
    assert!(here(&status["connector"]) && crate::support::tasks_of(&status).iter().all(here), "{status}");
    group.close([next]).await;
}
