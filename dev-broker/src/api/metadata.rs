//! Metadata (key 3), versions 0 to 13: one broker that leads everything.
//!
//! Topics are asked for by name or, from version 10, by id. With `auto.create.topics.enable` an unknown name is
//! created and answered at once (Kafka first answers LEADER_NOT_AVAILABLE). Simplifications: no racks, no authorized
//! operations, no REBOOTSTRAP_REQUIRED.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};

use super::text;
use crate::broker::Broker;
use crate::topics::{Topic, check_name};

/// Until then a name may not be null, even beside an id.
const FIRST_VERSION_WITHOUT_NAMES: i16 = 12;

pub(super) fn serve(broker: &mut Broker, version: i16, request: &MetadataRequest) -> MetadataResponse {
    let create = broker.settings.auto_create_topics && (version < 4 || request.allow_auto_topic_creation);
    let topics = match &request.topics {
        None => all_topics(broker),
        // Version 0 has no null: an empty list asks for all.
        Some(topics) if topics.is_empty() && version == 0 => all_topics(broker),
        Some(topics) => topics.iter().map(|asked| one_topic(broker, version, asked, create)).collect(),
    };
    let settings = &broker.settings;
    let node = MetadataResponseBroker::default()
        .with_node_id(BrokerId(settings.node_id))
        .with_host(text(&settings.advertised_host))
        .with_port(i32::from(settings.advertised_port));
    MetadataResponse::default()
        .with_brokers(vec![node])
        .with_cluster_id(Some(text(&settings.cluster_id)))
        .with_controller_id(BrokerId(settings.node_id))
        .with_topics(topics)
}

pub(super) fn refuse(version: i16, request: &MetadataRequest, code: ResponseError) -> MetadataResponse {
    let topics = request.topics.iter().flatten().map(|asked| unknown(version, asked, code)).collect();
    MetadataResponse::default().with_topics(topics).with_error_code(code.code())
}

fn all_topics(broker: &Broker) -> Vec<MetadataResponseTopic> {
    broker.topics.iter().map(|(name, topic)| known(broker, name, topic)).collect()
}

fn one_topic(broker: &mut Broker, version: i16, asked: &MetadataRequestTopic, create: bool) -> MetadataResponseTopic {
    let name = match &asked.name {
        Some(name) => name.clone(),
        None => match broker.topics.name_of(asked.topic_id) {
            Some(name) => name.clone(),
            None => return unknown(version, asked, ResponseError::UnknownTopicId),
        },
    };
    if let Err(refusal) = check_name(name.as_str()) {
        return unknown(version, asked, refusal.code);
    }
    if create && broker.topics.topic(&name).is_none() {
        let partitions = usize::try_from(broker.settings.default_partitions).unwrap_or(1);
        if let Err(refusal) = broker.topics.create(&broker.settings, &name, partitions, BTreeMap::new()) {
            return unknown(version, asked, refusal.code);
        }
    }
    match broker.topics.topic(&name) {
        Some(topic) => known(broker, &name, topic),
        None => unknown(version, asked, ResponseError::UnknownTopicOrPartition),
    }
}

fn unknown(version: i16, asked: &MetadataRequestTopic, code: ResponseError) -> MetadataResponseTopic {
    let name = match &asked.name {
        None if version < FIRST_VERSION_WITHOUT_NAMES => Some(TopicName::default()),
        name => name.clone(),
    };
    MetadataResponseTopic::default().with_error_code(code.code()).with_name(name).with_topic_id(asked.topic_id)
}

fn known(broker: &Broker, name: &TopicName, topic: &Topic) -> MetadataResponseTopic {
    let node = BrokerId(broker.settings.node_id);
    let partitions = topic
        .partitions
        .iter()
        .zip(0..)
        .map(|(partition, index)| {
            MetadataResponsePartition::default()
                .with_partition_index(index)
                .with_leader_id(node)
                .with_leader_epoch(partition.log.leader_epoch())
                .with_replica_nodes(vec![node])
                .with_isr_nodes(vec![node])
        })
        .collect();
    MetadataResponseTopic::default().with_name(Some(name.clone())).with_topic_id(topic.id).with_partitions(partitions)
}
