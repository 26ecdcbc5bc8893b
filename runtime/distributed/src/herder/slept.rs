//! Tasks that were superseded while this worker was out of the group, and that the group has given to nobody else since.
//!
//! ```text
//! sleeper: task runs ──(asleep)────────────────── wakes up: fenced, superseded ── joins, tells that the task is here ── keeps it
//! others:              session ends, they start it ── die
//! ```
//!
//! A superseded task is not started again by itself, for that would fence its owner. Here the group has the last word: where it
//! lets a task stay with the worker that joined again, the owner that superseded it is gone, or no member any more. Java has no such
//! rule; the task is shown RUNNING on the dead worker, and is started by nobody.

use super::tick::Tick;
use oncewire_membership::TaskId;
use std::collections::BTreeSet;

/// The tasks that were here when the membership was lost, and were not started since. Bound: the tasks that are here.
#[derive(Debug, Default)]
pub(super) struct Slept(BTreeSet<(String, u32)>);

impl Slept {
    /// The membership was lost while these tasks were here.
    pub(super) fn through(&mut self, here: BTreeSet<(String, u32)>) {
        self.0 = here;
    }

    /// A task is started, with an epoch that is newer than those of the time without membership.
    pub(super) fn forget(&mut self, connector: &str, task: u32) {
        self.0.remove(&(connector.to_owned(), task));
    }

    /// Which of the superseded tasks are to be started, by an assignment that was made since.
    fn to_take_up(&self, superseded: &BTreeSet<(String, u32)>, assigned: &BTreeSet<TaskId>) -> Vec<TaskId> {
        let slept = superseded.intersection(&self.0);
        let ids =
            slept.map(|(connector, task)| TaskId::new(connector.clone(), i32::try_from(*task).unwrap_or(i32::MAX)));
        ids.filter(|id| assigned.contains(id)).collect()
    }
}

impl Tick {
    /// Starts superseded tasks that are this worker's after all.
    pub(super) async fn take_up_superseded(&mut self) {
        if self.slept.0.is_empty() || self.is_rebalancing() || self.draining.is_on() {
            return;
        }
        let Some(held) = &self.held else { return };
        let superseded = self.parts.worker.superseded_tasks();
        for id in self.slept.to_take_up(&superseded, &held.assignment.assigned.tasks) {
            tracing::info!(task = %id, "superseded while this worker was out of the group, which assigned it here again");
            self.parts.worker.stop_tasks(&[(id.connector.clone(), id.task.unsigned_abs())]).await;
            self.start_task(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(&str, u32)]) -> BTreeSet<(String, u32)> {
        of.iter().map(|(connector, task)| ((*connector).to_owned(), *task)).collect()
    }

    #[test]
    fn only_what_was_superseded_in_its_sleep_and_is_assigned_is_taken_up() {
        let mut slept = Slept::default();
        slept.through(pairs(&[("a", 0), ("a", 1), ("a", 2)]));
        let assigned = [TaskId::new("a", 0), TaskId::new("a", 1), TaskId::new("b", 0)].into_iter().collect();
        // b-0 was superseded by another cluster with the same ids: a start would fence that one, and so on for ever.
        let superseded = pairs(&[("a", 1), ("a", 2), ("b", 0)]);
        assert_eq!(slept.to_take_up(&superseded, &assigned), [TaskId::new("a", 1)]);
        slept.forget("a", 1);
        assert!(slept.to_take_up(&superseded, &assigned).is_empty());
    }
}
