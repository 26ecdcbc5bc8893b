//! One life of a task, from its producer's first request to its connection's end, in the one right order.
//!
//! Start (KIP-618): has a stop been asked for? → InitProducerId, which fences every older owner → stop? (an InitProducerId
//! after a stop would fence our successor) → read the offsets to their end → the connector's `start` → work.
//! End: ask polling to stop → commit what is prepared → the connector's `stop` → close the producer (aborts what is open) →
//! close the connections. What does not come back within `task.shutdown.graceful.timeout.ms` is abandoned.

use super::ahead::{Ahead, AheadEnd, DEPTH, Polled, Target};
use super::at_least_once::AtLeastOnce;
use super::boundary::{Boundary, BoundaryState};
use super::exactly_once::ExactlyOnce;
use super::notices::Notices;
use super::ownership::lost_or_superseded;
use super::prepare::Preparer;
use super::topics::Topics;
use crate::config::clients::{TaskClients, plain_clients, task_clients};
use crate::config::connector::ConnectorConfig;
use crate::config::worker::{OffsetsTopic, WorkerConfig};
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use crate::store::connector_offsets::ConnectorOffsets;
use crate::store::offset_file::OffsetFile;
use crate::store::offset_fold::OffsetFold;
use crate::store::offset_topic::TaskOffsets;
use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{
    OffsetReader, Properties, SourceTask, StopSignal, StopTrigger, TaskContext, TransactionContext, stop_signal,
};
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::{PlainProducer, Stage, TransactionalProducer};
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
    /// The offsets file, in at-least-once mode.
    pub file: Option<Arc<OffsetFile>>,
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
        Err(TaskFailure::Lost(cause)) => {
            let asked = unless_stopped(stop, lost_or_superseded(&cluster, &producer, cause.clone())).await;
            Err(asked.unwrap_or(TaskFailure::Lost(cause)))
        }
        lived => lived,
    };
    if let Err(error) = producer.close(PRODUCER_CLOSE_MAX).await {
        tracing::warn!(task = spec.name(), "closing the producer: {error}");
    }
    cluster.close().await;
    lived
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
    let identity = identity.map_err(|error| timeout_advice(error.into(), clients))?;
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
    let sides = Sides {
        offsets: offsets.reader(),
        transaction,
        stage: producer.stage(),
        sticky_bytes: clients.producer.batch_bytes,
        own_topic: topic.name.as_str().into(),
    };
    let started = start(spec, target, cluster, sides).await?;
    let boundary = BoundaryState::new(spec.connector.boundary, clients.producer.transaction_timeout, Instant::now());
    let work = ExactlyOnce::new(producer.clone(), offsets, boundary, started.notices.clone(), spec.metrics.clone());
    started.live(Work::ExactlyOnce(Box::new(work)), spec.worker.graceful_timeout).run(stop).await
}

/// Runs the task once, at-least-once, until a stop or a failure.
///
/// # Errors
/// Why it can't go on.
pub async fn at_least_once(
    spec: &TaskSpec,
    file: &Arc<OffsetFile>,
    stop: &StopSignal,
    target: watch::Receiver<Target>,
) -> Result<(), TaskFailure> {
    let clients = plain_clients(&spec.worker, &spec.connector.originals, &spec.connector.name, spec.number)
        .map_err(TaskFailure::failed)?;
    let Some(cluster) = unless_stopped(stop, Cluster::connect(clients.client.clone())).await else { return Ok(()) };
    let cluster = cluster?;
    let producer = PlainProducer::new(cluster.clone(), clients.producer.clone());
    let mut fold = OffsetFold::new(&spec.connector.name);
    for (key, value) in file.entries() {
        fold.apply(Some(&key), value.as_ref(), 0);
    }
    let offsets = ConnectorOffsets::new(&spec.connector.name, fold);
    let sides = Sides {
        offsets: offsets.reader(),
        transaction: None,
        stage: producer.stage(),
        sticky_bytes: clients.producer.batch_bytes,
        own_topic: "".into(),
    };
    let lived = match start(spec, target, &cluster, sides).await {
        Err(failure) => Err(failure),
        Ok(started) => {
            let flush = (spec.worker.offset_flush_interval, spec.worker.offset_flush_timeout);
            let (notices, metrics) = (started.notices.clone(), spec.metrics.clone());
            let work = AtLeastOnce::new(producer, offsets, file.clone(), notices, metrics, flush);
            started.live(Work::AtLeastOnce(Box::new(work)), spec.worker.graceful_timeout).run(stop).await
        }
    };
    cluster.close().await;
    lived
}

