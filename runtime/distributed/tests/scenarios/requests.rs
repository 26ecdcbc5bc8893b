//! What REST answers, on the worker that leads and on one that does not.

use crate::support::{CONFIGS, Group, Node, eventually, tasks_of};
use kafka_protocol::messages::ApiKey;
use oncewire_rest::sign::{ALGORITHM_HEADER, SIGNATURE_HEADER, sign};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a read may take while a rebalance goes on.
const READ_MAX: Duration = Duration::from_secs(2);

async fn pair(group: &Group) -> (Node, Node) {
    let leader = group.join().await;
    let follower = group.join().await;
    (leader, follower)
}

/// G90, G91: what only the leader can do is done wherever it is asked; one that was sent on twice already goes nowhere.
#[tokio::test]
async fn two_hop_limit() {
    let group = Group::new().await;
    let (leader, follower) = pair(&group).await;
    follower.rest.create("c", &group.scripted(&[("records", "0")])).await;
    leader.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let config = group.scripted(&[("records", "0"), ("batch", "2")]);
    let answer = follower.rest.settled("PUT", "/connectors/c/config?forward=true", Some(&config)).await;
    assert_eq!(answer.status, 200, "one hop is left: {answer}");
    leader.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let answer = follower.rest.send("PUT", "/connectors/c/config?forward=false", Some(&config)).await;
    assert_eq!(answer.status, 409, "{answer}");
    let answer = follower.rest.settled("DELETE", "/connectors/none", None).await;
    assert_eq!((answer.status, answer.message()), (404, "Connector none not found"), "the leader's own words");
    group.close([follower, leader]).await;
}

/// G92
#[tokio::test]
async fn signature_matrix() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("records", "0")])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let key = session_key(&group).await;
    let send = async |algorithm: &str, mac: &str, body: &str| {
        let headers = [(ALGORITHM_HEADER, algorithm), (SIGNATURE_HEADER, mac)];
        let headers: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        node.rest.send_with("PUT", "/connectors/c/fence", Some(body.to_owned()), &headers).await.status
    };
    let good = sign(&key, "HmacSHA256", b"").unwrap();
    assert_eq!(send("", "", "").await, 400, "missing");
    assert_eq!(send("HmacSHA256", "", "").await, 400, "half of it is missing");
    assert_eq!(send("HmacSHA512", &sign(&key, "HmacSHA512", b"").unwrap(), "").await, 400, "not allowed here");
    assert_eq!(send("Rot13", &good, "").await, 400, "unknown");
    assert_eq!(send("HmacSHA256", "ä", "").await, 400, "no base64");
    assert_eq!(send("HmacSHA256", &sign(b"other", "HmacSHA256", b"").unwrap(), "").await, 403, "another key");
    assert_eq!(send("HmacSHA256", &good, "x").await, 403, "another body");
    assert_eq!(send("HmacSHA256", &good, "").await, 204, "an empty body is signed, too");
    group.close([node]).await;
}

async fn session_key(group: &Group) -> Vec<u8> {
    let value = group.newest(CONFIGS).await["session-key"].clone().expect("a key");
    let value: Value = serde_json::from_str(&value).unwrap();
    decode(value["key"].as_str().unwrap())
}

/// Base64, for a key that is known to be some.
fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in text.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|known| *known == digit).expect("base64");
        bits = (bits << 6 | u32::try_from(digit).unwrap()) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes
}

/// G93: after its time, and by a new leader only when it is due.
#[tokio::test]
async fn key_rotation() {
    let group = Group::new().await;
    let first = group.join().await;
    let old = session_key(&group).await;
    assert_eq!(old.len(), 32);
    let second = group.join_with(&[("inter.worker.key.ttl.ms", "300")]).await;
    first.stop().await;
    eventually("the new leader's shorter life of keys counts", async || {
        if session_key(&group).await == old { Err("the old key".to_owned()) } else { Ok(()) }
    })
    .await;
    second.rest.create("c", &group.scripted(&[])).await;
    second.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.close([second]).await;
}

