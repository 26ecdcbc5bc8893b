//! The broker's core: one request in, an answer or a wait out. Deterministic, no clock, no sockets.
//!
//! ```text
//!   handle(now, connection, call) ──► Reply | NoReply | Close          answered at once
//!                                └──► Park ─ ─ ─ ► poll_ready()        answered by a later handle or tick
//!   tick(now) at next_deadline()                                       markers, timeouts, long polls that ran out
//! ```
//!
//! The driver hands in one request of a connection at a time and gives the next one in when that was answered, as a
//! real broker reads them. Invariant: after `handle` and `tick` nothing is due at `now`: markers are written, and
//! whoever can be answered is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kafka_protocol::messages::{ApiKey, FetchRequest, ProduceRequest, TopicName};
use uuid::Uuid;

use crate::api::{self, Call, Request, Response, fetch, join_group, produce, sync_group};
use crate::faults::{Fault, FaultScript};
use crate::groups::{Decision, Groups, Step, Ticket};
use crate::producers::Marker;
use crate::settings::BrokerSettings;
use crate::time::Timestamp;
use crate::topics::Topics;
use crate::transactions::state::{Goal, TopicPartition};
use crate::transactions::{COORDINATOR_EPOCH, Coordinator, MarkersDue};

/// A connection, numbered by the driver and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Handled {
    /// Send this.
    Reply(Response),
    /// Nothing is sent; read the next request (Produce with acks=0).
    NoReply,
    /// Close the connection.
    Close,
    /// The answer comes out of [`Broker::poll_ready`] later, or never, when a fault swallowed it.
    Park,
}

/// A request that waits.
#[derive(Debug)]
struct Parked {
    connection: ConnectionId,
    fate: AnswerFate,
    waiting: Waiting,
}

#[derive(Debug)]
enum Waiting {
    Fetch {
        version: i16,
        request: Box<FetchRequest>,
        watched: Vec<TopicPartition>,
        until: Timestamp,
    },
    Produce {
        version: i16,
        request: ProduceRequest,
        retry_at: Timestamp,
        give_up_at: Timestamp,
    },
    /// JoinGroup or SyncGroup: the group's own deadlines end it.
    Group {
        version: i16,
        ticket: Ticket,
    },
    /// A fault holds the request back.
    Request {
        call: Call,
        at: Timestamp,
    },
    /// A fault holds the answer back.
    Answer {
        handled: Box<Handled>,
        at: Timestamp,
    },
}

impl Waiting {
    fn deadline(&self) -> Option<Timestamp> {
        match self {
            Waiting::Fetch { until, .. } => Some(*until),
            Waiting::Produce { retry_at, .. } => Some(*retry_at),
            Waiting::Group { .. } => None,
            Waiting::Request { at, .. } | Waiting::Answer { at, .. } => Some(*at),
        }
    }
}

/// What a fault does to an answer once there is one.
#[derive(Debug, Clone, Copy)]
enum AnswerFate {
    Send,
    Close,
    Swallow,
    Delay(Duration),
}

/// Served at once, or to be parked.
enum Outcome {
    Done(Handled),
    Wait(Waiting),
}

/// The broker without its sockets.
#[derive(Debug)]
pub struct Broker {
    pub(crate) settings: BrokerSettings,
    pub(crate) topics: Topics,
    pub(crate) coordinator: Coordinator,
    pub(crate) groups: Groups,
    /// Bytes of all logs, against `log_bytes_max`.
    pub(crate) log_bytes: u64,
    /// Partitions whose readable data or existence changed since waiting fetches were last looked at.
    pub(crate) changed: Vec<TopicPartition>,
    faults: FaultScript,
    parked: BTreeMap<u64, Parked>,
    next_parked: u64,
    ready: VecDeque<(ConnectionId, Handled)>,
}

