//! The properties of the connector.

use std::path::PathBuf;

use oncewire_api::{ConfigDef, ConfigKey, ConfigProblem, ConfigType, Importance, Properties, Validator};

pub(crate) const FILE: &str = "file";
const TOPIC: &str = "topic";
const BATCH_SIZE: &str = "batch.size";
const LINE_BYTES_MAX: &str = "line.bytes.max";

/// What the properties say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileConfig {
    /// The name as written: it is part of the stored offset.
    pub(crate) file: String,
    pub(crate) topic: String,
    /// How many lines a batch has at most.
    pub(crate) batch_size: usize,
    /// How long a line is at most.
    pub(crate) line_bytes_max: usize,
}

impl FileConfig {
    pub(crate) fn def() -> ConfigDef {
        ConfigDef::new()
            .define(ConfigKey::optional(
                FILE,
                ConfigType::String,
                Importance::High,
                "The file to read, as an absolute path.",
            ))
            .define(
                ConfigKey::required(TOPIC, ConfigType::String, Importance::High, "The topic to write the lines to.")
                    .validator(Validator::TopicName),
            )
            .define(ConfigKey::with_default(
                BATCH_SIZE,
                ConfigType::Int,
                "2000",
                Importance::Low,
                "How many lines a batch has at most; less than 1 counts as 1.",
            ))
            .define(
                ConfigKey::with_default(
                    LINE_BYTES_MAX,
                    ConfigType::Int,
                    "16777216",
                    Importance::Low,
                    "How many bytes a line has at most; a longer one fails the task. Kafka's own limits for a record \
                     (max.request.size of the producer, max.message.bytes of the topic) are smaller by default.",
                )
                .validator(Validator::at_least(1))
                .addition(),
            )
    }

    pub(crate) fn parse(properties: &Properties) -> Result<Self, Vec<ConfigProblem>> {
        let config = Self::def().parse(properties)?;
        let read = || {
            Ok(Self {
                file: config.optional_text(FILE)?.filter(|file| !file.is_empty()).ok_or_else(no_file)?.to_string(),
                topic: config.text(TOPIC)?.to_string(),
                batch_size: usize::try_from(config.int(BATCH_SIZE)?).unwrap_or(1).max(1),
                line_bytes_max: config.size(LINE_BYTES_MAX)?,
            })
        };
        read().map_err(|problem| vec![problem])
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(&self.file)
    }
}

/// What is said where there is no file.
pub(crate) const NO_FILE: &str =
    "without it Java's connector reads standard input, which is not supported here; set it to the path of a file";

fn no_file() -> ConfigProblem {
    ConfigProblem::Conflict { key: FILE.into(), message: NO_FILE.into() }
}

/// Several problems in one message.
pub(crate) fn join(problems: &[ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(entries: &[(&str, &str)]) -> Properties {
        entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn defaults_are_javas() {
        let config = FileConfig::parse(&properties(&[("file", "/in"), ("topic", "t")])).unwrap();
        assert_eq!((config.batch_size, config.line_bytes_max), (2000, 16 << 20));
    }

    #[test]
    fn standard_input_is_refused_with_what_to_set() {
        for file in [None, Some("")] {
            let mut given = properties(&[("topic", "t")]);
            given.extend(file.map(|file| ("file".to_string(), file.to_string())));
            let problems = FileConfig::parse(&given).unwrap_err();
            assert!(join(&problems).contains("set it to the path of a file"), "{problems:?}");
        }
    }

    #[test]
    fn a_topic_is_needed_and_a_batch_holds_at_least_one_line() {
        let problems = FileConfig::parse(&properties(&[("file", "/in"), ("batch.size", "x")])).unwrap_err();
        assert_eq!(problems.iter().map(ConfigProblem::key).collect::<Vec<_>>(), ["topic", "batch.size"]);
        for size in ["0", "-1"] {
            let given = properties(&[("file", "/in"), ("topic", "t"), ("batch.size", size)]);
            assert_eq!(FileConfig::parse(&given).unwrap().batch_size, 1);
        }
    }

    #[test]
    fn a_name_that_no_topic_can_have_is_refused_with_what_it_may_have() {
        let problems = FileConfig::parse(&properties(&[("file", "/in"), ("topic", "bad topic!")])).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let told = join(&problems);
        assert!(told.contains("'bad topic!'") && told.contains("a-z, A-Z, 0-9, '.', '_' and '-'"), "{told}");
    }

    #[test]
    fn the_readme_lists_every_property_with_its_default() {
        let readme = include_str!("../README.md");
        for key in FileConfig::def().keys() {
            let default = key.default_text().replace("null", "");
            let row = format!("| `{}` | {} | {default} |", key.name, key.config_type.name()).replace("|  |", "| |");
            assert!(readme.contains(&row), "{row}");
        }
    }
}
