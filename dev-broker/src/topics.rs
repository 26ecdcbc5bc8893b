//! The topics by name and by id, and the limits over all of them.
//!
//! Pure bookkeeping; whether a request may create or delete is decided in `api/`. Topic ids are counted, not drawn,
//! so that a run repeats itself. Source: KIP-516 (topic ids).

use std::collections::{BTreeMap, HashMap};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::TopicName;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::partition::Partition;
use crate::refusal::Refusal;
use crate::settings::BrokerSettings;
use crate::topic_config::{self, TopicRules};
use crate::transactions::state::TopicPartition;

/// Kafka's longest topic name.
const NAME_BYTES_MAX: usize = 249;
/// Marks our topic ids as counted ones; anything but the all-zero id would do.
const TOPIC_ID_BASE: u128 = 0x6f6e_6365_7769_7265_0000_0000_0000_0000;

/// A topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) partitions: Vec<Partition>,
    /// What was given at creation; all else is default.
    pub(crate) configs: BTreeMap<String, String>,
    pub(crate) rules: TopicRules,
}

/// All topics.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    by_name: BTreeMap<TopicName, Topic>,
    names: HashMap<Uuid, TopicName>,
    created: u128,
}

impl Topics {
    /// Adds a topic whose name was checked.
    ///
    /// # Errors
    /// TOPIC_ALREADY_EXISTS, INVALID_CONFIG, or POLICY_VIOLATION over the limit of partitions.
    pub(crate) fn create(
        &mut self,
        settings: &BrokerSettings,
        name: &TopicName,
        partitions: usize,
        configs: BTreeMap<String, String>,
    ) -> Result<&Topic, Refusal> {
        let rules = self.check_create(settings, name, partitions, &configs)?;
        self.created += 1;
        let id = Uuid::from_u128(TOPIC_ID_BASE + self.created);
        let partitions = (0..partitions).map(|_| Partition::new(0)).collect();
        let name = TopicName(StrBytes::from_string(name.as_str().to_owned()));
        self.names.insert(id, name.clone());
        Ok(self.by_name.entry(name).or_insert(Topic { id, partitions, configs, rules }))
    }

    /// What [`Self::create`] would say, without doing it.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub(crate) fn check_create(
        &self,
        settings: &BrokerSettings,
        name: &TopicName,
        partitions: usize,
        configs: &BTreeMap<String, String>,
    ) -> Result<TopicRules, Refusal> {
        if self.by_name.contains_key(name) {
            let message = format!("topic '{}' already exists", name.as_str());
            return Err(Refusal::new(ResponseError::TopicAlreadyExists, message));
        }
        let all: usize = self.by_name.values().map(|topic| topic.partitions.len()).sum();
        if all + partitions > settings.partitions_max {
            let limit = settings.partitions_max;
            let message = format!("{partitions} more partitions exceed the dev broker's partitions_max of {limit}");
            return Err(Refusal::new(ResponseError::PolicyViolation, message));
        }
        topic_config::rules(settings, configs)
    }

    pub(crate) fn delete(&mut self, name: &TopicName) -> Option<Topic> {
        let topic = self.by_name.remove(name)?;
        self.names.remove(&topic.id);
        Some(topic)
    }

    pub(crate) fn name_of(&self, id: Uuid) -> Option<&TopicName> {
        self.names.get(&id)
    }

    pub(crate) fn topic(&self, name: &TopicName) -> Option<&Topic> {
        self.by_name.get(name)
    }

    /// The topic, with our own copy of its name: one from a request would keep that request's bytes alive.
    pub(crate) fn named(&self, name: &TopicName) -> Option<(&TopicName, &Topic)> {
        self.by_name.get_key_value(name)
    }

    pub(crate) fn partition(&self, name: &TopicName, partition: i32) -> Option<&Partition> {
        self.by_name.get(name)?.partitions.get(usize::try_from(partition).ok()?)
    }

    pub(crate) fn partition_mut(&mut self, at: &TopicPartition) -> Option<&mut Partition> {
        self.by_name.get_mut(&at.topic)?.partitions.get_mut(usize::try_from(at.partition).ok()?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TopicName, &Topic)> {
        self.by_name.iter()
    }

    pub(crate) fn partitions_mut(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.by_name.values_mut().flat_map(|topic| &mut topic.partitions)
    }
}

/// Is this a name that Kafka accepts?
///
/// # Errors
/// INVALID_TOPIC_EXCEPTION with the reason.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let reason = if name.is_empty() {
        "it is empty".to_owned()
    } else if name == "." || name == ".." {
        format!("it is '{name}'")
    } else if name.len() > NAME_BYTES_MAX {
        format!("it is longer than {NAME_BYTES_MAX} characters")
    } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        "it contains a character other than ASCII alphanumerics, '.', '_' and '-'".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::new(ResponseError::InvalidTopicException, format!("topic name is invalid: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TopicName {
        TopicName(StrBytes::from_string(text.to_owned()))
    }

    #[test]
    fn a_recreated_topic_has_another_id() {
        let mut topics = Topics::default();
        let settings = BrokerSettings::default();
        let first = topics.create(&settings, &name("t"), 1, BTreeMap::new()).unwrap().id;
        topics.delete(&name("t")).unwrap();
        let second = topics.create(&settings, &name("t"), 1, BTreeMap::new()).unwrap().id;
        assert!(first != second && topics.name_of(first).is_none());
    }

    #[test]
    fn the_limit_of_partitions_holds_over_all_topics() {
        let mut topics = Topics::default();
        let settings = BrokerSettings { partitions_max: 3, ..BrokerSettings::default() };
        topics.create(&settings, &name("a"), 2, BTreeMap::new()).unwrap();
        let refusal = topics.create(&settings, &name("b"), 2, BTreeMap::new()).unwrap_err();
        assert_eq!(refusal.code, ResponseError::PolicyViolation);
    }

    #[test]
    fn names_follow_kafkas_rules() {
        assert!(check_name("connect-offsets_1.x").is_ok());
        let long = "x".repeat(250);
        for bad in ["", ".", "..", "a b", "ä", &long] {
            assert_eq!(check_name(bad).unwrap_err().code, ResponseError::InvalidTopicException);
        }
    }
}
