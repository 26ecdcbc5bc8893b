//! EndTxn, outcomes, and what follows them.
//!
//! From the moment that a commit may have arrived, only the same EndTxn is sent: same producer id, epoch and goal. What
//! ends that is a definite answer or the deadline, and after the deadline the outcome is unknown.

use super::Machine;
use super::coordinator::Hold;
use crate::ids::{ErrorCode, ProducerIdentity, Time};
use crate::outcome::{Cause, EndGoal, Outcome, RequestKind};
use crate::output::{Event, Protocol};
use crate::state::{
    AbortReason, Bump, Doubt, Ending, Goal, Initializing, Known, Open, Session, Standing, State, Then, Unsettled,
};
use crate::verdict::{Verdict, verdict};

/// What becomes of the identity after the end.
#[derive(Debug, Clone, Copy)]
enum After {
    /// It stays in use; these are the broker's last word on it.
    Use { identity: ProducerIdentity, protocol: Protocol },
    /// It must be renewed by the caller's `Init`.
    Init { unsettled: Option<Unsettled> },
}

impl Ending {
    /// Turn a commit of which nothing has left into an abort, with at least until `grace` to do it.
    pub(super) fn abort_instead(&mut self, cause: Cause, grace: Time) {
        self.goal = Goal::Abort(AbortReason::InsteadOfCommit(cause));
        if self.then == Then::Continue {
            self.deadline = self.deadline.max(grace);
        }
    }
}

impl Machine {
    /// Whether an EndTxn(commit) of the open transaction is on its way or may have arrived.
    pub(super) fn commit_may_have_left(&self) -> bool {
        match &self.state {
            State::Ending(_, Ending { goal: Goal::Commit { may_have_arrived }, .. }) => {
                *may_have_arrived || self.link.is_ending()
            }
            _ => false,
        }
    }

    /// End what needs no EndTxn: nothing of it ever reached a broker, or the coordinator has ended it already.
    pub(super) fn settle_ending(&mut self) {
        let State::Ending(open, ending) = &self.state else { return };
        if self.link.is_adding() || self.lanes.in_flight() > 0 {
            return;
        }
        let committing = matches!(ending.goal, Goal::Commit { .. });
        if committing && self.lanes.live() > 0 {
            return;
        }
        let outcome = ending.goal.reached();
        if open.transaction.gone {
            let unsettled = expired_probe(&open.session, &ending.goal);
            self.finish(outcome, After::Init { unsettled });
        } else if open.transaction.known == Known::No {
            let after = After::Use { identity: open.session.identity, protocol: open.session.protocol };
            self.finish(outcome, after);
        }
    }

    pub(super) fn end_replied(
        &mut self,
        goal: EndGoal,
        code: ErrorCode,
        next: Option<ProducerIdentity>,
        protocol: Protocol,
    ) {
        let next = next.filter(|next| next.is_valid());
        match &self.state {
            State::Ending(..) => self.ending_answered(code, next, protocol),
            State::Initializing(_) | State::InitRequired(_) => self.settle_answered(goal, code, next),
            _ => {}
        }
    }

    fn ending_answered(&mut self, code: ErrorCode, next: Option<ProducerIdentity>, protocol: Protocol) {
        let cause = Cause::Code { request: RequestKind::EndTxn, code, partition: None };
        let State::Ending(open, ending) = &mut self.state else { return };
        let session = &open.session;
        match verdict(RequestKind::EndTxn, code) {
            Verdict::Done => {
                let implicit = session.protocol == Protocol::Implicit;
                let identity = next.filter(|_| implicit).unwrap_or(session.identity);
                let outcome = ending.goal.reached();
                self.link.progress();
                self.finish(outcome, After::Use { identity, protocol });
            }
            Verdict::RetryConcurrent => self.hold(RequestKind::EndTxn, Hold::Concurrent),
            Verdict::StaleEpoch => self.stale_epoch(cause),
            Verdict::NotOpen => self.nothing_open(cause),
            Verdict::Gone => {
                let outcome = ending.goal.missed(cause);
                self.finish(outcome, After::Init { unsettled: None });
            }
            Verdict::Abort => match ending.goal {
                Goal::Commit { may_have_arrived: false } => self.abort_only(cause),
                Goal::Commit { may_have_arrived: true } => self.hold(RequestKind::EndTxn, Hold::Ordinary),
                // An abort that must be aborted would go round for ever.
                Goal::Abort(_) => self.fatal(cause),
            },
            Verdict::Fatal => self.fatal(cause),
            found => {
                if let Goal::Commit { may_have_arrived } = &mut ending.goal {
                    *may_have_arrived = true;
                }
                if found == Verdict::RetryElsewhere {
                    self.link.lost_address();
                }
                self.hold(RequestKind::EndTxn, Hold::Ordinary);
            }
        }
    }

