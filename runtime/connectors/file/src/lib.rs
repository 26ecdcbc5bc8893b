//! Lines of a file, compatible with Kafka's FileStreamSource.
//!
//! Same class name, aliases, properties and stored offsets (`{"filename":…}` → `{"position":…}`) as
//! `org.apache.kafka.connect.file.FileStreamSourceConnector`, so that a configuration and its progress move from Java to here. What differs
//! is written in the crate's README; the main point: positions count bytes, where Java counts decoded characters.
//!
//! ```text
//! follow.rs (blocking: open, read a chunk, notice truncation) → lines.rs (pure: slices of the chunk) → task.rs (batches, waiting)
//! ```

mod config;
mod connector;
mod error;
mod follow;
mod lines;
mod task;

use oncewire_api::plugin::{Plugin, PluginFactory};

pub use connector::FileStreamSourceConnector;

/// The full class name, as Kafka Connect writes it.
pub const CLASS: &str = "org.apache.kafka.connect.file.FileStreamSourceConnector";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The connector, for the worker's registry.
pub fn plugin() -> Plugin {
    Plugin {
        class: CLASS,
        version: VERSION,
        summary: "lines of a file that may grow",
        factory: PluginFactory::Source(|| Box::new(FileStreamSourceConnector::default())),
    }
}
