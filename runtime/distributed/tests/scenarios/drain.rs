//! What may come between a drain and its end: other rounds, a group that waits, a lost membership, requests, a stop.

use crate::exactly_once::suffer;
use crate::support::{Group, Node, STATUSES, eventually, tasks_of};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_client::group::{GroupConfig, GroupEvent, GroupMember, Protocol};
use oncewire_client::reader::Isolation;
use oncewire_dev_broker::Fault;
use oncewire_membership::{
    Assignment, ConnectProtocol, Load, MemberState, TaskId, decode_metadata, encode_assignment, encode_metadata,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// As long as a test lasts, and longer: who is waited for is waited for in vain.
const FOR_EVER: (&str, &str) = ("scheduled.rebalance.max.delay.ms", "600000");

async fn drain(node: &Node) -> Value {
    let answer = node.rest.send("POST", "/worker/drain", None).await;
    let expected = if answer.body["state"] == "DRAINED" { 200 } else { 202 };
    assert_eq!(answer.status, expected, "{answer}");
    answer.body
}

async fn until_drained(node: &Node) {
    eventually("it is drained", async || {
        let told = drain(node).await;
        if told["state"] == "DRAINED" { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    assert_eq!(drain(node).await, json!({"state": "DRAINED", "connectors": 0, "tasks": 0}), "asked for again");
}

/// The numbers of the tasks that a worker runs.
fn run_by(status: &Value, node: &Node) -> Vec<u32> {
    let here = tasks_of(status).iter().filter(|task| task["state"] == "RUNNING" && task["worker_id"] == node.id());
    here.filter_map(|task| u32::try_from(task["id"].as_u64()?).ok()).collect()
}

async fn until_it_runs(node: &Node, tasks: usize) -> Vec<u32> {
    let status = node.rest.until_status("c", "runs there", |status| run_by(status, node).len() == tasks).await;
    run_by(&status, node)
}

/// What a leader tells the others.
#[derive(Clone, Default)]
struct Says {
    gives: Load,
    /// How long they are to wait.
    delay_ms: i32,
    /// How much further than they it has read the config topic.
    ahead: i64,
}

/// A member that leads as a Java worker does: it does not see that another is going. It runs nothing of what it does not give.
struct DeafLeader {
    /// What the other members said in each round.
    rounds: Arc<Mutex<Vec<Vec<MemberState>>>>,
    says: Arc<Mutex<Says>>,
    round: Arc<Notify>,
    _task: JoinSet<()>,
}

impl DeafLeader {
    async fn join(group: &Group) -> Self {
        let config = GroupConfig {
            group_id: "g".to_owned(),
            protocol_type: "connect".to_owned(),
            session_timeout: Duration::from_secs(30),
            rebalance_timeout: Duration::from_secs(30),
            heartbeat_interval: Duration::from_millis(100),
        };
        let mut member = GroupMember::new(group.cluster().await, config);
        let leader =
            Self { rounds: Arc::default(), says: Arc::default(), round: Arc::default(), _task: JoinSet::new() };
        let (rounds, says, round) = (leader.rounds.clone(), leader.says.clone(), leader.round.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                let event = tokio::select! {
                    () = round.notified() => {
                        member.rejoin("another round");
                        continue;
                    }
                    event = member.next() => event,
                };
                match event {
                    GroupEvent::Offer { .. } => {
                        let url = "http://leader/".to_owned();
                        let state = MemberState { url, offset: -1, allocation: None };
                        let metadata = encode_metadata(ConnectProtocol::Compatible, &state);
                        member.offer(vec![Protocol { name: "compatible".to_owned(), metadata }]);
                    }
                    GroupEvent::Lead { member_id, members, .. } => {
                        let others = members.iter().filter(|(id, _)| *id != member_id);
                        let others = others.map(|(id, said)| (id.clone(), decode_metadata(said).unwrap()));
                        let others: Vec<(String, MemberState)> = others.collect();
                        let says = says.lock().unwrap().clone();
                        let assignment = |assigned: Load| Assignment {
                            leader: member_id.clone(),
                            leader_url: "http://leader/".to_owned(),
                            offset: others.iter().map(|(_, state)| state.offset).max().unwrap_or(-1) + says.ahead,
                            assigned,
                            delay_ms: says.delay_ms,
                            ..Assignment::default()
                        };
                        let encode = |assigned| encode_assignment(ConnectProtocol::Compatible, &assignment(assigned));
                        let own = (member_id.clone(), encode(Load::default()));
                        let theirs = others.iter().map(|(id, _)| (id.clone(), encode(says.gives.clone())));
                        member.assign(theirs.chain([own]).collect());
                        rounds.lock().unwrap().push(others.into_iter().map(|(_, state)| state).collect());
                    }
                    _ => {}
                }
            }
        });
        let leader = Self { _task: task, ..leader };
        eventually("it leads", async || if leader.rounds().is_empty() { Err(String::new()) } else { Ok(()) }).await;
        leader
    }

    fn rounds(&self) -> Vec<Vec<MemberState>> {
        self.rounds.lock().unwrap().clone()
    }

    /// From the next round on.
    fn say(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    fn give(&self, tasks: &[i32]) {
        self.say(Says { gives: load(tasks), ..Says::default() });
    }

    /// How many rounds had a member that was going.
    fn rounds_of_going(&self) -> usize {
        self.rounds().iter().filter(|others| others.iter().any(MemberState::is_going)).count()
    }
}

/// The connector with these tasks.
fn load(tasks: &[i32]) -> Load {
    Load { connectors: ["c".to_owned()].into(), tasks: tasks.iter().map(|task| TaskId::new("c", *task)).collect() }
}

/// A worker that runs all in the group of a leader that does not see it go.
async fn led() -> (Group, DeafLeader, Node) {
    let group = Group::with(&[("exactly.once.source.support", "disabled"), ("connect.protocol", "compatible")]).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "2")])).await;
    until_it_runs(&first, 2).await;
    first.stop().await;
    let leader = DeafLeader::join(&group).await;
    leader.give(&[0, 1]);
    let node = group.join().await;
    until_it_runs(&node, 2).await;
    (group, leader, node)
}

