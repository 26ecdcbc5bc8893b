//! ConfigDef: which properties there are, how their text is read, which values are allowed, and what they mean.
//!
//! One definition feeds parsing, validation and documentation, so that the three agree. Text is read as Java's `ConfigDef` reads it:
//! spaces around it do not count, booleans ignore case, lists are separated by commas. All problems are reported at once, each with the
//! key, the value and what is allowed; passwords never appear in a message.

mod check;
mod key;
mod problem;
mod topic_name;
mod value;

use std::collections::BTreeMap;
use std::fmt::Write;

pub use check::CheckedValue;
pub use key::{ConfigKey, ConfigType, Fallback, Importance, Validator, Visibility, Width};
pub use problem::ConfigProblem;
pub use topic_name::refusal as topic_name_refusal;
pub use value::{Config, ConfigValue, Password};

/// Properties as a person wrote them.
pub type Properties = BTreeMap<String, String>;

/// Properties as the REST interface takes them: a value may be null, which is then a problem of its own.
pub type NullableProperties = BTreeMap<String, Option<String>>;

/// The properties that something knows.
#[derive(Clone, Debug, Default)]
pub struct ConfigDef {
    keys: Vec<ConfigKey>,
}

impl ConfigDef {
    /// Knows no property yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also knows this property; one of the same name is replaced, in its place.
    pub fn define(mut self, key: ConfigKey) -> Self {
        match self.keys.iter_mut().find(|known| known.name == key.name) {
            Some(known) => *known = key,
            None => self.keys.push(key),
        }
        self
    }

    /// Also knows the properties of another definition.
    pub fn merged(self, other: ConfigDef) -> Self {
        other.keys.into_iter().fold(self, Self::define)
    }

    /// The properties, in the order in which they were defined.
    pub fn keys(&self) -> &[ConfigKey] {
        &self.keys
    }

    /// One property.
    pub fn key(&self, name: &str) -> Option<&ConfigKey> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Reads and checks all properties.
    ///
    /// Properties that are not defined are no problem here, since a connector's configuration also holds those of the worker, of
    /// converters and of transformations: [`Config::unknown`] lists them.
    ///
    /// # Errors
    /// Every problem, in the order in which the keys were defined.
    pub fn parse(&self, properties: &Properties) -> Result<Config, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let mut values = BTreeMap::new();
        for key in &self.keys {
            match key.parse(properties.get(&key.name).map(String::as_str)) {
                Ok(value) => {
                    values.insert(key.name.clone(), value);
                }
                Err(problem) => problems.push(problem),
            }
        }
        let unknown = properties.keys().filter(|name| !values.contains_key(*name)).cloned().collect();
        if problems.is_empty() { Ok(Config::new(values, unknown)) } else { Err(problems) }
    }

    /// A table of all properties in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut table =
            String::from("| Property | Type | Default | Allowed | Importance | Meaning |\n|---|---|---|---|---|---|\n");
        for key in &self.keys {
            let (default, allowed) = (key.default_text(), key.validator.to_string());
            let cells = [&key.name, key.config_type.name(), &default, &allowed, key.importance.name(), &key.doc];
            for cell in cells {
                // Writing to a String does not fail.
                let _ = write!(table, "| {} ", cell.replace('|', "\\|").replace('\n', " "));
            }
            table.push_str("|\n");
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(entries: &[(&str, &str)]) -> Properties {
        entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn def() -> ConfigDef {
        ConfigDef::new()
            .define(
                ConfigKey::required("topic", ConfigType::String, Importance::High, "where to")
                    .validator(Validator::NonEmpty),
            )
            .define(
                ConfigKey::with_default("batch.size", ConfigType::Int, "2000", Importance::Low, "how many")
                    .validator(Validator::at_least(1)),
            )
            .define(ConfigKey::optional("file", ConfigType::String, Importance::High, "which"))
            .define(
                ConfigKey::with_default("mode", ConfigType::String, "fast", Importance::Low, "how")
                    .validator(Validator::one_of_ignoring_case(&["fast", "slow"])),
            )
            .define(ConfigKey::with_default("on", ConfigType::Boolean, "true", Importance::Low, "whether"))
            .define(ConfigKey::with_default("names", ConfigType::List, "", Importance::Low, "who"))
            .define(ConfigKey::optional("secret", ConfigType::Password, Importance::Low, "psst"))
    }

    #[test]
    fn text_is_read_as_java_reads_it() {
        let given = properties(&[
            ("topic", " t "),
            ("batch.size", " +17 "),
            ("on", " FALSE"),
            ("names", " a , b,,c "),
            ("mode", "SLOW"),
        ]);
        let config = def().parse(&given).unwrap();
        assert_eq!(config.text("topic"), Ok("t"));
        assert_eq!(config.int("batch.size"), Ok(17));
        assert_eq!(config.boolean("on"), Ok(false));
        assert_eq!(config.list("names"), Ok(&["a".to_string(), "b".into(), String::new(), "c".into()][..]));
        assert_eq!(config.text("mode"), Ok("SLOW"));
        assert_eq!(config.optional_text("file"), Ok(None));
    }

    #[test]
    fn defaults_stand_in_and_unknown_keys_are_listed_apart() {
        let config = def().parse(&properties(&[("topic", "t"), ("bath.size", "3")])).unwrap();
        assert_eq!(config.int("batch.size"), Ok(2000));
        assert_eq!(config.list("names"), Ok(&[][..]));
        assert_eq!(config.unknown(), ["bath.size"]);
    }

    #[test]
    fn every_problem_is_reported_with_key_value_and_what_is_allowed() {
        let given = properties(&[("batch.size", "0"), ("mode", "quick"), ("on", "yes")]);
        let problems: Vec<String> = def().parse(&given).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "missing property 'topic': it has no default; set it to a text that is not empty (where to)",
                "property 'batch.size' is '0'; allowed: 1 or more",
                "property 'mode' is 'quick'; allowed: fast, slow",
                "property 'on' is 'yes'; allowed: true or false",
            ]
        );
    }

    #[test]
    fn numbers_out_of_the_range_of_their_type_are_refused() {
        let problems = def().parse(&properties(&[("topic", "t"), ("batch.size", "2147483648")])).unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "property 'batch.size' is '2147483648'; allowed: a whole number from 1 to 2147483647"
        );
    }

    #[test]
    fn a_password_never_shows() {
        let config = def().parse(&properties(&[("topic", "t"), ("secret", "hunter2")])).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert_eq!(config.password("secret").unwrap().map(Password::reveal), Some("hunter2"));
    }

    #[test]
    fn the_table_has_a_row_for_each_property() {
        let table = def().to_markdown();
        assert!(table.contains("| batch.size | int | 2000 | 1 or more | low | how many |"), "{table}");
        assert_eq!(table.lines().count(), 2 + def().keys().len());
    }

    #[test]
    fn asking_for_the_wrong_type_is_an_error_and_no_panic() {
        let config = def().parse(&properties(&[("topic", "t")])).unwrap();
        assert!(config.int("topic").is_err());
        assert!(config.text("nobody").is_err());
    }
}
