//! A producer without transactions: at least once, in order per partition.
//!
//! Every record is acknowledged by all in-sync replicas (`acks=all`), and retried until `delivery.timeout.ms`. One batch of a
//! partition is on its way at a time, so that a retry never overtakes what came after it; partitions don't wait for each
//! other. A retry after a lost answer may write a batch twice: that is what "at least once" means here.
//!
//! With an identity ([`PlainProducer::fencible`]) batches carry its producer id and epoch and a sequence number: retries are
//! written once, and a partition that has seen a newer epoch refuses them (INVALID_PRODUCER_EPOCH). A sequence number is used
//! up when its batch is in the log; a batch whose fate is not known ends the producer, because what came after it could
//! neither be numbered nor ordered. Source: KIP-98, KIP-360.

use super::counters::{Counters, ProducerMetrics, add, subtract};
use super::driver::partition_count;
use super::error::{Failure, ProducerError};
use super::lane::Outgoing;
use super::outbound::{Answer, Fate, Outbound, Work};
use super::stage::{Stage, StagedBatch};
use crate::batch::{BatchLimits, ProducerStamp, SealedBatch, sequence_after};
use crate::cluster::{Backoff, Cluster};
use crate::config::CompressionConfig;
use oncewire_txn::{BatchId, ProducerIdentity, Protocol, RequestId, RequestKind, Verdict, verdict};
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Calls to `send` that the driver has not looked at yet; further ones wait.
const SUBMISSIONS_MAX: usize = 256;

/// How a plain producer batches and waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainConfig {
    /// `delivery.timeout.ms`: from `send` to the acknowledgement. Default 120 s.
    pub delivery_timeout: Duration,
    /// `max.block.ms`: how long `send` may wait for memory. Default 60 s.
    pub max_block: Duration,
    /// `max.request.size`: the largest record. Default 1 MiB.
    pub max_request_bytes: usize,
    /// `batch.size`. Default 1,000,000 bytes. A larger record has a batch of its own.
    pub batch_bytes: usize,
    /// `buffer.memory`. Default 32 MiB.
    pub buffer_memory_bytes: usize,
    /// `max.in.flight.requests.per.connection`, 1 to 5. Default 5.
    pub max_in_flight: usize,
    /// `compression.type`. Default none.
    pub compression: CompressionConfig,
}

impl Default for PlainConfig {
    fn default() -> Self {
        Self {
            delivery_timeout: Duration::from_secs(120),
            max_block: Duration::from_secs(60),
            max_request_bytes: 1024 * 1024,
            batch_bytes: 1_000_000,
            buffer_memory_bytes: 32 * 1024 * 1024,
            max_in_flight: 5,
            compression: CompressionConfig::None,
        }
    }
}

/// The news of one `send`: resolves when all of its batches are in the log, or with the first failure.
///
/// Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "only this tells whether the records arrived"]
pub struct Delivery {
    outcome: oneshot::Receiver<Result<(), ProducerError>>,
}

impl Delivery {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// [`ProducerError::NotDelivered`]; [`ProducerError::Closed`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn wait(self) -> Result<(), ProducerError> {
        self.outcome.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// The producer. Dropping it without [`close`](Self::close) lets the driver finish what it has and end by itself.
pub struct PlainProducer {
    cluster: Cluster,
    config: PlainConfig,
    submissions: mpsc::Sender<Submission>,
    room: Arc<Semaphore>,
    counters: Arc<Counters>,
    driver: Mutex<Option<JoinHandle<()>>>,
}

struct Submission {
    batches: Vec<(StagedBatch, Option<OwnedSemaphorePermit>)>,
    deadline: Instant,
    outcome: oneshot::Sender<Result<(), ProducerError>>,
}

impl PlainProducer {
    /// Starts the driver task; does no I/O. Must be called within a tokio runtime.
    pub fn new(cluster: Cluster, config: PlainConfig) -> Self {
        Self::start(cluster, config, None)
    }

    /// A producer whose writes a newer owner of the identity can fence. The identity is that of a transactional id's
    /// [`init`](super::TransactionalProducer::init); nobody else may write with it.
    pub fn fencible(cluster: Cluster, config: PlainConfig, identity: ProducerIdentity) -> Self {
        Self::start(cluster, config, Some(identity))
    }

    fn start(cluster: Cluster, config: PlainConfig, identity: Option<ProducerIdentity>) -> Self {
        let room = config.buffer_memory_bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let (submissions, receiver) = mpsc::channel(SUBMISSIONS_MAX);
        let counters = Arc::new(Counters::default());
        let driver = tokio::spawn(run(Driver::new(cluster.clone(), &config, counters.clone(), identity), receiver));
        Self {
            cluster,
            config,
            submissions,
            room: Arc::new(Semaphore::new(room)),
            counters,
            driver: Mutex::new(Some(driver)),
        }
    }

