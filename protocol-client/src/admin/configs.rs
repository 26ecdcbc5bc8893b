//! Reading configs of topics and brokers. DescribeConfigs 1-4.

use std::collections::BTreeMap;

use super::Admin;
use crate::cluster::NodeId;
use crate::error::Error;

/// One config value in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The value; `None` when it is sensitive or not set.
    pub value: Option<String>,
    /// Whether nobody set it anywhere.
    pub is_default: bool,
}

impl Admin {
    /// The configs of a topic, all of them or the named ones.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], or the broker's refusal.
    pub async fn topic_configs(&self, _topic: &str, _names: &[&str]) -> Result<BTreeMap<String, ConfigEntry>, Error> {
        Err(Error::Closed)
    }

    /// The configs of a broker, all of them or the named ones (such as `transaction.max.timeout.ms`).
    ///
    /// # Errors
    /// The broker's refusal.
    pub async fn broker_configs(&self, _node: NodeId, _names: &[&str]) -> Result<BTreeMap<String, ConfigEntry>, Error> {
        Err(Error::Closed)
    }
}
