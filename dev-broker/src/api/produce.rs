//! Produce (key 0), versions 3 to 13: one batch for each partition, checked, admitted, appended.
//!
//! Transactional batches must be in the open transaction: up to version 11 that is verified with the coordinator
//! (KIP-890 part 1), from version 12 on the partition is added (part 2), and while the markers of the last
//! transaction are being written the request waits as a real broker lets it wait. Version 13 names topics by id. Not
//! Kafka's: a transactional batch without acks=all is refused. Simplifications: no look at single records, no
//! throttling, one replica.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use oncewire_client::batch::Batch;

use super::message_of;
use crate::broker::Broker;
use crate::partition::Appended;
use crate::produced;
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::topic_config::TopicRules;
use crate::transactions::TxnClaim;
use crate::transactions::state::{ProducerIdentity, TopicPartition};

const FIRST_VERSION_WITH_IDS: i16 = 13;
/// Implicit adding of partitions (KIP-890 part 2).
const FIRST_IMPLICIT_VERSION: i16 = 12;
/// TRANSACTION_ABORTABLE is known from here on (KIP-890 part 1).
const FIRST_ABORTABLE_VERSION: i16 = 11;
/// zstd may be sent from here on (KIP-110).
const FIRST_ZSTD_VERSION: i16 = 7;
const ACKS_ALL: i16 = -1;
const ACKS_NONE: i16 = 0;

/// What became of a Produce.
#[derive(Debug)]
pub(crate) enum Produced {
    Answer(ProduceResponse),
    /// acks=0 and all was well: the client expects no answer.
    NoAnswer,
    /// acks=0 and something failed: closing is the only way to say so.
    Close,
    /// The last transaction's markers are being written: try again.
    MarkersPending,
}

/// A partition's share of the request, as far as it passed.
type Share = Result<(TopicPartition, Batch), Refusal>;

/// Tries a Produce; `is_last_try` answers CONCURRENT_TRANSACTIONS where an earlier try asks to wait.
pub(crate) fn attempt(
    broker: &mut Broker,
    now: Timestamp,
    version: i16,
    request: &ProduceRequest,
    is_last_try: bool,
) -> Produced {
    let mut shares: Vec<Share> = Vec::new();
    for topic in &request.topic_data {
        shares.extend(topic.partition_data.iter().map(|data| open(broker, version, request, topic, data)));
    }
    if let Err(code) = join_transaction(broker, now, version, request, &shares) {
        if code == ResponseError::ConcurrentTransactions && version >= FIRST_IMPLICIT_VERSION && !is_last_try {
            return Produced::MarkersPending;
        }
        let refusal = Refusal::from(as_told(version, code));
        for share in &mut shares {
            if share.as_ref().is_ok_and(|(_, batch)| batch.is_transactional()) {
                *share = Err(refusal.clone());
            }
        }
    }
    let appended: Vec<Result<Appended, Refusal>> =
        shares.into_iter().map(|share| share.and_then(|(at, batch)| append(broker, now, &at, &batch))).collect();
    if request.acks == ACKS_NONE {
        return if appended.iter().all(Result::is_ok) { Produced::NoAnswer } else { Produced::Close };
    }
    Produced::Answer(answer(broker, request, appended))
}

/// Gives every partition this refusal.
pub(super) fn refuse(request: &ProduceRequest, refusal: &Refusal) -> ProduceResponse {
    respond(request, |_, data| failed(data, refusal))
}

/// Finds the partition and the batch for it.
fn open(
    broker: &Broker,
    version: i16,
    request: &ProduceRequest,
    topic: &TopicProduceData,
    data: &PartitionProduceData,
) -> Share {
    if !matches!(request.acks, ACKS_ALL | ACKS_NONE | 1) {
        return Err(ResponseError::InvalidRequiredAcks.into());
    }
    let name = match version >= FIRST_VERSION_WITH_IDS {
        true => broker.topics.name_of(topic.topic_id).ok_or(ResponseError::UnknownTopicId)?,
        false => &topic.name,
    };
    let (name, known) = broker.topics.named(name).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let exists = usize::try_from(data.index).is_ok_and(|index| index < known.partitions.len());
    if !exists {
        return Err(ResponseError::UnknownTopicOrPartition.into());
    }
    let batch = produced::open(&data.records.clone().unwrap_or_default())?;
    if version < FIRST_ZSTD_VERSION && produced::is_zstd(&batch) {
        return Err(ResponseError::UnsupportedCompressionType.into());
    }
    Ok((TopicPartition { topic: name.clone(), partition: data.index }, batch))
}