    /// The coordinator says that no such transaction is open, under an epoch that it accepts: nothing was committed by us.
    fn nothing_open(&mut self, cause: Cause) {
        let State::Ending(open, ending) = &mut self.state else { return };
        match (&ending.goal, open.session.protocol) {
            (Goal::Commit { .. }, protocol) => {
                let probe = Unsettled { goal: EndGoal::Abort, doubt: Doubt::Expired };
                let unsettled = (protocol == Protocol::Implicit).then_some(probe);
                self.finish(Outcome::NotCommitted(cause), After::Init { unsettled });
            }
            (Goal::Abort(_), Protocol::Explicit) => {
                // Our AddPartitions was lost and never arrived. It may still: bump before the epoch is used again.
                open.transaction.late_copy = true;
                let after = After::Use { identity: open.session.identity, protocol: open.session.protocol };
                let outcome = ending.goal.reached();
                self.finish(outcome, after);
            }
            (Goal::Abort(_), Protocol::Implicit) => {
                let outcome = ending.goal.reached();
                self.finish(outcome, After::Init { unsettled: None });
            }
        }
    }

    /// The coordinator refused our epoch: we were fenced, or the transaction timed out there.
    ///
    /// A transaction that is younger than its time-out cannot have timed out, so then it is fencing, and nothing more is
    /// sent: an InitProducerId of ours would abort what the new owner has open. Otherwise the caller's `Init` decides.
    pub(super) fn stale_epoch(&mut self, cause: Cause) {
        let Some(open) = self.state.open() else { return };
        let transaction = &open.transaction;
        let age = transaction.opened_at.map(|opened| self.now.since(opened));
        let timed_out = age.is_none_or(|age| age >= self.settings.transaction_timeout);
        let implicit = open.session.protocol == Protocol::Implicit;
        // With transactions V2 an abort while our previous commit writes its markers is answered like this, if no Produce
        // of this transaction arrived (KAFKA-18464).
        let markers = implicit && transaction.known == Known::Maybe;
        if !timed_out && !markers {
            self.fenced(cause);
            return;
        }
        let State::Ending(open, ending) = &self.state else {
            self.transaction_gone(cause);
            return;
        };
        let unsettled = if timed_out {
            expired_probe(&open.session, &ending.goal)
        } else {
            Some(Unsettled { goal: ending.goal.on_wire(), doubt: Doubt::AnswerLost })
        };
        let outcome = ending.goal.missed(cause);
        self.finish(outcome, After::Init { unsettled });
    }

    /// An EndTxn left and its answer was lost.
    pub(super) fn end_lost(&mut self, goal: EndGoal) {
        let State::Ending(open, ending) = &mut self.state else { return };
        open.transaction.late_copy = true;
        if let Goal::Commit { may_have_arrived } = &mut ending.goal {
            *may_have_arrived = true;
        }
        if ending.then == Then::Close {
            // Close tries once: KAFKA-16217 is a close that aborted for ever.
            let outcome = ending.goal.missed(Cause::Requested);
            let unsettled = Some(Unsettled { goal, doubt: Doubt::AnswerLost });
            self.finish(outcome, After::Init { unsettled });
        }
    }

    /// The deadline of `Commit`, `Abort` or `Close` has passed.
    pub(super) fn ending_expired(&mut self) {
        let request = if self.lanes.in_flight() > 0 {
            RequestKind::Produce
        } else if self.link.is_adding() {
            RequestKind::AddPartitions
        } else {
            RequestKind::EndTxn
        };
        let cause = Cause::DeadlinePassed { request, partition: None };
        let left = self.commit_may_have_left();
        let State::Ending(_, ending) = &mut self.state else { return };
        if let (Goal::Commit { may_have_arrived }, true) = (&mut ending.goal, left) {
            *may_have_arrived = true;
        }
        if matches!(ending.goal, Goal::Commit { may_have_arrived: false }) && ending.then == Then::Continue {
            self.abort_only(cause);
            return;
        }
        let outcome = ending.goal.missed(cause);
        let unsettled = Some(Unsettled { goal: ending.goal.on_wire(), doubt: Doubt::AnswerLost });
        self.finish(outcome, After::Init { unsettled });
    }

