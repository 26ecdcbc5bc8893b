//! Handing everything over before a worker goes (`POST /worker/drain`).
//!
//! ```text
//!       asked         a join says so         its round is over            they run it, or another round begins
//!  Off ───────► Asked ───────────────► On ─────────────────────► HandedOver ───────────────────────────────────► Out
//!                 ▲                     │
//!                 └─────────────────────┘ the membership was lost, or the round waits for a worker that left
//! ```
//!
//! A worker that simply leaves makes the group wait for its return (`scheduled.rebalance.max.delay.ms`, five minutes). One
//! that drains stays a member, reports that it runs nothing, and says that it is going. All members of the last round are
//! still there, so the leader takes what is missing as assignments that did not arrive and deals it out at once. A leader of
//! ours deals it to the others. A Java leader does not see that the worker is going, and that it has the least load: most or
//! all comes back. That is not asked for again: a join that says the same is answered from the round that was, and a new round
//! would end in the same way. The group finds it when the worker leaves, as after any departure.
//!
//! While a group waits for a worker that left, all that is missing waits, whoever missed it. So nothing is handed over then: all
//! goes on until that wait is over. Where it began in the very round of the drain, or the membership was lost in it, the
//! worker reports again what it had, and nobody takes it for gone.
//!
//! Where tasks are delivered exactly once they go on until the others have been told to start: a new owner fences the old
//! one, so both cannot commit, and the source is read again after a fraction of a second. What came back goes on until the
//! worker leaves. A task that is still starting stops before the round: its InitProducerId could come after its successor's and
//! fence it. Without fencing all stop first. Connector instances always do: their end must not be told after the next
//! one's beginning.
//!
//! The worker stays until the others say that they run what they were given. If it leads, they need it to be let in; and while
//! a round goes on, which its leaving begins, nobody is. Another round that begins meanwhile is as good as its own: whoever does
//! not lead leaves before it, since a leader that does not know better would give it more, to wait with nobody running it.

use super::group::task_pair;
use super::tick::{Held, Tick};
use oncewire_membership::{Assignment, Load, TaskId};
use oncewire_rest::herder::Answer;
use oncewire_rest::model::{DrainState, DrainStatus};
use oncewire_topics::State;
use oncewire_worker::config::worker::ExactlyOnceSource;
use oncewire_worker::worker::State as TaskState;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long the LeaveGroup at the end may take: 3 s.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// How long the others may take to start what was handed over, before the worker leaves all the same: 5 s.
const HAND_OVER_MAX: Duration = Duration::from_secs(5);

/// How often it is looked whether they have: 20 ms.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long the connectors' last statuses may take to be written: 1 s.
const STATUS_FLUSH_MAX: Duration = Duration::from_secs(1);

/// How far a drain is; see the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Drain {
    /// Not asked for.
    #[default]
    Off,
    /// All goes on as usual until a join may say so.
    Asked,
    /// The group is told.
    On {
        /// What was assigned here.
        had: Load,
    },
    /// Assigned to others, who may still be starting it.
    HandedOver {
        /// What was assigned here and has another owner now.
        tasks: BTreeSet<TaskId>,
        /// Until then they are waited for.
        until: Instant,
    },
    /// Out of the group.
    Out,
}

impl Drain {
    /// Whether nothing is to be started here.
    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Self::Off | Self::Asked)
    }

    /// Whether the group was left.
    pub(super) fn is_out(&self) -> bool {
        *self == Self::Out
    }

    /// When to look at it again, whatever happens.
    pub(super) fn due(&self) -> Option<Instant> {
        matches!(self, Self::HandedOver { .. }).then(|| Instant::now() + LOOK_EVERY)
    }
}

impl Tick {
    /// Begins with the next turn's [`Tick::go_on_draining`].
    pub(super) fn drain(&mut self) -> Answer<DrainStatus> {
        if self.draining == Drain::Off {
            self.draining = Drain::Asked;
            match self.rejoin_at {
                None => tracing::info!("handing over all connectors and tasks"),
                Some(at) => tracing::info!(
                    "handing over all connectors and tasks in {:?}: until then the group waits for a worker that left",
                    at.saturating_duration_since(Instant::now())
                ),
            }
        }
        let here = self.running();
        let state = if self.draining.is_out() { DrainState::Drained } else { DrainState::Draining };
        Ok(DrainStatus { state, connectors: here.connectors.len(), tasks: here.tasks.len() })
    }

    /// A join begins: it says so, if it may.
    pub(super) fn begin_handing_over(&mut self) {
        let assigned = || self.held.as_ref().map(|held| held.assignment.assigned.clone()).unwrap_or_default();
        match &self.draining {
            Drain::Asked if self.may_hand_over() => {
                self.draining = Drain::On { had: assigned() };
                self.parts.view.update_group(|group| group.draining = true);
            }
            // Its last round came to nothing.
            Drain::On { had } => self.draining = Drain::On { had: had.union(&assigned()) },
            _ => {}
        }
    }

