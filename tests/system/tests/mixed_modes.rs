//! A Java worker and one of ours go together from `exactly.once.source.support=disabled` by way of `preparing` to `enabled`, and back, while four tasks
//! write: at least once all the way, exactly once as long as both are `enabled`, a SIGKILL included.
//!
//! With ONCEWIRE_MIXED_WITH=java both are Java's, which proves the test.

use oncewire_audit::Check;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::{ConnectCluster, SESSION_TIMEOUT};
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::status_history;
use oncewire_system_tests::stretch::{Mark, Stretch};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::Kind;

const TASKS: usize = 4;
const RATE: u32 = 200;
const STEP: i64 = 400;

const MODE: &str = "exactly.once.source.support";

/// Both workers are started again in another mode, `first` before the other; all tasks run at each step.
fn roll(cluster: &mut ConnectCluster, client: &Client, load: &SequenceLoad, mode: &str, first: usize) {
    cluster.set(MODE, mode);
    for slot in [first, 1 - first] {
        let kind = cluster.worker(slot).kind();
        cluster.stop(slot);
        cluster.start(slot, kind);
        cluster.wait_until_shared(slot, load.name(), TASKS, PATIENCE);
        load.wait_for_progress(client, cluster, STEP);
    }
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn a_mixed_cluster_goes_over_to_exactly_once_and_back_under_load() {
    let other = Kind::beside_java();
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("modes", broker.bootstrap(), 2);
    cluster.set(MODE, "disabled");
    cluster.set("heartbeat.interval.ms", "300");
    cluster.start_all(&[Kind::Java, other]);
    let load = SequenceLoad::new("through-modes", TASKS, RATE).with("exactly.once.support", "requested");
    cluster.rest(0).create(load.name(), load.config());
    cluster.wait_until_shared(0, load.name(), TASKS, PATIENCE);
    load.wait_for_progress(&client, &cluster, STEP);

    roll(&mut cluster, &client, &load, "preparing", 0);
    // Ours is the first that is enabled: its tasks have the preparing leader, Java's, fence for them.
    roll(&mut cluster, &client, &load, "enabled", 1);
    let enabled = Mark::set(&client, load.name());
    load.wait_for_progress(&client, &cluster, STEP);
    cluster.kill9(1);
    cluster.wait_until_all_on(0, load.name(), TASKS, SESSION_TIMEOUT + PATIENCE);
    cluster.start(1, other);
    cluster.wait_until_shared(1, load.name(), TASKS, PATIENCE);
    load.wait_for_progress(&client, &cluster, STEP);
    let still_enabled = Mark::set(&client, load.name());
    // And here ours leads, preparing, when Java's tasks are the last that are enabled.
    roll(&mut cluster, &client, &load, "preparing", 1);
    roll(&mut cluster, &client, &load, "disabled", 0);

    let status = cluster.rest(0).status(load.name()).expect("it answers");
    assert!(status.all_are("RUNNING", TASKS), "{status:?}");
    load.stop(&cluster, 0);
    load.wait_until_still(&client, &cluster);
    let stretch = Stretch::read(&client, load.name(), &enabled, &still_enabled);
    let breaks = stretch.breaks();
    assert!(breaks.is_empty(), "while both were enabled:\n{}", breaks.join("\n"));
    assert!((0..TASKS as i32).all(|partition| stretch.len_of(partition) > 0), "an empty stretch proves nothing");
    let whole = client.audit_topic(load.name(), Check::Sequence, &cluster.offsets_topic(), load.name());
    println!("{whole}");
    assert!(whole.content.gaps.count == 0 && whole.content.foreign.count == 0, "something is missing:\n{whole}");
    cluster.stop_all();

    let failures = status_history::failures(&client, &cluster.status_topic());
    assert!(failures.is_empty(), "{failures:?}");
    let complaints = cluster.complaints();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
