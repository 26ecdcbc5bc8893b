//! The machine: inputs come in here, the branching on states stands in the files beside this one.
//!
//! | file | what it decides |
//! |---|---|
//! | `machine/commands.rs` | what the caller may ask in which state |
//! | `machine/coordinator.rs` | the one request at a time that goes to the transaction coordinator |
//! | `machine/init.rs` | producer ids: the first one, bumps, and what must be settled before them |
//! | `machine/produce.rs` | batches of the open transaction |
//! | `machine/ending.rs` | EndTxn, outcomes, and what follows them |
//! | `machine/deadlines.rs` | what time alone changes |
//!
//! Every input runs the same three steps: apply it, let deadlines pass, and send what has become possible.

mod commands;
mod coordinator;
mod deadlines;
mod ending;
mod init;
mod produce;

use crate::backoff::Jitter;
use crate::command::Command;
use crate::ids::{BatchId, PartitionIndex, ProducerIdentity, RequestId, Time};
use crate::outcome::Cause;
use crate::output::{Event, Output, Protocol, Request};
use crate::partitions::Lanes;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::settings::Settings;
use crate::state::{Ending, Goal, State, StateName};
use coordinator::Link;
use std::collections::{BTreeMap, VecDeque};

/// The transactional producer. See the crate's documentation for its contract and its states.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    now: Time,
    state: State,
    lanes: Lanes,
    link: Link,
    /// What is in flight to leaders. Produce is bounded by the lanes' windows, metadata by one for each lane.
    requests: BTreeMap<RequestId, LaneRequest>,
    outputs: VecDeque<Output>,
    next_request: u64,
    jitter: Jitter,
}

/// A request for one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneRequest {
    Produce(PartitionIndex),
    Metadata(PartitionIndex),
    /// A Produce of a transaction that is over. The next identity waits for its reply: nothing may overtake it.
    Orphan,
}

/// Which lanes may be able to send after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    Nothing,
    Lane(PartitionIndex),
    AllLanes,
}

