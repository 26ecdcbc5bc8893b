//! The one task that writes to the config topic, so that a caller who gives up never leaves a transaction half done.
//!
//! Writes of the leader go through a transactional producer where there is one (`exactly.once.source.support` preparing or
//! enabled): each batch is a transaction, and who claims the privilege fences who had it before (KIP-618). Any failure closes
//! the producer, because only a fresh claim tells whether this worker still is the leader. All other writes are plain.

use super::records::KeyValue;
use crate::clock::now_ms;
use crate::error::TopicError;
use crate::settings::LeaderProducer;
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::{PlainConfig, PlainProducer, ProducerError, Stage, TransactionalProducer};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// The config topic has one partition.
const PARTITION: u32 = 0;
/// Writes that wait in the channel; further ones wait outside.
const ORDERS_MAX: usize = 64;
/// How long a producer that failed may take to abort what it left open. Java gives it no time, so that readers wait for
/// `transaction.timeout.ms`, or for the next claim.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// Which producer a write goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Any worker's.
    Plain,
    /// The leader's.
    Privileged,
}

enum Work {
    Write { way: Way, batch: Vec<KeyValue> },
    Claim,
}

struct Order {
    work: Work,
    deadline: Instant,
    answer: oneshot::Sender<Result<(), TopicError>>,
}

/// The handle.
#[derive(Debug)]
pub(super) struct Writer {
    /// Taken at the close, which ends the task when it has done what is in the channel.
    orders: Mutex<Option<mpsc::Sender<Order>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the task.
    pub(super) fn start(topic: &str, cluster: Cluster, plain: PlainConfig, leader: Option<LeaderProducer>) -> Self {
        let (orders, receiver) = mpsc::channel(ORDERS_MAX);
        let at_work = AtWork {
            topic: topic.into(),
            plain: PlainProducer::new(cluster, plain),
            leader,
            leader_cluster: None,
            transactional: None,
        };
        let task = tokio::spawn(run(at_work, receiver));
        Self { orders: Mutex::new(Some(orders)), task: Mutex::new(Some(task)) }
    }

    /// Writes a batch: all of it or nothing on the way of the leader, in order on the plain one.
    pub(super) async fn write(&self, way: Way, batch: Vec<KeyValue>, deadline: Instant) -> Result<(), TopicError> {
        self.order(Work::Write { way, batch }, deadline).await
    }

    /// Takes the leader's transactional id over, unless this worker has it.
    pub(super) async fn claim(&self, deadline: Instant) -> Result<(), TopicError> {
        self.order(Work::Claim, deadline).await
    }

    /// Ends the task after the writes that wait, and waits for it.
    pub(super) async fn close(&self) {
        drop(self.orders.lock().unwrap_or_else(PoisonError::into_inner).take());
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!("the task that writes to the config topic ended badly: {error}");
        }
    }

    async fn order(&self, work: Work, deadline: Instant) -> Result<(), TopicError> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let orders = orders.ok_or(TopicError::Closed)?;
        let started = Instant::now();
        let (answer, told) = oneshot::channel();
        match timeout_at(deadline, orders.send(Order { work, deadline, answer })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(TopicError::Closed),
            Err(_) => return Err(late(started.elapsed())),
        }
        // The task keeps the deadline, and a little more where it has to close a producer.
        told.await.unwrap_or(Err(TopicError::Closed))
    }
}

fn late(after: Duration) -> TopicError {
    TopicError::Timeout { what: "writing to the config topic".to_owned(), after }
}

struct AtWork {
    topic: Arc<str>,
    plain: PlainProducer,
    leader: Option<LeaderProducer>,
    /// The connections of the leader's producer, once it has claimed.
    leader_cluster: Option<Cluster>,
    transactional: Option<TransactionalProducer>,
}

