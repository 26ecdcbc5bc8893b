//! AddPartitionsToTxn (key 24), versions 0 to 5: the explicit way into a transaction.
//!
//! Versions 0 to 3 are the clients', with one transaction; 4 and 5 the brokers', with many and with `verify_only`
//! (KIP-890). One bad partition spoils its transaction's others with OPERATION_NOT_ATTEMPTED; what was added earlier
//! stays. Before version 2 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH (KIP-588). Simplification: anybody may use the
//! brokers' versions.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, TransactionalId};

use super::fenced_as_of;
use crate::broker::Broker;
use crate::time::Timestamp;
use crate::transactions::TxnClaim;
use crate::transactions::state::{ProducerIdentity, TopicPartition};

const FIRST_BATCHED_VERSION: i16 = 4;
const FIRST_FENCED_VERSION: i16 = 2;

pub(super) fn serve(
    broker: &mut Broker,
    now: Timestamp,
    version: i16,
    request: &AddPartitionsToTxnRequest,
) -> AddPartitionsToTxnResponse {
    if version < FIRST_BATCHED_VERSION {
        let producer =
            ProducerIdentity { id: request.v3_and_below_producer_id.0, epoch: request.v3_and_below_producer_epoch };
        let id = &request.v3_and_below_transactional_id;
        let topics = &request.v3_and_below_topics;
        let results = add(broker, now, id, producer, topics, |code| fenced_as_of(version, FIRST_FENCED_VERSION, code));
        return AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(results);
    }
    let results = request
        .transactions
        .iter()
        .map(|transaction| {
            let producer = ProducerIdentity { id: transaction.producer_id.0, epoch: transaction.producer_epoch };
            let id = &transaction.transactional_id;
            let topics = match transaction.verify_only {
                true => verify(broker, id, producer, &transaction.topics),
                false => add(broker, now, id, producer, &transaction.topics, |code| code),
            };
            AddPartitionsToTxnResult::default().with_transactional_id(id.clone()).with_topic_results(topics)
        })
        .collect();
    AddPartitionsToTxnResponse::default().with_results_by_transaction(results)
}

pub(super) fn refuse(
    version: i16,
    request: &AddPartitionsToTxnRequest,
    code: ResponseError,
) -> AddPartitionsToTxnResponse {
    if version < FIRST_BATCHED_VERSION {
        let topics = results(&request.v3_and_below_topics, |_| code.code());
        return AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(topics);
    }
    AddPartitionsToTxnResponse::default().with_error_code(code.code())
}

fn add(
    broker: &mut Broker,
    now: Timestamp,
    transactional_id: &TransactionalId,
    producer: ProducerIdentity,
    topics: &[AddPartitionsToTxnTopic],
    as_told: impl Fn(ResponseError) -> ResponseError,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let partitions = partitions_of(topics);
    let exists = |at: &TopicPartition| broker.topics.partition(&at.topic, at.partition).is_some();
    if !partitions.iter().all(exists) {
        return results(topics, |at| match exists(at) {
            true => ResponseError::OperationNotAttempted.code(),
            false => ResponseError::UnknownTopicOrPartition.code(),
        });
    }
    let claim = TxnClaim { transactional_id, producer };
    let code = match broker.coordinator.add_partitions(now, claim, partitions) {
        Ok(()) => 0,
        Err(code) => as_told(code).code(),
    };
    results(topics, |_| code)
}

fn verify(
    broker: &mut Broker,
    transactional_id: &TransactionalId,
    producer: ProducerIdentity,
    topics: &[AddPartitionsToTxnTopic],
) -> Vec<AddPartitionsToTxnTopicResult> {
    let claim = TxnClaim { transactional_id, producer };
    results(topics, |at| broker.coordinator.verify_partition(claim, at).err().map_or(0, |code| code.code()))
}

fn partitions_of(topics: &[AddPartitionsToTxnTopic]) -> Vec<TopicPartition> {
    let of_topic = |topic: &AddPartitionsToTxnTopic| -> Vec<TopicPartition> {
        let at = |partition: &i32| TopicPartition { topic: topic.name.clone(), partition: *partition };
        topic.partitions.iter().map(at).collect()
    };
    topics.iter().flat_map(of_topic).collect()
}

fn results(
    topics: &[AddPartitionsToTxnTopic],
    mut code_of: impl FnMut(&TopicPartition) -> i16,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut answered = Vec::with_capacity(topics.len());
    for topic in topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let at = TopicPartition { topic: topic.name.clone(), partition: *partition };
            partitions.push(
                AddPartitionsToTxnPartitionResult::default()
                    .with_partition_index(*partition)
                    .with_partition_error_code(code_of(&at)),
            );
        }
        answered.push(
            AddPartitionsToTxnTopicResult::default()
                .with_name(topic.name.clone())
                .with_results_by_partition(partitions),
        );
    }
    answered
}
