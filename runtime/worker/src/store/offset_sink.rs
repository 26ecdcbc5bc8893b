//! Where the offsets of a task without transactions go: a file, the worker's topic, a topic of its connector's own, or the
//! last two in the order of `task_offsets.rs`.

use super::connector_offsets::StoredRecord;
use super::offset_file::OffsetFile;
use super::topic_writer::{TopicWriter, stage};
use oncewire_client::producer::PlainProducer;
use std::sync::Arc;

/// See the module. Clones write to the same place.
#[derive(Clone)]
pub enum OffsetSink {
    /// The standalone worker's file.
    File(Arc<OffsetFile>),
    /// The worker's topic alone.
    Global(TopicWriter),
    /// The connector's own topic, through the task's producer; behind it perhaps the worker's.
    Own {
        /// The topic.
        topic: Arc<str>,
        /// Its partitions.
        partitions: u32,
        /// The task's producer.
        producer: Arc<PlainProducer>,
        /// The worker's topic.
        behind: Option<TopicWriter>,
    },
}

impl OffsetSink {
    /// Stores these records; `None` removes.
    ///
    /// # Errors
    /// One line for the operator. Some may be stored then; storing them again is right.
    ///
    /// # Cancel safety
    /// What was handed over is stored all the same.
    pub async fn store(self, records: Vec<StoredRecord>) -> Result<(), String> {
        match self {
            Self::File(file) => tokio::task::spawn_blocking(move || file.store(records))
                .await
                .unwrap_or_else(|error| Err(error.to_string())),
            Self::Global(writer) => writer.write(records).await,
            Self::Own { topic, partitions, producer, behind } => {
                if let Some(behind) = &behind {
                    let removals = records.iter().filter(|(_, value)| value.is_none()).cloned().collect();
                    behind.write(removals).await?;
                }
                let named = |problem: String| format!("offsets topic {topic:?}: {problem}");
                let mut batches = producer.stage();
                stage(&mut batches, &topic, partitions, &records).map_err(named)?;
                let delivery = producer.send(batches.seal()).await.map_err(|error| named(error.to_string()))?;
                delivery.wait().await.map_err(|error| named(error.to_string()))?;
                if let Some(behind) = &behind {
                    behind.copy(records.into_iter().filter(|(_, value)| value.is_some()).collect());
                }
                Ok(())
            }
        }
    }
}
