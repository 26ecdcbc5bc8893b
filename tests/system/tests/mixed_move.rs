//! Workers are replaced one by one while four tasks write: Java's by ours and back, in order and by SIGKILL at moments tied to progress.
//! Afterwards every record is there once, in order.
//!
//! With ONCEWIRE_MIXED_WITH=java all are Java's, which proves the tests. ONCEWIRE_ROUNDS is the number of kills, in CI a few.

use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::ConnectCluster;
use oncewire_system_tests::seed::Seed;
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::Kind;

const TASKS: usize = 4;
const RATE: u32 = 500;
const ROUNDS: u64 = 4;

/// What is written between two steps: about half a second of all tasks.
const STEP: i64 = 1_000;

fn rounds() -> u64 {
    match std::env::var("ONCEWIRE_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("ONCEWIRE_ROUNDS is a number"),
        Err(_) => ROUNDS,
    }
}

/// A21 mixed-java-rust-leadership
#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn a_rolling_move_under_load_loses_and_doubles_nothing() {
    let other = Kind::beside_java();
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("move", broker.bootstrap(), 2);
    cluster.start_all(&[Kind::Java, Kind::Java]);
    let load = SequenceLoad::new("moved", TASKS, RATE);
    cluster.rest(0).create(load.name(), load.config());
    cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
    for (slot, kind) in [(1, other), (0, other), (0, Kind::Java), (1, Kind::Java)] {
        load.wait_for_progress(&client, &cluster, STEP);
        cluster.stop(slot);
        // All that it had runs with the one that stays, before the next comes.
        cluster.wait_until_all_on(1 - slot, load.name(), TASKS, PATIENCE);
        load.wait_for_progress(&client, &cluster, STEP);
        cluster.start(slot, kind);
        let comes = cluster.rest(slot).worker_id().to_owned();
        cluster.wait_for_status(slot, load.name(), "runs on both", PATIENCE, |status| {
            status.all_are("RUNNING", TASKS) && status.tasks_on(&comes) == TASKS / 2
        });
    }
    load.wait_for_progress(&client, &cluster, STEP);
    load.stop(&cluster, 0);
    load.audit(&client, &cluster);
    cluster.stop_all();
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn kills_at_random_moments_lose_and_double_nothing() {
    let kinds = [Kind::Java, Kind::beside_java()];
    let mut seed = Seed::of_run("kills in a mixed cluster");
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("kills", broker.bootstrap(), 2);
    cluster.start_all(&kinds);
    let load = SequenceLoad::new("killed", TASKS, RATE);
    cluster.rest(0).create(load.name(), load.config());
    cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
    for round in 1..=rounds() {
        load.wait_for_progress(&client, &cluster, 1 + seed.below(STEP as u64 * 2) as i64);
        let slot = seed.below(2) as usize;
        let kind = kinds[seed.below(2) as usize];
        println!("round {round}: slot {slot} is killed, then {kind} comes");
        cluster.kill9(slot);
        // At times while the group still waits for the dead one, at times when its work has been taken over.
        if seed.below(2) == 0 {
            load.wait_for_progress(&client, &cluster, 1);
        }
        cluster.start(slot, kind);
    }
    cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
    load.wait_for_progress(&client, &cluster, STEP);
    load.stop(&cluster, 0);
    load.audit(&client, &cluster);
    cluster.stop_all();
}
