//! Writes to the worker's offsets topic outside of any transaction, for all tasks of the process.
//!
//! Two kinds: writes that somebody waits for (offsets of tasks without exactly-once, removals before a transaction), and
//! copies that are made after a commit and may be lost (KIP-618 keeps the worker's topic as a fallback). Of copies only the
//! newest per key waits, at most [`COPIES_MAX`]; a write that is waited for takes the place of a copy that still waits.

use super::connector_offsets::StoredRecord;
use bytes::Bytes;
use oncewire_client::cluster::Cluster;
use oncewire_client::complaint::Complaint;
use oncewire_client::producer::{PlainConfig, PlainProducer, Stage, partition_for_key};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Keys whose copies may wait; further ones are dropped with a warning.
pub const COPIES_MAX: usize = 100_000;

/// Writes that may wait for their turn; further ones wait to be handed over.
const WRITES_MAX: usize = 64;

/// How long the last copies may take at the end.
const CLOSE_MAX: Duration = Duration::from_secs(5);

struct Write {
    records: Vec<StoredRecord>,
    done: oneshot::Sender<Result<(), String>>,
}

type Copies = Arc<Mutex<HashMap<Bytes, Option<Bytes>>>>;

/// A handle; clones write through the same producer.
#[derive(Debug, Clone)]
pub struct TopicWriter {
    writes: mpsc::Sender<Write>,
    copies: Copies,
    wake: Arc<Notify>,
    /// Taken and joined by `close`.
    writing: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl TopicWriter {
    /// Starts the writing task; does no I/O before the first write.
    pub fn start(cluster: Cluster, topic: &str, config: PlainConfig) -> Self {
        let (writes, asked) = mpsc::channel(WRITES_MAX);
        let (copies, wake) = (Copies::default(), Arc::new(Notify::new()));
        let producer = PlainProducer::new(cluster, config);
        let (stage, complaint) = (producer.stage(), Complaint::default());
        let writing = Writing { topic: topic.into(), stage, producer, copies: copies.clone(), complaint };
        let task = tokio::spawn(writing.run(asked, wake.clone()));
        Self { writes, copies, wake, writing: Arc::new(Mutex::new(Some(task))) }
    }

    /// Writes and waits until all are in the log.
    ///
    /// # Errors
    /// One line for the operator; some of the records may be in the log then.
    ///
    /// # Cancel safety
    /// What was handed over is written all the same.
    pub async fn write(&self, records: Vec<StoredRecord>) -> Result<(), String> {
        if records.is_empty() {
            return Ok(());
        }
        self.with_copies(|copies| records.iter().for_each(|(key, _)| drop(copies.remove(key))));
        let (done, news) = oneshot::channel();
        let closed = || "the worker's offsets producer is closed".to_owned();
        self.writes.send(Write { records, done }).await.map_err(|_| closed())?;
        news.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Copies records soon, if nothing comes in between.
    pub fn copy(&self, records: Vec<StoredRecord>) {
        let dropped = self.with_copies(|copies| {
            let mut dropped = 0_usize;
            for (key, value) in records {
                if copies.len() < COPIES_MAX || copies.contains_key(&key) {
                    copies.insert(key, value);
                } else {
                    dropped += 1;
                }
            }
            dropped
        });
        if dropped > 0 {
            tracing::warn!("{dropped} offsets were not copied to the worker's offsets topic, which is behind");
        }
        self.wake.notify_one();
    }

    /// Writes what waits, for a bounded time, and ends.
    pub async fn close(&self) {
        self.wake.notify_one();
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut writing) = writing else { return };
        let flushed = async {
            while !self.with_copies(|copies| copies.is_empty()) {
                self.wake.notify_one();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // An empty write comes after everything that is under way.
            let (done, news) = oneshot::channel();
            if self.writes.send(Write { records: Vec::new(), done }).await.is_ok() {
                // Its outcome says nothing: it had no records.
                let _ = news.await;
            }
        };
        if tokio::time::timeout(CLOSE_MAX, flushed).await.is_err() {
            tracing::warn!("the last copies to the worker's offsets topic were not written in {CLOSE_MAX:?}");
        }
        writing.abort();
        // Only to see it gone.
        let _ = (&mut writing).await;
    }

    fn with_copies<R>(&self, work: impl FnOnce(&mut HashMap<Bytes, Option<Bytes>>) -> R) -> R {
        work(&mut self.copies.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Writing {
    topic: Arc<str>,
    stage: Stage,
    producer: PlainProducer,
    copies: Copies,
    /// What was told of copies that failed.
    complaint: Complaint,
}

impl Writing {
    async fn run(mut self, mut asked: mpsc::Receiver<Write>, wake: Arc<Notify>) {
        loop {
            tokio::select! {
                write = asked.recv() => {
                    let Some(Write { records, done }) = write else { return };
                    // Whoever waits may be gone.
                    let _ = done.send(self.write(records).await);
                }
                () = wake.notified() => {
                    let copies = std::mem::take(&mut *self.copies.lock().unwrap_or_else(PoisonError::into_inner));
                    let count = copies.len();
                    let copied = self.write(copies.into_iter().collect()).await;
                    self.tell(count, copied);
                }
            }
        }
    }

    /// Every commit makes copies, so what keeps them from being written would be told as often.
    fn tell(&mut self, count: usize, copied: Result<(), String>) {
        match copied {
            Err(problem) => {
                if let Some(told) = self.complaint.failed(Instant::now(), &problem) {
                    tracing::warn!("{count} offsets were not copied to the worker's offsets topic{told}: {problem}");
                }
            }
            Ok(()) if count > 0 => {
                if let Some(after) = self.complaint.over(Instant::now()) {
                    let after = after.as_secs_f32();
                    tracing::info!("offsets are copied to the worker's offsets topic again after {after:.1} s");
                }
            }
            Ok(()) => {}
        }
    }

    async fn write(&mut self, records: Vec<StoredRecord>) -> Result<(), String> {
        if records.is_empty() {
            return Ok(());
        }
        let named = |problem: String| format!("worker's offsets topic {:?}: {problem}", self.topic);
        let partitions = self.producer.partitions(&self.topic).await.map_err(|error| named(error.to_string()))?;
        stage(&mut self.stage, &self.topic, partitions, &records).map_err(named)?;
        let delivery = self.producer.send(self.stage.seal()).await.map_err(|error| named(error.to_string()))?;
        delivery.wait().await.map_err(|error| named(error.to_string()))
    }
}

/// Puts records into a stage, each where a Java worker would put it; in vain, nothing stays.
///
/// # Errors
/// A record that is larger than a batch may be.
pub fn stage(stage: &mut Stage, topic: &Arc<str>, partitions: u32, records: &[StoredRecord]) -> Result<(), String> {
    let now_ms = crate::task::ahead::now_ms();
    for (key, value) in records {
        let partition = partition_for_key(key, partitions);
        if let Err(error) = stage.append(topic, partition, now_ms, Some(key), value.as_deref(), &[]) {
            stage.clear();
            return Err(error.to_string());
        }
    }
    Ok(())
}
