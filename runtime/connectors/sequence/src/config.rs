//! The properties of the connector.

use oncewire_api::{ConfigDef, ConfigKey, ConfigProblem, ConfigType, Importance, Properties, Validator};

use crate::BoundaryPlan;

pub(crate) const TASKS: &str = "tasks";
/// Set in the configuration of a task only: which one it is.
pub(crate) const TASK_ID: &str = "task.id";
const TOPIC: &str = "topic";
const RECORDS_MAX: &str = "records.max";
const RATE_PER_SECOND: &str = "rate.per.second";
const RECORD_BYTES: &str = "record.bytes";
const BATCH_SIZE: &str = "batch.size";
const PARTITIONS: &str = "partitions";
const COMMIT_EVERY: &str = "commit.every";
const ABORT_EVERY: &str = "abort.every";

/// What the properties say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SequenceConfig {
    pub(crate) topic: String,
    pub(crate) tasks: usize,
    /// The number of this task; 0 in the connector's own configuration.
    pub(crate) task: u32,
    /// Records per second; 0: no limit.
    pub(crate) rate: u64,
    pub(crate) record_bytes: usize,
    pub(crate) batch_size: usize,
    /// Records of task `t` go to partition `t % partitions`; `None`: where their key leads.
    pub(crate) kafka_partition: Option<u32>,
    pub(crate) boundaries: BoundaryPlan,
}

impl SequenceConfig {
    pub(crate) fn def() -> ConfigDef {
        let int =
            |name, default: &str, doc| ConfigKey::with_default(name, ConfigType::Int, default, Importance::Medium, doc);
        let long = |name, default: &str, doc| {
            ConfigKey::with_default(name, ConfigType::Long, default, Importance::Medium, doc)
        };
        ConfigDef::new()
            .define(
                ConfigKey::required(TOPIC, ConfigType::String, Importance::High, "The topic to write to.")
                    .validator(Validator::TopicName),
            )
            .define(
                int(
                    TASKS,
                    "1",
                    "How many tasks there are, each with a sequence of its own; tasks.max must allow them.",
                )
                .validator(Validator::between(1, 10_000)),
            )
            .define(
                long(RECORDS_MAX, "-1", "How many records each task writes; -1: no end.")
                    .validator(Validator::at_least(-1)),
            )
            .define(
                long(RATE_PER_SECOND, "0", "How many records each task writes in a second; 0: as many as it can.")
                    .validator(Validator::at_least(0)),
            )
            .define(
                int(
                    RECORD_BYTES,
                    "84",
                    "How many bytes the value of a record has; at least as many as its numbers need.",
                )
                .validator(Validator::between(0, 64 << 20)),
            )
            .define(
                int(BATCH_SIZE, "2000", "How many records a batch has at most.")
                    .validator(Validator::between(1, 1_000_000)),
            )
            .define(
                int(
                    PARTITIONS,
                    "0",
                    "Task t writes to partition t modulo this number; 0: to the one that its key leads to.",
                )
                .validator(Validator::at_least(0)),
            )
            .define(
                long(
                    COMMIT_EVERY,
                    "0",
                    "With transaction.boundary=connector: how many records a transaction has; 0: those of a batch.",
                )
                .validator(Validator::at_least(0)),
            )
            .define(
                long(
                    ABORT_EVERY,
                    "0",
                    "With commit.every: each transaction of this number is aborted instead; 0: none.",
                )
                .validator(Validator::at_least(0)),
            )
            .define(int(TASK_ID, "0", "Set by the connector for each of its tasks.").validator(Validator::at_least(0)))
    }

    pub(crate) fn parse(properties: &Properties) -> Result<Self, Vec<ConfigProblem>> {
        let config = Self::def().parse(properties)?;
        let count = |key| config.long(key).map(|number| u64::try_from(number).ok());
        let read = || {
            let task = count(TASK_ID)?.and_then(|task| u32::try_from(task).ok()).unwrap_or(0);
            let partitions = count(PARTITIONS)?.and_then(|partitions| u32::try_from(partitions).ok()).unwrap_or(0);
            Ok(Self {
                topic: config.text(TOPIC)?.to_string(),
                tasks: config.size(TASKS)?,
                task,
                rate: count(RATE_PER_SECOND)?.unwrap_or(0),
                record_bytes: config.size(RECORD_BYTES)?,
                batch_size: config.size(BATCH_SIZE)?,
                kafka_partition: task.checked_rem(partitions),
                boundaries: BoundaryPlan {
                    commit_every: count(COMMIT_EVERY)?.unwrap_or(0),
                    abort_every: count(ABORT_EVERY)?.unwrap_or(0),
                    records_max: count(RECORDS_MAX)?, // -1 is no count
                },
            })
        };
        let read: Self = read().map_err(|problem| vec![problem])?;
        if read.boundaries.abort_every > 0 && read.boundaries.commit_every == 0 {
            let message = "it counts transactions of 'commit.every' records; set that too".to_string();
            return Err(vec![ConfigProblem::Conflict { key: ABORT_EVERY.into(), message }]);
        }
        Ok(read)
    }
}

/// Several problems in one message.
pub(crate) fn join(problems: &[ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[(&str, &str)]) -> Result<SequenceConfig, Vec<ConfigProblem>> {
        SequenceConfig::parse(&entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
    }

    #[test]
    fn the_default_is_one_endless_task_without_a_limit() {
        let config = parse(&[("topic", "t")]).unwrap();
        assert_eq!((config.tasks, config.rate, config.boundaries.records_max), (1, 0, None));
        assert_eq!((config.record_bytes, config.kafka_partition), (84, None));
    }

    #[test]
    fn a_task_keeps_to_its_partition() {
        let config = parse(&[("topic", "t"), ("partitions", "4"), ("task.id", "6")]).unwrap();
        assert_eq!((config.task, config.kafka_partition), (6, Some(2)));
    }

    #[test]
    fn aborts_without_a_transaction_length_are_refused() {
        let problems = parse(&[("topic", "t"), ("abort.every", "2")]).unwrap_err();
        assert!(
            join(&problems).contains("property 'abort.every': it counts transactions of 'commit.every'"),
            "{problems:?}"
        );
    }

    #[test]
    fn the_readme_lists_every_property_with_its_default() {
        let readme = include_str!("../README.md");
        for key in SequenceConfig::def().keys().iter().filter(|key| key.name != TASK_ID) {
            let row = format!("| `{}` | {} | {} |", key.name, key.config_type.name(), key.default_text())
                .replace("|  |", "| |");
            assert!(readme.contains(&row), "{row}");
        }
    }
}
