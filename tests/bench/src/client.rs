//! The bench's own eyes and hands on the cluster, without async.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use oncewire_client::admin::{Admin, NewTopic, OffsetSpec};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use tokio::runtime::Runtime;

/// How long stored offsets may take to be read.
const OFFSETS_MAX: Duration = Duration::from_secs(30);

/// A connection to the cluster.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    cluster: Cluster,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The broker can't be reached.
    pub fn connect(bootstrap: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let config = ClientConfig::new(bootstrap)?;
        let cluster =
            runtime.block_on(Cluster::connect(config)).with_context(|| format!("{bootstrap} does not answer"))?;
        Ok(Self { runtime, cluster })
    }

    /// Makes a topic with one partition and one replica, if it is not there.
    ///
    /// # Errors
    /// The broker refuses.
    pub fn make_topic(&self, name: &str) -> Result<()> {
        let topic = NewTopic {
            name: name.to_owned(),
            partitions: Some(1),
            replication_factor: Some(1),
            configs: BTreeMap::new(),
        };
        self.runtime.block_on(Admin::new(self.cluster.clone()).create_topic(&topic))?;
        Ok(())
    }

    /// Deletes topics, so that a long bench does not fill the disk.
    ///
    /// # Errors
    /// The broker refuses.
    pub fn delete_topics(&self, names: &[String]) -> Result<()> {
        for name in names {
            self.runtime.block_on(Admin::new(self.cluster.clone()).delete_topic(name))?;
        }
        Ok(())
    }

    /// The last stable offset of partition 0.
    ///
    /// # Errors
    /// The broker refuses.
    pub fn committed_end(&self, topic: &str) -> Result<u64> {
        let admin = Admin::new(self.cluster.clone());
        let listed = admin.list_offsets(topic, Some(&[0]), OffsetSpec::Latest, Isolation::Committed);
        let listed = self.runtime.block_on(listed)?;
        let end = listed.get(&0).with_context(|| format!("no partition 0 of {topic} in the answer"))?.offset;
        u64::try_from(end).with_context(|| format!("{topic} ends at {end}"))
    }

    /// Fails unless the source position stored last in a worker's offsets topic is `position`.
    ///
    /// # Errors
    /// It is another, or none; the topic can't be read.
    pub fn check_position(&self, offsets_topic: &str, position: u64) -> Result<()> {
        let read = async {
            let mut reader = LogReader::open(&self.cluster, offsets_topic, ReaderOptions::default()).await?;
            let mut last = None;
            let deadline = Instant::now() + OFFSETS_MAX;
            let keep = |_, records: Vec<oncewire_client::batch::Record>| {
                if let Some(record) = records.into_iter().next_back() {
                    last = record.value;
                }
            };
            reader.read_to_end(deadline.into(), keep).await?;
            anyhow::Ok(last)
        };
        let Some(value) = self.runtime.block_on(read)? else { bail!("{offsets_topic} holds no offset") };
        let stored: serde_json::Value = serde_json::from_slice(&value)?;
        if stored["position"].as_u64() != Some(position) {
            bail!("the committed source offset is {stored}, and the file has {position} bytes");
        }
        Ok(())
    }

    /// Runs a future to its end.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.runtime.block_on(self.cluster.close());
    }
}
