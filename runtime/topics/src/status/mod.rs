//! The status topic: states of connectors and tasks, and which topics a connector has used (KIP-558).

pub(crate) mod fold;
pub(crate) mod outbox;
pub(crate) mod records;
mod sender;
pub(crate) mod topic;