async fn run(mut at_work: AtWork, mut orders: mpsc::Receiver<Order>) {
    while let Some(Order { work, deadline, answer }) = orders.recv().await {
        let done = match work {
            Work::Claim => at_work.claim(deadline).await,
            Work::Write { way: Way::Plain, batch } => at_work.write_plain(&batch, deadline).await,
            Work::Write { way: Way::Privileged, batch } => at_work.write_privileged(&batch, deadline).await,
        };
        // Who asked may have given up.
        let _ = answer.send(done);
    }
    at_work.close().await;
}

impl AtWork {
    async fn write_plain(&self, batch: &[KeyValue], deadline: Instant) -> Result<(), TopicError> {
        let started = Instant::now();
        let written = async {
            let mut stage = self.plain.stage();
            fill(&mut stage, &self.topic, batch)?;
            self.plain.send(stage.seal()).await?.wait().await
        };
        match timeout_at(deadline, written).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(late(started.elapsed())),
        }
    }

    async fn write_privileged(&mut self, batch: &[KeyValue], deadline: Instant) -> Result<(), TopicError> {
        if self.leader.is_none() {
            return self.write_plain(batch, deadline).await;
        }
        let Some(producer) = &self.transactional else { return Err(TopicError::NotPrivileged) };
        let cause = match timeout_at(deadline, transact(producer, &self.topic, batch)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it was not committed in time".to_owned(),
        };
        self.relinquish().await;
        Err(TopicError::Privileged(cause))
    }

    async fn claim(&mut self, deadline: Instant) -> Result<(), TopicError> {
        if self.transactional.is_some() {
            return Ok(());
        }
        let Some(leader) = self.leader.clone() else { return Ok(()) };
        let connections = &mut self.leader_cluster;
        let claimed = async {
            let cluster = match connections {
                Some(cluster) => cluster.clone(),
                None => {
                    let cluster = Cluster::connect(leader.client).await.map_err(|error| error.to_string())?;
                    connections.insert(cluster).clone()
                }
            };
            // Each write is read back, and the markers with it: there is nothing left to settle.
            let producer = TransactionalProducer::new(cluster, leader.producer).without_marker_settling();
            producer.init().await.map_err(|error| error.to_string())?;
            Ok(producer)
        };
        match timeout_at(deadline, claimed).await {
            Ok(Ok(producer)) => {
                tracing::info!(
                    transactional_id = &**producer.transactional_id(),
                    "write privileges of the leader claimed"
                );
                self.transactional = Some(producer);
                Ok(())
            }
            Ok(Err(cause)) => Err(TopicError::Privileged(cause)),
            Err(_) => Err(TopicError::Privileged("no producer id was given in time".to_owned())),
        }
    }

    async fn relinquish(&mut self) {
        let Some(producer) = self.transactional.take() else { return };
        if let Err(error) = producer.close(CLOSE_PATIENCE).await {
            tracing::debug!("the leader's producer was stopped where it stood: {error}");
        }
    }

    async fn close(mut self) {
        self.relinquish().await;
        if let Some(cluster) = self.leader_cluster {
            cluster.close().await;
        }
        if let Err(error) = self.plain.close(CLOSE_PATIENCE).await {
            tracing::debug!("the config topic's producer was stopped where it stood: {error}");
        }
    }
}

async fn transact(producer: &TransactionalProducer, topic: &Arc<str>, batch: &[KeyValue]) -> Result<(), ProducerError> {
    let mut stage = producer.stage();
    fill(&mut stage, topic, batch)?;
    producer.begin().await?;
    producer.send(stage.seal()).await?;
    producer.commit().await.map(|_| ())
}

fn fill(stage: &mut Stage, topic: &Arc<str>, batch: &[KeyValue]) -> Result<(), ProducerError> {
    let now_ms = now_ms();
    for (key, value) in batch {
        stage.append(topic, PARTITION, now_ms, Some(key.as_bytes()), value.as_deref(), &[])?;
    }
    Ok(())
}
