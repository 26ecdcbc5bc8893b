//! The states, each owning exactly what is valid in it, and the legal moves as one match.
//!
//! The picture stands in the crate's documentation.

use crate::ids::{PartitionIndex, ProducerIdentity, Time};
use crate::outcome::{Cause, EndGoal, Outcome};
use crate::output::Protocol;
use crate::partitions::Registrations;

/// What the machine is doing.
#[derive(Debug)]
pub(crate) enum State {
    Uninitialized { arrived: Option<Arrived> },
    Initializing(Initializing),
    Ready(Session),
    InTransaction(Open),
    AbortRequired(Open, Cause),
    Ending(Open, Ending),
    InitRequired(Standing),
    Fenced(Cause),
    Fatal(Cause),
    Closed,
}

/// The name of a state, for logs and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateName {
    /// Nothing asked yet, or the first `Init` failed.
    Uninitialized,
    /// `Init` is under way.
    Initializing,
    /// No transaction is open.
    Ready,
    /// A transaction is open.
    InTransaction,
    /// A transaction is open and can only be aborted.
    AbortRequired,
    /// `Commit`, `Abort` or `Close` ends the open transaction.
    Ending,
    /// The identity is of no use: `Init` must come next.
    InitRequired,
    /// Another owner has the transactional id.
    Fenced,
    /// Failed for good.
    Fatal,
    /// Closed.
    Closed,
}

impl StateName {
    /// Whether the machine may go from this state to `next`. Staying is always legal.
    pub(crate) fn may_become(self, next: StateName) -> bool {
        use StateName as S;
        match self {
            _ if self == next => true,
            S::Uninitialized => matches!(next, S::Initializing | S::Ready | S::Closed),
            S::Initializing => {
                matches!(next, S::Ready | S::Uninitialized | S::InitRequired | S::Fenced | S::Fatal | S::Closed)
            }
            S::Ready => matches!(next, S::InTransaction | S::InitRequired | S::Fenced | S::Fatal | S::Closed),
            S::InTransaction => matches!(next, S::AbortRequired | S::Ending | S::Fenced | S::Fatal),
            S::AbortRequired => matches!(next, S::Ending | S::Fenced | S::Fatal),
            S::Ending => matches!(next, S::Ready | S::InitRequired | S::Fenced | S::Fatal | S::Closed),
            S::InitRequired => matches!(next, S::Initializing | S::Ready | S::Closed),
            S::Fenced | S::Fatal => next == S::Closed,
            S::Closed => false,
        }
    }
}

/// An identity and the protocol that came with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) identity: ProducerIdentity,
    pub(crate) protocol: Protocol,
}

/// `Init` is under way.
#[derive(Debug)]
pub(crate) struct Initializing {
    /// What we had before, if anything.
    pub(crate) standing: Option<Standing>,
    /// `None` asks for a first identity, even with a `standing`: the broker no longer knows that id.
    pub(crate) current: Option<ProducerIdentity>,
    pub(crate) deadline: Time,
}

/// What is left of an identity that must be renewed before anything else.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) last: ProducerIdentity,
    pub(crate) protocol: Protocol,
    /// An EndTxn that nobody has answered for good.
    pub(crate) unsettled: Option<Unsettled>,
    /// The answer to an earlier `Init` that came after its deadline.
    pub(crate) arrived: Option<Arrived>,
}

/// An EndTxn to send before the identity is renewed.
///
/// InitProducerId over an open transaction makes the coordinator abort it under a bumped epoch, and then our own next try
/// is refused as fenced. So the transaction is settled first, with an EndTxn that cannot hurt a successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsettled {
    pub(crate) goal: EndGoal,
    pub(crate) doubt: Doubt,
}

/// Why it is unsettled, which decides what a refused epoch means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The answer was lost: the copy that arrived may itself have moved the epoch. InitProducerId decides.
    AnswerLost,
    /// We may have timed out or been fenced. With transactions V2 the coordinator answers a repeated abort after its own
    /// time-out with success, so a refusal proves another owner.
    Expired,
}

/// A usable identity.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) identity: ProducerIdentity,
    /// Changes only with a reply to InitProducerId or EndTxn, so it is latched while a transaction has anything sent.
    pub(crate) protocol: Protocol,
    /// The epoch must be bumped before anything is sent under it.
    pub(crate) bump: Option<Bump>,
}

/// An epoch bump that is due between two transactions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bump {
    pub(crate) deadline: Time,
}

/// A session with a transaction.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: Session,
    pub(crate) transaction: Transaction,
}

/// What is known of the open transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) partitions: Registrations,
    /// Whether the coordinator may know of it: decides whether an EndTxn is sent.
    pub(crate) known: Known,
    /// An answer was lost after its request had left, so a late copy may still arrive.
    pub(crate) late_copy: bool,
    /// The coordinator has ended it or forgotten us: nothing to end.
    pub(crate) gone: bool,
    /// When its first request was sent; the coordinator's clock for the time-out starts later than that.
    pub(crate) opened_at: Option<Time>,
}

