//! What time alone changes. Every wait of the machine ends here at the latest.

use super::Machine;
use crate::ids::{PartitionIndex, Time};
use crate::outcome::{Cause, RequestKind};
use crate::output::Protocol;
use crate::state::{Initializing, State};

impl Machine {
    /// Apply every deadline that has passed.
    pub(super) fn expire(&mut self) {
        let now = self.now;
        match &self.state {
            State::Initializing(initializing) if initializing.deadline <= now => {
                let request = if self.has_orphans() { RequestKind::Produce } else { initializing.waits_for() };
                self.fail_init(Cause::DeadlinePassed { request, partition: None });
            }
            State::Ready(_) => self.expire_bump(),
            State::InTransaction(_) => {
                self.expire_bump();
                self.expire_transaction();
            }
            State::Ending(..) => {
                self.expire_bump();
                self.expire_transaction();
                if matches!(&self.state, State::Ending(_, ending) if ending.deadline <= now) {
                    self.ending_expired();
                }
            }
            _ => {}
        }
    }

    fn expire_bump(&mut self) {
        if self.bump_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.identity_lost(Cause::DeadlinePassed { request: RequestKind::InitProducerId, partition: None });
        }
    }

    fn expire_transaction(&mut self) {
        if self.age_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.abort_only(Cause::TransactionTooOld);
        } else if let Some((partition, deadline)) = self.delivery_deadline()
            && deadline <= self.now
        {
            let request = self.undelivered_because(partition);
            self.abort_only(Cause::DeadlinePassed { request, partition: Some(partition) });
        }
    }

    /// What a batch of this partition has waited for.
    fn undelivered_because(&self, partition: PartitionIndex) -> RequestKind {
        let added = self.state.open().is_none_or(|open| {
            open.session.protocol == Protocol::Implicit || open.transaction.partitions.is_added(partition)
        });
        if added { RequestKind::Produce } else { RequestKind::AddPartitions }
    }

    /// While something may still be sent under this session.
    fn bump_deadline(&self) -> Option<Time> {
        let session = match &self.state {
            State::Ready(session) => session,
            state => &state.producing()?.session,
        };
        session.bump.map(|bump| bump.deadline)
    }

    /// While the transaction can still be turned into an abort.
    fn age_deadline(&self) -> Option<Time> {
        let opened_at = self.state.producing()?.transaction.opened_at?;
        (!self.commit_may_have_left()).then(|| opened_at.after(self.settings.transaction_age_max))
    }

    fn delivery_deadline(&self) -> Option<(PartitionIndex, Time)> {
        self.state.producing()?;
        self.lanes.next_deadline()
    }

    /// When time alone will change something next.
    pub(super) fn next_wake(&self) -> Option<Time> {
        let own = match &self.state {
            State::Initializing(initializing) => Some(initializing.deadline),
            State::Ending(_, ending) => Some(ending.deadline),
            _ => None,
        };
        let deadlines = [
            own,
            self.bump_deadline(),
            self.age_deadline(),
            self.delivery_deadline().map(|(_, deadline)| deadline),
            self.coordinator_wake(),
            self.lane_wake(),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn lane_wake(&self) -> Option<Time> {
        self.state.producing()?;
        let held = self.lanes.held().filter(|(partition, _)| self.state.admits(*partition));
        held.filter_map(|(_, lane)| lane.held_until(self.now)).min()
    }
}

impl Initializing {
    fn waits_for(&self) -> RequestKind {
        let settling = self.standing.as_ref().is_some_and(|standing| standing.unsettled.is_some());
        if settling { RequestKind::EndTxn } else { RequestKind::InitProducerId }
    }
}
