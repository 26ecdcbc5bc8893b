//! What the system tests share: brokers to run against, files to stream, workers to kill, and eyes on the result.
//!
//! The tests themselves are in `tests/`; each tells one story on every [`target::Target`]. Tests against Apache Kafka are
//! `#[ignore = "needs Apache Kafka"]`: `tests/services/kafka` installs and starts it. Tests against the embedded broker run always, with smaller files.
//!
//! Waiting is always for a condition with a deadline. The verdict is the auditor's, never a count's alone.

pub mod binary;
pub mod chaos_load;
pub mod chaos_plan;
pub mod client;
pub mod connect_cluster;
pub mod files;
pub mod fleet;
pub mod growing_file;
pub mod job;
pub mod journal;
pub mod kafka_cluster;
pub mod offset_moves;
pub mod process;
pub mod proxy;
pub mod rest;
pub mod seed;
pub mod sequence_load;
pub mod services;
pub mod status_history;
pub mod stretch;
pub mod target;
pub mod worker;
