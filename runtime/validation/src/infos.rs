//! The answer of the validate endpoint, and its JSON.

use oncewire_api::config_def::{CheckedValue, ConfigKey, ConfigType, Fallback};
use serde_json::{Value, json};

use crate::hash_order::hash_order_among;

/// The definition of a property as the REST interface writes it.
#[derive(Clone, Debug)]
pub struct KeyInfo(pub ConfigKey);

impl KeyInfo {
    /// The JSON object, its members in Java's order.
    pub fn to_json(&self) -> Value {
        let key = &self.0;
        let default = match &key.fallback {
            Fallback::Required | Fallback::Null => None,
            Fallback::Text(_) if key.config_type == ConfigType::Password => Some("[hidden]"),
            Fallback::Text(text) => Some(text.as_str()),
        };
        json!({
            "name": key.name,
            "type": key.config_type.name().to_ascii_uppercase(),
            "required": key.fallback == Fallback::Required,
            "default_value": default,
            "importance": key.importance.name().to_ascii_uppercase(),
            "documentation": key.doc,
            "group": key.group,
            "order_in_group": key.order,
            "width": key.width.name(),
            "display_name": key.display_name.as_ref().unwrap_or(&key.name),
            "dependents": key.dependents,
        })
    }
}

/// One property: its definition, where it has one, and what was found out about its value.
#[derive(Clone, Debug)]
pub struct ConfigInfo {
    /// Its definition.
    pub definition: Option<KeyInfo>,
    /// Its value.
    pub value: Option<CheckedValue>,
}

impl ConfigInfo {
    fn to_json(&self) -> Value {
        let value = self.value.as_ref().map(|value| {
            json!({
                "name": value.name,
                "value": value.value.to_text(),
                "recommended_values": value.recommended,
                "errors": value.errors,
                "visible": value.visible,
            })
        });
        json!({ "definition": self.definition.as_ref().map(KeyInfo::to_json), "value": value })
    }
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
    /// Puts values beside the definitions: first the values without one, then all definitions. Of two values of one name the later
    /// counts, as in Java.
    pub(crate) fn new(name: &str, groups: Vec<String>, keys: &[ConfigKey], values: Vec<CheckedValue>) -> Self {
        let size = values.len();
        let (known, unknown): (Vec<_>, Vec<_>) =
            values.into_iter().partition(|value| keys.iter().any(|key| key.name == value.name));
        let unknown = hash_order_among(unknown, size, |value| &value.name);
        let without = unknown.into_iter().map(|value| ConfigInfo { definition: None, value: Some(value) });
        let with = keys.iter().map(|key| ConfigInfo {
            definition: Some(KeyInfo(key.clone())),
            value: known.iter().rev().find(|value| value.name == key.name).cloned(),
        });
        Self { name: name.into(), groups, configs: without.chain(with).collect() }
    }

    /// Also holds these entries, with their headings.
    pub(crate) fn extend(&mut self, entries: impl IntoIterator<Item = ConfigInfo>) {
        for entry in entries {
            let group = entry.definition.as_ref().and_then(|key| key.0.group.clone());
            if let Some(group) = group.filter(|group| !self.groups.contains(group)) {
                self.groups.push(group);
            }
            self.configs.push(entry);
        }
    }

    /// How many errors there are in all.
    pub fn error_count(&self) -> usize {
        self.errors().count()
    }

    /// All errors, in the order of the properties.
    pub fn errors(&self) -> impl Iterator<Item = &str> {
        self.configs.iter().filter_map(|info| info.value.as_ref()).flat_map(|value| &value.errors).map(String::as_str)
    }

    /// The body of the answer, its members in Java's order.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "error_count": self.error_count(),
            "groups": self.groups,
            "configs": self.configs.iter().map(ConfigInfo::to_json).collect::<Vec<_>>(),
        })
    }

    /// What creating or changing the connector is refused with; `None` when there are no errors.
    pub fn invalid_message(&self) -> Option<String> {
        let errors: Vec<&str> = self.errors().collect();
        if errors.is_empty() {
            return None;
        }
        Some(format!(
            "Connector configuration is invalid and contains the following {} error(s):\n{}\nYou can also find the above list of errors \
             at the endpoint `/connector-plugins/{{connectorType}}/config/validate`",
            errors.len(),
            errors.join("\n")
        ))
    }
}
