//! The transactional Kafka producer as a sans-I/O state machine.
//!
//! Hand it one input (`handle_command`, `handle_reply`, `handle_timeout`), then drain `poll_output` until it says
//! [`Output::Wait`]. Time is passed in and never goes back.

mod backoff;
mod command;
mod ids;
mod machine;
mod outcome;
mod output;
mod partitions;
mod refusal;
mod reply;
mod sequence;
mod settings;
mod state;
mod verdict;

pub use command::Command;
pub use ids::{BatchId, ErrorCode, PartitionIndex, ProducerIdentity, RequestId, Span, Time};
pub use machine::Machine;
pub use outcome::{Cause, EndGoal, Outcome, RequestKind};
pub use output::{Event, Output, Protocol, Request};
pub use refusal::Refusal;
pub use reply::Reply;
pub use settings::Settings;
pub use state::StateName;
pub use verdict::{Row, TABLE, Verdict, verdict};
