//! Keeps out zombies that write without transactions: lets the leaders of all partitions that a connector has written know a
//! newer epoch of the transactional id under which they wrote. Why and how far this goes: `docs/decisions/0007`.

use crate::acl::{self, Resource};
use crate::error::TaskFailure;
use oncewire_client::admin::Admin;
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::ProducerIdentity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Stored as the transaction timeout of an id that is fenced without a new owner: 60 s, as for every fencing.
const FENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long all of it may take: 90 s, as a round of fencing.
const FENCE_PATIENCE: Duration = Duration::from_secs(90);

/// Carries the epoch of one id to every partition of these topics; topics that are gone need none.
///
/// # Errors
/// The brokers' refusal, naming the partition; worth a new start unless it is a matter of permissions.
pub(crate) async fn carry(
    cluster: &Cluster,
    transactional_id: &str,
    identity: ProducerIdentity,
    topics: &BTreeSet<String>,
) -> Result<(), TaskFailure> {
    let mut partitions: Vec<(Arc<str>, Vec<i32>)> = Vec::with_capacity(topics.len());
    for topic in topics {
        if let Some(metadata) = cluster.topic(topic).await? {
            partitions.push((topic.as_str().into(), metadata.partitions.keys().copied().collect()));
        }
    }
    let count: usize = partitions.iter().map(|(_, indexes)| indexes.len()).sum();
    Admin::new(cluster.clone()).carry_epoch(transactional_id, identity, &partitions).await.map_err(|error| {
        let advice = topics.iter().find(|topic| error.to_string().contains(topic.as_str())).and_then(|topic| {
            acl::advice(error.code()?, &Resource::DataTopic(topic)).map(|advice| format!("; {advice}"))
        });
        let failure = TaskFailure::from(error);
        let message = format!("{failure}{}", advice.unwrap_or_default());
        failure.with_message(message)
    })?;
    tracing::info!(transactional_id, epoch = identity.epoch, partitions = count, "partitions know the new epoch");
    Ok(())
}

/// Fences ids that have no new owner, and carries their new epochs.
///
/// # Errors
/// One line that names the id.
pub(crate) async fn fence_out(cluster: &Cluster, ids: &[String], topics: &BTreeSet<String>) -> Result<(), String> {
    let admin = Admin::new(cluster.clone());
    let fenced: BTreeMap<_, _> = admin.fence_producers(ids, FENCE_TIMEOUT, FENCE_PATIENCE).await;
    for (id, outcome) in fenced {
        let named = |problem: String| format!("transactional id {id:?} can't be fenced: {problem}");
        let owner = outcome.map_err(|error| named(error.to_string()))?;
        let identity = ProducerIdentity { id: owner.producer_id, epoch: owner.epoch };
        carry(cluster, &id, identity, topics).await.map_err(|failure| named(failure.to_string()))?;
    }
    Ok(())
}
