//! The one request at a time that goes to the transaction coordinator.
//!
//! Only one of them is ever in flight (Produce runs beside it): the coordinator answers a second one with
//! CONCURRENT_TRANSACTIONS, and two could arrive in either order. The look-up of the coordinator takes the same place.

use super::Machine;
use crate::backoff::Backoff;
use crate::ids::{ErrorCode, PartitionIndex, ProducerIdentity, RequestId, Time};
use crate::outcome::{Cause, EndGoal, RequestKind};
use crate::output::{Protocol, Request};
use crate::reply::Reply;
use crate::settings::Settings;
use crate::state::{Ending, Goal, Initializing, Known, Standing, State};
use crate::verdict::{Verdict, verdict};
use std::collections::BTreeMap;

/// The way to the coordinator.
#[derive(Debug)]
pub(super) struct Link {
    /// Whether the driver has its address.
    found: bool,
    in_flight: Option<(RequestId, Ask)>,
    /// Requests of this kind wait until then. Other kinds do not: an abort must not wait for AddPartitions' back-off.
    held: Option<(RequestKind, Time)>,
    find: Backoff,
    retry: Backoff,
    concurrent: Backoff,
}

/// What was asked of it.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    Find,
    Init { current: Option<ProducerIdentity> },
    Add { partitions: Vec<PartitionIndex> },
    End { goal: EndGoal },
}

/// Which wait a held request takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hold {
    Ordinary,
    Concurrent,
}

impl Link {
    pub(super) fn new(settings: &Settings) -> Link {
        let ordinary = Backoff::new(settings.retry_backoff, settings.retry_backoff_max);
        Link {
            found: false,
            in_flight: None,
            held: None,
            find: ordinary.clone(),
            retry: ordinary,
            concurrent: Backoff::new(settings.concurrent_backoff, settings.concurrent_backoff_max),
        }
    }

    pub(super) fn take(&mut self, request: RequestId) -> Option<Ask> {
        self.in_flight.take_if(|(id, _)| *id == request).map(|(_, ask)| ask)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    pub(super) fn is_adding(&self) -> bool {
        matches!(self.in_flight, Some((_, Ask::Add { .. })))
    }

    pub(super) fn is_ending(&self) -> bool {
        matches!(self.in_flight, Some((_, Ask::End { .. })))
    }

    pub(super) fn lost_address(&mut self) {
        self.found = false;
    }

    /// A request was answered well: waits start small again.
    pub(super) fn progress(&mut self) {
        self.retry.reset();
        self.concurrent.reset();
        self.held = None;
    }
}

impl Machine {
    /// What should go to the coordinator now, by kind.
    fn wish(&self) -> Option<RequestKind> {
        match &self.state {
            State::Initializing(_) if self.has_orphans() => None,
            State::Initializing(Initializing { standing: Some(Standing { unsettled: Some(_), .. }), .. }) => {
                Some(RequestKind::EndTxn)
            }
            State::Initializing(_) => Some(RequestKind::InitProducerId),
            State::Ready(session) => session.bump.map(|_| RequestKind::InitProducerId),
            State::InTransaction(open) | State::Ending(open, Ending { goal: Goal::Commit { .. }, .. }) => {
                if open.session.bump.is_some() {
                    Some(RequestKind::InitProducerId)
                } else if open.session.protocol == Protocol::Explicit && open.transaction.partitions.has_new() {
                    Some(RequestKind::AddPartitions)
                } else if matches!(self.state, State::Ending(..))
                    && self.lanes.live() == 0
                    && open.transaction.known > Known::No
                {
                    Some(RequestKind::EndTxn)
                } else {
                    None
                }
            }
            State::Ending(open, Ending { goal: Goal::Abort(_), .. }) => {
                let to_end = open.transaction.known > Known::No && !open.transaction.gone;
                (to_end && self.lanes.in_flight() == 0).then_some(RequestKind::EndTxn)
            }
            _ => None,
        }
    }

