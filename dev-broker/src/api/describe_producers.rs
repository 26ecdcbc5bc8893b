//! DescribeProducers (key 61), version 0: what each partition knows of its producers (KIP-664).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse, ProducerId, TopicName};

use super::text;
use crate::broker::Broker;
use crate::producers::ProducerEntry;

pub(super) fn serve(broker: &Broker, request: &DescribeProducersRequest) -> DescribeProducersResponse {
    answer(request, |topic, index| match broker.topics.partition(topic, index) {
        Some(partition) => {
            let producers = partition.producers.by_id();
            Ok(producers.into_iter().map(|(producer_id, entry)| describe(producer_id, entry)).collect())
        }
        None => Err(ResponseError::UnknownTopicOrPartition),
    })
}

pub(super) fn refuse(request: &DescribeProducersRequest, code: ResponseError) -> DescribeProducersResponse {
    answer(request, |_, _| Err(code))
}

fn describe(producer_id: i64, entry: &ProducerEntry) -> ProducerState {
    ProducerState::default()
        .with_producer_id(ProducerId(producer_id))
        .with_producer_epoch(i32::from(entry.epoch))
        .with_last_sequence(entry.last_sequence())
        .with_last_timestamp(entry.last_timestamp.millis())
        .with_coordinator_epoch(entry.coordinator_epoch)
        .with_current_txn_start_offset(entry.open_since.unwrap_or(-1))
}

fn answer(
    request: &DescribeProducersRequest,
    describe: impl Fn(&TopicName, i32) -> Result<Vec<ProducerState>, ResponseError>,
) -> DescribeProducersResponse {
    let one = |topic: &TopicName, index: i32| {
        let answer = PartitionResponse::default().with_partition_index(index);
        match describe(topic, index) {
            Ok(producers) => answer.with_active_producers(producers),
            Err(code) => answer.with_error_code(code.code()).with_error_message(Some(text(&code.to_string()))),
        }
    };
    let topics = request
        .topics
        .iter()
        .map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|index| one(&topic.name, *index)).collect();
            TopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions)
        })
        .collect();
    DescribeProducersResponse::default().with_topics(topics)
}
