//! One property: its type, default, allowed values and meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{ConfigProblem, ConfigValue, Password, topic_name};

/// How the text of a property is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigType {
    /// `true` or `false`, in any case.
    Boolean,
    /// Text without the spaces around it.
    String,
    /// A whole number of 16 bits.
    Short,
    /// A whole number of 32 bits.
    Int,
    /// A whole number of 64 bits.
    Long,
    /// A number.
    Double,
    /// Texts separated by commas.
    List,
    /// The name of a class, that is of a plug-in.
    Class,
    /// A text that does not show.
    Password,
}

impl ConfigType {
    /// Its name in documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Short => "short",
            Self::Int => "int",
            Self::Long => "long",
            Self::Double => "double",
            Self::List => "list",
            Self::Class => "class",
            Self::Password => "password",
        }
    }

    fn allowed(self) -> String {
        match self {
            Self::Boolean => "true or false".into(),
            Self::String | Self::Password => "any text".into(),
            Self::Short => whole_numbers(i64::from(i16::MIN), i64::from(i16::MAX)),
            Self::Int => whole_numbers(i64::from(i32::MIN), i64::from(i32::MAX)),
            Self::Long => whole_numbers(i64::MIN, i64::MAX),
            Self::Double => "a number".into(),
            Self::List => "texts separated by commas".into(),
            Self::Class => "the name of a plug-in".into(),
        }
    }

    /// Reads text whose outer spaces are gone.
    pub(super) fn read(self, text: &str) -> Option<ConfigValue> {
        match self {
            Self::Boolean if text.eq_ignore_ascii_case("true") => Some(ConfigValue::Boolean(true)),
            Self::Boolean if text.eq_ignore_ascii_case("false") => Some(ConfigValue::Boolean(false)),
            Self::Boolean => None,
            Self::String | Self::Class => Some(ConfigValue::Text(text.into())),
            Self::Short => text.parse::<i16>().ok().map(|number| ConfigValue::Int(number.into())),
            Self::Int => text.parse::<i32>().ok().map(|number| ConfigValue::Int(number.into())),
            Self::Long => text.parse::<i64>().ok().map(ConfigValue::Int),
            Self::Double => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(ConfigValue::Double),
            Self::List if text.is_empty() => Some(ConfigValue::List(Vec::new())),
            Self::List => Some(ConfigValue::List(text.split(',').map(|item| item.trim().into()).collect())),
            Self::Password => Some(ConfigValue::Password(Password::new(text))),
        }
    }
}

fn whole_numbers(min: i64, max: i64) -> String {
    format!("a whole number from {min} to {max}")
}

/// Which values of the type are allowed.
#[derive(Clone, Debug, Default)]
pub enum Validator {
    /// All.
    #[default]
    Any,
    /// Text of at least one character, or a list of at least one text.
    NonEmpty,
    /// Text of at least one character, none of them a control character.
    Printable,
    /// What Kafka takes for the name of a topic.
    TopicName,
    /// Texts of which no two are the same.
    Distinct,
    /// Numbers in a range, both ends included.
    Range {
        /// The smallest.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// One of these texts; for a list, each item is one of them.
    OneOf {
        /// The texts.
        allowed: Vec<String>,
        /// Whether `FAST` stands for `fast`.
        ignore_case: bool,
    },
    /// A rule of its own.
    Rule {
        /// What is allowed, in words.
        allowed: &'static str,
        /// Says whether a value is.
        accepts: fn(&ConfigValue) -> bool,
    },
}

impl Validator {
    /// Numbers from `min`.
    pub fn at_least(min: i64) -> Self {
        Self::Range { min, max: i64::MAX }
    }

    /// Numbers from `min` to `max`.
    pub fn between(min: i64, max: i64) -> Self {
        Self::Range { min, max }
    }

    /// One of these texts.
    pub fn one_of(allowed: &[&str]) -> Self {
        Self::OneOf { allowed: allowed.iter().map(ToString::to_string).collect(), ignore_case: false }
    }

    /// One of these texts, in any case.
    pub fn one_of_ignoring_case(allowed: &[&str]) -> Self {
        Self::OneOf { allowed: allowed.iter().map(ToString::to_string).collect(), ignore_case: true }
    }

