//! The driver task: the only place where the transaction machine meets sockets.
//!
//! One turn: hand the machine what came back, take its orders, start what may start, then wait for an answer, a caller or a
//! timer. It decides nothing about transactions. It does decide when the first requests of a transaction may start: while
//! the markers of the one before land ([`settle`](super::settle)), they are held.
//!
//! No request future is spawned: all of them are polled by this task, so that ending it ends them.

use super::coordinator::{self, Coordinator};
use super::counters::add;
use super::error::ProducerError;
use super::lane::Outgoing;
use super::outbound::{Answer, Fate, Outbound, Work};
use super::settle::{self, Settled};
use super::shared::{CoordinatorRequest, Order, Shared};
use crate::cluster::{Cluster, NodeId};
use crate::config::ProducerConfig;
use oncewire_txn::{Reply, RequestId};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// Runs until the machine has closed.
pub(crate) async fn run(shared: Arc<Shared>, cluster: Cluster, config: ProducerConfig) {
    let outbound = Outbound::new(cluster.clone(), Some(shared.transactional_id().clone()), config.max_in_flight);
    let mut driver = Driver {
        shared,
        cluster,
        config,
        outbound,
        coordinator: None,
        features_epoch: -1,
        held: None,
        work: Vec::new(),
        settling: None,
        replies: Vec::new(),
        answers: Vec::new(),
    };
    loop {
        let drained = driver.shared.step(driver.replies.drain(..));
        if drained.closed {
            return;
        }
        driver.take(drained.orders);
        driver.wait(drained.until).await;
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

/// What a future of the driver brings: a reply for the machine.
struct Done {
    request: RequestId,
    reply: Reply,
    news: News,
}

/// What the driver itself learns from it.
enum News {
    None,
    /// The coordinator was looked up.
    Coordinator(NodeId),
    /// This coordinator has ended a transaction, and writes its markers now.
    Landing(Coordinator),
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
    outbound: Outbound,
    coordinator: Option<NodeId>,
    /// See [`Coordinator::features_epoch`].
    features_epoch: i64,
    /// An AddPartitionsToTxn that waits for the markers: the machine has one such request open at most.
    held: Option<(RequestId, CoordinatorRequest)>,
    /// Bounded by what the machine has open: one transactional request, and a metadata look-up for each partition.
    work: Vec<Work<Done>>,
    settling: Option<Settling>,
    /// For the machine's next turn.
    replies: Vec<(RequestId, Reply)>,
    /// Scratch of one poll.
    answers: Vec<Answer>,
}

impl Driver {
    /// Carries out the machine's orders.
    fn take(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Coordinator(request, what) => self.ask_coordinator(request, what),
                Order::Produce(order) => self.outbound.push(order),
                Order::Refresh(request, topic) => self.refresh(request, topic),
                Order::Lost(request) => self.replies.push((request, Reply::Lost { sent: false })),
            }
        }
    }

    /// Waits for news: an answer, a caller, or the machine's timer.
    async fn wait(&mut self, until: Option<Instant>) {
        let shared = self.shared.clone();
        let mut woken = pin!(shared.woken());
        let mut timer = pin!(async {
            match until {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        });
        poll_fn(|context| {
            self.poll_work(context);
            let ready = !self.replies.is_empty()
                || woken.as_mut().poll(context).is_ready()
                || timer.as_mut().poll(context).is_ready();
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Polls everything that is under way until nothing more moves: what was just started has to be polled once, or nobody
    /// would wake us for it.
    fn poll_work(&mut self, context: &mut Context<'_>) {
        loop {
            let mut moved = self.poll_settling(context);
            moved |= self.start_requests();
            moved |= self.outbound.poll(context, &mut self.answers);
            self.hand_over_answers();
            let mut at = 0;
            while at < self.work.len() {
                match self.work[at].as_mut().poll(context) {
                    Poll::Ready(done) => {
                        drop(self.work.swap_remove(at));
                        self.finish(done);
                        moved = true;
                    }
                    Poll::Pending => at += 1,
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn start_requests(&mut self) -> bool {
        if let Some(settling) = &mut self.settling {
            if self.outbound.is_waiting() {
                settling.holding_since.get_or_insert_with(Instant::now);
            }
            return false;
        }
        let shared = &self.shared;
        let wanted = |order: &Outgoing| shared.holds(order.batch);
        self.outbound.start(&shared.counters, wanted, &mut self.answers)
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
        if let Some((request, what)) = self.held.take() {
            self.ask_coordinator(request, what);
        }
        true
    }

    fn hand_over_answers(&mut self) {
        for Answer { order, fate } in self.answers.drain(..) {
            let reply = match fate {
                Fate::Lost { sent, .. } => Reply::Lost { sent },
                Fate::Answered { code, base_offset, log_start_offset, leader_known, words } => {
                    if let Some(words) = words {
                        self.shared.broker_said(&order.topic, order.partition, words);
                    }
                    Reply::Produced { code, base_offset, log_start_offset, leader_known }
                }
            };
            self.replies.push((order.request, reply));
        }
    }

    fn finish(&mut self, done: Done) {
        match done.news {
            News::None => {}
            News::Coordinator(node) => self.coordinator = Some(node),
            News::Landing(coordinator) if self.shared.settle_markers() => {
                let shared = self.shared.clone();
                let work = Box::pin(async move { settle::markers_landed(&coordinator, &shared.counters).await });
                self.settling = Some(Settling { work, holding_since: None });
            }
            News::Landing(_) => {}
        }
        if matches!(done.reply, Reply::Initialized { .. } | Reply::Ended { .. }) {
            self.features_epoch = self.cluster.transaction_version().epoch;
        }
        self.replies.push((done.request, done.reply));
    }

    fn ask_coordinator(&mut self, request: RequestId, what: CoordinatorRequest) {
        if let CoordinatorRequest::AddPartitions { .. } = &what
            && let Some(settling) = &mut self.settling
        {
            settling.holding_since.get_or_insert_with(Instant::now);
            self.held = Some((request, what));
            return;
        }
        let cluster = self.cluster.clone();
        let transactional_id = self.shared.transactional_id().clone();
        let timeout = self.config.transaction_timeout;
        let Some(node) = self.coordinator.or((what == CoordinatorRequest::Find).then_some(NodeId(-1))) else {
            // The machine looks the coordinator up first; if it ever did not, this makes it do so.
            self.replies.push((request, Reply::Lost { sent: false }));
            return;
        };
        let coordinator = Coordinator { cluster, node, transactional_id, features_epoch: self.features_epoch };
        self.work.push(Box::pin(async move {
            let mut news = News::None;
            let reply = match what {
                CoordinatorRequest::Find => {
                    let (reply, found) = coordinator::find(&coordinator.cluster, &coordinator.transactional_id).await;
                    news = found.map_or(News::None, News::Coordinator);
                    reply
                }
                CoordinatorRequest::Init { current } => coordinator.init(timeout, current).await,
                CoordinatorRequest::AddPartitions { identity, partitions } => {
                    coordinator.add_partitions(identity, &partitions).await
                }
                CoordinatorRequest::End { identity, goal, protocol } => {
                    let reply = coordinator.end(identity, goal, protocol).await;
                    if matches!(&reply, Reply::Ended { code, .. } if code.is_none()) {
                        news = News::Landing(coordinator);
                    }
                    reply
                }
            };
            Done { request, reply, news }
        }));
    }

    fn refresh(&mut self, request: RequestId, topic: Arc<str>) {
        let cluster = self.cluster.clone();
        self.work.push(Box::pin(async move {
            if let Err(error) = cluster.refresh(&[&topic]).await {
                tracing::debug!(%topic, %error, "metadata was not refreshed");
            }
            Done { request, reply: Reply::Metadata, news: News::None }
        }));
    }
}
