//! The wire layer: frames, headers, message shapes, versions and error codes. Pure, no sockets.
//!
//! Message bodies are kafka-protocol's types; nothing of theirs is decoded before [`guard`] has
//! walked the bytes, because that crate trusts the counts it reads.
//!
//! ```text
//! frame_size ─► Bytes ─► decode_*_header ─► guard (table of the API) ─► kafka-protocol ─► message
//! ```

pub mod api;
pub mod error;
pub mod error_code;
pub mod frame;
pub mod guard;
#[cfg(test)]
mod guard_tests;
mod shape;
mod shapes;

pub use error::{Problem, WireError};
