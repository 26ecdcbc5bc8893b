//! What the driver must do next, one item per `poll_output`.

use crate::ids::{BatchId, PartitionIndex, ProducerIdentity, RequestId, Time};
use crate::outcome::{Cause, EndGoal, Outcome};

/// One order to the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send this request. Exactly one reply (or loss) must come back for it.
    Send(RequestId, Request),
    /// Tell the caller.
    Event(Event),
    /// Nothing to do before `until` unless an input arrives. `None`: wait for an input.
    Wait {
        /// When to call `handle_timeout`.
        until: Option<Time>,
    },
}

/// A request, without bytes: the driver adds names, addresses and record batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Look up the transaction coordinator of the transactional id. The driver keeps the address.
    FindCoordinator,
    /// To the coordinator. `current` is the identity to bump, or `None` for a first one.
    InitProducerId {
        /// Sent as (id, epoch); `None` is (-1, -1).
        current: Option<ProducerIdentity>,
    },
    /// To the coordinator, version 3 at most. Only in the explicit protocol.
    AddPartitions {
        /// Whose transaction.
        identity: ProducerIdentity,
        /// All of one request.
        partitions: Vec<PartitionIndex>,
    },
    /// To the leader of `partition`. The driver may put the batches of several such outputs into one Produce request.
    Produce {
        /// Stamped into the batch header.
        identity: ProducerIdentity,
        /// Where to.
        partition: PartitionIndex,
        /// Whose bytes.
        batch: BatchId,
        /// Stamped into the batch header.
        base_sequence: i32,
        /// True when the same bytes with the same sequence were sent before.
        retry: bool,
        /// The generation of the protocol in force: decides the Produce version (12 or later only for `Implicit`).
        protocol: Protocol,
    },
    /// To the coordinator.
    EndTxn {
        /// Whose transaction.
        identity: ProducerIdentity,
        /// Commit or abort.
        goal: EndGoal,
        /// Decides the version (5 or later only for `Implicit`).
        protocol: Protocol,
    },
    /// Look up leaders again before this partition's next Produce. Answered with `Reply::Metadata`.
    RefreshMetadata {
        /// The partition that a broker refused.
        partition: PartitionIndex,
    },
}

/// Which generation of the transaction protocol is in force (KIP-98 or KIP-890 part 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// AddPartitionsToTxn before Produce; the epoch stays over a clean EndTxn.
    Explicit,
    /// Transactions V2: Produce adds the partition, EndTxn returns the next epoch.
    Implicit,
}

/// News for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `Init` is done: this identity is ours.
    Initialized(ProducerIdentity),
    /// `Init` failed, and another may be tried. A failure for good is [`Event::Fatal`] or [`Event::Fenced`] instead.
    InitFailed(Cause),
    /// A batch is in the log. `base_offset` is `None` when the broker only said "duplicate".
    Acked {
        /// Which batch; its bytes may be dropped now.
        batch: BatchId,
        /// The first record's offset.
        base_offset: Option<i64>,
    },
    /// A batch will not be sent again in this transaction; its bytes may be dropped.
    Dropped {
        /// Which batch.
        batch: BatchId,
    },
    /// The open transaction can only be aborted from now on.
    AbortRequired(Cause),
    /// `Commit` or `Abort` is done, or `Close` has ended what was open. When [`crate::Machine::needs_init`] says so
    /// afterwards, `Init` must come before the next `Begin`.
    Ended(Outcome),
    /// Someone else owns the transactional id. Every further command but `Close` fails.
    Fenced(Cause),
    /// This machine is of no use any more. Every further command but `Close` fails.
    Fatal(Cause),
    /// `Close` is done.
    Closed,
}
