//! One life of a task, from its producer's first request to its connection's end, in the one right order.
//!
//! Start (KIP-618): has a stop been asked for? → InitProducerId, which fences every older owner → stop? (an InitProducerId
//! after a stop would fence our successor) → read the offsets to their end → the connector's `start` → work.
//! End: ask polling to stop → commit what is prepared → the connector's `stop` → close the producer (aborts what is open) →
//! close the connections. What does not come back within `task.shutdown.graceful.timeout.ms` is abandoned.

use super::ahead::{Ahead, AheadEnd, DEPTH, Polled, Target};
use super::boundary::{Boundary, BoundaryState};
use super::exactly_once::ExactlyOnce;
use super::notices::Notices;
use super::prepare::Preparer;
use super::topics::Topics;
use crate::config::clients::{TaskClients, task_clients};
use crate::config::connector::ConnectorConfig;
use crate::config::worker::{OffsetsTopic, WorkerConfig};
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use crate::store::offset_topic::TaskOffsets;
use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{Properties, SourceTask, StopSignal, StopTrigger, TaskContext, TransactionContext, stop_signal};
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::TransactionalProducer;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How long the last abort of a producer that is closed may take: 5 s.
const PRODUCER_CLOSE_MAX: Duration = Duration::from_secs(5);

/// What stays the same over a task's restarts.
pub struct TaskSpec {
    /// The worker.
    pub worker: Arc<WorkerConfig>,
    /// The connector.
    pub connector: Arc<ConnectorConfig>,
    /// For converters.
    pub registry: PluginRegistry,
    /// The task's number, from 0.
    pub number: u32,
    /// The configuration that the connector made for it.
    pub properties: Properties,
    /// Makes an instance that was not started.
    pub make: Box<dyn Fn() -> Box<dyn SourceTask> + Send + Sync>,
    /// Counters.
    pub metrics: Arc<TaskMetrics>,
}

impl TaskSpec {
    /// `<connector>-<number>`, as Connect writes it.
    pub fn name(&self) -> String {
        format!("{}-{}", self.connector.name, self.number)
    }
}

/// Runs the task once, exactly-once, until a stop or a failure.
///
/// # Errors
/// Why it can't go on. Nothing that was not committed is visible then.
pub async fn exactly_once(
    spec: &TaskSpec,
    topic: &OffsetsTopic,
    stop: &StopSignal,
    target: watch::Receiver<Target>,
) -> Result<(), TaskFailure> {
    if stop.is_stopped() {
        return Ok(());
    }
    let clients = task_clients(&spec.worker, &spec.connector.originals, &spec.connector.name, spec.number)
        .map_err(TaskFailure::failed)?;
    for warning in &clients.warnings {
        tracing::warn!(task = spec.name(), "{warning}");
    }
    let Some(cluster) = unless_stopped(stop, Cluster::connect(clients.client.clone())).await else { return Ok(()) };
    let cluster = cluster?;
    let producer = Arc::new(TransactionalProducer::new(cluster.clone(), clients.producer.clone()));
    let lived = live(spec, topic, stop, target, &clients, &cluster, &producer).await;
    let lived = match lived {
        Err(TaskFailure::Lost(cause)) => Err(lost_or_superseded(&producer, cause, stop).await),
        lived => lived,
    };
    if let Err(error) = producer.close(PRODUCER_CLOSE_MAX).await {
        tracing::warn!(task = spec.name(), "closing the producer: {error}");
    }
    cluster.close().await;
    lived
}

/// A broker refuses the epoch of a zombie in the same words as that of a transaction which timed out. Only a request under our
/// own id and epoch tells which it was, and fences nobody (KIP-360); the fresh InitProducerId of a restart would fence
/// the very successor that replaced us, which then would restart and fence us, for ever.
async fn lost_or_superseded(producer: &TransactionalProducer, cause: String, stop: &StopSignal) -> TaskFailure {
    let ask = async {
        match producer.abort().await {
            Err(error) if error.is_fenced() => Err(error),
            // Whatever else the abort met, `init` begins by settling it.
            _ => producer.init().await,
        }
    };
    match unless_stopped(stop, ask).await {
        Some(Err(error)) if error.is_fenced() => TaskFailure::Superseded(error.to_string()),
        _ => TaskFailure::Lost(cause),
    }
}

async fn unless_stopped<T>(stop: &StopSignal, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop.stopped() => None,
        done = work => Some(done),
    }
}

