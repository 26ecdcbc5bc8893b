//! `errors.deadletterqueue.*`: where a record goes that is left out. Kafka Connect has these properties for sinks alone (KIP-298);
//! for sources they are ours, and a Java worker does not know them there.
//!
//! They mean something only with `errors.tolerance=all`: else the record fails its task, and nothing is left out.

use crate::task::prepare::Tolerance;
use oncewire_api::{Config, ConfigProblem, Properties};
use std::sync::Arc;

/// The property that names the topic.
pub const TOPIC: &str = oncewire_validation::DEAD_LETTER_TOPIC;
/// The property with the replication factor of a topic that has to be made.
pub const REPLICATION_FACTOR: &str = "errors.deadletterqueue.topic.replication.factor";
/// The property that asks for headers about the error.
pub const CONTEXT_HEADERS: &str = "errors.deadletterqueue.context.headers.enable";

/// Where dead letters go, and what is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// The topic.
    pub topic: Arc<str>,
    /// Of a topic that has to be made; `None`: the brokers' default.
    pub replication_factor: Option<i16>,
    /// Whether they say in headers what failed, and where.
    pub context_headers: bool,
}

impl DeadLetters {
    /// What a connector's properties say; `None` where it has no dead letters.
    ///
    /// # Errors
    /// None but mistakes in the definition.
    pub fn read(config: &Config, tolerance: Tolerance) -> Result<Option<Self>, ConfigProblem> {
        let topic = config.text(TOPIC)?;
        if topic.is_empty() || tolerance == Tolerance::None {
            return Ok(None);
        }
        Ok(Some(Self {
            topic: topic.into(),
            replication_factor: i16::try_from(config.int(REPLICATION_FACTOR)?).ok().filter(|factor| *factor > 0),
            context_headers: config.boolean(CONTEXT_HEADERS)?,
        }))
    }
}

/// What is given and has no effect.
pub fn warnings(config: &Config, originals: &Properties) -> Vec<String> {
    let has_topic = config.text(TOPIC).is_ok_and(|topic| !topic.is_empty());
    if !has_topic {
        return [REPLICATION_FACTOR, CONTEXT_HEADERS]
            .into_iter()
            .filter(|key| originals.contains_key(*key))
            .map(|key| format!("property '{key}' has no effect without '{TOPIC}'"))
            .collect();
    }
    let is_tolerant = config.text("errors.tolerance").is_ok_and(|tolerance| tolerance.eq_ignore_ascii_case("all"));
    let idle = || {
        format!(
            "property '{TOPIC}' has no effect with errors.tolerance=none: a record that can't be converted fails its task; set \
             errors.tolerance=all"
        )
    };
    (!is_tolerant).then(idle).into_iter().collect()
}
