//! The one task that writes to the status topic.
//!
//! It takes all that waits, writes it with one send for each partition, and waits for the outcome. What failed for a reason that
//! may pass waits again if it still matters; what the brokers refuse is logged and given up, as in Java.

use super::topic::Shared;
use crate::clock::now_ms;
use oncewire_client::complaint::Complaint;
use oncewire_client::producer::{Delivery, PlainProducer, ProducerError, partition_for_key};
use oncewire_client::wire::error_code::{Retry, retry};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
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
    let mut complaint = Complaint::default();
    loop {
        tokio::select! {
            biased;
            // Also when the handle is gone.
            _ = stopped.wait_for(|stopped| *stopped) => break,
            () = round(&topic, &producer, &shared, &mut complaint) => {}
        }
    }
    if let Err(error) = producer.close(CLOSE_PATIENCE).await {
        tracing::debug!("the status topic's producer was stopped where it stood: {error}");
    }
}

/// Waits for something to write, and writes it.
async fn round(topic: &Arc<str>, producer: &PlainProducer, shared: &Shared, complaint: &mut Complaint) {
    shared.wait(|outbox| outbox.has_waiting()).await;
    let writes = shared.lock().outbox.start();
    let failed = match producer.partitions(topic).await {
        Ok(count) => send(topic, producer, by_partition(writes, count), complaint).await,
        Err(error) => {
            not_yet(complaint, writes.len(), &error);
            writes.into_iter().map(|(key, _)| key).collect()
        }
    };
    let is_well = failed.is_empty();
    shared.sent(&failed);
    if !is_well {
        sleep(RETRY_PAUSE).await;
    } else if let Some(after) = complaint.over(Instant::now()) {
        tracing::info!("statuses are written again after {:.1} s", after.as_secs_f32());
    }
}

/// Says that statuses wait, unless that was said a moment ago.
fn not_yet(complaint: &mut Complaint, keys: usize, error: &ProducerError) {
    if let Some(told) = complaint.failed(Instant::now(), &error.to_string()) {
        tracing::warn!(keys, "statuses were not written yet{told}: {error}");
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
async fn send(
    topic: &Arc<str>,
    producer: &PlainProducer,
    partitions: Partitions,
    complaint: &mut Complaint,
) -> Vec<String> {
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
            Err(error) => failed.extend(told(keys, &error, complaint)),
        }
    }
    for (keys, delivery) in deliveries {
        if let Err(error) = delivery.wait().await {
            failed.extend(told(keys, &error, complaint));
        }
    }
    failed
}

/// Logs a failure; the keys that may be tried again.
fn told(keys: Vec<String>, error: &ProducerError, complaint: &mut Complaint) -> Vec<String> {
    if may_pass(error) {
        not_yet(complaint, keys.len(), error);
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
