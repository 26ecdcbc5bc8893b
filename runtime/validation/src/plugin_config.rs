//! The definition of a plug-in, as `GET /connector-plugins/{name}/config` lists it.

use std::fmt;

use oncewire_api::config_def::ConfigKey;
use oncewire_api::plugin::{PluginKind, PluginRegistry};
use serde_json::Value;

use crate::classes::{find_any, other_version};
use crate::converters::converter_def;
use crate::framework::{ConverterDefaults, source_def};
use crate::infos::KeyInfo;
use crate::versions::VersionRequirement;

/// Why there is no definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginConfigError {
    /// No plug-in of that name (404).
    Unknown(String),
    /// The version makes no sense, or the plug-in does not have it (400).
    Invalid(String),
}

impl fmt::Display for PluginConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(message) | Self::Invalid(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for PluginConfigError {}

/// The properties of a plug-in: its own, and for a connector then those that every connector has.
pub(crate) fn plugin_config(
    registry: &PluginRegistry,
    name: &str,
    version: Option<&str>,
) -> Result<Vec<Value>, PluginConfigError> {
    let plugin =
        find_any(registry, name).ok_or_else(|| PluginConfigError::Unknown(format!("Unknown plugin {name}.")))?;
    if let Some(version) = version {
        let requirement = VersionRequirement::parse(version)
            .map_err(|_| PluginConfigError::Invalid(format!("Invalid version specification: {version}")))?;
        if let Some(requirement) = requirement.filter(|requirement| !requirement.accepts(plugin.version)) {
            return Err(PluginConfigError::Invalid(other_version(plugin, &requirement)));
        }
    }
    let own = if plugin.kind() == PluginKind::Source { plugin.config_def() } else { converter_def(plugin) };
    let mut keys: Vec<ConfigKey> = own.keys().to_vec();
    if plugin.kind() == PluginKind::Source {
        let common = source_def(Some(plugin.version), &ConverterDefaults::default());
        keys.extend(common.keys().iter().filter(|key| own.key(&key.name).is_none()).cloned());
    }
    // Additions to what Java has are not listed, so that a form made from the list works with both.
    Ok(keys.into_iter().filter(|key| !key.is_addition).map(|key| KeyInfo(key).to_json()).collect())
}