impl Broker {
    /// An empty broker.
    pub fn new(settings: BrokerSettings) -> Self {
        Self {
            settings,
            topics: Topics::default(),
            coordinator: Coordinator::new(),
            groups: Groups::default(),
            log_bytes: 0,
            changed: Vec::new(),
            faults: FaultScript::default(),
            parked: BTreeMap::new(),
            next_parked: 0,
            ready: VecDeque::new(),
        }
    }

    /// Serves one request. `now` must not go back.
    pub fn handle(&mut self, now: Timestamp, connection: ConnectionId, call: Call) -> Handled {
        self.coordinator.expect_scan(now, self.settings.transaction_scan_interval);
        self.write_due_markers(now);
        let handled = match self.faults.next(call.api) {
            None => self.begin(now, connection, call, AnswerFate::Send),
            Some(Fault::Answer(code)) => Handled::Reply(call.refuse(code)),
            Some(Fault::CloseBefore) => Handled::Close,
            Some(Fault::CloseAfter) => self.begin(now, connection, call, AnswerFate::Close),
            Some(Fault::Swallow) => self.begin(now, connection, call, AnswerFate::Swallow),
            Some(Fault::DelayAnswer(delay)) => self.begin(now, connection, call, AnswerFate::Delay(delay)),
            Some(Fault::DelayRequest(delay)) => {
                self.park(connection, AnswerFate::Send, Waiting::Request { call, at: now + delay })
            }
        };
        self.settle(now);
        handled
    }

    /// Does what time alone brings about: markers, timeouts, expiry, waits that ran out.
    pub fn tick(&mut self, now: Timestamp) {
        if self.coordinator.scan(now, &self.settings) {
            let idle_max = self.settings.producer_id_expiration;
            for partition in self.topics.partitions_mut() {
                partition.producers.expire(now, idle_max, self.settings.producers_per_partition_max);
            }
        }
        self.groups.tick(now);
        self.settle(now);
    }