    /// What the next JoinGroup says that runs here.
    pub(super) async fn allocation_to_report(&mut self) -> Option<Assignment> {
        if !self.draining.is_on() {
            return self.held.as_ref().map(|held| held.assignment.clone());
        }
        let mut stops = self.running();
        if self.parts.config.exactly_once == ExactlyOnceSource::Enabled {
            stops.tasks.retain(|task| !self.works(task));
        }
        if !stops.is_empty() {
            self.stop_load(&stops).await;
            self.forget_topics(&stops);
        }
        if !stops.connectors.is_empty()
            && let Err(error) = self.parts.view.statuses.flush(STATUS_FLUSH_MAX).await
        {
            tracing::info!("the connectors' last statuses are not written yet: {error}");
        }
        if let Some(Held { assignment, .. }) = &mut self.held {
            assignment.assigned = Load::default();
        }
        None
    }

    /// A worker that is out of the group is waited for, and so is all that it does not say to have when it is in again.
    fn may_hand_over(&self) -> bool {
        self.held.is_none() || (self.parts.view.group().member && self.rejoin_at.is_none())
    }

    /// Whether a task is past its start.
    fn works(&self, task: &TaskId) -> bool {
        task_pair(task).and_then(|(connector, task)| self.parts.worker.task_state(&connector, task))
            == Some(TaskState::Running)
    }

    /// Nobody has taken what was offered: the next join says again that it is here.
    pub(super) fn take_back(&mut self) {
        let Drain::On { had } = &self.draining else { return };
        if let Some(held) = &mut self.held {
            held.assignment.assigned.insert_all(had);
        }
        self.draining = Drain::Asked;
        self.parts.view.update_group(|group| group.draining = false);
    }

    /// After each turn: when the round is over it is waited for those who were given something, then the group is left.
    pub(super) async fn go_on_draining(&mut self) {
        if self.is_rebalancing() {
            return;
        }
        match &self.draining {
            Drain::Asked if self.rejoin_at.is_none() => self.rejoin("draining"),
            Drain::On { .. } if self.rejoin_at.is_some() => {
                tracing::info!("the group waits for a worker that left; going on until it does no more");
                self.take_back();
                self.rejoin("nobody takes over while the group waits");
            }
            Drain::On { had } => {
                let had = had.clone();
                self.hand_over(&had).await;
            }
            Drain::Off | Drain::Asked | Drain::HandedOver { .. } | Drain::Out => {}
        }
        let Drain::HandedOver { tasks, until } = &self.draining else { return };
        if Instant::now() >= *until || tasks.iter().all(|task| self.runs_elsewhere(task)) {
            self.leave_drained().await;
        }
    }

    async fn hand_over(&mut self, had: &Load) {
        let back = self.held.as_ref().map(|held| held.assignment.assigned.clone()).unwrap_or_default();
        let handed_over = self.running().difference(&back);
        if !handed_over.is_empty() {
            self.stop_load(&handed_over).await;
            self.forget_topics(&handed_over);
        }
        if !back.is_empty() {
            tracing::info!(
                back = back.len(),
                "work came back while draining; the group gets it when the worker leaves"
            );
        }
        let tasks = had.tasks.difference(&back.tasks).cloned().collect();
        self.draining = Drain::HandedOver { tasks, until: Instant::now() + HAND_OVER_MAX };
    }

    fn runs_elsewhere(&self, task: &TaskId) -> bool {
        if self.leads() && self.owners.task_url(task).is_none() {
            // No other member is there to be given it.
            return true;
        }
        let Some((connector, task)) = task_pair(task) else { return true };
        let status = self.parts.view.statuses.task(&connector, task);
        status.is_none_or(|status| status.state != State::Unassigned && status.worker_id != self.parts.worker_id)
    }

    /// Another round begins, or this worker can't go on with its own: true if it is out then, in place of taking part.
    pub(super) async fn leaves_instead(&mut self) -> bool {
        if matches!(self.draining, Drain::HandedOver { .. }) {
            self.leave_drained().await;
        }
        self.draining.is_out()
    }

    async fn leave_drained(&mut self) {
        self.stop_everything().await;
        self.parts.member.leave("drained", LEAVE_MAX).await;
        self.held = None;
        self.rejoin_at = None;
        self.draining = Drain::Out;
        self.parts.view.update_group(|group| {
            if group.leads {
                // The next one is not known, and this worker does not hear of it.
                group.leader_url = None;
            }
            group.rebalancing = false;
            group.leads = false;
            group.member = false;
        });
        tracing::info!("drained: nothing runs here any more, and the group was left");
    }
}
