//! Transactional ids that nobody has, or that two would have, on a real broker: what a killed worker left open is aborted when its connector is deleted,
//! and of two clusters whose ids are joined the same the second is refused its connector.

use std::time::Duration;

use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::ConnectCluster;
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::{Kind, wait_until};
use serde_json::json;

const TASKS: usize = 2;
const RATE: u32 = 200;
/// Far more than the test waits for anything, and within what brokers allow by default.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(600);

#[test]
#[ignore = "needs Apache Kafka"]
fn what_a_killed_worker_left_open_is_aborted_when_its_connector_is_deleted() {
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("left-open", broker.bootstrap(), 2);
    cluster.start_all(&[Kind::Ours, Kind::Ours]);
    let timeout_ms = TRANSACTION_TIMEOUT.as_millis().to_string();
    let load = SequenceLoad::new("open-for-long", TASKS, RATE)
        .with("transaction.boundary", "interval")
        .with("transaction.boundary.interval.ms", &timeout_ms)
        .with("producer.override.transaction.timeout.ms", &timeout_ms);
    cluster.rest(0).create(load.name(), load.config());
    let [one, other] = [0, 1].map(|slot| cluster.rest(slot).worker_id().to_owned());
    cluster.wait_for_status(0, load.name(), "runs on both", PATIENCE, |status| {
        status.all_are("RUNNING", TASKS) && [&one, &other].iter().all(|worker| status.tasks_on(worker) == 1)
    });
    let ends = |isolation| client.end(load.name(), isolation);
    wait_until(
        "both write",
        PATIENCE,
        || ends(Isolation::Uncommitted) >= i64::from(RATE),
        || format!("{} records", ends(Isolation::Uncommitted)),
    );
    assert_eq!(ends(Isolation::Committed), 0, "both transactions are open");
    // A leader that dies takes with it what it wanted to end.
    let leader = cluster.leader().expect("one of them leads");
    cluster.kill9(1 - leader);
    cluster.rest(leader).must(204, "DELETE", &format!("/connectors/{}", load.name()), None);
    wait_until(
        "nothing is open any more",
        PATIENCE,
        || ends(Isolation::Committed) == ends(Isolation::Uncommitted),
        || format!("decided up to {} of {}", ends(Isolation::Committed), ends(Isolation::Uncommitted)),
    );
    cluster.stop_all();
}

#[test]
#[ignore = "needs Apache Kafka"]
fn clusters_whose_transactional_ids_collide_are_told_apart_when_a_connector_is_created() {
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let [mut one, mut other] = ["rival", "rival-a"].map(|group| ConnectCluster::new(group, broker.bootstrap(), 1));
    one.start(0, Kind::Ours);
    other.start(0, Kind::Ours);
    let load = SequenceLoad::new("a-1", 1, RATE);
    one.rest(0).create(load.name(), load.config());
    load.wait_for_progress(&client, &one, i64::from(RATE));
    let colliding = SequenceLoad::new("1", 1, RATE);
    let body = json!({"name": colliding.name(), "config": colliding.config()});
    let answer = other.rest(0).request("POST", "/connectors", Some(&body)).expect("it answers");
    let message = answer.body["message"].as_str().unwrap_or_default();
    assert!(answer.status == 400 && message.contains("'a-1'") && message.contains("'rival'"), "{answer}");
    // Under another name it is welcome, and the first one was not disturbed.
    let renamed = SequenceLoad::new("one", 1, RATE);
    other.rest(0).create(renamed.name(), renamed.config());
    renamed.wait_for_progress(&client, &other, i64::from(RATE));
    load.wait_for_progress(&client, &one, i64::from(RATE));
    one.wait_for_status(0, load.name(), "still runs", PATIENCE, |status| status.all_are("RUNNING", 1));
    one.stop_all();
    other.stop_all();
}
