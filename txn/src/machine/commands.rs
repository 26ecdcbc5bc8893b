//! What the caller may ask in which state.

use super::Machine;
use crate::command::Command;
use crate::ids::{BatchId, PartitionIndex};
use crate::outcome::{Cause, EndGoal};
use crate::output::Event;
use crate::refusal::Refusal;
use crate::state::{AbortReason, Ending, Goal, Initializing, Open, Session, Standing, State, Then, Transaction};

impl Machine {
    pub(super) fn apply(&mut self, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Init => self.command_init(),
            Command::Begin => self.command_begin(),
            Command::Append { partition, batch, records } => self.command_append(partition, batch, records),
            Command::Fail(cause) => self.command_fail(cause),
            Command::Commit => self.command_end(EndGoal::Commit),
            Command::Abort => self.command_end(EndGoal::Abort),
            Command::Close => self.command_close(),
        }
    }

    /// The refusal of a command that this state has no use for.
    fn refusal(&self) -> Refusal {
        match &self.state {
            State::Uninitialized { .. } | State::InitRequired(_) => Refusal::InitRequired,
            State::Initializing(_) => Refusal::Initializing,
            State::Ready(_) => Refusal::NoTransaction,
            State::InTransaction(_) => Refusal::TransactionOpen,
            State::AbortRequired(_, cause) => Refusal::AbortRequired(cause.clone()),
            State::Ending(_, Ending { then: Then::Close, .. }) | State::Closed => Refusal::Closed,
            State::Ending(_, ending) => Refusal::Ending(ending.goal.on_wire()),
            State::Fenced(cause) => Refusal::Fenced(cause.clone()),
            State::Fatal(cause) => Refusal::Fatal(cause.clone()),
        }
    }

    fn command_init(&mut self) -> Result<(), Refusal> {
        let deadline = self.now.after(self.settings.max_block);
        match &mut self.state {
            State::Uninitialized { arrived: None } => {
                self.shift(|_| State::Initializing(Initializing { standing: None, current: None, deadline }));
            }
            // The reply to an earlier Init came after its deadline. It counts: a second one would bump for nothing.
            State::Uninitialized { arrived: Some(arrived) }
            | State::InitRequired(Standing { arrived: Some(arrived), .. }) => {
                let arrived = *arrived;
                self.enter_ready(arrived);
                self.tell(Event::Initialized(arrived.identity));
            }
            State::InitRequired(_) => self.shift(|state| match state {
                State::InitRequired(standing) => State::Initializing(Initializing {
                    current: Some(standing.last),
                    standing: Some(standing),
                    deadline,
                }),
                other => other,
            }),
            // A second call joins the first (KAFKA-13412).
            State::Initializing(initializing) => initializing.deadline = deadline,
            State::Ready(_) => return Err(Refusal::AlreadyInitialized),
            _ => return Err(self.refusal()),
        }
        Ok(())
    }

    fn command_begin(&mut self) -> Result<(), Refusal> {
        if !matches!(self.state, State::Ready(_)) {
            return Err(self.refusal());
        }
        self.shift(|state| match state {
            State::Ready(session) => State::InTransaction(Open { session, transaction: Transaction::default() }),
            other => other,
        });
        Ok(())
    }

    fn command_append(&mut self, partition: PartitionIndex, batch: BatchId, records: u32) -> Result<(), Refusal> {
        let deadline = self.now.after(self.settings.delivery_timeout);
        let State::InTransaction(open) = &mut self.state else { return Err(self.refusal()) };
        if records == 0 || i32::try_from(records).is_err() {
            return Err(Refusal::RecordCount(records));
        }
        if self.lanes.live() >= self.settings.batches_max {
            return Err(Refusal::Full { batches_max: self.settings.batches_max });
        }
        if self.lanes.is_live(batch) {
            return Err(Refusal::DuplicateBatch(batch));
        }
        let Some(lane) = self.lanes.lane(partition, open.session.identity, &self.settings) else {
            return Err(Refusal::TooManyPartitions { partitions_max: self.settings.partitions_max });
        };
        lane.append(batch, records);
        self.lanes.opened(partition, batch, deadline);
        open.transaction.partitions.note(partition);
        self.pump_lane(partition);
        Ok(())
    }

    fn command_fail(&mut self, cause: Cause) -> Result<(), Refusal> {
        match &self.state {
            State::InTransaction(_) | State::AbortRequired(..) => {}
            // A record that fails while the commit still flushes must not be missing from what is committed.
            State::Ending(_, Ending { then: Then::Continue, .. }) if !self.commit_may_have_left() => {}
            _ => return Err(self.refusal()),
        }
        self.abort_only(cause);
        Ok(())
    }

    fn command_end(&mut self, wanted: EndGoal) -> Result<(), Refusal> {
        let deadline = self.now.after(self.settings.max_block);
        let goal = match (&self.state, wanted) {
            (State::InTransaction(_), EndGoal::Commit) => Goal::Commit { may_have_arrived: false },
            (State::AbortRequired(_, cause), EndGoal::Commit) => {
                Goal::Abort(AbortReason::InsteadOfCommit(cause.clone()))
            }
            (State::InTransaction(_) | State::AbortRequired(..), EndGoal::Abort) => Goal::Abort(AbortReason::Asked),
            _ => return Err(self.refusal()),
        };
        self.enter_ending(Ending { goal, deadline, then: Then::Continue });
        Ok(())
    }

    fn command_close(&mut self) -> Result<(), Refusal> {
        let deadline = self.now.after(self.settings.close_timeout);
        match &mut self.state {
            State::Closed | State::Ending(_, Ending { then: Then::Close, .. }) => return Err(Refusal::Closed),
            State::InTransaction(_) | State::AbortRequired(..) => {
                self.enter_ending(Ending { goal: Goal::Abort(AbortReason::Asked), deadline, then: Then::Close });
            }
            State::Ending(_, ending) => {
                ending.then = Then::Close;
                ending.deadline = ending.deadline.min(deadline);
                // A commit that may have left goes on to its answer or the deadline; it is never overtaken by an abort.
                self.abort_only(Cause::Requested);
            }
            State::Initializing(_) => {
                self.tell(Event::InitFailed(Cause::Requested));
                self.close_now();
            }
            _ => self.close_now(),
        }
        Ok(())
    }

    fn enter_ending(&mut self, ending: Ending) {
        let aborts = matches!(ending.goal, Goal::Abort(_));
        self.shift(|state| match state {
            State::InTransaction(open) | State::AbortRequired(open, _) => State::Ending(open, ending),
            other => other,
        });
        if aborts {
            let dropped = self.lanes.drop_idle();
            self.tell_dropped(dropped);
        }
    }

    /// A fresh identity: every lane starts at 0 under it.
    pub(super) fn enter_ready(&mut self, arrived: crate::state::Arrived) {
        self.lanes.renew();
        self.shift(|_| State::Ready(Session { identity: arrived.identity, protocol: arrived.protocol, bump: None }));
    }
}
