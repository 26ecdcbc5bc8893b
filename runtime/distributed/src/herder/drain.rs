//! Handing everything over before a worker goes (`POST /worker/drain`).
//!
//! A worker that simply leaves makes the group wait for its return (`scheduled.rebalance.max.delay.ms`, five minutes). One
//! that drains stays a member, reports that it runs nothing, and says that it is going. All members of the last round are
//! still there, so the leader takes what is missing as assignments that did not arrive and deals it out at once. A leader of
//! ours deals it to the others. A Java leader does not see that the worker is going, and that it has the least load: most or
//! all comes back. That is not asked for again: a join that says the same is answered from the round that was, and a new round
//! would end in the same way. The group finds it when the worker leaves, as after any departure.
//!
//! Where tasks are delivered exactly once they go on until the others have been told to start: a new owner fences the old
//! one, so both cannot commit, and the source is read again after a fraction of a second. What came back goes on until the
//! worker leaves. Without fencing all stop first. Connector instances always do: their end must not be told after the next
//! one's beginning.
//!
//! The worker stays until the others say that they run what they were given. If it leads, they need it to be let in; and while
//! a round goes on, which its leaving begins, nobody is.

use super::group::task_pair;
use super::tick::{Held, Tick};
use oncewire_membership::{Assignment, Load, TaskId};
use oncewire_rest::herder::Answer;
use oncewire_rest::model::{DrainState, DrainStatus};
use oncewire_topics::State;
use oncewire_worker::config::worker::ExactlyOnceSource;
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

/// How far a drain is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Drain {
    /// Not asked for.
    #[default]
    Off,
    /// Handing over.
    On {
        /// What ran here.
        tasks: BTreeSet<TaskId>,
        /// Whether the group was told. A round that was under way before knows nothing of it; the next one follows by itself.
        said: bool,
    },
    /// Assigned to others, who may still be starting it.
    HandedOver {
        /// What ran here and has another owner now.
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
        *self != Self::Off
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
    pub(super) async fn drain(&mut self) -> Answer<DrainStatus> {
        if self.draining == Drain::Off {
            tracing::info!("handing over all connectors and tasks");
            self.draining = Drain::On { tasks: self.running().tasks, said: false };
            self.rejoin("draining");
        }
        let here = self.running();
        let state = if self.draining.is_out() { DrainState::Drained } else { DrainState::Draining };
        Ok(DrainStatus { state, connectors: here.connectors.len(), tasks: here.tasks.len() })
    }

    /// What the next JoinGroup says that runs here.
    pub(super) async fn allocation_to_report(&mut self) -> Option<Assignment> {
        if self.draining.is_on() {
            if let Drain::On { said, .. } = &mut self.draining {
                *said = true;
            }
            if self.parts.config.exactly_once != ExactlyOnceSource::Enabled {
                self.stop_everything().await;
            }
            let connectors = self.running().connectors;
            if !connectors.is_empty() {
                self.stop_load(&Load { connectors, ..Load::default() }).await;
                if let Err(error) = self.parts.view.statuses.flush(STATUS_FLUSH_MAX).await {
                    tracing::info!("the connectors' last statuses are not written yet: {error}");
                }
            }
            if let Some(Held { assignment, .. }) = &mut self.held {
                assignment.assigned = Load::default();
            }
            return None;
        }
        self.held.as_ref().map(|held| held.assignment.clone())
    }

    /// After each turn: when the round is over it is waited for those who were given something, then the group is left.
    pub(super) async fn go_on_draining(&mut self) {
        let knows = !matches!(self.draining, Drain::On { said: false, .. });
        if !knows || !self.draining.is_on() || self.draining.is_out() || self.is_rebalancing() {
            return;
        }
        let back = self.held.as_ref().map(|held| held.assignment.assigned.clone()).unwrap_or_default();
        let handed_over = self.running().difference(&back);
        if !handed_over.is_empty() {
            self.stop_load(&handed_over).await;
            self.forget_topics(&handed_over);
        }
        if let Drain::On { tasks, .. } = &self.draining {
            if !back.is_empty() {
                tracing::info!(
                    back = back.len(),
                    "work came back while draining; the group gets it when the worker leaves"
                );
            }
            let tasks = tasks.difference(&back.tasks).cloned().collect();
            self.draining = Drain::HandedOver { tasks, until: Instant::now() + HAND_OVER_MAX };
        }
        let Drain::HandedOver { tasks, until } = &self.draining else { return };
        if Instant::now() < *until && !tasks.iter().all(|task| self.runs_elsewhere(task)) {
            return;
        }
        self.stop_everything().await;
        self.leave_drained().await;
    }

    fn runs_elsewhere(&self, task: &TaskId) -> bool {
        let Some((connector, task)) = task_pair(task) else { return true };
        let status = self.parts.view.statuses.task(&connector, task);
        status.is_none_or(|status| status.state != State::Unassigned && status.worker_id != self.parts.worker_id)
    }

    async fn leave_drained(&mut self) {
        self.parts.member.leave("drained", LEAVE_MAX).await;
        self.held = None;
        self.draining = Drain::Out;
        self.parts.view.update_group(|group| {
            group.rebalancing = false;
            group.leads = false;
        });
        tracing::info!("drained: nothing runs here any more, and the group was left");
    }
}