    pub(super) fn accepts(&self, value: &ConfigValue) -> bool {
        let known = |text: &str| match self {
            Self::OneOf { allowed, ignore_case: true } => allowed.iter().any(|item| item.eq_ignore_ascii_case(text)),
            Self::OneOf { allowed, ignore_case: false } => allowed.iter().any(|item| item == text),
            _ => true,
        };
        match (self, value) {
            (_, ConfigValue::Null) | (Self::Any, _) => true,
            (Self::Rule { accepts, .. }, value) => accepts(value),
            (Self::NonEmpty, ConfigValue::Text(text)) => !text.is_empty(),
            (Self::NonEmpty, ConfigValue::List(list)) => !list.is_empty(),
            (Self::Printable, ConfigValue::Text(text)) => {
                !text.is_empty() && !text.chars().any(|c| c.is_ascii_control())
            }
            (Self::TopicName, ConfigValue::Text(text)) => topic_name::refusal(text).is_none(),
            (Self::Distinct, ConfigValue::List(list)) => {
                let mut seen = BTreeSet::new();
                list.iter().all(|item| seen.insert(item))
            }
            (Self::Range { min, max }, ConfigValue::Int(number)) => (min..=max).contains(&number),
            (Self::Range { min, max }, ConfigValue::Double(number)) => (*min as f64..=*max as f64).contains(number),
            (Self::OneOf { .. }, ConfigValue::Text(text)) => known(text),
            (Self::OneOf { .. }, ConfigValue::List(list)) => list.iter().all(|item| known(item)),
            _ => true,
        }
    }
}

impl fmt::Display for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::NonEmpty => f.write_str("a text that is not empty"),
            Self::Printable => f.write_str("a text that is not empty and has no control characters"),
            Self::TopicName => write!(f, "a topic's name, {}", topic_name::CHARACTERS),
            Self::Distinct => f.write_str("texts that differ from each other"),
            Self::Range { min, max: i64::MAX } => write!(f, "{min} or more"),
            Self::Range { min, max } => write!(f, "{min} to {max}"),
            Self::OneOf { allowed, .. } => f.write_str(&allowed.join(", ")),
            Self::Rule { allowed, .. } => f.write_str(allowed),
        }
    }
}

/// How much a property matters to a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Look at it first.
    High,
    /// Sometimes.
    Medium,
    /// Rarely.
    Low,
}

impl Importance {
    /// Its name in documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// How wide a form shows the property (the REST API says it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// Nothing is said.
    #[default]
    None,
    /// A number.
    Short,
    /// A name.
    Medium,
    /// A path or an address.
    Long,
}

impl Width {
    /// Its name in the REST API.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Short => "SHORT",
            Self::Medium => "MEDIUM",
            Self::Long => "LONG",
        }
    }
}

/// When a form shows a property.
#[derive(Clone, Copy, Debug, Default)]
pub enum Visibility {
    /// Always.
    #[default]
    Always,
    /// When this says so of the values that could be read.
    When(fn(&BTreeMap<String, ConfigValue>) -> bool),
}

/// What stands in for a property that is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Nothing: it must be given.
    Required,
    /// Null.
    Null,
    /// This text, read as if it had been given.
    Text(String),
}

/// One property.
#[derive(Clone, Debug)]
pub struct ConfigKey {
    /// Its name.
    pub name: String,
    /// How its text is read.
    pub config_type: ConfigType,
    /// What stands in for it.
    pub fallback: Fallback,
    /// Which values are allowed.
    pub validator: Validator,
    /// How much it matters.
    pub importance: Importance,
    /// What it means, in a sentence or two.
    pub doc: String,
    /// The heading under which a form shows it.
    pub group: Option<String>,
    /// Its place under that heading; −1 when it has none.
    pub order: i32,
    /// How wide a form shows it.
    pub width: Width,
    /// What a form calls it; its name when nothing is said.
    pub display_name: Option<String>,
    /// The properties whose recommended values or visibility hang on this one.
    pub dependents: Vec<String>,
    /// The values that a form offers; others are allowed too.
    pub recommended: Vec<String>,
    /// When a form shows it.
    pub visibility: Visibility,
    /// Whether it is an addition to what Java's plug-in of the same name has: lists that Java would give too name it only when it is
    /// given.
    pub is_addition: bool,
}

