//! The member's machine: every state with every input against one table, the stories behind its rules, and a random walk.
//! Here stands what they share: a machine with its clock, and the ways into each state.

mod stories;
mod table;
mod walk;

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::state::*;
use super::{GroupConfig, GroupEvent, Lost, Protocol};
use crate::cluster::{Backoff, NodeId};
use crate::error::Error;

const HEARTBEAT: Duration = Duration::from_secs(3);
const SESSION: Duration = Duration::from_secs(10);
const REBALANCE: Duration = Duration::from_secs(60);
/// No pause of the tests' back-off is longer.
const PAUSE: Duration = Duration::from_secs(1);

/// A machine with its clock and the requests that it sent.
struct Member {
    machine: Machine,
    now: Instant,
    sent: Vec<(Ticket, Request)>,
    abandoned: usize,
}

fn protocols() -> Vec<Protocol> {
    vec![Protocol { name: "p".into(), metadata: Bytes::from_static(b"m") }]
}

fn joined(generation: i32, leader: &str) -> Answer {
    let members = if leader == "me" { vec![("me".to_owned(), Bytes::new())] } else { Vec::new() };
    let (protocol, member_id, leader_id) = ("p".to_owned(), "me".to_owned(), leader.to_owned());
    Answer::Joined(Joined { generation, protocol, member_id, leader_id, members })
}

fn code(code: i16) -> Result<Answer, Error> {
    Err(Error::broker("Test", code, "group 'g'"))
}

fn disconnected() -> Result<Answer, Error> {
    Err(Error::Disconnected { peer: "node 1".into(), reason: "the broker closed it".into() })
}

impl Member {
    fn new() -> Self {
        let config = GroupConfig {
            group_id: "g".into(),
            protocol_type: "t".into(),
            session_timeout: SESSION,
            rebalance_timeout: REBALANCE,
            heartbeat_interval: HEARTBEAT,
        };
        let now = Instant::now();
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(800));
        Self { machine: Machine::new(config, backoff, now), now, sent: Vec::new(), abandoned: 0 }
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Send { ticket, request } => self.sent.push((ticket, request)),
                Output::Abandon(_) => self.abandoned += 1,
            }
        }
    }

    fn poll(&mut self) -> Option<GroupEvent> {
        self.machine.handle_polled(self.now);
        let event = self.machine.poll_event();
        self.drain();
        event
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.machine.handle_timeout(self.now);
        self.drain();
    }

    fn offer(&mut self) {
        self.machine.handle_offer(self.now, protocols());
        self.drain();
    }

    fn assign(&mut self) {
        self.machine.handle_assign(self.now, vec![("me".into(), Bytes::from_static(b"a"))]);
        self.drain();
    }

    fn rejoin(&mut self) {
        self.machine.handle_rejoin(self.now, "wanted");
        self.drain();
    }

    fn leave(&mut self) {
        self.machine.handle_leave(self.now, "bye", SESSION);
        self.drain();
    }

    /// Answers the latest request of a kind.
    fn answer(&mut self, kind: &str, answer: Result<Answer, Error>) {
        let found = self.sent.iter().rposition(|(_, request)| name(request) == kind);
        let ticket = found.map(|at| self.sent[at].0).unwrap_or_else(|| panic!("no {kind} was sent"));
        self.machine.handle_answer(self.now, 0, ticket, answer);
        self.drain();
    }

    fn has_sent(&self, kind: &str) -> bool {
        self.sent.iter().any(|(_, request)| name(request) == kind)
    }
}

fn name(request: &Request) -> &'static str {
    match request {
        Request::FindCoordinator => "find",
        Request::Join { .. } => "join",
        Request::Sync { .. } => "sync",
        Request::Heartbeat { .. } => "heartbeat",
        Request::Leave { .. } => "leave",
    }
}

// The ways into each state; the last request of each is unanswered.

fn idle() -> Member {
    Member::new()
}

fn looking() -> Member {
    let mut member = idle();
    assert!(member.poll().is_none());
    member
}

fn offering() -> Member {
    let mut member = looking();
    member.answer("find", Ok(Answer::Found(NodeId(1))));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member
}

fn joining() -> Member {
    let mut member = offering();
    member.offer();
    member
}

fn pausing() -> Member {
    let mut member = joining();
    member.answer("join", code(14));
    member
}

fn leading() -> Member {
    let mut member = joining();
    member.answer("join", Ok(joined(1, "me")));
    assert!(matches!(member.poll(), Some(GroupEvent::Lead { generation: 1, .. })));
    member
}

fn syncing() -> Member {
    let mut member = joining();
    member.answer("join", Ok(joined(1, "other")));
    member
}

fn stable() -> Member {
    let mut member = syncing();
    member.answer("sync", Ok(Answer::Synced(Bytes::from_static(b"a"))));
    assert!(matches!(member.poll(), Some(GroupEvent::Assigned { generation: 1, .. })));
    member
}

/// Asked to offer again, still with the old assignment and its heartbeats.
fn reoffering() -> Member {
    let mut member = stable();
    member.rejoin();
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member
}

fn rejoining() -> Member {
    let mut member = reoffering();
    member.offer();
    member
}

/// In the group, and the coordinator is being looked for.
fn astray() -> Member {
    let mut member = stable();
    member.pass(HEARTBEAT);
    member.answer("heartbeat", code(16));
    member.pass(PAUSE);
    member
}

fn leaving() -> Member {
    let mut member = stable();
    member.leave();
    member
}
