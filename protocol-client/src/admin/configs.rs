//! Reading configs of topics and brokers. DescribeConfigs 1-4.

use std::collections::BTreeMap;

use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use kafka_protocol::protocol::StrBytes;

use super::Admin;
use crate::cluster::{Call, NodeId, Target};
use crate::error::{BrokerError, Error};
use crate::wire::error_code::codes;

const RESOURCE_TOPIC: i8 = 2;
const RESOURCE_BROKER: i8 = 4;
/// The source of a value that nobody set.
const SOURCE_DEFAULT: i8 = 5;

/// One config value in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The value; `None` when it is sensitive or not set.
    pub value: Option<String>,
    /// Whether nobody set it anywhere.
    pub is_default: bool,
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
                other => return other,
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
            return Err(Error::Malformed {
                peer: subject.to_owned(),
                what: "DescribeConfigs does not mention what was asked for".to_owned(),
            });
        };
        if result.error_code != codes::NONE {
            return Err(Error::Broker(BrokerError {
                api: "DescribeConfigs",
                code: result.error_code,
                subject: subject.to_owned(),
                message: result.error_message.map(|message| message.to_string()),
            }));
        }
        Ok(result.configs.into_iter().map(entry).collect())
    }
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
