//! What stands in the internal topics, and what a worker makes of it.

use crate::support::{CONFIGS, Group, OFFSETS, STATUSES, eventually, tasks_of};
use oncewire_client::reader::Isolation;
use serde_json::{Value, json};

/// B22
#[tokio::test]
async fn restore_full() {
    let group = Group::new().await;
    let first = group.join().await;
    first.rest.create("a", &group.scripted(&[("tasks", "2"), ("records", "3")])).await;
    first.rest.create("b", &group.scripted(&[("records", "0")])).await;
    first.rest.until_states("a", "RUNNING", &["RUNNING"; 2]).await;
    first.rest.must(202, "PUT", "/connectors/a/pause", None).await;
    first.rest.until_states("a", "PAUSED", &["PAUSED"; 2]).await;
    first.rest.must(204, "PUT", "/connectors/b/stop", None).await;
    first.rest.until_states("b", "STOPPED", &[]).await;
    let before = first.rest.get("/connectors?expand=info").await.body;
    first.stop().await;
    let next = group.join().await;
    assert_eq!(next.rest.get("/connectors?expand=info").await.body, before);
    next.rest.until_states("a", "PAUSED", &["PAUSED"; 2]).await;
    next.rest.until_states("b", "STOPPED", &[]).await;
    group.close([next]).await;
}

/// B29
#[tokio::test]
async fn initial_state_order() {
    let group = Group::new().await;
    let node = group.join().await;
    let body = json!({"name": "c", "config": group.scripted(&[]), "initial_state": "STOPPED"});
    node.rest.must(201, "POST", "/connectors", Some(&body)).await;
    node.rest.until_states("c", "STOPPED", &[]).await;
    let keys: Vec<String> = group.read(CONFIGS, Isolation::Committed).await.into_iter().map(|(key, _)| key).collect();
    let place = |wanted: &str| keys.iter().position(|key| key == wanted).expect("it was written");
    assert!(place("target-state-c") < place("connector-c"), "{keys:?}");
    assert_eq!(group.stage.count("connector start"), 0);
    node.rest.must(202, "PUT", "/connectors/c/resume", None).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.close([node]).await;
}

