//! Exactly-once source connectors in a group (KIP-618): who fences whom, and when; what a stop, a kill or a pause leaves visible.

use crate::support::{CONFIGS, DATA, Group, Node, OFFSETS, eventually, tasks_of};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_client::admin::{Admin, TransactionState};
use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::TransactionalProducer;
use oncewire_client::reader::Isolation;
use oncewire_dev_broker::Fault;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// The task counts that the leader wrote, in order.
async fn recorded(group: &Group) -> Vec<i64> {
    let records = group.read(CONFIGS, Isolation::Committed).await.into_iter();
    let counts = records.filter(|(key, _)| key == "tasks-fencing-c").filter_map(|(_, value)| value);
    counts.map(|value| serde_json::from_str::<Value>(&value).unwrap()["task-count"].as_i64().unwrap()).collect()
}

/// The epoch of a task's transactional id.
pub async fn epoch(group: &Group, task: u32) -> i64 {
    let cluster = group.cluster().await;
    let found = Admin::new(cluster.clone()).describe_transaction(&format!("g-c-{task}")).await.unwrap();
    cluster.close().await;
    found.map_or(-1, |found| i64::from(found.epoch))
}

/// The next requests for a producer id suffer.
pub fn suffer(group: &Group, fault: Fault) {
    for nth in 1..=500 {
        group.broker.faults().inject(ApiKey::InitProducerId, nth, fault);
    }
}

/// Creates or changes the connector, and waits until all of its tasks have started with that.
pub async fn running(group: &Group, node: &Node, more: &[(&str, &str)], tasks: usize) {
    let count = tasks.to_string();
    let config = group.scripted(&[&[("tasks", count.as_str())], more].concat());
    let starts = || (0..tasks).map(|task| group.stage.count(&format!("task {task} start"))).collect::<Vec<_>>();
    let before = starts();
    node.rest.must(if has(node).await { 200 } else { 201 }, "PUT", "/connectors/c/config", Some(&config)).await;
    eventually("the tasks start", async || {
        let now = starts();
        if now.iter().zip(&before).all(|(now, before)| now > before) {
            return Ok(());
        }
        Err(format!("{now:?}, before {before:?}; {}", node.rest.status("c").await))
    })
    .await;
    node.rest.until_states("c", "RUNNING", &vec!["RUNNING"; tasks]).await;
}

async fn has(node: &Node) -> bool {
    node.rest.get("/connectors/c").await.status == 200
}

/// E51, E52 as a person meets them.
#[tokio::test]
async fn preflight_required_and_boundary_validation() {
    let group = Group::new().await;
    let on = group.join().await;
    let refused = async |node: &Node, more: &[(&str, &str)]| {
        let answer = node.rest.settled("PUT", "/connectors/c/config", Some(&group.scripted(more))).await;
        (answer.status, answer.message().to_owned())
    };
    for (property, part) in [("support", "exactly.once.support"), ("boundaries", "transaction.boundary")] {
        let asks = if property == "support" { (part, "required") } else { (part, "connector") };
        for says in ["no", "silent"] {
            let (status, message) = refused(&on, &[asks, (property, says)]).await;
            assert!(status == 400 && message.contains("1 error(s)"), "{property}={says}: {status} {message}");
        }
    }
    let (status, message) = refused(&on, &[("transaction.boundary", "never"), ("boundaries", "no")]).await;
    assert!(status == 400 && message.contains("1 error(s)"), "{status} {message}");
    let off = Group::with(&[("exactly.once.source.support", "disabled")]).await;
    let worker = off.join().await;
    let required = off.scripted(&[("exactly.once.support", "required")]);
    let answer = worker.rest.settled("PUT", "/connectors/c/config", Some(&required)).await;
    assert!(answer.status == 400 && answer.message().contains("1 error(s)"), "{answer}");
    off.close([worker]).await;
    group.close([on]).await;
}

