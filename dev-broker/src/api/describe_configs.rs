//! DescribeConfigs (key 32), versions 1 to 4: topics in full, and the broker settings that clients ask for.
//!
//! Simplifications: nothing is dynamic, so the broker's values are all static; no documentation strings. AlterConfigs
//! is left out.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse, TopicName};

use super::create_topics::{SOURCE_DEFAULT, SOURCE_TOPIC};
use super::{message_of, text};
use crate::broker::Broker;
use crate::refusal::Refusal;
use crate::topic_config::{ConfigType, TOPIC_CONFIGS};

const RESOURCE_TOPIC: i8 = 2;
const RESOURCE_BROKER: i8 = 4;
const SOURCE_STATIC_BROKER: i8 = 4;

/// One config before it is put into Kafka's words.
struct Described {
    name: &'static str,
    value: String,
    source: i8,
    kind: ConfigType,
}

pub(super) fn serve(broker: &Broker, request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
    let one = |resource: &DescribeConfigsResource| match describe(broker, resource) {
        Ok(configs) => {
            let wanted = |name: &str| match &resource.configuration_keys {
                None => true,
                Some(keys) => keys.iter().any(|key| key.as_str() == name),
            };
            let configs = configs
                .into_iter()
                .filter(|config| wanted(config.name))
                .map(|config| in_kafkas_words(&config, request.include_synonyms))
                .collect();
            result_of(resource).with_configs(configs)
        }
        Err(refusal) => failed(resource, &refusal),
    };
    DescribeConfigsResponse::default().with_results(request.resources.iter().map(one).collect())
}

pub(super) fn refuse(request: &DescribeConfigsRequest, code: ResponseError) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|resource| failed(resource, &code.into())).collect();
    DescribeConfigsResponse::default().with_results(results)
}

fn describe(broker: &Broker, resource: &DescribeConfigsResource) -> Result<Vec<Described>, Refusal> {
    match resource.resource_type {
        RESOURCE_TOPIC => {
            let name = TopicName(resource.resource_name.clone());
            let topic = broker.topics.topic(&name).ok_or(ResponseError::UnknownTopicOrPartition)?;
            let configs = TOPIC_CONFIGS.iter().map(|config| match topic.configs.get(config.name) {
                Some(value) => described(config.name, value.clone(), SOURCE_TOPIC, config.kind),
                None => described(config.name, config.default(&broker.settings), SOURCE_DEFAULT, config.kind),
            });
            Ok(configs.collect())
        }
        RESOURCE_BROKER if resource.resource_name.as_str() == broker.settings.node_id.to_string() => {
            Ok(broker_configs(broker))
        }
        // The defaults for all brokers: none is set.
        RESOURCE_BROKER if resource.resource_name.is_empty() => Ok(Vec::new()),
        RESOURCE_BROKER => {
            let name = resource.resource_name.as_str();
            let message = format!("there is only broker {}, not '{name}'", broker.settings.node_id);
            Err(Refusal::new(ResponseError::InvalidRequest, message))
        }
        other => {
            let message = format!("the dev broker describes topics and brokers, not resource type {other}");
            Err(Refusal::new(ResponseError::InvalidRequest, message))
        }
    }
}

fn described(name: &'static str, value: String, source: i8, kind: ConfigType) -> Described {
    Described { name, value, source, kind }
}

fn broker_configs(broker: &Broker) -> Vec<Described> {
    let settings = &broker.settings;
    let number = |name, value: String| described(name, value, SOURCE_STATIC_BROKER, ConfigType::Int);
    let millis = |name, value: std::time::Duration| number(name, value.as_millis().to_string());
    let fixed = |name, value: &str| described(name, value.to_owned(), SOURCE_DEFAULT, ConfigType::String);
    vec![
        millis("add.partitions.to.txn.retry.backoff.max.ms", settings.add_partitions_retry_max),
        millis("add.partitions.to.txn.retry.backoff.ms", settings.add_partitions_retry_backoff),
        described(
            "auto.create.topics.enable",
            settings.auto_create_topics.to_string(),
            SOURCE_STATIC_BROKER,
            ConfigType::Boolean,
        ),
        fixed("default.replication.factor", "1"),
        fixed("log.cleanup.policy", "delete"),
        number("message.max.bytes", settings.message_bytes_max.to_string()),
        fixed("min.insync.replicas", "1"),
        number("node.id", settings.node_id.to_string()),
        number("num.partitions", settings.default_partitions.to_string()),
        millis("producer.id.expiration.ms", settings.producer_id_expiration),
        millis("transaction.abort.timed.out.transaction.cleanup.interval.ms", settings.transaction_scan_interval),
        millis("transaction.max.timeout.ms", settings.transaction_timeout_max),
        millis("transactional.id.expiration.ms", settings.transactional_id_expiration),
    ]
}

fn in_kafkas_words(config: &Described, include_synonyms: bool) -> DescribeConfigsResourceResult {
    let value = text(&config.value);
    let synonym = DescribeConfigsSynonym::default()
        .with_name(text(config.name))
        .with_value(Some(value.clone()))
        .with_source(config.source);
    DescribeConfigsResourceResult::default()
        .with_name(text(config.name))
        .with_value(Some(value))
        .with_config_source(config.source)
        .with_config_type(config.kind as i8)
        .with_synonyms(if include_synonyms { vec![synonym] } else { Vec::new() })
}

fn result_of(resource: &DescribeConfigsResource) -> DescribeConfigsResult {
    DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
}

fn failed(resource: &DescribeConfigsResource, refusal: &Refusal) -> DescribeConfigsResult {
    result_of(resource).with_error_code(refusal.code.code()).with_error_message(message_of(refusal))
}
