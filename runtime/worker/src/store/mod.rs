//! What the worker remembers: each store is a fold over records plus a thin reader or writer.

pub mod choice;
pub mod connector_offsets;
pub mod java_map;
pub mod offset_file;
pub mod offset_fold;
pub mod offset_sink;
pub mod offset_topic;
pub mod task_offsets;
pub mod topic_reader;
pub mod topic_writer;
