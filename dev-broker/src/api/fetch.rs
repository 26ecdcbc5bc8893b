//! Fetch (key 1), versions 4 to 18: whole batches, long poll, and only what is decided for readers of committed data.
//!
//! A Fetch waits until `min_bytes` can be read, an error is to be told, or `max_wait_ms` is over; undecided bytes do
//! not count for a reader of committed data. Simplifications: no sessions (KIP-227: every answer says session id 0,
//! which a client takes as "none was made", and one that names a session gets FETCH_SESSION_ID_NOT_FOUND), no
//! divergence detection, no rack-aware replicas.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::{FetchRequest, FetchResponse, ProducerId, TopicName};

use bytes::Bytes;

use crate::broker::Broker;
use crate::log::ReadLimit;
use crate::partition::{Isolation, Partition};
use crate::transactions::state::TopicPartition;

/// From here on topics are named by id (KIP-516).
const FIRST_VERSION_WITH_IDS: i16 = 13;

/// Is the answer worth sending yet?
pub(crate) fn is_ready(broker: &Broker, version: i16, request: &FetchRequest) -> bool {
    if request.session_id != 0 {
        return true;
    }
    let Ok(min_bytes) = usize::try_from(request.min_bytes) else { return true };
    let isolation = Isolation::from_wire(request.isolation_level);
    let mut bytes = 0;
    for topic in &request.topics {
        for asked in &topic.partitions {
            match locate(broker, version, topic, asked, isolation) {
                Err(_) => return true,
                Ok(partition) => {
                    let end = partition.readable_end(isolation);
                    bytes += partition.log.readable_bytes(asked.fetch_offset, end, min_bytes);
                }
            }
        }
    }
    bytes >= min_bytes
}

/// The answer as things stand.
pub(crate) fn answer(broker: &Broker, version: i16, request: &FetchRequest) -> FetchResponse {
    if request.session_id != 0 {
        return refuse(ResponseError::FetchSessionIdNotFound);
    }
    let isolation = Isolation::from_wire(request.isolation_level);
    let mut bytes_left = usize::try_from(request.max_bytes).unwrap_or(0);
    let mut is_first = true;
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let data = PartitionData::default().with_partition_index(asked.partition);
            partitions.push(match locate(broker, version, topic, asked, isolation) {
                Err(code) => failed(data, code),
                Ok(partition) => {
                    let partition_max = usize::try_from(asked.partition_max_bytes).unwrap_or(0);
                    let limit = ReadLimit { bytes_max: partition_max.min(bytes_left), at_least_one: is_first };
                    let data = read(data, partition, asked.fetch_offset, isolation, limit);
                    let bytes = data.records.as_ref().map_or(0, Bytes::len);
                    is_first &= bytes == 0;
                    bytes_left = bytes_left.saturating_sub(bytes);
                    data
                }
            });
        }
        responses.push(
            FetchableTopicResponse::default()
                .with_topic(topic.topic.clone())
                .with_topic_id(topic.topic_id)
                .with_partitions(partitions),
        );
    }
    FetchResponse::default().with_responses(responses)
}

pub(super) fn refuse(code: ResponseError) -> FetchResponse {
    FetchResponse::default().with_error_code(code.code())
}

/// The partitions whose change may make a waiting Fetch ready.
pub(crate) fn watched(broker: &Broker, version: i16, request: &FetchRequest) -> Vec<TopicPartition> {
    let of_topic = |topic: &FetchTopic| -> Vec<TopicPartition> {
        let Ok(name) = name_of(broker, version, topic) else { return Vec::new() };
        let at = |asked: &FetchPartition| TopicPartition { topic: name.clone(), partition: asked.partition };
        topic.partitions.iter().map(at).collect()
    };
    request.topics.iter().flat_map(of_topic).collect()
}

/// Fenced when the client knows a newer leader than this one, unknown when it knows an older one (KIP-320).
pub(super) fn check_leader_epoch(asked: i32, current: i32) -> Result<(), ResponseError> {
    match asked {
        // "I do not know."
        -1 => Ok(()),
        asked if asked < current => Err(ResponseError::FencedLeaderEpoch),
        asked if asked > current => Err(ResponseError::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

fn name_of(broker: &Broker, version: i16, topic: &FetchTopic) -> Result<TopicName, ResponseError> {
    if version < FIRST_VERSION_WITH_IDS {
        return Ok(topic.topic.clone());
    }
    broker.topics.name_of(topic.topic_id).cloned().ok_or(ResponseError::UnknownTopicId)
}

fn locate<'a>(
    broker: &'a Broker,
    version: i16,
    topic: &FetchTopic,
    asked: &FetchPartition,
    isolation: Isolation,
) -> Result<&'a Partition, ResponseError> {
    let name = name_of(broker, version, topic)?;
    let partition = broker.topics.partition(&name, asked.partition).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let log = &partition.log;
    check_leader_epoch(asked.current_leader_epoch, log.leader_epoch())?;
    // A reader of committed data may already stand beyond the last stable offset: it waits there.
    debug_assert!(partition.readable_end(isolation) <= log.end_offset());
    match (log.start_offset()..=log.end_offset()).contains(&asked.fetch_offset) {
        true => Ok(partition),
        false => Err(ResponseError::OffsetOutOfRange),
    }
}

fn read(
    data: PartitionData,
    partition: &Partition,
    offset: i64,
    isolation: Isolation,
    limit: ReadLimit,
) -> PartitionData {
    let (records, aborted) = partition.read(offset, isolation, limit);
    let aborted = aborted.map(|transactions| {
        let one = |txn: &crate::producers::AbortedTransaction| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(txn.producer_id))
                .with_first_offset(txn.first_offset)
        };
        transactions.iter().map(one).collect()
    });
    data.with_high_watermark(partition.log.end_offset())
        .with_last_stable_offset(partition.last_stable_offset())
        .with_log_start_offset(partition.log.start_offset())
        .with_aborted_transactions(aborted)
        .with_records(Some(records))
}

fn failed(data: PartitionData, code: ResponseError) -> PartitionData {
    data.with_error_code(code.code())
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_records(Some(Bytes::new()))
}
