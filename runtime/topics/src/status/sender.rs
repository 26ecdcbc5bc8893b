//! The one task that writes to the status topic.
//!
//! It takes all that waits, writes it with one send for each partition, and waits for the outcome. What failed for a reason that
//! may pass waits again if it still matters; what the brokers refuse is logged and given up, as in Java.

use super::topic::Shared;
use crate::clock::now_ms;
use oncewire_client::producer::{Delivery, PlainProducer, ProducerError, partition_for_key};
use oncewire_client::wire::error_code::{Retry, retry};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The pause after a failure, so that an outage does not keep the worker busy.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// How long the producer may take to end.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// Records by partition.
type Partitions = BTreeMap<u32, Vec<(String, Option<Vec<u8>>)>>;

pub(super) async fn run(
    topic: Arc<str>,
    producer: PlainProducer,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            biased;
            // Also when the handle is gone.
            _ = stopped.wait_for(|stopped| *stopped) => break,
            () = round(&topic, &producer, &shared) => {}
        }
    }
    if let Err(error) = producer.close(CLOSE_PATIENCE).await {
        tracing::debug!("the status topic's producer was stopped where it stood: {error}");
    }
}

/// Waits for something to write, and writes it.
async fn round(topic: &Arc<str>, producer: &PlainProducer, shared: &Shared) {
    shared.wait(|outbox| outbox.has_waiting()).await;
    let writes = shared.lock().outbox.start();
    let failed = match producer.partitions(topic).await {
        Ok(count) => send(topic, producer, by_partition(writes, count)).await,
        Err(error) => {
            tracing::debug!("the partitions of the status topic are not known: {error}");
            writes.into_iter().map(|(key, _)| key).collect()
        }
    };
    let is_well = failed.is_empty();
    shared.sent(&failed);
    if !is_well {
        sleep(RETRY_PAUSE).await;
    }
}

fn by_partition(writes: Vec<(String, Option<Vec<u8>>)>, count: u32) -> Partitions {
    let mut partitions = Partitions::new();
    for (key, value) in writes {
        partitions.entry(partition_for_key(key.as_bytes(), count)).or_default().push((key, value));
    }
    partitions
}

/// Writes and waits. The keys that may be tried again.
async fn send(topic: &Arc<str>, producer: &PlainProducer, partitions: Partitions) -> Vec<String> {
    let mut failed = Vec::new();
    let mut deliveries: Vec<(Vec<String>, Delivery)> = Vec::new();
    for (partition, writes) in partitions {
        let mut stage = producer.stage();
        let now_ms = now_ms();
        let mut keys = Vec::with_capacity(writes.len());
        for (key, value) in writes {
            match stage.append(topic, partition, now_ms, Some(key.as_bytes()), value.as_deref(), &[]) {
                Ok(()) => keys.push(key),
                Err(error) => tracing::error!(key, "status was not written: {error}"),
            }
        }
        match producer.send(stage.seal()).await {
            Ok(delivery) => deliveries.push((keys, delivery)),
            Err(error) => failed.extend(told(keys, &error)),
        }
    }
    for (keys, delivery) in deliveries {
        if let Err(error) = delivery.wait().await {
            failed.extend(told(keys, &error));
        }
    }
    failed
}

/// Logs a failure; the keys that may be tried again.
fn told(keys: Vec<String>, error: &ProducerError) -> Vec<String> {
    if may_pass(error) {
        tracing::warn!(keys = keys.len(), "statuses were not written yet: {error}");
        return keys;
    }
    tracing::error!(keys = ?keys, "statuses were not written: {error}");
    Vec::new()
}

fn may_pass(error: &ProducerError) -> bool {
    match error {
        ProducerError::Stage(_) => false,
        _ => error.code().is_none_or(|code| !matches!(retry(code), Retry::Final)),
    }
}
