//! Who runs what: the standalone herder (one process, files), and the supervision of tasks.

pub mod fence;
pub mod restart;
pub mod standalone;
pub mod supervisor;
