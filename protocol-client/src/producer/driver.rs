//! The driver task.

use super::error::ProducerError;
use super::shared::Shared;
use crate::cluster::Cluster;
use crate::config::ProducerConfig;
use std::sync::Arc;

pub(crate) async fn run(shared: Arc<Shared>, _cluster: Cluster, _config: ProducerConfig) {
    loop {
        let drained = shared.step(std::iter::empty());
        if drained.closed {
            return;
        }
        shared.woken().await;
    }
}

/// The number of a topic's partitions.
pub(crate) async fn partition_count(cluster: &Cluster, topic: &str) -> Result<u32, ProducerError> {
    let unknown = |reason: String| ProducerError::Metadata { topic: topic.into(), reason };
    match cluster.topic(topic).await {
        Ok(Some(metadata)) => Ok(u32::try_from(metadata.partitions.len()).unwrap_or(u32::MAX)),
        Ok(None) => Err(unknown("the topic does not exist; create it, or let the connector create it".to_owned())),
        Err(error) => Err(unknown(error.to_string())),
    }
}