    /// An EndTxn of the transaction before, re-sent by `Init` or answered late.
    fn settle_answered(&mut self, goal: EndGoal, code: ErrorCode, next: Option<ProducerIdentity>) {
        let cause = Cause::Code { request: RequestKind::EndTxn, code, partition: None };
        let found = verdict(RequestKind::EndTxn, code);
        let Some(standing) = self.state.standing_mut() else { return };
        let Some(unsettled) = standing.unsettled.filter(|unsettled| unsettled.goal == goal) else { return };
        match found {
            Verdict::Done => {
                let implicit = standing.protocol == Protocol::Implicit;
                let identity = next.filter(|_| implicit).unwrap_or(standing.last);
                standing.last = identity;
                self.settled();
                self.link.progress();
            }
            Verdict::NotOpen | Verdict::Gone | Verdict::Abort => self.settled(),
            Verdict::StaleEpoch if unsettled.doubt == Doubt::AnswerLost => self.settled(),
            Verdict::StaleEpoch | Verdict::Fatal if matches!(self.state, State::InitRequired(_)) => {
                // It came late: the caller's next `Init` asks again and hears it then.
            }
            Verdict::StaleEpoch => self.fenced(cause),
            Verdict::Fatal => self.fatal(cause),
            Verdict::RetryConcurrent => self.hold(RequestKind::EndTxn, Hold::Concurrent),
            found => {
                if found == Verdict::RetryElsewhere {
                    self.link.lost_address();
                }
                self.hold(RequestKind::EndTxn, Hold::Ordinary);
            }
        }
    }

    /// Nothing stands in the way of InitProducerId any more.
    fn settled(&mut self) {
        let Some(standing) = self.state.standing_mut() else { return };
        standing.unsettled = None;
        let last = standing.last;
        if let State::Initializing(Initializing { current: Some(current), .. }) = &mut self.state {
            *current = last;
        }
    }

    /// The transaction is over.
    fn finish(&mut self, outcome: Outcome, after: After) {
        self.drop_batches();
        self.tell(Event::Ended(outcome));
        let spent = self.lanes.is_spent();
        let bump = Bump { deadline: self.now.after(self.settings.max_block) };
        let mut then = Then::Continue;
        let mut renewed = false;
        self.shift(|state| {
            let State::Ending(open, ending) = state else { return state };
            then = ending.then;
            match after {
                After::Use { identity, protocol } => {
                    renewed = identity != open.session.identity;
                    State::Ready(next_session(&open, identity, protocol, spent, bump))
                }
                After::Init { unsettled } => State::InitRequired(Standing {
                    last: open.session.identity,
                    protocol: open.session.protocol,
                    unsettled,
                    arrived: None,
                }),
            }
        });
        if renewed {
            self.lanes.renew();
        }
        if then == Then::Close {
            self.close_now();
        }
    }
}

/// Whether, and how, to ask the coordinator about a transaction that may have timed out.
///
/// With transactions V2 it answers a repeated abort after its own time-out with success and its identity, and refuses it
/// when there is another owner; unlike InitProducerId, that cannot abort what the other owner has open. Not after a commit
/// that may have arrived: an abort would be the opposite of it.
fn expired_probe(session: &Session, goal: &Goal) -> Option<Unsettled> {
    let legal = session.protocol == Protocol::Implicit && !matches!(goal, Goal::Commit { may_have_arrived: true });
    legal.then_some(Unsettled { goal: EndGoal::Abort, doubt: Doubt::Expired })
}

/// The session after a transaction that ended for good.
fn next_session(open: &Open, identity: ProducerIdentity, protocol: Protocol, spent: bool, bump: Bump) -> Session {
    let old = &open.session;
    // KAFKA-18227: the first transaction V2 must not look like more of the explicit one before it.
    let switched = old.protocol == Protocol::Explicit && protocol == Protocol::Implicit;
    let same = identity == old.identity;
    // A late copy under the same epoch would act on the next transaction (KAFKA-17754), and a number that was spent on a
    // batch that was given up would be missing (KAFKA-12152).
    let unclean = same && (open.transaction.late_copy || spent);
    // KAFKA-20090: a transaction opened under the largest epoch cannot be ended, since ending it needs the next one.
    let exhausted = identity.epoch == i16::MAX;
    let due = if same { old.bump } else { None };
    Session { identity, protocol, bump: due.or((switched || unclean || exhausted).then_some(bump)) }
}
