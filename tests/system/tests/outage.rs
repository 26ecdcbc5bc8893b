//! All brokers are away for longer than a client's patience. The workers that lived through it go on by themselves.
//!
//! The connector is paused meanwhile, because of Kafka: a broker that is told to end (SIGTERM) while it alone leads a partition
//! completes transactions without writing their markers. Seen on 4.3.1: PrepareCommit and CompleteCommit of an id lie 2 ms apart in
//! `__transaction_state`, and the partitions hold the transaction's records, open for ever. Readers of committed records, and every
//! task that reads its offsets, then wait until somebody ends it (`kafka-transactions.sh find-hanging`, `abort`).

use std::time::Duration;

use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::ConnectCluster;
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::{Kind, wait_until};

const TASKS: usize = 2;
const RATE: u32 = 200;
/// How long the workers' clients try anything; short, so that the outage can be.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);
const GAVE_UP: &str = "the topic can't be followed";

#[test]
#[ignore = "needs Apache Kafka"]
fn workers_go_on_after_an_outage_that_is_longer_than_their_patience() {
    let broker = Target::Kafka431.start();
    let mut cluster = ConnectCluster::new("outage", broker.bootstrap(), 2);
    cluster.set("default.api.timeout.ms", &CLIENT_PATIENCE.as_millis().to_string());
    cluster.start_all(&[Kind::Ours, Kind::Ours]);
    let load = SequenceLoad::new("through-an-outage", TASKS, RATE);
    let client = Client::connect(broker.bootstrap());
    cluster.rest(0).create(load.name(), load.config());
    cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
    load.wait_for_progress(&client, &cluster, i64::from(RATE));

    change(&cluster, 0, load.name(), "pause", "PAUSED");

    broker.stop();
    for slot in 0..2 {
        let log = || cluster.worker(slot).log();
        wait_until("the worker's clients give up", PATIENCE, || log().contains(GAVE_UP), log);
    }
    std::thread::sleep(CLIENT_PATIENCE);
    broker.restart();

    // Both write to the config topic, and both read from it and from the status topic.
    change(&cluster, 1, load.name(), "resume", "RUNNING");
    let client = Client::connect(broker.bootstrap());
    load.wait_for_progress(&client, &cluster, i64::from(RATE));
    change(&cluster, 0, load.name(), "pause", "PAUSED");
    change(&cluster, 1, load.name(), "resume", "RUNNING");
    load.stop(&cluster, 0);
    let report = load.audit(&client, &cluster);
    assert!(report.is_content(), "the auditor is not content:\n{report}");
    assert_eq!(client.end(load.name(), Isolation::Committed), client.end(load.name(), Isolation::Uncommitted));
    cluster.stop_all();
}

/// Asks one worker for another state; all workers come to know it.
fn change(cluster: &ConnectCluster, slot: usize, connector: &str, how: &str, state: &str) {
    cluster.rest(slot).must(202, "PUT", &format!("/connectors/{connector}/{how}"), None);
    for reader in 0..2 {
        cluster.wait_for_status(reader, connector, state, PATIENCE, |status| status.all_are(state, TASKS));
    }
}
