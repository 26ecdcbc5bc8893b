//! The tests' own eyes on a cluster, without async: where a topic ends, what is in it, and the auditor's verdict.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use oncewire_audit::{AuditPlan, Check, OffsetsPlan, Report, audit};
use oncewire_client::admin::{Admin, NewTopic, OffsetSpec};
use oncewire_client::batch::Record;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use tokio::runtime::Runtime;

use crate::job::Job;
use crate::process::{LOOK_EVERY, Process};

/// How long an audit of a test's topic may take.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long markers may take on a busy machine; far less than a transaction's time limit.
const MARKERS_PATIENCE: Duration = Duration::from_secs(10);

/// A connection to the cluster under test, for blocking use.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    cluster: Cluster,
}

impl Client {
    /// Connects.
    ///
    /// # Panics
    /// The broker cannot be reached.
    pub fn connect(bootstrap: &str) -> Self {
        let config = ClientConfig::new(bootstrap).expect("a test's address is one");
        Self::connect_with(config).unwrap_or_else(|error| panic!("the broker answers: {error}"))
    }

    /// Connects as a configuration says.
    ///
    /// # Errors
    /// The client's own.
    ///
    /// # Panics
    /// No thread can be made.
    pub fn connect_with(config: ClientConfig) -> Result<Self, Error> {
        let runtime = Runtime::new().expect("threads can be made");
        let cluster = runtime.block_on(Cluster::connect(config))?;
        Ok(Client { runtime, cluster })
    }

