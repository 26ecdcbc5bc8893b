//! What the coordinator's answers do to the member: one function for each kind of request, one table for the errors.
//!
//! Source: the error handling of JoinGroup, SyncGroup and Heartbeat that the Java client's group members share, and
//! the coordinator's own checks (`GroupMetadataManager` of Kafka 4.x, classic part).

use tokio::time::Instant;

use super::state::{Answer, Coordinator, Joined, Machine, State, Ticket};
use super::{GroupEvent, Lost};
use crate::error::{BrokerError, Error};
use crate::wire::error_code::codes;

/// What an error says about our membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The coordinator does not know the member id.
    UnknownMember,
    /// The group has another generation.
    IllegalGeneration,
    /// A rebalance is under way.
    Rebalance,
    /// The coordinator is elsewhere, or cannot be reached.
    CoordinatorLost,
    /// It passes by itself.
    Passing,
    /// Somebody has to be told; it is tried again all the same.
    Refused,
}

fn verdict(error: &Error) -> Verdict {
    let Error::Broker(BrokerError { code, .. }) = error else {
        return if error.retriable() { Verdict::CoordinatorLost } else { Verdict::Refused };
    };
    match *code {
        codes::UNKNOWN_MEMBER_ID => Verdict::UnknownMember,
        codes::ILLEGAL_GENERATION => Verdict::IllegalGeneration,
        codes::REBALANCE_IN_PROGRESS => Verdict::Rebalance,
        codes::NOT_COORDINATOR | codes::COORDINATOR_NOT_AVAILABLE => Verdict::CoordinatorLost,
        _ if error.retriable() => Verdict::Passing,
        _ => Verdict::Refused,
    }
}

impl Machine {
    /// Takes the answer to a request. `random` is any number, evenly spread: it makes members that failed together come
    /// back one by one.
    pub(super) fn handle_answer(&mut self, now: Instant, random: u64, ticket: Ticket, answer: Result<Answer, Error>) {
        let is_lookup = matches!(self.coordinator, Coordinator::Unknown { ticket: Some(asked), .. } if asked == ticket);
        let beat_sent = self.beat.under_way.filter(|(asked, _)| *asked == ticket).map(|(_, sent)| sent);
        if is_lookup {
            self.looked_up(now, random, answer);
        } else if let Some(sent) = beat_sent {
            self.beat.under_way = None;
            self.heard(now, random, sent, answer);
        } else {
            match &self.state {
                State::Joining { ticket: asked, .. } if *asked == ticket => self.joined(now, random, answer),
                State::Syncing { ticket: asked, .. } if *asked == ticket => self.synced(now, random, answer),
                State::Leaving { ticket: Some(asked), .. } if *asked == ticket => {
                    self.answered_leave(now, random, answer)
                }
                _ => {} // of the past
            }
        }
        self.step(now);
    }

    fn looked_up(&mut self, now: Instant, random: u64, answer: Result<Answer, Error>) {
        let error = match answer {
            Ok(Answer::Found(node)) => {
                self.coordinator = Coordinator::Known(node);
                (self.lookup_failures, self.lookup_error) = (0, None);
                // The first thing to learn is whether it still knows us.
                self.beat.next_at = now;
                return;
            }
            Ok(_) => unexpected("FindCoordinator"),
            Err(error) => error,
        };
        self.lookup_failures = self.lookup_failures.saturating_add(1);
        let pause = self.backoff.delay(self.lookup_failures, random);
        if let Coordinator::Unknown { since, ticket, retry_at } = &mut self.coordinator {
            (*ticket, *retry_at) = (None, now + pause);
            if !self.holds && !error.retriable() {
                // Somebody did answer, and what is told.
                *since = now;
            }
        }
        match error.retriable() {
            true => self.lookup_error = Some(error),
            false => self.failed = Some(error),
        }
    }

    fn heard(&mut self, now: Instant, random: u64, sent: Instant, answer: Result<Answer, Error>) {
        let error = match answer {
            Ok(_) => {
                self.extend_session(sent);
                return;
            }
            Err(error) => error,
        };
        match verdict(&error) {
            Verdict::UnknownMember => self.lose(now, Lost::UnknownMember),
            Verdict::IllegalGeneration => self.lose(now, Lost::IllegalGeneration),
            Verdict::Rebalance => {
                self.extend_session(sent);
                // While a generation is formed SyncGroup says the same, and after it we wait for a join already.
                if self.state == State::Stable {
                    self.wait(now, "the group is rebalancing");
                }
            }
            Verdict::CoordinatorLost => {
                self.lose_coordinator(now, now + self.backoff.delay(1, random));
                if matches!(self.state, State::Leading { .. } | State::Syncing { .. }) {
                    self.abandon();
                    self.join_failed(now, random, &error.to_string());
                }
            }
            Verdict::Passing => self.beat.next_at = now + self.backoff.delay(1, random),
            Verdict::Refused => self.failed = Some(error),
        }
    }

