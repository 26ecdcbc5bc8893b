//! One transactional id as the coordinator keeps it.
//!
//! ```text
//!            add partition                  EndTxn                    markers written
//!   Empty ───────────────► Ongoing ─────────────────► Prepare(goal) ──────────────────► Complete(goal)
//!     ▲                      ▲  │  fence or timeout: epoch+1, goal = abort  ▲               │   │
//!     │                      │  └──────────────────────────────────────────┘               │   │
//!     │                      └───────────────── add partition ─────────────────────────────┘   │
//!     └────────────────────────────── InitProducerId ─────────────────────────────────────────┘
//! ```
//!
//! Kafka writes PrepareEpochFence between Ongoing and Prepare(abort) while the new epoch goes to its log. This log is
//! memory and written at once, so that state has no length here; its effect, the raised epoch, is kept. From Prepare
//! on Kafka has a transition pending (to Complete), which is why every request in that window meets
//! CONCURRENT_TRANSACTIONS.

use std::collections::BTreeSet;
use std::time::Duration;

use kafka_protocol::messages::TopicName;

use crate::time::Timestamp;

/// The highest epoch that a producer may be given; past it comes a new producer id.
pub(crate) const EPOCH_EXHAUSTED: i16 = i16::MAX - 1;
/// "No producer id" on the wire.
pub(crate) const NO_PRODUCER_ID: i64 = -1;
/// "No epoch" on the wire.
pub(crate) const NO_EPOCH: i16 = -1;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TopicPartition {
    /// The topic's name.
    pub(crate) topic: TopicName,
    /// The partition's index.
    pub(crate) partition: i32,
}

/// A producer and which of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProducerIdentity {
    /// The producer id.
    pub(crate) id: i64,
    /// The producer epoch.
    pub(crate) epoch: i16,
}

/// How a transaction is to end, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Its data becomes visible.
    Commit,
    /// Its data stays invisible to read_committed.
    Abort,
}

/// Which generation of the protocol a request belongs to; decided by the version that the client sent it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Partitions are added by AddPartitionsToTxn, and EndTxn keeps the epoch.
    Explicit,
    /// KIP-890 part 2: Produce 12 adds partitions, and EndTxn 5 raises the epoch.
    Implicit,
}

/// Where a transactional id stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TxnState {
    /// No transaction since the last InitProducerId.
    Empty,
    /// Partitions were added.
    Ongoing {
        /// When the first was.
        started: Timestamp,
        /// Where markers will go.
        partitions: BTreeSet<TopicPartition>,
    },
    /// The outcome is decided, the markers are not written.
    Prepare {
        /// The outcome.
        goal: Goal,
        /// When the transaction began; its own end for an abort of nothing.
        started: Timestamp,
        /// Where markers go.
        partitions: BTreeSet<TopicPartition>,
        /// When they are written.
        markers_due: Timestamp,
        /// The id to go on with when the epochs of this one are used up.
        next_producer_id: Option<i64>,
    },
    /// The markers are written.
    Complete {
        /// How it ended.
        goal: Goal,
    },
}

impl TxnState {
    /// Kafka's name of the state, as ListTransactions and DescribeTransactions show it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            TxnState::Empty => "Empty",
            TxnState::Ongoing { .. } => "Ongoing",
            TxnState::Prepare { goal: Goal::Commit, .. } => "PrepareCommit",
            TxnState::Prepare { goal: Goal::Abort, .. } => "PrepareAbort",
            TxnState::Complete { goal: Goal::Commit } => "CompleteCommit",
            TxnState::Complete { goal: Goal::Abort } => "CompleteAbort",
        }
    }

    /// All names that a filter may carry, those that this broker never shows included.
    pub(crate) const NAMES: [&'static str; 8] = [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ];
}

/// A transactional id.
#[derive(Debug, Clone)]
pub(crate) struct TxnEntry {
    /// The current producer id and epoch; epoch -1 for an id that was made this instant.
    pub(crate) producer: ProducerIdentity,
    /// The epoch before the last raise, if a client may still ask with it; else -1.
    pub(crate) last_epoch: i16,
    /// The producer id before the last change of it; else -1.
    pub(crate) previous_producer_id: i64,
    /// After how long an open transaction is aborted.
    pub(crate) timeout: Duration,
    /// Where it stands.
    pub(crate) state: TxnState,
    /// When anything changed last.
    pub(crate) updated: Timestamp,
}

impl TxnEntry {
    /// A new id without epoch; InitProducerId gives it epoch 0.
    pub(crate) fn new(now: Timestamp, producer_id: i64, timeout: Duration) -> Self {
        Self {
            producer: ProducerIdentity { id: producer_id, epoch: NO_EPOCH },
            last_epoch: NO_EPOCH,
            previous_producer_id: NO_PRODUCER_ID,
            timeout,
            state: TxnState::Empty,
            updated: now,
        }
    }

    /// Is the epoch the last one that may be given out?
    pub(crate) fn is_epoch_exhausted(&self) -> bool {
        self.producer.epoch >= EPOCH_EXHAUSTED
    }

    /// Is the outcome decided and not yet written everywhere?
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state, TxnState::Prepare { .. })
    }
}
