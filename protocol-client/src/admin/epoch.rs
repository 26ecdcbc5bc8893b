//! Carrying a new producer epoch to partitions that have not heard of it: a transaction without data, aborted.
//!
//! A partition's leader learns an epoch from a batch or from a marker, not from the coordinator. Until then it appends plain
//! writes (without transaction) under the old one. AddPartitionsToTxn followed by EndTxn(abort) lets the coordinator write an
//! abort marker with the present epoch to each partition; it hides nothing, because there is nothing between. This is done in
//! the explicit protocol also where transactions V2 are in force: AddPartitionsToTxn 3 and EndTxn 4 at most, which brokers
//! accept from clients side by side with V2 (KIP-890), and which leave the epoch as it is.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::{AddPartitionsToTxnRequest, EndTxnRequest, ProducerId, TopicName, TransactionalId};
use kafka_protocol::protocol::StrBytes;
use oncewire_txn::ProducerIdentity;

use super::{Admin, TransactionState};
use crate::cluster::{Call, CoordinatorKind, Purpose, Target, Versions};
use crate::error::Error;
use crate::wire::error_code::codes;

/// Markers are written within milliseconds.
const MARKERS_PAUSE: Duration = Duration::from_millis(5);

impl Admin {
    /// Lets the leader of each of these partitions know the identity's epoch, by markers of an aborted transaction without
    /// data. No transaction of the id may be open. When it returns, all of them have been written.
    ///
    /// # Errors
    /// The coordinator's refusal (a newer owner, no permission to write to a topic, a partition that does not exist), or
    /// [`Error::Timeout`] after `default.api.timeout.ms`.
    ///
    /// # Cancel safety
    /// A transaction without data may stay open; the next InitProducerId of the id, or its timeout, aborts it.
    pub async fn carry_epoch(
        &self,
        transactional_id: &str,
        identity: ProducerIdentity,
        partitions: &[(Arc<str>, Vec<i32>)],
    ) -> Result<(), Error> {
        if partitions.iter().all(|(_, indexes)| indexes.is_empty()) {
            return Ok(());
        }
        let what = format!("carrying the epoch of '{transactional_id}' to its partitions");
        let mut retry = self.cluster.retry(what, self.cluster.patience());
        loop {
            let tried = async {
                self.add_partitions(transactional_id, identity, partitions).await?;
                self.abort_empty(transactional_id, identity).await
            };
            match tried.await {
                Ok(()) => break,
                Err(error) if error.retriable() => self.pause(&mut retry, transactional_id, error).await?,
                Err(error) => return Err(self.cluster.with_user(error)),
            }
        }
        let deadline = retry.deadline();
        loop {
            let state = self.describe_transaction(transactional_id).await?.map(|told| told.state);
            if !matches!(state, Some(TransactionState::PrepareAbort | TransactionState::Ongoing)) {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(retry.timeout(None));
            }
            tokio::time::sleep(MARKERS_PAUSE).await;
        }
    }

    async fn pause(&self, retry: &mut crate::cluster::Retry, id: &str, error: Error) -> Result<(), Error> {
        if error.coordinator_is_stale() {
            self.cluster.forget_coordinator(CoordinatorKind::Transaction, id);
        }
        retry.pause(error).await
    }

    async fn add_partitions(
        &self,
        transactional_id: &str,
        identity: ProducerIdentity,
        partitions: &[(Arc<str>, Vec<i32>)],
    ) -> Result<(), Error> {
        let topics = partitions.iter().filter(|(_, indexes)| !indexes.is_empty()).map(|(topic, indexes)| {
            AddPartitionsToTxnTopic::default()
                .with_name(TopicName(StrBytes::from_string(topic.to_string())))
                .with_partitions(indexes.clone())
        });
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(transactional(transactional_id))
            .with_v3_and_below_producer_id(ProducerId(identity.id))
            .with_v3_and_below_producer_epoch(identity.epoch)
            .with_v3_and_below_topics(topics.collect());
        let call = self.coordinator_call(transactional_id, Versions::at_most(3)).await?;
        let reply = self.cluster.call(call, |_| request).await?;
        let results = reply.body.results_by_topic_v3_and_below.iter().flat_map(|topic| {
            let name = topic.name.as_str();
            topic.results_by_partition.iter().map(move |result| (name, result))
        });
        // One bad partition lets the coordinator attempt none: the others say only that.
        let bad = results
            .filter(|(_, result)| result.partition_error_code != codes::NONE)
            .min_by_key(|(_, result)| result.partition_error_code == codes::OPERATION_NOT_ATTEMPTED);
        match bad {
            None => Ok(()),
            Some((topic, result)) => Err(Error::broker(
                "AddPartitionsToTxn",
                result.partition_error_code,
                format!("transactional id '{transactional_id}', partition {topic}-{}", result.partition_index),
            )),
        }
    }

    async fn abort_empty(&self, transactional_id: &str, identity: ProducerIdentity) -> Result<(), Error> {
        let request = EndTxnRequest::default()
            .with_transactional_id(transactional(transactional_id))
            .with_producer_id(ProducerId(identity.id))
            .with_producer_epoch(identity.epoch)
            .with_committed(false);
        let call = self.coordinator_call(transactional_id, Versions::at_most(4)).await?;
        let reply = self.cluster.call(call, |_| request).await?;
        match reply.body.error_code {
            codes::NONE => Ok(()),
            code => Err(Error::broker("EndTxn", code, format!("transactional id '{transactional_id}'"))),
        }
    }

    async fn coordinator_call(&self, transactional_id: &str, versions: Versions) -> Result<Call, Error> {
        let node = self.cluster.coordinator(CoordinatorKind::Transaction, transactional_id).await?;
        Ok(Call { purpose: Purpose::Coordinator, versions, ..Call::to(Target::Node(node)) })
    }
}

fn transactional(id: &str) -> TransactionalId {
    TransactionalId(StrBytes::from_string(id.to_owned()))
}