async fn until_the_leader_has_heard(leader: &DeafLeader, going: usize) {
    eventually("the leader has heard of it", async || {
        if leader.rounds_of_going() >= going { Ok(()) } else { Err(format!("{:?}", leader.rounds())) }
    })
    .await;
}

/// The worker has handed task 1 over, which nobody starts, and got the rest back.
async fn handed_over() -> (Group, DeafLeader, Node) {
    let (group, leader, node) = led().await;
    leader.give(&[0]);
    assert_eq!(drain(&node).await["state"], "DRAINING");
    until_the_leader_has_heard(&leader, 1).await;
    (group, leader, node)
}

/// In a round that another begins a leader that does not know better would give it more, which would then wait for its return.
#[tokio::test]
async fn a_worker_that_has_handed_over_leaves_before_another_round_and_starts_nothing() {
    let (group, leader, node) = handed_over().await;
    let starts = || group.stage.count("task 0 start") + group.stage.count("connector start");
    let before = starts();
    for path in ["/connectors/c/tasks/0/restart", "/connectors/c/restart"] {
        let answer = node.rest.send("POST", path, None).await;
        assert_eq!(answer.status, 409, "{path}: {answer}");
    }
    leader.round.notify_one();
    until_drained(&node).await;
    eventually("the round is over", async || {
        if leader.rounds().last().is_some_and(Vec::is_empty) { Ok(()) } else { Err(format!("{:?}", leader.rounds())) }
    })
    .await;
    assert_eq!(leader.rounds_of_going(), 1, "{:?}", leader.rounds());
    assert_eq!(starts(), before, "{:?}", group.stage.events());
    drop(leader);
    group.close([node]).await;
}