async fn live(
    spec: &TaskSpec,
    topic: &OffsetsTopic,
    stop: &StopSignal,
    target: watch::Receiver<Target>,
    clients: &TaskClients,
    cluster: &Cluster,
    producer: &Arc<TransactionalProducer>,
) -> Result<(), TaskFailure> {
    let Some(identity) = unless_stopped(stop, producer.init()).await else { return Ok(()) };
    let identity = identity?;
    let read = TaskOffsets::read(cluster, &topic.name, &spec.connector.name);
    let Some(offsets) = unless_stopped(stop, read).await else { return Ok(()) };
    let offsets = offsets?;
    tracing::info!(
        task = spec.name(),
        producer_id = identity.id,
        epoch = identity.epoch,
        stored_offsets = offsets.len(),
        "older owners are fenced, offsets are read"
    );
    let transaction = (spec.connector.boundary == Boundary::Connector).then(TransactionContext::new);
    let (trigger, signal) = stop_signal();
    let context = TaskContext::new(
        spec.connector.name.as_str(),
        spec.number,
        offsets.reader(),
        signal.clone(),
        transaction.clone(),
    );
    let mut task = (spec.make)();
    if let Err(error) = task.start(context, &spec.properties).await {
        task.stop().await;
        return Err(TaskFailure::failed(super::ahead::with_causes(&error)));
    }
    tracing::info!(task = spec.name(), "running");
    let converters = spec
        .connector
        .converters(&spec.worker, &spec.registry)
        .map_err(|error| TaskFailure::failed(error.to_string()))?;
    let topics = Topics::new(
        cluster.clone(),
        spec.connector.topic_creation.clone(),
        clients.producer.batch_bytes,
        u64::from(spec.number) + 1,
    );
    let own_topic = topic.name.as_str().into();
    let mut preparer = Preparer::new(converters, topics, producer.stage(), spec.connector.tolerance, own_topic);
    if task.wants_commit_record() {
        preparer.keep_records();
    }
    let notices = Notices::default();
    let (out, polled) = mpsc::channel(DEPTH);
    let ahead = Ahead { task, preparer, transaction, notices: notices.clone(), stop: signal, target, out };
    let boundary = BoundaryState::new(spec.connector.boundary, clients.producer.transaction_timeout, Instant::now());
    let work = ExactlyOnce::new(producer.clone(), offsets, boundary, notices, spec.metrics.clone());
    Life { graceful: spec.worker.graceful_timeout, trigger, ahead: tokio::spawn(ahead.run()), work, polled }
        .run(stop)
        .await
}

/// The two sides of a running task and what ends them.
struct Life {
    graceful: Duration,
    trigger: StopTrigger,
    ahead: JoinHandle<AheadEnd>,
    work: ExactlyOnce,
    polled: mpsc::Receiver<Polled>,
}

impl Life {
    async fn run(mut self, stop: &StopSignal) -> Result<(), TaskFailure> {
        let mut deadline = None;
        let worked = {
            let mut work = pin!(self.work.run(&mut self.polled));
            tokio::select! {
                worked = &mut work => Some(worked),
                () = stop.stopped() => {
                    self.trigger.stop();
                    let until = tokio::time::Instant::now() + self.graceful;
                    deadline = Some(until);
                    tokio::time::timeout_at(until, work).await.ok()
                }
            }
        };
        self.trigger.stop();
        // Nobody takes prepared polls any more; closing lets a `send` that waits for room end at once.
        self.polled.close();
        let deadline = deadline.unwrap_or_else(|| tokio::time::Instant::now() + self.graceful);
        let polling = match tokio::time::timeout_at(deadline, &mut self.ahead).await {
            Ok(ended) => Some(ended),
            Err(_) => {
                self.ahead.abort();
                None
            }
        };
        let (mut task, ended) = match polling {
            Some(Ok(AheadEnd { task, failure })) => (Some(task), failure.map_or(Ok(()), Err)),
            Some(Err(error)) => (None, Err(TaskFailure::failed(format!("the connector's task panicked: {error}")))),
            None => {
                tracing::warn!("a task did not come back from poll in {:?} and was abandoned", self.graceful);
                (None, Ok(()))
            }
        };
        let result = match (worked, ended) {
            (Some(Ok(())), Ok(())) => self.work.finish().await,
            (Some(Err(failure)), _) | (Some(Ok(())), Err(failure)) => Err(failure),
            (None, ended) => {
                tracing::warn!("a commit did not end in {:?} and was given up", self.graceful);
                ended
            }
        };
        if let Some(task) = &mut task
            && tokio::time::timeout(self.graceful, task.stop()).await.is_err()
        {
            tracing::warn!("the task's stop did not end in {:?}", self.graceful);
        }
        result
    }
}
