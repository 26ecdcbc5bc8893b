//! One life of a task, from its producer's first request to its connection's end, in the one right order.
//!
//! Start (KIP-618): has a stop been asked for? → paused? then wait → the gate's fencing of older generations → stop? →
//! InitProducerId, which fences every older owner of this id (after a stop it would fence our successor) → the gate's check
//! that this generation is still wanted here → read the offsets to their end → the connector's `start` → work.
//! End: `life.rs`, then close the producer (aborts what is open), then the connections.

use super::ahead::Target;
use super::at_least_once::{AtLeastOnce, Parts};
use super::boundary::{Boundary, BoundaryState};
use super::epochs;
use super::exactly_once::ExactlyOnce;
use super::life::{Outlet, Sides, Work, start};
use super::ownership::lost_or_superseded;
use super::prepare::Delivered;
use super::stores::{self, OwnTopic};
use super::teller::Teller;
use crate::acl;
use crate::config::clients::{self, PlainClients, TaskClients, plain_clients, task_clients};
use crate::config::connector::{ConnectorConfig, SourceChoice};
use crate::config::worker::WorkerConfig;
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use crate::store::choice::Stores;
use crate::store::offset_file::OffsetFile;
use crate::store::topic_reader::TopicReader;
use crate::store::topic_writer::TopicWriter;
use crate::worker::status::{State, TaskGate};
use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{Properties, SourceTask, StopSignal, TransactionContext};
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::{PlainProducer, ProducerIdentity, TransactionalProducer};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long the last abort of a producer that is closed may take: 5 s.
pub(super) const PRODUCER_CLOSE_MAX: Duration = Duration::from_secs(5);

/// What a distributed worker gives to its tasks.
#[derive(Clone)]
pub struct Surroundings {
    /// Reads the worker's offsets topic.
    pub reader: TopicReader,
    /// Writes to it.
    pub writer: TopicWriter,
    /// What has to be settled before a task may write.
    pub gate: Arc<dyn TaskGate>,
}

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
    /// The offsets file, in standalone at-least-once mode.
    pub file: Option<Arc<OffsetFile>>,
    /// Makes an instance that was not started.
    pub make: Box<dyn Fn() -> Box<dyn SourceTask> + Send + Sync>,
    /// Counters.
    pub metrics: Arc<TaskMetrics>,
    /// Tells its states.
    pub teller: Arc<Teller>,
    /// In a distributed worker.
    pub surroundings: Option<Surroundings>,
}

impl TaskSpec {
    /// `<connector>-<number>`, as Connect writes it.
    pub fn name(&self) -> String {
        format!("{}-{}", self.connector.name, self.number)
    }
}

/// Runs the task once, under its transactional id, until a stop or a failure: exactly once, or at least once where the
/// connector has chosen so.
///
/// # Errors
/// Why it can't go on. Of a transaction that was not committed nothing is visible then.
pub async fn fenced(
    spec: &TaskSpec,
    stop: &StopSignal,
    mut target: watch::Receiver<Target>,
) -> Result<(), TaskFailure> {
    if stop.is_stopped() {
        return Ok(());
    }
    let clients = task_clients(&spec.worker, &spec.connector.originals, &spec.connector.name, spec.number)
        .map_err(TaskFailure::failed)?;
    for warning in &clients.warnings {
        tracing::warn!(task = spec.name(), "{warning}");
    }
    if let Some(surroundings) = &spec.surroundings {
        if !wait_out_pause(spec, stop, &mut target).await {
            return Ok(());
        }
        let Some(fenced) = unless_stopped(stop, surroundings.gate.fence()).await else { return Ok(()) };
        fenced.map_err(|refusal| {
            let failure = TaskFailure::from(refusal);
            let message = format!("Failed to perform round of zombie fencing: {}", failure.message());
            failure.with_message(message)
        })?;
    }
    let Some(cluster) = unless_stopped(stop, Cluster::connect(clients.client.clone())).await else { return Ok(()) };
    let cluster = cluster?;
    let producer = Arc::new(TransactionalProducer::new(cluster.clone(), clients.producer.clone()));
    let lived = live(spec, stop, target, &clients, &cluster, &producer).await;
    let lived = match lived {
        Err(TaskFailure::Lost(cause)) => {
            let asked = unless_stopped(stop, lost_or_superseded(&cluster, &producer, cause.clone())).await;
            Err(advise(asked.unwrap_or(TaskFailure::Lost(cause)), spec, &clients))
        }
        lived => lived.map_err(|failure| advise(failure, spec, &clients)),
    };
    if let Err(error) = producer.close(PRODUCER_CLOSE_MAX).await {
        tracing::warn!(task = spec.name(), "closing the producer: {error}");
    }
    cluster.close().await;
    lived
}

