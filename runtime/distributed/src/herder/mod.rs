//! The distributed herder: one loop with pure decisions, and the handle through which REST and tasks speak to it.

mod changes;
mod collision;
pub mod command;
mod connectors;
mod drain;
pub mod errors;
mod fence;
mod gate;
mod group;
pub mod handle;
mod heir;
mod job;
mod leader;
mod leftovers;
mod offsets;
mod restarts;
mod sharing;
mod slept;
mod tasks;
pub mod tick;
mod trouble;
mod wave;
mod work;

pub use collision::Rivals;
pub use handle::Handle;
pub use tick::{Parts, Tick};
