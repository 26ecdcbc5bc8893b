//! A Kafka client in pure Rust: connections, metadata, record batches, a transactional producer, a log reader, admin.

pub mod admin;
pub mod batch;
pub mod cluster;
pub mod complaint;
pub mod config;
pub mod error;
pub mod group;
pub mod net;
pub mod producer;
pub mod reader;
pub mod wire;
