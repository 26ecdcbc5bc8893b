//! Properties after they were read: typed values under their names.

use std::collections::BTreeMap;
use std::fmt;

use super::ConfigProblem;

/// A text that does not show in logs and messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// The value of one property.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigValue {
    /// Not given, and there is no default.
    Null,
    /// true or false.
    Boolean(bool),
    /// A whole number, also of the types short and long.
    Int(i64),
    /// A number.
    Double(f64),
    /// Text, also the name of a class.
    Text(String),
    /// Texts.
    List(Vec<String>),
    /// A secret.
    Password(Password),
}

impl ConfigValue {
    /// The value as Kafka writes it; `None` for null. A secret stays hidden.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Boolean(value) => Some(value.to_string()),
            Self::Int(number) => Some(number.to_string()),
            Self::Double(number) => Some(format!("{number:?}")),
            Self::Text(text) => Some(text.clone()),
            Self::List(list) => Some(list.join(",")),
            Self::Password(_) => Some("[hidden]".into()),
        }
    }
}

/// All properties of a definition, with defaults in place of what was not given.
///
/// Asking for a property that the definition does not have, or as another type, is a bug of the plug-in and an error, never a panic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    values: BTreeMap<String, ConfigValue>,
    unknown: Vec<String>,
}

impl Config {
    pub(super) fn new(values: BTreeMap<String, ConfigValue>, unknown: Vec<String>) -> Self {
        Self { values, unknown }
    }

    /// The properties that were given but are not defined.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// The value of a property; `None` when it is not defined.
    pub fn value(&self, key: &str) -> Option<&ConfigValue> {
        self.values.get(key)
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        wanted: &'static str,
        take: impl FnOnce(&'a ConfigValue) -> Option<T>,
    ) -> Result<T, ConfigProblem> {
        self.values.get(key).and_then(take).ok_or_else(|| ConfigProblem::Undefined { key: key.into(), wanted })
    }

    /// A text that always has a value.
    ///
    /// # Errors
    /// [`ConfigProblem::Undefined`], as for all that follow.
    pub fn text(&self, key: &str) -> Result<&str, ConfigProblem> {
        self.optional_text(key)?
            .ok_or_else(|| ConfigProblem::Undefined { key: key.into(), wanted: "a text with a value" })
    }

    /// A text that may be missing.
    pub fn optional_text(&self, key: &str) -> Result<Option<&str>, ConfigProblem> {
        self.read(key, "a text", |value| match value {
            ConfigValue::Text(text) => Some(Some(text.as_str())),
            ConfigValue::Null => Some(None),
            _ => None,
        })
    }

    /// A whole number of 32 bits.
    pub fn int(&self, key: &str) -> Result<i32, ConfigProblem> {
        self.read(key, "an int", |value| match value {
            ConfigValue::Int(number) => i32::try_from(*number).ok(),
            _ => None,
        })
    }

    /// A whole number of 64 bits.
    pub fn long(&self, key: &str) -> Result<i64, ConfigProblem> {
        self.read(key, "a long", |value| match value {
            ConfigValue::Int(number) => Some(*number),
            _ => None,
        })
    }

    /// A whole number that may be missing.
    pub fn optional_long(&self, key: &str) -> Result<Option<i64>, ConfigProblem> {
        self.read(key, "a long", |value| match value {
            ConfigValue::Int(number) => Some(Some(*number)),
            ConfigValue::Null => Some(None),
            _ => None,
        })
    }

    /// A whole number from 0, as a size or a count.
    pub fn size(&self, key: &str) -> Result<usize, ConfigProblem> {
        self.read(key, "a size from 0", |value| match value {
            ConfigValue::Int(number) => usize::try_from(*number).ok(),
            _ => None,
        })
    }

    /// A number.
    pub fn double(&self, key: &str) -> Result<f64, ConfigProblem> {
        self.read(key, "a double", |value| match value {
            ConfigValue::Double(number) => Some(*number),
            _ => None,
        })
    }

    /// true or false.
    pub fn boolean(&self, key: &str) -> Result<bool, ConfigProblem> {
        self.read(key, "a boolean", |value| match value {
            ConfigValue::Boolean(value) => Some(*value),
            _ => None,
        })
    }

    /// Texts; none when the property is missing.
    pub fn list(&self, key: &str) -> Result<&[String], ConfigProblem> {
        self.read(key, "a list", |value| match value {
            ConfigValue::List(list) => Some(list.as_slice()),
            ConfigValue::Null => Some(&[][..]),
            _ => None,
        })
    }

    /// A secret that may be missing.
    pub fn password(&self, key: &str) -> Result<Option<&Password>, ConfigProblem> {
        self.read(key, "a password", |value| match value {
            ConfigValue::Password(password) => Some(Some(password)),
            ConfigValue::Null => Some(None),
            _ => None,
        })
    }
}
