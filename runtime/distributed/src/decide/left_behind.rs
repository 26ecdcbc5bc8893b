//! What a new leader finds in the status topic of the work that nobody runs.
//!
//! A leader remembers who had what, and waits for a worker that is gone (KIP-415). Its successor has no such memory: all that is missing
//! looks new. But a worker that stops in good order tells UNASSIGNED of all that it had before it leaves, and that is still there to
//! be read. One that was killed tells nothing; nobody knows whether it comes back, and its work is dealt out at once, as Java does.
//!
//! ```text
//! no status                                                       new
//! of a member                                                     new: its worker is back, with nothing, or is to give it to others
//! of a worker that is gone and told UNASSIGNED of any of them     left behind, with all else that it had (FAILED, or not stopped in time)
//! of a worker that is gone and told nothing                       new
//! ```
//!
//! A drained worker leaves nothing missing. A worker that returns under another id is a stranger, for whom nobody waits beyond the delay.

use oncewire_membership::{Load, TaskId};
use std::collections::BTreeSet;

/// A connector instance or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The instance of this connector.
    Connector {
        /// Its name.
        name: String,
        /// Whether it is to be in the state STOPPED: then it does nothing wherever it is.
        is_stopped: bool,
    },
    /// A task.
    Task(TaskId),
}

/// The last status of something that no member runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWord {
    /// What it is about.
    pub item: Item,
    /// Who told it.
    pub worker_id: String,
    /// Whether it was that the worker has stopped it.
    pub is_given_up: bool,
}

/// What is to wait, and for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// Connectors and tasks.
    pub load: Load,
    /// The workers that had them.
    pub workers: BTreeSet<String>,
}

/// Decides from what was last said of all that no member runs, and from the ids of the workers that are here.
pub fn left_behind(words: Vec<LastWord>, here: &BTreeSet<String>) -> LeftBehind {
    let gone = |word: &&LastWord| word.is_given_up && !here.contains(&word.worker_id);
    let workers: BTreeSet<String> = words.iter().filter(gone).map(|word| word.worker_id.clone()).collect();
    let mut load = Load::default();
    let mut worth_waiting = false;
    for word in words.into_iter().filter(|word| workers.contains(&word.worker_id)) {
        match word.item {
            Item::Connector { name, is_stopped } => {
                worth_waiting |= !is_stopped;
                load.connectors.insert(name);
            }
            Item::Task(task) => {
                worth_waiting = true;
                load.tasks.insert(task);
            }
        }
    }
    if worth_waiting { LeftBehind { load, workers } } else { LeftBehind::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connector(name: &str, worker_id: &str) -> LastWord {
        let item = Item::Connector { name: name.to_owned(), is_stopped: false };
        LastWord { item, worker_id: worker_id.to_owned(), is_given_up: true }
    }

    fn task(task: i32, worker_id: &str) -> LastWord {
        LastWord { item: Item::Task(TaskId::new("c", task)), worker_id: worker_id.to_owned(), is_given_up: true }
    }

    fn running(word: LastWord) -> LastWord {
        LastWord { is_given_up: false, ..word }
    }

    fn ids(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|&id| id.to_owned()).collect()
    }

    fn tasks(of: &LeftBehind) -> Vec<i32> {
        of.load.tasks.iter().map(|task| task.task).collect()
    }

    #[test]
    fn what_a_worker_gave_up_before_it_left_waits_for_it() {
        let found = left_behind(vec![connector("c", "a:1"), task(0, "a:1"), task(1, "a:1")], &ids(&["b:1"]));
        assert_eq!(found.load.connectors, ids(&["c"]));
        assert_eq!((tasks(&found), found.workers), (vec![0, 1], ids(&["a:1"])));
    }

    #[test]
    fn a_worker_that_is_back_already_is_not_waited_for() {
        let words = vec![connector("c", "a:1"), task(0, "a:1")];
        assert_eq!(left_behind(words, &ids(&["a:1", "b:1"])), LeftBehind::default());
    }

    #[test]
    fn a_killed_worker_is_not_waited_for() {
        let words = vec![running(connector("c", "a:1")), running(task(0, "a:1"))];
        assert_eq!(left_behind(words, &ids(&["b:1"])), LeftBehind::default());
    }

    #[test]
    fn what_failed_on_a_worker_that_left_in_good_order_waits_with_the_rest() {
        let found = left_behind(vec![running(task(0, "a:1")), task(1, "a:1"), running(task(2, "d:1"))], &ids(&["b:1"]));
        assert_eq!((tasks(&found), found.workers), (vec![0, 1], ids(&["a:1"])));
    }

    #[test]
    fn what_a_member_gave_up_for_others_is_dealt_out_while_the_rest_waits() {
        let found = left_behind(vec![task(0, "a:1"), task(1, "b:1")], &ids(&["b:1"]));
        assert_eq!(tasks(&found), [0]);
    }

    #[test]
    fn stopped_connectors_alone_are_no_reason_to_wait() {
        let stopped = |name: &str| {
            let item = Item::Connector { name: name.to_owned(), is_stopped: true };
            LastWord { item, ..connector(name, "a:1") }
        };
        assert_eq!(left_behind(vec![stopped("c")], &ids(&["b:1"])), LeftBehind::default());
        let found = left_behind(vec![stopped("c"), connector("d", "a:1")], &ids(&["b:1"]));
        assert_eq!(found.load.connectors, ids(&["c", "d"]), "but they come back with what else it had");
    }

    #[test]
    fn nothing_missing_is_nothing_left_behind() {
        assert_eq!(left_behind(Vec::new(), &ids(&["b:1"])), LeftBehind::default());
    }
}
