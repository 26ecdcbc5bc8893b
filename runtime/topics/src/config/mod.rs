//! The config topic: connectors, their tasks' configs, target states, and what the leader tells all workers.

pub(crate) mod changes;
pub(crate) mod fold;
pub(crate) mod records;
pub(crate) mod snapshot;
pub(crate) mod topic;
mod writer;
