//! Keeps one task alive: runs it, looks at how it ended, starts it again or not, and tells its state.

use super::restart::{Next, Progress, Restarts};
use crate::error::TaskFailure;
use crate::task::ahead::Target;
use crate::task::run::{TaskSpec, at_least_once, fenced};
use crate::worker::status::State;
use oncewire_api::StopSignal;
use tokio::sync::watch;

/// Where a task stands; the first five are Connect's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// Not started yet.
    Unassigned,
    /// Working, or starting.
    Running,
    /// Waits for its next start.
    Restarting {
        /// Why it ended.
        cause: String,
        /// Starts in a row without a commit.
        attempt: u32,
    },
    /// Ended for good.
    Failed {
        /// Why.
        cause: String,
    },
    /// Stopped when asked.
    Stopped,
    /// A newer owner has its transactional id.
    Superseded {
        /// How it learnt.
        cause: String,
    },
}

impl TaskState {
    /// Whether nothing follows.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Stopped | Self::Superseded { .. })
    }
}

/// Runs a task until a stop or for as long as restarts make sense. The final state is the result too.
///
/// # Cancel safety
/// Dropping it abandons the task where it stands; its open transaction then ends by timeout or by its successor.
pub async fn supervise(
    spec: TaskSpec,
    stop: StopSignal,
    target: watch::Receiver<Target>,
    states: watch::Sender<TaskState>,
) -> TaskState {
    let mut restarts = Restarts::default();
    loop {
        states.send_replace(TaskState::Running);
        let before = spec.metrics.counts().transactions_committed;
        let failure = match live_once(&spec, &stop, target.clone()).await {
            Ok(()) => {
                let counts = spec.metrics.counts();
                let (records, transactions) = (counts.records_committed, counts.transactions_committed);
                tracing::info!(task = spec.name(), records, transactions, "stopped");
                return settle(&spec, &states, TaskState::Stopped);
            }
            Err(failure) if stop.is_stopped() => {
                tracing::warn!(task = spec.name(), "stopped, and what was under way is not committed: {failure}");
                return settle(&spec, &states, TaskState::Stopped);
            }
            Err(failure) => failure,
        };
        let progress =
            if spec.metrics.counts().transactions_committed > before { Progress::Committed } else { Progress::Nothing };
        let cause = failure.to_string();
        match restarts.after(&failure, progress, spec.worker.restart) {
            Next::StepAside => {
                tracing::warn!(task = spec.name(), "superseded: {cause}");
                return settle(&spec, &states, TaskState::Superseded { cause });
            }
            Next::GiveUp => {
                tracing::error!(task = spec.name(), "task failed: {cause}");
                return settle(&spec, &states, TaskState::Failed { cause });
            }
            Next::Restart { after, attempt } => {
                tracing::warn!(task = spec.name(), attempt, "starts again in {after:?}: {cause}");
                spec.teller.tell(State::Restarting, Some(cause.clone()));
                states.send_replace(TaskState::Restarting { cause, attempt });
                tokio::select! {
                    () = stop.stopped() => return settle(&spec, &states, TaskState::Stopped),
                    () = tokio::time::sleep(after) => {}
                }
            }
        }
    }
}

fn settle(spec: &TaskSpec, states: &watch::Sender<TaskState>, state: TaskState) -> TaskState {
    match &state {
        // Kafka Connect knows no state for it; the trace says that nobody is to start it again here.
        TaskState::Superseded { cause } => {
            let trace = format!("superseded, a newer instance of this task works elsewhere: {cause}");
            spec.teller.tell(State::Failed, Some(trace));
        }
        TaskState::Failed { cause } => spec.teller.tell(State::Failed, Some(cause.clone())),
        _ => spec.teller.tell(State::Unassigned, None),
    }
    states.send_replace(state.clone());
    state
}

async fn live_once(spec: &TaskSpec, stop: &StopSignal, target: watch::Receiver<Target>) -> Result<(), TaskFailure> {
    if spec.connector.can_be_fenced(&spec.worker) {
        fenced(spec, stop, target).await
    } else {
        at_least_once(spec, stop, target).await
    }
}
