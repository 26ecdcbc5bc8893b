//! The connectors of a run of chaos, what each of them promises, and the auditor's word on it.
//!
//! ```text
//! by-poll, by-interval, lines   exactly once, whatever is done to them
//! plain                         opted out (exactly.once.source=disabled): at least once, so nothing is missing
//! moved                         exactly once too, from wherever its offsets are put (`offset_moves`); it has no end
//! extra                         comes and goes
//! ```

use std::path::Path;
use std::time::Duration;

use oncewire_audit::{Check, Report};
use oncewire_client::reader::Isolation;
use serde_json::{Value, json};

use crate::client::Client;
use crate::worker::wait_until;

/// What each task of a sequence writes in a second while there is chaos.
pub const RATE: u64 = 200;

/// The workers' offsets topic.
pub const OFFSETS_TOPIC: &str = "chaos-offsets";

/// How long a transaction of the last moments may stay open.
const OPEN_PATIENCE: Duration = Duration::from_secs(180);

/// How often a record may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Once.
    ExactlyOnce,
    /// Once or more.
    AtLeastOnce,
}

/// A connector of the test.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its name, which is also its topic's.
    pub name: &'static str,
    /// How many tasks it has at most.
    pub tasks: u32,
    /// Its configuration with so many.
    pub config: Value,
    /// Where its offsets are.
    pub offsets_topic: &'static str,
    /// What it promises.
    pub promise: Promise,
}

impl Load {
    fn sequence(name: &'static str, tasks: u32, more: &Value) -> Self {
        let mut config = json!({
            "connector.class": "io.oncewire.connect.sequence.SequenceSourceConnector",
            "topic": name,
            "tasks": tasks.to_string(),
            "tasks.max": tasks.to_string(),
            "partitions": tasks.to_string(),
            "rate.per.second": RATE.to_string(),
            "batch.size": "50",
            "exactly.once.support": "required",
            "topic.creation.default.replication.factor": "3",
            "topic.creation.default.partitions": tasks.to_string(),
        });
        merge(&mut config, more);
        Load { name, tasks, config, offsets_topic: OFFSETS_TOPIC, promise: Promise::ExactlyOnce }
    }

    /// The configuration with another number of tasks, where it may have several.
    pub fn with_tasks(&self, tasks: u32) -> Value {
        let mut config = self.config.clone();
        if self.tasks > 1 {
            merge(&mut config, &json!({"tasks": tasks.to_string(), "tasks.max": tasks.to_string()}));
        }
        config
    }

    /// The configuration with all tasks and no limit on their rate.
    pub fn unlimited(&self) -> Value {
        let mut config = self.with_tasks(self.tasks);
        if self.tasks > 1 {
            merge(&mut config, &json!({"rate.per.second": "0", "batch.size": "1000"}));
        }
        config
    }

    /// The path of something of it in the REST interface.
    pub fn path(&self, what: &str) -> String {
        format!("/connectors/{}/{what}", self.name)
    }
}

fn merge(config: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
}

/// Those that run to their end: `records` of each task, and the lines of the file.
pub fn loads(file: &Path, records: u64) -> Vec<Load> {
    let records = records.to_string();
    let poll = json!({"transaction.boundary": "poll", "records.max": records});
    let own = json!({
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "300",
        "offsets.storage.topic": "own-offsets",
        "records.max": records,
    });
    let interval = Load { offsets_topic: "own-offsets", ..Load::sequence("by-interval", 3, &own) };
    let file = json!({
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": file,
        "topic": "lines",
        "tasks.max": "1",
        "exactly.once.support": "required",
        "topic.creation.default.replication.factor": "3",
        "topic.creation.default.partitions": "1",
    });
    let lines = Load { tasks: 1, config: file, ..Load::sequence("lines", 1, &Value::Null) };
    let off = json!({"exactly.once.support": "requested", "exactly.once.source": "disabled", "records.max": records});
    let plain = Load { promise: Promise::AtLeastOnce, ..Load::sequence("plain", 2, &off) };
    vec![Load::sequence("by-poll", 4, &poll), interval, lines, plain]
}

/// The one that comes and goes.
pub fn extra() -> Load {
    Load::sequence("extra", 2, &json!({"records.max": "1000000"}))
}

/// The one whose offsets are moved.
pub fn moved() -> Load {
    Load::sequence("moved", 2, &Value::Null)
}

/// The auditor's report, once no transaction is open.
///
/// # Panics
/// One stays open, or the audit is not possible.
pub fn report(client: &Client, load: &Load, check: Check) -> Report {
    wait_until(
        &format!("no transaction is open in {}", load.name),
        OPEN_PATIENCE,
        || client.end(load.name, Isolation::Uncommitted) == client.end(load.name, Isolation::Committed),
        || format!("it is decided up to {}", client.end(load.name, Isolation::Committed)),
    );
    let report = client.audit_topic(load.name, check, load.offsets_topic, load.name);
    println!("{report}");
    report
}

/// The auditor is content with a connector, as far as that goes by its promise. Returns how many records there are, each counted once.
///
/// # Panics
/// It is not content.
pub fn audit(client: &Client, load: &Load, check: Check) -> u64 {
    let report = report(client, load, check);
    match load.promise {
        Promise::ExactlyOnce => {
            assert!(report.is_content(), "the auditor is not content with {}:\n{report}", load.name);
        }
        Promise::AtLeastOnce => {
            let content = &report.content;
            // What is written anew begins with what is there already, so nothing new is out of order.
            let others = [&content.gaps, &content.misordered, &content.foreign];
            assert!(others.iter().all(|tally| tally.count == 0), "{} is not whole:\n{report}", load.name);
            assert!(offsets_agree(&report), "the offsets of {} are others:\n{report}", load.name);
        }
    }
    report.records.visible - report.content.duplicates.count
}

/// Whether the offsets topic says of each task what the data say.
pub fn offsets_agree(report: &Report) -> bool {
    report.offsets.iter().flat_map(|offsets| &offsets.checks).all(|check| check.agrees)
}
