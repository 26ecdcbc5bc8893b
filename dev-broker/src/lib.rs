//! An honest in-process Kafka broker for the quickstart, tests and simulation: the true protocol, one node, in memory.
//!
//! [`Broker`] is the pure core: requests and time in, answers out, no clock and no sockets, so that a simulation can
//! drive it from one seed. [`DevBroker`] is the same behind a TCP listener. What a real broker has and this one has
//! not stands in `LEFT_OUT.md`; where the two differ in what both have, the real one is right and this one has a bug.
//!
//! ```text
//! server ──► api/<name> ──► broker ──► topics ──► partition ──► log, producers
//!                              ├─────► transactions (coordinator)
//!                              └─────► groups (coordinator)
//! ```

pub mod api;
pub mod broker;
pub mod faults;
mod groups;
mod log;
mod partition;
mod produced;
mod producers;
pub mod refusal;
#[cfg(test)]
mod sample;
pub mod server;
pub mod settings;
pub mod time;
mod topic_config;
mod topics;
mod transactions;

pub use broker::{Broker, ConnectionId, Handled};
pub use faults::Fault;
pub use server::{DevBroker, DevBrokerConfig, FaultHandle, StartError};
pub use settings::BrokerSettings;
pub use time::Timestamp;