impl Machine {
    /// A machine that has sent nothing. `seed` spreads its waits; equal seeds and inputs give equal outputs.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Machine {
        Machine {
            link: Link::new(&settings),
            settings,
            now: Time::default(),
            state: State::Uninitialized { arrived: None },
            lanes: Lanes::default(),
            requests: BTreeMap::new(),
            outputs: VecDeque::new(),
            next_request: 0,
            jitter: Jitter::new(seed),
        }
    }

    /// Ask for something.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] when the command is illegal now. A refused command changed nothing, though deadlines that had passed
    /// by `now` were applied before it was looked at.
    pub fn handle_command(&mut self, now: Time, command: Command) -> Result<(), Refusal> {
        self.advance(now);
        self.expire();
        // What batches need at the coordinator is asked for when the outputs are drained: the partitions of batches that are
        // appended together share one AddPartitionsToTxn.
        let gathers = matches!(command, Command::Append { .. });
        let answer = self.apply(command);
        if !gathers {
            self.pump();
        }
        answer
    }

    /// Hand in the reply to a request, or its loss. A reply to a request that nobody waits for is ignored, and one of the
    /// wrong kind counts as lost.
    pub fn handle_reply(&mut self, now: Time, request: RequestId, reply: Reply) {
        self.advance(now);
        // The reply goes first: a commit that was answered in the moment of its deadline is not unknown.
        let touched = self.apply_reply(request, reply);
        self.expire();
        match touched {
            Touched::Nothing => {}
            Touched::Lane(partition) => self.pump_lane(partition),
            Touched::AllLanes => self.pump_all_lanes(),
        }
        self.pump();
    }

    fn apply_reply(&mut self, request: RequestId, reply: Reply) -> Touched {
        if let Some(ask) = self.link.take(request) {
            self.coordinator_replied(ask, reply);
            return Touched::AllLanes;
        }
        match self.requests.remove(&request) {
            Some(LaneRequest::Produce(partition)) => {
                self.produce_replied(partition, request, reply);
                Touched::Lane(partition)
            }
            Some(LaneRequest::Metadata(partition)) => {
                if let Some(lane) = self.lanes.get_mut(partition) {
                    lane.metadata_arrived(request);
                }
                Touched::Lane(partition)
            }
            Some(LaneRequest::Orphan) | None => Touched::Nothing,
        }
    }

    /// Let time pass: to be called when the `until` of [`Output::Wait`] has come. Harmless at any other time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.expire();
        self.pump();
    }

    /// The next thing to do. To be drained until it says [`Output::Wait`].
    pub fn poll_output(&mut self) -> Output {
        if self.outputs.is_empty() {
            self.pump();
        }
        self.outputs.pop_front().unwrap_or_else(|| Output::Wait { until: self.next_wake() })
    }

    /// The state by name, for logs.
    #[must_use]
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// The identity that is ours at the moment. One that waits for its bump is ours too, but nothing is sent under it.
    #[must_use]
    pub fn identity(&self) -> Option<ProducerIdentity> {
        match &self.state {
            State::InitRequired(standing) => Some(standing.last),
            state => state.session().map(|session| session.identity),
        }
    }

    /// The generation of the protocol in force, once there is an identity.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        self.state.session().map(|session| session.protocol)
    }

    /// Whether `Init` must come before the next `Begin`.
    #[must_use]
    pub fn needs_init(&self) -> bool {
        matches!(self.state.name(), StateName::Uninitialized | StateName::InitRequired)
    }

    /// Batches that were appended and are neither acknowledged nor dropped.
    #[must_use]
    pub fn open_batches(&self) -> usize {
        self.lanes.live()
    }

    /// Produce requests without a reply.
    #[must_use]
    pub fn produces_in_flight(&self) -> usize {
        self.lanes.in_flight()
    }

    /// Whether a request to the coordinator has no reply yet. There is never more than one.
    #[must_use]
    pub fn coordinator_in_flight(&self) -> bool {
        self.link.is_busy()
    }

    /// The limits that it works with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Time never goes back: an older one counts as the newest seen.
    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    fn pump(&mut self) {
        self.settle_ending();
        self.pump_coordinator();
        self.pump_held_lanes();
    }

    fn tell(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn tell_dropped(&mut self, batches: Vec<BatchId>) {
        self.outputs.extend(batches.into_iter().map(|batch| Output::Event(Event::Dropped { batch })));
    }

    fn next_id(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request)
    }

    fn send(&mut self, id: RequestId, request: Request) {
        self.outputs.push_back(Output::Send(id, request));
    }

    /// Change the state. All changes go through here.
    fn shift(&mut self, change: impl FnOnce(State) -> State) {
        let from = self.state.name();
        let old = std::mem::replace(&mut self.state, State::Closed);
        self.state = change(old);
        let to = self.state.name();
        debug_assert!(from.may_become(to), "illegal move from {from:?} to {to:?}");
    }

    /// The open transaction can only be aborted from now on. Later reasons are swallowed: the first is the one to report.
    fn abort_only(&mut self, cause: Cause) {
        if self.commit_may_have_left() {
            // Too late: only the same EndTxn may follow a commit that may have arrived.
            return;
        }
        let grace = self.now.after(self.settings.abort_grace);
        match &mut self.state {
            State::InTransaction(_) => {
                self.tell(Event::AbortRequired(cause.clone()));
                self.shift(|state| match state {
                    State::InTransaction(open) => State::AbortRequired(open, cause),
                    other => other,
                });
            }
            State::Ending(_, ending @ Ending { goal: Goal::Commit { .. }, .. }) => ending.abort_instead(cause, grace),
            _ => return,
        }
        let dropped = self.lanes.drop_idle();
        self.tell_dropped(dropped);
    }

    /// The coordinator has already ended the open transaction, or no longer knows us.
    fn transaction_gone(&mut self, cause: Cause) {
        if let Some(open) = self.state.open_mut() {
            open.transaction.gone = true;
        }
        self.abort_only(cause);
    }

    /// Somebody else owns the transactional id.
    fn fenced(&mut self, cause: Cause) {
        self.stop(cause.clone(), State::Fenced(cause.clone()), Event::Fenced(cause));
    }

    /// Failed for good.
    fn fatal(&mut self, cause: Cause) {
        self.stop(cause.clone(), State::Fatal(cause.clone()), Event::Fatal(cause));
    }

    fn stop(&mut self, cause: Cause, last: State, event: Event) {
        let outcome = match &self.state {
            State::Ending(_, ending) => Some((ending.goal.missed(cause), ending.then)),
            _ => None,
        };
        self.drop_batches();
        let then = outcome.map(|(outcome, then)| {
            self.tell(Event::Ended(outcome));
            then
        });
        self.tell(event);
        self.shift(|_| last);
        if then == Some(crate::state::Then::Close) {
            self.close_now();
        }
    }

    fn close_now(&mut self) {
        self.shift(|_| State::Closed);
        self.tell(Event::Closed);
    }

    /// Give up every open batch. What answers to them say, if they come, no longer matters.
    fn drop_batches(&mut self) {
        let dropped = self.lanes.drop_all();
        self.tell_dropped(dropped);
        for request in self.requests.values_mut() {
            if matches!(request, LaneRequest::Produce(_)) {
                *request = LaneRequest::Orphan;
            }
        }
    }

    fn has_orphans(&self) -> bool {
        self.requests.values().any(|request| *request == LaneRequest::Orphan)
    }
}
