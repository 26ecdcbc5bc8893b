//! Topics: creating, deleting, describing, and the errors of each.

use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::*;
use uuid::Uuid;

use super::{Teller, text};
use crate::transcript::code_name;

pub(super) fn tell(teller: &mut Teller) {
    creating(teller);
    describing(teller);
    configs(teller);
    deleting(teller);
}

fn topic(name: &str, partitions: i32, replicas: i16) -> CreatableTopic {
    CreatableTopic::default()
        .with_name(TopicName(text(name)))
        .with_num_partitions(partitions)
        .with_replication_factor(replicas)
}

fn create(teller: &mut Teller, step: &str, topics: Vec<CreatableTopic>, validate_only: bool) {
    let request =
        CreateTopicsRequest::default().with_topics(topics).with_timeout_ms(10_000).with_validate_only(validate_only);
    let answer: CreateTopicsResponse = teller.client.call(ApiKey::CreateTopics, 7, &request);
    for made in answer.topics {
        let told = match made.error_code {
            0 => format!("{} partitions, {} replicas", made.num_partitions, made.replication_factor),
            code => code_name(code),
        };
        teller.told.note(step, told);
    }
}

fn creating(teller: &mut Teller) {
    teller.told.story("topics are created or refused");
    create(teller, "one", vec![topic("made", 2, 1)], false);
    create(teller, "again", vec![topic("made", 2, 1)], false);
    create(teller, "defaults", vec![topic("made.by-default", -1, -1)], false);
    create(teller, "a name that differs in a dot", vec![topic("made_by-default", 1, 1)], false);
    create(teller, "only validated", vec![topic("checked", 3, 1)], true);
    create(teller, "validated, not made", vec![topic("checked", 3, 1)], true);
    create(teller, "no partitions", vec![topic("none", 0, 1)], false);
    create(teller, "negative partitions", vec![topic("none", -3, 1)], false);
    create(teller, "two replicas", vec![topic("none", 1, 2)], false);
    create(teller, "no replicas", vec![topic("none", 1, 0)], false);
    create(teller, "empty name", vec![topic("", 1, 1)], false);
    create(teller, "bad name", vec![topic("a b", 1, 1)], false);
    create(teller, "two dots", vec![topic("..", 1, 1)], false);
    create(teller, "long name", vec![topic(&"x".repeat(250), 1, 1)], false);
    create(teller, "twice in one request", vec![topic("twice", 1, 1), topic("twice", 1, 1)], false);
    let config = |name: &str, value: &str| {
        let config = CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)));
        vec![topic("none", 1, 1).with_configs(vec![config])]
    };
    create(teller, "unknown config", config("cleanup.polcy", "compact"), false);
    create(teller, "bad config", config("cleanup.policy", "compat"), false);
    create(teller, "config out of range", config("min.insync.replicas", "0"), false);
    create(teller, "config that is no number", config("retention.ms", "a week"), false);
    let assigned = |indexes: &[i32], brokers: &[i32]| {
        let brokers: Vec<BrokerId> = brokers.iter().map(|id| BrokerId(*id)).collect();
        let one = |index: &i32| {
            CreatableReplicaAssignment::default().with_partition_index(*index).with_broker_ids(brokers.clone())
        };
        vec![topic("assigned", -1, -1).with_assignments(indexes.iter().map(one).collect())]
    };
    create(teller, "assigned with a hole", assigned(&[0, 2], &[1]), false);
    create(teller, "assigned to nobody", assigned(&[0], &[7]), false);
    create(teller, "assigned", assigned(&[0, 1], &[1]), false);
}

fn metadata(teller: &mut Teller, step: &str, name: Option<&str>, id: Uuid) {
    let topic = MetadataRequestTopic::default().with_name(name.map(|name| TopicName(text(name)))).with_topic_id(id);
    let request = MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false);
    let answer: MetadataResponse = teller.client.call(ApiKey::Metadata, 12, &request);
    let topic = &answer.topics[0];
    let told = match topic.error_code {
        0 => {
            format!("{:?} with {} partitions", topic.name.as_ref().map(|name| name.to_string()), topic.partitions.len())
        }
        code => format!("{} for name {:?}", code_name(code), topic.name.as_ref().map(|name| name.to_string())),
    };
    teller.told.note(step, told);
}

fn describing(teller: &mut Teller) {
    teller.told.story("metadata");
    let id = teller.topic("described", 3, &[]);
    metadata(teller, "by name", Some("described"), Uuid::nil());
    metadata(teller, "by id", None, id);
    metadata(teller, "unknown name", Some("nowhere"), Uuid::nil());
    metadata(teller, "unknown id", None, Uuid::from_u128(0x1234));
    metadata(teller, "bad name", Some("a b"), Uuid::nil());
}

fn configs(teller: &mut Teller) {
    teller.told.story("configs are described");
    teller.topic("configured", 1, &[("cleanup.policy", "compact")]);
    for (step, kind, name, keys) in [
        ("topic", 2, "configured", vec!["cleanup.policy", "max.message.bytes", "retention.ms"]),
        ("unknown topic", 2, "nowhere", vec!["cleanup.policy"]),
        ("broker", 4, "1", vec!["transaction.max.timeout.ms", "message.max.bytes"]),
        ("another broker", 4, "9", vec!["message.max.bytes"]),
    ] {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configuration_keys(Some(keys.into_iter().map(text).collect()));
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let answer: DescribeConfigsResponse = teller.client.call(ApiKey::DescribeConfigs, 4, &request);
        let result = &answer.results[0];
        teller.told.code(step, result.error_code);
        let mut configs: Vec<String> = result
            .configs
            .iter()
            .map(|config| {
                let value = config.value.as_ref().map_or("null", |value| value.as_str());
                format!("{} = {value}, type {}", config.name.as_str(), config.config_type)
            })
            .collect();
        configs.sort();
        for config in configs {
            teller.told.note(step, config);
        }
    }
}

fn deleting(teller: &mut Teller) {
    teller.told.story("topics are deleted");
    let id = teller.topic("doomed", 1, &[]);
    let by_name = |name: &str| DeleteTopicState::default().with_name(Some(TopicName(text(name))));
    let by_id = |id: Uuid| DeleteTopicState::default().with_name(None).with_topic_id(id);
    for (step, topic) in [
        ("unknown name", by_name("nowhere")),
        ("unknown id", by_id(Uuid::from_u128(0x1234))),
        ("by id", by_id(id)),
        ("again", by_name("doomed")),
    ] {
        let request = DeleteTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let answer: DeleteTopicsResponse = teller.client.call(ApiKey::DeleteTopics, 6, &request);
        teller.told.code(step, answer.responses[0].error_code);
    }
}
