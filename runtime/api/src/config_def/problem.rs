//! What is wrong with a property.

use std::fmt;

/// What is wrong with a property, for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigProblem {
    /// It is not there, and there is no default.
    Missing {
        /// The property.
        key: String,
        /// What is allowed.
        allowed: String,
        /// What it means.
        doc: String,
    },
    /// Its value is not allowed.
    Invalid {
        /// The property.
        key: String,
        /// The value as written; `[hidden]` for a password.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// It clashes with others; the message says how.
    Conflict {
        /// The property.
        key: String,
        /// What clashes and what to change.
        message: String,
    },
    /// The code asked for a property that its definition does not have, or as another type: a bug of the plug-in.
    Undefined {
        /// The property.
        key: String,
        /// The type that was asked for.
        wanted: &'static str,
    },
}

impl ConfigProblem {
    /// The property.
    pub fn key(&self) -> &str {
        match self {
            Self::Missing { key, .. }
            | Self::Invalid { key, .. }
            | Self::Conflict { key, .. }
            | Self::Undefined { key, .. } => key,
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { key, allowed, doc } => {
                write!(f, "missing property '{key}': it has no default; set it to {allowed} ({doc})")
            }
            Self::Invalid { key, value, allowed } => write!(f, "property '{key}' is '{value}'; allowed: {allowed}"),
            Self::Conflict { key, message } => write!(f, "property '{key}': {message}"),
            Self::Undefined { key, wanted } => {
                write!(f, "property '{key}' is not defined as {wanted}; this is a bug of the plug-in")
            }
        }
    }
}

impl std::error::Error for ConfigProblem {}