/// E53 to E56: what is written and who is fenced over the life of a connector.
#[tokio::test]
async fn n_to_m() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[("records", "0")], 1).await;
    assert_eq!(recorded(&group).await, [1], "first-start-writes-count");
    let first = epoch(&group, 0).await;
    node.rest.must(204, "POST", "/connectors/c/tasks/0/restart", None).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    assert_eq!(recorded(&group).await, [1], "already-fenced: a restart writes nothing");
    running(&group, &node, &[("records", "0"), ("batch", "7")], 1).await;
    eventually("one-to-one-skip: written, and only the task's own start raises the epoch", async || {
        let (counts, now) = (recorded(&group).await, epoch(&group, 0).await);
        if counts == [1, 1] && now == first + 2 { Ok(()) } else { Err(format!("{counts:?}, epoch {first}, now {now}")) }
    })
    .await;
    running(&group, &node, &[("records", "0")], 3).await;
    let old = [epoch(&group, 0).await, epoch(&group, 1).await, epoch(&group, 2).await];
    running(&group, &node, &[("records", "0")], 5).await;
    assert_eq!(recorded(&group).await, [1, 1, 3, 5]);
    for (task, before) in (0..).zip(old) {
        assert_eq!(epoch(&group, task).await, before + 2, "task {task} was fenced once and then started");
    }
    running(&group, &node, &[("records", "0")], 1).await;
    assert_eq!(recorded(&group).await, [1, 1, 3, 5, 1]);
    for task in 3..5 {
        assert_eq!(epoch(&group, task).await, 1, "task {task} is no more, and fenced");
    }
    group.close([node]).await;
}

/// E57: all tasks of a new generation and two requests from elsewhere share one round.
#[tokio::test]
async fn concurrent_fence_shares_round() {
    let group = Group::with(&[("connect.protocol", "compatible")]).await;
    let node = group.join().await;
    running(&group, &node, &[("records", "0")], 2).await;
    let before = epoch(&group, 0).await;
    suffer(&group, Fault::DelayRequest(Duration::from_millis(400)));
    let config = group.scripted(&[("records", "0"), ("tasks", "4")]);
    node.rest.put("c", &config).await;
    eventually("the tasks are there", async || {
        let there = node.rest.get("/connectors/c/tasks").await;
        if there.body.as_array().map(Vec::len) == Some(4) { Ok(()) } else { Err(there.to_string()) }
    })
    .await;
    let fence = || node.rest.send("PUT", "/connectors/c/fence", None);
    let (one, two) = tokio::join!(fence(), fence());
    assert_eq!((one.status, two.status), (204, 204), "{one} {two}");
    node.rest.until_states("c", "RUNNING", &["RUNNING"; 4]).await;
    group.broker.faults().clear();
    assert_eq!(recorded(&group).await, [2, 4]);
    assert_eq!(epoch(&group, 0).await, before + 2, "fenced once, started once");
    group.close([node]).await;
}

/// E58: task configurations that come during a round make it void.
#[tokio::test]
async fn fence_superseded() {
    let group = Group::with(&[("connect.protocol", "compatible")]).await;
    let node = group.join().await;
    running(&group, &node, &[("records", "0")], 2).await;
    suffer(&group, Fault::DelayRequest(Duration::from_millis(1200)));
    node.rest.put("c", &group.scripted(&[("records", "0"), ("tasks", "3")])).await;
    eventually("the tasks are there", async || {
        let there = node.rest.get("/connectors/c/tasks").await;
        if there.body.as_array().map(Vec::len) == Some(3) { Ok(()) } else { Err(there.to_string()) }
    })
    .await;
    let rest = node.rest.clone();
    let waiting = tokio::spawn(async move { rest.send("PUT", "/connectors/c/fence", None).await });
    node.rest.put("c", &group.scripted(&[("records", "0"), ("tasks", "4")])).await;
    let answer = waiting.await.unwrap();
    assert!(answer.status == 409 && answer.message().contains("task configs"), "{answer}");
    group.broker.faults().clear();
    node.rest.until_states("c", "RUNNING", &["RUNNING"; 4]).await;
    assert_eq!(recorded(&group).await, [2, 4], "nothing says that three were let in");
    group.close([node]).await;
}