/// The wait begins in the drain's own round, so that nothing of what was offered is dealt out.
#[tokio::test]
async fn what_nobody_took_is_claimed_again_and_given_when_the_wait_is_over() {
    let (group, leader, node) = led().await;
    leader.say(Says { delay_ms: 600_000, ..Says::default() });
    drain(&node).await;
    eventually("it claims what it had", async || {
        let rounds = leader.rounds();
        let last = rounds.last().and_then(|others| others.first());
        let claims = last.is_some_and(|state| !state.is_going() && state.load() == load(&[0, 1]));
        if claims { Ok(()) } else { Err(format!("{rounds:?}")) }
    })
    .await;
    assert_eq!(leader.rounds_of_going(), 1);
    eventually("all of it goes on", async || {
        let starts = ["connector start", "task 0 start", "task 1 start"].map(|event| group.stage.count(event));
        if starts == [3; 3] { Ok(()) } else { Err(format!("{starts:?}")) }
    })
    .await;
    let told = drain(&node).await;
    assert_eq!(told, json!({"state": "DRAINING", "connectors": 1, "tasks": 2}));
    leader.say(Says::default());
    leader.round.notify_one();
    until_the_leader_has_heard(&leader, 2).await;
    until_drained(&node).await;
    drop(leader);
    group.close([node]).await;
}

/// It starts nothing, so it need not wait until it has read as much as the leader, nor step back when that takes too long.
#[tokio::test]
async fn a_worker_that_goes_reads_no_configurations_for_it() {
    let (group, leader, node) = led().await;
    leader.say(Says { ahead: 1, ..Says::default() });
    drain(&node).await;
    until_the_leader_has_heard(&leader, 1).await;
    until_drained(&node).await;
    assert_eq!(leader.rounds_of_going(), 1, "{:?}", leader.rounds());
    drop(leader);
    group.close([node]).await;
}

#[tokio::test]
async fn a_worker_can_be_stopped_while_it_waits_for_the_others() {
    let (group, leader, node) = handed_over().await;
    node.stop().await;
    eventually("the leader is alone", async || {
        if leader.rounds().last().is_some_and(Vec::is_empty) { Ok(()) } else { Err(format!("{:?}", leader.rounds())) }
    })
    .await;
    drop(leader);
    group.close([]).await;
}

/// Three workers with two tasks each; the last has left, and is waited for. The first leads.
async fn waiting(delay: (&str, &str)) -> (Group, [Node; 2], Vec<u32>) {
    let group = Group::with(&[delay]).await;
    let nodes = [group.join().await, group.join().await];
    nodes[0].rest.create("c", &group.scripted(&[("tasks", "6")])).await;
    let gone = group.join().await;
    until_it_runs(&gone, 2).await;
    until_it_runs(&nodes[0], 2).await;
    let tasks = until_it_runs(&nodes[1], 2).await;
    gone.stop().await;
    (group, nodes, tasks)
}