/// G94
#[tokio::test]
async fn restart_matrix() {
    let group = Group::new().await;
    let (leader, follower) = pair(&group).await;
    let restart = async |query: &str| leader.rest.settled("POST", &format!("/connectors/c/restart{query}"), None).await;
    assert_eq!(restart("").await.status, 404);
    assert_eq!(restart("?includeTasks=true").await.status, 404);
    leader.rest.create("c", &group.scripted(&[("tasks", "2"), ("records", "0")])).await;
    leader.rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    let starts =
        || [group.stage.count("connector start"), group.stage.count("task 0 start"), group.stage.count("task 1")];
    assert_eq!(restart("").await.status, 204);
    assert_eq!(starts()[..2], [2, 1]);
    let answer = restart("?onlyFailed=true&includeTasks=true").await;
    assert_eq!((answer.status, &answer.body["connector"]["state"]), (202, &json!("RUNNING")), "nothing has failed");
    let answer = restart("?includeTasks=true").await;
    assert_eq!((answer.status, &answer.body["connector"]["state"]), (202, &json!("RESTARTING")));
    assert!(tasks_of(&answer.body).iter().all(|task| task["state"] == "RESTARTING"), "{answer}");
    eventually("all start anew, wherever they are", async || {
        if starts()[..2] == [3, 2] { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    leader.rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    group.stage.set("on.poll", "fail");
    leader.rest.until_states("c", "RUNNING", &["FAILED"; 2]).await;
    group.stage.set("on.poll", "");
    // Alone, onlyFailed is about the connector, which runs: nothing is done, least of all to the tasks.
    let answer = restart("?onlyFailed=true").await;
    assert_eq!((answer.status, &answer.body["connector"]["state"]), (202, &json!("RUNNING")), "{answer}");
    assert!(tasks_of(&answer.body).iter().all(|task| task["state"] == "FAILED"), "{answer}");
    assert_eq!(starts()[..2], [3, 2]);
    let answer = restart("?onlyFailed=true&includeTasks=true").await;
    assert_eq!(answer.body["connector"]["state"], "RUNNING");
    follower.rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    assert_eq!(starts()[..2], [3, 3]);
    // A connector that failed is restarted by it, alone.
    group.stage.set("on.start", "fail");
    assert_eq!(restart("").await.status, 500, "it does not start");
    leader.rest.until_states("c", "FAILED", &["RUNNING"; 2]).await;
    group.stage.set("on.start", "");
    let before = starts();
    let answer = restart("?onlyFailed=true").await;
    assert_eq!((answer.status, &answer.body["connector"]["state"]), (202, &json!("RESTARTING")), "{answer}");
    assert!(tasks_of(&answer.body).iter().all(|task| task["state"] == "RUNNING"), "{answer}");
    follower.rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    assert_eq!(starts(), [before[0] + 1, before[1], before[2]]);
    let unknown = leader.rest.settled("POST", "/connectors/c/tasks/7/restart", None).await;
    assert_eq!(unknown.status, 404, "{unknown}");
    group.close([follower, leader]).await;
}

/// G95: one that begins paused has not made tasks yet.
#[tokio::test]
async fn initial_state() {
    let group = Group::new().await;
    let node = group.join().await;
    for (state, tasks) in [("RUNNING", &["RUNNING"][..]), ("PAUSED", &[]), ("STOPPED", &[])] {
        let body = json!({"name": state, "config": group.scripted(&[("records", "0")]), "initial_state": state});
        node.rest.must(201, "POST", "/connectors", Some(&body)).await;
        node.rest.until_states(state, state, tasks).await;
    }
    for state in [json!("SLEEPING"), json!(""), json!(1), json!({})] {
        let body = json!({"name": "x", "config": group.scripted(&[]), "initial_state": state});
        let answer = node.rest.settled("POST", "/connectors", Some(&body)).await;
        assert_eq!((answer.status, &answer.body["error_code"]), (500, &json!(500)), "{state}, as in Java: {answer}");
    }
    assert_eq!(node.rest.get("/connectors/x").await.status, 404);
    group.close([node]).await;
}

/// G96
#[tokio::test]
async fn stop_resume_delete_from_each_state() {
    let group = Group::new().await;
    let node = group.join().await;
    let put = async |state: &'static str, tasks: usize| {
        let (verb, code) = match state {
            "PAUSED" => ("pause", 202),
            "STOPPED" => ("stop", 204),
            _ => ("resume", 202),
        };
        node.rest.must(code, "PUT", &format!("/connectors/c/{verb}"), None).await;
        node.rest.until_states("c", state, &vec![state; tasks]).await;
    };
    let config = group.scripted(&[("tasks", "2"), ("records", "0")]);
    node.rest.create("c", &config).await;
    // A pause after a stop: nothing has made tasks yet.
    put("STOPPED", 0).await;
    put("STOPPED", 0).await;
    put("PAUSED", 0).await;
    put("STOPPED", 0).await;
    for state in ["RUNNING", "PAUSED", "PAUSED", "RUNNING", "RUNNING"] {
        put(state, 2).await;
    }
    for (state, tasks) in [("RUNNING", 2), ("PAUSED", 2), ("STOPPED", 0)] {
        put(state, tasks).await;
        node.rest.must(204, "DELETE", "/connectors/c", None).await;
        eventually("everything is gone", async || {
            let answer = node.rest.get("/connectors/c/status").await;
            if answer.status == 404 { Ok(()) } else { Err(answer.to_string()) }
        })
        .await;
        node.rest.create("c", &config).await;
        node.rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    }
    assert_eq!(node.rest.settled("PUT", "/connectors/none/stop", None).await.status, 404);
    group.close([node]).await;
}

/// G97
#[tokio::test]
async fn offset_api_errors() {
    let group = Group::new().await;
    let (leader, follower) = pair(&group).await;
    let offsets = json!({"offsets": [{"partition": {"task": "0"}, "offset": {"n": 2}}]});
    let patch = async |name: &str, body: &Value| {
        follower.rest.settled("PATCH", &format!("/connectors/{name}/offsets"), Some(body)).await
    };
    assert_eq!(patch("none", &offsets).await.status, 404);
    assert_eq!(leader.rest.get("/connectors/none/offsets").await.status, 404);
    leader.rest.create("c", &group.scripted(&[("records", "3")])).await;
    group.until_number(1, 3).await;
    let answer = patch("c", &offsets).await;
    assert!(answer.status == 400 && answer.message().contains("STOPPED"), "{answer}");
    leader.rest.must(202, "PUT", "/connectors/c/pause", None).await;
    assert_eq!(patch("c", &offsets).await.status, 400, "paused is not stopped");
    leader.rest.must(204, "PUT", "/connectors/c/stop", None).await;
    // Java's codes, but for the partition that is null: there it is 500 from the connector, if it looks.
    for (code, body) in [
        (400, json!({})),
        (400, json!({"offsets": []})),
        (400, json!({"offsets": null})),
        (500, json!([])),
        (500, json!({"offsets": {}})),
        (500, json!({"offsets": [null]})),
        (500, json!({"offsets": [], "more": 1})),
        (500, json!({"offsets": [{"partition": "x", "offset": {"n": 1}}]})),
        (500, json!({"offsets": [{"partition": {"task": "0"}, "offset": "1"}]})),
        (400, json!({"offsets": [{"partition": null, "offset": {"n": 1}}]})),
        (400, json!({"offsets": [{"partition": {"task": {"deep": 1}}, "offset": {"n": 1}}]})),
        (400, json!({"offsets": [{"partition": {"task": "0"}, "offset": {"n": [1]}}]})),
    ] {
        let answer = patch("c", &body).await;
        assert_eq!(answer.status, code, "{body}: {answer}");
    }
    group.stage.set("on.alter", "refuse");
    let answer = patch("c", &offsets).await;
    assert!(answer.status == 500 && answer.message().contains("1 offsets refused"), "{answer}");
    let listed = follower.rest.get("/connectors/c/offsets").await.body;
    assert_eq!(listed, json!({"offsets": [{"partition": {"task": "0"}, "offset": {"n": 3}}]}), "nothing was changed");
    group.close([follower, leader]).await;
}

/// G98
#[tokio::test]
async fn patch_config() {
    let group = Group::new().await;
    let (leader, follower) = pair(&group).await;
    let patch = async |name: &str, body: Value| {
        follower.rest.settled("PATCH", &format!("/connectors/{name}/config"), Some(&body)).await
    };
    assert_eq!(patch("none", json!({"a": "b"})).await.status, 404);
    leader.rest.create("c", &group.scripted(&[("records", "0"), ("extra", "1")])).await;
    let answer = patch("c", json!({"extra": null, "other": "2", "batch": "4"})).await;
    assert_eq!(answer.status, 200, "{answer}");
    let config = leader.rest.get("/connectors/c/config").await.body;
    assert_eq!((&config["extra"], &config["other"], &config["batch"]), (&Value::Null, &json!("2"), &json!("4")));
    assert_eq!(config["script.id"], group.stage.id(), "the rest stays");
    let answer = patch("c", json!({"tasks.max": "0"})).await;
    assert_eq!(answer.status, 400, "{answer}");
    assert_eq!(leader.rest.get("/connectors/c/config").await.body, config);
    group.close([follower, leader]).await;
}

/// G99: an answer for probes while the herder is held up by a task that does not stop. Takes the 10 s that a health check may.
#[tokio::test]
async fn health() {
    let group = Group::with(&[("task.shutdown.graceful.timeout.ms", "13000"), ("rebalance.timeout.ms", "60000")]).await;
    let node = group.join().await;
    let answer = node.rest.get("/health").await;
    assert_eq!((answer.status, &answer.body["status"]), (200, &json!("healthy")));
    node.rest.create("c", &group.scripted(&[("on.poll", "hang")])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    eventually(
        "the task hangs",
        async || if group.stage.count("task 0 hangs") > 0 { Ok(()) } else { Err(String::new()) },
    )
    .await;
    let rest = node.rest.clone();
    let restart = tokio::spawn(async move { rest.send("POST", "/connectors/c/tasks/0/restart", None).await });
    eventually("the herder is held up", async || {
        let answer = node.rest.get("/health").await;
        if answer.status == 500 { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    let answer = restart.await.unwrap();
    assert_eq!(answer.status, 204, "{answer}");
    assert_eq!(node.rest.get("/health").await.status, 200);
    node.kill();
}

/// G101
#[tokio::test]
async fn loggers_worker_and_cluster() {
    let group = Group::new().await;
    let (leader, follower) = pair(&group).await;
    let path = "/admin/loggers/oncewire_worker";
    let answer = follower.rest.send("PUT", path, Some(&json!({"level": "debug"}))).await;
    assert_eq!((answer.status, &answer.body), (200, &json!(["oncewire_worker"])));
    assert_eq!(follower.rest.get(path).await.body["level"], "DEBUG");
    assert_ne!(leader.rest.get(path).await.body["level"], "DEBUG");
    let answer = follower.rest.send("PUT", &format!("{path}?scope=cluster"), Some(&json!({"level": "WARN"}))).await;
    assert_eq!(answer.status, 204, "{answer}");
    for node in [&leader, &follower] {
        eventually("the level is set everywhere", async || {
            let answer = node.rest.get(path).await;
            if answer.body["level"] == "WARN" { Ok(()) } else { Err(answer.to_string()) }
        })
        .await;
    }
    assert_eq!(leader.rest.send("PUT", path, Some(&json!({"level": "LOUD"}))).await.status, 404);
    group.close([follower, leader]).await;
}

/// G102
#[tokio::test]
async fn create_body_errors() {
    let group = Group::new().await;
    let (leader, follower) = pair(&group).await;
    let config = group.scripted(&[("records", "0")]);
    let post = async |body: Value| follower.rest.settled("POST", "/connectors", Some(&body)).await;
    assert_eq!(post(json!({"name": "c", "config": config, "colour": "red"})).await.status, 500, "unknown member");
    assert_eq!(post(json!({"name": "c", "config": {"topic": "t"}})).await.status, 400, "no class");
    let mut named = config.clone();
    named["name"] = json!("d");
    assert_eq!(post(json!({"name": "c", "config": named})).await.status, 400, "two names");
    assert_eq!(post(json!({"name": "c", "config": config})).await.status, 201);
    leader.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let answer = post(json!({"name": "c", "config": config})).await;
    assert_eq!((answer.status, answer.message()), (409, "Connector c already exists"));
    group.close([follower, leader]).await;
}

/// Reads are answered at once, from the last that is known, while a round waits for a member that is gone; a write waits with it.
#[tokio::test]
async fn reads_do_not_wait_for_a_rebalance_that_is_held_up() {
    let group = Group::with(&[("session.timeout.ms", "8000"), ("rebalance.timeout.ms", "60000")]).await;
    let (leader, gone) = pair(&group).await;
    let config = group.scripted(&[("tasks", "4"), ("records", "0")]);
    leader.rest.create("c", &config).await;
    let both = |status: &Value| {
        let on = |node: &Node| tasks_of(status).iter().filter(|task| task["worker_id"] == node.id()).count();
        tasks_of(status).iter().all(|task| task["state"] == "RUNNING") && on(&leader) == 2 && on(&gone) == 2
    };
    let known = leader.rest.until_status("c", "tasks on both", both).await;
    // The coordinator waits for the killed worker's session; the newcomer begins a round that waits for it too.
    let joins = || group.broker.requests(ApiKey::JoinGroup);
    let before = joins();
    gone.kill();
    let newcomer = group.start(&[]).await.expect("it starts");
    eventually("the newcomer, who is told its id first, and the leader have joined", async || {
        if joins() >= before + 3 { Ok(()) } else { Err(joins().to_string()) }
    })
    .await;
    let write = {
        let (rest, config) = (leader.rest.clone(), group.scripted(&[("tasks", "4"), ("records", "0"), ("batch", "2")]));
        tokio::spawn(async move { rest.send("PUT", "/connectors/c/config", Some(&config)).await })
    };
    let reads = [
        ("/", 200),
        ("/connectors", 200),
        ("/connectors?expand=status&expand=info", 200),
        ("/connectors/c", 200),
        ("/connectors/c/config", 200),
        ("/connectors/c/status", 200),
        ("/connectors/c/tasks", 200),
        ("/connectors/c/tasks/0/status", 200),
        ("/connectors/c/topics", 200),
        ("/connectors/c/offsets", 200),
        ("/connectors/none", 404),
        ("/connector-plugins", 200),
        ("/admin/loggers", 200),
    ];
    for (path, code) in reads {
        let answer = tokio::time::timeout(READ_MAX, leader.rest.get(path)).await;
        let answer = answer.unwrap_or_else(|_| panic!("GET {path} waits for the rebalance"));
        assert_eq!(answer.status, code, "{path}: {answer}");
    }
    assert_eq!(leader.rest.status("c").await, known, "the last that was known");
    assert_eq!(leader.rest.get("/connectors/c/config").await.body["batch"], Value::Null);
    assert_ne!(newcomer.rest.get("/health").await.status, 200, "the round is still held up");
    assert!(!write.is_finished(), "a write waits");
    let answer = write.await.unwrap();
    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!(leader.rest.get("/connectors/c/config").await.body["batch"], "2");
    leader.rest.until_states("c", "RUNNING", &["RUNNING"; 4]).await;
    group.close([newcomer, leader]).await;
}
