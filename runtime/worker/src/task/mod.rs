//! One source task: what `poll` returns becomes committed records, exactly once.
//!
//! ```text
//!  ahead.rs                                        exactly_once.rs
//!  poll → prepare (convert, batch) ──bounded──►  begin → send → offsets → commit
//!    ▲                                              │
//!    └───────── notices: what was committed ────────┘
//! ```
//!
//! While transaction N commits, batch N+1 is polled and encoded; nothing of N+1 reaches a socket before N is resolved.
//! `boundary.rs` decides, purely, where transactions end.

pub mod ahead;
pub mod at_least_once;
pub mod boundary;
pub mod dead_letter;
pub(crate) mod epochs;
pub mod error_rules;
pub mod exactly_once;
mod life;
pub mod notices;
pub mod offset_buffer;
mod ownership;
pub mod prepare;
pub mod run;
pub(crate) mod stores;
pub mod submitted;
pub mod teller;
pub mod topics;
