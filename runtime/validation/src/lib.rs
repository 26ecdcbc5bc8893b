//! What is wrong with a connector's configuration, as Connect's validate endpoint tells it.
//!
//! The order of steps, of members and of groups, and the wording of errors are those of a Java worker (4.3.1), because tools read them;
//! goldens recorded from one hold that (`tests/golden/validate`). Documentation texts are ours. This crate decides nothing about where a
//! connector runs and keeps no state: the herder calls it before it writes a configuration.
//!
//! ```text
//! validator (the steps) ─ framework, aliases, converters, exactly_once, overrides, topic_creation → infos (the answer, its JSON)
//! acls, collision: two questions to a configuration that the endpoint does not answer
//! ```

mod acls;
mod aliases;
mod classes;
mod client_keys;
mod collision;
mod converters;
mod exactly_once;
mod framework;
mod hash_order;
mod infos;
mod overrides;
mod plugin_config;
mod topic_creation;
mod validator;
mod versions;

pub use acls::{AclCommand, AclNeed, AclPattern, AclResource, render as render_acls, required_acls};
pub use aliases::NO_TRANSFORMS;
pub use client_keys::{client_default, client_keys};
pub use collision::{possible_txid_collision, txid_collision};
pub use framework::{DEAD_LETTER_TOPIC, source_connector_def};
pub use infos::{ConfigInfo, ConfigInfos, KeyInfo};
pub use overrides::{ClientKind, OverridePolicy};
pub use plugin_config::PluginConfigError;
pub use validator::{Mode, Validator, WorkerFacts};
pub use versions::refused_version;
