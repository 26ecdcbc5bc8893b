//! Batches on their way to leaders: found, put into requests, sent in order, and answered.
//!
//! Polled by its owner's one task; it spawns nothing. It decides the order on the wire and nothing else: whether a refused
//! batch goes out again is for its owner to say. The invariant: the batches of a partition are given to the connection in
//! the order in which they were pushed, for as long as its leader stays the same.

use super::counters::{Counters, add};
use super::lane::{Lane, Outgoing};
use super::requests::{self, LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION, UNSUPPORTED_VERSION};
use crate::cluster::{Call, Cluster, NodeId, Purpose, Target};
use crate::error::Error;
use crate::net::Pending;
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use oncewire_txn::{ErrorCode, Protocol};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A future that the owner's task polls.
pub(crate) type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What came of one batch.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) order: Outgoing,
    pub(crate) fate: Fate,
}

/// See [`Answer`].
#[derive(Debug)]
pub(crate) enum Fate {
    /// A broker answered; or this client did, where no broker could be asked.
    Answered {
        code: ErrorCode,
        base_offset: i64,
        log_start_offset: i64,
        /// True when the answer named the new leader.
        leader_known: bool,
        /// What the broker said beyond the code.
        words: Option<String>,
    },
    /// No usable answer. Whether the broker acted is unknown, unless `sent` is false.
    Lost { sent: bool, reason: String },
}

/// What a future of this module brings.
enum Done {
    /// A Produce request was answered or lost.
    Produced { node: NodeId, orders: Vec<Outgoing>, result: Result<ProduceResponse, Error> },
    /// A topic was looked up for batches that had no leader. True: it exists.
    Located(Arc<str>, Result<bool, Error>),
}

/// A request that is being given to its connection.
struct Sending {
    node: NodeId,
    orders: Vec<Outgoing>,
    work: Work<Result<Pending<ProduceResponse>, Error>>,
}

/// See the module.
pub(crate) struct Outbound {
    cluster: Cluster,
    /// Named in each request of a transactional producer.
    transactional_id: Option<Arc<str>>,
    in_flight_max: usize,
    lanes: HashMap<NodeId, Lane>,
    /// Batches whose leader is being looked up, in order.
    homeless: Vec<Outgoing>,
    sending: Vec<Sending>,
    /// Bounded by the requests in flight for each leader, and one look-up for each topic.
    work: Vec<Work<Done>>,
}

impl Outbound {
    pub(crate) fn new(cluster: Cluster, transactional_id: Option<Arc<str>>, in_flight_max: usize) -> Self {
        Self {
            cluster,
            transactional_id,
            in_flight_max,
            lanes: HashMap::new(),
            homeless: Vec::new(),
            sending: Vec::new(),
            work: Vec::new(),
        }
    }

    /// Puts a batch into its leader's lane, or looks the leader up first.
    pub(crate) fn push(&mut self, order: Outgoing) {
        // Behind a batch of the same topic that waits for a look-up, so that it can't overtake it.
        let looking = self.homeless.iter().any(|waiting| waiting.topic == order.topic);
        let leader = self.cluster.leader(&order.topic, requests::wire_partition(order.partition));
        if let (false, Some((leader, _))) = (looking, leader) {
            self.lanes.entry(leader).or_default().push(order);
            return;
        }
        if !looking {
            let (cluster, topic) = (self.cluster.clone(), order.topic.clone());
            self.work.push(Box::pin(async move {
                let found = cluster.topic(&topic).await.map(|found| found.is_some());
                Done::Located(topic, found)
            }));
        }
        self.homeless.push(order);
    }

    /// True when a batch waits in a lane for a request.
    pub(crate) fn is_waiting(&self) -> bool {
        self.lanes.values().any(Lane::is_waiting)
    }

    /// Starts what may start; batches that are no longer `wanted` are answered as not sent. True when there is something new
    /// to poll.
    pub(crate) fn start(
        &mut self,
        counters: &Counters,
        wanted: impl Fn(&Outgoing) -> bool,
        answers: &mut Vec<Answer>,
    ) -> bool {
        let mut started = false;
        for (node, lane) in &mut self.lanes {
            if !lane.may_start(self.in_flight_max) {
                continue;
            }
            // A batch that was dropped while it waited here must not turn up in a later transaction.
            let unwanted = lane.remove(|order| !wanted(order));
            answers.extend(unwanted.into_iter().map(|order| lost(order, false, "dropped before it was sent")));
            let Some(orders) = lane.start(self.in_flight_max) else { continue };
            add(&counters.requests, 1);
            started = true;
            let (cluster, node) = (self.cluster.clone(), *node);
            let protocol = orders.first().map_or(Protocol::Explicit, |order| order.protocol);
            let timeout = self.cluster.config().request_timeout;
            let request = requests::produce(self.transactional_id.as_deref(), timeout, &orders);
            let call = Call {
                target: Target::Node(node),
                purpose: Purpose::Data,
                versions: requests::produce_versions(protocol),
                timeout: None,
            };
            let work = Box::pin(async move { cluster.send::<ProduceRequest, _>(call, |_version| request).await });
            self.sending.push(Sending { node, orders, work });
        }
        started
    }

