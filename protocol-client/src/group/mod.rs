//! Membership of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, with opaque bytes inside.
//!
//! ```text
//! owner ──offer, assign, rejoin, leave──► member ──► state (pure) ──► driver (a task) ──► requests ──► cluster
//!       ◄───────────── next ─────────────         ◄── answers ──◄              ◄───────────
//! ```
//!
//! What the bytes mean, and what to do with an assignment, is the owner's. Left out: static membership (KIP-345),
//! committed offsets, the groups of KIP-848.
//!
//! Source: "Kafka protocol guide" (the group APIs), KIP-62, KIP-394, KIP-800.

mod answers;
mod driver;
mod member;
mod requests;
mod state;
#[cfg(test)]
mod state_tests;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

pub use member::GroupMember;

use crate::error::Error;

/// How a member takes part in its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.id`.
    pub group_id: String,
    /// What kind of group it is, such as `connect`; all members must say the same.
    pub protocol_type: String,
    /// How long the coordinator waits for a sign of life.
    pub session_timeout: Duration,
    /// How long members have to join again once a rebalance began.
    pub rebalance_timeout: Duration,
    /// How often a sign of life is sent.
    pub heartbeat_interval: Duration,
}

/// One protocol that a member can speak, with what it has to say in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Its name.
    pub name: String,
    /// The member's metadata.
    pub metadata: Bytes,
}

/// What happened, or what the member is asked for.
#[derive(Debug, Clone)]
pub enum GroupEvent {
    /// About to join: answer with [`GroupMember::offer`]. The old assignment stays the member's meanwhile.
    Offer {
        /// Why.
        cause: String,
    },
    /// This member leads: answer with [`GroupMember::assign`].
    Lead {
        /// The generation that is being formed.
        generation: i32,
        /// The protocol that all members speak.
        protocol: String,
        /// Our own member id.
        member_id: String,
        /// Every member's id and metadata, our own included.
        members: Vec<(String, Bytes)>,
    },
    /// The generation is formed.
    Assigned {
        /// Its number.
        generation: i32,
        /// Its protocol.
        protocol: String,
        /// Our own member id.
        member_id: String,
        /// The leader's.
        leader_id: String,
        /// What the leader gave us; empty when it gave nothing.
        assignment: Bytes,
    },
    /// The assignment is void: others may work on it by now.
    Lost {
        /// Why.
        cause: Lost,
    },
    /// An attempt failed, and will be made again when [`GroupMember::next`] is called again.
    Failed(Error),
}

/// Why an assignment is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The coordinator does not know the member (any more).
    UnknownMember,
    /// The group went on to another generation without this member.
    IllegalGeneration,
    /// No coordinator could be reached for a heartbeat interval.
    CoordinatorUnreachable,
    /// [`GroupMember::next`] was not called for the rebalance timeout.
    PollTimeout,
    /// No heartbeat was answered for the session timeout.
    SessionExpired,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownMember => "the coordinator does not know this member any more",
            Self::IllegalGeneration => "the group went on to another generation without this member",
            Self::CoordinatorUnreachable => "no coordinator could be reached for a heartbeat interval",
            Self::PollTimeout => "the member was busy with something else for the whole rebalance timeout",
            Self::SessionExpired => "no heartbeat was answered for the session timeout",
        })
    }
}
