//! Fencing producers by their transactional ids, as an exactly-once runtime does before it starts new tasks (KIP-618).
//!
//! It is InitProducerId without a producer id of our own: the coordinator raises the epoch and aborts what is open. While it
//! does so it answers CONCURRENT_TRANSACTIONS, always at least once over an open transaction: that is progress, and is
//! waited out, not reported.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId, TransactionalId};
use kafka_protocol::protocol::StrBytes;

use super::Admin;
use crate::cluster::{Call, CoordinatorKind, Purpose, Retry, Target};
use crate::error::Error;
use crate::net::Pending;
use crate::wire::error_code::codes;

const NO_PRODUCER_ID: i64 = -1;
const NO_EPOCH: i16 = -1;
/// An abort's markers are written within milliseconds; the ordinary retry pause would be most of the time that fencing takes.
const CONCURRENT_PAUSE_MAX: Duration = Duration::from_millis(10);

/// What fencing a transactional id gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FencedProducer {
    /// The producer id that now belongs to the transactional id.
    pub producer_id: i64,
    /// The epoch that fences every earlier producer.
    pub epoch: i16,
}

type Outcomes = BTreeMap<String, Result<FencedProducer, Error>>;

impl Admin {
    /// Fences every producer that uses one of these transactional ids, aborting what is open. One result for each id; all ids
    /// are worked on at once, each until it is done, refused, or `patience` is used up.
    ///
    /// `timeout` is stored by the coordinator as the id's transaction timeout until the next producer sets its own. It must not
    /// be above the broker's `transaction.max.timeout.ms`, nor tiny: it also bounds the coordinator's own write (KAFKA-16047).
    ///
    /// # Cancel safety
    /// What was sent is done all the same; fencing again is harmless.
    pub async fn fence_producers(
        &self,
        transactional_ids: &[String],
        timeout: Duration,
        patience: Duration,
    ) -> BTreeMap<String, Result<FencedProducer, Error>> {
        let mut done = Outcomes::new();
        let mut open: BTreeMap<String, Retry> = transactional_ids
            .iter()
            .map(|id| (id.clone(), self.cluster.retry(format!("fencing transactional id '{id}'"), patience)))
            .collect();
        while !open.is_empty() {
            let ids: Vec<String> = open.keys().cloned().collect();
            let mut pause = Duration::ZERO;
            for (id, outcome) in self.fence_once(&ids, timeout).await {
                let Some(retry) = open.get_mut(&id) else { continue };
                let error = match outcome {
                    Ok(fenced) => {
                        done.insert(id.clone(), Ok(fenced));
                        open.remove(&id);
                        continue;
                    }
                    Err(error) => error,
                };
                if error.coordinator_is_stale() {
                    self.cluster.forget_coordinator(CoordinatorKind::Transaction, &id);
                }
                let is_concurrent = error.code() == Some(codes::CONCURRENT_TRANSACTIONS);
                let verdict = if error.retriable() { retry.failed(error) } else { Err(error) };
                match verdict {
                    Ok(wait) if is_concurrent => pause = pause.max(wait.min(CONCURRENT_PAUSE_MAX)),
                    Ok(wait) => pause = pause.max(wait),
                    Err(error) => {
                        done.insert(id.clone(), Err(error));
                        open.remove(&id);
                    }
                }
            }
            if !open.is_empty() {
                tokio::time::sleep(pause).await;
            }
        }
        done
    }

    /// One attempt for each id. Requests go out before the first answer is waited for.
    async fn fence_once(&self, ids: &[String], timeout: Duration) -> Outcomes {
        let mut outcomes = Outcomes::new();
        let mut sent: Vec<(String, Pending<InitProducerIdResponse>)> = Vec::new();
        for (id, found) in self.cluster.coordinators(CoordinatorKind::Transaction, ids).await {
            let node = match found {
                Ok(node) => node,
                Err(error) => {
                    outcomes.insert(id, Err(error));
                    continue;
                }
            };
            let call = Call { purpose: Purpose::Coordinator, ..Call::to(Target::Node(node)) };
            match self.cluster.send(call, |_| request(&id, timeout)).await {
                Ok(pending) => sent.push((id, pending)),
                Err(error) => {
                    outcomes.insert(id, Err(error));
                }
            }
        }
        for (id, pending) in sent {
            let outcome = pending.await.and_then(|reply| read(&id, &reply.body));
            let outcome = outcome.map_err(|error| self.cluster.with_user(error));
            outcomes.insert(id, outcome);
        }
        outcomes
    }
}

fn request(id: &str, timeout: Duration) -> InitProducerIdRequest {
    InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(StrBytes::from_string(id.to_owned()))))
        .with_transaction_timeout_ms(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
        .with_producer_id(ProducerId(NO_PRODUCER_ID))
        .with_producer_epoch(NO_EPOCH)
}

fn read(id: &str, response: &InitProducerIdResponse) -> Result<FencedProducer, Error> {
    match response.error_code {
        codes::NONE => Ok(FencedProducer { producer_id: *response.producer_id, epoch: response.producer_epoch }),
        code => Err(Error::broker("InitProducerId", code, format!("transactional id '{id}'"))),
    }
}
