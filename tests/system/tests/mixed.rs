//! A Java worker and one of ours in one group: whichever leads, whichever is asked, a connector lives its whole life.
//!
//! With ONCEWIRE_MIXED_WITH=java both are Java's, which proves the test.

use std::time::{Duration, Instant};

use oncewire_system_tests::client::Client;
use oncewire_system_tests::connect_cluster::ConnectCluster;
use oncewire_system_tests::files::{LINE_BYTES, write_lines};
use oncewire_system_tests::process::LOOK_EVERY;
use oncewire_system_tests::rest::Status;
use oncewire_system_tests::sequence_load::{PATIENCE, SequenceLoad};
use oncewire_system_tests::target::Target;
use oncewire_system_tests::worker::{Kind, wait_until};
use serde_json::json;

/// A restart that was not seen by then was over before the first look.
const RESTART_SEEN: Duration = Duration::from_secs(2);

const LINES: u64 = 500;

/// The one that is asked first, and the other.
struct Pair<'a> {
    cluster: &'a ConnectCluster,
    client: &'a Client,
    one: usize,
    other: usize,
}

impl Pair<'_> {
    /// Tasks run on both, so that each request concerns both.
    fn wait_until_shared(&self, connector: &str, tasks: usize) -> Status {
        self.cluster.wait_until_shared(self.other, connector, tasks, PATIENCE)
    }

    fn request(&self, slot: usize, expected: u16, method: &str, path: &str) {
        self.cluster.rest(slot).must(expected, method, path, None);
    }

    fn wait_for_state(&self, slot: usize, connector: &str, state: &str, tasks: usize) {
        self.cluster.wait_for_status(slot, connector, state, PATIENCE, |status| status.all_are(state, tasks));
    }

    /// Each task is restarted by way of the worker that has not got it.
    fn restart_across(&self, connector: &str) {
        let status = self.wait_until_shared(connector, 4);
        for slot in [self.one, self.other] {
            let id = self.cluster.rest(slot).worker_id().to_owned();
            let elsewhere = status.tasks.iter().position(|task| task.1 != id).expect("the tasks are shared");
            self.request(slot, 204, "POST", &format!("/connectors/{connector}/tasks/{elsewhere}/restart"));
            self.wait_until_restarted(connector);
        }
        for slot in [self.other, self.one] {
            self.request(slot, 202, "POST", &format!("/connectors/{connector}/restart?includeTasks=true"));
            self.wait_until_restarted(connector);
        }
    }

    /// The answer comes before the restart: RUNNING may still be the old state.
    fn wait_until_restarted(&self, connector: &str) {
        let began = Instant::now();
        let rest = self.cluster.rest(self.other);
        while began.elapsed() < RESTART_SEEN
            && rest.status(connector).is_some_and(|status| status.all_are("RUNNING", 4))
        {
            std::thread::sleep(LOOK_EVERY);
        }
        self.wait_until_shared(connector, 4);
    }

    fn pause_and_resume(&self, connector: &str) {
        self.request(self.one, 202, "PUT", &format!("/connectors/{connector}/pause"));
        self.wait_for_state(self.other, connector, "PAUSED", 4);
        self.request(self.other, 202, "PUT", &format!("/connectors/{connector}/resume"));
        self.wait_until_shared(connector, 4);
    }

    fn alter_offsets(&self, connector: &str) {
        let path = format!("/connectors/{connector}/offsets");
        let before = self.cluster.offsets(self.one, connector);
        assert_eq!(before.len(), 4, "{before:?}");
        assert_eq!(before, self.cluster.offsets(self.other, connector));
        let body = json!({"offsets": [{"partition": {"task": 0}, "offset": {"n": 1_000_000}}]});
        self.cluster.rest(self.other).must(200, "PATCH", &path, Some(&body));
        let altered = self.cluster.offsets(self.one, connector);
        assert!(altered.contains(&body["offsets"][0].to_string()), "{altered:?}");
        self.request(self.one, 200, "DELETE", &path);
        assert!(self.cluster.offsets(self.other, connector).is_empty());
    }

    fn stream_file(&self, connector: &str) {
        let file = self.cluster.path(&format!("{connector}.txt"));
        write_lines(&file, LINES, LINE_BYTES).expect("the file can be written");
        self.client.make_topic(connector, 1, &[]);
        let config = json!({
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": file,
            "topic": connector,
        });
        self.cluster.rest(self.other).create(connector, &config);
        self.cluster.wait_until_running(self.one, connector, 1, PATIENCE);
        let end = || self.client.end(connector, oncewire_client::reader::Isolation::Committed);
        wait_until("the lines arrive", PATIENCE, || end() >= LINES as i64, || format!("the end is {}", end()));
    }

    fn whole_life(&self, name: &str) {
        let load = SequenceLoad::new(name, 2, 200);
        self.cluster.rest(self.one).create(name, load.config());
        self.wait_until_shared(name, 2);
        let file = format!("{name}-file");
        self.stream_file(&file);

        let grown = load.with("tasks", "4");
        self.cluster.rest(self.other).must(200, "PUT", &format!("/connectors/{name}/config"), Some(grown.config()));
        self.wait_until_shared(name, 4);
        grown.wait_for_progress(self.client, self.cluster, 100);
        self.pause_and_resume(name);
        self.restart_across(name);
        grown.wait_for_progress(self.client, self.cluster, 100);

        grown.stop(self.cluster, self.other);
        grown.audit(self.client, self.cluster);
        self.alter_offsets(name);
        self.request(self.other, 202, "PUT", &format!("/connectors/{name}/resume"));
        self.wait_until_shared(name, 4);
        self.request(self.other, 204, "DELETE", &format!("/connectors/{name}"));
        self.request(self.one, 204, "DELETE", &format!("/connectors/{file}"));
        for slot in [self.one, self.other] {
            for connector in [name, &file] {
                let gone = || {
                    let answer =
                        self.cluster.rest(slot).request("GET", &format!("/connectors/{connector}/status"), None);
                    answer.is_ok_and(|answer| answer.status == 404)
                };
                wait_until(&format!("{connector} is gone at slot {slot}"), PATIENCE, gone, String::new);
            }
        }
    }
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn a_connector_lives_its_whole_life_whichever_leads() {
    let broker = Target::Kafka431.start();
    let client = Client::connect(broker.bootstrap());
    let mut cluster = ConnectCluster::new("mixed", broker.bootstrap(), 2);
    cluster.start(0, Kind::Java);
    wait_until("Java leads", PATIENCE, || cluster.leader() == Some(0), || format!("{:?}", cluster.leader()));
    cluster.start(1, Kind::beside_java());
    let pair = Pair { cluster: &cluster, client: &client, one: 0, other: 1 };
    pair.whole_life("first");
    cluster.wait_until_quiet(0);
    Pair { one: 1, other: 0, ..pair }.whole_life("second");

    // Who leads leaves, and comes back as a follower.
    cluster.stop(0);
    cluster.start(0, Kind::Java);
    wait_until("the other leads", PATIENCE, || cluster.leader() == Some(1), || format!("{:?}", cluster.leader()));
    let pair = Pair { cluster: &cluster, client: &client, one: 0, other: 1 };
    pair.whole_life("third");
    cluster.wait_until_quiet(0);
    Pair { one: 1, other: 0, ..pair }.whole_life("fourth");
    cluster.stop_all();
    let complaints = cluster.complaints();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