/// A transaction timeout above the brokers' limit is a person's mistake: say what to change.
fn timeout_advice(failure: TaskFailure, clients: &TaskClients) -> TaskFailure {
    const CODE: &str = "INVALID_TRANSACTION_TIMEOUT";
    match failure {
        TaskFailure::Failed(message) if message.contains(CODE) => TaskFailure::failed(format!(
            "{message}; transaction.timeout.ms is {}, lower it, or raise the brokers' transaction.max.timeout.ms",
            clients.producer.transaction_timeout.as_millis()
        )),
        other => other,
    }
}

/// What differs between the two modes when a task is started.
struct Sides {
    offsets: Arc<dyn OffsetReader>,
    transaction: Option<TransactionContext>,
    stage: Stage,
    sticky_bytes: usize,
    own_topic: Arc<str>,
}

/// A task that polls.
struct Started {
    trigger: StopTrigger,
    ahead: JoinHandle<AheadEnd>,
    notices: Notices,
    polled: mpsc::Receiver<Polled>,
}

impl Started {
    fn live(self, work: Work, graceful: Duration) -> Life {
        Life { graceful, trigger: self.trigger, ahead: self.ahead, work, polled: self.polled }
    }
}

async fn start(
    spec: &TaskSpec,
    target: watch::Receiver<Target>,
    cluster: &Cluster,
    sides: Sides,
) -> Result<Started, TaskFailure> {
    let converters = spec
        .connector
        .converters(&spec.worker, &spec.registry)
        .map_err(|error| TaskFailure::failed(error.to_string()))?;
    let (trigger, signal) = stop_signal();
    let name = spec.connector.name.as_str();
    let context = TaskContext::new(name, spec.number, sides.offsets, signal.clone(), sides.transaction.clone());
    let mut task = (spec.make)();
    if let Err(error) = task.start(context, &spec.properties).await {
        task.stop().await;
        return Err(TaskFailure::failed(super::ahead::with_causes(&error)));
    }
    tracing::info!(task = spec.name(), "running");
    let seed = u64::from(spec.number) + 1;
    let topics = Topics::new(cluster.clone(), spec.connector.topic_creation.clone(), sides.sticky_bytes, seed);
    let mut preparer = Preparer::new(converters, topics, sides.stage, spec.connector.tolerance, sides.own_topic);
    if task.wants_commit_record() {
        preparer.keep_records();
    }
    let notices = Notices::default();
    let (out, polled) = mpsc::channel(DEPTH);
    let ahead =
        Ahead { task, preparer, transaction: sides.transaction, notices: notices.clone(), stop: signal, target, out };
    Ok(Started { trigger, ahead: tokio::spawn(ahead.run()), notices, polled })
}

/// The delivering side of a task.
enum Work {
    ExactlyOnce(Box<ExactlyOnce>),
    AtLeastOnce(Box<AtLeastOnce>),
}

impl Work {
    async fn run(&mut self, polled: &mut mpsc::Receiver<Polled>) -> Result<(), TaskFailure> {
        match self {
            Self::ExactlyOnce(work) => work.run(polled).await,
            Self::AtLeastOnce(work) => work.run(polled).await,
        }
    }

    /// `worked` says how `run` ended: without transactions, what is acknowledged may be stored after a failure too.
    async fn finish(&mut self, worked: Result<(), TaskFailure>) -> Result<(), TaskFailure> {
        match self {
            Self::ExactlyOnce(work) => match worked {
                Ok(()) => work.finish().await,
                failed => failed,
            },
            Self::AtLeastOnce(work) => {
                let finished = work.finish().await;
                work.close(PRODUCER_CLOSE_MAX).await;
                worked.and(finished)
            }
        }
    }
}

/// The two sides of a running task and what ends them.
struct Life {
    graceful: Duration,
    trigger: StopTrigger,
    ahead: JoinHandle<AheadEnd>,
    work: Work,
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
            (Some(worked), ended) => self.work.finish(worked.and(ended)).await,
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
