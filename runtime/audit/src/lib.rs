//! The exactly-once auditor: reads a topic at both isolation levels and the offsets topic, and says whether everything is there once.
//!
//! ```text
//! topic, read_committed ──► checker (lines of a file | sequence pattern | plain) ──► Content ─┐
//! topic, read_uncommitted ► counts: aborted, undecided                                       ├─► Report
//! offsets topic ──────────► SourceOffsets ──► compared with how far the data got ────────────┘
//! ```
//!
//! The checkers and the fold are pure: they take records in the order of offsets within each partition and know no network. [`audit`] is the thin
//! reader that feeds them. Nothing here shares code with the connectors' own splitting and counting, so that a mistake there cannot hide here;
//! the one exception is the sequence connector's pattern, which is a format.
//!
//! Left out: what is right for connectors whose content the auditor does not know, and fixing anything.

mod auditor;
mod checker;
mod finding;
mod line_index;
mod line_reader;
mod lines;
mod offsets;
mod plain;
mod report;
mod sequence;
mod wrapped;

pub use auditor::{AuditError, AuditPlan, AuditProgress, OffsetsPlan, audit};
pub use checker::Check;
pub use finding::{Content, Place, Progress, Tally};
pub use lines::LinesChecker;
pub use offsets::{OffsetCheck, SourceOffsets};
pub use plain::{PlainChecker, Repeats};
pub use report::{OffsetsReport, OpenProducer, OpenTransaction, RecordCounts, Report};
pub use sequence::{Numbered, SequenceChecker};
