//! What came back for a request, as data.

use crate::ids::{ErrorCode, PartitionIndex, ProducerIdentity};

/// The reply to one `Output::Send`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// FindCoordinator: the driver has the address now (code 0), or a code.
    Coordinator(ErrorCode),
    /// InitProducerId. `identity` counts only with code 0.
    Initialized {
        /// 0 or an error.
        code: ErrorCode,
        /// What the broker gave.
        identity: ProducerIdentity,
        /// The generation of the protocol that the driver found negotiated with this coordinator.
        protocol: crate::output::Protocol,
    },
    /// AddPartitionsToTxn: one code per partition that was asked for. A top-level code is repeated for each.
    PartitionsAdded(Vec<(PartitionIndex, ErrorCode)>),
    /// Produce, one partition.
    Produced {
        /// 0 or an error.
        code: ErrorCode,
        /// Offset of the first record, -1 when unknown.
        base_offset: i64,
        /// First offset still in the log, -1 when unknown.
        log_start_offset: i64,
        /// True when the answer named the new leader, so that no metadata look-up is needed.
        leader_known: bool,
    },
    /// EndTxn. `next` is the identity that version 5 returned.
    Ended {
        /// 0 or an error.
        code: ErrorCode,
        /// The next identity, when the broker gave one.
        next: Option<ProducerIdentity>,
        /// The generation of the protocol to use for the next transaction.
        protocol: crate::output::Protocol,
    },
    /// RefreshMetadata is done (or was tried).
    Metadata,
    /// No usable answer. Whether the broker acted is unknown, unless `sent` is false.
    Lost {
        /// False when not one byte of the request reached a socket.
        sent: bool,
    },
}