    /// How many partitions a topic has, from the cached metadata where it is known.
    ///
    /// # Errors
    /// [`ProducerError::Metadata`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn partitions(&self, topic: &str) -> Result<u32, ProducerError> {
        partition_count(&self.cluster, topic).await
    }

    /// An empty accumulator with this producer's limits.
    pub fn stage(&self) -> Stage {
        let bytes_max = self.config.batch_bytes.clamp(1, self.config.max_request_bytes.max(1));
        Stage::new(BatchLimits { bytes_max, ..BatchLimits::default() })
            .with_record_bytes_max(self.config.max_request_bytes)
            .with_compression(self.config.compression)
    }

    /// Takes batches over; waits for room under `buffer.memory`, not for acknowledgements. Batches that are larger together than
    /// the whole buffer take all of it: room is asked for once, so that no part of it is held by one who waits for the rest.
    ///
    /// # Errors
    /// [`ProducerError::BufferFull`], [`ProducerError::Closed`]: nothing was taken over.
    ///
    /// # Cancel safety
    /// Dropped before it returned, nothing was taken over.
    pub async fn send(&self, batches: Vec<StagedBatch>) -> Result<Delivery, ProducerError> {
        let deadline = Instant::now() + self.config.delivery_timeout;
        let bytes: usize = batches.iter().map(StagedBatch::size_bytes).sum();
        let permits = u32::try_from(bytes.min(self.config.buffer_memory_bytes)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(permits);
        let Ok(room) = tokio::time::timeout(self.config.max_block, room).await else {
            return Err(ProducerError::BufferFull {
                wanted_bytes: bytes,
                limit_bytes: self.config.buffer_memory_bytes,
                waited: self.config.max_block,
            });
        };
        let batches = divided(room.map_err(|_| closed())?, batches);
        let (sender, outcome) = oneshot::channel();
        let place = self.submissions.reserve().await.map_err(|_| closed())?;
        add(&self.counters.buffered, bytes as u64);
        place.send(Submission { batches, deadline, outcome: sender });
        Ok(Delivery { outcome })
    }

    /// What the producer has counted; the fields about transactions stay 0.
    pub fn metrics(&self) -> ProducerMetrics {
        self.counters.snapshot()
    }

    /// Sends what is left and ends the driver; after `timeout` it is stopped where it stands.
    ///
    /// # Errors
    /// [`ProducerError::NotDelivered`] when the driver had to be stopped.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the driver to finish by itself.
    pub async fn close(self, timeout: Duration) -> Result<(), ProducerError> {
        let Self { submissions, driver, .. } = self;
        drop(submissions);
        let driver = driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut driver) = driver else { return Ok(()) };
        if tokio::time::timeout(timeout, &mut driver).await.is_ok() {
            return Ok(());
        }
        driver.abort();
        // Only to see the task gone: that it was aborted is what we asked for.
        let _ = driver.await;
        Err(not_delivered(Failure::local(format!(
            "the producer was closed before the brokers answered, after {timeout:?}"
        ))))
    }
}

/// To each batch its part of the room, to the last ones what is left.
fn divided(
    mut room: OwnedSemaphorePermit,
    batches: Vec<StagedBatch>,
) -> Vec<(StagedBatch, Option<OwnedSemaphorePermit>)> {
    let part = |batch: StagedBatch| {
        let own = room.split(batch.size_bytes().min(room.num_permits()));
        (batch, own)
    };
    batches.into_iter().map(part).collect()
}

fn closed() -> ProducerError {
    not_delivered(Failure::local("the producer is closed"))
}

fn not_delivered(cause: Failure) -> ProducerError {
    ProducerError::NotDelivered { cause }
}

/// One batch on its way.
struct Held {
    sealed: SealedBatch,
    size_bytes: usize,
    records: u32,
    deadline: Instant,
    attempts: u32,
    send: u64,
    last: Option<Failure>,
    _room: Option<OwnedSemaphorePermit>,
}

/// The batches of one partition, in order. The first one is on its way, or waits for its next attempt.
struct Queue {
    batches: VecDeque<Held>,
    on_its_way: bool,
    retry_at: Option<Instant>,
}

/// The open batches of one `send`.
struct Open {
    left: usize,
    outcome: oneshot::Sender<Result<(), ProducerError>>,
}

