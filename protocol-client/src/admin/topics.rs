//! Creating and deleting topics. CreateTopics 2-7, DeleteTopics 1-6; the controller answers both.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::{CreateTopicsRequest, DeleteTopicsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::Admin;
use crate::cluster::{Call, Target};
use crate::error::{BrokerError, Error};
use crate::wire::error_code::codes;

/// Since this version -1 stands for the broker's own default (KIP-464).
const VERSION_BROKER_DEFAULTS: i16 = 4;
/// Since this version a topic to delete is a structure with a name or an id.
const VERSION_DELETE_BY_ID: i16 = 6;
const BROKER_DEFAULT: i32 = -1;

/// A topic to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; `None`: the broker's `num.partitions`.
    pub partitions: Option<i32>,
    /// How many replicas; `None`: the broker's `default.replication.factor`.
    pub replication_factor: Option<i16>,
    /// Topic configs, such as `cleanup.policy`.
    pub configs: BTreeMap<String, String>,
}

impl NewTopic {
    /// What to change after a refusal of its counts, where they are the settings `<prefix>replication.factor` and
    /// `<prefix>partitions`. `None`: it was refused for something else.
    #[must_use]
    pub fn advice(&self, error: &Error, prefix: &str) -> Option<String> {
        match error.code()? {
            codes::INVALID_REPLICATION_FACTOR => Some(match self.replication_factor {
                Some(replicas) => format!(
                    "{prefix}replication.factor is {replicas}, and it takes as many brokers: set it to 1 for a single broker, or to -1 for the brokers' default"
                ),
                None => format!(
                    "the brokers' default.replication.factor takes more brokers than there are: set {prefix}replication.factor, to 1 for a single broker"
                ),
            }),
            codes::INVALID_PARTITIONS => Some(format!(
                "{prefix}partitions is {}: set it to 1 or more, or to -1 for the brokers' default",
                self.partitions.unwrap_or(BROKER_DEFAULT)
            )),
            _ => None,
        }
    }
}

/// What became of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicOutcome {
    /// It was made by this call (or by an earlier attempt of it whose answer was lost).
    Created,
    /// It was there before.
    Existed,
}

impl Admin {
    /// Creates one topic and waits until its partitions have leaders in the metadata.
    ///
    /// # Errors
    /// The broker's refusal, with its own words (invalid replication factor, policy); [`Error::missing_permission`] says when
    /// it was a permission;
    /// [`Error::Timeout`] after `default.api.timeout.ms`.
    ///
    /// # Cancel safety
    /// A topic whose creation was sent may be made all the same.
    pub async fn create_topic(&self, topic: &NewTopic) -> Result<TopicOutcome, Error> {
        let mut retry = self.cluster.retry(format!("creating topic {}", topic.name), self.cluster.patience());
        let mut is_first = true;
        let outcome = loop {
            match self.try_create(topic).await {
                Ok(()) => break TopicOutcome::Created,
                Err(error) if error.code() == Some(codes::TOPIC_ALREADY_EXISTS) => {
                    // If an earlier attempt's answer was lost, it was ours.
                    break if is_first { TopicOutcome::Existed } else { TopicOutcome::Created };
                }
                Err(error) if error.retriable() => retry.pause(error).await?,
                Err(error) => return Err(self.cluster.with_user(error)),
            }
            is_first = false;
        };
        // A broker may answer metadata requests before it has heard of the new topic.
        loop {
            let error = match self.cluster.refresh(&[&topic.name]).await {
                Ok(()) => match self.cluster.known_topic(&topic.name) {
                    Some(known) if known.partitions.values().all(|partition| partition.leader.is_some()) => {
                        return Ok(outcome);
                    }
                    _ => Error::broker("Metadata", codes::LEADER_NOT_AVAILABLE, format!("topic {}", topic.name)),
                },
                Err(error) if error.retriable() => error,
                Err(error) => return Err(error),
            };
            retry.pause(error).await?;
        }
    }

    async fn try_create(&self, topic: &NewTopic) -> Result<(), Error> {
        let call = Call::to(Target::Controller);
        let uses_defaults = topic.partitions.is_none() || topic.replication_factor.is_none();
        let timeout_ms = self.timeout_ms();
        let reply = self
            .cluster
            .call(call, |version| {
                // Brokers before 2.4 know no default; one partition and one replica are theirs.
                let default = if version >= VERSION_BROKER_DEFAULTS || !uses_defaults { BROKER_DEFAULT } else { 1 };
                let request = creatable(topic, default);
                CreateTopicsRequest::default().with_topics(vec![request]).with_timeout_ms(timeout_ms)
            })
            .await?;
        let result = reply.body.topics.iter().find(|result| result.name.as_str() == topic.name);
        let Some(result) = result else {
            return Err(Error::Malformed {
                peer: "the controller".to_owned(),
                what: format!("CreateTopics does not mention {}", topic.name),
            });
        };
        checked(
            "CreateTopics",
            &topic.name,
            result.error_code,
            result.error_message.as_ref().map(|message| message.to_string()),
        )
    }