/// E59: a follower's task asks the leader by a signed request, and fails with what the leader says.
#[tokio::test]
async fn fence_forwarding() {
    let group = Group::new().await;
    let leader = group.join().await;
    let follower = group.join().await;
    running(&group, &leader, &[("records", "0")], 2).await;
    let status = leader.rest.status("c").await;
    let on_follower = |status: &Value| tasks_of(status).iter().any(|task| task["worker_id"] == follower.id());
    assert!(on_follower(&status), "{status}");
    suffer(&group, Fault::Answer(ResponseError::TransactionalIdAuthorizationFailed));
    leader.rest.put("c", &group.scripted(&[("records", "0"), ("tasks", "2"), ("batch", "9")])).await;
    let status = leader.rest.until_states("c", "RUNNING", &["FAILED"; 2]).await;
    assert!(on_follower(&status), "{status}");
    for task in tasks_of(&status) {
        let trace = task["trace"].as_str().unwrap();
        assert!(trace.contains("zombie fencing") && trace.contains("g-c-0"), "{trace}");
    }
    group.broker.faults().clear();
    group.close([follower, leader]).await;
}

/// E60: what may not be fenced fails all tasks, and a restart after the grant heals them.
#[tokio::test]
async fn fence_denied_acl() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[], 2).await;
    group.until_delivered(2, 3).await;
    suffer(&group, Fault::Answer(ResponseError::TransactionalIdAuthorizationFailed));
    node.rest.put("c", &group.scripted(&[("tasks", "3")])).await;
    let status = node.rest.until_states("c", "RUNNING", &["FAILED"; 3]).await;
    assert!(
        tasks_of(&status).iter().all(|task| task["trace"].as_str().unwrap().contains("zombie fencing")),
        "{status}"
    );
    group.broker.faults().clear();
    node.rest.must(202, "POST", "/connectors/c/restart?includeTasks=true&onlyFailed=true", None).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    group.until_delivered(3, 3).await;
    group.close([node]).await;
}

/// E61, generation-moved: a task that is taken away between its InitProducerId and its start does not start.
#[tokio::test]
async fn generation_moved_to_another_worker() {
    let group = Group::new().await;
    let one = group.join().await;
    running(&group, &one, &[("records", "0")], 2).await;
    let asked = || group.broker.requests(ApiKey::InitProducerId);
    suffer(&group, Fault::DelayAnswer(Duration::from_secs(25)));
    let before = asked();
    one.rest.must(202, "POST", "/connectors/c/restart?includeTasks=true", None).await;
    let starts = [group.stage.count("task 0 start"), group.stage.count("task 1 start")];
    eventually("both have asked for their ids", async || {
        let asked = asked() - before;
        if asked >= 2 { Ok(()) } else { Err(asked.to_string()) }
    })
    .await;
    group.broker.faults().clear();
    let two = group.join().await;
    let moved = |status: &Value| -> Vec<usize> {
        let runs = |task: &Value| task["worker_id"] == two.id() && task["state"] == "RUNNING";
        (0..2).filter(|task| runs(&tasks_of(status)[*task])).collect()
    };
    let status = one.rest.until_status("c", "a task of it moved", |status| !moved(status).is_empty()).await;
    for task in moved(&status) {
        let started = group.stage.count(&format!("task {task} start")) - starts[task];
        assert_eq!(started, 1, "task {task} starts where it is, and not where it was: {:?}", group.stage.events());
    }
    group.close([one, two]).await;
}

/// E71: a record that can't be sent fails its transaction at the commit, whatever is tolerated. With the sequence connector.
#[tokio::test]
async fn async_send_failure() {
    let group = Group::new().await;
    let node = group.join().await;
    let config = json!({
        "connector.class": "SequenceSource",
        "topic": DATA,
        "record.bytes": "5000",
        "errors.tolerance": "all",
        "producer.override.max.request.size": "2000",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    });
    node.rest.create("c", &config).await;
    let status = node.rest.until_states("c", "RUNNING", &["FAILED"]).await;
    assert!(status["tasks"][0]["trace"].as_str().unwrap().contains("2000"), "{status}");
    assert!(group.delivered().await.is_empty());
    group.close([node]).await;
}