    /// The kind that would be sent for the wish: a look-up first, when the address is not known.
    fn due(&self) -> Option<RequestKind> {
        if self.link.is_busy() {
            return None;
        }
        self.wish().map(|kind| if self.link.found { kind } else { RequestKind::FindCoordinator })
    }

    /// When the back-off of the due request ends, if that is what holds it.
    pub(super) fn coordinator_wake(&self) -> Option<Time> {
        let kind = self.due()?;
        self.link.held.filter(|(held, until)| *held == kind && *until > self.now).map(|(_, until)| until)
    }

    pub(super) fn pump_coordinator(&mut self) {
        if self.coordinator_wake().is_some() {
            return;
        }
        let Some(kind) = self.due() else { return };
        let Some((ask, request)) = self.compose(kind) else { return };
        let id = self.next_id();
        self.link.in_flight = Some((id, ask));
        self.send(id, request);
    }

    fn compose(&mut self, kind: RequestKind) -> Option<(Ask, Request)> {
        let now = self.now;
        match kind {
            RequestKind::FindCoordinator => Some((Ask::Find, Request::FindCoordinator)),
            RequestKind::InitProducerId => {
                let current = match &self.state {
                    State::Initializing(initializing) => initializing.current,
                    state => Some(state.session()?.identity),
                };
                Some((Ask::Init { current }, Request::InitProducerId { current }))
            }
            RequestKind::AddPartitions => {
                let open = self.state.open_mut()?;
                open.transaction.sent(now);
                let identity = open.session.identity;
                let partitions = open.transaction.partitions.take_new();
                Some((Ask::Add { partitions: partitions.clone() }, Request::AddPartitions { identity, partitions }))
            }
            RequestKind::EndTxn => {
                let (identity, goal, protocol) = match &self.state {
                    State::Initializing(Initializing { standing: Some(standing), .. }) => {
                        (standing.last, standing.unsettled?.goal, standing.protocol)
                    }
                    State::Ending(open, ending) => {
                        (open.session.identity, ending.goal.on_wire(), open.session.protocol)
                    }
                    _ => return None,
                };
                Some((Ask::End { goal }, Request::EndTxn { identity, goal, protocol }))
            }
            RequestKind::Produce => None,
        }
    }

    /// Let requests of this kind wait.
    pub(super) fn hold(&mut self, kind: RequestKind, hold: Hold) {
        let wait = match (hold, kind) {
            (Hold::Concurrent, _) => self.link.concurrent.next(&mut self.jitter),
            (Hold::Ordinary, RequestKind::FindCoordinator) => self.link.find.next(&mut self.jitter),
            (Hold::Ordinary, _) => self.link.retry.next(&mut self.jitter),
        };
        self.link.held = Some((kind, self.now.after(wait)));
    }

    pub(super) fn coordinator_replied(&mut self, ask: Ask, reply: Reply) {
        match (ask, reply) {
            (Ask::Find, Reply::Coordinator(code)) => self.found(code),
            (Ask::Init { current }, Reply::Initialized { code, identity, protocol }) => {
                self.init_replied(current, code, identity, protocol);
            }
            (Ask::Add { partitions }, Reply::PartitionsAdded(codes)) => self.add_replied(&partitions, &codes),
            (Ask::End { goal }, Reply::Ended { code, next, protocol }) => self.end_replied(goal, code, next, protocol),
            (ask, Reply::Lost { sent: false }) => self.coordinator_lost(ask, Left::No),
            // A reply of the wrong kind is a fault of the driver; the request was sent, and nobody knows its fate.
            (ask, _) => self.coordinator_lost(ask, Left::Perhaps),
        }
    }

