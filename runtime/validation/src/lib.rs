//! What is wrong with a connector's configuration, as Connect's validate endpoint tells it.
//!
//! The order of steps, of members and of groups, and the wording of errors are those of a Java worker (4.3.1), because tools read them;
//! goldens recorded from one hold that (`tests/golden/validate`). Documentation texts are ours. This crate decides nothing about where a
//! connector runs and keeps no state: the herder calls it before it writes a configuration.

mod acls;
mod collision;
mod infos;
mod overrides;
mod plugin_config;
mod validator;

pub use acls::{AclNeed, AclResource, required_acls};
pub use collision::txid_collision;
pub use infos::{ConfigInfo, ConfigInfos, KeyInfo};
pub use overrides::{ClientKind, OverridePolicy};
pub use plugin_config::PluginConfigError;
pub use validator::{Mode, Validator, WorkerFacts};
