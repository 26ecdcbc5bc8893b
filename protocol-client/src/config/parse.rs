//! Reading of property values: one reader that remembers which keys were known, one error that says what to change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// A person's mistake in a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigError {
    /// A setting that has no default is not there.
    Missing {
        /// Kafka's property name.
        key: String,
    },
    /// A value that cannot be read or is out of range.
    Invalid {
        /// Kafka's property name.
        key: String,
        /// What was found.
        value: String,
        /// What would be accepted, in words.
        allowed: String,
    },
    /// A value that Kafka knows but this client refuses.
    Refused {
        /// Kafka's property name.
        key: String,
        /// What was found.
        value: String,
        /// The accepted values.
        allowed: String,
        /// Why it is refused.
        reason: String,
    },
    /// Settings that contradict each other.
    Conflict {
        /// Which ones, and what to change.
        what: String,
    },
    /// A file or a text that a setting names cannot be used. Says nothing of what is in it.
    Unusable {
        /// Kafka's property name.
        key: String,
        /// What is wrong, and what to change.
        reason: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { key } => write!(f, "setting {key} is missing; set it"),
            Self::Invalid { key, value, allowed } => {
                write!(f, "setting {key} has the value '{value}'; it must be {allowed}")
            }
            Self::Refused { key, value, allowed, reason } => {
                write!(f, "setting {key} has the value '{value}', but {reason}; set it to {allowed} or leave it out")
            }
            Self::Conflict { what } => f.write_str(what),
            Self::Unusable { key, reason } => write!(f, "setting {key} cannot be used: {reason}"),
        }
    }
}

impl std::error::Error for ConfigError {}

/// One pass over a property map. Each read marks its key as known.
pub(super) struct Properties<'a> {
    values: &'a BTreeMap<String, String>,
    known: BTreeSet<&'static str>,
}

impl<'a> Properties<'a> {
    pub(super) fn new(values: &'a BTreeMap<String, String>) -> Self {
        Self { values, known: BTreeSet::new() }
    }

    pub(super) fn unknown(self) -> Vec<String> {
        self.values.keys().filter(|key| !self.known.contains(key.as_str())).cloned().collect()
    }

    pub(super) fn optional(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.insert(key);
        self.values.get(key).map(|value| value.trim())
    }

    /// A value that is there and not empty.
    pub(super) fn filled(&mut self, key: &'static str) -> Option<&'a str> {
        self.optional(key).filter(|value| !value.is_empty())
    }

    /// Marks keys as known without reading them.
    pub(super) fn know_all(&mut self, keys: &'static [&'static str]) {
        self.known.extend(keys);
    }

    /// Refuses a key that must not be set at all.
    pub(super) fn none(&mut self, key: &'static str, reason: &'static str) -> Result<(), ConfigError> {
        match self.filled(key) {
            None => Ok(()),
            Some(value) => Err(ConfigError::Refused {
                key: key.to_owned(),
                value: value.to_owned(),
                allowed: "nothing".to_owned(),
                reason: reason.to_owned(),
            }),
        }
    }

    pub(super) fn required(&mut self, key: &'static str) -> Result<&'a str, ConfigError> {
        match self.optional(key) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(ConfigError::Missing { key: key.to_owned() }),
        }
    }

    pub(super) fn text(&mut self, key: &'static str, into: &mut String) {
        if let Some(value) = self.optional(key) {
            value.clone_into(into);
        }
    }

    pub(super) fn number<N>(&mut self, key: &'static str, min: N, max: N, into: &mut N) -> Result<(), ConfigError>
    where
        N: std::str::FromStr + PartialOrd + fmt::Display + Copy,
    {
        let Some(value) = self.optional(key) else { return Ok(()) };
        match value.parse::<N>() {
            Ok(number) if number >= min && number <= max => *into = number,
            _ => return Err(invalid(key, value, format!("a whole number from {min} to {max}"))),
        }
        Ok(())
    }

    pub(super) fn millis(&mut self, key: &'static str, min: u64, into: &mut Duration) -> Result<(), ConfigError> {
        let Some(value) = self.optional(key) else { return Ok(()) };
        match value.parse::<u64>() {
            // Kafka's own type is a signed 32-bit or 64-bit number; beyond a century a deadline is a typing error.
            Ok(number) if number >= min => *into = Duration::from_millis(number.min(DURATION_MS_MAX)),
            _ => return Err(invalid(key, value, format!("a whole number of milliseconds, {min} or more"))),
        }
        Ok(())
    }

    pub(super) fn socket_buffer(&mut self, key: &'static str, into: &mut Option<u32>) -> Result<(), ConfigError> {
        let Some(value) = self.optional(key) else { return Ok(()) };
        *into = match value.parse::<i32>() {
            Ok(-1) => None,
            Ok(bytes) if bytes > 0 => Some(bytes.unsigned_abs()),
            _ => return Err(invalid(key, value, "a number of bytes, or -1 for the system's own".to_owned())),
        };
        Ok(())
    }

    pub(super) fn only(
        &mut self,
        key: &'static str,
        accepted: &[&str],
        reason: &'static str,
    ) -> Result<(), ConfigError> {
        match self.optional(key) {
            Some(value) if !accepted.iter().any(|one| one.eq_ignore_ascii_case(value)) => Err(ConfigError::Refused {
                key: key.to_owned(),
                value: value.to_owned(),
                allowed: accepted.first().copied().unwrap_or_default().to_owned(),
                reason: reason.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// A hundred years: keeps `Instant + Duration` from overflowing when a person writes Java's `Long.MAX_VALUE`.
const DURATION_MS_MAX: u64 = 100 * 365 * 24 * 3600 * 1000;

pub(super) fn invalid(key: &str, value: &str, allowed: String) -> ConfigError {
    ConfigError::Invalid { key: key.to_owned(), value: value.to_owned(), allowed }
}
