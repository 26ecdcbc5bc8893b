//! Membership of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, with opaque bytes inside.
//!
//! Left out: static membership (KIP-345), committed offsets, the groups of KIP-848.

use std::time::Duration;

use bytes::Bytes;

use crate::cluster::Cluster;
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

/// A member of a group.
#[derive(Debug)]
pub struct GroupMember {
    _cluster: Cluster,
    _config: GroupConfig,
}

impl GroupMember {
    /// A member that has not joined yet; [`GroupMember::next`] makes it.
    #[must_use]
    pub fn new(cluster: Cluster, config: GroupConfig) -> Self {
        Self { _cluster: cluster, _config: config }
    }

    /// The next thing to know or to do.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> GroupEvent {
        GroupEvent::Failed(Error::Usage { what: "group membership is not there yet".to_owned() })
    }

    /// The answer to [`GroupEvent::Offer`], the preferred protocol first.
    pub fn offer(&mut self, protocols: Vec<Protocol>) {
        drop(protocols);
    }

    /// The answer to [`GroupEvent::Lead`]: each member's assignment by its id.
    pub fn assign(&mut self, assignments: Vec<(String, Bytes)>) {
        drop(assignments);
    }

    /// Asks for a rebalance. `reason` is for the coordinator's log (KIP-800).
    pub fn rejoin(&mut self, reason: &str) {
        let _: &str = reason; // nothing to ask yet
    }

    /// Leaves the group; [`GroupMember::next`] joins afresh.
    pub async fn leave(&mut self, reason: &str, patience: Duration) {
        let _: (&str, Duration) = (reason, patience); // nothing to leave yet
    }

    /// The id that the coordinator gave; empty when there is none.
    #[must_use]
    pub fn member_id(&self) -> &str {
        ""
    }

    /// The generation, -1 when there is none.
    #[must_use]
    pub fn generation(&self) -> i32 {
        -1
    }
}
