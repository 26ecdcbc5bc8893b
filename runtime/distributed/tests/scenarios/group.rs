//! How a group forms, divides its work, and gets over losses.

use crate::support::{Group, Node, eventually, tasks_of};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_dev_broker::Fault;
use oncewire_membership::decode_metadata;
use serde_json::{Value, json};

/// How many tasks of a status run on a worker; `None` while not all run.
fn running_on(status: &Value, node: &Node) -> Option<usize> {
    let tasks = tasks_of(status);
    let all = tasks.iter().all(|task| task["state"] == "RUNNING");
    all.then(|| tasks.iter().filter(|task| task["worker_id"] == node.id()).count())
}

/// A5: one member that knows only `compatible` takes the signatures out of the whole group, and brings them back by leaving.
#[tokio::test]
async fn downgrade_by_one_member() {
    let group = Group::new().await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[])).await;
    let fence = async |node: &Node| node.rest.settled("PUT", "/connectors/c/fence", None).await.status;
    assert_eq!(fence(&first).await, 400, "a signature is missing");
    let old = group.join_with(&[("connect.protocol", "compatible")]).await;
    eventually("no signature is needed", async || {
        let status = fence(&first).await;
        if status == 204 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    old.stop().await;
    eventually("signatures are needed again", async || {
        let status = fence(&first).await;
        if status == 400 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    group.close([first]).await;
}

/// A6: everything stops before each rebalance and is dealt out anew, connectors first; nothing is lost or doubled by it.
#[tokio::test]
async fn eager_round_robin() {
    let group = Group::with(&[("connect.protocol", "eager")]).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "3")])).await;
    first.rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    let second = group.join().await;
    let dealt = |status: &Value| running_on(status, &first).is_some_and(|here| here > 0 && here < 3);
    first.rest.until_status("c", "both work", dealt).await;
    eventually("all have stopped and started", async || {
        let twice = |task: usize| group.stage.count(&format!("task {task} start")) == 2;
        if (0..3).all(twice) { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    group.until_delivered(3, 3).await;
    second.rest.must(204, "PUT", "/connectors/c/stop", None).await;
    first.rest.until_states("c", "STOPPED", &[]).await;
    second.rest.must(202, "PUT", "/connectors/c/resume", None).await;
    first.rest.until_status("c", "both work", dealt).await;
    second.stop().await;
    first.rest.until_status("c", "all are here", |status| running_on(status, &first) == Some(3)).await;
    first.rest.must(204, "DELETE", "/connectors/c", None).await;
    eventually("everything is gone", async || {
        let (topics, status) =
            (first.rest.get("/connectors/c/topics").await, first.rest.get("/connectors/c/status").await);
        if status.status == 404 && topics.body["c"]["topics"] == serde_json::json!([]) {
            Ok(())
        } else {
            Err(format!("{topics} {status}"))
        }
    })
    .await;
    group.close([first]).await;
}

/// A9: the leader's transactions leave markers in the config topic, which no member counts: all find the assignment's offset to be
/// theirs, and work.
#[tokio::test]
async fn config_offset_ignores_txn_markers() {
    let group = Group::new().await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "2")])).await;
    first.rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    // This one reads the transactions' markers too, as data and markers are one log for it.
    let second = group.join_with(&[("isolation.level", "read_uncommitted")]).await;
    first.rest.until_status("c", "both work", |status| running_on(status, &second) == Some(1)).await;
    group.close([first, second]).await;
}

/// A10
#[tokio::test]
async fn two_phase_revocation() {
    let group = Group::new().await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "4")])).await;
    first.rest.until_states("c", "RUNNING", &["RUNNING"; 4]).await;
    let second = group.join().await;
    first.rest.until_status("c", "two tasks move", |status| running_on(status, &second) == Some(2)).await;
    group.until_delivered(4, 3).await;
    let starts = (0..4).map(|task| group.stage.count(&format!("task {task} start"))).sum::<usize>();
    assert_eq!(starts, 4 + 2, "each started once, two moved: {:?}", group.stage.events());
    group.close([first, second]).await;
}

/// A11, with a leader that deals as Java's.
#[tokio::test]
async fn worker_bounce_within_delay() {
    bounce(&[("scheduled.rebalance.max.delay.ms", "2500"), ("scheduled.rebalance.early.enable", "false")]).await;
}

