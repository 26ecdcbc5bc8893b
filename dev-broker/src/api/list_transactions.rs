//! ListTransactions (key 66), versions 0 to 2: all transactional ids, by state, producer id and age (KIP-664, KIP-994).
//!
//! Left out: the regular expression of version 2, which is refused with INVALID_REGULAR_EXPRESSION rather than ignored.

use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_transactions_response::TransactionState;
use kafka_protocol::messages::{ListTransactionsRequest, ListTransactionsResponse, ProducerId};
use kafka_protocol::protocol::StrBytes;

use crate::broker::Broker;
use crate::time::Timestamp;
use crate::transactions::state::{TxnEntry, TxnState};

pub(super) fn serve(broker: &Broker, now: Timestamp, request: &ListTransactionsRequest) -> ListTransactionsResponse {
    if request.transactional_id_pattern.as_ref().is_some_and(|pattern| !pattern.is_empty()) {
        return refuse(ResponseError::InvalidRegularExpression);
    }
    let is_known = |filter: &StrBytes| TxnState::NAMES.contains(&filter.as_str());
    let unknown: Vec<StrBytes> = request.state_filters.iter().filter(|filter| !is_known(filter)).cloned().collect();
    let states = broker
        .coordinator
        .entries()
        .filter(|(_, entry)| matches(request, now, entry))
        .map(|(id, entry)| {
            TransactionState::default()
                .with_transactional_id(id.clone())
                .with_producer_id(ProducerId(entry.producer.id))
                .with_transaction_state(StrBytes::from_static_str(entry.state.name()))
        })
        .collect();
    ListTransactionsResponse::default().with_unknown_state_filters(unknown).with_transaction_states(states)
}

pub(super) fn refuse(code: ResponseError) -> ListTransactionsResponse {
    ListTransactionsResponse::default().with_error_code(code.code())
}

fn matches(request: &ListTransactionsRequest, now: Timestamp, entry: &TxnEntry) -> bool {
    let states = &request.state_filters;
    let producers = &request.producer_id_filters;
    let state_fits = states.is_empty() || states.iter().any(|state| state.as_str() == entry.state.name());
    let producer_fits = producers.is_empty() || producers.iter().any(|id| id.0 == entry.producer.id);
    let age_fits = match u64::try_from(request.duration_filter) {
        // A negative filter asks for nothing.
        Err(_) => true,
        Ok(at_least_ms) => match &entry.state {
            TxnState::Ongoing { started, .. } | TxnState::Prepare { started, .. } => {
                now.since(*started) > Duration::from_millis(at_least_ms)
            }
            TxnState::Empty | TxnState::Complete { .. } => false,
        },
    };
    state_fits && producer_fits && age_fits
}
