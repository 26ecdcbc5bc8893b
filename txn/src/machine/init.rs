//! Producer ids: the first one, bumps, and what must be settled before them.

use super::Machine;
use super::coordinator::Hold;
use crate::ids::{ErrorCode, ProducerIdentity};
use crate::outcome::{Cause, RequestKind};
use crate::output::{Event, Protocol};
use crate::state::{Arrived, Initializing, Session, Standing, State};
use crate::verdict::{Verdict, verdict};

impl Machine {
    pub(super) fn init_replied(
        &mut self,
        asked_for: Option<ProducerIdentity>,
        code: ErrorCode,
        identity: ProducerIdentity,
        protocol: Protocol,
    ) {
        let cause = Cause::Code { request: RequestKind::InitProducerId, code, partition: None };
        let found = match verdict(RequestKind::InitProducerId, code) {
            // Success without an identity is a broken broker: there is nothing to go on with.
            Verdict::Done if !identity.is_valid() => Verdict::Fatal,
            found => found,
        };
        if found == Verdict::Done {
            self.link.progress();
            self.renewed(Arrived { identity, protocol });
            return;
        }
        // Nobody waits for it any more: the next `Init` asks again.
        let wanted = match &self.state {
            State::Initializing(_) => true,
            state => state.session().is_some_and(|session| session.bump.is_some()),
        };
        if !wanted {
            return;
        }
        match found {
            Verdict::RetryElsewhere => {
                self.link.lost_address();
                self.hold(RequestKind::InitProducerId, Hold::Ordinary);
            }
            Verdict::Retry => self.hold(RequestKind::InitProducerId, Hold::Ordinary),
            Verdict::RetryConcurrent => self.hold(RequestKind::InitProducerId, Hold::Concurrent),
            Verdict::Fenced => self.fenced(cause),
            Verdict::StartOver if asked_for.is_some() => self.start_over(cause),
            Verdict::Refused => self.identity_lost(cause),
            _ => self.fatal(cause),
        }
    }

    /// The broker gave us an identity.
    fn renewed(&mut self, arrived: Arrived) {
        match &mut self.state {
            State::Initializing(_) => {
                self.enter_ready(arrived);
                self.tell(Event::Initialized(arrived.identity));
            }
            // It came after the deadline: keep it for the next `Init`.
            State::Uninitialized { arrived: late } => *late = Some(arrived),
            State::InitRequired(standing) => standing.arrived = Some(arrived),
            state => {
                if let Some(session) = state.session_mut().filter(|session| session.bump.is_some()) {
                    *session = Session { identity: arrived.identity, protocol: arrived.protocol, bump: None };
                    self.lanes.renew();
                }
            }
        }
    }

    /// The broker has forgotten our producer id. With nothing open there is nothing to protect: ask for a new one.
    fn start_over(&mut self, cause: Cause) {
        match &mut self.state {
            State::Initializing(initializing) => initializing.current = None,
            _ => self.identity_lost(cause),
        }
    }

    /// The identity cannot be renewed now: the next step is an `Init` of the caller's.
    pub(super) fn identity_lost(&mut self, cause: Cause) {
        match &self.state {
            State::Initializing(_) => self.fail_init(cause),
            State::Ready(_) => self.shift(|state| match state {
                State::Ready(session) => State::InitRequired(Standing {
                    last: session.identity,
                    protocol: session.protocol,
                    unsettled: None,
                    arrived: None,
                }),
                other => other,
            }),
            _ => self.transaction_gone(cause),
        }
    }

    /// `Init` has failed; another may be tried.
    pub(super) fn fail_init(&mut self, cause: Cause) {
        self.tell(Event::InitFailed(cause));
        self.shift(|state| match state {
            State::Initializing(Initializing { standing: Some(standing), .. }) => State::InitRequired(standing),
            State::Initializing(Initializing { standing: None, .. }) => State::Uninitialized { arrived: None },
            other => other,
        });
    }
}
