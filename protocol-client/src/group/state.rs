//! The member as a pure state machine: no socket, no clock, no task. The driver hands in one input, then carries out
//! what [`Machine::poll_output`] gives; whoever owns the member takes [`Machine::poll_event`].
//!
//! ```text
//!          next()             coordinator known,            offer()              answered
//!  Idle ──────────► Waiting ───────────────────► Offering ─────────► Joining ─────────────┐
//!   ▲                  ▲      pause over                                │ leads           │
//!   │ left,            │                                                ▼                 ▼
//!   │ poll timeout     │ refused, rebalance,                         Leading ──────► Syncing ──► Stable
//!   │                  │ rejoin, lost                                    assign()                  │
//!   └── Leaving        └───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Beside it runs the look-up of the coordinator: whatever needs one waits until it is known. Heartbeats go on in every
//! state that has a generation but Joining, where the coordinator waits for us and not for a sign of life.
//!
//! Invariants: at most one JoinGroup or SyncGroup is under way, and one heartbeat, and one look-up; an answer whose
//! ticket nobody holds is of the past and ignored. An assignment that was told is told to be lost before the next offer
//! is asked for, unless the member keeps it. Time and chance are arguments; time never goes back.
//!
//! Source: KIP-62 (background heartbeats, rebalance timeout), KIP-394 (MEMBER_ID_REQUIRED), KIP-800 (reasons).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{GroupConfig, GroupEvent, Lost, Protocol};
use crate::cluster::{Backoff, NodeId};
use crate::error::Error;

pub(super) const NO_GENERATION: i32 = -1;
/// The coordinator refuses longer reasons (KIP-800 leaves the limit to the client).
pub(super) const REASON_CHARS_MAX: usize = 255;

/// Ties an answer to its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// What the driver shall ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    FindCoordinator,
    Join { node: NodeId, member_id: String, protocols: Vec<Protocol>, reason: String },
    Sync { node: NodeId, member_id: String, generation: i32, protocol: String, assignments: Vec<(String, Bytes)> },
    Heartbeat { node: NodeId, member_id: String, generation: i32 },
    Leave { node: NodeId, member_id: String, reason: String },
}

/// What the driver shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Output {
    Send {
        ticket: Ticket,
        request: Request,
    },
    /// A request that is parked at the broker, or stuck: what its connection still brings is of no use, and nothing may
    /// queue behind it.
    Abandon(Ticket),
}

/// An answer without error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Found(NodeId),
    /// MEMBER_ID_REQUIRED: join again with this id.
    Named(String),
    Joined(Joined),
    Synced(Bytes),
    Alive,
    Left,
}

/// What JoinGroup gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) generation: i32,
    pub(super) protocol: String,
    pub(super) member_id: String,
    pub(super) leader_id: String,
    /// Of all members; empty unless we lead.
    pub(super) members: Vec<(String, Bytes)>,
}

/// Where the member stands. Each variant has what is valid in it alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody asked for the next event since the start, or since it left.
    Idle,
    /// Wants to join; a pause or the coordinator is in the way.
    Waiting { not_before: Instant, cause: String },
    /// Waits for the protocols. An answer counts only once the question was told.
    Offering { cause: String, is_told: bool },
    /// JoinGroup is under way.
    Joining { ticket: Ticket, protocols: Vec<Protocol> },
    /// We lead, and wait for the assignments.
    Leading { joined: Joined, is_told: bool },
    /// SyncGroup is under way.
    Syncing { ticket: Ticket, protocol: String, leader_id: String },
    /// In the group, with an assignment.
    Stable,
    /// LeaveGroup is due or under way.
    Leaving { ticket: Option<Ticket>, reason: String, deadline: Instant },
}

#[derive(Debug, Clone)]
pub(super) enum Coordinator {
    Known(NodeId),
    Unknown { since: Instant, ticket: Option<Ticket>, retry_at: Instant },
}

/// The sign of life to the coordinator.
#[derive(Debug, Clone)]
pub(super) struct Beat {
    /// The one under way, and when it was sent.
    pub(super) under_way: Option<(Ticket, Instant)>,
    pub(super) next_at: Instant,
}

