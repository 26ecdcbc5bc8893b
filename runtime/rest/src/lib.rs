//! The REST interface, its forwarding and its signatures, over a herder trait.
//!
//! Kafka Connect's endpoints, parameters, codes and bodies, so that its clients work unchanged; where ours differ on purpose is listed, with the
//! reason, in `tests/rest-requests/intended-differences.md`. Every decision about connectors is the herder's ([`Herder`]); this crate owns HTTP.
//! Decisions are pure and apart from the driver: `route`, `path`, `negotiate`, `body`, `error`, `forward`, `sign`, `cors`, `header_rules`.
//!
//! ```text
//! listener ▶ server ▶ answer ▶ resources/* ▶ dyn Herder
//!                        └▶ client ▶ another worker
//! ```

#![forbid(unsafe_code)]

mod answer;
mod auth;
mod body;
mod calendar;
mod call;
pub mod client;
pub mod config;
pub mod cors;
mod error;
mod forward;
pub mod header_rules;
pub mod herder;
pub mod loggers;
pub mod model;
mod negotiate;
mod path;
mod patient;
mod resources;
mod route;
pub mod server;
pub mod sign;
pub mod tls;

pub use client::{RestClient, SigningKey};
pub use config::RestConfig;
pub use herder::{Answer, Herder, HerderError, Plugins, Put, Replace};
pub use server::RestServer;