    fn found(&mut self, code: ErrorCode) {
        let cause = Cause::Code { request: RequestKind::FindCoordinator, code, partition: None };
        match verdict(RequestKind::FindCoordinator, code) {
            Verdict::Done => {
                self.link.found = true;
                self.link.find.reset();
            }
            Verdict::Retry => self.hold(RequestKind::FindCoordinator, Hold::Ordinary),
            Verdict::Refused if matches!(self.state, State::Initializing(_)) => self.fail_init(cause),
            Verdict::Abort if self.state.open().is_some() => {
                self.hold(RequestKind::FindCoordinator, Hold::Ordinary);
                self.abort_only(cause);
            }
            Verdict::Abort => self.hold(RequestKind::FindCoordinator, Hold::Ordinary),
            // Nobody waits for it any more: the next wish asks again.
            _ if self.wish().is_none() => {}
            _ => self.fatal(cause),
        }
    }

    fn coordinator_lost(&mut self, ask: Ask, left: Left) {
        self.link.lost_address();
        match ask {
            Ask::Find => self.hold(RequestKind::FindCoordinator, Hold::Ordinary),
            Ask::Init { .. } => self.hold(RequestKind::InitProducerId, Hold::Ordinary),
            Ask::Add { partitions } => {
                self.hold(RequestKind::AddPartitions, Hold::Ordinary);
                let Some(open) = self.state.open_mut() else { return };
                for partition in partitions {
                    open.transaction.partitions.not_added(partition);
                }
                if left == Left::Perhaps {
                    open.transaction.learn(Known::Maybe);
                    open.transaction.late_copy = true;
                }
            }
            Ask::End { goal } => {
                self.hold(RequestKind::EndTxn, Hold::Ordinary);
                if left == Left::Perhaps {
                    self.end_lost(goal);
                }
            }
        }
    }

    fn add_replied(&mut self, partitions: &[PartitionIndex], codes: &[(PartitionIndex, ErrorCode)]) {
        let codes: BTreeMap<PartitionIndex, ErrorCode> = codes.iter().copied().collect();
        let mut worst: Option<(Severity, Cause, Verdict)> = None;
        let Some(open) = self.state.open_mut() else { return };
        for partition in partitions {
            // A partition that the answer forgot is asked for again.
            let code = codes.get(partition).copied().unwrap_or(ErrorCode(7));
            let found = verdict(RequestKind::AddPartitions, code);
            if found == Verdict::Done {
                open.transaction.partitions.added(*partition);
                open.transaction.learn(Known::Yes);
                continue;
            }
            open.transaction.partitions.not_added(*partition);
            if matches!(found, Verdict::RetryUnsure | Verdict::RetryElsewhere | Verdict::Indefinite) {
                open.transaction.learn(Known::Maybe);
            }
            let severity = Severity::of(found);
            if worst.as_ref().is_none_or(|(before, ..)| severity > *before) {
                let cause = Cause::Code { request: RequestKind::AddPartitions, code, partition: Some(*partition) };
                worst = Some((severity, cause, found));
            }
        }
        let Some((severity, cause, found)) = worst else {
            self.link.progress();
            return;
        };
        match (severity, found) {
            (Severity::Wait, Verdict::RetryConcurrent) => self.hold(RequestKind::AddPartitions, Hold::Concurrent),
            (Severity::Wait, _) => {
                if found == Verdict::RetryElsewhere {
                    self.link.lost_address();
                }
                self.hold(RequestKind::AddPartitions, Hold::Ordinary);
            }
            (Severity::Abort, _) => self.abort_only(cause),
            (Severity::Gone, _) => self.transaction_gone(cause),
            (Severity::Stale, _) => self.stale_epoch(cause),
            (Severity::Fatal, _) => self.fatal(cause),
        }
    }
}

/// Whether a lost request may have reached the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    No,
    Perhaps,
}

/// Which of several partitions' verdicts counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Wait,
    Abort,
    Gone,
    Stale,
    Fatal,
}

impl Severity {
    fn of(verdict: Verdict) -> Severity {
        match verdict {
            Verdict::Retry | Verdict::RetryUnsure | Verdict::RetryConcurrent | Verdict::RetryElsewhere => {
                Severity::Wait
            }
            Verdict::Gone => Severity::Gone,
            Verdict::StaleEpoch => Severity::Stale,
            Verdict::Fatal => Severity::Fatal,
            _ => Severity::Abort,
        }
    }
}
