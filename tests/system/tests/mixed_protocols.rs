//! A Java worker and one of ours in one group with each `connect.protocol`, from the oldest to the newest one worker at a time; and with a delay for
//! workers that are gone, whoever leads.
//!
//! With ONCEWIRE_MIXED_WITH=java both are Java's, which proves the tests.

use std::time::{Duration, SystemTime};

use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::{ConnectCluster, SESSION_TIMEOUT};
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::status_history::told_of_tasks;
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::{Kind, wait_until};

const TASKS: usize = 4;
const RATE: u32 = 200;
const STEP: i64 = 400;

/// Both are in the group that speaks this, run tasks, and come to rest.
fn settles(cluster: &ConnectCluster, client: &Client, load: &SequenceLoad, tasks: usize, protocol: &str) {
    cluster.wait_until_shared(0, load.name(), tasks, PATIENCE);
    load.wait_for_progress(client, cluster, STEP);
    for slot in [0, 1] {
        let last = cluster.worker(slot).last_assignment();
        assert!(last.as_ref().is_some_and(|last| last.protocol == protocol), "slot {slot}: {last:?}, not {protocol}");
    }
}

/// What changes when all workers are started again.
struct Roll {
    /// `connect.protocol`.
    property: &'static str,
    /// What the group speaks while one worker offers it, and when both do.
    spoken: [&'static str; 2],
    /// The number of tasks before, and the one that the connector is given afterwards.
    tasks: [usize; 2],
}

fn roll(cluster: &mut ConnectCluster, client: &Client, load: &SequenceLoad, roll: &Roll) {
    cluster.set("connect.protocol", roll.property);
    for (slot, protocol) in [1, 0].into_iter().zip(roll.spoken) {
        let kind = cluster.worker(slot).kind();
        cluster.stop(slot);
        cluster.start(slot, kind);
        settles(cluster, client, load, roll.tasks[0], protocol);
    }
    cluster.wait_until_quiet(1);
    // New tasks are told to the leader by the owner of the connector, with a signature where the group speaks `sessioned`.
    let body = load.clone().with("tasks", &roll.tasks[1].to_string());
    cluster.rest(1).must(200, "PUT", &format!("/connectors/{}/config", load.name()), Some(body.config()));
    cluster.wait_until_shared(0, load.name(), roll.tasks[1], PATIENCE);
}

/// A5 downgrade-by-one-member
#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn a_mixed_group_speaks_each_protocol_and_changes_it_under_load() {
    let other = Kind::beside_java();
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("protocols", broker.bootstrap(), 2);
    cluster.set("connect.protocol", "eager");
    cluster.set("heartbeat.interval.ms", "300");
    cluster.start(1, other);
    let load = SequenceLoad::new("each-protocol", TASKS, RATE);
    cluster.rest(1).create(load.name(), load.config());
    cluster.start(0, Kind::Java);
    settles(&cluster, &client, &load, TASKS, "default");
    cluster.wait_until_quiet(1);
    let more = TASKS * 2;
    for change in [
        Roll { property: "compatible", spoken: ["default", "compatible"], tasks: [TASKS, more] },
        Roll { property: "sessioned", spoken: ["compatible", "sessioned"], tasks: [more, TASKS] },
    ] {
        roll(&mut cluster, &client, &load, &change);
    }
    load.wait_for_progress(&client, &cluster, STEP);
    load.stop(&cluster, 0);
    load.audit(&client, &cluster);
    cluster.stop_all();
    let complaints = cluster.complaints();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// `scheduled.rebalance.max.delay.ms`: longer than a dead worker's session may differ from `SESSION_TIMEOUT`.
const DELAY: Duration = Duration::from_secs(5);
/// A dead worker's last heartbeat was that long before its end at most, with room for one that was late.
const HEARTBEAT: Duration = Duration::from_secs(2);

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(since.as_millis()).expect("it is earlier than that")
}

/// The worker in `slot` is killed; what it had waits for the delay, then runs on the one that leads.
fn waits_for_the_dead(cluster: &mut ConnectCluster, client: &Client, load: &SequenceLoad, slot: usize) {
    let leader = 1 - slot;
    assert_eq!(cluster.leader(), Some(leader), "who leads is not the one that is killed");
    let survivor = cluster.rest(leader).worker_id().to_owned();
    let before = cluster.rest(leader).status(load.name()).expect("it answers");
    cluster.kill9(slot);
    let killed_ms = now_ms();
    let delay = || cluster.worker(leader).last_assignment().map_or(0, |last| last.delay_ms);
    wait_until("the dead one is waited for", SESSION_TIMEOUT + PATIENCE, || delay() > 0, String::new);
    let waiting = cluster.rest(leader).status(load.name()).expect("it answers");
    assert_eq!(waiting.tasks_on(&survivor), before.tasks_on(&survivor), "{waiting:?}");
    cluster.wait_until_all_on(leader, load.name(), TASKS, DELAY + PATIENCE);
    assert_eq!(delay(), 0, "nobody is waited for any more");
    let due_ms = killed_ms + i64::try_from((SESSION_TIMEOUT + DELAY - HEARTBEAT).as_millis()).expect("it is short");
    let started: Vec<_> = told_of_tasks(client, &cluster.status_topic(), load.name())
        .into_iter()
        .filter(|told| told.state == "RUNNING" && told.worker == survivor && told.at_ms > killed_ms)
        .collect();
    assert_eq!(started.len(), TASKS - before.tasks_on(&survivor), "each that was left starts once: {started:?}");
    assert!(started.iter().all(|told| told.at_ms >= due_ms), "not before {due_ms}: {started:?}");
}

/// A12 worker-leaves-for-good
#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn what_a_killed_worker_had_waits_for_the_delay_whoever_leads() {
    let other = Kind::beside_java();
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("delay", broker.bootstrap(), 2);
    cluster.set("heartbeat.interval.ms", "300");
    cluster.set("scheduled.rebalance.max.delay.ms", &DELAY.as_millis().to_string());
    cluster.start(1, other);
    let load = SequenceLoad::new("waits", TASKS, RATE);
    cluster.rest(1).create(load.name(), load.config());
    cluster.start(0, Kind::Java);
    cluster.wait_until_shared(0, load.name(), TASKS, PATIENCE);
    load.wait_for_progress(&client, &cluster, STEP);
    waits_for_the_dead(&mut cluster, &client, &load, 0);
    cluster.start(0, Kind::Java);
    cluster.wait_until_shared(0, load.name(), TASKS, PATIENCE);
    // Java leads from here on.
    cluster.stop(1);
    cluster.start(1, other);
    cluster.wait_until_shared(0, load.name(), TASKS, PATIENCE);
    waits_for_the_dead(&mut cluster, &client, &load, 1);
    load.wait_for_progress(&client, &cluster, STEP);
    load.stop(&cluster, 0);
    load.audit(&client, &cluster);
    cluster.stop_all();
}
