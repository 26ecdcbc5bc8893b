//! The worker: tasks that move records from sources into Kafka exactly once, and the standalone herder that runs them.
//!
//! ```text
//! herder/standalone ── supervises ──► task/run ──► task/ahead (poll, convert, batch)
//!        │                               │              │ bounded
//!        │                               └──► task/exactly_once (begin, send, offsets, commit) ──► client
//!        └── config/*, store/offset_topic
//! ```
//!
//! `worker/` is the same for a distributed herder: it runs what that herder assigns, and tells it what happens.
//! Left out here: the distributed herder itself, REST, transformations.

pub mod acl;
pub mod config;
pub mod error;
pub mod herder;
pub mod metrics;
pub mod store;
pub mod task;
pub mod worker;
