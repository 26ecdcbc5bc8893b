//! Sockets: one connection, its handshake, and the answers that are still to come.

mod pending;

pub use pending::Pending;
