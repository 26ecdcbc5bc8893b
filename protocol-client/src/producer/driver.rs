//! The driver task: the only place where the transaction machine meets sockets.
//!
//! One turn: hand the machine what came back, take its orders, start what may start, then wait for an answer, a caller or a
//! timer. It decides nothing about transactions. What it does decide is the order on the wire: batches for one leader go
//! through that leader's [`Lane`], one request at a time into the connection, several unanswered; while the markers of the
//! last transaction land ([`settle`](super::settle)), the next one's first requests are held.
//!
//! No request future is spawned: all of them are polled by this task, so that ending it ends them.

use super::counters::add;
use super::error::ProducerError;
use super::lane::Lane;
use super::requests::{self, LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION, UNSUPPORTED_VERSION};
use super::settle::{self, Settled};
use super::shared::{CoordinatorRequest, Order, ProduceOrder, Shared};
use crate::cluster::{Call, Cluster, CoordinatorKind, NodeId, Purpose, Target, Versions};
use crate::config::ProducerConfig;
use crate::error::Error;
use crate::net::Pending;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest, ProduceResponse,
};
use kafka_protocol::protocol::Request;
use oncewire_txn::{ErrorCode, ProducerIdentity, Protocol, Reply, RequestId};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Finalized level of `transaction.version` from which transactions V2 are in force.
const TRANSACTIONS_V2: i16 = 2;

/// Runs until the machine has closed.
pub(crate) async fn run(shared: Arc<Shared>, cluster: Cluster, config: ProducerConfig) {
    let mut driver = Driver {
        shared,
        cluster,
        config,
        coordinator: None,
        lanes: HashMap::new(),
        homeless: Vec::new(),
        held: Vec::new(),
        sending: Vec::new(),
        work: Vec::new(),
        settling: None,
    };
    let mut replies = Vec::new();
    loop {
        let drained = driver.shared.step(replies.drain(..));
        if drained.closed {
            return;
        }
        driver.turn(drained.orders);
        replies = driver.wait(drained.until).await;
    }
}

/// The number of a topic's partitions.
pub(crate) async fn partition_count(cluster: &Cluster, topic: &str) -> Result<u32, ProducerError> {
    let unknown = |reason: String| ProducerError::Metadata { topic: topic.into(), reason };
    match cluster.topic(topic).await {
        Ok(Some(metadata)) => Ok(u32::try_from(metadata.partitions.len()).unwrap_or(u32::MAX)),
        Ok(None) => Err(unknown("the topic does not exist; create it, or check its name".to_owned())),
        Err(error) => Err(unknown(error.to_string())),
    }
}

/// What a future of the driver brings.
enum Done {
    /// Answers for the machine.
    Replies(Vec<(RequestId, Reply)>),
    /// The coordinator was looked up.
    Coordinator(RequestId, Result<NodeId, Error>),
    /// An EndTxn was answered by this node; with `landing` its markers are on their way.
    Ended { request: RequestId, reply: Reply, node: NodeId, landing: bool },
    /// A Produce request was answered or lost.
    Produced { node: NodeId, orders: Vec<ProduceOrder>, result: Result<ProduceResponse, Error> },
    /// Metadata of a topic was looked up for batches that had no leader.
    Located(Arc<str>, Result<bool, Error>),
}

/// A request that is being given to its connection.
struct Sending {
    node: NodeId,
    orders: Vec<ProduceOrder>,
    work: Work<Result<Pending<ProduceResponse>, Error>>,
}

/// The first requests of a transaction wait for this.
struct Settling {
    work: Work<Settled>,
    /// Since when something was held back by it.
    holding_since: Option<Instant>,
}

struct Driver {
    shared: Arc<Shared>,
    cluster: Cluster,
    config: ProducerConfig,
    coordinator: Option<NodeId>,
    lanes: HashMap<NodeId, Lane>,
    /// Batches whose leader is being looked up, in order.
    homeless: Vec<ProduceOrder>,
    /// AddPartitionsToTxn that waits for the markers. One at most: the machine has one such request open.
    held: Vec<(RequestId, CoordinatorRequest)>,
    sending: Vec<Sending>,
    /// Bounded by what the machine has open: one transactional request, five requests per leader, one look-up per topic.
    work: Vec<Work<Done>>,
    settling: Option<Settling>,
}

