//! Kafka Connect's group protocol: its bytes and both assignors, pure.
//!
//! A worker tells its group where its REST interface is, how far it has read the config topic and what it runs ([`MemberState`]). The
//! member that the broker names leader deals connectors and tasks out ([`Assignor`]) and every member takes its part ([`Assignment`],
//! [`merge`], [`resolve`]).
//!
//! Left out: talking to a broker (the client's `group` module) and acting on an assignment (`oncewire-distributed`).
//!
//! What must hold: a Java worker and one of ours can lead each other. The proof is `tests/golden/assignor`, rounds that Java's own
//! assignor was driven through. Sources: KIP-415 (incremental cooperative rebalancing), KIP-507 (`sessioned`), Apache Kafka 4.3.1's behaviour.

#![forbid(unsafe_code)]

mod assignor;
mod balance;
mod eager;
mod incremental;
mod load;
mod member;
mod protocol;
mod wire;

pub use assignor::{Assignor, Configured, LeaderState, Outcome, Round};
pub use load::{Load, TaskId};
pub use member::{AfterFailure, Backoff, Reread, Resolve, merge, resolve};
pub use protocol::ConnectProtocol;
pub use wire::{
    Assignment, CONFIG_MISMATCH, ITEM_NAMES_BYTES_MAX, ITEMS_MAX, MemberState, NAME_BYTES_MAX, NO_ERROR, ProtocolError,
    decode_assignment, decode_metadata, encode_assignment, encode_metadata,
};
