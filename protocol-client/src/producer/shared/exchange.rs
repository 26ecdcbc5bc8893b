//! The driver's side of what is shared: answers in, orders out, and the machine's news to those who wait for it.

use super::super::counters::{add, subtract};
use super::super::error::{Failure, ProducerError};
use super::super::lane::Outgoing;
use super::super::transactional::Committed;
use super::{Core, Shared};
use crate::batch::ProducerStamp;
use oncewire_txn::{
    EndGoal, Event, Outcome, Output, PartitionIndex, ProducerIdentity, Protocol, Reply, Request, RequestId, StateName,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One thing for the driver to do.
pub(crate) enum Order {
    /// A request to the coordinator, or about it.
    Coordinator(RequestId, CoordinatorRequest),
    /// One batch to its leader.
    Produce(Outgoing),
    /// New metadata of a topic.
    Refresh(RequestId, Arc<str>),
    /// Nothing can be sent for this request: it is lost.
    Lost(RequestId),
}

/// A request about the transaction, with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CoordinatorRequest {
    Find,
    Init { current: Option<ProducerIdentity> },
    AddPartitions { identity: ProducerIdentity, partitions: Vec<(PartitionIndex, Arc<str>, u32)> },
    End { identity: ProducerIdentity, goal: EndGoal, protocol: Protocol },
}

/// What one drain of the machine asks the driver for.
pub(crate) struct Drained {
    pub(crate) orders: Vec<Order>,
    /// When to come back although nothing has happened.
    pub(crate) until: Option<Instant>,
    /// True when the driver may end.
    pub(crate) closed: bool,
}

impl Shared {
    /// Gives the machine what came back, and takes what it wants done.
    pub(crate) fn step(&self, replies: impl IntoIterator<Item = (RequestId, Reply)>) -> Drained {
        let now = self.now();
        let mut core = self.lock();
        for (request, reply) in replies {
            core.machine.handle_reply(now, request, reply);
        }
        core.machine.handle_timeout(now);
        let mut drained = Drained { orders: Vec::new(), until: None, closed: false };
        loop {
            match core.machine.poll_output() {
                Output::Send(request, what) => {
                    // Each request gets an answer, also one about a name or a batch that is not here.
                    drained.orders.push(self.order(&mut core, request, what).unwrap_or(Order::Lost(request)));
                }
                Output::Event(event) => self.event(&mut core, event),
                Output::Wait { until } => {
                    drained.until = until.map(|time| self.origin + Duration::from_micros(time.0));
                    break;
                }
            }
        }
        drained.closed = core.machine.state() == StateName::Closed;
        drained
    }

    /// Adds names and bytes to what the machine wants sent.
    fn order(&self, core: &mut Core, request: RequestId, what: Request) -> Option<Order> {
        let order = match what {
            Request::FindCoordinator => Order::Coordinator(request, CoordinatorRequest::Find),
            Request::InitProducerId { current } => Order::Coordinator(request, CoordinatorRequest::Init { current }),
            Request::AddPartitions { identity, partitions } => {
                let named = partitions
                    .into_iter()
                    .filter_map(|index| core.partitions.name(index).map(|(topic, of)| (index, topic.clone(), *of)))
                    .collect();
                Order::Coordinator(request, CoordinatorRequest::AddPartitions { identity, partitions: named })
            }
            Request::EndTxn { identity, goal, protocol } => {
                Order::Coordinator(request, CoordinatorRequest::End { identity, goal, protocol })
            }
            Request::RefreshMetadata { partition } => {
                let (topic, _) = core.partitions.name(partition)?;
                Order::Refresh(request, topic.clone())
            }
            Request::Produce { identity, partition, batch, base_sequence, retry, protocol } => {
                if retry {
                    add(&self.counters.retries, 1);
                }
                let (topic, number) = core.partitions.name(partition)?.clone();
                let held = core.batches.get_mut(&batch)?;
                let records = held.sealed.stamp(ProducerStamp {
                    producer_id: identity.id,
                    producer_epoch: identity.epoch,
                    base_sequence,
                    transactional: true,
                });
                Order::Produce(Outgoing { request, batch, topic, partition: number, protocol, records })
            }
        };
        Some(order)
    }

    /// Turns the machine's news into answers for those who wait.
    fn event(&self, core: &mut Core, event: Event) {
        match event {
            Event::Initialized(identity) => {
                core.answer_init(&Ok(identity));
            }
            Event::InitFailed(cause) => {
                let cause = core.failure(&cause);
                core.answer_init(&Err(ProducerError::InitFailed {
                    transactional_id: self.transactional_id.clone(),
                    cause,
                }));
            }
            Event::Acked { batch, .. } => {
                if let Some(held) = core.batches.remove(&batch) {
                    add(&self.counters.records, u64::from(held.records));
                    add(&self.counters.bytes, held.bytes as u64);
                    subtract(&self.counters.buffered, held.bytes as u64);
                }
            }
            Event::Dropped { batch } => {
                if let Some(held) = core.batches.remove(&batch) {
                    subtract(&self.counters.buffered, held.bytes as u64);
                }
            }
            Event::AbortRequired(cause) => {
                let failure = core.failure(&cause);
                tracing::warn!(transactional_id = %self.transactional_id, cause = %failure, "the transaction can only be aborted");
                core.abort_cause.get_or_insert(failure);
            }
            Event::Ended(outcome) => self.ended(core, outcome),
            Event::Fenced(cause) => {
                let cause = core.failure(&cause);
                let error = ProducerError::Fenced { transactional_id: self.transactional_id.clone(), cause };
                core.finish(error, &self.counters);
            }
            Event::Fatal(cause) => {
                let cause = core.failure(&cause);
                let error = ProducerError::Fatal { transactional_id: self.transactional_id.clone(), cause };
                core.finish(error, &self.counters);
            }
            Event::Closed => {
                let error = ProducerError::Closed { transactional_id: self.transactional_id.clone() };
                core.finish(error, &self.counters);
            }
        }
    }

    fn ended(&self, core: &mut Core, outcome: Outcome) {
        let goal = core.ending.take().unwrap_or(EndGoal::Abort);
        let result = match outcome {
            Outcome::Committed => {
                if core.open.records > 0 {
                    add(&self.counters.committed, 1);
                }
                Ok(Committed {
                    records: core.open.records,
                    bytes: core.open.bytes,
                    duration: core.open.begun.elapsed(),
                })
            }
            Outcome::Aborted => {
                add(&self.counters.aborted, 1);
                match (goal, core.abort_cause.take()) {
                    (EndGoal::Abort, _) => Ok(Committed::default()),
                    (EndGoal::Commit, cause) => {
                        let cause = cause.unwrap_or_else(|| Failure::local("the transaction was aborted"));
                        Err(self.not_committed(core, cause))
                    }
                }
            }
            Outcome::NotCommitted(cause) => {
                add(&self.counters.aborted, 1);
                let cause = core.failure(&cause);
                Err(self.not_committed(core, cause))
            }
            Outcome::Unknown(cause) => {
                add(&self.counters.unknown, 1);
                let cause = core.failure(&cause);
                Err(ProducerError::Unknown { transactional_id: self.transactional_id.clone(), cause })
            }
        };
        core.abort_cause = None;
        core.answer_end(goal, result);
    }
}
