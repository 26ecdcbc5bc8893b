//! The member's side: what an assignment means to one who already runs something.

use std::time::Duration;

use crate::protocol::ConnectProtocol;
use crate::wire::Assignment;

/// The assignment in effect: what is new, and what was held before and is not revoked. Its `revoked` is `new`'s.
///
/// In the eager protocol nothing was held: give `None`.
pub fn merge(previous: Option<&Assignment>, new: &Assignment) -> Assignment {
    let mut merged = new.clone();
    if let Some(previous) = previous {
        merged.assigned.insert_all(&previous.assigned.difference(&new.revoked));
    }
    merged
}

/// What a member does about an assignment, by how far it has read the config topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// Start what is assigned and not running. If something was revoked, join again at once: the next round hands it out.
    Work,
    /// Read the config topic to its end (within `worker.sync.timeout.ms`), then call [`resolve`] with [`Reread::Done`]. If that fails, leave
    /// the group, back off, and read before joining again.
    ReadConfigs,
    /// Start nothing and join again.
    Rejoin,
}

/// Whether the config topic was read to its end since the assignment came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reread {
    /// Not yet.
    Pending,
    /// It was.
    Done,
}

/// Decides what to do about `assignment` with configs read up to `own_offset`.
///
/// Having read further than the leader is no better than having read less: what was assigned may no longer exist.
pub fn resolve(assignment: &Assignment, own_offset: i64, own_member_id: &str, reread: Reread) -> Resolve {
    let behind = own_offset < assignment.offset;
    let leads = assignment.leader == own_member_id;
    match reread {
        Reread::Pending if behind || (assignment.failed() && leads) => Resolve::ReadConfigs,
        _ if assignment.failed() || own_offset != assignment.offset => Resolve::Rejoin,
        _ => Resolve::Work,
    }
}

/// Waits of a member that could not read the config topic.
#[derive(Debug, Clone)]
pub struct Backoff {
    delay_max: Duration,
    unsync_backoff: Duration,
    left: u32,
}

/// What follows a failed read of the config topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Wait that long before the next try.
    Wait(Duration),
    /// Stop all that runs here, others may have it by now; then try again at once.
    RevokeAll,
}

/// Waits before a cooperative member gives its work up.
const BACKOFF_RETRIES: u32 = 5;

impl Backoff {
    /// With the properties `scheduled.rebalance.max.delay.ms` and `worker.unsync.backoff.ms`.
    pub fn new(delay_max: Duration, unsync_backoff: Duration) -> Self {
        Self { delay_max, unsync_backoff, left: BACKOFF_RETRIES }
    }

    /// The config topic was read: the next failure is the first.
    pub fn succeeded(&mut self) {
        self.left = BACKOFF_RETRIES;
    }

    /// The config topic could not be read.
    pub fn failed(&mut self, protocol: ConnectProtocol) -> AfterFailure {
        if protocol.is_eager() {
            return AfterFailure::Wait(self.unsync_backoff);
        }
        if self.left == 0 {
            self.left = BACKOFF_RETRIES;
            return AfterFailure::RevokeAll;
        }
        let wait = self.delay_max / 10 / self.left;
        self.left -= 1;
        AfterFailure::Wait(wait)
    }
}
