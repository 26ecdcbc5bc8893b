//! Sockets: one connection, its handshake, and the answers that are still to come.
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
mod throttle;
mod versions;

pub use pending::Pending;

pub(crate) use connection::{Connection, Peer};
pub(crate) use dial::{SocketBuffers, dial};
pub(crate) use handshake::negotiate;
pub(crate) use throttle::from_millis as throttle_from_millis;
