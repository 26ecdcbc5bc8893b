//! DescribeTransactions (key 65), version 0: the state of each transactional id (KIP-664).
//!
//! The way for a client to see that the markers have landed: PrepareCommit becomes CompleteCommit.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_transactions_response::{TopicData, TransactionState};
use kafka_protocol::messages::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, ProducerId, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;

use crate::broker::Broker;
use crate::transactions::state::{TxnEntry, TxnState};

pub(super) fn serve(broker: &Broker, request: &DescribeTransactionsRequest) -> DescribeTransactionsResponse {
    let one = |id: &TransactionalId| match broker.coordinator.entry(id) {
        _ if id.is_empty() => failed(id, ResponseError::InvalidRequest),
        Some(entry) => describe(id, entry),
        None => failed(id, ResponseError::TransactionalIdNotFound),
    };
    let states = request.transactional_ids.iter().map(one).collect();
    DescribeTransactionsResponse::default().with_transaction_states(states)
}

pub(super) fn refuse(request: &DescribeTransactionsRequest, code: ResponseError) -> DescribeTransactionsResponse {
    let states = request.transactional_ids.iter().map(|id| failed(id, code)).collect();
    DescribeTransactionsResponse::default().with_transaction_states(states)
}

fn describe(id: &TransactionalId, entry: &TxnEntry) -> TransactionState {
    let mut topics: Vec<TopicData> = Vec::new();
    let mut started_ms = -1;
    if let TxnState::Ongoing { started, partitions } | TxnState::Prepare { started, partitions, .. } = &entry.state {
        started_ms = started.millis();
        for at in partitions {
            match topics.last_mut() {
                Some(topic) if topic.topic == at.topic => topic.partitions.push(at.partition),
                _ => topics.push(TopicData::default().with_topic(at.topic.clone()).with_partitions(vec![at.partition])),
            }
        }
    }
    TransactionState::default()
        .with_transactional_id(id.clone())
        .with_transaction_state(StrBytes::from_static_str(entry.state.name()))
        .with_transaction_timeout_ms(i32::try_from(entry.timeout.as_millis()).unwrap_or(i32::MAX))
        .with_transaction_start_time_ms(started_ms)
        .with_producer_id(ProducerId(entry.producer.id))
        .with_producer_epoch(entry.producer.epoch)
        .with_topics(topics)
}

fn failed(id: &TransactionalId, code: ResponseError) -> TransactionState {
    TransactionState::default().with_transactional_id(id.clone()).with_error_code(code.code())
}
