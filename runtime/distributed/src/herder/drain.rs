//! Handing everything over before a worker goes (`POST /worker/drain`).
//!
//! A worker that simply leaves makes the group wait for its return (`scheduled.rebalance.max.delay.ms`, five minutes). One
//! that drains stays a member, reports that it runs nothing, and says that it is going. All members of the last round are
//! still there, so the leader takes what is missing as assignments that did not arrive and deals it out at once. A leader of
//! ours deals it to the others. A Java leader does not see that the worker is going and may give it something back: that is
//! not started but reported missing again, until nothing comes back. Then the worker leaves, and nobody waits for work that
//! it does not have.
//!
//! Where tasks are delivered exactly once they go on until the others have been told to start: a new owner fences the old
//! one, so both cannot commit, and the source is read again after a fraction of a second. Without fencing they stop first.

use super::tick::{Held, Tick};
use crate::config::ExactlyOnce;
use oncewire_membership::{Assignment, Load};
use oncewire_rest::herder::Answer;
use oncewire_rest::model::{DrainState, DrainStatus};
use std::time::Duration;

/// Rounds in which work may come back, from a Java leader, before the worker leaves all the same: 20.
const ROUNDS_MAX: u32 = 20;

/// How long the LeaveGroup at the end may take: 3 s.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// How far a drain is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Drain {
    /// Not asked for.
    #[default]
    Off,
    /// Handing over; so many rounds gave work back.
    On {
        /// Rounds.
        rounds: u32,
    },
    /// Out of the group.
    Out,
}

impl Drain {
    /// Whether nothing is to be started here.
    pub(super) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Whether the group was left.
    pub(super) fn is_out(self) -> bool {
        self == Self::Out
    }
}

impl Tick {
    pub(super) async fn drain(&mut self) -> Answer<DrainStatus> {
        if self.draining == Drain::Off {
            tracing::info!("handing over all connectors and tasks");
            self.draining = Drain::On { rounds: 0 };
            self.rejoin("draining");
        }
        let here = self.running();
        let state = if self.draining.is_out() { DrainState::Drained } else { DrainState::Draining };
        Ok(DrainStatus { state, connectors: here.connectors.len(), tasks: here.tasks.len() })
    }

    /// What the next JoinGroup says that runs here.
    pub(super) async fn allocation_to_report(&mut self) -> Option<Assignment> {
        if self.draining.is_on() {
            if self.parts.config.exactly_once != ExactlyOnce::Enabled {
                self.stop_everything().await;
            }
            if let Some(Held { assignment, .. }) = &mut self.held {
                assignment.assigned = Load::default();
            }
            return None;
        }
        self.held.as_ref().map(|held| held.assignment.clone())
    }

    /// After each turn: a round that came while draining is looked at, and at the end the group is left.
    pub(super) async fn go_on_draining(&mut self) {
        let Drain::On { rounds } = self.draining else { return };
        if self.is_rebalancing() {
            return;
        }
        self.stop_everything().await;
        let back = self.held.as_ref().map_or(0, |held| held.assignment.assigned.len());
        if back > 0 && rounds < ROUNDS_MAX {
            tracing::info!(back, "work came back while draining, giving it away again");
            self.draining = Drain::On { rounds: rounds + 1 };
            return self.rejoin("draining");
        }
        self.parts.member.leave("drained", LEAVE_MAX).await;
        self.held = None;
        self.draining = Drain::Out;
        self.parts.view.update_group(|group| {
            group.rebalancing = false;
            group.leads = false;
        });
        tracing::info!("drained: everything was handed over, and the group was left");
    }
}
