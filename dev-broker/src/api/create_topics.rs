//! CreateTopics (key 19), versions 2 to 7: topics on one broker, there at once.
//!
//! The checks are Kafka's: names, a name that differs from another only in '.' and '_', partitions, replication
//! factor, assignments, configs, the same name twice in a request. Simplification: nothing is asynchronous, so the
//! timeout means nothing.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use uuid::Uuid;

use super::{message_of, text};
use crate::broker::Broker;
use crate::refusal::Refusal;
use crate::topic_config::TOPIC_CONFIGS;
use crate::topics::check_name;

/// The only broker holds the only replica.
const REPLICAS: i16 = 1;
const DEFAULTED: i32 = -1;
/// DescribeConfigs' numbers for where a value comes from.
pub(super) const SOURCE_TOPIC: i8 = 1;
pub(super) const SOURCE_DEFAULT: i8 = 5;

pub(super) fn serve(broker: &mut Broker, request: &CreateTopicsRequest) -> CreateTopicsResponse {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<&TopicName> =
        request.topics.iter().map(|topic| &topic.name).filter(|name| !seen.insert(*name)).collect();
    let mut answered = BTreeSet::new();
    let topics = request
        .topics
        .iter()
        .filter(|topic| answered.insert(&topic.name))
        .map(|topic| {
            let created = match twice.contains(&topic.name) {
                true => Err(Refusal::new(ResponseError::InvalidRequest, "the request names this topic twice")),
                false => create(broker, topic, request.validate_only),
            };
            match created {
                Ok(partitions) => made(broker, topic, partitions),
                Err(refusal) => not_made(topic, &refusal),
            }
        })
        .collect();
    CreateTopicsResponse::default().with_topics(topics)
}

pub(super) fn refuse(request: &CreateTopicsRequest, code: ResponseError) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|topic| not_made(topic, &code.into())).collect();
    CreateTopicsResponse::default().with_topics(topics)
}

fn create(broker: &mut Broker, topic: &CreatableTopic, validate_only: bool) -> Result<usize, Refusal> {
    check_name(topic.name.as_str())?;
    check_collision(broker, topic.name.as_str())?;
    let partitions = partition_count(broker, topic)?;
    let mut configs = BTreeMap::new();
    for config in &topic.configs {
        // A null value means the default.
        if let Some(value) = &config.value {
            configs.insert(config.name.as_str().to_owned(), value.as_str().to_owned());
        }
    }
    if validate_only {
        broker.topics.check_create(&broker.settings, &topic.name, partitions, &configs)?;
    } else {
        broker.topics.create(&broker.settings, &topic.name, partitions, configs)?;
    }
    Ok(partitions)
}

/// Metric names make no difference between '.' and '_', so Kafka allows only one of two such names.
fn check_collision(broker: &Broker, name: &str) -> Result<(), Refusal> {
    let folded = name.replace('.', "_");
    let collides = |other: &TopicName| other.as_str() != name && other.as_str().replace('.', "_") == folded;
    match broker.topics.iter().map(|(other, _)| other).find(|other| collides(other)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("topic '{name}' collides with existing topic: {}", other.as_str());
            Err(Refusal::new(ResponseError::InvalidTopicException, message))
        }
    }
}

fn partition_count(broker: &Broker, topic: &CreatableTopic) -> Result<usize, Refusal> {
    if !topic.assignments.is_empty() {
        return assigned_partitions(broker, topic);
    }
    if topic.replication_factor != REPLICAS && i32::from(topic.replication_factor) != DEFAULTED {
        let message = format!("replication factor {} needs more than the one dev broker", topic.replication_factor);
        return Err(Refusal::new(ResponseError::InvalidReplicationFactor, message));
    }
    let count =
        if topic.num_partitions == DEFAULTED { broker.settings.default_partitions } else { topic.num_partitions };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Refusal::new(ResponseError::InvalidPartitions, "number of partitions was set to an invalid value")),
    }
}

fn assigned_partitions(broker: &Broker, topic: &CreatableTopic) -> Result<usize, Refusal> {
    let refuse = |message: &str| Err(Refusal::new(ResponseError::InvalidReplicaAssignment, message));
    if topic.num_partitions != DEFAULTED || i32::from(topic.replication_factor) != DEFAULTED {
        let message = "partitions and replication factor must be -1 beside a manual assignment";
        return Err(Refusal::new(ResponseError::InvalidRequest, message));
    }
    let indexes: BTreeSet<i32> = topic.assignments.iter().map(|assignment| assignment.partition_index).collect();
    let count = topic.assignments.len();
    let is_dense = indexes.len() == count && indexes.iter().zip(0..).all(|(index, expected)| *index == expected);
    if !is_dense {
        return refuse("partitions must be consecutive and start with 0");
    }
    let node = broker.settings.node_id;
    let on_this_node = |ids: &[kafka_protocol::messages::BrokerId]| ids.len() == 1 && ids[0].0 == node;
    match topic.assignments.iter().all(|assignment| on_this_node(&assignment.broker_ids)) {
        true => Ok(count),
        false => refuse("each partition must be assigned to the one dev broker"),
    }
}

fn made(broker: &Broker, topic: &CreatableTopic, partitions: usize) -> CreatableTopicResult {
    let given = |name: &str| topic.configs.iter().rev().find(|config| config.name.as_str() == name)?.value.clone();
    let configs = TOPIC_CONFIGS
        .iter()
        .map(|config| {
            let value = given(config.name);
            let source = if value.is_some() { SOURCE_TOPIC } else { SOURCE_DEFAULT };
            CreatableTopicConfigs::default()
                .with_name(text(config.name))
                .with_value(Some(value.unwrap_or_else(|| text(&config.default(&broker.settings)))))
                .with_config_source(source)
        })
        .collect();
    let topic_id = broker.topics.topic(&topic.name).map_or(Uuid::nil(), |made| made.id);
    CreatableTopicResult::default()
        .with_name(topic.name.clone())
        .with_topic_id(topic_id)
        .with_num_partitions(i32::try_from(partitions).unwrap_or(i32::MAX))
        .with_replication_factor(REPLICAS)
        .with_configs(Some(configs))
}

fn not_made(topic: &CreatableTopic, refusal: &Refusal) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(topic.name.clone())
        .with_error_code(refusal.code.code())
        .with_error_message(message_of(refusal))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
}
