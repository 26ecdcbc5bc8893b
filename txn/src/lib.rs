//! The transactional Kafka producer as a sans-I/O state machine.
//!
//! Hand it one input (`handle_command`, `handle_reply`, `handle_timeout`), then drain `poll_output` until it says
//! [`Output::Wait`]. Time is passed in and never goes back.

mod command;
mod ids;
mod outcome;
mod output;
mod reply;

pub use command::Command;
pub use ids::{BatchId, ErrorCode, PartitionIndex, ProducerIdentity, RequestId, Span, Time};
pub use outcome::{Cause, EndGoal, Outcome, RequestKind};
pub use output::{Event, Output, Protocol, Request};
pub use reply::Reply;
