//! Poll ahead: owns the source task, polls it, prepares what came, and hands it on through a channel that is short.
//!
//! `poll` is never dropped: a stop is asked for through the task's own signal, and the loop looks at it when `poll` has come
//! back. Only the owner of this loop may abandon it as a whole. Memory: [`DEPTH`] prepared polls, the one being prepared, and
//! no more than [`BYTES_AHEAD_MAX`] bytes of batches waiting (one poll's result may be larger; it then waits alone).

use super::notices::Notices;
use super::prepare::{Part, Preparer};
use super::teller::Teller;
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use crate::worker::status::State;
use oncewire_api::{Boundary as Ask, SourceTask, StopSignal, TaskError, TransactionContext};
use oncewire_client::complaint::Complaint;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Prepared polls that may wait for the transaction before them.
pub const DEPTH: usize = 2;

/// Bytes of prepared batches that may wait: 32 MiB, as much as `buffer.memory` lets be on its way.
pub const BYTES_AHEAD_MAX: u32 = 32 << 20;

/// The wait after a retriable error of `poll`, so that a source that is down is not asked in a tight loop.
const RETRIABLE_PAUSE: Duration = Duration::from_millis(100);

/// Whether a task shall work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Poll.
    Running,
    /// Commit what there is, then wait.
    Paused,
}

/// What the loop hands on.
pub enum Polled {
    /// A poll's records.
    Parts(Vec<Part>, OwnedSemaphorePermit),
    /// A poll without records, with what the connector asked.
    Nothing(Option<Ask>),
    /// The task was paused: end what is open.
    Pause(Option<Ask>),
}

/// Everything that the loop needs.
pub struct Ahead {
    /// The connector's task, started.
    pub task: Box<dyn SourceTask>,
    /// Turns records into batches.
    pub preparer: Preparer,
    /// Where a connector asks for transaction boundaries.
    pub transaction: Option<TransactionContext>,
    /// What was committed.
    pub notices: Notices,
    /// When to stop.
    pub stop: StopSignal,
    /// Whether to work.
    pub target: watch::Receiver<Target>,
    /// Where prepared polls go.
    pub out: mpsc::Sender<Polled>,
    /// Who hears of a pause and of its end.
    pub teller: Arc<Teller>,
    /// Counters.
    pub metrics: Arc<TaskMetrics>,
}

/// How the loop ended, with the task for its `stop`.
pub struct AheadEnd {
    /// The connector's task.
    pub task: Box<dyn SourceTask>,
    /// What failed, if something did.
    pub failure: Option<TaskFailure>,
}

impl Ahead {
    /// Runs until a stop, a failure, or until nobody takes what it prepares.
    pub async fn run(mut self) -> AheadEnd {
        let failure = self.work().await.err();
        AheadEnd { task: self.task, failure }
    }

    async fn work(&mut self) -> Result<(), TaskFailure> {
        let room = Arc::new(Semaphore::new(BYTES_AHEAD_MAX as usize));
        let mut complaint = Complaint::default();
        while !self.stop.is_stopped() {
            self.notices.deliver(&mut *self.task).await;
            if *self.target.borrow() == Target::Paused && !self.wait_out_pause().await {
                break;
            }
            let asked = Instant::now();
            let polled = match self.task.poll().await {
                Ok(polled) => {
                    if let Some(after) = complaint.over(Instant::now()) {
                        tracing::info!("poll works again after {:.1} s", after.as_secs_f32());
                    }
                    polled
                }
                Err(error @ TaskError::Retriable { .. }) => {
                    let problem = with_causes(&error);
                    if let Some(told) = complaint.failed(Instant::now(), &problem) {
                        tracing::warn!("poll failed{told}, and is tried again: {problem}");
                    }
                    pause_briefly(&self.stop).await;
                    None
                }
                Err(error) => return Err(TaskFailure::failed(with_causes(&error))),
            };
            let asks = self.transaction.as_ref().map(TransactionContext::take).unwrap_or_default();
            let message = match polled {
                Some(records) => {
                    self.metrics.received(records.len(), asked.elapsed());
                    let parts = self.preparer.prepare(records, asks, now_ms()).await?;
                    let bytes = parts.iter().map(|part| part.bytes).sum::<usize>();
                    let wanted = u32::try_from(bytes).unwrap_or(u32::MAX).min(BYTES_AHEAD_MAX);
                    match room.clone().acquire_many_owned(wanted).await {
                        Ok(permit) => Polled::Parts(parts, permit),
                        Err(_) => break, // the semaphore is never closed; without it there is nobody to hand on to
                    }
                }
                None => Polled::Nothing(batch_ask(asks)?),
            };
            if self.out.send(message).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// False: a stop came first.
    async fn wait_out_pause(&mut self) -> bool {
        let asks = self.transaction.as_ref().map(TransactionContext::take).unwrap_or_default();
        let Ok(ask) = batch_ask(asks) else { return true };
        self.teller.tell(State::Paused, None);
        if self.out.send(Polled::Pause(ask)).await.is_err() {
            return false;
        }
        tokio::select! {
            () = self.stop.stopped() => false,
            resumed = self.target.wait_for(|target| *target == Target::Running) => {
                let resumed = resumed.is_ok();
                if resumed {
                    self.teller.tell(State::Running, None);
                }
                resumed
            }
        }
    }
}

async fn pause_briefly(stop: &StopSignal) {
    tokio::select! {
        () = stop.stopped() => {}
        () = tokio::time::sleep(RETRIABLE_PAUSE) => {}
    }
}

fn batch_ask(mut asks: oncewire_api::BoundaryRequests) -> Result<Option<Ask>, TaskFailure> {
    asks.after_batch().map_err(|error| TaskFailure::failed(error.to_string()))
}

/// An error with everything beneath it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut beneath = error.source();
    while let Some(cause) = beneath {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        beneath = cause.source();
    }
    text
}

/// Milliseconds since 1970; 0 on a clock that stands before.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
