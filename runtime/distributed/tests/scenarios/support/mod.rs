//! Several distributed workers in this process on one dev broker: each in a runtime of its own, so that a worker can be killed
//! as SIGKILL would, and spoken to over its REST interface as any client would.

mod rest;
mod script;

pub use rest::{Rest, tasks_of};
pub use script::Stage;

use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{Properties, StopTrigger, stop_signal};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::producer::{PlainConfig, PlainProducer};
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use oncewire_dev_broker::{BrokerSettings, DevBroker, DevBrokerConfig};
use oncewire_distributed::loggers::{LevelSink, Loggers};
use oncewire_distributed::prepare;
use oncewire_plugins::providers::Secrets;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often it looks meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The topic of configurations, of offsets, of states, and the one that scripted connectors write to.
pub const CONFIGS: &str = "connect-configs";
pub const OFFSETS: &str = "connect-offsets";
pub const STATUSES: &str = "connect-status";
pub const DATA: &str = "t";

/// A broker, and what its workers have in common.
pub struct Group {
    pub broker: DevBroker,
    pub properties: Properties,
    /// What config providers gave to its workers.
    pub secrets: Secrets,
    /// What the scripted connector of this test does and saw.
    pub stage: Arc<Stage>,
}

/// A worker that runs.
pub struct Node {
    pub rest: Rest,
    stop: StopTrigger,
    ended: JoinHandle<Result<(), String>>,
    runtime: Option<Runtime>,
}

struct Silent;

impl LevelSink for Silent {
    fn apply(&self, _levels: &BTreeMap<String, String>) {}
}

