//! Looking at transactions at their coordinators (KIP-664). DescribeTransactions 0, ListTransactions 0-2.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::messages::describe_transactions_response::TransactionState as DescribedState;
use kafka_protocol::messages::{DescribeTransactionsRequest, ListTransactionsRequest, TransactionalId};
use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::Admin;
use crate::cluster::{Call, CoordinatorKind, Purpose, Target};
use crate::error::Error;
use crate::wire::error_code::codes;

/// A transaction's state at its coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionState {
    /// No transaction yet.
    Empty,
    /// Open.
    Ongoing,
    /// Commit decided, markers being written.
    PrepareCommit,
    /// Abort decided, markers being written.
    PrepareAbort,
    /// Committed, all markers written.
    CompleteCommit,
    /// Aborted, all markers written.
    CompleteAbort,
    /// Being removed.
    Dead,
    /// An older producer is being fenced.
    PrepareEpochFence,
    /// A state that this client does not know.
    Other(String),
}

/// One transaction as its coordinator describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionDescription {
    /// Its state.
    pub state: TransactionState,
    /// The producer id.
    pub producer_id: i64,
    /// The epoch.
    pub epoch: i16,
    /// `transaction.timeout.ms`.
    pub timeout: Duration,
    /// When the open transaction began, in milliseconds since 1970; -1 when none is open.
    pub start_time_ms: i64,
    /// Topic partitions in it.
    pub partitions: Vec<(String, i32)>,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTransaction {
    /// The transactional id.
    pub transactional_id: String,
    /// The producer id.
    pub producer_id: i64,
    /// Its state.
    pub state: TransactionState,
}

impl TransactionState {
    fn parse(text: &str) -> Self {
        match text {
            "Empty" => Self::Empty,
            "Ongoing" => Self::Ongoing,
            "PrepareCommit" => Self::PrepareCommit,
            "PrepareAbort" => Self::PrepareAbort,
            "CompleteCommit" => Self::CompleteCommit,
            "CompleteAbort" => Self::CompleteAbort,
            "Dead" => Self::Dead,
            "PrepareEpochFence" => Self::PrepareEpochFence,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Admin {
    /// The transaction of an id; `None` when the coordinator does not know the id.
    ///
    /// # Errors
    /// The coordinator's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn describe_transaction(&self, transactional_id: &str) -> Result<Option<TransactionDescription>, Error> {
        let what = format!("describing the transaction of '{transactional_id}'");
        let mut retry = self.cluster.retry(what, self.cluster.patience());
        loop {
            match self.try_describe_transaction(transactional_id).await {
                Err(error) if error.code() == Some(codes::TRANSACTIONAL_ID_NOT_FOUND) => return Ok(None),
                Err(error) if error.retriable() => {
                    if error.coordinator_is_stale() {
                        self.cluster.forget_coordinator(CoordinatorKind::Transaction, transactional_id);
                    }
                    retry.pause(error).await?;
                }
                other => return other.map(Some).map_err(|error| self.cluster.with_user(error)),
            }
        }
    }

    async fn try_describe_transaction(&self, transactional_id: &str) -> Result<TransactionDescription, Error> {
        let node = self.cluster.coordinator(CoordinatorKind::Transaction, transactional_id).await?;
        let call = Call { purpose: Purpose::Coordinator, ..Call::to(Target::Node(node)) };
        let id = TransactionalId(StrBytes::from_string(transactional_id.to_owned()));
        let build = |_| DescribeTransactionsRequest::default().with_transactional_ids(vec![id]);
        let reply = self.cluster.call(call, build).await?;
        let states = reply.body.transaction_states;
        match states.into_iter().find(|state| state.transactional_id.as_str() == transactional_id) {
            Some(state) if state.error_code == codes::NONE => Ok(description(state)),
            Some(state) => Err(Error::broker("DescribeTransactions", state.error_code, transactional_id)),
            None => Err(Error::broker("DescribeTransactions", codes::COORDINATOR_NOT_AVAILABLE, transactional_id)),
        }
    }

    /// The transactions of all coordinators, in no order.
    ///
    /// # Errors
    /// When one broker cannot be asked within `default.api.timeout.ms`: a listing with holes would look complete.
    pub async fn list_transactions(&self) -> Result<Vec<ListedTransaction>, Error> {
        let deadline = Instant::now() + self.cluster.patience();
        let mut listed = BTreeMap::new();
        for broker in self.cluster.brokers() {
            let patience = deadline.saturating_duration_since(Instant::now());
            let mut retry = self.cluster.retry(format!("listing the transactions of {}", broker.id), patience);
            let found = loop {
                match self.try_list(Target::Node(broker.id)).await {
                    Err(error) if error.retriable() => retry.pause(error).await?,
                    other => break other.map_err(|error| self.cluster.with_user(error))?,
                }
            };
            // While a coordinator moves, two brokers may both name an id.
            listed.extend(found.into_iter().map(|one| (one.transactional_id.clone(), one)));
        }
        Ok(listed.into_values().collect())
    }

    async fn try_list(&self, target: Target) -> Result<Vec<ListedTransaction>, Error> {
        let reply = self.cluster.call(Call::to(target), |_| ListTransactionsRequest::default()).await?;
        if reply.body.error_code != codes::NONE {
            return Err(Error::broker("ListTransactions", reply.body.error_code, "a coordinator"));
        }
        let listed = reply.body.transaction_states.iter().map(|state| ListedTransaction {
            transactional_id: state.transactional_id.to_string(),
            producer_id: *state.producer_id,
            state: TransactionState::parse(&state.transaction_state),
        });
        Ok(listed.collect())
    }
}

fn description(state: DescribedState) -> TransactionDescription {
    let partitions = state
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.topic.to_string(), *partition)));
    TransactionDescription {
        state: TransactionState::parse(&state.transaction_state),
        producer_id: *state.producer_id,
        epoch: state.producer_epoch,
        timeout: Duration::from_millis(u64::try_from(state.transaction_timeout_ms).unwrap_or(0)),
        start_time_ms: state.transaction_start_time_ms,
        partitions: partitions.collect(),
    }
}
