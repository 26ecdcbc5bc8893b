//! The offsets topic in exactly-once mode: made and checked at the start, read to its end by each task, written by the
//! tasks' own transactions.
//!
//! A task reads it after its producer has fenced every older owner, read_committed, up to the end at READ_UNCOMMITTED: an
//! open transaction of someone else makes it wait, never stop short (KIP-618; Materialize issue 9249 tells of the reverse
//! order). The offsets that a task sees are those at its start and those that it has committed since.

use super::connector_offsets::{ConnectorOffsets, write_value};
use super::offset_fold::OffsetFold;
use crate::config::worker::OffsetsTopic;
use crate::error::TaskFailure;
use crate::task::offset_buffer::OffsetBuffer;
use oncewire_api::OffsetReader;
use oncewire_client::admin::{Admin, NewTopic, TopicOutcome};
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::{Stage, partition_for_key};
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use std::sync::Arc;
use std::time::Duration;

/// How long one read of the topic to its end may take before the task gives up and is started again: 5 minutes. It has to
/// be longer than a foreign transaction may stay open (`transaction.timeout.ms`, 60 s by default).
pub const READ_TO_END_MAX: Duration = Duration::from_secs(300);

const CLEANUP_POLICY: &str = "cleanup.policy";

/// Makes the topic if it is missing, and checks that it is compacted only.
///
/// # Errors
/// One line for the operator.
pub async fn ensure(cluster: &Cluster, topic: &OffsetsTopic) -> Result<(), String> {
    let admin = Admin::new(cluster.clone());
    let known = cluster.topic(&topic.name).await.map_err(|error| error.to_string())?;
    if known.is_none() {
        let mut configs = topic.configs.clone();
        configs.insert(CLEANUP_POLICY.to_owned(), "compact".to_owned());
        let wanted = NewTopic {
            name: topic.name.clone(),
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            configs,
        };
        let outcome = admin.create_topic(&wanted).await.map_err(|error| {
            format!(
                "offsets topic {:?} can't be made ({error}); create it with cleanup.policy=compact, or change offset.storage.*",
                topic.name
            )
        })?;
        if outcome == TopicOutcome::Created {
            tracing::info!(topic = topic.name, "offsets topic made");
            return Ok(());
        }
    }
    match admin.topic_configs(&topic.name, &[CLEANUP_POLICY]).await {
        Err(error) => {
            tracing::info!(topic = topic.name, "cleanup.policy of the offsets topic can't be checked: {error}");
            Ok(())
        }
        Ok(configs) => match configs.get(CLEANUP_POLICY).and_then(|entry| entry.value.as_deref()) {
            None | Some("compact") => Ok(()),
            Some(policy) => Err(format!(
                "offsets topic {:?} has cleanup.policy={policy}, which would lose offsets; set it to compact",
                topic.name
            )),
        },
    }
}

/// One connector's offsets, as a task reads and writes them.
#[derive(Debug, Clone)]
pub struct TaskOffsets {
    topic: Arc<str>,
    partitions: u32,
    offsets: ConnectorOffsets,
}

impl TaskOffsets {
    /// Reads the topic to its end.
    ///
    /// # Errors
    /// When the topic is not there or can't be read in [`READ_TO_END_MAX`].
    pub async fn read(cluster: &Cluster, topic: &str, connector: &str) -> Result<Self, TaskFailure> {
        let partitions = match cluster.topic(topic).await? {
            Some(metadata) => u32::try_from(metadata.partitions.len()).unwrap_or(u32::MAX),
            None => return Err(TaskFailure::lost(format!("offsets topic {topic:?} is gone"))),
        };
        let mut fold = OffsetFold::new(connector);
        let options = ReaderOptions { isolation: Isolation::Committed, ..ReaderOptions::default() };
        let mut reader = LogReader::open(cluster, topic, options).await?;
        let deadline = tokio::time::Instant::now() + READ_TO_END_MAX;
        reader
            .read_to_end(deadline, |_partition, records| {
                for record in records {
                    fold.apply(record.key.as_ref(), record.value.as_ref(), record.timestamp_ms);
                }
            })
            .await?;
        Ok(Self { topic: topic.into(), partitions, offsets: ConnectorOffsets::new(connector, fold) })
    }

    /// How many source partitions have an offset.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether no source partition has an offset.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Encodes the offsets as records of the topic.
    ///
    /// # Errors
    /// An offset that can't be stored: the transaction must not be committed without it (KAFKA-14339).
    pub fn stage(&mut self, offsets: &OffsetBuffer, stage: &mut Stage, now_ms: i64) -> Result<(), TaskFailure> {
        let mut value = Vec::new();
        for (partition, offset) in offsets.entries() {
            let key = self.offsets.key(partition)?;
            value.clear();
            if let Some(offset) = offset {
                write_value(partition, offset, &mut value)?;
            }
            let value = offset.is_some().then_some(value.as_slice());
            let kafka_partition = partition_for_key(&key, self.partitions);
            stage.append(&self.topic, kafka_partition, now_ms, Some(&key), value, &[])?;
        }
        Ok(())
    }

    /// Notes offsets whose transaction was committed.
    pub fn committed(&mut self, offsets: &OffsetBuffer, now_ms: i64) {
        self.offsets.committed(offsets, now_ms);
    }

    /// What the task reads its offsets through.
    pub fn reader(&self) -> Arc<dyn OffsetReader> {
        self.offsets.reader()
    }
}
