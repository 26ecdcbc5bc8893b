//! What the caller asks of the machine.

use crate::ids::{BatchId, PartitionIndex};
use crate::outcome::Cause;

/// One wish of the caller. An illegal one is answered with an error and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Get a producer id, fencing every older owner of the transactional id. Answered by [`crate::Event::Initialized`].
    Init,
    /// Open a transaction. Local: nothing is sent until the first batch.
    Begin,
    /// Send one sealed batch in the open transaction. Batches of a partition keep this order.
    Append {
        /// Where it goes.
        partition: PartitionIndex,
        /// The driver's name for the bytes.
        batch: BatchId,
        /// Records in it, 1 or more.
        records: u32,
    },
    /// A record of the open transaction was lost before it became a batch: the transaction can only abort.
    Fail(Cause),
    /// Commit the open transaction. Answered by [`crate::Event::Ended`].
    Commit,
    /// Abort the open transaction. Answered by [`crate::Event::Ended`].
    Abort,
    /// Finish: abort what is open (one try, bounded), then [`crate::Event::Closed`].
    Close,
}