/// False: a stop came first.
async fn wait_out_pause(spec: &TaskSpec, stop: &StopSignal, target: &mut watch::Receiver<Target>) -> bool {
    if *target.borrow() == Target::Running {
        return true;
    }
    spec.teller.tell(State::Paused, None);
    let resumed = unless_stopped(stop, target.wait_for(|target| *target == Target::Running)).await;
    resumed.is_some_and(|resumed| resumed.is_ok())
}

pub(super) async fn unless_stopped<T>(stop: &StopSignal, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop.stopped() => None,
        done = work => Some(done),
    }
}

async fn live(
    spec: &TaskSpec,
    stop: &StopSignal,
    target: watch::Receiver<Target>,
    clients: &TaskClients,
    cluster: &Cluster,
    producer: &Arc<TransactionalProducer>,
) -> Result<(), TaskFailure> {
    let Some(identity) = unless_stopped(stop, producer.init()).await else { return Ok(()) };
    let identity = identity?;
    if let Some(surroundings) = &spec.surroundings {
        let Some(wanted) = unless_stopped(stop, surroundings.gate.verify()).await else { return Ok(()) };
        wanted?;
    }
    let own = OwnTopic { worker: &spec.worker, connector: &spec.connector, exactly_once: true, cluster };
    if !spec.connector.writes_exactly_once(&spec.worker) {
        let config = plain_clients(&spec.worker, &spec.connector.originals, &spec.connector.name, spec.number)
            .map_err(TaskFailure::failed)?;
        let producer = PlainProducer::fencible(cluster.clone(), config.producer.clone(), identity);
        return live_plainly(spec, stop, target, &config, cluster, producer).await;
    }
    if let Some(carried) = unless_stopped(stop, carry_epoch(spec, cluster, producer.transactional_id(), identity)).await
    {
        carried?;
    }
    let Some(offsets) = unless_stopped(stop, stores::exactly_once(&own, stores::shared(spec))).await else {
        return Ok(());
    };
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
        outlet: Outlet {
            stage: producer.stage(),
            sticky_bytes: clients.producer.batch_bytes,
            delivery: Delivered::InTransactions { own_offsets_topic: offsets.topic().clone() },
            admin: stores::other_admin(spec, cluster)?,
        },
    };
    let started = start(spec, target, cluster, sides).await?;
    let boundary = BoundaryState::new(spec.connector.boundary, clients.producer.transaction_timeout, Instant::now());
    let work = ExactlyOnce::new(producer.clone(), offsets, boundary, started.notices.clone(), spec.metrics.clone())
        .with_dead_letters(dead_letter_topic(spec));
    started.live(Work::ExactlyOnce(Box::new(work)), spec).run(stop).await
}

/// Where the connector was once without transactions: zombies of that time write plainly, and a partition refuses them only
/// once it has heard of a newer epoch. See `docs/decisions/0007`.
async fn carry_epoch(
    spec: &TaskSpec,
    cluster: &Cluster,
    transactional_id: &str,
    identity: ProducerIdentity,
) -> Result<(), TaskFailure> {
    let Some(surroundings) = spec.surroundings.as_ref().filter(|_| spec.connector.source == SourceChoice::Enabled)
    else {
        return Ok(());
    };
    let mut topics: BTreeSet<String> = surroundings.gate.written_topics().await.into_iter().collect();
    if let Stores::Own(topic) | Stores::Both(topic) = stores::stores_of(&spec.worker, &spec.connector, true) {
        topics.insert(topic);
    }
    epochs::carry(cluster, transactional_id, identity, &topics).await
}

