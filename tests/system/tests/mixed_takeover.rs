//! What a killed cluster has left is taken over by the other kind of worker, and a worker that slept while it was replaced does no harm.
//!
//! With ONCEWIRE_MIXED_WITH=java both are Java's, which proves the tests.

use std::time::Duration;

use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::{ConnectCluster, SESSION_TIMEOUT};
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::{Kind, wait_until};
use serde_json::Value;

const TASKS: usize = 2;
const RATE: u32 = 500;
const STEP: i64 = 500;

/// Transactions stay open for that long, so that a kill leaves some behind.
const INTERVAL: Duration = Duration::from_secs(5);
/// Long after this test: the open transactions must be ended by fencing.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(300);

/// What REST says of connectors that nobody touches.
fn seen(cluster: &ConnectCluster, connectors: &[&str]) -> Vec<Value> {
    let paths = ["", "/config", "/tasks", "/topics"];
    let all = connectors.iter().flat_map(|name| paths.map(|path| format!("/connectors/{name}{path}")));
    all.map(|path| cluster.rest(0).must(200, "GET", &path, None)).collect()
}

/// `from` is killed with transactions open; `to` fences, aborts and goes on where the last commit was.
fn take_over(from: Kind, to: Kind) {
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("taken", broker.bootstrap(), 1);
    cluster.start(0, from);
    let open = SequenceLoad::new("open", TASKS, RATE)
        .with("transaction.boundary", "interval")
        .with("transaction.boundary.interval.ms", &INTERVAL.as_millis().to_string())
        .with("producer.override.transaction.timeout.ms", &TRANSACTION_TIMEOUT.as_millis().to_string());
    let (paused, stopped) = (SequenceLoad::new("paused", TASKS, RATE), SequenceLoad::new("stopped", TASKS, RATE));
    for load in [&open, &paused, &stopped] {
        cluster.rest(0).create(load.name(), load.config());
        cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
        load.wait_for_progress(&client, &cluster, 10);
    }
    cluster.rest(0).must(202, "PUT", "/connectors/paused/pause", None);
    cluster.rest(0).must(204, "PUT", "/connectors/stopped/stop", None);
    cluster.wait_for_status(0, "paused", "is paused", PATIENCE, |status| status.all_are("PAUSED", TASKS));
    cluster.wait_for_status(0, "stopped", "is stopped", PATIENCE, |status| status.all_are("STOPPED", 0));
    let before = seen(&cluster, &["open", "paused", "stopped"]);
    let undecided = || client.end("open", Isolation::Uncommitted) - client.end("open", Isolation::Committed);
    // In the first part of a transaction, so that the kill comes before its end.
    let begun = || (STEP / 5..STEP * 2).contains(&undecided());
    wait_until("a transaction has begun", PATIENCE, begun, || format!("{} records are undecided", undecided()));
    cluster.kill9(0);
    assert!(undecided() > 0, "the kill came when nothing was open");
    let offsets = cluster.offsets_topic();
    let in_offsets = [Isolation::Uncommitted, Isolation::Committed].map(|isolation| client.end(&offsets, isolation));
    assert_eq!(
        in_offsets[0], in_offsets[1],
        "offsets are written when a transaction ends: one that is open holds no reader of them up"
    );

    cluster.start(0, to);
    cluster.wait_until_running(0, "open", TASKS, PATIENCE);
    cluster.wait_for_status(0, "paused", "is paused", PATIENCE, |status| status.all_are("PAUSED", TASKS));
    cluster.wait_for_status(0, "stopped", "is stopped", PATIENCE, |status| status.all_are("STOPPED", 0));
    assert_eq!(seen(&cluster, &["open", "paused", "stopped"]), before);
    open.wait_for_progress(&client, &cluster, STEP);
    for load in [&paused, &stopped] {
        cluster.rest(0).must(202, "PUT", &format!("/connectors/{}/resume", load.name()), None);
        cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
        load.wait_for_progress(&client, &cluster, STEP);
    }
    // All have their offsets in one topic, which must be still for an audit.
    let all = [&open, &paused, &stopped];
    all.into_iter().for_each(|load| load.stop(&cluster, 0));
    all.into_iter().for_each(|load| drop(load.audit(&client, &cluster)));
    cluster.stop_all();
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn what_a_killed_java_cluster_has_left_is_taken_over() {
    take_over(Kind::Java, Kind::beside_java());
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn java_takes_over_what_was_left() {
    take_over(Kind::beside_java(), Kind::Java);
}

/// The worker in `slot` sleeps until all its work runs elsewhere, writes, and wakes up.
fn sleep_and_wake(cluster: &ConnectCluster, client: &Client, load: &SequenceLoad, slot: usize) {
    let awake = 1 - slot;
    let running = cluster.wait_for_status(awake, load.name(), "runs on both", PATIENCE, |status| {
        status.all_are("RUNNING", TASKS) && status.tasks_on(cluster.rest(slot).worker_id()) == TASKS / 2
    });
    load.wait_for_progress(client, cluster, STEP);
    cluster.worker(slot).freeze();
    let successor = cluster.rest(awake).worker_id().to_owned();
    cluster.wait_until_all_on(awake, load.name(), TASKS, SESSION_TIMEOUT + PATIENCE);
    load.wait_for_progress(client, cluster, STEP);
    cluster.worker(slot).thaw();
    // It finds that it is no member any more, joins again, and gets work again.
    cluster.wait_for_status(awake, load.name(), "runs on both again", PATIENCE, |status| {
        assert!(
            status.tasks.iter().all(|task| task.0 != "FAILED" || task.1 != successor),
            "the sleeper has fenced its successor: {status:?}"
        );
        status.all_are("RUNNING", TASKS) && status.tasks_on(&successor) == running.tasks_on(&successor)
    });
    load.wait_for_progress(client, cluster, STEP);
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn a_worker_that_slept_writes_nothing_and_fences_nobody() {
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("sleep", broker.bootstrap(), 2);
    cluster.start_all(&[Kind::Java, Kind::beside_java()]);
    let load = SequenceLoad::new("slept", TASKS, RATE);
    cluster.rest(0).create(load.name(), load.config());
    cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
    sleep_and_wake(&cluster, &client, &load, 1);
    sleep_and_wake(&cluster, &client, &load, 0);
    load.stop(&cluster, 1);
    load.audit(&client, &cluster);
    cluster.stop_all();
}
