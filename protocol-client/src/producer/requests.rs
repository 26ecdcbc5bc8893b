//! The producer's requests and answers as Kafka's messages. Pure.
//!
//! Versions: Produce 3–11 and EndTxn 0–4 in the explicit protocol, Produce 12 and EndTxn 5 in transactions V2 (a broker tells
//! the generations apart by the version alone, KIP-890); AddPartitionsToTxn 3 at most, since 4 and later are the brokers' own;
//! InitProducerId 5 at most. Left out: Produce 13 (topic ids), InitProducerId 6 (two-phase commit, KIP-939).

use super::lane::Outgoing;
use crate::cluster::{LeaderHint, NodeId, Versions};
use crate::config::BrokerAddress;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, DescribeTransactionsRequest, EndTxnRequest, EndTxnResponse,
    InitProducerIdRequest, ProduceRequest, ProduceResponse, ProducerId, TopicName, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;
use oncewire_txn::{EndGoal, ErrorCode, PartitionIndex, ProducerIdentity, Protocol, Reply};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// An answer that the driver makes itself when no leader is known.
pub(crate) const LEADER_NOT_AVAILABLE: ErrorCode = ErrorCode(5);
/// The same when the topic is not known.
pub(crate) const UNKNOWN_TOPIC_OR_PARTITION: ErrorCode = ErrorCode(3);
/// The same when broker and client share no version.
pub(crate) const UNSUPPORTED_VERSION: ErrorCode = ErrorCode(35);
/// All in-sync replicas must have it: a transaction allows nothing less.
const ACKS_ALL: i16 = -1;

pub(crate) const ADD_PARTITIONS_VERSIONS: Versions = Versions::at_most(3);
pub(crate) const INIT_VERSIONS: Versions = Versions::at_most(5);

pub(crate) fn produce_versions(protocol: Protocol) -> Versions {
    match protocol {
        Protocol::Explicit => Versions { min: 3, max: 11 },
        Protocol::Implicit => Versions { min: 12, max: 12 },
    }
}

pub(crate) fn end_versions(protocol: Protocol) -> Versions {
    match protocol {
        Protocol::Explicit => Versions::at_most(4),
        Protocol::Implicit => Versions { min: 5, max: 5 },
    }
}

pub(crate) fn init(
    transactional_id: &str,
    timeout: Duration,
    current: Option<ProducerIdentity>,
) -> InitProducerIdRequest {
    let current = current.unwrap_or(ProducerIdentity { id: -1, epoch: -1 });
    InitProducerIdRequest::default()
        .with_transactional_id(Some(transactional(transactional_id)))
        .with_transaction_timeout_ms(millis(timeout))
        .with_producer_id(ProducerId(current.id))
        .with_producer_epoch(current.epoch)
}

pub(crate) fn add_partitions(
    transactional_id: &str,
    identity: ProducerIdentity,
    partitions: &[(PartitionIndex, Arc<str>, u32)],
) -> AddPartitionsToTxnRequest {
    let mut topics: Vec<AddPartitionsToTxnTopic> = Vec::new();
    for (_, topic, partition) in partitions {
        let partition = wire_partition(*partition);
        match topics.iter_mut().find(|known| known.name.as_str() == &**topic) {
            Some(known) => known.partitions.push(partition),
            None => topics
                .push(AddPartitionsToTxnTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition])),
        }
    }
    AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(transactional(transactional_id))
        .with_v3_and_below_producer_id(ProducerId(identity.id))
        .with_v3_and_below_producer_epoch(identity.epoch)
        .with_v3_and_below_topics(topics)
}

