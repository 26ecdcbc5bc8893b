//! The handle on a member: events out, answers in, and the background task that it owns.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::driver::{Shared, run};
use super::state::{Machine, NO_GENERATION, State};
use super::{GroupConfig, GroupEvent, Protocol};
use crate::cluster::{Backoff, Cluster, Purpose};

/// A member of a classic group.
///
/// Its heartbeats are sent by a background task between the first [`GroupMember::next`] and [`GroupMember::leave`]. Whoever
/// drops a member without leaving lets its session expire: the others get its work only then.
#[derive(Debug)]
pub struct GroupMember {
    cluster: Cluster,
    config: GroupConfig,
    number: u32,
    shared: Arc<Shared>,
    /// The background task, while it runs.
    task: JoinSet<()>,
    member_id: String,
    generation: i32,
}

impl GroupMember {
    /// A member that has not joined yet; [`GroupMember::next`] makes it join.
    #[must_use]
    pub fn new(cluster: Cluster, config: GroupConfig) -> Self {
        let settings = cluster.config();
        let backoff = Backoff::new(settings.retry_backoff, settings.retry_backoff_max);
        let machine = Machine::new(config.clone(), backoff, Instant::now());
        Self {
            number: cluster.member_number(),
            shared: Arc::new(Shared::new(machine)),
            cluster,
            config,
            task: JoinSet::new(),
            member_id: String::new(),
            generation: NO_GENERATION,
        }
    }

    /// The next thing to know or to do; waits for it. While it waits the member counts as alive. If nobody waits here for
    /// [`GroupConfig::rebalance_timeout`], the member leaves the group.
    ///
    /// [`GroupEvent::Offer`] and [`GroupEvent::Lead`] come again with each call until they are answered.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event, and stops nothing.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub async fn next(&mut self) -> GroupEvent {
        loop {
            self.ensure_task();
            if let Some(event) = self.take_event() {
                return event;
            }
            // Woken at least this often, so that a caller that does not poll this future any more is found out.
            let next_sign_of_life = Instant::now() + self.config.heartbeat_interval;
            if timeout_at(next_sign_of_life, self.shared.event.notified()).await.is_err() {
                tracing::trace!(group_id = self.config.group_id, "no event");
            }
        }
    }

    /// Starts the background task, or starts it again after a leave that was dropped before its end.
    fn ensure_task(&mut self) {
        while let Some(ended) = self.task.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(group_id = self.config.group_id, %error, "the task of a group member failed");
            }
        }
        if self.task.is_empty() {
            let shared = Arc::clone(&self.shared);
            self.task.spawn(run(shared, self.cluster.clone(), self.config.clone(), self.number));
        }
    }

    fn take_event(&mut self) -> Option<GroupEvent> {
        let mut machine = self.shared.lock();
        let before = machine.deadline();
        machine.handle_polled(Instant::now());
        let event = machine.poll_event();
        self.member_id.clone_from(&machine.member_id);
        self.generation = machine.generation;
        // Only for news to it: it wakes us in turn.
        let is_due_earlier = |after| before.is_none_or(|before| after < before);
        let is_news = !machine.outputs.is_empty() || machine.deadline().is_some_and(is_due_earlier);
        drop(machine);
        if is_news {
            self.shared.input.notify_one();
        }
        if let Some(GroupEvent::Lost { cause }) = &event {
            tracing::debug!(group_id = self.config.group_id, "the group's assignment is void: {cause}");
        }
        event
    }

    /// The answer to [`GroupEvent::Offer`], the preferred protocol first. Without the question it is ignored.
    pub fn offer(&mut self, protocols: Vec<Protocol>) {
        self.give(|machine, now| machine.handle_offer(now, protocols));
    }

    /// The answer to [`GroupEvent::Lead`]: each member's assignment by its id. Without the question it is ignored; so it is
    /// when the group went on meanwhile.
    pub fn assign(&mut self, assignments: Vec<(String, Bytes)>) {
        self.give(|machine, now| machine.handle_assign(now, assignments));
    }

    /// Asks for a rebalance. One that is asked for while a join is under way follows that join. `reason` is for the
    /// coordinator's log (KIP-800).
    pub fn rejoin(&mut self, reason: &str) {
        self.give(|machine, now| machine.handle_rejoin(now, reason));
    }

    fn give(&mut self, input: impl FnOnce(&mut Machine, Instant)) {
        input(&mut self.shared.lock(), Instant::now());
        self.shared.input.notify_one();
    }

    /// Leaves the group, so that the others get its work at once, and ends the background task. Events that were not taken
    /// are dropped; the next [`GroupMember::next`] joins afresh.
    ///
    /// When the coordinator does not answer within `patience`, the session's end does the same later.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the member leaving.
    pub async fn leave(&mut self, reason: &str, patience: Duration) {
        let deadline = Instant::now() + patience;
        self.give(|machine, now| machine.handle_leave(now, reason, patience));
        if !self.task.is_empty() {
            while self.shared.lock().state != State::Idle {
                if timeout_at(deadline, self.shared.event.notified()).await.is_err() {
                    break;
                }
            }
            self.shared.closing.notify_one();
            while self.task.join_next().await.is_some() {}
        }
        // A request that was not answered must not stand in the way of the next membership.
        self.release();
        let mut machine = self.shared.lock();
        machine.left();
        self.member_id.clear();
        self.generation = NO_GENERATION;
    }

    fn release(&self) {
        self.cluster.release(Purpose::Join(self.number));
        self.cluster.release(Purpose::Membership(self.number));
    }

    /// The id that the coordinator gave, as of the last event; empty when there is none.
    #[must_use]
    pub fn member_id(&self) -> &str {
        &self.member_id
    }

    /// The generation as of the last event, -1 when there is none.
    #[must_use]
    pub fn generation(&self) -> i32 {
        self.generation
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        // The task is aborted by its set; what it has parked at the broker is not wanted any more.
        self.release();
    }
}
