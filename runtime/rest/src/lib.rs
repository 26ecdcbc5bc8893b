//! The REST interface, its forwarding and its signatures, over a herder trait.
//!
//! Kafka Connect's endpoints, parameters, codes and bodies, so that its clients work unchanged. Every decision about connectors is the herder's
//! ([`Herder`]); this crate owns HTTP.

#![forbid(unsafe_code)]

pub mod client;
pub mod config;
pub mod herder;
pub mod loggers;
pub mod model;
pub mod server;
pub mod sign;

pub use client::{RestClient, SigningKey};
pub use config::RestConfig;
pub use herder::{Answer, Herder, HerderError, Plugins, Put, Replace};
pub use server::RestServer;