/// Beyond A11: nobody sits the delay out for a worker that is back.
#[tokio::test]
async fn a_worker_that_is_back_gets_its_work_at_once() {
    bounce(&[("scheduled.rebalance.max.delay.ms", "600000")]).await;
}

/// What a worker had is kept for it, and the others' tasks are not touched.
async fn bounce(properties: &[(&str, &str)]) {
    let group = Group::with(properties).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "4")])).await;
    first.rest.until_status("c", "all are here", |status| running_on(status, &first) == Some(4)).await;
    let second = group.join().await;
    first.rest.until_status("c", "two tasks move", |status| running_on(status, &second) == Some(2)).await;
    let starts = |task: u64| group.stage.count(&format!("task {task} start"));
    let held = first.rest.status("c").await;
    let held = |task: u64| tasks_of(&held).iter().any(|state| state["id"] == task && state["worker_id"] == first.id());
    let kept: Vec<(u64, usize)> = (0..4).filter(|task| held(*task)).map(|task| (task, starts(task))).collect();
    assert_eq!(kept.len(), 2);
    second.stop().await;
    let again = group.join().await;
    first.rest.until_status("c", "the lost tasks are back", |status| running_on(status, &again) == Some(2)).await;
    for (task, before) in kept {
        assert_eq!(starts(task), before, "task {task} went on all the while");
    }
    group.close([first, again]).await;
}

/// A12
#[tokio::test]
async fn worker_leaves_for_good() {
    let group = Group::with(&[("scheduled.rebalance.max.delay.ms", "500")]).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "2")])).await;
    let second = group.join().await;
    first.rest.until_status("c", "a task moves", |status| running_on(status, &second) == Some(1)).await;
    second.stop().await;
    first.rest.until_status("c", "all are here", |status| running_on(status, &first) == Some(2)).await;
    group.until_delivered(2, 3).await;
    group.close([first]).await;
}

/// Beyond A11: the leader's work waits for it too, although its successor was never told who had what.
#[tokio::test]
async fn a_rolling_restart_starts_each_task_once_more() {
    const TASKS: usize = 6;
    let group = Group::with(&[("scheduled.rebalance.max.delay.ms", "600000")]).await;
    let mut nodes = vec![group.join().await, group.join().await, group.join().await];
    nodes[0].rest.create("c", &group.scripted(&[("tasks", &TASKS.to_string())])).await;
    let starts = || (0..TASKS).map(|task| group.stage.count(&format!("task {task} start"))).collect::<Vec<_>>();
    let shared = |status: &Value, nodes: &[Node]| nodes.iter().all(|node| running_on(status, node) == Some(2));
    nodes[0].rest.until_status("c", "all work", |status| shared(status, &nodes)).await;
    assert_eq!(starts(), [1; TASKS]);
    // The oldest leads, and goes last.
    for place in [2, 1, 0] {
        let node = nodes.remove(place);
        let listener = format!("http://{}", node.id());
        node.stop().await;
        nodes.insert(place, group.join_with(&[("listeners", &listener)]).await);
        nodes[0].rest.until_status("c", "all work", |status| shared(status, &nodes)).await;
    }
    group.until_delivered(u32::try_from(TASKS).unwrap(), 3).await;
    assert_eq!(starts(), [2; TASKS], "{:?}", group.stage.events());
    group.close(nodes).await;
}

/// Beyond A12: so does a leader that comes back elsewhere; one that does not is not waited for beyond the delay.
#[tokio::test]
async fn a_leader_that_stays_away_is_not_waited_for_beyond_the_delay() {
    let group = Group::with(&[("scheduled.rebalance.max.delay.ms", "1000")]).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "2")])).await;
    let second = group.join().await;
    first.rest.until_status("c", "a task moves", |status| running_on(status, &second) == Some(1)).await;
    first.stop().await;
    let elsewhere = group.join().await;
    let shared = |status: &Value| running_on(status, &second) == Some(1) && running_on(status, &elsewhere) == Some(1);
    second.rest.until_status("c", "the newcomer has what was left", shared).await;
    second.stop().await;
    elsewhere.rest.until_status("c", "all are here", |status| running_on(status, &elsewhere) == Some(2)).await;
    group.close([elsewhere]).await;
}