/// B34: a restart whose fields are missing or no booleans restarts the connector instance alone.
#[tokio::test]
async fn restart_record_tolerance() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.write(CONFIGS, "restart-connector-c", r#"{"include-tasks":"yes"}"#).await;
    eventually("the instance starts anew", async || {
        if group.stage.count("connector start") == 2 { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    assert_eq!(group.stage.count("task 0 start"), 1);
    group.close([node]).await;
}

/// B35
#[tokio::test]
async fn old_logger_and_restart_records_ignored_at_start() {
    let group = Group::new().await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[])).await;
    first.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    first.rest.must(202, "POST", "/connectors/c/restart?includeTasks=true", None).await;
    eventually("the restart", async || {
        if group.stage.count("task 0 start") == 2 { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    let level = json!({"level": "TRACE"});
    first.rest.must(204, "PUT", "/admin/loggers/oncewire_worker?scope=cluster", Some(&level)).await;
    eventually("the level is taken", async || {
        let answer = first.rest.get("/admin/loggers/oncewire_worker").await;
        if answer.body["level"] == "TRACE" { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    first.stop().await;
    let next = group.join().await;
    // The states of the stopped worker are there until the new owner tells its own.
    let here = |status: &Value| tasks_of(status).iter().any(|task| task["worker_id"] == next.id());
    next.rest.until_status("c", "runs here", here).await;
    next.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let counts = (group.stage.count("connector start"), group.stage.count("task 0 start"));
    assert_eq!(counts, (3, 3), "{:?}", group.stage.events());
    assert_ne!(next.rest.get("/admin/loggers/oncewire_worker").await.body["level"], "TRACE");
    group.close([next]).await;
}

/// C37
#[tokio::test]
async fn status_json() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("on.task.start", "fail")])).await;
    node.rest.until_states("c", "RUNNING", &["FAILED"]).await;
    let mut written = std::collections::BTreeMap::new();
    eventually("both states are written", async || {
        written = group.newest(STATUSES).await;
        let failed = |value: &Option<String>| value.as_deref().is_some_and(|value| value.contains("FAILED"));
        if written.get("status-task-c-0").is_some_and(failed) { Ok(()) } else { Err(format!("{written:?}")) }
    })
    .await;
    let members = |key: &str| {
        let value: Value = serde_json::from_str(written[key].as_deref().unwrap()).unwrap();
        value
    };
    let connector = members("status-connector-c");
    assert_eq!((&connector["state"], &connector["trace"]), (&json!("RUNNING"), &Value::Null));
    assert!(connector.as_object().unwrap().contains_key("trace"), "null where there is none: {connector}");
    let task = members("status-task-c-0");
    assert_eq!((&task["state"], &task["worker_id"]), (&json!("FAILED"), &json!(node.id())));
    assert!(task["trace"].as_str().unwrap().contains("the task's source says no"), "{task}");
    assert!(task["generation"].as_i64().unwrap() > 0);
    group.close([node]).await;
}

/// C38, C39: what another worker of an older or the same generation says late does not cover the new owner's state.
#[tokio::test]
async fn stale_unassigned_read() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[])).await;
    let status = node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let late = r#"{"state":"UNASSIGNED","trace":null,"worker_id":"10.0.0.1:8083","generation":0}"#;
    group.write(STATUSES, "status-task-c-0", late).await;
    group.write(STATUSES, "status-task-x-0", late).await;
    eventually("the later record is read", async || {
        let answer = node.rest.get("/connectors/x/tasks/0/status").await;
        if answer.status == 200 { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    assert_eq!(node.rest.status("c").await, status);
    group.close([node]).await;
}

/// C41
#[tokio::test]
async fn active_topics() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("tasks", "2"), ("topic", "t1,t2")])).await;
    let topics = async |expected: Value| {
        eventually("the topics", async || {
            let answer = node.rest.get("/connectors/c/topics").await;
            if answer.body["c"]["topics"] == expected { Ok(()) } else { Err(answer.to_string()) }
        })
        .await;
    };
    topics(json!(["t1", "t2"])).await;
    let keys: Vec<String> = group.newest(STATUSES).await.into_keys().collect();
    assert!(keys.contains(&"status-topic-t1:connector-c".to_owned()), "{keys:?}");
    node.rest.must(204, "PUT", "/connectors/c/stop", None).await;
    node.rest.until_states("c", "STOPPED", &[]).await;
    node.rest.must(202, "PUT", "/connectors/c/topics/reset", None).await;
    topics(json!([])).await;
    node.rest.must(202, "PUT", "/connectors/c/resume", None).await;
    topics(json!(["t1", "t2"])).await;
    node.rest.must(204, "DELETE", "/connectors/c", None).await;
    topics(json!([])).await;
    eventually("tombstones", async || {
        let left = group.newest(STATUSES).await;
        let left: Vec<_> =
            left.iter().filter(|(key, value)| key.starts_with("status-topic") && value.is_some()).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    group.close([node]).await;
}

/// D44
#[tokio::test]
async fn null_offset_is_tombstone() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("tasks", "2"), ("records", "3")])).await;
    group.until_number(2, 3).await;
    node.rest.must(204, "PUT", "/connectors/c/stop", None).await;
    let listed = async || node.rest.get("/connectors/c/offsets").await.body["offsets"].as_array().unwrap().len();
    assert_eq!(listed().await, 2);
    let gone = json!({"offsets": [{"partition": {"task": "1"}, "offset": null}]});
    node.rest.must(200, "PATCH", "/connectors/c/offsets", Some(&gone)).await;
    assert_eq!(listed().await, 1);
    assert_eq!(group.newest(OFFSETS).await[r#"["c",{"task":"1"}]"#], None);
    group.close([node]).await;
}

/// D45
#[tokio::test]
async fn bad_keys_skipped() {
    let group = Group::new().await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("records", "3")])).await;
    group.until_number(1, 3).await;
    for key in ["no json", "[]", r#"["c"]"#, r#"["c",{},1]"#, r#"[1,{"task":"0"}]"#, r#"["c",7]"#, r#"{"c":1}"#] {
        group.write(OFFSETS, key, r#"{"n":1}"#).await;
    }
    group.write(OFFSETS, r#"["c",{"task":"9"}]"#, "[1]").await;
    first.stop().await;
    let next = group.join().await;
    next.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let offsets = next.rest.get("/connectors/c/offsets").await;
    assert_eq!(offsets.body, json!({"offsets": [{"partition": {"task": "0"}, "offset": {"n": 3}}]}));
    group.close([next]).await;
}

/// D50: every transaction ends with a marker, so the last batch of each of these topics is one.
#[tokio::test]
async fn read_to_end_past_markers() {
    let group = Group::new().await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("records", "3")])).await;
    group.until_number(1, 3).await;
    let answer = first.rest.get("/connectors/c/offsets").await;
    assert_eq!(answer.body["offsets"][0]["offset"]["n"], 3);
    let second = group.join().await;
    assert_eq!(second.rest.get("/connectors").await.body, json!(["c"]));
    assert_eq!(second.rest.get("/connectors/c/offsets").await.body["offsets"][0]["offset"]["n"], 3);
    group.close([first, second]).await;
}
