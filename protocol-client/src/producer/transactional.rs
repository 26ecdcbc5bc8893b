//! The transactional producer as its owner sees it.
//!
//! A handle decides nothing: it hands a command to the state machine under a short lock, wakes the one driver task that owns
//! all I/O, and awaits the news. So every future here may be dropped at any await: what was asked for goes on, and asking
//! again attaches to it.

use super::counters::ProducerMetrics;
use super::driver;
use super::error::ProducerError;
use super::shared::{EndTicket, Shared};
use super::stage::{Stage, StagedBatch};
use crate::batch::{BATCH_OVERHEAD_BYTES, BatchLimits, RECORD_BYTES_MIN};
use crate::cluster::Cluster;
use crate::config::{CompressionConfig, ProducerConfig};
use oncewire_txn::{EndGoal, ProducerIdentity, Settings, Span};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// What a commit made visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    /// Records in the transaction; 0 when it was empty, and then no broker was asked.
    pub records: u64,
    /// Bytes of its batches.
    pub bytes: u64,
    /// From `begin` to the coordinator's answer.
    pub duration: Duration,
}

/// Where a producer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProducerState {
    /// `init` was not called, or failed.
    Uninitialized,
    /// `init` is on its way.
    Initializing,
    /// No transaction is open.
    Ready,
    /// A transaction is open.
    InTransaction,
    /// A transaction is open that can only be aborted.
    AbortRequired,
    /// A commit or an abort is on its way.
    Ending,
    /// A newer owner has the transactional id.
    Fenced,
    /// Of no use any more.
    Failed,
    /// Closed.
    Closed,
}

/// A producer that writes in transactions under one transactional id (KIP-98; KIP-890 where the broker has it).
///
/// One transaction at a time; one owner, who may share the handle among tasks. Dropping it without
/// [`close`](Self::close) lets the driver abort what is open and end by itself.
pub struct TransactionalProducer {
    shared: Arc<Shared>,
    cluster: Cluster,
    /// Joined by `close`.
    driver: Mutex<Option<JoinHandle<()>>>,
    limits: BatchLimits,
    record_bytes_max: usize,
    compression: CompressionConfig,
}

impl TransactionalProducer {
    /// Starts the driver task; does no I/O. Must be called within a tokio runtime.
    pub fn new(cluster: Cluster, config: ProducerConfig) -> Self {
        let (limits, record_bytes_max) = (batch_limits(&config), config.max_request_bytes);
        let compression = config.compression;
        let shared = Arc::new(Shared::new(&config, settings(&config, &cluster)));
        let driver = tokio::spawn(driver::run(shared.clone(), cluster.clone(), config));
        Self { shared, cluster, driver: Mutex::new(Some(driver)), limits, record_bytes_max, compression }
    }

    /// The same producer, which sends the next transaction without waiting for the last one's markers.
    ///
    /// The wait is an optimization that asks the coordinator a few short questions (DescribeTransactions) after each
    /// transaction. A producer to which that is not permitted stops asking by itself.
    #[must_use]
    pub fn without_marker_settling(self) -> Self {
        self.shared.stop_settling_markers();
        self
    }

    /// The transactional id.
    pub fn transactional_id(&self) -> &Arc<str> {
        self.shared.transactional_id()
    }

    /// Gets a producer id and epoch, fencing every older owner of the transactional id. A second call attaches to the
    /// first, and asks nothing when that has succeeded.
    ///
    /// # Errors
    /// [`ProducerError::InitFailed`] (may be tried again), [`Fenced`](ProducerError::Fenced),
    /// [`Fatal`](ProducerError::Fatal), [`Closed`](ProducerError::Closed).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the request on its way.
    pub async fn init(&self) -> Result<ProducerIdentity, ProducerError> {
        let news = self.shared.init()?;
        match news {
            Ok(identity) => Ok(identity),
            Err(waiting) => waiting.await.unwrap_or_else(|_| Err(self.shared.driver_gone())),
        }
    }