/// E73: a transaction that the brokers timed out fails the task with what to change.
#[tokio::test]
async fn transaction_timeout_hint() {
    let group = Group::with(&[("task.restart.attempts.max", "0")]).await;
    let node = group.join().await;
    let own = [("transaction.boundary", "connector"), ("producer.override.transaction.timeout.ms", "400")];
    node.rest.create("c", &group.scripted(&own)).await;
    let status = node.rest.until_states("c", "RUNNING", &["FAILED"]).await;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    assert!(trace.contains("open for too long") && trace.contains("raise transaction.timeout.ms"), "{trace}");
    assert!(group.delivered().await.is_empty());
    group.close([node]).await;
}

/// E74
#[tokio::test]
async fn own_offsets_topic_refused() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[("topic", OFFSETS)])).await;
    let status = node.rest.until_states("c", "RUNNING", &["FAILED"]).await;
    assert!(status.to_string().contains("its own offsets topic"), "{status}");
    group.close([node]).await;
}

/// E75, separate-offsets-topic: what is written to another cluster has its offsets there, in the same transaction, and a copy of
/// them in the worker's topic.
#[tokio::test]
async fn separate_offsets_topic_on_another_cluster() {
    let (group, there) = (Group::new().await, Group::new().await);
    let node = group.join().await;
    let servers = there.broker.bootstrap();
    let keys = ["producer", "consumer", "admin"].map(|client| format!("{client}.override.bootstrap.servers"));
    let elsewhere: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), servers.as_str())).collect();
    running(&group, &node, &[&elsewhere[..], &[("records", "9")]].concat(), 2).await;
    there.until_number(2, 9).await;
    assert!(group.shown().await.is_empty(), "nothing is written where the worker is");
    let stored = async |group: &Group| group.newest(OFFSETS).await.into_iter().collect::<Vec<_>>();
    let expected: Vec<(String, Option<String>)> =
        (0..2).map(|task| (format!(r#"["c",{{"task":"{task}"}}]"#), Some(r#"{"n":9}"#.to_owned()))).collect();
    assert_eq!(stored(&there).await, expected);
    eventually("the copies", async || {
        let copies = stored(&group).await;
        if copies == expected { Ok(()) } else { Err(format!("{copies:?}")) }
    })
    .await;
    assert_eq!((epoch(&group, 0).await, epoch(&there, 0).await >= 0), (-1, true), "and it is fenced there");
    node.rest.must(204, "POST", "/connectors/c/tasks/0/restart", None).await;
    eventually("it goes on where it was", async || {
        if group.stage.count("task 0 start 9") == 1 { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    there.delivered().await;
    group.close([node]).await;
    there.close([]).await;
}

/// E76: somebody takes the leader's transactional id; the write that finds out fails, the next one works.
#[tokio::test]
async fn fenced_leader_recovery() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[("records", "0")], 1).await;
    let cluster = group.cluster().await;
    let zombie = TransactionalProducer::new(cluster.clone(), ProducerConfig::new("connect-cluster-g").unwrap());
    zombie.init().await.unwrap();
    let body = json!({"name": "d", "config": group.scripted(&[("records", "0")])});
    let answer = node.rest.send("POST", "/connectors", Some(&body)).await;
    assert!(answer.status == 500 && answer.message().contains("can be safely retried"), "{answer}");
    node.rest.must(201, "POST", "/connectors", Some(&body)).await;
    node.rest.until_states("d", "RUNNING", &["RUNNING"]).await;
    zombie.close(Duration::from_secs(1)).await.unwrap();
    cluster.close().await;
    group.close([node]).await;
}

/// E77
#[tokio::test]
async fn reconfigure_many_tasks() {
    let group = Group::new().await;
    let nodes = [group.join().await, group.join().await];
    for tasks in [3, 1, 5, 2] {
        running(&group, &nodes[tasks % 2], &[], tasks).await;
        group.until_delivered(u32::try_from(tasks).unwrap(), 3).await;
    }
    group.close(nodes).await;
}

/// E78, in one process: a worker is gone from one moment to the next, again and again.
#[tokio::test]
async fn hard_kill_bounce() {
    let group = Group::with(&[("session.timeout.ms", "1500")]).await;
    let mut nodes = vec![group.join().await, group.join().await];
    running(&group, &nodes[0], &[], 3).await;
    for _ in 0..2 {
        group.until_delivered(3, 3).await;
        nodes.remove(0).kill();
        nodes.push(group.join().await);
    }
    group.until_delivered(3, 3).await;
    group.close(nodes).await;
}

/// E79: a pause commits what the worker's own boundaries left open, and leaves the connector's transactions alone.
#[tokio::test]
async fn pause_commits() {
    let group = Group::new().await;
    let node = group.join().await;
    let interval = [("transaction.boundary", "interval"), ("transaction.boundary.interval.ms", "600000")];
    running(&group, &node, &[&[("records", "6")], &interval[..]].concat(), 1).await;
    until_open(&group, "g-c-0").await;
    node.rest.must(202, "PUT", "/connectors/c/pause", None).await;
    node.rest.until_states("c", "PAUSED", &["PAUSED"]).await;
    assert!(open(&group).await.is_empty());
    assert!(group.delivered().await[&0] >= 3);
    node.rest.must(204, "DELETE", "/connectors/c", None).await;
    let own = group.scripted(&[("topic", "own"), ("transaction.boundary", "connector"), ("records", "9999")]);
    node.rest.create("d", &own).await;
    until_open(&group, "g-d-0").await;
    node.rest.must(202, "PUT", "/connectors/d/pause", None).await;
    node.rest.until_states("d", "PAUSED", &["PAUSED"]).await;
    assert_eq!(open(&group).await, ["g-d-0"]);
    group.close([node]).await;
}

/// The transactional ids with an open transaction.
async fn open(group: &Group) -> Vec<String> {
    let cluster = group.cluster().await;
    let listed = Admin::new(cluster.clone()).list_transactions().await.unwrap().into_iter();
    cluster.close().await;
    listed.filter(|listed| listed.state == TransactionState::Ongoing).map(|listed| listed.transactional_id).collect()
}

pub async fn until_open(group: &Group, id: &str) {
    eventually("an open transaction", async || {
        let open = open(group).await;
        if open.iter().any(|open| open == id) { Ok(()) } else { Err(format!("{open:?}")) }
    })
    .await;
}

/// E80: readers are not kept waiting until the transaction times out, which takes a minute.
#[tokio::test]
async fn graceful_close_aborts() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[("transaction.boundary", "connector")], 1).await;
    until_open(&group, "g-c-0").await;
    let began = Instant::now();
    node.stop().await;
    eventually("the transaction is aborted", async || {
        let open = open(&group).await;
        if open.is_empty() { Ok(()) } else { Err(format!("{open:?}")) }
    })
    .await;
    assert!(group.delivered().await.is_empty());
    assert!(began.elapsed() < Duration::from_secs(20), "not by its time-out");
    group.close([]).await;
}

/// E81: a poll that does not come back is given up, and the successor goes on where the last commit was.
#[tokio::test]
async fn cancel() {
    let group = Group::with(&[("task.shutdown.graceful.timeout.ms", "300")]).await;
    let node = group.join().await;
    running(&group, &node, &[], 1).await;
    group.until_delivered(1, 3).await;
    group.stage.set("on.poll", "hang");
    eventually(
        "the task hangs",
        async || if group.stage.count("task 0 hangs") > 0 { Ok(()) } else { Err(String::new()) },
    )
    .await;
    group.stage.set("on.poll", "");
    node.rest.must(204, "POST", "/connectors/c/tasks/0/restart", None).await;
    group.until_delivered(1, 3).await;
    assert_eq!(group.stage.count("task 0 start"), 2);
    group.close([node]).await;
}

/// E82: two rolling restarts turn exactly-once on, two turn it off, under load. No record is lost at any time; none is doubled
/// while all workers have it enabled.
#[tokio::test]
async fn rolling_enable_disable() {
    let group = Group::with(&[("exactly.once.source.support", "disabled")]).await;
    let mode = |mode| [("exactly.once.source.support", mode)];
    let mut nodes = vec![group.join().await, group.join().await];
    running(&group, &nodes[0], &[], 2).await;
    for next in ["preparing", "enabled", "preparing", "disabled"] {
        for _ in 0..2 {
            nodes.push(group.join_with(&mode(next)).await);
            nodes.remove(0).stop().await;
        }
        let starts = group.shown().await.len();
        let mut shown = Vec::new();
        eventually("records", async || {
            shown = group.shown().await.split_off(starts);
            let enough = (0..2).all(|task| shown.iter().filter(|(of, _)| *of == task).count() > 5);
            if enough { Ok(()) } else { Err(format!("{shown:?}")) }
        })
        .await;
        let numbers = |of: u32| shown.iter().filter(move |(task, _)| *task == of).map(|(_, number)| *number);
        let in_order = (0..2).all(|task| numbers(task).zip(numbers(task).skip(1)).all(|(one, two)| two == one + 1));
        assert!(in_order || next != "enabled", "{shown:?}");
    }
    let shown: BTreeSet<(u32, u64)> = group.shown().await.into_iter().collect();
    for task in 0..2 {
        let highest = shown.iter().filter(|(of, _)| *of == task).map(|(_, number)| *number).max().unwrap_or(0);
        assert!((1..=highest).all(|number| shown.contains(&(task, number))), "a record of task {task} is lost");
    }
    group.close(nodes).await;
}

/// E83
#[tokio::test]
async fn alter_offsets_eos() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[("records", "6")], 2).await;
    group.until_number(2, 6).await;
    let offsets = json!({"offsets": [{"partition": {"task": "0"}, "offset": {"n": 2}}]});
    let answer = node.rest.settled("PATCH", "/connectors/c/offsets", Some(&offsets)).await;
    assert!(answer.status == 400 && answer.message().contains("STOPPED"), "{answer}");
    node.rest.must(204, "PUT", "/connectors/c/stop", None).await;
    node.rest.until_states("c", "STOPPED", &[]).await;
    let before = epoch(&group, 1).await;
    let answer = node.rest.settled("PATCH", "/connectors/c/offsets", Some(&offsets)).await;
    assert!(answer.status == 200, "{answer}");
    assert!(answer.message().starts_with("The Connect framework-managed offsets"), "{answer}");
    assert!(epoch(&group, 1).await > before, "the old tasks were fenced first");
    let listed = node.rest.get("/connectors/c/offsets").await.body["offsets"].as_array().unwrap().clone();
    assert!(listed.len() == 2 && listed.contains(&offsets["offsets"][0]), "{listed:?}");
    group.stage.set("on.alter", "yes");
    let answer = node.rest.settled("DELETE", "/connectors/c/offsets", None).await;
    assert_eq!(answer.message(), "The offsets for this connector have been reset successfully");
    assert_eq!(node.rest.get("/connectors/c/offsets").await.body, json!({"offsets": []}));
    group.close([node]).await;
}