impl Driver {
    /// Carries out orders and starts what may start.
    fn turn(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Coordinator(request, what) => self.ask_coordinator(request, what),
                Order::Produce(order) => self.route(order),
                Order::Refresh(request, topic) => self.refresh(request, topic),
                Order::Lost(request) => self.lose(vec![request]),
            }
        }
        self.start_requests();
    }

    /// Waits for news: an answer, a caller, or the machine's timer.
    async fn wait(&mut self, until: Option<Instant>) -> Vec<(RequestId, Reply)> {
        let shared = self.shared.clone();
        let mut woken = pin!(shared.woken());
        let mut timer = pin!(async {
            match until {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        });
        let mut replies = Vec::new();
        poll_fn(|context| {
            let progressed = self.poll_work(context, &mut replies);
            if progressed || woken.as_mut().poll(context).is_ready() || timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
        replies
    }

    /// Polls everything that is under way. True when the machine should look again.
    fn poll_work(&mut self, context: &mut Context<'_>, replies: &mut Vec<(RequestId, Reply)>) -> bool {
        let mut news = false;
        loop {
            let mut again = self.poll_settling(context);
            again |= self.poll_sending(context, replies, &mut news);
            let mut at = 0;
            while at < self.work.len() {
                match self.work[at].as_mut().poll(context) {
                    Poll::Ready(done) => {
                        drop(self.work.swap_remove(at));
                        self.finish(done, replies);
                        news = true;
                        again = true;
                    }
                    Poll::Pending => at += 1,
                }
            }
            // A finished piece may have made room for the next; what it starts has to be polled once to be woken.
            again |= self.start_requests();
            if !again {
                return news;
            }
        }
    }

    fn poll_settling(&mut self, context: &mut Context<'_>) -> bool {
        let Some(settling) = &mut self.settling else { return false };
        let Poll::Ready(settled) = settling.work.as_mut().poll(context) else { return false };
        if let Some(since) = settling.holding_since {
            let counters = &self.shared.counters;
            add(&counters.marker_holds, 1);
            add(&counters.marker_hold_micros, u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        self.settling = None;
        match settled {
            Settled::Landed => {}
            Settled::GaveUp => add(&self.shared.counters.marker_give_ups, 1),
            Settled::Refused => self.shared.stop_settling_markers(),
        }
        for (request, what) in std::mem::take(&mut self.held) {
            self.ask_coordinator(request, what);
        }
        true
    }

    fn poll_sending(
        &mut self,
        context: &mut Context<'_>,
        replies: &mut Vec<(RequestId, Reply)>,
        news: &mut bool,
    ) -> bool {
        let mut again = false;
        let mut at = 0;
        while at < self.sending.len() {
            let Poll::Ready(queued) = self.sending[at].work.as_mut().poll(context) else {
                at += 1;
                continue;
            };
            let Sending { node, orders, .. } = self.sending.swap_remove(at);
            again = true;
            if let Some(lane) = self.lanes.get_mut(&node) {
                lane.sent();
            }
            match queued {
                Ok(pending) => self.work.push(Box::pin(async move {
                    let result = pending.await.map(|reply| reply.body);
                    Done::Produced { node, orders, result }
                })),
                Err(error) => {
                    *news = true;
                    self.answered(node);
                    replies.extend(orders.iter().map(|order| (order.request, not_sent(&error))));
                }
            }
        }
        again
    }

    fn finish(&mut self, done: Done, replies: &mut Vec<(RequestId, Reply)>) {
        match done {
            Done::Replies(more) => replies.extend(more),
            Done::Coordinator(request, Ok(node)) => {
                self.coordinator = Some(node);
                replies.push((request, Reply::Coordinator(ErrorCode(0))));
            }
            Done::Coordinator(request, Err(error)) => {
                tracing::debug!(%error, "the transaction coordinator was not found");
                let reply = match error.code() {
                    Some(code) => Reply::Coordinator(ErrorCode(code)),
                    None => Reply::Lost { sent: false },
                };
                replies.push((request, reply));
            }
            Done::Ended { request, reply, node, landing } => {
                if landing && self.shared.settle_markers() {
                    self.settle(node);
                }
                replies.push((request, reply));
            }
            Done::Produced { node, orders, result } => {
                self.answered(node);
                self.produced(node, &orders, result, replies);
            }
            Done::Located(topic, result) => self.located(&topic, &result, replies),
        }
    }

    fn ask_coordinator(&mut self, request: RequestId, what: CoordinatorRequest) {
        if let CoordinatorRequest::AddPartitions { .. } = &what
            && let Some(settling) = &mut self.settling
        {
            settling.holding_since.get_or_insert_with(Instant::now);
            self.held.push((request, what));
            return;
        }
        let cluster = self.cluster.clone();
        let id = self.shared.transactional_id().clone();
        let timeout = self.config.transaction_timeout;
        let node = match (&what, self.coordinator) {
            (CoordinatorRequest::Find, _) => {
                self.work.push(Box::pin(async move {
                    cluster.forget_coordinator(CoordinatorKind::Transaction, &id);
                    Done::Coordinator(request, cluster.coordinator(CoordinatorKind::Transaction, &id).await)
                }));
                return;
            }
            (_, Some(node)) => node,
            (_, None) => {
                // The machine looks the coordinator up first; if it ever did not, this makes it do so.
                self.lose(vec![request]);
                return;
            }
        };
        self.work.push(Box::pin(async move {
            match what {
                CoordinatorRequest::Find => Done::Replies(Vec::new()),
                CoordinatorRequest::Init { current } => {
                    Done::Replies(vec![(request, init(&cluster, node, &id, timeout, current).await)])
                }
                CoordinatorRequest::AddPartitions { identity, partitions } => {
                    let asked = call::<AddPartitionsToTxnRequest>(
                        &cluster,
                        coordinator_call(node, requests::ADD_PARTITIONS_VERSIONS),
                        requests::add_partitions(&id, identity, &partitions),
                    );
                    let reply = match asked.await {
                        Ok((response, _)) => {
                            requests::partitions_added(&response, &partitions).unwrap_or(Reply::Lost { sent: true })
                        }
                        Err(AnswerLost::Unsupported) => Reply::PartitionsAdded(
                            partitions.iter().map(|(index, _, _)| (*index, UNSUPPORTED_VERSION)).collect(),
                        ),
                        Err(AnswerLost::Lost { sent }) => Reply::Lost { sent },
                    };
                    Done::Replies(vec![(request, reply)])
                }
                CoordinatorRequest::End { identity, goal, protocol } => {
                    let asked = call::<EndTxnRequest>(
                        &cluster,
                        coordinator_call(node, requests::end_versions(protocol)),
                        requests::end(&id, identity, goal),
                    );
                    match asked.await {
                        Ok((response, version)) => {
                            let next = requests::next_identity(&response, version);
                            let code = ErrorCode(response.error_code);
                            let protocol = negotiated(&cluster, node).await.unwrap_or(protocol);
                            Done::Ended {
                                request,
                                reply: Reply::Ended { code, next, protocol },
                                node,
                                landing: code.0 == 0,
                            }
                        }
                        Err(AnswerLost::Unsupported) => {
                            let reply = Reply::Ended { code: UNSUPPORTED_VERSION, next: None, protocol };
                            Done::Replies(vec![(request, reply)])
                        }
                        Err(AnswerLost::Lost { sent }) => Done::Replies(vec![(request, Reply::Lost { sent })]),
                    }
                }
            }
        }));
    }

    fn settle(&mut self, node: NodeId) {
        let shared = self.shared.clone();
        let cluster = self.cluster.clone();
        let work = Box::pin(async move {
            settle::markers_landed(&cluster, node, shared.transactional_id(), &shared.counters).await
        });
        self.settling = Some(Settling { work, holding_since: None });
    }

    fn refresh(&mut self, request: RequestId, topic: Arc<str>) {
        let cluster = self.cluster.clone();
        self.work.push(Box::pin(async move {
            if let Err(error) = cluster.refresh(&[&topic]).await {
                tracing::debug!(%topic, %error, "metadata was not refreshed");
            }
            Done::Replies(vec![(request, Reply::Metadata)])
        }));
    }

    /// Puts a batch into its leader's lane, or looks the leader up first.
    fn route(&mut self, order: ProduceOrder) {
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

    fn located(&mut self, topic: &Arc<str>, found: &Result<bool, Error>, replies: &mut Vec<(RequestId, Reply)>) {
        let (of_topic, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.homeless).into_iter().partition(|order| order.topic == *topic);
        self.homeless = rest;
        for order in of_topic {
            let leader = self.cluster.leader(topic, requests::wire_partition(order.partition));
            match (leader, found) {
                (Some((leader, _)), _) => self.lanes.entry(leader).or_default().push(order),
                (None, Ok(true)) => replies.push((order.request, refused(LEADER_NOT_AVAILABLE))),
                (None, Ok(false)) => replies.push((order.request, refused(UNKNOWN_TOPIC_OR_PARTITION))),
                (None, Err(error)) => replies.push((order.request, not_sent(error))),
            }
        }
    }

    /// Answers requests that will not be sent.
    fn lose(&mut self, requests: Vec<RequestId>) {
        self.work.push(Box::pin(async move {
            Done::Replies(requests.into_iter().map(|request| (request, Reply::Lost { sent: false })).collect())
        }));
    }

    /// Starts what may start. True when there is something new to poll.
    fn start_requests(&mut self) -> bool {
        let before = self.sending.len() + self.work.len();
        let mut stale = Vec::new();
        for (node, lane) in &mut self.lanes {
            if let Some(settling) = &mut self.settling {
                if lane.is_waiting() {
                    settling.holding_since.get_or_insert_with(Instant::now);
                }
                continue;
            }
            // A batch that was dropped while it waited here must not turn up in a later transaction.
            stale.extend(lane.remove(|order| !self.shared.holds(order.batch)));
            let Some(orders) = lane.start(self.config.max_in_flight) else { continue };
            add(&self.shared.counters.requests, 1);
            let (cluster, node) = (self.cluster.clone(), *node);
            let protocol = orders.first().map_or(Protocol::Explicit, |order| order.protocol);
            let timeout = self.cluster.config().request_timeout;
            let request = requests::produce(self.shared.transactional_id(), timeout, &orders);
            let call = Call {
                target: Target::Node(node),
                purpose: Purpose::Data,
                versions: requests::produce_versions(protocol),
                timeout: None,
            };
            let work = Box::pin(async move { cluster.send::<ProduceRequest, _>(call, |_version| request).await });
            self.sending.push(Sending { node, orders, work });
        }
        if !stale.is_empty() {
            self.lose(stale);
        }
        self.sending.len() + self.work.len() > before
    }

    fn answered(&mut self, node: NodeId) {
        if let Some(lane) = self.lanes.get_mut(&node) {
            lane.answered();
        }
    }

    fn produced(
        &mut self,
        node: NodeId,
        orders: &[ProduceOrder],
        result: Result<ProduceResponse, Error>,
        replies: &mut Vec<(RequestId, Reply)>,
    ) {
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(%node, %error, "a Produce request was lost");
                replies.extend(orders.iter().map(|order| (order.request, Reply::Lost { sent: true })));
                return;
            }
        };
        self.cluster.throttle(node, Purpose::Data, response.throttle_time_ms);
        for order in orders {
            let Some(answer) = requests::partition_answer(&response, order) else {
                replies.push((order.request, Reply::Lost { sent: true }));
                continue;
            };
            let mut leader_known = false;
            if answer.error_code != 0 {
                if let Some(hint) = requests::leader_hint(&response, answer) {
                    let partition = requests::wire_partition(order.partition);
                    leader_known = self.cluster.leader_hint(&order.topic, partition, &hint);
                }
                if let Some(words) = requests::broker_words(answer) {
                    self.shared.broker_said(&order.topic, order.partition, words);
                }
            }
            let reply = Reply::Produced {
                code: ErrorCode(answer.error_code),
                base_offset: answer.base_offset,
                log_start_offset: answer.log_start_offset,
                leader_known,
            };
            replies.push((order.request, reply));
        }
    }
}

/// Why no answer can be given to the machine.
enum AnswerLost {
    /// Client and broker share no version of the request.
    Unsupported,
    /// It did not come; see [`Reply::Lost`].
    Lost { sent: bool },
}

async fn call<Q: Request>(cluster: &Cluster, call: Call, request: Q) -> Result<(Q::Response, i16), AnswerLost> {
    let pending = match cluster.send::<Q, _>(call, |_version| request).await {
        Ok(pending) => pending,
        Err(error) => {
            tracing::debug!(%error, "a request to the coordinator was not sent");
            return Err(match error {
                Error::Unsupported { .. } => AnswerLost::Unsupported,
                _ => AnswerLost::Lost { sent: false },
            });
        }
    };
    match pending.await {
        Ok(reply) => Ok((reply.body, reply.version)),
        Err(error) => {
            tracing::debug!(%error, "the coordinator's answer was lost");
            Err(AnswerLost::Lost { sent: true })
        }
    }
}

async fn init(
    cluster: &Cluster,
    node: NodeId,
    transactional_id: &str,
    timeout: Duration,
    current: Option<ProducerIdentity>,
) -> Reply {
    let asked = call::<InitProducerIdRequest>(
        cluster,
        coordinator_call(node, requests::INIT_VERSIONS),
        requests::init(transactional_id, timeout, current),
    );
    let (code, identity) = match asked.await {
        Ok((response, _)) => (
            ErrorCode(response.error_code),
            ProducerIdentity { id: response.producer_id.0, epoch: response.producer_epoch },
        ),
        Err(AnswerLost::Unsupported) => (UNSUPPORTED_VERSION, ProducerIdentity { id: -1, epoch: -1 }),
        Err(AnswerLost::Lost { sent }) => return Reply::Lost { sent },
    };
    match negotiated(cluster, node).await {
        Some(protocol) => Reply::Initialized { code, identity, protocol },
        // The connection went away between the answer and this question. Asking again is safe: the epoch rises once more.
        None => Reply::Lost { sent: true },
    }
}

/// Which generation of the protocol to use: V2 only when the cluster has finalized it and the versions are there.
async fn negotiated(cluster: &Cluster, coordinator: NodeId) -> Option<Protocol> {
    if cluster.transaction_version().level < TRANSACTIONS_V2 {
        return Some(Protocol::Explicit);
    }
    let call = coordinator_call(coordinator, Versions::ANY);
    let end = cluster.version::<EndTxnRequest>(call).await.ok()?;
    let produce = cluster.version::<ProduceRequest>(call).await.ok()?;
    let implicit = end >= 5 && produce >= 12;
    Some(if implicit { Protocol::Implicit } else { Protocol::Explicit })
}

fn coordinator_call(node: NodeId, versions: Versions) -> Call {
    Call { target: Target::Node(node), purpose: Purpose::Coordinator, versions, timeout: None }
}

/// A Produce that did not reach a socket.
fn not_sent(error: &Error) -> Reply {
    tracing::debug!(%error, "a Produce request was not sent");
    match error {
        Error::Unsupported { .. } => refused(UNSUPPORTED_VERSION),
        _ => Reply::Lost { sent: false },
    }
}

fn refused(code: ErrorCode) -> Reply {
    Reply::Produced { code, base_offset: -1, log_start_offset: -1, leader_known: false }
}