/// Makes sure that every transactional batch belongs to the open transaction of the request's transactional id.
fn join_transaction(
    broker: &mut Broker,
    now: Timestamp,
    version: i16,
    request: &ProduceRequest,
    shares: &[Share],
) -> Result<(), ResponseError> {
    let sound = || shares.iter().flatten().filter(|(_, batch)| batch.is_transactional());
    let Some((_, first)) = sound().next() else { return Ok(()) };
    let Some(transactional_id) = &request.transactional_id else {
        return Err(ResponseError::TransactionalIdAuthorizationFailed);
    };
    if request.acks != ACKS_ALL {
        return Err(ResponseError::InvalidRequiredAcks);
    }
    let producer = ProducerIdentity { id: first.producer_id, epoch: first.producer_epoch };
    if sound().any(|(_, batch)| batch.producer_id != producer.id || batch.producer_epoch != producer.epoch) {
        return Err(ResponseError::InvalidProducerIdMapping);
    }
    let is_in = |at: &TopicPartition| {
        let partition = broker.topics.partition(&at.topic, at.partition);
        partition.is_some_and(|partition| partition.producers.is_in_transaction(producer.id, producer.epoch))
    };
    let joining: Vec<TopicPartition> = sound().map(|(at, _)| at).filter(|at| !is_in(at)).cloned().collect();
    if joining.is_empty() {
        return Ok(());
    }
    let claim = TxnClaim { transactional_id, producer };
    if version >= FIRST_IMPLICIT_VERSION {
        return broker.coordinator.add_partitions(now, claim, joining);
    }
    joining.iter().try_for_each(|at| broker.coordinator.verify_partition(claim, at))
}

/// How the coordinator's word reaches a producer, which differs by the version's vocabulary.
fn as_told(version: i16, code: ResponseError) -> ResponseError {
    match code {
        ResponseError::ProducerFenced => ResponseError::InvalidProducerEpoch,
        ResponseError::TransactionAbortable if version < FIRST_ABORTABLE_VERSION => ResponseError::InvalidTxnState,
        ResponseError::ConcurrentTransactions if version < FIRST_IMPLICIT_VERSION => ResponseError::NotEnoughReplicas,
        other => other,
    }
}

/// Checks a batch against its topic's rules.
fn check(now: Timestamp, rules: &TopicRules, batch: &Batch) -> Result<(), Refusal> {
    produced::check(batch)?;
    let (size, limit) = (batch.bytes().len(), rules.message_bytes_max);
    if size > limit {
        let message = format!("a record batch of {size} bytes exceeds max.message.bytes of {limit}");
        return Err(Refusal::new(ResponseError::MessageTooLarge, message));
    }
    let (timestamp, limit) = (batch.max_timestamp_ms, rules.timestamp_after_max_ms);
    if !rules.log_append_time && timestamp.saturating_sub(now.millis()) > limit {
        let message = format!("timestamp {timestamp} is more than message.timestamp.after.max.ms={limit} ahead");
        return Err(Refusal::new(ResponseError::InvalidTimestamp, message));
    }
    if rules.is_compacted {
        produced::check_keys(batch)?;
    }
    Ok(())
}

fn append(broker: &mut Broker, now: Timestamp, at: &TopicPartition, batch: &Batch) -> Result<Appended, Refusal> {
    let rules = &broker.topics.topic(&at.topic).ok_or(ResponseError::UnknownTopicOrPartition)?.rules;
    check(now, rules, batch)?;
    let log_append_time = rules.log_append_time;
    let limit = broker.settings.log_bytes_max;
    let size = u64::try_from(batch.bytes().len()).unwrap_or(u64::MAX);
    if broker.log_bytes.saturating_add(size) > limit {
        let message = format!(
            "the dev broker keeps everything in memory and log_bytes_max={limit} is reached: delete topics or records, or raise it"
        );
        return Err(Refusal::new(ResponseError::KafkaStorageError, message));
    }
    let producers_max = broker.settings.producers_per_partition_max;
    let idle_max = broker.settings.producer_id_expiration;
    let partition = broker.topics.partition_mut(at).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let before = partition.log.bytes();
    let appended = partition.append(now, batch, log_append_time)?;
    broker.log_bytes += partition.log.bytes() - before;
    if partition.producers.len() > producers_max {
        partition.producers.expire(now, idle_max, producers_max);
    }
    broker.changed.push(at.clone());
    Ok(appended)
}

fn answer(broker: &Broker, request: &ProduceRequest, appended: Vec<Result<Appended, Refusal>>) -> ProduceResponse {
    let mut results = appended.into_iter();
    respond(request, |topic, data| match results.next() {
        Some(Ok(appended)) => {
            let name = broker.topics.name_of(topic.topic_id).unwrap_or(&topic.name);
            let log_start = broker.topics.partition(name, data.index).map_or(-1, |found| found.log.start_offset());
            PartitionProduceResponse::default()
                .with_index(data.index)
                .with_base_offset(appended.base_offset)
                .with_log_append_time_ms(appended.append_time_ms)
                .with_log_start_offset(log_start)
        }
        Some(Err(refusal)) => failed(data, &refusal),
        None => failed(data, &ResponseError::UnknownServerError.into()),
    })
}

fn respond(
    request: &ProduceRequest,
    mut one: impl FnMut(&TopicProduceData, &PartitionProduceData) -> PartitionProduceResponse,
) -> ProduceResponse {
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for topic in &request.topic_data {
        let partitions = topic.partition_data.iter().map(|data| one(topic, data)).collect();
        responses.push(
            TopicProduceResponse::default()
                .with_name(topic.name.clone())
                .with_topic_id(topic.topic_id)
                .with_partition_responses(partitions),
        );
    }
    ProduceResponse::default().with_responses(responses)
}

fn failed(data: &PartitionProduceData, refusal: &Refusal) -> PartitionProduceResponse {
    PartitionProduceResponse::default()
        .with_index(data.index)
        .with_error_code(refusal.code.code())
        .with_error_message(message_of(refusal))
        .with_base_offset(-1)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(-1)
}