/// Runs the task once, at-least-once, until a stop or a failure.
///
/// # Errors
/// Why it can't go on.
pub async fn at_least_once(
    spec: &TaskSpec,
    stop: &StopSignal,
    mut target: watch::Receiver<Target>,
) -> Result<(), TaskFailure> {
    let clients = plain_clients(&spec.worker, &spec.connector.originals, &spec.connector.name, spec.number)
        .map_err(TaskFailure::failed)?;
    for warning in &clients.warnings {
        tracing::warn!(task = spec.name(), "{warning}");
    }
    if spec.surroundings.is_some() && !wait_out_pause(spec, stop, &mut target).await {
        return Ok(());
    }
    let Some(cluster) = unless_stopped(stop, Cluster::connect(clients.client.clone())).await else { return Ok(()) };
    let cluster = cluster?;
    let producer = PlainProducer::new(cluster.clone(), clients.producer.clone());
    let lived = live_plainly(spec, stop, target, &clients, &cluster, producer).await;
    cluster.close().await;
    lived
}

async fn live_plainly(
    spec: &TaskSpec,
    stop: &StopSignal,
    target: watch::Receiver<Target>,
    clients: &PlainClients,
    cluster: &Cluster,
    producer: PlainProducer,
) -> Result<(), TaskFailure> {
    let producer = Arc::new(producer);
    let exactly_once = spec.connector.can_be_fenced(&spec.worker);
    let own = OwnTopic { worker: &spec.worker, connector: &spec.connector, exactly_once, cluster };
    let opened = match stores::shared(spec) {
        None => Some(stores::in_a_file(spec)),
        Some(shared) => unless_stopped(stop, stores::at_least_once(&own, shared, &producer)).await,
    };
    let Some(opened) = opened else { return Ok(()) };
    let (offsets, sink) = opened?;
    let sides = Sides {
        offsets: offsets.reader(),
        transaction: None,
        outlet: Outlet {
            stage: producer.stage(),
            sticky_bytes: clients.producer.batch_bytes,
            delivery: Delivered::AtLeastOnce,
            admin: stores::other_admin(spec, cluster)?,
        },
    };
    let started = start(spec, target, cluster, sides).await?;
    let work = AtLeastOnce::new(Parts {
        producer,
        offsets,
        sink,
        notices: started.notices.clone(),
        metrics: spec.metrics.clone(),
        tolerance: spec.connector.errors.tolerance,
        dead_letters: dead_letter_topic(spec),
        flush_interval: spec.worker.offset_flush_interval,
        flush_timeout: spec.worker.offset_flush_timeout,
    });
    started.live(Work::AtLeastOnce(Box::new(work)), spec).run(stop).await
}

fn dead_letter_topic(spec: &TaskSpec) -> Option<Arc<str>> {
    spec.connector.dead_letters.as_ref().map(|letters| letters.topic.clone())
}

/// What a person can do about a failure, where the brokers' words alone don't say it.
fn advise(failure: TaskFailure, spec: &TaskSpec, clients: &TaskClients) -> TaskFailure {
    let message = failure.message();
    let timeout_ms = clients.producer.transaction_timeout.as_millis();
    let advice = if message.contains("INVALID_TRANSACTION_TIMEOUT") {
        format!("transaction.timeout.ms is {timeout_ms}, lower it, or raise the brokers' transaction.max.timeout.ms")
    } else if message.contains("INVALID_PRODUCER_EPOCH") && matches!(failure, TaskFailure::Lost(_)) {
        format!(
            "the transaction has probably outlived transaction.timeout.ms, which is {timeout_ms}: raise it \
             (producer.override.transaction.timeout.ms), shorten transaction.boundary.interval.ms, or use \
             transaction.boundary=poll"
        )
    } else if message.contains("AUTHORIZATION_FAILED") {
        let properties = clients::producer_properties(&spec.worker, &spec.connector.originals);
        format!("the task's producer is {} to the brokers", acl::principal(&properties))
    } else {
        return failure;
    };
    let message = format!("{message}; {advice}");
    failure.with_message(message)
}