    /// Deletes one topic. False: there was none.
    ///
    /// # Errors
    /// The broker's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    ///
    /// # Cancel safety
    /// A topic whose deletion was sent may be deleted all the same.
    pub async fn delete_topic(&self, name: &str) -> Result<bool, Error> {
        let mut retry = self.cluster.retry(format!("deleting topic {name}"), self.cluster.patience());
        let mut is_first = true;
        loop {
            let error = match self.try_delete(name).await {
                Ok(()) => {
                    self.cluster.forget_topic(name);
                    return Ok(true);
                }
                Err(error) => error,
            };
            match error.code() {
                // If an earlier attempt's answer was lost, it was that one which deleted it.
                Some(codes::UNKNOWN_TOPIC_OR_PARTITION) => {
                    self.cluster.forget_topic(name);
                    return Ok(!is_first);
                }
                _ if error.retriable() => retry.pause(error).await?,
                _ => return Err(self.cluster.with_user(error)),
            }
            is_first = false;
        }
    }

    async fn try_delete(&self, name: &str) -> Result<(), Error> {
        let topic_name = TopicName(StrBytes::from_string(name.to_owned()));
        let timeout_ms = self.timeout_ms();
        let reply = self
            .cluster
            .call(Call::to(Target::Controller), |version| {
                let request = DeleteTopicsRequest::default().with_timeout_ms(timeout_ms);
                if version >= VERSION_DELETE_BY_ID {
                    request.with_topics(vec![DeleteTopicState::default().with_name(Some(topic_name))])
                } else {
                    request.with_topic_names(vec![topic_name])
                }
            })
            .await?;
        match reply.body.responses.first() {
            Some(result) => {
                let message = result.error_message.as_ref().map(|message| message.to_string());
                checked("DeleteTopics", name, result.error_code, message)
            }
            None => Err(Error::Malformed {
                peer: "the controller".to_owned(),
                what: format!("DeleteTopics does not mention {name}"),
            }),
        }
    }

    /// What the controller is told: how long it may work on a request.
    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.cluster.config().request_timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

fn creatable(topic: &NewTopic, default: i32) -> CreatableTopic {
    let default_replicas = i16::try_from(default).unwrap_or(1);
    let configs = topic.configs.iter().map(|(name, value)| {
        CreatableTopicConfig::default()
            .with_name(StrBytes::from_string(name.clone()))
            .with_value(Some(StrBytes::from_string(value.clone())))
    });
    CreatableTopic::default()
        .with_name(TopicName(StrBytes::from_string(topic.name.clone())))
        .with_num_partitions(topic.partitions.unwrap_or(default))
        .with_replication_factor(topic.replication_factor.unwrap_or(default_replicas))
        .with_configs(configs.collect())
}

fn checked(api: &'static str, topic: &str, code: i16, message: Option<String>) -> Result<(), Error> {
    match code {
        codes::NONE => Ok(()),
        code => Err(Error::Broker(BrokerError { api, code, subject: format!("topic {topic}"), message, user: None })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_counts_become_the_given_default() {
        let topic = NewTopic { name: "t".into(), partitions: None, replication_factor: None, configs: BTreeMap::new() };
        let request = creatable(&topic, -1);
        assert_eq!((request.num_partitions, request.replication_factor), (-1, -1));
        let set = NewTopic { partitions: Some(3), replication_factor: Some(2), ..topic };
        let request = creatable(&set, -1);
        assert_eq!((request.num_partitions, request.replication_factor), (3, 2));
    }

    #[test]
    fn counts_that_are_refused_are_named_by_their_setting_with_what_to_set() {
        let refused = |code| Error::broker("CreateTopics", code, "topic t");
        let topic =
            NewTopic { name: "t".into(), partitions: Some(0), replication_factor: Some(3), configs: BTreeMap::new() };
        let advice = topic.advice(&refused(codes::INVALID_REPLICATION_FACTOR), "config.storage.").unwrap();
        for words in ["config.storage.replication.factor is 3", "1 for a single broker", "-1 for the brokers' default"]
        {
            assert!(advice.contains(words), "{advice}");
        }
        let advice = topic.advice(&refused(codes::INVALID_PARTITIONS), "status.storage.").unwrap();
        assert!(advice.starts_with("status.storage.partitions is 0"), "{advice}");
        let by_default = NewTopic { replication_factor: None, ..topic };
        let advice = by_default.advice(&refused(codes::INVALID_REPLICATION_FACTOR), "offset.storage.").unwrap();
        assert!(advice.contains("set offset.storage.replication.factor"), "{advice}");
        assert_eq!(by_default.advice(&refused(codes::INVALID_CONFIG), "offset.storage."), None);
    }
}
