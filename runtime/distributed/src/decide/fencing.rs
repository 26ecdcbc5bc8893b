//! Whether old tasks of a source connector have to be fenced before new ones may start (KIP-618).
//!
//! The config topic tells it: a *task count record* after the last commit of task configurations says that everything older
//! was fenced. The record holds how many tasks there were, so the transactional ids of the old generation are known even when
//! the new one has fewer. A record is written after the fencing; a crash in between repeats a fencing, which harms nobody.

/// How many ids are fenced at most, whatever a record in the config topic claims: as many tasks as a connector may have here.
const IDS_MAX: u32 = 10_000;

/// What the leader has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fencing {
    /// Nothing: these tasks were let in already.
    NotNeeded,
    /// Write the record, fence nobody.
    Record {
        /// The number to write.
        tasks: u32,
    },
    /// Fence `ids`, then write the record.
    Fence {
        /// Transactional ids of the old tasks.
        ids: Vec<String>,
        /// The number to write.
        tasks: u32,
    },
}

/// Decides from the leader's snapshot: whether a commit came after the last record, that record's count, and today's count.
pub fn fencing(group_id: &str, connector: &str, pending: bool, recorded: Option<u32>, tasks: u32) -> Fencing {
    if !pending {
        return Fencing::NotNeeded;
    }
    match recorded {
        None => Fencing::Record { tasks },
        // The one new task has the id of the one old task: its InitProducerId fences it.
        Some(1) if tasks == 1 => Fencing::Record { tasks },
        Some(recorded) => Fencing::Fence { ids: ids(group_id, connector, recorded), tasks },
    }
}

/// The transactional ids that a connector may have used whose tasks are gone and have no successors: of the tasks that were let
/// in last, and of those that it had.
pub fn left_behind(group_id: &str, connector: &str, recorded: Option<u32>, tasks: u32) -> Vec<String> {
    ids(group_id, connector, recorded.unwrap_or(0).max(tasks))
}

fn ids(group_id: &str, connector: &str, tasks: u32) -> Vec<String> {
    if tasks > IDS_MAX {
        tracing::error!(
            connector,
            tasks,
            "config topic: the connector's task count record or commit says that it had more tasks than a worker runs; only the \
             producers of the first {IDS_MAX} are fenced"
        );
    }
    (0..tasks.min(IDS_MAX)).map(|task| format!("{group_id}-{connector}-{task}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E53
    #[test]
    fn first_start_writes_count() {
        assert_eq!(fencing("g", "c", true, None, 3), Fencing::Record { tasks: 3 });
    }

    /// E54
    #[test]
    fn one_to_one_skip() {
        assert_eq!(fencing("g", "c", true, Some(1), 1), Fencing::Record { tasks: 1 });
    }

    /// E55
    #[test]
    fn already_fenced() {
        assert_eq!(fencing("g", "c", false, Some(4), 9), Fencing::NotNeeded);
    }

    /// E56
    #[test]
    fn n_to_m_fences_the_old_count() {
        let ids = vec!["g-c-0".to_owned(), "g-c-1".to_owned(), "g-c-2".to_owned()];
        assert_eq!(fencing("g", "c", true, Some(3), 5), Fencing::Fence { ids, tasks: 5 });
        assert!(matches!(fencing("g", "c", true, Some(2), 1), Fencing::Fence { ids, tasks: 1 } if ids.len() == 2));
    }

    #[test]
    fn what_is_left_behind_is_all_that_was_let_in_and_all_that_there_was() {
        assert_eq!(left_behind("g", "c", Some(2), 1), ["g-c-0", "g-c-1"]);
        assert_eq!(left_behind("g", "c", Some(1), 2), ["g-c-0", "g-c-1"]);
        assert!(left_behind("g", "c", None, 0).is_empty());
    }

    #[test]
    fn a_count_that_nobody_ever_had_costs_no_more_than_the_most_tasks_that_there_can_be() {
        let most = usize::try_from(IDS_MAX).unwrap();
        let enormous = fencing("g", "c", true, Some(u32::MAX), 1);
        assert!(matches!(enormous, Fencing::Fence { ids, tasks: 1 } if ids.len() == most));
        assert_eq!(left_behind("g", "c", Some(1), i32::MAX.unsigned_abs()).len(), most);
        assert_eq!(most, oncewire_worker::config::connector::TASKS_MAX_LIMIT);
    }
}
