//! The definition of a plug-in, as `GET /connector-plugins/{name}/config` lists it.

use std::fmt;

/// Why there is no definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginConfigError {
    /// No plug-in of that name (404).
    Unknown(String),
    /// The name or the version makes no sense (400).
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