/// Nobody waits for a leader that has handed its work over.
#[tokio::test]
async fn a_drained_leader_is_not_waited_for() {
    let group = Group::with(&[("scheduled.rebalance.max.delay.ms", "600000")]).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "4")])).await;
    let second = group.join().await;
    first.rest.until_status("c", "two tasks move", |status| running_on(status, &second) == Some(2)).await;
    eventually("it is drained", async || {
        let answer = first.rest.send("POST", "/worker/drain", None).await;
        if answer.body["state"] == "DRAINED" { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    first.stop().await;
    second.rest.until_status("c", "all are there", |status| running_on(status, &second) == Some(4)).await;
    let config = group.scripted(&[("records", "0")]);
    eventually("the other leads", async || {
        let answer = second.rest.send("PUT", "/connectors/d/config", Some(&config)).await;
        if matches!(answer.status, 200 | 201) { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    second.rest.until_states("d", "RUNNING", &["RUNNING"]).await;
    group.until_delivered(4, 3).await;
    group.close([second]).await;
}

/// The round that is under way when a drain is asked for knows nothing of it: what it gives back is handed over in the next one.
#[tokio::test]
async fn a_drain_that_is_asked_for_during_a_round_takes_the_next_one() {
    let group = Group::with(&[("session.timeout.ms", "8000"), ("scheduled.rebalance.max.delay.ms", "600000")]).await;
    let mut nodes = vec![group.join().await, group.join().await, group.join().await];
    nodes[0].rest.create("c", &group.scripted(&[("tasks", "1")])).await;
    let status = nodes[0].rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    let has_task = |node: &Node| running_on(&status, node) == Some(1);
    let goes = nodes.iter().position(has_task).unwrap();
    let idle = |node: &Node| !has_task(node) && status["connector"]["worker_id"] != node.id();
    let killed = nodes.iter().position(idle).unwrap();
    let joins = || group.broker.requests(ApiKey::JoinGroup);
    let before = joins();
    let mut rest: Vec<Option<Node>> = nodes.drain(..).map(Some).collect();
    let (goes, killed) = (rest[goes].take().unwrap(), rest[killed].take().unwrap());
    // Nothing of its own is missed, but the round that the newcomer begins waits for its session.
    killed.kill();
    let newcomer = group.start(&[]).await.expect("it starts");
    eventually("the newcomer, who is told its id first, and the others have joined", async || {
        if joins() >= before + 4 { Ok(()) } else { Err(joins().to_string()) }
    })
    .await;
    let answer = goes.rest.send("POST", "/worker/drain", None).await;
    assert_eq!((answer.status, &answer.body["state"]), (202, &json!("DRAINING")), "{answer}");
    eventually("it is drained", async || {
        let answer = goes.rest.send("POST", "/worker/drain", None).await;
        if answer.body["state"] == "DRAINED" { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    let elsewhere = |status: &Value| running_on(status, &goes) == Some(0) && tasks_of(status)[0]["state"] == "RUNNING";
    newcomer.rest.until_status("c", "the task runs elsewhere", elsewhere).await;
    group.until_delivered(1, 3).await;
    group.close(rest.into_iter().flatten().chain([goes, newcomer])).await;
}

/// A whole cluster that was stopped in good order starts at once: whoever comes first leads, and is nobody's heir.
#[tokio::test]
async fn after_a_cold_start_nobody_waits() {
    let group = Group::with(&[("scheduled.rebalance.max.delay.ms", "600000")]).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "2")])).await;
    let second = group.join().await;
    first.rest.until_status("c", "a task moves", |status| running_on(status, &second) == Some(1)).await;
    first.stop().await;
    second.stop().await;
    let third = group.join().await;
    third.rest.until_status("c", "all are here", |status| running_on(status, &third) == Some(2)).await;
    let fourth = group.join().await;
    third.rest.until_status("c", "a task moves", |status| running_on(status, &fourth) == Some(1)).await;
    group.until_delivered(2, 3).await;
    group.close([third, fourth]).await;
}

/// A13: a leader that was killed told nobody, and a new one knows nothing of what was lost; so nobody waits, whatever the delay.
#[tokio::test]
async fn leader_leaves() {
    let group = Group::with(&[("scheduled.rebalance.max.delay.ms", "600000"), ("session.timeout.ms", "1500")]).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "2")])).await;
    let second = group.join().await;
    first.rest.until_status("c", "a task moves", |status| running_on(status, &second) == Some(1)).await;
    first.kill();
    second.rest.until_status("c", "all are here", |status| running_on(status, &second) == Some(2)).await;
    second.rest.create("d", &group.scripted(&[("records", "0")])).await;
    group.until_delivered(2, 3).await;
    group.close([second]).await;
}

