//! Reading and changing configs of topics and brokers. DescribeConfigs 1-4, IncrementalAlterConfigs 0-1.

use std::collections::BTreeMap;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use kafka_protocol::protocol::StrBytes;

use super::Admin;
use crate::cluster::{Call, NodeId, Target};
use crate::error::{BrokerError, Error};
use crate::wire::error_code::codes;

const RESOURCE_TOPIC: i8 = 2;
const RESOURCE_BROKER: i8 = 4;
/// The source of a value that nobody set.
const SOURCE_DEFAULT: i8 = 5;
const OPERATION_SET: i8 = 0;
const OPERATION_DELETE: i8 = 1;

/// One config value in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The value; `None` when it is sensitive or not set.
    pub value: Option<String>,
    /// Whether nobody set it anywhere.
    pub is_default: bool,
}

/// What shall become of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    /// It shall have this value.
    Set(String),
    /// It shall be the default again.
    Delete,
}

impl Admin {
    /// The configs of a topic, all of them (with no names) or the named ones.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], the broker's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn topic_configs(&self, topic: &str, names: &[&str]) -> Result<BTreeMap<String, ConfigEntry>, Error> {
        let resource = resource(RESOURCE_TOPIC, topic, names);
        match self.describe(Target::Any, resource, format!("topic {topic}")).await {
            Err(error) if error.code() == Some(codes::UNKNOWN_TOPIC_OR_PARTITION) => {
                Err(Error::UnknownTopic { topic: topic.to_owned() })
            }
            other => other,
        }
    }

    /// The configs of a broker, all of them (with no names) or the named ones (such as `transaction.max.timeout.ms`).
    ///
    /// # Errors
    /// The broker's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn broker_configs(&self, node: NodeId, names: &[&str]) -> Result<BTreeMap<String, ConfigEntry>, Error> {
        let resource = resource(RESOURCE_BROKER, &node.0.to_string(), names);
        // Only the broker itself knows its own settings.
        self.describe(Target::Node(node), resource, node.to_string()).await
    }

    /// Changes some configs of a topic and leaves the others (KIP-339).
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], the broker's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    ///
    /// # Cancel safety
    /// Changes that were sent may be made all the same.
    pub async fn alter_topic_configs(&self, topic: &str, changes: &[(&str, ConfigChange)]) -> Result<(), Error> {
        match self.alter(Target::Any, RESOURCE_TOPIC, topic, changes, &format!("topic {topic}")).await {
            Err(error) if error.code() == Some(codes::UNKNOWN_TOPIC_OR_PARTITION) => {
                Err(Error::UnknownTopic { topic: topic.to_owned() })
            }
            other => other,
        }
    }

    /// Changes some dynamic configs of a broker and leaves the others (KIP-339).
    ///
    /// # Errors
    /// The broker's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    ///
    /// # Cancel safety
    /// As [`Admin::alter_topic_configs`].
    pub async fn alter_broker_configs(&self, node: NodeId, changes: &[(&str, ConfigChange)]) -> Result<(), Error> {
        let name = node.0.to_string();
        self.alter(Target::Node(node), RESOURCE_BROKER, &name, changes, &node.to_string()).await
    }

    async fn alter(
        &self,
        target: Target,
        kind: i8,
        name: &str,
        changes: &[(&str, ConfigChange)],
        subject: &str,
    ) -> Result<(), Error> {
        let mut retry = self.cluster.retry(format!("changing the configs of {subject}"), self.cluster.patience());
        // Asking for a change that is made already changes nothing.
        loop {
            let request = alteration(kind, name, changes);
            let outcome = match self.cluster.call(Call::to(target), |_| request).await {
                Err(error) => Err(error),
                Ok(reply) => match reply.body.responses.into_iter().next() {
                    None => Err(not_mentioned("IncrementalAlterConfigs", subject)),
                    Some(result) => {
                        checked("IncrementalAlterConfigs", subject, result.error_code, result.error_message)
                    }
                },
            };
            match outcome {
                Err(error) if error.retriable() => retry.pause(error).await?,
                other => return other.map_err(|error| self.cluster.with_user(error)),
            }
        }
    }

    async fn describe(
        &self,
        target: Target,
        resource: DescribeConfigsResource,
        subject: String,
    ) -> Result<BTreeMap<String, ConfigEntry>, Error> {
        let mut retry = self.cluster.retry(format!("describing the configs of {subject}"), self.cluster.patience());
        // A topic that was just created is unknown to some brokers for a moment.
        loop {
            match self.try_describe(target, resource.clone(), &subject).await {
                Err(error) if error.retriable() => retry.pause(error).await?,
                other => return other.map_err(|error| self.cluster.with_user(error)),
            }
        }
    }

    async fn try_describe(
        &self,
        target: Target,
        resource: DescribeConfigsResource,
        subject: &str,
    ) -> Result<BTreeMap<String, ConfigEntry>, Error> {
        let build = |_| DescribeConfigsRequest::default().with_resources(vec![resource]);
        let reply = self.cluster.call(Call::to(target), build).await?;
        let Some(result) = reply.body.results.into_iter().next() else {
            return Err(not_mentioned("DescribeConfigs", subject));
        };
        checked("DescribeConfigs", subject, result.error_code, result.error_message)?;
        Ok(result.configs.into_iter().map(entry).collect())
    }
}

fn not_mentioned(api: &str, subject: &str) -> Error {
    Error::Malformed { peer: subject.to_owned(), what: format!("{api} does not mention what was asked for") }
}

fn checked(api: &'static str, subject: &str, code: i16, message: Option<StrBytes>) -> Result<(), Error> {
    let message = message.map(|message| message.to_string());
    match code {
        codes::NONE => Ok(()),
        code => Err(Error::Broker(BrokerError { api, code, subject: subject.to_owned(), message, user: None })),
    }
}

fn alteration(kind: i8, name: &str, changes: &[(&str, ConfigChange)]) -> IncrementalAlterConfigsRequest {
    let changes = changes.iter().map(|(name, change)| {
        let (operation, value) = match change {
            ConfigChange::Set(value) => (OPERATION_SET, Some(StrBytes::from_string(value.clone()))),
            ConfigChange::Delete => (OPERATION_DELETE, None),
        };
        AlterableConfig::default()
            .with_name(StrBytes::from_string((*name).to_owned()))
            .with_config_operation(operation)
            .with_value(value)
    });
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_configs(changes.collect());
    IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
}

fn resource(kind: i8, name: &str, names: &[&str]) -> DescribeConfigsResource {
    let keys = names.iter().map(|name| StrBytes::from_string((*name).to_owned())).collect();
    DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_configuration_keys(if names.is_empty() { None } else { Some(keys) })
}

fn entry(config: DescribeConfigsResourceResult) -> (String, ConfigEntry) {
    let value = config.value.map(|value| value.to_string());
    (config.name.to_string(), ConfigEntry { value, is_default: config.config_source == SOURCE_DEFAULT })
}
