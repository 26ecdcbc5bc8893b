//! The answer of the validate endpoint.

use oncewire_api::config_def::ConfigKey;
use serde_json::Value;

/// The definition of a property as the REST interface writes it.
#[derive(Clone, Debug)]
pub struct KeyInfo(pub ConfigKey);

/// One property: its definition, where it has one, and what was found out about its value.
#[derive(Clone, Debug)]
pub struct ConfigInfo {
    /// Its definition.
    pub definition: Option<KeyInfo>,
    /// Its value.
    pub value: Option<oncewire_api::config_def::CheckedValue>,
}

/// The answer of the validate endpoint.
#[derive(Clone, Debug)]
pub struct ConfigInfos {
    /// The connector's class, as given.
    pub name: String,
    /// The headings.
    pub groups: Vec<String>,
    /// The properties.
    pub configs: Vec<ConfigInfo>,
}

impl ConfigInfos {
    /// How many errors there are in all.
    pub fn error_count(&self) -> usize {
        self.configs.iter().filter_map(|info| info.value.as_ref()).map(|value| value.errors.len()).sum()
    }

    /// The body of the answer.
    pub fn to_json(&self) -> Value {
        Value::Null
    }

    /// What creating or changing the connector is refused with; `None` when there are no errors.
    pub fn invalid_message(&self) -> Option<String> {
        None
    }
}
