//! A worker in this process, a dev broker, and a source that does what a script says. What is visible is read back read_committed.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses its part of it")]

mod herd;
mod script;

pub use herd::{Gate, Herd, Told};
pub use script::{Event, Script, Step, forget, record, register};

use oncewire_api::plugin::{Plugin, PluginFactory, PluginRegistry};
use oncewire_api::{Properties, StopTrigger, stop_signal};
use oncewire_client::batch::Record;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use oncewire_dev_broker::{DevBroker, DevBrokerConfig};
use oncewire_worker::config::properties::ConnectorFile;
use oncewire_worker::config::worker::WorkerConfig;
use oncewire_worker::herder::standalone::{self, Ends, StartError};
use oncewire_worker::herder::supervisor::TaskState;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A broker and the names of one test.
pub struct Stand {
    pub broker: DevBroker,
    pub worker: Properties,
    pub connector: Properties,
    id: String,
}

/// A worker that runs.
pub struct Running {
    stop: StopTrigger,
    herder: JoinHandle<Result<Ends, StartError>>,
}

pub fn map(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

impl Stand {
    pub async fn new() -> Self {
        Self::with(DevBrokerConfig::default()).await
    }

    pub async fn with(mut config: DevBrokerConfig) -> Self {
        config.broker.auto_create_topics = true;
        let broker = DevBroker::start(config).await.expect("the dev broker starts on a free port");
        let id = uuid::Uuid::new_v4().to_string();
        let bootstrap = broker.bootstrap();
        let worker = map(&[
            ("bootstrap.servers", bootstrap.as_str()),
            ("group.id", "g"),
            ("key.converter", "String"),
            ("value.converter", "String"),
            ("offset.storage.partitions", "3"),
            ("task.restart.backoff.ms", "10"),
            ("task.shutdown.graceful.timeout.ms", "2000"),
            ("request.timeout.ms", "2000"),
            ("producer.request.timeout.ms", "2000"),
        ]);
        let connector = map(&[("name", "c"), ("connector.class", "ScriptedSource"), ("script.id", id.as_str())]);
        Self { broker, worker, connector, id }
    }

    /// Starts a worker whose task does this. An earlier worker's events stay in the list.
    pub fn run(&self, script: impl Into<Script>) -> Running {
        register(&self.id, script.into());
        let (stop, signal) = stop_signal();
        let worker =
            WorkerConfig::standalone("worker", self.worker.clone()).expect("the worker's properties are right");
        let file = ConnectorFile { name: "c".into(), config: self.connector.clone(), paused: false };
        let herder = tokio::spawn(standalone::run(worker, vec![file], registry(), signal));
        Running { stop, herder }
    }

    /// What the scripted task saw and did, oldest first.
    pub fn events(&self) -> Vec<Event> {
        script::events(&self.id)
    }

    /// Waits until the events satisfy `done`.
    pub async fn until(&self, what: &str, done: impl Fn(&[Event]) -> bool) {
        let waiting = async {
            while !done(&self.events()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            let events = self.events();
            panic!("waited in vain for {what}; the last events: {:?}", &events[events.len().saturating_sub(20)..]);
        }
    }

    /// Waits until the task has been told that what it sent so far is committed, as often as this.
    pub async fn until_commits(&self, count: usize) {
        let commits = |events: &[Event]| events.iter().filter(|event| **event == Event::Commit).count();
        self.until("commits", |events| commits(events) >= count).await;
    }

    pub async fn cluster(&self) -> Cluster {
        let config = ClientConfig::new(&self.broker.bootstrap()).expect("an address");
        Cluster::connect(config).await.expect("the dev broker answers")
    }

    /// The values of a topic that read_committed shows, a line each; none when there is no such topic.
    pub async fn visible(&self, topic: &str) -> Vec<String> {
        self.read(topic).await.into_iter().map(|(_, value)| value.unwrap_or_else(|| "null".into())).collect()
    }

    /// Waits until what read_committed shows of a topic satisfies `done`.
    pub async fn until_visible(&self, topic: &str, done: impl Fn(&[String]) -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let seen = self.visible(topic).await;
            if done(&seen) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "waited in vain; {topic} shows {seen:?}");
        }
    }

    /// Keys and values of the offsets topic that read_committed shows.
    pub async fn stored_offsets(&self) -> Vec<(String, Option<String>)> {
        self.read("g-offsets").await
    }

    /// Keys and values of a topic that read_committed shows.
    pub async fn read(&self, topic: &str) -> Vec<(String, Option<String>)> {
        let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
        let records = self.records(topic).await.into_iter();
        records
            .map(|record| (record.key.as_ref().map(text).unwrap_or_default(), record.value.as_ref().map(text)))
            .collect()
    }

    /// The records of a topic that read_committed shows.
    pub async fn records(&self, topic: &str) -> Vec<Record> {
        let cluster = self.cluster().await;
        let options = ReaderOptions { isolation: Isolation::Committed, ..ReaderOptions::default() };
        let mut reader = match LogReader::open(&cluster, topic, options).await {
            Ok(reader) => reader,
            Err(Error::UnknownTopic { .. }) => {
                cluster.close().await;
                return Vec::new();
            }
            Err(error) => panic!("{error}"),
        };
        let mut found = Vec::new();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        reader.read_to_end(deadline, |_, records| found.extend(records)).await.expect("the topic is read to its end");
        cluster.close().await;
        found
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        forget(&self.id);
    }
}

impl Running {
    /// Stops in good order and tells how the only task ended.
    pub async fn stop(self) -> TaskState {
        self.stop.stop();
        self.ended().await
    }

    /// Waits for the only task to end by itself.
    pub async fn ended(self) -> TaskState {
        let ends = self.ends().await.expect("the worker had started");
        ends.into_iter().next().expect("there is one task").1
    }

    /// Waits for the herder.
    pub async fn ends(self) -> Result<Ends, StartError> {
        tokio::time::timeout(PATIENCE, self.herder)
            .await
            .expect("the worker ends in time")
            .expect("the herder does not panic")
    }

    /// Drops everything at once, as SIGKILL would: nothing is closed in good order.
    pub fn kill(self) {
        self.herder.abort();
    }

    pub fn ask_to_stop(&self) {
        self.stop.stop();
    }
}

pub fn registry() -> PluginRegistry {
    let scripted = Plugin {
        class: "test.ScriptedSourceConnector",
        version: "1",
        summary: "does what a test says",
        factory: PluginFactory::Source(|| Box::<script::ScriptedConnector>::default()),
    };
    PluginRegistry::new(oncewire_plugins::converters().into_iter().chain([scripted]))
}