    /// The coordinator heard us no earlier than we spoke, so counting from there we are never the last to know.
    fn extend_session(&mut self, sent: Instant) {
        self.session_until = self.session_until.max(sent + self.config.session_timeout);
    }

    fn joined(&mut self, now: Instant, random: u64, answer: Result<Answer, Error>) {
        let error = match answer {
            Ok(Answer::Joined(joined)) => return self.formed(now, joined),
            Ok(Answer::Named(member_id)) => {
                self.member_id = member_id;
                if let (Coordinator::Known(node), State::Joining { protocols, .. }) = (&self.coordinator, &self.state) {
                    let (node, protocols) = (*node, protocols.clone());
                    return self.join_as(node, protocols, "joining with the member id that was given");
                }
                return self.join_failed(now, random, "the coordinator moved");
            }
            Ok(_) => unexpected("JoinGroup"),
            Err(error) => error,
        };
        let cause = error.to_string();
        match verdict(&error) {
            Verdict::UnknownMember => {
                self.member_id.clear();
                if self.holds {
                    self.lose(now, Lost::UnknownMember);
                }
            }
            Verdict::CoordinatorLost => self.lose_coordinator(now, now + self.backoff.delay(1, random)),
            // Not from a healthy coordinator in the second case; in the first it could not store the group.
            Verdict::Rebalance | Verdict::IllegalGeneration | Verdict::Passing => {}
            Verdict::Refused => self.failed = Some(error),
        }
        self.join_failed(now, random, &cause);
    }

    /// A new generation: the leader assigns, the others ask for what they were assigned.
    fn formed(&mut self, now: Instant, joined: Joined) {
        self.member_id.clone_from(&joined.member_id);
        self.generation = joined.generation;
        self.session_until = now + self.config.session_timeout;
        self.beat.next_at = now + self.config.heartbeat_interval;
        match joined.leader_id == joined.member_id {
            true => self.state = State::Leading { joined, is_told: false },
            false => self.sync(now, &joined, Vec::new()),
        }
    }

    fn synced(&mut self, now: Instant, random: u64, answer: Result<Answer, Error>) {
        let error = match answer {
            Ok(Answer::Synced(assignment)) => return self.assigned(now, assignment),
            Ok(_) => unexpected("SyncGroup"),
            Err(error) => error,
        };
        let cause = error.to_string();
        match verdict(&error) {
            Verdict::UnknownMember => return self.lose(now, Lost::UnknownMember),
            Verdict::IllegalGeneration => return self.lose(now, Lost::IllegalGeneration),
            // The coordinator counts us in, so the heartbeats go on until we join again.
            Verdict::Rebalance => return self.wait(now, "the group is rebalancing"),
            Verdict::CoordinatorLost => self.lose_coordinator(now, now + self.backoff.delay(1, random)),
            Verdict::Passing => {}
            Verdict::Refused => self.failed = Some(error),
        }
        self.join_failed(now, random, &cause);
    }

    fn assigned(&mut self, now: Instant, assignment: bytes::Bytes) {
        let State::Syncing { protocol, leader_id, .. } = &self.state else { return };
        self.assigned = Some(GroupEvent::Assigned {
            generation: self.generation,
            protocol: protocol.clone(),
            member_id: self.member_id.clone(),
            leader_id: leader_id.clone(),
            assignment,
        });
        self.holds = true;
        self.join_failures = 0;
        self.state = State::Stable;
        if let Some(reason) = self.rejoin.take() {
            self.wait(now, &reason);
        }
    }

    /// Another attempt after a pause. Whether the coordinator counts us in is not known: the generation is gone, and what
    /// the owner holds it holds for one more session at most.
    fn join_failed(&mut self, now: Instant, random: u64, cause: &str) {
        self.forget_generation();
        self.session_until = now + self.config.session_timeout;
        self.join_failures = self.join_failures.saturating_add(1);
        let pause = self.backoff.delay(self.join_failures, random);
        self.wait(now + pause, cause);
    }

    fn answered_leave(&mut self, now: Instant, random: u64, answer: Result<Answer, Error>) {
        match answer.as_ref().map_err(verdict) {
            Err(Verdict::CoordinatorLost) => {
                self.lose_coordinator(now, now + self.backoff.delay(1, random));
                if let State::Leaving { ticket, .. } = &mut self.state {
                    *ticket = None;
                }
            }
            // Gone already, or refused: there is nothing more to do about it.
            _ => self.left(),
        }
    }
}

fn unexpected(api: &'static str) -> Error {
    Error::Malformed {
        peer: "the group coordinator".to_owned(),
        what: format!("{api} was answered with another API's answer"),
    }
}
