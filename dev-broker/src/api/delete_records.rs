//! DeleteRecords (key 21), versions 0 to 2: the log's start moves, and whole batches before it are freed.
//!
//! Offset -1 means the high watermark. What producers are known for stays, as on a real broker since KIP-360.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use crate::broker::Broker;
use crate::transactions::state::TopicPartition;

const HIGH_WATERMARK: i64 = -1;

pub(super) fn serve(broker: &mut Broker, request: &DeleteRecordsRequest) -> DeleteRecordsResponse {
    answer(request, |at, offset| delete(broker, at, offset))
}

pub(super) fn refuse(request: &DeleteRecordsRequest, code: ResponseError) -> DeleteRecordsResponse {
    answer(request, |_, _| Err(code))
}

fn delete(broker: &mut Broker, at: &TopicPartition, offset: i64) -> Result<i64, ResponseError> {
    let partition = broker.topics.partition_mut(at).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let end = partition.log.end_offset();
    let offset = if offset == HIGH_WATERMARK { end } else { offset };
    if offset < 0 || offset > end {
        return Err(ResponseError::OffsetOutOfRange);
    }
    let before = partition.log.bytes();
    partition.delete_before(offset);
    let (freed, start) = (before - partition.log.bytes(), partition.log.start_offset());
    broker.log_bytes = broker.log_bytes.saturating_sub(freed);
    broker.changed.push(at.clone());
    Ok(start)
}

fn answer(
    request: &DeleteRecordsRequest,
    mut delete: impl FnMut(&TopicPartition, i64) -> Result<i64, ResponseError>,
) -> DeleteRecordsResponse {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let at = TopicPartition { topic: topic.name.clone(), partition: asked.partition_index };
            let result = DeleteRecordsPartitionResult::default().with_partition_index(asked.partition_index);
            partitions.push(match delete(&at, asked.offset) {
                Ok(low_watermark) => result.with_low_watermark(low_watermark),
                Err(code) => result.with_low_watermark(-1).with_error_code(code.code()),
            });
        }
        topics.push(DeleteRecordsTopicResult::default().with_name(topic.name.clone()).with_partitions(partitions));
    }
    DeleteRecordsResponse::default().with_topics(topics)
}
