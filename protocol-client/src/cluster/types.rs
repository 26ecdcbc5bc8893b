//! The nouns of a cluster: nodes, purposes, targets, topics, and what a call asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use uuid::Uuid;

use crate::config::BrokerAddress;

/// A broker's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// What a connection is for. Each purpose has a connection of its own to a node, because a broker works on one request
/// per connection at a time: behind a long-polling Fetch, or a Produce that waits for replicas, everything else waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Purpose {
    /// Administration. A broker may work on one of these for as long as its timeout.
    #[default]
    Control,
    /// Metadata and the look-up of coordinators: everything else waits for these, so nothing may stand before them.
    Metadata,
    /// Produce.
    Data,
    /// Requests to a transaction or group coordinator.
    Coordinator,
    /// Fetch, which the broker may hold back until there is data. Each reader brings a number of its own.
    Fetch(u32),
    /// A group member's heartbeats, and its leaving: a member whose heartbeats are late is taken for dead. Each member
    /// brings a number of its own.
    Membership(u32),
    /// JoinGroup and SyncGroup, which the coordinator holds back until the group is complete. Each member brings its
    /// number: two members of one group that shared a connection would wait for each other.
    Join(u32),
}

/// Which kind of coordinator. A transactional id and a group may have the same text: they are different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoordinatorKind {
    /// Of a group.
    Group,
    /// Of a transactional id.
    Transaction,
}

impl CoordinatorKind {
    /// The key type that FindCoordinator uses on the wire.
    pub(crate) fn key_type(self) -> i8 {
        match self {
            Self::Group => 0,
            Self::Transaction => 1,
        }
    }
}

/// Who shall answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Any broker that can be reached; bootstrap servers when no other answers.
    Any,
    /// The controller, as the metadata names it (a KRaft broker that forwards to it).
    Controller,
    /// One broker.
    Node(NodeId),
}

/// Which versions of an API the caller can use. What the client and the broker speak limits them further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The lowest acceptable version.
    pub min: i16,
    /// The highest acceptable version.
    pub max: i16,
}

impl Versions {
    /// Whatever both sides speak.
    pub const ANY: Self = Self { min: 0, max: i16::MAX };

    /// No version above `max`.
    #[must_use]
    pub const fn at_most(max: i16) -> Self {
        Self { min: 0, max }
    }

    /// No version below `min`.
    #[must_use]
    pub const fn at_least(min: i16) -> Self {
        Self { min, max: i16::MAX }
    }
}

/// One call: who, on which connection, in which versions, how patiently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Who shall answer.
    pub target: Target,
    /// On which of the connections to that node.
    pub purpose: Purpose,
    /// Which versions of the API the caller can use.
    pub versions: Versions,
    /// How long the answer may take, counted from the sending. `None`: the configuration's request timeout.
    /// A connection whose oldest request is unanswered for longer (plus a grace) is closed.
    pub timeout: Option<Duration>,
}

impl Call {
    /// A call to `target` on its control connection, in any version, with the configured timeout.
    #[must_use]
    pub const fn to(target: Target) -> Self {
        Self { target, purpose: Purpose::Control, versions: Versions::ANY, timeout: None }
    }
}

/// A decoded answer.
#[derive(Debug, Clone)]
pub struct Reply<R> {
    /// The response.
    pub body: R,
    /// The version in which request and response were sent.
    pub version: i16,
    /// Who answered; `None` for a bootstrap server whose id is not known.
    pub node: Option<NodeId>,
}

/// One broker, as the cluster advertises it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// Its id.
    pub id: NodeId,
    /// Its advertised address.
    pub address: BrokerAddress,
    /// Its rack, if it has one.
    pub rack: Option<String>,
}

/// One topic with all its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Its name.
    pub name: String,
    /// Its id; nil when the brokers are too old to have one.
    pub topic_id: Uuid,
    /// Whether it belongs to Kafka itself.
    pub internal: bool,
    /// Partitions by index. A partition without a leader is here too: all partitions count for partitioning.
    pub partitions: BTreeMap<i32, PartitionMetadata>,
}

/// One partition's leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// The leader; `None` while there is none.
    pub leader: Option<NodeId>,
    /// The leader's epoch; -1 when the brokers do not tell.
    pub leader_epoch: i32,
}

/// Who leads a partition now, as told by a broker that refused a Produce or a Fetch (KIP-951).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderHint {
    /// The new leader.
    pub leader: NodeId,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Its address, from the response's node endpoints.
    pub address: Option<BrokerAddress>,
}

/// A finalized feature level with the epoch at which it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureLevel {
    /// The level; 0 when the cluster does not know the feature.
    pub level: i16,
    /// The epoch of the finalized features; -1 when no broker told one.
    pub epoch: i64,
}
