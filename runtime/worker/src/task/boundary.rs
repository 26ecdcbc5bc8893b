//! Where a transaction ends: after each poll, after an interval, or where the connector says. Pure.
//!
//! ```text
//!            after a record          after a batch (also an empty poll)      at the end (stop, pause)
//! poll       go on                   commit                                  commit
//! interval   go on                   commit when the interval is over        commit
//! connector  what it asked for       what it asked for                       only what it asked for; the rest aborts
//! ```
//!
//! Two limits are ours, not Java's: an interval also ends while `poll` blocks (a timer, not the next batch), and no
//! transaction of this worker stays open past half of `transaction.timeout.ms`, whatever the interval says, because a
//! transaction that the broker times out takes its whole work with it. Source: KIP-618.

use oncewire_api::Boundary as Ask;
use std::time::{Duration, Instant};

/// `transaction.boundary`, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// One transaction per batch that `poll` returned.
    Poll,
    /// One transaction per interval.
    Interval(Duration),
    /// The connector commits and aborts.
    Connector,
}

/// What the task loop does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Keep the transaction open.
    Continue,
    /// End it visibly.
    Commit,
    /// End it invisibly, then store the offsets in a transaction of their own.
    Abort,
}

/// The decision maker of one task.
#[derive(Debug, Clone)]
pub struct BoundaryState {
    boundary: Boundary,
    open_max: Duration,
    interval_began: Instant,
    opened: Option<Instant>,
}

impl BoundaryState {
    /// `transaction_timeout` is the producer's `transaction.timeout.ms`; half of it is the longest that a transaction stays open.
    pub fn new(boundary: Boundary, transaction_timeout: Duration, now: Instant) -> Self {
        Self { boundary, open_max: transaction_timeout / 2, interval_began: now, opened: None }
    }

    /// A transaction was opened.
    pub fn opened(&mut self, now: Instant) {
        self.opened.get_or_insert(now);
    }

    /// A transaction ended, or the interval starts anew (after a pause).
    pub fn ended(&mut self, now: Instant) {
        self.opened = None;
        self.interval_began = now;
    }

    /// After one record was taken over, with what the connector asked about it.
    pub fn after_record(&self, ask: Option<Ask>) -> Step {
        match (self.boundary, ask) {
            (Boundary::Connector, Some(Ask::Commit)) => Step::Commit,
            (Boundary::Connector, Some(Ask::Abort)) => Step::Abort,
            _ => Step::Continue,
        }
    }

    /// After the last record of a batch, or after a poll that brought nothing.
    pub fn after_batch(&self, now: Instant, ask: Option<Ask>) -> Step {
        match (self.boundary, ask) {
            (Boundary::Poll, _) => Step::Commit,
            (Boundary::Interval(_), _) => self.on_timer(now),
            (Boundary::Connector, Some(Ask::Commit)) => Step::Commit,
            (Boundary::Connector, Some(Ask::Abort)) => Step::Abort,
            (Boundary::Connector, None) => Step::Continue,
        }
    }

    /// When `deadline` has passed, or may have.
    pub fn on_timer(&self, now: Instant) -> Step {
        match self.deadline() {
            Some(deadline) if now >= deadline => Step::Commit,
            _ => Step::Continue,
        }
    }

    /// When the open interval must be committed although no batch came. `None` when the connector decides, or per poll.
    pub fn deadline(&self) -> Option<Instant> {
        let Boundary::Interval(interval) = self.boundary else {
            return None;
        };
        let by_interval = self.interval_began + interval;
        Some(match self.opened {
            Some(opened) => by_interval.min(opened + self.open_max),
            None => by_interval,
        })
    }

    /// At a stop or a pause, with what the connector asked since the last batch.
    pub fn at_end(&self, ask: Option<Ask>) -> Step {
        match (self.boundary, ask) {
            (Boundary::Connector, Some(Ask::Abort)) => Step::Abort,
            (Boundary::Connector, None) => Step::Continue,
            _ => Step::Commit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    fn state(boundary: Boundary) -> (BoundaryState, Instant) {
        let now = Instant::now();
        (BoundaryState::new(boundary, TIMEOUT, now), now)
    }

    #[test]
    fn poll_boundary_commits_each_batch_and_nothing_earlier() {
        let (state, now) = state(Boundary::Poll);
        assert_eq!(state.after_record(Some(Ask::Commit)), Step::Continue);
        assert_eq!(state.after_batch(now, None), Step::Commit);
        assert_eq!(state.deadline(), None);
        assert_eq!(state.at_end(None), Step::Commit);
    }

    #[test]
    fn interval_counts_from_the_last_commit() {
        let (mut state, now) = state(Boundary::Interval(SECOND));
        state.opened(now);
        assert_eq!(state.after_batch(now + SECOND / 2, None), Step::Continue);
        assert_eq!(state.after_batch(now + SECOND, None), Step::Commit);
        state.ended(now + SECOND);
        assert_eq!(state.after_batch(now + SECOND * 3 / 2, None), Step::Continue);
        assert_eq!(state.deadline(), Some(now + SECOND * 2));
    }

    #[test]
    fn interval_is_over_although_poll_blocks() {
        let (mut state, now) = state(Boundary::Interval(SECOND));
        state.opened(now);
        assert_eq!(state.on_timer(now + SECOND), Step::Commit);
    }

    #[test]
    fn a_long_interval_is_cut_at_half_of_the_transaction_timeout() {
        let (mut state, now) = state(Boundary::Interval(SECOND * 600));
        state.opened(now + SECOND);
        assert_eq!(state.deadline(), Some(now + SECOND + TIMEOUT / 2));
        state.opened(now + SECOND * 9);
        assert_eq!(state.deadline(), Some(now + SECOND + TIMEOUT / 2), "the first opening counts");
    }

    /// E65 connector-boundary-matrix
    #[test]
    fn connector_boundary_does_what_was_asked_and_never_more() {
        let (state, now) = state(Boundary::Connector);
        assert_eq!(state.after_record(None), Step::Continue);
        assert_eq!(state.after_record(Some(Ask::Commit)), Step::Commit);
        assert_eq!(state.after_record(Some(Ask::Abort)), Step::Abort);
        assert_eq!(state.after_batch(now + SECOND * 100, None), Step::Continue);
        assert_eq!(state.after_batch(now, Some(Ask::Abort)), Step::Abort);
        assert_eq!(state.at_end(None), Step::Continue, "an unasked rest is never force-committed");
        assert_eq!(state.at_end(Some(Ask::Commit)), Step::Commit);
    }
}
