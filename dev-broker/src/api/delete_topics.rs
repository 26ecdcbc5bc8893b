//! DeleteTopics (key 20), versions 1 to 6: gone at once, with its data and its place in open transactions.
//!
//! Version 6 names topics by name or by id.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

use super::text;
use crate::broker::Broker;

const FIRST_VERSION_WITH_IDS: i16 = 6;

pub(super) fn serve(broker: &mut Broker, version: i16, request: &DeleteTopicsRequest) -> DeleteTopicsResponse {
    let responses = asked(version, request).iter().map(|topic| delete(broker, topic)).collect();
    DeleteTopicsResponse::default().with_responses(responses)
}

pub(super) fn refuse(version: i16, request: &DeleteTopicsRequest, code: ResponseError) -> DeleteTopicsResponse {
    let responses = asked(version, request).iter().map(|topic| failed(topic, code)).collect();
    DeleteTopicsResponse::default().with_responses(responses)
}

fn asked(version: i16, request: &DeleteTopicsRequest) -> Vec<DeleteTopicState> {
    if version >= FIRST_VERSION_WITH_IDS {
        return request.topics.clone();
    }
    request.topic_names.iter().map(|name| DeleteTopicState::default().with_name(Some(name.clone()))).collect()
}

fn delete(broker: &mut Broker, topic: &DeleteTopicState) -> DeletableTopicResult {
    let (name, unknown) = match &topic.name {
        Some(name) => (Some(name.clone()), ResponseError::UnknownTopicOrPartition),
        None => (broker.topics.name_of(topic.topic_id).cloned(), ResponseError::UnknownTopicId),
    };
    match name.and_then(|name| broker.delete_topic(&name).map(|id| (name, id))) {
        Some((name, id)) => DeletableTopicResult::default().with_name(Some(name)).with_topic_id(id),
        None => failed(topic, unknown),
    }
}

fn failed(topic: &DeleteTopicState, code: ResponseError) -> DeletableTopicResult {
    DeletableTopicResult::default()
        .with_name(topic.name.clone())
        .with_topic_id(topic.topic_id)
        .with_error_code(code.code())
        .with_error_message(Some(text(&code.to_string())))
}
