//! Numbers in a checkable pattern, at any rate and record size: the load for tests and benches.
//!
//! Task `t` writes records `n = 0, 1, 2, …`, and each record says which one it is ([`pattern`]), so that a reader can tell gaps, duplicates,
//! disorder and damage without knowing what was sent. With `transaction.boundary=connector` the task also commits and aborts by a rule of
//! the numbers alone ([`BoundaryPlan`]), so that the reader knows which records must not be visible.

mod boundary;
mod config;
mod connector;
mod pacer;
pub mod pattern;
mod task;

use oncewire_api::plugin::{Plugin, PluginFactory};

pub use boundary::BoundaryPlan;
pub use connector::SequenceSourceConnector;

/// The full class name.
pub const CLASS: &str = "io.oncewire.connect.sequence.SequenceSourceConnector";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The connector, for the worker's registry.
pub fn plugin() -> Plugin {
    Plugin {
        class: CLASS,
        version: VERSION,
        summary: "numbers in a checkable pattern, as a load",
        factory: PluginFactory::Source(|| Box::new(SequenceSourceConnector::default())),
    }
}