/// The state machine of one member.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) config: GroupConfig,
    pub(super) backoff: Backoff,
    pub(super) state: State,
    pub(super) coordinator: Coordinator,
    pub(super) member_id: String,
    pub(super) generation: i32,
    pub(super) beat: Beat,
    /// Until when the coordinator is sure to count us as alive.
    pub(super) session_until: Instant,
    /// When the owner last asked for the next event.
    pub(super) alive_at: Instant,
    /// Whether the owner has an assignment, or is about to be told one.
    pub(super) holds: bool,
    /// A rebalance asked for too late for the join under way.
    pub(super) rejoin: Option<String>,
    pub(super) join_failures: u32,
    pub(super) lookup_failures: u32,
    /// What the last look-up met.
    pub(super) lookup_error: Option<Error>,
    // Events that were not taken yet: one of each kind at most.
    pub(super) lost: Option<Lost>,
    pub(super) assigned: Option<GroupEvent>,
    pub(super) failed: Option<Error>,
    /// No more than one of each kind of request, and one to abandon.
    pub(super) outputs: VecDeque<Output>,
    pub(super) tickets: u64,
}

impl Machine {
    pub(super) fn new(config: GroupConfig, backoff: Backoff, now: Instant) -> Self {
        Self {
            config,
            backoff,
            state: State::Idle,
            coordinator: Coordinator::Unknown { since: now, ticket: None, retry_at: now },
            member_id: String::new(),
            generation: NO_GENERATION,
            beat: Beat { under_way: None, next_at: now },
            session_until: now,
            alive_at: now,
            holds: false,
            rejoin: None,
            join_failures: 0,
            lookup_failures: 0,
            lookup_error: None,
            lost: None,
            assigned: None,
            failed: None,
            outputs: VecDeque::new(),
            tickets: 0,
        }
    }

    /// The owner waits for the next event: its sign of life.
    pub(super) fn handle_polled(&mut self, now: Instant) {
        self.alive_at = now;
        if self.state == State::Idle {
            self.wait(now, "joining the group");
        }
        self.step(now);
    }

    pub(super) fn handle_offer(&mut self, now: Instant, protocols: Vec<Protocol>) {
        let State::Offering { cause, is_told: true } = &self.state else { return };
        let cause = cause.clone();
        match self.coordinator {
            Coordinator::Known(node) => self.join(node, protocols, &cause),
            // It moved meanwhile; what is offered may be old by the time it is found, so ask again then.
            Coordinator::Unknown { .. } => self.wait(now, &cause),
        }
        self.step(now);
    }

    pub(super) fn handle_assign(&mut self, now: Instant, assignments: Vec<(String, Bytes)>) {
        let State::Leading { joined, is_told: true } = &self.state else { return };
        let joined = joined.clone();
        self.sync(now, &joined, assignments);
        self.step(now);
    }

    /// A rebalance that is asked for before the offer is part of it; one that comes later needs another join.
    pub(super) fn handle_rejoin(&mut self, now: Instant, reason: &str) {
        match &self.state {
            State::Stable => self.wait(now, reason),
            State::Joining { .. } | State::Leading { .. } | State::Syncing { .. } => {
                self.rejoin = Some(reason.to_owned());
            }
            State::Idle | State::Waiting { .. } | State::Offering { .. } | State::Leaving { .. } => {}
        }
        self.step(now);
    }

    /// Gives up the membership; what was not told yet is dropped, as the owner gives up everything by itself.
    pub(super) fn handle_leave(&mut self, now: Instant, reason: &str, patience: Duration) {
        self.abandon();
        self.holds = false;
        self.rejoin = None;
        (self.lost, self.assigned, self.failed) = (None, None, None);
        self.forget_generation();
        self.state = match self.member_id.is_empty() {
            true => State::Idle,
            false => State::Leaving { ticket: None, reason: reason.to_owned(), deadline: now + patience },
        };
        self.step(now);
    }

