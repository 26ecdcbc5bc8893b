//! A task that runs: its polling side, its delivering side, and the order in which both end.
//!
//! End: ask polling to stop → commit what is prepared → the connector's `stop`. What does not come back within
//! `task.shutdown.graceful.timeout.ms` is abandoned: its polling is aborted, and no state is told of it any more.

use super::ahead::{Ahead, AheadEnd, DEPTH, Polled, Target};
use super::at_least_once::AtLeastOnce;
use super::dead_letter::DeadLetterWriter;
use super::exactly_once::ExactlyOnce;
use super::notices::Notices;
use super::prepare::{Converters, Delivered, Preparer};
use super::run::{PRODUCER_CLOSE_MAX, TaskSpec};
use super::teller::Teller;
use super::topics::Topics;
use crate::error::TaskFailure;
use crate::worker::status::State;
use oncewire_api::{OffsetReader, StopSignal, StopTrigger, TaskContext, TransactionContext, stop_signal};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::producer::Stage;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// What differs between the two modes when a task is started.
pub(super) struct Sides {
    pub offsets: Arc<dyn OffsetReader>,
    pub transaction: Option<TransactionContext>,
    pub outlet: Outlet,
}

/// How records leave.
pub(super) struct Outlet {
    pub stage: Stage,
    pub sticky_bytes: usize,
    pub delivery: Delivered,
    /// Who makes topics, where that is another client than the producer's.
    pub admin: Option<ClientConfig>,
}

/// The polling side, which ends with its owner: an abandoned task must not go on polling.
struct Polling(JoinHandle<AheadEnd>);

impl Drop for Polling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A task that polls.
pub(super) struct Started {
    trigger: StopTrigger,
    ahead: Polling,
    pub notices: Notices,
    polled: mpsc::Receiver<Polled>,
}

impl Started {
    pub(super) fn live(self, work: Work, spec: &TaskSpec) -> Life {
        Life {
            graceful: spec.worker.graceful_timeout,
            teller: spec.teller.clone(),
            trigger: self.trigger,
            ahead: self.ahead,
            work,
            polled: self.polled,
        }
    }
}

pub(super) async fn start(
    spec: &TaskSpec,
    target: watch::Receiver<Target>,
    cluster: &Cluster,
    sides: Sides,
) -> Result<Started, TaskFailure> {
    let converters = spec
        .connector
        .converters(&spec.worker, &spec.registry)
        .map_err(|error| TaskFailure::failed(error.to_string()))?;
    let mut preparer = preparer(spec, cluster, converters, sides.outlet).await?;
    let (trigger, signal) = stop_signal();
    let name = spec.connector.name.as_str();
    let context = TaskContext::new(name, spec.number, sides.offsets, signal.clone(), sides.transaction.clone());
    let mut task = (spec.make)();
    if let Err(error) = task.start(context, &spec.properties).await {
        task.stop().await;
        return Err(TaskFailure::failed(super::ahead::with_causes(&error)));
    }
    tracing::info!(task = spec.name(), "running");
    spec.teller.tell(State::Running, None);
    if task.wants_commit_record() {
        preparer.keep_records();
    }
    let notices = Notices::default();
    let (out, polled) = mpsc::channel(DEPTH);
    let ahead = Ahead {
        task,
        preparer,
        transaction: sides.transaction,
        notices: notices.clone(),
        stop: signal,
        target,
        out,
        teller: spec.teller.clone(),
        metrics: spec.metrics.clone(),
    };
    Ok(Started { trigger, ahead: Polling(tokio::spawn(ahead.run())), notices, polled })
}

/// What turns records into batches. Where dead letters can't be had, that is told before the connector hears of the task.
async fn preparer(
    spec: &TaskSpec,
    cluster: &Cluster,
    converters: Converters,
    outlet: Outlet,
) -> Result<Preparer, TaskFailure> {
    let connector = &spec.connector;
    let (creation, seed) = (connector.topic_creation.clone(), u64::from(spec.number) + 1);
    let topics = Topics::new(cluster.clone(), outlet.admin, creation, outlet.sticky_bytes, seed)
        .with_dead_letters(connector.dead_letters.clone());
    let classes = converters.classes;
    let told = (spec.teller.clone(), spec.metrics.clone());
    let mut preparer = Preparer::new(converters, topics, outlet.stage, connector.errors, outlet.delivery, told);
    if let Some(to) = connector.dead_letters.clone() {
        preparer.write_dead_letters(DeadLetterWriter::new(to, &connector.name, spec.number, classes)).await?;
    }
    Ok(preparer)
}

/// The delivering side of a task.
pub(super) enum Work {
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
    async fn finish(self, worked: Result<(), TaskFailure>) -> Result<(), TaskFailure> {
        match self {
            Self::ExactlyOnce(mut work) => match worked {
                Ok(()) => work.finish().await,
                failed => failed,
            },
            Self::AtLeastOnce(mut work) => {
                let finished = work.finish().await;
                work.close(PRODUCER_CLOSE_MAX).await;
                worked.and(finished)
            }
        }
    }
}

/// The two sides of a running task and what ends them.
pub(super) struct Life {
    graceful: Duration,
    teller: Arc<Teller>,
    trigger: StopTrigger,
    ahead: Polling,
    work: Work,
    polled: mpsc::Receiver<Polled>,
}

impl Life {
    pub(super) async fn run(mut self, stop: &StopSignal) -> Result<(), TaskFailure> {
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
        let polling = match tokio::time::timeout_at(deadline, &mut self.ahead.0).await {
            Ok(ended) => Some(ended),
            Err(_) => {
                self.ahead.0.abort();
                self.teller.silence();
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
