//! ListOffsets (key 2), versions 1 to 10: earliest, latest, by timestamp, and the newest record.
//!
//! The latest offset of a reader of committed data is the last stable one (KIP-98). Special timestamps: -1 latest, -2
//! earliest, -3 newest record (KIP-734), -4 earliest on local disk (the same here), -5 end of tiered storage (none
//! here: offset -1).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse, TopicName};

use crate::broker::Broker;
use crate::log::FoundOffset;
use crate::partition::Isolation;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const NEWEST: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const NONE_FOUND: FoundOffset = FoundOffset { offset: -1, timestamp_ms: -1 };

pub(super) fn serve(broker: &Broker, request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let isolation = Isolation::from_wire(request.isolation_level);
    answer(request, |topic, asked| find(broker, isolation, topic, asked))
}

pub(super) fn refuse(request: &ListOffsetsRequest, code: ResponseError) -> ListOffsetsResponse {
    answer(request, |_, _| Err(code))
}

fn answer(
    request: &ListOffsetsRequest,
    find: impl Fn(&TopicName, &ListOffsetsPartition) -> Result<(FoundOffset, i32), ResponseError>,
) -> ListOffsetsResponse {
    let one = |topic: &TopicName, asked: &ListOffsetsPartition| {
        let answer = ListOffsetsPartitionResponse::default().with_partition_index(asked.partition_index);
        match find(topic, asked) {
            Ok((found, leader_epoch)) => answer
                .with_offset(found.offset)
                .with_timestamp(found.timestamp_ms)
                .with_leader_epoch(if found.offset < 0 { -1 } else { leader_epoch }),
            Err(code) => answer.with_error_code(code.code()).with_offset(-1).with_timestamp(-1),
        }
    };
    let topics = request
        .topics
        .iter()
        .map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| one(&topic.name, asked)).collect();
            ListOffsetsTopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions)
        })
        .collect();
    ListOffsetsResponse::default().with_topics(topics)
}

fn find(
    broker: &Broker,
    isolation: Isolation,
    topic: &TopicName,
    asked: &ListOffsetsPartition,
) -> Result<(FoundOffset, i32), ResponseError> {
    let partition =
        broker.topics.partition(topic, asked.partition_index).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let log = &partition.log;
    super::fetch::check_leader_epoch(asked.current_leader_epoch, log.leader_epoch())?;
    let end = partition.readable_end(isolation);
    let at = |offset| FoundOffset { offset, timestamp_ms: -1 };
    let found = match asked.timestamp {
        LATEST => at(end),
        EARLIEST | EARLIEST_LOCAL => at(log.start_offset()),
        NEWEST => log.max_timestamp(end).unwrap_or(NONE_FOUND),
        LATEST_TIERED => NONE_FOUND,
        timestamp if timestamp < 0 => return Err(ResponseError::UnsupportedVersion),
        timestamp => log.first_at_or_after(timestamp, end).unwrap_or(NONE_FOUND),
    };
    Ok((found, log.leader_epoch()))
}