/// A19
#[tokio::test]
async fn coordinator_lost() {
    let group = Group::new().await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    // A second worker comes and goes, so that this one has joined with what it runs.
    group.join().await.stop().await;
    eventually("it tells what it runs", async || {
        let told = allocations(&group);
        if matches!(&told[..], [Some(running)] if *running > 0) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
    node.rest.until_status("c", "all is here", |status| running_on(status, &node) == Some(1)).await;
    let stops = || (group.stage.count("task 0 stop"), group.stage.count("connector stop"));
    let before = stops();
    let away = Fault::Answer(ResponseError::CoordinatorNotAvailable);
    for nth in 1..=2_000 {
        for api in [ApiKey::Heartbeat, ApiKey::FindCoordinator, ApiKey::JoinGroup] {
            group.broker.faults().inject(api, nth, away);
        }
    }
    eventually("the work stops", async || {
        let stopped = stops().0 > before.0 && stops().1 > before.1;
        if stopped { Ok(()) } else { Err(format!("{:?}", group.stage.events())) }
    })
    .await;
    group.broker.faults().clear();
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    assert_eq!(allocations(&group), [None], "it joined with nothing");
    group.until_delivered(1, 3).await;
    group.close([node]).await;
}

/// How much each member said it runs when it joined last; `None`: it said nothing.
fn allocations(group: &Group) -> Vec<Option<usize>> {
    let members = group.broker.member_metadata("g");
    let states = members.iter().map(|metadata| decode_metadata(metadata).expect("a member's own words"));
    states.map(|state| state.allocation.map(|allocation| allocation.assigned.len())).collect()
}

/// A20: a task that does not stop holds the herder up for longer than the group waits.
#[tokio::test]
async fn poll_timeout() {
    let group = Group::with(&[("task.shutdown.graceful.timeout.ms", "2500"), ("rebalance.timeout.ms", "700")]).await;
    let node = group.join().await;
    node.rest.create("c", &group.scripted(&[])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.stage.set("on.poll", "hang");
    eventually(
        "the task hangs",
        async || if group.stage.count("task 0 hangs") > 0 { Ok(()) } else { Err(String::new()) },
    )
    .await;
    let (left, joined) = (group.broker.requests(ApiKey::LeaveGroup), group.broker.requests(ApiKey::JoinGroup));
    group.stage.set("on.poll", "");
    node.rest.must(204, "POST", "/connectors/c/tasks/0/restart", None).await;
    eventually("the worker leaves and joins", async || {
        let now = (group.broker.requests(ApiKey::LeaveGroup), group.broker.requests(ApiKey::JoinGroup));
        if now.0 > left && now.1 > joined { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.until_delivered(1, 3).await;
    group.close([node]).await;
}

/// A21, among workers of ours: when the leader is killed the others agree on the next one, send on to it what only a leader can do,
/// and go on with the session key.
#[tokio::test]
async fn leader_killed() {
    let group = Group::with(&[("session.timeout.ms", "3000")]).await;
    let leader = group.join().await;
    let others = [group.join().await, group.join().await];
    leader.rest.create("c", &group.scripted(&[("tasks", "3")])).await;
    others[0].rest.until_states("c", "RUNNING", &["RUNNING"; 3]).await;
    let config = |batch: &str| group.scripted(&[("tasks", "3"), ("batch", batch)]);
    let leads = async |node: &Node| {
        let answer = node.rest.settled("PUT", "/connectors/c/stop?forward=false", None);
        tokio::time::timeout(std::time::Duration::from_secs(1), answer).await.is_ok_and(|answer| answer.status == 204)
    };
    leader.kill();
    let here = |status: &Value| others.iter().filter_map(|node| running_on(status, node)).sum::<usize>() == 3;
    others[0].rest.until_status("c", "the others have it all", here).await;
    for (at, node) in others.iter().enumerate() {
        node.rest.put("c", &config(&(at + 4).to_string())).await;
        let config = others[1 - at].rest.get("/connectors/c/config").await.body;
        assert_eq!(config["batch"], (at + 4).to_string(), "{at} sent it to the leader");
    }
    // Tasks of both start anew, so the follower's signed request to fence has reached the new leader.
    others[0].rest.until_status("c", "they run again", here).await;
    group.until_delivered(3, 3).await;
    let mut leading = 0;
    for node in &others {
        leading += usize::from(leads(node).await);
    }
    assert_eq!(leading, 1, "one of them leads, and the other does not believe it does");
    group.close(others).await;
}
