//! A sequence connector in a Connect cluster, as a load that the auditor can check: its configuration, its progress, its end.

use std::time::{Duration, Instant};

use oncewire_audit::{Check, Report};
use oncewire_client::reader::Isolation;
use serde_json::{Value, json};

use crate::client::Client;
use crate::connect_cluster::ConnectCluster;
use crate::worker::wait_until;

/// From any disturbance until data flows again: a session ends, tasks are fenced and started, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Who has written nothing for that long has stopped: its tasks write many times a second.
const STILL: Duration = Duration::from_secs(2);

/// The connector.
#[derive(Debug, Clone)]
pub struct SequenceLoad {
    name: String,
    config: Value,
}

impl SequenceLoad {
    /// So many tasks that write so many records per second each, each to a partition of its own of the topic `name`.
    pub fn new(name: &str, tasks: usize, rate: u32) -> Self {
        let config = json!({
            "connector.class": "io.oncewire.connect.sequence.SequenceSourceConnector",
            "topic": name,
            "tasks": tasks.to_string(),
            "tasks.max": "16",
            "partitions": tasks.to_string(),
            "rate.per.second": rate.to_string(),
            "batch.size": "100",
            "exactly.once.support": "required",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": tasks.to_string(),
        });
        SequenceLoad { name: name.to_owned(), config }
    }

    /// Sets a property.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.config[key] = value.into();
        self
    }

    /// Its name, which is also its topic's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its configuration.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// How many records are decided, markers counted too; 0 before there is a topic.
    pub fn end(&self, client: &Client) -> i64 {
        client.end(&self.name, Isolation::Committed)
    }

    /// Waits until so many more records are decided.
    ///
    /// # Panics
    /// They don't come.
    pub fn wait_for_progress(&self, client: &Client, cluster: &ConnectCluster, records: i64) {
        let goal = self.end(client) + records;
        wait_until(
            &format!("{} goes on to {goal}", self.name),
            PATIENCE,
            || self.end(client) >= goal,
            || format!("it is at {}; the workers' files are in {}", self.end(client), cluster.path("").display()),
        );
    }

    /// Stops the connector at a slot's worker.
    ///
    /// # Panics
    /// It doesn't stop.
    pub fn stop(&self, cluster: &ConnectCluster, slot: usize) {
        let path = format!("/connectors/{}/stop", self.name);
        cluster.rest(slot).must(204, "PUT", &path, None);
        cluster.wait_for_status(slot, &self.name, "is stopped", PATIENCE, |status| status.all_are("STOPPED", 0));
    }

    /// Audits what all have written, when this connector and all others of the cluster are stopped.
    ///
    /// # Panics
    /// Someone writes, or the auditor is not content.
    pub fn audit(&self, client: &Client, cluster: &ConnectCluster) -> Report {
        self.wait_until_still(client, cluster);
        let report = client.audit_topic(&self.name, Check::Sequence, &cluster.offsets_topic(), &self.name);
        println!("{report}");
        assert!(report.is_content(), "the auditor is not content:\n{report}");
        assert!(report.records.visible > 0, "an empty topic proves nothing");
        report
    }

    /// Waits until nobody writes and nothing is open, in the topic and in that of the offsets: a connector is said to be stopped before its tasks are, a
    /// coordinator answers when a commit is decided and writes the markers after that, and a task that was cancelled leaves its transaction to the next
    /// fencing or to the time limit.
    ///
    /// # Panics
    /// Someone writes on.
    pub fn wait_until_still(&self, client: &Client, cluster: &ConnectCluster) {
        let topics = [self.name.clone(), cluster.offsets_topic()];
        let ends = || {
            let of = |isolation| topics.each_ref().map(|topic| client.end(topic, isolation));
            (of(Isolation::Uncommitted), of(Isolation::Committed))
        };
        let mut last = (ends(), Instant::now());
        let still = || {
            let now = ends();
            if now != last.0 || now.0 != now.1 {
                last = (now, Instant::now());
            }
            last.1.elapsed() >= STILL
        };
        wait_until(&format!("{} is still", self.name), PATIENCE, still, || format!("ends {:?}", ends()));
    }
}