/// One code for each partition that was asked for. A partition that the answer leaves out has no code: `None` then.
pub(crate) fn partitions_added(
    response: &AddPartitionsToTxnResponse,
    asked: &[(PartitionIndex, Arc<str>, u32)],
) -> Option<Reply> {
    let mut codes: HashMap<(&str, i32), i16> = HashMap::new();
    for topic in &response.results_by_topic_v3_and_below {
        for result in &topic.results_by_partition {
            codes.insert((topic.name.as_str(), result.partition_index), result.partition_error_code);
        }
    }
    let answered = asked
        .iter()
        .map(|(index, topic, partition)| {
            codes.get(&(&**topic, wire_partition(*partition))).map(|code| (*index, ErrorCode(*code)))
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Reply::PartitionsAdded(answered))
}

pub(crate) fn end(transactional_id: &str, identity: ProducerIdentity, goal: EndGoal) -> EndTxnRequest {
    EndTxnRequest::default()
        .with_transactional_id(transactional(transactional_id))
        .with_producer_id(ProducerId(identity.id))
        .with_producer_epoch(identity.epoch)
        .with_committed(goal == EndGoal::Commit)
}

/// The identity for the next transaction, which EndTxn 5 returns.
pub(crate) fn next_identity(response: &EndTxnResponse, version: i16) -> Option<ProducerIdentity> {
    let given = version >= 5 && response.error_code == 0 && response.producer_id.0 >= 0;
    given.then_some(ProducerIdentity { id: response.producer_id.0, epoch: response.producer_epoch })
}

pub(crate) fn describe(transactional_id: &str) -> DescribeTransactionsRequest {
    DescribeTransactionsRequest::default().with_transactional_ids(vec![transactional(transactional_id)])
}

pub(crate) fn produce(transactional_id: Option<&str>, timeout: Duration, orders: &[Outgoing]) -> ProduceRequest {
    let mut topics: Vec<TopicProduceData> = Vec::new();
    for order in orders {
        let data = PartitionProduceData::default()
            .with_index(wire_partition(order.partition))
            .with_records(Some(order.records.clone()));
        match topics.iter_mut().find(|known| known.name.as_str() == &*order.topic) {
            Some(known) => known.partition_data.push(data),
            None => topics
                .push(TopicProduceData::default().with_name(topic_name(&order.topic)).with_partition_data(vec![data])),
        }
    }
    ProduceRequest::default()
        .with_transactional_id(transactional_id.map(transactional))
        .with_acks(ACKS_ALL)
        .with_timeout_ms(millis(timeout))
        .with_topic_data(topics)
}

/// The part of the answer that is about one batch.
pub(crate) fn partition_answer<'a>(
    response: &'a ProduceResponse,
    order: &Outgoing,
) -> Option<&'a PartitionProduceResponse> {
    let topic = response.responses.iter().find(|topic| topic.name.as_str() == &*order.topic)?;
    topic.partition_responses.iter().find(|partition| partition.index == wire_partition(order.partition))
}

/// The leader that the answer names instead of the asked one (KIP-951).
pub(crate) fn leader_hint(response: &ProduceResponse, partition: &PartitionProduceResponse) -> Option<LeaderHint> {
    let leader = partition.current_leader.leader_id.0;
    if leader < 0 {
        return None;
    }
    let address = response.node_endpoints.iter().find(|node| node.node_id.0 == leader).and_then(|node| {
        let port = u16::try_from(node.port).ok()?;
        Some(BrokerAddress { host: node.host.to_string(), port })
    });
    Some(LeaderHint { leader: NodeId(leader), leader_epoch: partition.current_leader.leader_epoch, address })
}

/// What the broker said about a refused batch beyond the code (KIP-467).
pub(crate) fn broker_words(partition: &PartitionProduceResponse) -> Option<String> {
    let message = partition.error_message.as_ref().map(|words| words.to_string()).filter(|words| !words.is_empty());
    let record = partition.record_errors.first().map(|error| {
        let words = error.batch_index_error_message.as_ref().map_or("refused", |words| words.as_str());
        format!("record {} of the batch: {words}", error.batch_index)
    });
    match (message, record) {
        (Some(message), Some(record)) => Some(format!("{message}; {record}")),
        (message, record) => message.or(record),
    }
}

/// Kafka's partition numbers are signed; one beyond them exists nowhere, and the broker says so.
pub(crate) fn wire_partition(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

fn transactional(id: &str) -> TransactionalId {
    TransactionalId(StrBytes::from_string(id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::add_partitions_to_txn_response::{
        AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
    };

    #[test]
    fn partitions_of_one_topic_share_its_entry() {
        let asked = [
            (PartitionIndex(0), "a".into(), 0),
            (PartitionIndex(1), "b".into(), 0),
            (PartitionIndex(2), "a".into(), 7),
        ];
        let request = add_partitions("id", ProducerIdentity { id: 1, epoch: 2 }, &asked);
        assert_eq!(request.v3_and_below_topics.len(), 2);
        assert_eq!(request.v3_and_below_topics[0].partitions, [0, 7]);
    }

    #[test]
    fn answer_that_leaves_out_a_partition_is_no_answer() {
        let asked = [(PartitionIndex(4), Arc::from("a"), 0), (PartitionIndex(5), Arc::from("a"), 1)];
        let result = |index, code| {
            AddPartitionsToTxnPartitionResult::default().with_partition_index(index).with_partition_error_code(code)
        };
        let topic = AddPartitionsToTxnTopicResult::default()
            .with_name(topic_name("a"))
            .with_results_by_partition(vec![result(0, 0)]);
        let mut response = AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(vec![topic]);
        assert_eq!(partitions_added(&response, &asked), None);
        response.results_by_topic_v3_and_below[0].results_by_partition.push(result(1, 55));
        let expected =
            Reply::PartitionsAdded(vec![(PartitionIndex(4), ErrorCode(0)), (PartitionIndex(5), ErrorCode(55))]);
        assert_eq!(partitions_added(&response, &asked), Some(expected));
    }

    #[test]
    fn only_end_txn_5_gives_an_identity() {
        let response = EndTxnResponse::default().with_producer_id(ProducerId(5)).with_producer_epoch(3);
        assert_eq!(next_identity(&response, 4), None);
        assert_eq!(next_identity(&response, 5), Some(ProducerIdentity { id: 5, epoch: 3 }));
        let without = EndTxnResponse::default().with_producer_id(ProducerId(-1));
        assert_eq!(next_identity(&without, 5), None);
    }
}
