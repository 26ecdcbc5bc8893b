//! Checking each property for itself: what a form and Connect's validate endpoint show.
//!
//! Where [`ConfigDef::parse`] wants all values or the problems in words for a log, this answers for every property with its value, the
//! values that a form offers, and its errors. The errors have the wording of Kafka's `ConfigDef`, because tools read them from the REST
//! interface; goldens recorded from a Java worker hold it (`tests/golden/validate`).

use std::collections::BTreeMap;

use super::{
    ConfigDef, ConfigKey, ConfigType, ConfigValue, Fallback, NullableProperties, Validator, Visibility, topic_name,
};

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
        let text = match (given.get(&self.name), &self.fallback) {
            (Some(text), _) => text.as_deref(),
            (None, Fallback::Text(text)) => Some(text.as_str()),
            (None, Fallback::Null) => None,
            (None, Fallback::Required) => {
                let name = &self.name;
                let error = format!("Missing required configuration \"{name}\" which has no default value.");
                checked.errors.push(error);
                None
            }
        };
        match text.map(|text| self.config_type.read(text.trim()).ok_or(text)) {
            None => {}
            Some(Ok(value)) => checked.value = value,
            Some(Err(text)) => checked.errors.push(invalid(&self.name, text, self.config_type.refusal())),
        }
        // What may be missing may also be null; all else is checked as it is, also where it could not be read.
        let may_be_null = checked.value == ConfigValue::Null && self.fallback == Fallback::Null;
        if !may_be_null && let Some(refusal) = self.validator.refusal(&checked.value) {
            checked.errors.push(invalid(&self.name, &in_words(&checked.value), &refusal));
        }
        checked
    }
}

/// The message of Kafka's `ConfigException`.
fn invalid(name: &str, value: &str, refusal: &str) -> String {
    format!("Invalid value {value} for configuration {name}: {refusal}")
}

/// A value in a message, as Java's `toString` has it.
fn in_words(value: &ConfigValue) -> String {
    match value {
        ConfigValue::List(list) => format!("[{}]", list.join(", ")),
        value => value.to_text().unwrap_or_else(|| "null".into()),
    }
}

impl ConfigType {
    /// What Kafka says of a text that is not of this type.
    fn refusal(self) -> &'static str {
        match self {
            Self::Boolean => "Expected value to be either true or false",
            Self::Short => "Not a number of type SHORT",
            Self::Int => "Not a number of type INT",
            Self::Long => "Not a number of type LONG",
            Self::Double => "Not a number of type DOUBLE",
            // Any text is one of these.
            Self::String | Self::List | Self::Class | Self::Password => "Not a text",
        }
    }
}

impl Validator {
    /// What Kafka says of a value that is not allowed; `None` when it is.
    fn refusal(&self, value: &ConfigValue) -> Option<String> {
        let is_null = *value == ConfigValue::Null;
        match self {
            Self::Any => None,
            Self::Distinct if is_null => Some("entry must be non null".into()),
            Self::Range { .. } if is_null => Some("Value must be non-null".into()),
            Self::OneOf { .. } if is_null => Some(self.choice()),
            _ if is_null || self.accepts(value) => None,
            Self::NonEmpty if matches!(value, ConfigValue::List(_)) => Some("List must be non-empty".into()),
            Self::NonEmpty => Some("String must be non-empty".into()),
            Self::Printable => Some(unprintable(value)),
            Self::TopicName => topic_name::refusal(&value.to_text().unwrap_or_default()),
            Self::Distinct => Some("Duplicate alias provided.".into()),
            Self::Range { min, .. } if less(value, *min) => Some(format!("Value must be at least {min}")),
            Self::Range { max, .. } => Some(format!("Value must be no more than {max}")),
            Self::OneOf { .. } => Some(self.choice()),
            Self::Rule { allowed, .. } => Some(format!("Value must be {allowed}")),
        }
    }

    fn choice(&self) -> String {
        match self {
            Self::OneOf { ignore_case: true, .. } => format!("String must be one of (case insensitive): {self}"),
            _ => format!("String must be one of: {self}"),
        }
    }
}

fn less(value: &ConfigValue, min: i64) -> bool {
    match value {
        ConfigValue::Int(number) => *number < min,
        ConfigValue::Double(number) => *number < min as f64,
        _ => false,
    }
}

