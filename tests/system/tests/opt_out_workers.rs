//! `exactly.once.source=disabled` for connectors of an exactly-once cluster, with whole workers: nothing transactional while it is off; no silent way
//! back; and once it is on again, nothing of a worker that slept through the switch, not even of a task that the connector has no longer.

use oncewire_audit::{Check, Report};
use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::{ConnectCluster, SESSION_TIMEOUT};
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::stretch::{Mark, Stretch};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::{Kind, wait_until};
use serde_json::{Value, json};

const RATE: u32 = 200;
const STEP: i64 = 400;
const CHOICE: &str = "exactly.once.source";

/// Tasks of the connector that keeps its number, and of the one that has a single task afterwards: then the sleeper has one of those that are gone.
const KEPT: usize = 2;
const GONE: usize = 4;

fn audit(client: &Client, cluster: &ConnectCluster, load: &SequenceLoad) -> Report {
    client.audit_topic(load.name(), Check::Sequence, &cluster.offsets_topic(), load.name())
}

fn config_path(load: &SequenceLoad) -> String {
    format!("/connectors/{}/config", load.name())
}

/// Whoever is asked, in whatever way.
fn a_silent_return_is_refused(cluster: &ConnectCluster, load: &SequenceLoad) {
    let mut silent = load.config().clone();
    silent.as_object_mut().expect("it is one").remove(CHOICE);
    let removal = json!({CHOICE: null});
    for slot in [0, 1] {
        for (method, body) in [("PUT", &silent), ("PATCH", &removal)] {
            let answer = cluster.rest(slot).must(400, method, &config_path(load), Some(body));
            let message = answer["message"].as_str().unwrap_or_default();
            assert!(message.contains(CHOICE) && message.contains("set it to enabled"), "{method}: {answer}");
        }
        let config = cluster.rest(slot).must(200, "GET", &config_path(load), None);
        assert_eq!(config[CHOICE], Value::from("disabled"));
    }
}

#[test]
#[ignore = "needs Apache Kafka"]
fn what_slept_while_exactly_once_was_turned_on_again_shows_nothing() {
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("opted", broker.bootstrap(), 2);
    cluster.set("offset.flush.interval.ms", "500");
    cluster.start_all(&[Kind::Ours, Kind::Ours]);
    let off = |name, tasks| {
        SequenceLoad::new(name, tasks, RATE).with(CHOICE, "disabled").with("exactly.once.support", "requested")
    };
    let (kept, gone) = (off("kept", KEPT), off("gone", GONE));
    for (load, tasks) in [(&kept, KEPT), (&gone, GONE)] {
        cluster.rest(0).create(load.name(), load.config());
        cluster.wait_until_shared(0, load.name(), tasks, PATIENCE);
        load.wait_for_progress(&client, &cluster, STEP);
    }
    let plain = audit(&client, &cluster, &kept);
    assert!(plain.records.visible >= STEP as u64 && plain.records.without_record == 0, "no transaction ends:\n{plain}");
    a_silent_return_is_refused(&cluster, &kept);

    let leader = cluster.leader().expect("one of them leads");
    let sleeper = 1 - leader;
    cluster.worker(sleeper).freeze();
    let switched = [(kept.with(CHOICE, "enabled"), KEPT), (gone.with(CHOICE, "enabled").with("tasks", "1"), 1)];
    for (load, _) in &switched {
        cluster.rest(leader).must(200, "PUT", &config_path(load), Some(load.config()));
    }
    for (load, tasks) in &switched {
        cluster.wait_until_all_on(leader, load.name(), *tasks, SESSION_TIMEOUT + PATIENCE);
    }
    // The status of a task that was here before is the old one until the round of fencing is over, which is what keeps the sleeper out.
    let fenced = || cluster.worker(leader).log().contains("older owners are fenced, offsets are read task=\"gone-0\"");
    wait_until("the tasks that are gone are fenced", PATIENCE, fenced, String::new);
    let marks = switched.each_ref().map(|(load, _)| Mark::set(&client, load.name()));
    cluster.worker(sleeper).thaw();
    let refused = || cluster.worker(sleeper).log().contains("INVALID_PRODUCER_EPOCH");
    wait_until("the sleeper tries to write", PATIENCE, refused, || cluster.worker(sleeper).log());
    for (load, tasks) in &switched {
        load.wait_for_progress(&client, &cluster, STEP);
        cluster.wait_until_running(leader, load.name(), *tasks, PATIENCE);
    }
    cluster.wait_until_shared(leader, "kept", KEPT, PATIENCE);
    switched.iter().for_each(|(load, _)| load.stop(&cluster, leader));
    for ((load, tasks), mark) in switched.iter().zip(&marks) {
        load.wait_until_still(&client, &cluster);
        let stretch = Stretch::read(&client, load.name(), mark, &Mark::set(&client, load.name()));
        assert!(stretch.breaks().is_empty(), "{}:\n{}", load.name(), stretch.breaks().join("\n"));
        let written: Vec<_> = (0..GONE as i32).map(|partition| stretch.len_of(partition) > 0).collect();
        let expected: Vec<_> = (0..GONE).map(|partition| partition < *tasks).collect();
        assert_eq!(written, expected, "{}: who has no task any more writes nothing", load.name());
        let report = audit(&client, &cluster, load);
        assert_eq!((report.content.gaps.count, report.content.foreign.count), (0, 0), "{report}");
        assert!(report.records.without_record > 0, "transactions have ended:\n{report}");
    }
    cluster.stop_all();
    let panics = cluster.logs().iter().filter(|(_, log)| log.contains("panicked")).count();
    assert_eq!(panics, 0);
}
