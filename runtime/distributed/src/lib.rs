//! The distributed worker: it shares connectors with other workers of its group, Java's or ours.
//!
//! ```text
//! REST ──► handle ──commands──► tick (one loop; decide/* is pure) ──► worker (connectors, tasks)
//!             │                   ▲      │
//!             └── view ◄──────────┴──────┴──► config topic, status topic, group membership, other workers' REST
//! ```
//!
//! Sources: KIP-415 (incremental rebalancing), KIP-507 (signed requests), KIP-618 (exactly-once), KIP-745 (restarts), KIP-875
//! (stop, offsets). Left out: sink connectors.

pub mod clients;
pub mod config;
pub mod decide;
pub mod herder;
pub mod kinds;
pub mod known;
pub mod loggers;
pub mod offset_json;
pub mod start;
pub mod status_info;
pub mod statuses;
pub mod view;
pub mod wishes;

pub use start::{EndError, Prepared, Running, StartError, prepare};
