//! All brokers are away for longer than a client's patience. The workers that lived through it go on by themselves.

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

    broker.stop();
    for slot in 0..2 {
        let log = || cluster.worker(slot).log();
        wait_until("the worker's clients give up", PATIENCE, || log().contains(GAVE_UP), log);
    }
    std::thread::sleep(CLIENT_PATIENCE);
    broker.restart();

    let client = Client::connect(broker.bootstrap());
    load.wait_for_progress(&client, &cluster, i64::from(RATE));
    cluster.wait_until_running(0, load.name(), TASKS, PATIENCE);
    for slot in 0..2 {
        // What is written from now on is read by both: they follow the topics again.
        let (state, wanted) = if slot == 0 { ("pause", "PAUSED") } else { ("resume", "RUNNING") };
        cluster.rest(slot).must(202, "PUT", &format!("/connectors/{}/{state}", load.name()), None);
        for reader in 0..2 {
            cluster.wait_for_status(reader, load.name(), wanted, PATIENCE, |status| status.all_are(wanted, TASKS));
        }
    }
    load.stop(&cluster, 0);
    let report = load.audit(&client, &cluster);
    assert!(report.is_content(), "the auditor is not content:\n{report}");
    assert_eq!(client.end(load.name(), Isolation::Committed), client.end(load.name(), Isolation::Uncommitted));
    cluster.stop_all();
}
