//! The connector that both sides run: numbers at a rate, or none at all.

use serde_json::{Value, json};

/// A sequence connector whose task `t` writes to partition `t` of a topic.
#[derive(Debug, Clone)]
pub struct Load {
    /// Its name, and its topic's.
    pub name: String,
    /// How many.
    pub tasks: u32,
    config: Value,
}

impl Load {
    /// Tasks that go on for ever at a rate; each record is a transaction of its own.
    #[must_use]
    pub fn steady(name: &str, tasks: u32, per_second: u32) -> Self {
        let mut load = Self::named(name, name, tasks);
        load.config["rate.per.second"] = per_second.to_string().into();
        load
    }

    /// Tasks that write one record, so that all that a task needs is there, and then have nothing to do.
    #[must_use]
    pub fn idle(name: &str, topic: &str, tasks: u32) -> Self {
        let mut load = Self::named(name, topic, tasks);
        load.config["records.max"] = "1".into();
        load
    }

    fn named(name: &str, topic: &str, tasks: u32) -> Self {
        let config = json!({
            "connector.class": "io.oncewire.connect.sequence.SequenceSourceConnector",
            "topic": topic,
            "tasks": tasks.to_string(),
            "tasks.max": tasks.to_string(),
            "partitions": tasks.to_string(),
            "exactly.once.support": "required",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": tasks.to_string(),
        });
        Self { name: name.to_owned(), tasks, config }
    }

    /// For POST /connectors.
    #[must_use]
    pub fn config(&self) -> &Value {
        &self.config
    }
}
