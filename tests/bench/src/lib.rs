//! Side by side with the peers, in one run: the same broker, the same file, the same settings, taking turns.
//!
//! ```text
//! file         oncewire standalone │ Kafka Connect        ─┐
//! start        oncewire standalone │ Kafka Connect         ├─► one broker ◄── watch (a process of its own, the same for both)
//! txn          our producer │ franz-go │ Java's producer   │
//! distributed  oncewire distributed │ Kafka Connect       ─┘
//! ```
//!
//! Machines are noisy, so a figure means nothing without its peer's from the same minutes: runs take turns, medians are compared, and
//! the ratio is the result. Aims are printed beside it and never fail a build. Left out: throughput of the broker itself, networks.

pub mod broker;
pub mod children;
pub mod client;
pub mod cost;
pub mod distributed;
pub mod file;
pub mod java;
pub mod lines;
pub mod machine;
pub mod peer_programs;
pub mod process;
pub mod report;
pub mod run;
pub mod start;
pub mod statistics;
pub mod txn;
pub mod watch;
pub mod worker;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The release of Apache Kafka that everything is compared on, broker and Kafka Connect.
pub const KAFKA_VERSION: &str = "4.3.1";

/// A file or folder of this crate's sources.
#[must_use]
pub fn in_sources(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Milliseconds since 1970, the clock that all processes of a run share.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Tells a person who waits what is going on.
pub fn progress(text: &str) {
    eprintln!("  {text}");
}
