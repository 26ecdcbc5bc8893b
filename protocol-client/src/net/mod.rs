//! Sockets: one connection, its handshake, and the answers that are still to come.
//!
//! ```text
//! dial ─► tls ─► ApiVersions ─► sasl ─► Connection (and sasl again before the session ends)
//! ```
//!
//! Nothing here knows topics or coordinators, and nothing is tried twice: that is `cluster`'s work.

mod codec;
mod connection;
#[cfg(test)]
mod connection_tests;
mod dial;
mod frames;
mod handshake;
mod in_flight;
mod pending;
mod sasl;
mod session;
mod stream;
mod throttle;
pub mod tls;
mod versions;

pub use pending::Pending;

pub(crate) use connection::{Connection, Peer};
pub(crate) use session::{Established, Security, establish};
pub(crate) use throttle::from_millis as throttle_from_millis;
