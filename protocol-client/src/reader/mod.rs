//! Reading a topic without a group: "read to the end, then tail".
//!
//! [`LogReader`] fetches from all leaders at once, on connections of its own, and gives out records by partition.
//! Its end is a snapshot of the log ends taken at READ_UNCOMMITTED, also for read_committed readers: an open
//! transaction makes it wait, it never stops short (a reader that stops at the last stable offset misses what commits a
//! moment later). A partition is done when its position, which markers and hidden records move too, reaches that end.
//!
//! ```text
//! log (driver) ─► fetch (request, answer) ─► committed (what is visible)
//!       └───────► partition (position, emptiness, trouble)
//! ```
//!
//! Left out: groups, fetch sessions, reading from followers.

mod committed;
mod fetch;
mod log;
mod options;
mod partition;

pub use log::LogReader;
pub use options::{Isolation, ReaderOptions, Start};

/// What a reader met.
#[derive(Debug)]
pub enum ReaderEvent {
    /// Visible records of one partition and one batch, in the order of their offsets. Never empty.
    Records {
        /// The partition.
        partition: i32,
        /// The records.
        records: Vec<crate::batch::Record>,
    },
    /// Every partition's position reached the end that was taken last (at the opening, or by [`LogReader::mark_end`]).
    /// Given once for each end.
    ReachedEnd,
    /// A fetch came back without anything visible: nothing new was written, or only aborted or control records.
    Idle,
}