    /// Makes a topic.
    ///
    /// # Panics
    /// The broker refuses.
    pub fn make_topic(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let topic = NewTopic {
            name: name.to_owned(),
            partitions: Some(partitions),
            replication_factor: Some(1),
            configs: configs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        self.block_on(self.admin().create_topic(&topic)).unwrap_or_else(|error| panic!("{name} can be made: {error}"));
    }

    /// Runs a future to its end, for what this type has no method for.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Administrative requests.
    pub fn admin(&self) -> Admin {
        Admin::new(self.cluster.clone())
    }

    /// The ends of all partitions in one number; 0 while there is no such topic. With [`Isolation::Committed`] they are the last stable offsets.
    ///
    /// # Panics
    /// The broker refuses.
    pub fn end(&self, topic: &str, isolation: Isolation) -> i64 {
        self.ends(topic, isolation).values().sum()
    }

    /// The end of each partition; none while there is no such topic.
    ///
    /// # Panics
    /// The broker refuses.
    pub fn ends(&self, topic: &str, isolation: Isolation) -> BTreeMap<i32, i64> {
        match self.block_on(self.admin().list_offsets(topic, None, OffsetSpec::Latest, isolation)) {
            Ok(offsets) => offsets.into_iter().map(|(partition, listed)| (partition, listed.offset)).collect(),
            Err(Error::UnknownTopic { .. }) => BTreeMap::new(),
            Err(error) => panic!("the end of {topic} can be looked up: {error}"),
        }
    }

    /// Waits until the last stable offsets of all partitions together are at least `offset`; returns it.
    ///
    /// # Panics
    /// `worker` ends meanwhile, or the time is over.
    pub fn wait_for_stable_end(&self, topic: &str, offset: i64, worker: &mut Process, patience: Duration) -> i64 {
        let deadline = Instant::now() + patience;
        loop {
            let end = self.end(topic, Isolation::Committed);
            if end >= offset {
                return end;
            }
            let ended = worker.ended();
            assert!(
                ended.is_none(),
                "the worker ended with {ended:?} at offset {end} of {offset}; it wrote:\n{}",
                worker.log()
            );
            let log = || worker.log();
            assert!(
                Instant::now() < deadline,
                "{topic} is at {end} of {offset} after {patience:?}; the worker wrote:\n{}",
                log()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until `count` records are visible.
    ///
    /// # Panics
    /// `worker` ends meanwhile, or the time is over.
    pub fn wait_for_visible(&self, topic: &str, count: u64, worker: &mut Process, patience: Duration) {
        let deadline = Instant::now() + patience;
        // Each visible record takes an offset, so the topic need not be read before it is that long.
        let at_least = i64::try_from(count).expect("a test's topic is short");
        self.wait_for_stable_end(topic, at_least, worker, patience);
        self.block_on(async {
            let mut reader =
                LogReader::open(&self.cluster, topic, ReaderOptions::default()).await.expect("the topic is there");
            let mut seen = 0;
            while seen < count {
                let event = tokio::time::timeout_at(deadline.into(), reader.next()).await;
                let Ok(event) = event else {
                    panic!(
                        "{seen} of {count} records are visible after {patience:?}; the worker wrote:\n{}",
                        worker.log()
                    );
                };
                if let oncewire_client::reader::ReaderEvent::Records { records, .. } =
                    event.expect("the topic can be read")
                {
                    seen += records.len() as u64;
                }
                let ended = worker.ended();
                assert!(
                    seen >= count || ended.is_none(),
                    "the worker ended with {ended:?}; it wrote:\n{}",
                    worker.log()
                );
            }
        });
    }

    /// Waits until no transaction of the job is open, in its topic and in its offsets topic, after its worker has ended in order.
    ///
    /// A coordinator answers a commit when it is decided and writes the markers after that. A transaction that nobody ended would stay for a minute.
    ///
    /// # Panics
    /// One stays open.
    pub fn wait_until_nothing_is_open(&self, job: &Job, worker: &Process) {
        let deadline = Instant::now() + MARKERS_PATIENCE;
        for topic in [job.topic(), job.offsets_topic()] {
            while self.end(&topic, Isolation::Uncommitted) > self.end(&topic, Isolation::Committed) {
                let log = || worker.log();
                assert!(Instant::now() < deadline, "no transaction is open in {topic}; the worker wrote:\n{}", log());
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }

    /// All visible records; those of one partition in the order of their offsets.
    ///
    /// # Panics
    /// The topic cannot be read.
    pub fn records(&self, topic: &str, isolation: Isolation) -> Vec<Record> {
        self.block_on(async {
            let options = ReaderOptions { isolation, ..ReaderOptions::default() };
            let mut reader = LogReader::open(&self.cluster, topic, options).await.expect("the topic is there");
            let mut all = Vec::new();
            let deadline = Instant::now() + AUDIT_TIMEOUT;
            reader
                .read_to_end(deadline.into(), |_, records| all.extend(records))
                .await
                .expect("the topic can be read to its end");
            all
        })
    }

    /// The auditor's report on a job: its lines against its file, its offsets against both.
    ///
    /// # Panics
    /// The audit is not possible.
    pub fn audit(&self, job: &Job) -> Report {
        self.audit_against(job, Check::Lines(job.file()))
    }

    /// The auditor's report on a job whose content is not a file.
    ///
    /// # Panics
    /// The audit is not possible.
    pub fn audit_against(&self, job: &Job, check: Check) -> Report {
        self.audit_topic(&job.topic(), check, &job.offsets_topic(), &job.connector_name())
    }

    /// The auditor's report on a topic that one connector has written, with its offsets.
    ///
    /// # Panics
    /// The audit is not possible.
    pub fn audit_topic(&self, topic: &str, check: Check, offsets_topic: &str, connector: &str) -> Report {
        let offsets = OffsetsPlan { topic: offsets_topic.to_owned(), connector: connector.to_owned() };
        let plan = AuditPlan { topic: topic.to_owned(), check, offsets: Some(offsets), timeout: AUDIT_TIMEOUT };
        self.block_on(audit(&self.cluster, &plan, |_| {})).unwrap_or_else(|error| panic!("the audit runs: {error}"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.runtime.block_on(self.cluster.close());
    }
}