fn unprintable(value: &ConfigValue) -> String {
    let text = value.to_text().unwrap_or_default();
    let controls: Vec<String> = text.chars().filter(char::is_ascii_control).map(|c| (c as u32).to_string()).collect();
    if controls.is_empty() {
        return "String may not be empty".into();
    }
    format!("String may not contain control sequences but had the following ASCII chars: {}", controls.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::{ConfigKey, ConfigType, Importance};

    use super::*;

    fn given(entries: &[(&str, Option<&str>)]) -> NullableProperties {
        entries.iter().map(|(key, value)| (key.to_string(), value.map(Into::into))).collect()
    }

    fn def() -> ConfigDef {
        let key = |name, kind, default: &str| ConfigKey::with_default(name, kind, default, Importance::Low, "");
        ConfigDef::new()
            .define(
                ConfigKey::required("topic", ConfigType::String, Importance::High, "").validator(Validator::NonEmpty),
            )
            .define(key("tasks", ConfigType::Int, "1").validator(Validator::at_least(1)))
            .define(key("mode", ConfigType::String, "a").validator(Validator::one_of_ignoring_case(&["B", "A"])))
            .define(key("names", ConfigType::List, "").validator(Validator::Distinct))
            .define(
                ConfigKey::optional("pause", ConfigType::Long, Importance::Low, "").validator(Validator::at_least(0)),
            )
            .define(ConfigKey::optional("secret", ConfigType::Password, Importance::Low, ""))
            .define(
                key("proxy", ConfigType::String, "p")
                    .recommended(["p", "q"])
                    .visible_when(|values| values.get("mode") == Some(&ConfigValue::Text("b".into()))),
            )
    }

    fn errors(entries: &[(&str, Option<&str>)]) -> Vec<String> {
        def().check(&given(entries)).into_iter().flat_map(|one| one.errors).collect()
    }

    #[test]
    fn each_property_is_answered_in_the_order_of_definition() {
        let checked = def().check(&given(&[("topic", Some(" t "))]));
        let names: Vec<&str> = checked.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["topic", "tasks", "mode", "names", "pause", "secret", "proxy"]);
        assert_eq!(checked[0].value, ConfigValue::Text("t".into()));
        assert_eq!(checked[4].value, ConfigValue::Null);
        assert_eq!(checked[6].recommended, ["p", "q"]);
        assert!(checked.iter().all(|one| one.errors.is_empty()));
    }

    #[test]
    fn a_value_that_cannot_be_read_is_checked_as_null_too() {
        assert_eq!(
            errors(&[("topic", Some("t")), ("tasks", Some("x"))]),
            [
                "Invalid value x for configuration tasks: Not a number of type INT",
                "Invalid value null for configuration tasks: Value must be non-null"
            ]
        );
        assert_eq!(
            errors(&[("topic", Some("t")), ("pause", Some("x"))]),
            ["Invalid value x for configuration pause: Not a number of type LONG"]
        );
    }

    #[test]
    fn values_that_are_not_allowed_are_named_with_what_is() {
        let found = errors(&[
            ("topic", Some("")),
            ("tasks", Some("0")),
            ("mode", Some("c")),
            ("names", Some("x, x")),
            ("pause", Some("-1")),
        ]);
        assert_eq!(
            found,
            [
                "Invalid value  for configuration topic: String must be non-empty",
                "Invalid value 0 for configuration tasks: Value must be at least 1",
                "Invalid value c for configuration mode: String must be one of (case insensitive): B, A",
                "Invalid value [x, x] for configuration names: Duplicate alias provided.",
                "Invalid value -1 for configuration pause: Value must be at least 0",
            ]
        );
        assert_eq!(errors(&[]), ["Missing required configuration \"topic\" which has no default value."]);
    }

    #[test]
    fn a_number_that_is_none_is_answered_with_its_own_range() {
        let problem = |key: ConfigKey| key.parse(Some("x")).unwrap_err().to_string();
        let tasks = ConfigKey::with_default("tasks", ConfigType::Int, "1", Importance::High, "");
        assert!(problem(tasks.clone()).ends_with("allowed: a whole number from -2147483648 to 2147483647"));
        assert_eq!(
            problem(tasks.validator(Validator::at_least(1))),
            "property 'tasks' is 'x'; allowed: a whole number from 1 to 2147483647"
        );
    }

    #[test]
    fn a_topics_name_is_refused_with_what_it_may_have() {
        let topic = ConfigKey::required("topic", ConfigType::String, Importance::High, "the topic")
            .validator(Validator::TopicName);
        let errors = |name: &str| topic.check(&given(&[("topic", Some(name))])).errors;
        assert_eq!(errors("good-topic"), [""; 0]);
        assert_eq!(errors(""), ["Invalid value  for configuration topic: String must be non-empty"]);
        let refused = errors("bad topic!");
        assert!(
            refused[0].contains("' ', '!'") && refused[0].contains("a-z, A-Z, 0-9, '.', '_' and '-'"),
            "{refused:?}"
        );
        let problem = topic.parse(Some("bad topic!")).unwrap_err().to_string();
        assert!(
            problem.contains("'topic' is 'bad topic!'; allowed: a topic's name, 1 to 249 of the characters"),
            "{problem}"
        );
        let missing = topic.parse(None).unwrap_err().to_string();
        assert!(missing.contains("set it to a topic's name, 1 to 249 of the characters"), "{missing}");
    }

    #[test]
    fn visibility_hangs_on_the_other_values() {
        let visible = |mode| def().check(&given(&[("mode", Some(mode))]))[6].visible;
        assert!(visible("b"));
        assert!(!visible("a"));
    }

    #[test]
    fn a_secret_shows_neither_as_value_nor_in_an_answer() {
        let checked = def().check(&given(&[("topic", Some("t")), ("secret", Some("hunter2"))]));
        assert!(!format!("{checked:?}").contains("hunter2"));
        assert_eq!(checked[5].value.to_text().as_deref(), Some("[hidden]"));
    }
}