    /// Polls what is under way. True when anything has finished.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, answers: &mut Vec<Answer>) -> bool {
        let mut finished = self.poll_sending(context, answers);
        let mut at = 0;
        while at < self.work.len() {
            match self.work[at].as_mut().poll(context) {
                Poll::Ready(done) => {
                    drop(self.work.swap_remove(at));
                    finished = true;
                    match done {
                        Done::Produced { node, orders, result } => self.produced(node, orders, result, answers),
                        Done::Located(topic, found) => self.located(&topic, &found, answers),
                    }
                }
                Poll::Pending => at += 1,
            }
        }
        finished
    }

    fn poll_sending(&mut self, context: &mut Context<'_>, answers: &mut Vec<Answer>) -> bool {
        let mut finished = false;
        let mut at = 0;
        while at < self.sending.len() {
            let Poll::Ready(queued) = self.sending[at].work.as_mut().poll(context) else {
                at += 1;
                continue;
            };
            let Sending { node, orders, .. } = self.sending.swap_remove(at);
            finished = true;
            if let Some(lane) = self.lanes.get_mut(&node) {
                lane.sent();
            }
            match queued {
                Ok(pending) => self.work.push(Box::pin(async move {
                    let result = pending.await.map(|reply| reply.body);
                    Done::Produced { node, orders, result }
                })),
                Err(error) => {
                    self.answered(node);
                    answers.extend(orders.into_iter().map(|order| not_sent(order, &error)));
                }
            }
        }
        finished
    }

    fn answered(&mut self, node: NodeId) {
        if let Some(lane) = self.lanes.get_mut(&node) {
            lane.answered();
        }
    }

    fn located(&mut self, topic: &Arc<str>, found: &Result<bool, Error>, answers: &mut Vec<Answer>) {
        let (of_topic, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.homeless).into_iter().partition(|order| order.topic == *topic);
        self.homeless = rest;
        for order in of_topic {
            let leader = self.cluster.leader(topic, requests::wire_partition(order.partition));
            match (leader, found) {
                (Some((leader, _)), _) => self.lanes.entry(leader).or_default().push(order),
                (None, Ok(true)) => answers.push(refused(order, LEADER_NOT_AVAILABLE)),
                (None, Ok(false)) => answers.push(refused(order, UNKNOWN_TOPIC_OR_PARTITION)),
                (None, Err(error)) => answers.push(not_sent(order, error)),
            }
        }
    }

    fn produced(
        &mut self,
        node: NodeId,
        orders: Vec<Outgoing>,
        result: Result<ProduceResponse, Error>,
        answers: &mut Vec<Answer>,
    ) {
        self.answered(node);
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(%node, %error, "a Produce request was lost");
                answers.extend(orders.into_iter().map(|order| lost(order, true, &error.to_string())));
                return;
            }
        };
        self.cluster.throttle(node, Purpose::Data, response.throttle_time_ms);
        for order in orders {
            let Some(part) = requests::partition_answer(&response, &order) else {
                answers.push(lost(order, true, "the broker's answer leaves the partition out"));
                continue;
            };
            let mut leader_known = false;
            let mut words = None;
            if part.error_code != 0 {
                words = requests::broker_words(part);
                if let Some(hint) = requests::leader_hint(&response, part) {
                    let partition = requests::wire_partition(order.partition);
                    leader_known = self.cluster.leader_hint(&order.topic, partition, &hint);
                }
            }
            let fate = Fate::Answered {
                code: ErrorCode(part.error_code),
                base_offset: part.base_offset,
                log_start_offset: part.log_start_offset,
                leader_known,
                words,
            };
            answers.push(Answer { order, fate });
        }
    }
}

/// A batch that did not reach a socket.
fn not_sent(order: Outgoing, error: &Error) -> Answer {
    tracing::debug!(topic = %order.topic, partition = order.partition, %error, "a batch was not sent");
    match error {
        Error::Unsupported { .. } => refused(order, UNSUPPORTED_VERSION),
        _ => lost(order, false, &error.to_string()),
    }
}

fn lost(order: Outgoing, sent: bool, reason: &str) -> Answer {
    Answer { order, fate: Fate::Lost { sent, reason: reason.to_owned() } }
}

/// An answer that this client gives in a broker's place.
fn refused(order: Outgoing, code: ErrorCode) -> Answer {
    let fate = Fate::Answered { code, base_offset: -1, log_start_offset: -1, leader_known: false, words: None };
    Answer { order, fate }
}