/// Whether the coordinator has the transaction open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Known {
    #[default]
    No,
    Maybe,
    Yes,
}

impl Transaction {
    pub(crate) fn learn(&mut self, known: Known) {
        self.known = self.known.max(known);
    }

    /// Note that a request of it is sent now.
    pub(crate) fn sent(&mut self, now: Time) {
        self.opened_at.get_or_insert(now);
    }
}

/// The open transaction is being ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) goal: Goal,
    pub(crate) deadline: Time,
    pub(crate) then: Then,
}

/// What follows the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Continue,
    Close,
}

/// How the transaction is being ended.
#[derive(Debug)]
pub(crate) enum Goal {
    /// Commit. From the moment that a copy may have arrived, this goal can never change.
    Commit { may_have_arrived: bool },
    /// Abort.
    Abort(AbortReason),
}

/// Why it is aborted, which decides the outcome.
#[derive(Debug, Clone)]
pub(crate) enum AbortReason {
    Asked,
    InsteadOfCommit(Cause),
}

impl Goal {
    pub(crate) fn on_wire(&self) -> EndGoal {
        match self {
            Goal::Commit { .. } => EndGoal::Commit,
            Goal::Abort(_) => EndGoal::Abort,
        }
    }

    /// The outcome when the broker has done as asked.
    pub(crate) fn reached(&self) -> Outcome {
        match self {
            Goal::Commit { .. } => Outcome::Committed,
            Goal::Abort(AbortReason::Asked) => Outcome::Aborted,
            Goal::Abort(AbortReason::InsteadOfCommit(cause)) => Outcome::NotCommitted(cause.clone()),
        }
    }

    /// The outcome when the broker refused, or nobody answers any more.
    ///
    /// An abort needs no answer to be true: nothing of it will be visible, since no commit ever left.
    pub(crate) fn missed(&self, cause: Cause) -> Outcome {
        match self {
            Goal::Commit { may_have_arrived: true } => Outcome::Unknown(cause),
            Goal::Commit { may_have_arrived: false } => Outcome::NotCommitted(cause),
            Goal::Abort(_) => self.reached(),
        }
    }
}

impl State {
    pub(crate) fn name(&self) -> StateName {
        match self {
            State::Uninitialized { .. } => StateName::Uninitialized,
            State::Initializing(_) => StateName::Initializing,
            State::Ready(_) => StateName::Ready,
            State::InTransaction(_) => StateName::InTransaction,
            State::AbortRequired(..) => StateName::AbortRequired,
            State::Ending(..) => StateName::Ending,
            State::InitRequired(_) => StateName::InitRequired,
            State::Fenced(_) => StateName::Fenced,
            State::Fatal(_) => StateName::Fatal,
            State::Closed => StateName::Closed,
        }
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            State::Ready(session) => Some(session),
            _ => self.open().map(|open| &open.session),
        }
    }

    pub(crate) fn session_mut(&mut self) -> Option<&mut Session> {
        match self {
            State::Ready(session) => Some(session),
            State::InTransaction(open) | State::AbortRequired(open, _) | State::Ending(open, _) => {
                Some(&mut open.session)
            }
            _ => None,
        }
    }

    pub(crate) fn standing_mut(&mut self) -> Option<&mut Standing> {
        match self {
            State::InitRequired(standing) => Some(standing),
            State::Initializing(initializing) => initializing.standing.as_mut(),
            _ => None,
        }
    }

    pub(crate) fn open(&self) -> Option<&Open> {
        match self {
            State::InTransaction(open) | State::AbortRequired(open, _) | State::Ending(open, _) => Some(open),
            _ => None,
        }
    }

    pub(crate) fn open_mut(&mut self) -> Option<&mut Open> {
        match self {
            State::InTransaction(open) | State::AbortRequired(open, _) | State::Ending(open, _) => Some(open),
            _ => None,
        }
    }

    /// The open transaction, while batches of it may be sent.
    pub(crate) fn producing(&self) -> Option<&Open> {
        match self {
            State::InTransaction(open) | State::Ending(open, Ending { goal: Goal::Commit { .. }, .. }) => Some(open),
            _ => None,
        }
    }

    /// Whether a batch of this partition may be sent now, its lane permitting.
    pub(crate) fn admits(&self, partition: PartitionIndex) -> bool {
        self.producing().is_some_and(|open| {
            open.session.bump.is_none()
                && match open.session.protocol {
                    Protocol::Explicit => open.transaction.partitions.is_added(partition),
                    Protocol::Implicit => true,
                }
        })
    }
}