struct Driver {
    cluster: Cluster,
    outbound: Outbound,
    backoff: Backoff,
    counters: Arc<Counters>,
    queues: HashMap<(Arc<str>, u32), Queue>,
    sends: HashMap<u64, Open>,
    next_send: u64,
    /// Topics whose leaders have to be looked up again.
    stale: Vec<Arc<str>>,
    /// The look-up that is under way.
    refreshing: Option<Work<()>>,
    identity: Option<ProducerIdentity>,
    /// With an identity: the sequence number of each partition's next batch.
    sequences: HashMap<(Arc<str>, u32), i32>,
    /// With an identity: why it can't go on.
    ended: Option<Failure>,
}

async fn run(mut driver: Driver, mut submissions: mpsc::Receiver<Submission>) {
    let mut answers = Vec::new();
    let mut open = true;
    while open || !driver.queues.is_empty() {
        let until = driver.start_due();
        let mut timer = pin!(async {
            match until {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        });
        let mut submitted = Vec::new();
        poll_fn(|context| {
            while driver.outbound.start(&driver.counters, |_| true, &mut answers)
                | driver.outbound.poll(context, &mut answers)
                | driver.poll_refresh(context)
            {}
            if open {
                match submissions.poll_recv_many(context, &mut submitted, SUBMISSIONS_MAX) {
                    Poll::Ready(0) => open = false,
                    Poll::Ready(_) | Poll::Pending => {}
                }
            }
            let news = !answers.is_empty() || !submitted.is_empty() || !open && driver.queues.is_empty();
            if news || timer.as_mut().poll(context).is_ready() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        for submission in submitted {
            driver.accept(submission);
        }
        for answer in answers.drain(..) {
            driver.answered(answer);
        }
    }
}

impl Driver {
    fn new(
        cluster: Cluster,
        config: &PlainConfig,
        counters: Arc<Counters>,
        identity: Option<ProducerIdentity>,
    ) -> Self {
        let client = cluster.config();
        Self {
            backoff: Backoff::new(client.retry_backoff, client.retry_backoff_max),
            outbound: Outbound::new(cluster.clone(), None, config.max_in_flight),
            cluster,
            counters,
            queues: HashMap::new(),
            sends: HashMap::new(),
            next_send: 0,
            stale: Vec::new(),
            refreshing: None,
            identity,
            sequences: HashMap::new(),
            ended: None,
        }
    }

    fn accept(&mut self, submission: Submission) {
        if submission.batches.is_empty() {
            // The caller may have dropped its Delivery.
            let _ = submission.outcome.send(Ok(()));
            return;
        }
        let send = self.next_send;
        self.next_send += 1;
        self.sends.insert(send, Open { left: submission.batches.len(), outcome: submission.outcome });
        for (staged, room) in submission.batches {
            let records = staged.records();
            let StagedBatch { topic, partition, batch } = staged;
            let held = Held {
                size_bytes: batch.size_bytes(),
                sealed: batch,
                records,
                deadline: submission.deadline,
                attempts: 0,
                send,
                last: None,
                _room: room,
            };
            let queue = self.queues.entry((topic, partition)).or_insert_with(|| Queue {
                batches: VecDeque::new(),
                on_its_way: false,
                retry_at: None,
            });
            queue.batches.push_back(held);
        }
    }

    /// Sends the first batch of every partition whose turn it is, and fails those whose time is up. Gives the time of the
    /// next turn that no answer brings.
    fn start_due(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let mut wake: Option<Instant> = None;
        let mut expired = Vec::new();
        let ended = self.ended.is_some();
        for ((topic, partition), queue) in &mut self.queues {
            if queue.on_its_way {
                continue;
            }
            while let Some(first) = queue.batches.front() {
                if first.deadline > now && !ended {
                    break;
                }
                expired.extend(queue.batches.pop_front().map(|held| (topic.clone(), *partition, held)));
            }
            let Some(first) = queue.batches.front_mut() else { continue };
            match queue.retry_at {
                Some(at) if at > now => {
                    let at = at.min(first.deadline);
                    wake = Some(wake.map_or(at, |other| other.min(at)));
                }
                _ => {
                    queue.retry_at = None;
                    queue.on_its_way = true;
                    if first.attempts > 0 {
                        add(&self.counters.retries, 1);
                    }
                    first.attempts += 1;
                    self.outbound.push(Outgoing {
                        request: RequestId(0),
                        batch: BatchId(first.send),
                        topic: topic.clone(),
                        partition: *partition,
                        protocol: Protocol::Explicit,
                        records: first.sealed.stamp(stamp(self.identity, &self.sequences, topic, *partition)),
                    });
                }
            }
        }
        for (topic, partition, held) in expired {
            let mut cause = held.last.clone().unwrap_or_else(|| Failure::local("it was never sent"));
            match &self.ended {
                Some(ended) => cause = ended.clone(),
                None => cause.add_words("delivery.timeout.ms is over"),
            }
            (cause.topic, cause.partition) = (Some(topic), Some(partition));
            if held.attempts > 0 {
                self.end(&cause);
            }
            self.settle(held, Err(not_delivered(cause)));
        }
        self.queues.retain(|_, queue| !queue.batches.is_empty());
        wake
    }

    fn answered(&mut self, Answer { order, fate }: Answer) {
        let Some(queue) = self.queues.get_mut(&(order.topic.clone(), order.partition)) else { return };
        queue.on_its_way = false;
        let Some(first) = queue.batches.front_mut() else { return };
        let mut failure = Failure {
            request: Some(RequestKind::Produce),
            code: None,
            topic: Some(order.topic.clone()),
            partition: Some(order.partition),
            reason: String::new(),
        };
        let wait = self.backoff.delay(first.attempts, super::seed());
        match fate {
            Fate::Lost { reason, .. } => {
                failure.reason = reason;
                first.last = Some(failure);
                queue.retry_at = Some(Instant::now() + wait);
                self.stale.push(order.topic);
            }
            Fate::Answered { code, leader_known, words, .. } => {
                failure.code = Some(code.0);
                failure.reason = words.unwrap_or_default();
                match verdict(RequestKind::Produce, code) {
                    Verdict::Done | Verdict::DoneBefore => {
                        if let Some(held) = queue.batches.pop_front() {
                            add(&self.counters.records, u64::from(held.records));
                            add(&self.counters.bytes, held.size_bytes as u64);
                            let next = self.sequences.entry((order.topic, order.partition)).or_insert(0);
                            *next = sequence_after(*next, held.records);
                            self.settle(held, Ok(()));
                        }
                    }
                    // The numbers of one partition never go back: only a new identity begins at 0 again.
                    Verdict::OutOfOrder if self.identity.is_some() => {
                        if let Some(held) = queue.batches.pop_front() {
                            self.end(&failure);
                            self.settle(held, Err(not_delivered(failure)));
                        }
                    }
                    Verdict::Retry
                    | Verdict::RetryUnsure
                    | Verdict::RetryConcurrent
                    | Verdict::RetryOnce
                    | Verdict::OutOfOrder => {
                        first.last = Some(failure);
                        queue.retry_at = Some(Instant::now() + wait);
                    }
                    Verdict::RetryElsewhere => {
                        first.last = Some(failure);
                        if !leader_known {
                            queue.retry_at = Some(Instant::now() + wait);
                            self.stale.push(order.topic);
                        }
                    }
                    _ => {
                        if let Some(held) = queue.batches.pop_front() {
                            self.settle(held, Err(not_delivered(failure)));
                        }
                    }
                }
            }
        }
    }

    /// With an identity: nothing more can be sent.
    fn end(&mut self, cause: &Failure) {
        if self.identity.is_some() {
            self.ended.get_or_insert_with(|| cause.clone());
        }
    }

    /// One batch is done with: tell its `send`, if it was the last one or the first to fail.
    fn settle(&mut self, held: Held, result: Result<(), ProducerError>) {
        subtract(&self.counters.buffered, held.size_bytes as u64);
        let Some(open) = self.sends.get_mut(&held.send) else { return };
        open.left -= 1;
        let told = result.is_err() || open.left == 0;
        if told && let Some(open) = self.sends.remove(&held.send) {
            // The caller may have dropped its Delivery.
            let _ = open.outcome.send(result);
        }
    }

    /// Looks leaders up again, one request at a time. True when something moved.
    fn poll_refresh(&mut self, context: &mut Context<'_>) -> bool {
        if self.refreshing.is_none() && !self.stale.is_empty() {
            let (cluster, topics) = (self.cluster.clone(), std::mem::take(&mut self.stale));
            self.refreshing = Some(Box::pin(async move {
                let names: Vec<&str> = topics.iter().map(|topic| &**topic).collect();
                if let Err(error) = cluster.refresh(&names).await {
                    tracing::debug!(%error, "metadata was not refreshed");
                }
            }));
        }
        let Some(work) = &mut self.refreshing else { return false };
        let ready = work.as_mut().poll(context).is_ready();
        if ready {
            self.refreshing = None;
        }
        ready
    }
}

/// What the next batch of a partition carries. The same for each attempt: the number moves on with success only.
fn stamp(
    identity: Option<ProducerIdentity>,
    sequences: &HashMap<(Arc<str>, u32), i32>,
    topic: &Arc<str>,
    partition: u32,
) -> ProducerStamp {
    let Some(identity) = identity else { return ProducerStamp::NONE };
    ProducerStamp {
        producer_id: identity.id,
        producer_epoch: identity.epoch,
        base_sequence: sequences.get(&(topic.clone(), partition)).copied().unwrap_or(0),
        transactional: false,
    }
}