impl ConfigKey {
    fn new(
        name: impl Into<String>,
        config_type: ConfigType,
        fallback: Fallback,
        importance: Importance,
        doc: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            config_type,
            fallback,
            validator: Validator::Any,
            importance,
            doc: doc.into(),
            group: None,
            order: -1,
            width: Width::None,
            display_name: None,
            dependents: Vec::new(),
            recommended: Vec::new(),
            visibility: Visibility::Always,
            is_addition: false,
        }
    }

    /// A property that must be given.
    pub fn required(
        name: impl Into<String>,
        config_type: ConfigType,
        importance: Importance,
        doc: impl Into<String>,
    ) -> Self {
        Self::new(name, config_type, Fallback::Required, importance, doc)
    }

    /// A property that is null when it is not given.
    pub fn optional(
        name: impl Into<String>,
        config_type: ConfigType,
        importance: Importance,
        doc: impl Into<String>,
    ) -> Self {
        Self::new(name, config_type, Fallback::Null, importance, doc)
    }

    /// A property with a default, written as a person would write it.
    pub fn with_default(
        name: impl Into<String>,
        config_type: ConfigType,
        default: impl Into<String>,
        importance: Importance,
        doc: impl Into<String>,
    ) -> Self {
        Self::new(name, config_type, Fallback::Text(default.into()), importance, doc)
    }

    /// With these values allowed.
    pub fn validator(mut self, validator: Validator) -> Self {
        self.validator = validator;
        self
    }

    /// Under this heading.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// At this place under its heading.
    pub fn order(mut self, order: i32) -> Self {
        self.order = order;
        self
    }

    /// Called this in a form.
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = Some(name.into());
        self
    }

    /// With these properties depending on it.
    pub fn dependents(mut self, names: &[&str]) -> Self {
        self.dependents = names.iter().map(ToString::to_string).collect();
        self
    }

    /// With these values offered in a form.
    pub fn recommended(mut self, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.recommended = values.into_iter().map(Into::into).collect();
        self
    }

    /// An addition to what Java's plug-in of the same name has.
    pub fn addition(mut self) -> Self {
        self.is_addition = true;
        self
    }

    /// Shown in a form only when the other values say so.
    pub fn visible_when(mut self, visible: fn(&BTreeMap<String, ConfigValue>) -> bool) -> Self {
        self.visibility = Visibility::When(visible);
        self
    }

    /// With this width in a form.
    pub fn width(mut self, width: Width) -> Self {
        self.width = width;
        self
    }

    /// The default in documentation; empty when there is none.
    pub fn default_text(&self) -> String {
        match &self.fallback {
            Fallback::Required => String::new(),
            Fallback::Null => "null".into(),
            Fallback::Text(_) if self.config_type == ConfigType::Password => "[hidden]".into(),
            Fallback::Text(text) if text.is_empty() => "\"\"".into(),
            Fallback::Text(text) => text.clone(),
        }
    }

    /// What is allowed, in words.
    pub fn allowed(&self) -> String {
        match &self.validator {
            Validator::Any => self.config_type.allowed(),
            validator => validator.to_string(),
        }
    }

    /// Reads and checks one value; `None` when it was not given.
    ///
    /// # Errors
    /// [`ConfigProblem`] when it is missing or not allowed.
    pub fn parse(&self, given: Option<&str>) -> Result<ConfigValue, ConfigProblem> {
        let text = match (given, &self.fallback) {
            (Some(text), _) => text,
            (None, Fallback::Text(text)) => text,
            (None, Fallback::Null) => return Ok(ConfigValue::Null),
            (None, Fallback::Required) => {
                return Err(ConfigProblem::Missing {
                    key: self.name.clone(),
                    allowed: self.allowed(),
                    doc: self.doc.clone(),
                });
            }
        };
        let Some(value) = self.config_type.read(text.trim()) else {
            return Err(self.invalid(text, self.readable()));
        };
        if self.validator.accepts(&value) { Ok(value) } else { Err(self.invalid(text, self.allowed())) }
    }

    /// What is said of a text that cannot be read: of a number's own range and that of its type, what both allow.
    fn readable(&self) -> String {
        let (least, greatest) = match self.config_type {
            ConfigType::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
            ConfigType::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
            ConfigType::Long => (i64::MIN, i64::MAX),
            other => return other.allowed(),
        };
        match self.validator {
            Validator::Range { min, max } => whole_numbers(min.max(least), max.min(greatest)),
            _ => whole_numbers(least, greatest),
        }
    }

    fn invalid(&self, text: &str, allowed: String) -> ConfigProblem {
        let hidden = self.config_type == ConfigType::Password;
        let value = if hidden { "[hidden]".into() } else { text.into() };
        ConfigProblem::Invalid { key: self.name.clone(), value, allowed }
    }
}
