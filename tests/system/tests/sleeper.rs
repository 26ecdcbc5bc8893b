//! A worker sleeps, another one takes its work over and dies: what the sleeper wakes up with must not stay fenced for ever.

use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::{ConnectCluster, SESSION_TIMEOUT};
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::Kind;

const TASKS: usize = 2;
const RATE: u32 = 200;
const STEP: i64 = 200;

#[test]
#[ignore = "needs Apache Kafka"]
fn a_sleeper_takes_its_tasks_up_again_after_the_successor_has_died() {
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("sleeper", broker.bootstrap(), 2);
    cluster.start_all(&[Kind::Ours, Kind::Ours]);
    let load = SequenceLoad::new("slept-through", TASKS, RATE);
    cluster.rest(0).create(load.name(), load.config());
    let sleeper = cluster.rest(1).worker_id().to_owned();
    cluster.wait_for_status(0, load.name(), "runs on both", PATIENCE, |status| {
        status.all_are("RUNNING", TASKS) && status.tasks_on(&sleeper) == 1
    });
    load.wait_for_progress(&client, &cluster, STEP);
    cluster.worker(1).freeze();
    cluster.wait_until_all_on(0, load.name(), TASKS, SESSION_TIMEOUT + PATIENCE);
    load.wait_for_progress(&client, &cluster, STEP);
    cluster.kill9(0);
    cluster.worker(1).thaw();
    // Its own task finds that it was fenced; the group has given it to nobody else.
    cluster.wait_until_all_on(1, load.name(), TASKS, SESSION_TIMEOUT + PATIENCE);
    load.wait_for_progress(&client, &cluster, STEP);
    load.stop(&cluster, 1);
    load.audit(&client, &cluster);
    cluster.stop_all();
}