    /// When [`Self::tick`] has something to do next, unless a request changes it.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let waits = self.parked.values().filter_map(|parked| parked.waiting.deadline()).min();
        [waits, self.coordinator.next_deadline(), self.groups.next_deadline()].into_iter().flatten().min()
    }

    /// The next parked request that was decided. Drain it after every [`Self::handle`] and [`Self::tick`].
    pub fn poll_ready(&mut self) -> Option<(ConnectionId, Handled)> {
        self.ready.pop_front()
    }

    /// The connection is gone. Its long poll is forgotten; a request that a fault or the markers hold back is still
    /// done.
    pub fn disconnect(&mut self, connection: ConnectionId) {
        self.parked.retain(|_, parked| {
            parked.connection != connection
                || !matches!(parked.waiting, Waiting::Fetch { .. } | Waiting::Group { .. } | Waiting::Answer { .. })
        });
        self.ready.retain(|(owner, _)| *owner != connection);
    }

    /// Lets the `nth` request of this API from now on (1 is the next) suffer a fault.
    pub fn inject_fault(&mut self, api: ApiKey, nth: u64, fault: Fault) {
        self.faults.inject(api, nth, fault);
    }

    /// Drops the faults that have not come about.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Requests of this API so far.
    pub fn requests(&self, api: ApiKey) -> u64 {
        self.faults.requests(api)
    }

    /// What the members of a group said of themselves, in the protocol that was chosen, when they joined last.
    pub fn member_metadata(&self, group_id: &str) -> Vec<bytes::Bytes> {
        self.groups.metadata(group_id)
    }

    /// Bytes of record batches kept in memory.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Removes a topic wherever it is known; returns its id.
    pub(crate) fn delete_topic(&mut self, name: &TopicName) -> Option<Uuid> {
        let topic = self.topics.delete(name)?;
        self.coordinator.forget_topic(name);
        for (partition, index) in topic.partitions.iter().zip(0..) {
            self.log_bytes = self.log_bytes.saturating_sub(partition.log.bytes());
            self.changed.push(TopicPartition { topic: name.clone(), partition: index });
        }
        Some(topic.id)
    }

    fn begin(&mut self, now: Timestamp, connection: ConnectionId, call: Call, fate: AnswerFate) -> Handled {
        match self.run(now, call) {
            Outcome::Done(handled) => self.finish(now, connection, fate, handled),
            Outcome::Wait(waiting) => self.park(connection, fate, waiting),
        }
    }

    fn run(&mut self, now: Timestamp, call: Call) -> Outcome {
        if let Some(response) = api::serve(self, now, call.version, &call.request) {
            return Outcome::Done(Handled::Reply(response));
        }
        match call.request {
            Request::Produce(request) => {
                let give_up_at = now + self.settings.add_partitions_retry_max;
                self.run_produce(now, call.version, request, give_up_at)
            }
            Request::Fetch(request) => self.run_fetch(now, call.version, request),
            Request::JoinGroup(request) => {
                let step = join_group::attempt(self, now, call.version, &request);
                group_outcome(call.version, step)
            }
            Request::SyncGroup(request) => {
                let step = sync_group::attempt(self, now, &request);
                group_outcome(call.version, step)
            }
            // `serve` answers all others.
            _ => Outcome::Done(Handled::Close),
        }
    }

    fn run_produce(&mut self, now: Timestamp, version: i16, request: ProduceRequest, give_up_at: Timestamp) -> Outcome {
        match produce::attempt(self, now, version, &request, now >= give_up_at) {
            produce::Produced::Answer(response) => Outcome::Done(Handled::Reply(Response::Produce(response))),
            produce::Produced::NoAnswer => Outcome::Done(Handled::NoReply),
            produce::Produced::Close => Outcome::Done(Handled::Close),
            produce::Produced::MarkersPending => {
                let retry_at = (now + self.settings.add_partitions_retry_backoff).min(give_up_at);
                Outcome::Wait(Waiting::Produce { version, request, retry_at, give_up_at })
            }
        }
    }

    fn run_fetch(&mut self, now: Timestamp, version: i16, request: Box<FetchRequest>) -> Outcome {
        let wait_ms = u64::try_from(request.max_wait_ms).unwrap_or(0);
        let wait = Duration::from_millis(wait_ms).min(self.settings.fetch_wait_max);
        if wait.is_zero() || fetch::is_ready(self, version, &request) {
            return Outcome::Done(Handled::Reply(Response::Fetch(fetch::answer(self, version, &request))));
        }
        let watched = fetch::watched(self, version, &request);
        Outcome::Wait(Waiting::Fetch { version, request, watched, until: now + wait })
    }

    fn park(&mut self, connection: ConnectionId, fate: AnswerFate, waiting: Waiting) -> Handled {
        self.parked.insert(self.next_parked, Parked { connection, fate, waiting });
        self.next_parked += 1;
        Handled::Park
    }

    fn finish(&mut self, now: Timestamp, connection: ConnectionId, fate: AnswerFate, handled: Handled) -> Handled {
        match fate {
            AnswerFate::Send => handled,
            AnswerFate::Close => Handled::Close,
            AnswerFate::Swallow => Handled::Park,
            AnswerFate::Delay(delay) => {
                let waiting = Waiting::Answer { handled: Box::new(handled), at: now + delay };
                self.park(connection, AnswerFate::Send, waiting)
            }
        }
    }

    /// Writes what is due and wakes whoever can be answered, until nothing moves.
    fn settle(&mut self, now: Timestamp) {
        loop {
            self.write_due_markers(now);
            let changed = std::mem::take(&mut self.changed);
            self.answer_groups(now);
            let woken = self.wakeable(now, &changed);
            if woken.is_empty() && self.changed.is_empty() {
                return;
            }
            for parked in woken {
                self.resume(now, parked);
            }
        }
    }

    fn write_due_markers(&mut self, now: Timestamp) {
        for due in self.coordinator.markers_due(now) {
            self.write_markers(now, &due);
            self.coordinator.markers_written(now, &due.transactional_id);
        }
    }

    fn write_markers(&mut self, now: Timestamp, due: &MarkersDue) {
        let marker = Marker {
            producer_id: due.producer.id,
            epoch: due.producer.epoch,
            coordinator_epoch: COORDINATOR_EPOCH,
            commit: due.goal == Goal::Commit,
        };
        for at in &due.partitions {
            // A topic that was deleted in between takes no marker.
            let Some(partition) = self.topics.partition_mut(at) else { continue };
            let before = partition.log.bytes();
            match partition.append_marker(now, &marker) {
                Ok(_) => {
                    self.log_bytes += partition.log.bytes() - before;
                    self.changed.push(at.clone());
                }
                Err(code) => {
                    let (topic, partition) = (at.topic.as_str(), at.partition);
                    tracing::warn!(topic, partition, %code, producer_id = marker.producer_id, "marker not written");
                }
            }
        }
    }

    /// Answers the waiting members of groups that came to a decision. Whose connection is gone is not there any more.
    fn answer_groups(&mut self, now: Timestamp) {
        for (decided, decision) in self.groups.take_decided() {
            let found = self.parked.iter().find_map(|(number, parked)| match parked.waiting {
                Waiting::Group { version, ticket } if ticket == decided => Some((*number, version)),
                _ => None,
            });
            let Some((number, version)) = found else { continue };
            let Some(Parked { connection, fate, .. }) = self.parked.remove(&number) else { continue };
            let reply = Handled::Reply(group_response(version, decision));
            let handled = self.finish(now, connection, fate, reply);
            if handled != Handled::Park {
                self.ready.push_back((connection, handled));
            }
        }
    }

    fn wakeable(&mut self, now: Timestamp, changed: &[TopicPartition]) -> Vec<Parked> {
        let ready: Vec<u64> = self
            .parked
            .iter()
            .filter(|(_, parked)| match &parked.waiting {
                waiting if waiting.deadline().is_some_and(|deadline| deadline <= now) => true,
                Waiting::Fetch { version, request, watched, .. } => {
                    changed.iter().any(|at| watched.contains(at)) && fetch::is_ready(self, *version, request)
                }
                Waiting::Produce { .. } | Waiting::Group { .. } | Waiting::Request { .. } | Waiting::Answer { .. } => {
                    false
                }
            })
            .map(|(number, _)| *number)
            .collect();
        ready.into_iter().filter_map(|number| self.parked.remove(&number)).collect()
    }

    fn resume(&mut self, now: Timestamp, parked: Parked) {
        let Parked { connection, fate, waiting } = parked;
        let outcome = match waiting {
            Waiting::Fetch { version, request, .. } => {
                Outcome::Done(Handled::Reply(Response::Fetch(fetch::answer(self, version, &request))))
            }
            Waiting::Produce { version, request, give_up_at, .. } => {
                self.run_produce(now, version, request, give_up_at)
            }
            // Answered by its group, never woken.
            waiting @ Waiting::Group { .. } => Outcome::Wait(waiting),
            Waiting::Request { call, .. } => self.run(now, call),
            Waiting::Answer { handled, .. } => Outcome::Done(*handled),
        };
        let handled = match outcome {
            Outcome::Done(handled) => self.finish(now, connection, fate, handled),
            Outcome::Wait(waiting) => self.park(connection, fate, waiting),
        };
        if handled != Handled::Park {
            self.ready.push_back((connection, handled));
        }
    }
}

fn group_outcome(version: i16, step: Step) -> Outcome {
    match step {
        Step::Now(decision) => Outcome::Done(Handled::Reply(group_response(version, decision))),
        Step::Wait(ticket) => Outcome::Wait(Waiting::Group { version, ticket }),
    }
}

fn group_response(version: i16, decision: Decision) -> Response {
    match decision {
        Decision::Join(decided) => Response::JoinGroup(join_group::answer(version, decided)),
        Decision::Sync(decided) => Response::SyncGroup(sync_group::answer(decided)),
    }
}

#[cfg(test)]
mod tests;