/// The group would take what is handed over for lost too, and nobody would run it until the wait is over.
#[tokio::test]
async fn nothing_is_handed_over_while_the_group_waits_for_another() {
    const MORE: u64 = 300;
    let (group, [first, goes], tasks) = waiting(FOR_EVER).await;
    let start = group.delivered().await;
    let starts = || tasks.iter().map(|task| group.stage.count(&format!("task {task} start"))).sum::<usize>();
    let before = starts();
    assert_eq!(drain(&goes).await["state"], "DRAINING");
    eventually("its tasks go on", async || {
        let now = group.delivered().await;
        let of = |delivered: &BTreeMap<u32, u64>, task| delivered.get(task).copied().unwrap_or(0);
        let done = tasks.iter().all(|task| of(&now, task) >= of(&start, task) + MORE);
        if done { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    let told = drain(&goes).await;
    assert_eq!((&told["state"], &told["tasks"]), (&json!("DRAINING"), &json!(2)), "asked for again");
    assert_eq!(starts(), before, "without a break");
    group.close([first, goes]).await;
}

#[tokio::test]
async fn a_drain_begins_when_the_group_waits_no_more() {
    let (group, [first, goes], _) = waiting(("scheduled.rebalance.max.delay.ms", "1500")).await;
    drain(&goes).await;
    until_drained(&goes).await;
    until_it_runs(&first, 6).await;
    group.until_delivered(6, 3).await;
    group.close([first, goes]).await;
}

/// Two workers with two tasks each; the first leads.
async fn two(more: &[(&str, &str)]) -> (Group, Node, Node) {
    let group = Group::with(&[&[FOR_EVER], more].concat()).await;
    let first = group.join().await;
    first.rest.create("c", &group.scripted(&[("tasks", "4")])).await;
    let second = group.join().await;
    until_it_runs(&second, 2).await;
    until_it_runs(&first, 2).await;
    (group, first, second)
}

/// Whoever joins as a stranger, and says that it runs nothing, has left for the group, with all that it had.
#[tokio::test]
async fn a_worker_whose_membership_is_lost_while_it_drains_hands_over_in_the_next_one() {
    let (group, first, second) = two(&[("session.timeout.ms", "3000")]).await;
    let unknown = Fault::Answer(ResponseError::UnknownMemberId);
    group.broker.faults().inject(ApiKey::JoinGroup, 1, unknown);
    assert_eq!(drain(&second).await["state"], "DRAINING");
    until_drained(&second).await;
    until_it_runs(&first, 4).await;
    group.until_delivered(4, 3).await;
    group.close([first, second]).await;
}

/// Where tasks run on until their successors are told to start, one that is only starting does not.
#[tokio::test]
async fn a_task_that_is_starting_when_its_worker_drains_does_not_fail() {
    let (group, first, second) = two(&[]).await;
    let task = until_it_runs(&second, 2).await[0];
    // It takes its id while the round goes on, which the other worker enters late.
    suffer(&group, Fault::DelayRequest(Duration::from_millis(400)));
    group.broker.faults().inject(ApiKey::JoinGroup, 2, Fault::DelayRequest(Duration::from_millis(1_500)));
    second.rest.must(204, "POST", &format!("/connectors/c/tasks/{task}/restart"), None).await;
    drain(&second).await;
    until_drained(&second).await;
    group.broker.faults().clear();
    until_it_runs(&first, 4).await;
    group.until_delivered(4, 3).await;
    let statuses = group.read(STATUSES, Isolation::Uncommitted).await;
    let failed = |(_, status): &&(String, Option<String>)| status.as_ref().is_some_and(|told| told.contains("FAILED"));
    assert_eq!(statuses.iter().find(failed), None);
    group.close([first, second]).await;
}

/// It hears of new connectors, and no round of its own follows that would hold requests up.
#[tokio::test]
async fn a_drained_worker_sends_requests_on_after_the_configurations_have_changed() {
    let (group, first, second) = two(&[]).await;
    until_drained(&second).await;
    until_it_runs(&first, 4).await;
    let config = group.scripted(&[("records", "0")]);
    first.rest.create("d", &config).await;
    first.rest.until_states("d", "RUNNING", &["RUNNING"]).await;
    eventually("it hears of it", async || {
        let answer = second.rest.get("/connectors/d").await;
        if answer.status == 200 { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    second.rest.must(202, "PUT", "/connectors/d/pause", None).await;
    second.rest.must(200, "PUT", "/connectors/d/config", Some(&config)).await;
    second.rest.must(204, "DELETE", "/connectors/d", None).await;
    group.close([first, second]).await;
}

#[tokio::test]
async fn all_workers_of_a_group_can_be_drained_at_once() {
    let (group, first, second) = two(&[]).await;
    drain(&first).await;
    drain(&second).await;
    until_drained(&first).await;
    until_drained(&second).await;
    let next = group.join().await;
    until_it_runs(&next, 4).await;
    group.until_delivered(4, 3).await;
    until_drained(&next).await;
    let answer = next.rest.send("DELETE", "/connectors/c", None).await;
    assert_eq!(answer.status, 409, "it led, and knows of no other leader: {answer}");
    group.close([first, second, next]).await;
}