/// E84: group `g` with connector `a-b` and group `g-a` with connector `b` have the same transactional ids. The second one is refused;
/// where the groups may not be listed the newer fences the older, which does not fence back but fails and says so.
#[tokio::test]
async fn txid_collision() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("a-b", &group.scripted(&[])).await;
    node.rest.until_states("a-b", "RUNNING", &["RUNNING"]).await;
    let other = [
        ("group.id", "g-a"),
        ("config.storage.topic", "other-configs"),
        ("offset.storage.topic", "other-offsets"),
        ("status.storage.topic", "other-status"),
    ];
    let other = group.join_with(&other).await;
    let config = group.scripted(&[("topic", "other")]);
    let refused = other.rest.settled("POST", "/connectors", Some(&json!({"name": "b", "config": config}))).await;
    let names_both = ["'a-b'", "'g'"].iter().all(|name| refused.message().contains(name));
    assert!(refused.status == 400 && names_both && refused.message().contains("in use"), "{refused}");
    for nth in 1..=500 {
        group.broker.faults().inject(ApiKey::ListGroups, nth, Fault::Answer(ResponseError::ClusterAuthorizationFailed));
    }
    other.rest.create("b", &config).await;
    other.rest.until_states("b", "RUNNING", &["RUNNING"]).await;
    let status = node.rest.until_states("a-b", "RUNNING", &["FAILED"]).await;
    assert!(tasks_of(&status)[0]["trace"].as_str().unwrap().starts_with("superseded"), "{status}");
    group.close([other, node]).await;
}