pub fn map(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn registry() -> PluginRegistry {
    let sources = [script::plugin(), oncewire_connector_file::plugin(), oncewire_connector_sequence::plugin()];
    PluginRegistry::new(oncewire_plugins::converters().into_iter().chain(sources))
}

impl Group {
    /// Exactly-once workers that divide a lost worker's work at once.
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The same with these properties of the workers.
    pub async fn with(more: &[(&str, &str)]) -> Self {
        Self::on(BrokerSettings::default(), more).await
    }

    /// The same on a broker with these settings.
    pub async fn on(settings: BrokerSettings, more: &[(&str, &str)]) -> Self {
        let broker = BrokerSettings {
            group_session_timeout_min: Duration::ZERO,
            transaction_scan_interval: Duration::from_millis(100),
            ..settings
        };
        let config = DevBrokerConfig { broker, ..DevBrokerConfig::default() };
        let broker = DevBroker::start(config).await.expect("the dev broker starts on a free port");
        let bootstrap = broker.bootstrap();
        let mut properties = map(&[
            ("bootstrap.servers", bootstrap.as_str()),
            ("group.id", "g"),
            ("key.converter", "String"),
            ("value.converter", "String"),
            ("config.storage.topic", CONFIGS),
            ("offset.storage.topic", OFFSETS),
            ("status.storage.topic", STATUSES),
            ("config.storage.replication.factor", "1"),
            ("offset.storage.replication.factor", "1"),
            ("status.storage.replication.factor", "1"),
            ("offset.storage.partitions", "2"),
            ("status.storage.partitions", "2"),
            ("listeners", "http://127.0.0.1:0"),
            ("exactly.once.source.support", "enabled"),
            ("scheduled.rebalance.max.delay.ms", "0"),
            ("heartbeat.interval.ms", "100"),
            // So long that a worker which gets no processor for a while, among all the tests, does not lose its work.
            ("session.timeout.ms", "30000"),
            ("rebalance.timeout.ms", "30000"),
            ("worker.sync.timeout.ms", "20000"),
            ("offset.flush.interval.ms", "50"),
            ("task.restart.backoff.ms", "20"),
            ("task.shutdown.graceful.timeout.ms", "2000"),
        ]);
        properties.extend(map(more));
        Self { broker, properties, secrets: Secrets::default(), stage: Stage::new() }
    }

    /// Starts a worker and waits until it has joined.
    pub async fn join(&self) -> Node {
        self.join_with(&[]).await
    }

    /// The same with these properties of its own.
    pub async fn join_with(&self, more: &[(&str, &str)]) -> Node {
        let node = self.start(more).await.expect("the worker starts");
        eventually("the worker joins", async || {
            let health = node.rest.get("/health").await;
            if health.status == 200 { Ok(()) } else { Err(health.to_string()) }
        })
        .await;
        node
    }

    /// Starts a worker; the error is what a person would be told.
    pub async fn start(&self, more: &[(&str, &str)]) -> Result<Node, String> {
        let mut properties = self.properties.clone();
        properties.extend(map(more));
        let loggers = Loggers::new("info", Arc::new(Silent));
        let prepared =
            prepare("worker", &properties, registry(), loggers, &self.secrets).map_err(|error| error.to_string())?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().map_err(|error| error.to_string())?;
        let (stop, signal) = stop_signal();
        let (told, url) = oneshot::channel();
        let ended = runtime.spawn(async move {
            let running = prepared.start(signal).await.map_err(|error| error.to_string())?;
            told.send(running.url().to_owned()).map_err(|_| "nobody waits any more".to_owned())?;
            running.ended().await.map_err(|error| error.to_string())
        });
        let url = tokio::time::timeout(PATIENCE, url).await.map_err(|_| "it does not start in time".to_owned())?;
        match url {
            Ok(url) => Ok(Node { rest: Rest::new(&url), stop, ended, runtime: Some(runtime) }),
            Err(_) => {
                let ended = ended.await.map_err(|error| error.to_string())?;
                runtime.shutdown_background();
                Err(ended.err().unwrap_or_else(|| "it ended".to_owned()))
            }
        }
    }

    /// A configuration of the scripted connector.
    pub fn scripted(&self, more: &[(&str, &str)]) -> Value {
        let base = map(&[
            ("connector.class", script::CLASS),
            ("script.id", self.stage.id()),
            ("tasks.max", "10"),
            ("topic", DATA),
            ("topic.creation.default.partitions", "1"),
            ("topic.creation.default.replication.factor", "1"),
        ]);
        let config: Properties = base.into_iter().chain(map(more)).collect();
        json!(config)
    }

    pub async fn cluster(&self) -> Cluster {
        let config = ClientConfig::new(&self.broker.bootstrap()).expect("an address");
        Cluster::connect(config).await.expect("the dev broker answers")
    }

    /// Keys and values of a topic in the order of each partition; nothing where there is no such topic.
    pub async fn read(&self, topic: &str, isolation: Isolation) -> Vec<(String, Option<String>)> {
        let cluster = self.cluster().await;
        let options = ReaderOptions { isolation, ..ReaderOptions::default() };
        let mut reader = match LogReader::open(&cluster, topic, options).await {
            Ok(reader) => reader,
            Err(Error::UnknownTopic { .. }) => {
                cluster.close().await;
                return Vec::new();
            }
            Err(error) => panic!("{error}"),
        };
        let mut found = Vec::new();
        let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
        let read = reader.read_to_end(Instant::now() + PATIENCE, |_, records| {
            let pairs = records.iter();
            let pairs = pairs
                .map(|record| (record.key.as_ref().map(text).unwrap_or_default(), record.value.as_ref().map(text)));
            found.extend(pairs);
        });
        read.await.expect("the topic is read to its end");
        cluster.close().await;
        found
    }

    /// Writes a record as a stranger would.
    pub async fn write(&self, topic: &str, key: &str, value: &str) {
        let cluster = self.cluster().await;
        let producer = PlainProducer::new(cluster.clone(), PlainConfig::default());
        let mut records = producer.stage();
        records
            .append(&topic.into(), 0, 1_700_000_000_000, Some(key.as_bytes()), Some(value.as_bytes()), &[])
            .expect("a record of a few bytes");
        let delivery = producer.send(records.seal()).await.expect("there is room");
        tokio::time::timeout(PATIENCE, delivery.wait()).await.expect("it is answered").expect("it is written");
        producer.close(PATIENCE).await.expect("it closes");
        cluster.close().await;
    }

    /// The last committed value of each key of a topic.
    pub async fn newest(&self, topic: &str) -> BTreeMap<String, Option<String>> {
        self.read(topic, Isolation::Committed).await.into_iter().collect()
    }

    /// What read_committed shows of the scripted connector's records, in order: task and number.
    pub async fn shown(&self) -> Vec<(u32, u64)> {
        let values = self.read(DATA, Isolation::Committed).await.into_iter().filter_map(|(_, value)| value);
        let shown = values.map(|value| {
            let (task, number) = value.split_once('/').expect("task/number");
            (task.parse().expect("a task"), number.parse().expect("a number"))
        });
        shown.collect()
    }

    /// Per task the highest number that read_committed shows.
    ///
    /// # Panics
    /// A number is missing, doubled or out of order.
    pub async fn delivered(&self) -> BTreeMap<u32, u64> {
        let mut highest = BTreeMap::new();
        for (task, number) in self.shown().await {
            let before = highest.insert(task, number).unwrap_or(0);
            assert_eq!(number, before + 1, "task {task} wrote {number} after {before}");
        }
        highest
    }

    /// Waits until each of the tasks 0 to `tasks` has delivered `more` records beyond what is there now.
    pub async fn until_delivered(&self, tasks: u32, more: u64) {
        let start = self.delivered().await;
        self.until(tasks, |task| start.get(&task).copied().unwrap_or(0) + more).await;
    }

    /// Waits until each of the tasks 0 to `tasks` has delivered its records up to this number.
    pub async fn until_number(&self, tasks: u32, number: u64) {
        self.until(tasks, |_| number).await;
    }

    async fn until(&self, tasks: u32, due: impl Fn(u32) -> u64) {
        eventually("records", async || {
            let now = self.delivered().await;
            let all = (0..tasks).all(|task| now.get(&task).copied().unwrap_or(0) >= due(task));
            if all { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
    }

    /// Stops workers and broker in good order.
    pub async fn close(self, nodes: impl IntoIterator<Item = Node>) {
        for node in nodes {
            node.stop().await;
        }
        self.broker.shutdown().await;
    }
}

impl Node {
    /// `host:port`.
    pub fn id(&self) -> &str {
        self.rest.authority()
    }

    /// Stops in good order.
    pub async fn stop(mut self) {
        self.stop.stop();
        let ended = tokio::time::timeout(PATIENCE, &mut self.ended).await.expect("the worker ends in time");
        assert_eq!(ended.expect("the worker does not panic"), Ok(()));
    }

    /// Waits until it has ended by itself; what a person is told.
    pub async fn refused(mut self) -> String {
        let ended = tokio::time::timeout(PATIENCE, &mut self.ended).await.expect("the worker ends by itself");
        ended.expect("the worker does not panic").expect_err("it says why it ends")
    }

    /// Drops everything at once, as SIGKILL would: nothing is closed in good order.
    pub fn kill(mut self) {
        self.drop_runtime();
    }

    fn drop_runtime(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.drop_runtime();
    }
}

/// Waits until `check` is content.
///
/// # Panics
/// It never is; the message has its last words.
pub async fn eventually(what: &str, mut check: impl AsyncFnMut() -> Result<(), String>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Err(problem) = check().await else { return };
        assert!(Instant::now() < deadline, "waited in vain for {what}: {problem}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