    /// The time that [`Machine::deadline`] named has come.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let State::Leaving { deadline, .. } = self.state
            && deadline <= now
        {
            self.left();
        }
        if self.poll_deadline().is_some_and(|deadline| deadline <= now) {
            self.leave_unpolled(now);
        } else if self.session_deadline().is_some_and(|deadline| deadline <= now) {
            // It may sit on a dead broker: look it up again, and let nothing queue behind what it does not answer.
            if let Some((ticket, _)) = self.beat.under_way {
                self.outputs.push_back(Output::Abandon(ticket));
            }
            self.lose_coordinator(now, now);
            self.lose(now, Lost::SessionExpired);
        } else if self.unreachable_deadline().is_some_and(|deadline| deadline <= now) {
            self.give_up_coordinator(now);
        }
        self.step(now);
    }

    /// When [`Machine::handle_timeout`] is due; `None`: only an input can change anything.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let pause = match (&self.state, &self.coordinator) {
            (State::Waiting { not_before, .. }, Coordinator::Known(_)) => Some(*not_before),
            (State::Leaving { deadline, .. }, _) => Some(*deadline),
            _ => None,
        };
        let lookup = match self.coordinator {
            Coordinator::Unknown { ticket: None, retry_at, .. } if self.may_look_up() => Some(retry_at),
            _ => None,
        };
        let beat = match (&self.coordinator, self.beat.under_way) {
            (Coordinator::Known(_), None) if self.beats() => Some(self.beat.next_at),
            _ => None,
        };
        let deadlines =
            [pause, lookup, beat, self.poll_deadline(), self.session_deadline(), self.unreachable_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// What to do next; `None`: wait.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What to tell the owner next. Offer and Lead are asked again until they are answered.
    pub(super) fn poll_event(&mut self) -> Option<GroupEvent> {
        if let Some(cause) = self.lost.take() {
            return Some(GroupEvent::Lost { cause });
        }
        if let Some(assigned) = self.assigned.take() {
            return Some(assigned);
        }
        if let Some(error) = self.failed.take() {
            return Some(GroupEvent::Failed(error));
        }
        match &mut self.state {
            State::Offering { cause, is_told } => {
                *is_told = true;
                Some(GroupEvent::Offer { cause: cause.clone() })
            }
            State::Leading { joined, is_told } => {
                *is_told = true;
                Some(GroupEvent::Lead {
                    generation: joined.generation,
                    protocol: joined.protocol.clone(),
                    member_id: joined.member_id.clone(),
                    members: joined.members.clone(),
                })
            }
            _ => None,
        }
    }

    /// Whatever can go on without an input.
    pub(super) fn step(&mut self, now: Instant) {
        if let Coordinator::Known(node) = self.coordinator {
            self.step_known(now, node);
        } else if let Coordinator::Unknown { ticket: None, retry_at, .. } = self.coordinator
            && self.may_look_up()
            && retry_at <= now
        {
            let asked = self.send(Request::FindCoordinator);
            if let Coordinator::Unknown { ticket, .. } = &mut self.coordinator {
                *ticket = Some(asked);
            }
        }
    }

    fn step_known(&mut self, now: Instant, node: NodeId) {
        match &self.state {
            State::Waiting { not_before, cause } if *not_before <= now => {
                self.state = State::Offering { cause: cause.clone(), is_told: false };
            }
            State::Leaving { ticket: None, reason, deadline } => {
                let (reason, deadline, member_id) = (reason.clone(), *deadline, self.member_id.clone());
                let ticket = self.send(Request::Leave { node, member_id, reason: reason.clone() });
                self.state = State::Leaving { ticket: Some(ticket), reason, deadline };
            }
            _ => {}
        }
        if self.beats() && self.beat.under_way.is_none() && self.beat.next_at <= now {
            let (member_id, generation) = (self.member_id.clone(), self.generation);
            let ticket = self.send(Request::Heartbeat { node, member_id, generation });
            self.beat = Beat { under_way: Some((ticket, now)), next_at: now + self.config.heartbeat_interval };
        }
    }

    fn join(&mut self, node: NodeId, protocols: Vec<Protocol>, reason: &str) {
        // What was asked for until now goes with this offer.
        self.rejoin = None;
        self.beat.under_way = None;
        self.join_as(node, protocols, reason);
    }

    pub(super) fn join_as(&mut self, node: NodeId, protocols: Vec<Protocol>, reason: &str) {
        let (member_id, reason) = (self.member_id.clone(), shortened(reason));
        let ticket = self.send(Request::Join { node, member_id, protocols: protocols.clone(), reason });
        self.state = State::Joining { ticket, protocols };
    }

    pub(super) fn sync(&mut self, now: Instant, joined: &Joined, assignments: Vec<(String, Bytes)>) {
        let Coordinator::Known(node) = self.coordinator else {
            // Cannot be: who loses the coordinator while a generation is formed waits for the next one.
            return self.wait(now, "the coordinator moved");
        };
        let ticket = self.send(Request::Sync {
            node,
            member_id: self.member_id.clone(),
            generation: self.generation,
            protocol: joined.protocol.clone(),
            assignments,
        });
        let (protocol, leader_id) = (joined.protocol.clone(), joined.leader_id.clone());
        self.state = State::Syncing { ticket, protocol, leader_id };
    }

    pub(super) fn wait(&mut self, not_before: Instant, cause: &str) {
        self.state = State::Waiting { not_before, cause: cause.to_owned() };
    }

    /// The assignment is void, and the member joins anew.
    pub(super) fn lose(&mut self, now: Instant, cause: Lost) {
        self.abandon();
        self.forget_generation();
        if matches!(cause, Lost::UnknownMember | Lost::PollTimeout) {
            self.member_id.clear();
        }
        self.rejoin = None;
        if self.holds {
            self.holds = false;
            self.assigned = None;
            self.lost = Some(cause);
        }
        self.wait(now, &cause.to_string());
    }

    pub(super) fn forget_generation(&mut self) {
        self.generation = NO_GENERATION;
        self.beat.under_way = None;
    }

    pub(super) fn lose_coordinator(&mut self, now: Instant, retry_at: Instant) {
        self.beat.under_way = None;
        if let Coordinator::Known(_) = self.coordinator {
            self.coordinator = Coordinator::Unknown { since: now, ticket: None, retry_at };
        }
    }

    fn give_up_coordinator(&mut self, now: Instant) {
        if let Coordinator::Unknown { since, .. } = &mut self.coordinator {
            *since = now; // told again when it stays away for as long again
        }
        if self.holds {
            return self.lose(now, Lost::CoordinatorUnreachable);
        }
        let after = self.config.heartbeat_interval;
        let what = format!("finding the coordinator of group '{}'", self.config.group_id);
        self.failed = Some(Error::Timeout { what, after, last: self.lookup_error.clone().map(Arc::new) });
    }

    /// The owner is stuck: others shall have its work. Whoever does not ask cannot be told before it does.
    fn leave_unpolled(&mut self, now: Instant) {
        if let (Coordinator::Known(node), false) = (&self.coordinator, self.member_id.is_empty()) {
            let (node, member_id) = (*node, self.member_id.clone());
            let reason = shortened(&Lost::PollTimeout.to_string());
            self.send(Request::Leave { node, member_id, reason });
        }
        self.lose(now, Lost::PollTimeout);
        self.state = State::Idle;
    }

    pub(super) fn left(&mut self) {
        self.member_id.clear();
        self.failed = None;
        self.state = State::Idle;
    }

    pub(super) fn abandon(&mut self) {
        if let State::Joining { ticket, .. } | State::Syncing { ticket, .. } = self.state {
            self.outputs.push_back(Output::Abandon(ticket));
        }
    }

    fn send(&mut self, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.outputs.push_back(Output::Send { ticket, request });
        ticket
    }

    /// Whether the coordinator waits for our heartbeats.
    fn beats(&self) -> bool {
        self.generation != NO_GENERATION
            && !matches!(self.state, State::Idle | State::Joining { .. } | State::Leaving { .. })
    }

    /// A coordinator is looked for while somebody needs it: the heartbeats do; who wants to join does once it was told
    /// what went wrong.
    fn may_look_up(&self) -> bool {
        match self.state {
            State::Waiting { .. } => self.beats() || self.failed.is_none(),
            State::Leaving { .. } => true,
            _ => self.beats(),
        }
    }

    fn poll_deadline(&self) -> Option<Instant> {
        // While JoinGroup is under way the coordinator has its own idea of who is late.
        match self.state {
            State::Idle | State::Joining { .. } | State::Leaving { .. } => None,
            _ => Some(self.alive_at + self.config.rebalance_timeout),
        }
    }

    fn session_deadline(&self) -> Option<Instant> {
        let holds_without_generation =
            self.holds && matches!(self.state, State::Waiting { .. } | State::Offering { .. });
        (self.beats() || holds_without_generation).then_some(self.session_until)
    }

    fn unreachable_deadline(&self) -> Option<Instant> {
        let matters = self.holds || (matches!(self.state, State::Waiting { .. }) && self.failed.is_none());
        match self.coordinator {
            Coordinator::Unknown { since, .. } if matters => Some(since + self.config.heartbeat_interval),
            _ => None,
        }
    }
}

fn shortened(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}