    /// How many partitions a topic has, from the cached metadata where it is known.
    ///
    /// # Errors
    /// [`ProducerError::Metadata`]: the topic does not exist, may not be described, or no broker answered.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn partitions(&self, topic: &str) -> Result<u32, ProducerError> {
        driver::partition_count(&self.cluster, topic).await
    }

    /// An empty accumulator with this producer's limits.
    pub fn stage(&self) -> Stage {
        Stage::new(self.limits).with_record_bytes_max(self.record_bytes_max).with_compression(self.compression)
    }

    /// Opens a transaction. Local: no broker hears of it before the first batch.
    ///
    /// # Errors
    /// [`ProducerError::Misuse`] when one is open or `init` has not succeeded; the terminal errors.
    ///
    /// # Cancel safety
    /// Does not wait.
    pub async fn begin(&self) -> Result<(), ProducerError> {
        self.shared.begin()
    }

    /// Hands batches to the open transaction; those of one partition keep their order. Waits for room under
    /// `buffer.memory` for `max.block.ms` at most, and for no acknowledgement.
    ///
    /// # Errors
    /// [`ProducerError::AbortRequired`] as soon as anything of the transaction has failed, with the first cause;
    /// [`BufferFull`](ProducerError::BufferFull), after which the transaction can only be aborted; the terminal errors.
    ///
    /// # Cancel safety
    /// A future dropped before it had handed over all of `batches` makes the transaction abort-only: a commit must never
    /// pass over a hole.
    pub async fn send(&self, batches: Vec<StagedBatch>) -> Result<(), ProducerError> {
        self.shared.send(batches).await
    }

    /// Makes the open transaction visible. `Ok` only when it surely is. Nothing lingers: what was sent goes out at once.
    ///
    /// After an error other than the terminal ones, [`abort`](Self::abort) brings the producer back to where it can begin.
    ///
    /// # Errors
    /// [`ProducerError::NotCommitted`], [`Unknown`](ProducerError::Unknown), [`Fenced`](ProducerError::Fenced),
    /// [`Fatal`](ProducerError::Fatal), [`Misuse`](ProducerError::Misuse).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the commit on its way. Calling again attaches to it, or returns the result that nobody
    /// took.
    pub async fn commit(&self) -> Result<Committed, ProducerError> {
        self.end(EndGoal::Commit).await
    }

    /// Throws the open transaction away. `Ok` at once when none is open.
    ///
    /// # Errors
    /// [`ProducerError::Misuse`] while a commit is on its way; the terminal errors.
    ///
    /// # Cancel safety
    /// As [`commit`](Self::commit).
    pub async fn abort(&self) -> Result<(), ProducerError> {
        self.end(EndGoal::Abort).await.map(|_| ())
    }

    /// Opens a transaction and returns a guard that takes single records.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    ///
    /// # Cancel safety
    /// Does not wait.
    pub async fn transaction(&self) -> Result<super::Transaction<'_>, ProducerError> {
        self.begin().await?;
        Ok(super::Transaction::new(self))
    }

    /// Aborts what is open, once, and ends the driver; after `timeout` the driver is stopped where it stands, and the
    /// coordinator aborts at `transaction.timeout.ms`. A closed producer may be closed again.
    ///
    /// # Errors
    /// [`ProducerError::TimedOut`] when the driver had to be stopped.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the driver to finish by itself.
    pub async fn close(&self, timeout: Duration) -> Result<(), ProducerError> {
        let begun = Instant::now();
        self.shared.close();
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut driver) = driver else { return Ok(()) };
        if tokio::time::timeout(timeout, &mut driver).await.is_ok() {
            return Ok(());
        }
        driver.abort();
        // Only to see the task gone: that it was aborted is what we asked for.
        let _ = driver.await;
        self.shared.stopped();
        Err(ProducerError::TimedOut {
            transactional_id: self.transactional_id().clone(),
            call: "close",
            waited: begun.elapsed(),
        })
    }

    /// Where the producer stands at this moment.
    pub fn state(&self) -> ProducerState {
        self.shared.state()
    }

    /// The identity in force, once `init` has succeeded.
    pub fn identity(&self) -> Option<ProducerIdentity> {
        self.shared.identity()
    }

    /// What the producer has counted.
    pub fn metrics(&self) -> ProducerMetrics {
        self.shared.metrics()
    }

    /// Tells the open transaction that one of its records is lost, so that it can only be aborted.
    pub fn fail_open_transaction(&self, reason: &str) {
        self.shared.fail_open_transaction(reason);
    }

    async fn end(&self, goal: EndGoal) -> Result<Committed, ProducerError> {
        match self.shared.end(goal)? {
            EndTicket::Done(result) => result,
            EndTicket::Waiting(waiting) => waiting.await.unwrap_or_else(|_| Err(self.shared.driver_gone())),
        }
    }
}

impl Drop for TransactionalProducer {
    fn drop(&mut self) {
        // The driver sees it, aborts once and ends; nothing here waits for it.
        self.shared.close();
    }
}

fn batch_limits(config: &ProducerConfig) -> BatchLimits {
    BatchLimits { bytes_max: config.batch_bytes.clamp(1, config.max_request_bytes), ..BatchLimits::default() }
}

/// The machine's limits by the names of Kafka's properties.
fn settings(config: &ProducerConfig, cluster: &Cluster) -> Settings {
    let client = cluster.config();
    Settings {
        delivery_timeout: span(config.delivery_timeout),
        max_block: span(config.max_block),
        retry_backoff: span(client.retry_backoff),
        retry_backoff_max: span(client.retry_backoff_max),
        // No batch is smaller than this, so buffer.memory is met first.
        batches_max: config.buffer_memory_bytes / (BATCH_OVERHEAD_BYTES + RECORD_BYTES_MIN) + 1,
        ..Settings::default().with_transaction_timeout(span(config.transaction_timeout))
    }
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
