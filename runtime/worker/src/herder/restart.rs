//! When a task whose work was lost starts again. Pure.
//!
//! Kafka Connect leaves a failed task to a person. Here what a new start can mend is started again: after a wait that
//! doubles, a bounded number of times in a row. A commit in between makes the count start anew. A superseded task is never
//! started again: it would fence the owner. A task that failed for its configuration, its data or its connector's verdict
//! would only fail again.

use crate::config::worker::RestartPolicy;
use crate::error::TaskFailure;
use std::time::Duration;

/// The count of one task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Restarts {
    in_a_row: u32,
}

/// What follows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Start again after this wait; the number counts from 1.
    Restart {
        /// The wait.
        after: Duration,
        /// How many starts in a row this makes.
        attempt: u32,
    },
    /// It stays FAILED.
    GiveUp,
    /// It ends quietly.
    StepAside,
}

impl Restarts {
    /// Decides. `progressed` says whether anything was committed since the last start.
    pub fn after(&mut self, failure: &TaskFailure, progressed: Progress, policy: RestartPolicy) -> Next {
        if progressed == Progress::Committed {
            self.in_a_row = 0;
        }
        match failure {
            TaskFailure::Superseded(_) => Next::StepAside,
            TaskFailure::Failed(_) => Next::GiveUp,
            TaskFailure::Lost(_) if self.in_a_row >= policy.attempts_max => Next::GiveUp,
            TaskFailure::Lost(_) => {
                let doubled = policy.backoff.saturating_mul(2_u32.saturating_pow(self.in_a_row));
                self.in_a_row += 1;
                Next::Restart { after: doubled.min(policy.backoff_max), attempt: self.in_a_row }
            }
        }
    }
}

/// Whether a life of a task got anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// At least one transaction was committed.
    Committed,
    /// None was.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RestartPolicy =
        RestartPolicy { attempts_max: 3, backoff: Duration::from_millis(100), backoff_max: Duration::from_millis(250) };

    fn wait(next: Next) -> u128 {
        match next {
            Next::Restart { after, .. } => after.as_millis(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn waits_double_up_to_their_cap_and_end_after_the_last_attempt() {
        let mut restarts = Restarts::default();
        let lost = TaskFailure::lost("x");
        let waits: Vec<u128> = (0..3).map(|_| wait(restarts.after(&lost, Progress::Nothing, POLICY))).collect();
        assert_eq!(waits, [100, 200, 250]);
        assert_eq!(restarts.after(&lost, Progress::Nothing, POLICY), Next::GiveUp);
    }

    #[test]
    fn a_commit_in_between_makes_the_count_start_anew() {
        let mut restarts = Restarts::default();
        let lost = TaskFailure::lost("x");
        for _ in 0..20 {
            assert_eq!(wait(restarts.after(&lost, Progress::Committed, POLICY)), 100);
        }
    }

    #[test]
    fn a_superseded_task_is_never_started_again() {
        let mut restarts = Restarts::default();
        assert_eq!(restarts.after(&TaskFailure::Superseded("x".into()), Progress::Committed, POLICY), Next::StepAside);
    }

    #[test]
    fn a_failure_that_would_repeat_is_not_tried_again_and_restarts_can_be_off() {
        let mut restarts = Restarts::default();
        assert_eq!(restarts.after(&TaskFailure::failed("x"), Progress::Nothing, POLICY), Next::GiveUp);
        let off = RestartPolicy { attempts_max: 0, ..POLICY };
        assert_eq!(restarts.after(&TaskFailure::lost("x"), Progress::Committed, off), Next::GiveUp);
    }
}
