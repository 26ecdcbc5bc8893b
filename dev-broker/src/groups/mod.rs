//! The group coordinator: classic groups with opaque bytes, in memory. Pure: time comes in, decisions come out.
//!
//! A JoinGroup or SyncGroup that has to wait is given a [`Ticket`]; what became of it is among [`Groups::take_decided`]
//! after some later call. Left out: static membership, committed offsets, the groups of KIP-848; see `LEFT_OUT.md`.
//!
//! Source: the classic part of `GroupMetadataManager` in Kafka 4.x; KIP-62, KIP-394.

mod group;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use crate::time::Timestamp;
use group::Group;

/// Groups at a time; a new one beyond is refused.
const GROUPS_MAX: usize = 1_000;
/// Members of one group, those with a fresh id included (`group.max.size`).
const MEMBERS_MAX: usize = 1_000;
/// What one member offers or is assigned, together; a real coordinator cannot store more than a record.
const MEMBER_BYTES_MAX: usize = 1 << 20;

/// A request that waits for its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// JoinGroup, without its wire form.
#[derive(Debug)]
pub(crate) struct JoinAsked {
    pub(crate) member_id: String,
    pub(crate) client_id: String,
    pub(crate) protocol_type: String,
    pub(crate) protocols: Vec<(String, Bytes)>,
    pub(crate) session: Duration,
    pub(crate) rebalance: Duration,
    /// Whether the version asks a new member to come again with the id that it is given (KIP-394).
    pub(crate) requires_id: bool,
}

/// A generation as one of its members is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) generation: i32,
    pub(crate) protocol_type: String,
    pub(crate) protocol: String,
    pub(crate) leader: String,
    pub(crate) member_id: String,
    /// For the leader only.
    pub(crate) members: Vec<(String, Bytes)>,
}

/// Who asks SyncGroup or Heartbeat, and of which generation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) member_id: &'a str,
    pub(crate) generation: i32,
}

/// An assignment with the protocol it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) protocol_type: String,
    pub(crate) protocol: String,
    pub(crate) assignment: Bytes,
}

/// Why a join is refused, with the member id that goes with it.
pub(crate) type JoinRefusal = (ResponseError, String);

/// What became of a request that waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Join(Result<Joined, JoinRefusal>),
    Sync(Result<Synced, ResponseError>),
}

/// Decided at once, or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Now(Decision),
    Wait(Ticket),
}

/// What all groups share.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    tickets: u64,
    decided: Vec<(Ticket, Decision)>,
}

impl Desk {
    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn decide(&mut self, ticket: Ticket, decision: Decision) {
        self.decided.push((ticket, decision));
    }
}

/// A group as a listing shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed<'a> {
    pub(crate) group_id: &'a str,
    pub(crate) protocol_type: &'a str,
    /// Kafka's name of it.
    pub(crate) state: &'static str,
}

/// All groups of the broker.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<String, Group>,
    members_named: u64,
    desk: Desk,
}

impl Groups {
    /// `initial_delay`: how long a group without members waits for more than the first one.
    pub(crate) fn join(&mut self, now: Timestamp, initial_delay: Duration, group_id: &str, asked: JoinAsked) -> Step {
        let refuse = |code, member_id: &str| Step::Now(Decision::Join(Err((code, member_id.to_owned()))));
        let bytes: usize = asked.protocols.iter().map(|(name, metadata)| name.len() + metadata.len()).sum();
        if group_id.is_empty() {
            return refuse(ResponseError::InvalidGroupId, &asked.member_id);
        }
        if bytes > MEMBER_BYTES_MAX {
            return refuse(ResponseError::UnknownServerError, &asked.member_id);
        }
        if !self.groups.contains_key(group_id) {
            if !asked.member_id.is_empty() {
                return refuse(ResponseError::UnknownMemberId, &asked.member_id);
            }
            self.groups.retain(|_, group| !group.is_empty());
            if self.groups.len() >= GROUPS_MAX {
                return refuse(ResponseError::CoordinatorNotAvailable, &asked.member_id);
            }
        }
        let group = self.groups.entry(group_id.to_owned()).or_default();
        if asked.member_id.is_empty() && group.len() >= MEMBERS_MAX {
            return refuse(ResponseError::GroupMaxSizeReached, "");
        }
        let mut asked = asked;
        let is_new = asked.member_id.is_empty();
        if is_new {
            self.members_named += 1;
            // Real ids end with a UUID; a number is as unique within one life of this broker.
            asked.member_id = format!("{}-{:012}", asked.client_id, self.members_named);
        }
        group.join(now, initial_delay, asked, is_new, &mut self.desk)
    }

    /// `assignments` are the leader's; the others give none.
    pub(crate) fn sync(
        &mut self,
        now: Timestamp,
        group_id: &str,
        claim: Claim<'_>,
        protocol: (Option<&str>, Option<&str>),
        assignments: Vec<(String, Bytes)>,
    ) -> Step {
        let refuse = |code| Step::Now(Decision::Sync(Err(code)));
        if assignments.iter().any(|(_, assignment)| assignment.len() > MEMBER_BYTES_MAX) {
            return refuse(ResponseError::UnknownServerError);
        }
        match self.groups.get_mut(group_id) {
            None => refuse(ResponseError::UnknownMemberId),
            Some(group) => group.sync(now, claim, protocol, assignments, &mut self.desk),
        }
    }

    pub(crate) fn heartbeat(&mut self, now: Timestamp, group_id: &str, claim: Claim<'_>) -> Result<(), ResponseError> {
        let group = self.groups.get_mut(group_id).ok_or(ResponseError::UnknownMemberId)?;
        group.heartbeat(now, claim)
    }

    pub(crate) fn leave(&mut self, now: Timestamp, group_id: &str, member_id: &str) -> Result<(), ResponseError> {
        let group = self.groups.get_mut(group_id).ok_or(ResponseError::UnknownMemberId)?;
        group.leave(now, member_id, &mut self.desk)
    }

    /// All groups that have members, or had some until a moment ago.
    pub(crate) fn list(&self) -> impl Iterator<Item = Listed<'_>> {
        self.groups.iter().map(|(group_id, group)| Listed {
            group_id,
            protocol_type: group.protocol_type(),
            state: group.state(),
        })
    }

    /// What a group's members said of themselves when they joined last.
    pub(crate) fn metadata(&self, group_id: &str) -> Vec<Bytes> {
        self.groups.get(group_id).into_iter().flat_map(|group| group.metadata()).collect()
    }

    /// Sessions that end, and rebalances that have waited for long enough.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        for group in self.groups.values_mut() {
            group.tick(now, &mut self.desk);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.groups.values().filter_map(Group::next_deadline).min()
    }

    /// The waiting requests that were decided since the last call.
    pub(crate) fn take_decided(&mut self) -> Vec<(Ticket, Decision)> {
        std::mem::take(&mut self.desk.decided)
    }
}

#[cfg(test)]
mod tests;
