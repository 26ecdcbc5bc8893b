//! The scenarios of a config topic, each as a fact.

use super::*;
use crate::config::records::{KeyValue, RestartRequest, SessionKey};

/// A log under construction: offsets count by themselves.
#[derive(Clone, Default)]
struct Log(Vec<(i64, String, Option<Vec<u8>>)>);

impl Log {
    fn and(mut self, (key, value): KeyValue) -> Self {
        self.0.push((i64::try_from(self.0.len()).unwrap(), key, value));
        self
    }

    fn raw(self, key: &str, value: &str) -> Self {
        self.and((key.to_owned(), Some(value.as_bytes().to_vec())))
    }

    fn connector(self, name: &str, version: &str) -> Self {
        self.and(records::connector(name, &config(version)))
    }

    fn tasks(self, name: &str, tasks: impl IntoIterator<Item = u32>) -> Self {
        tasks.into_iter().fold(self, |log, task| log.and(records::task(name, task, &config(&format!("task {task}")))))
    }

    fn commit(self, name: &str, count: u32) -> Self {
        self.and(records::commit(name, count))
    }

    fn count(self, name: &str, count: u32) -> Self {
        self.and(records::task_count(name, count))
    }

    fn remove(self, name: &str) -> Self {
        self.and(records::connector_tombstone(name)).and(records::target_state_tombstone(name))
    }

    /// Leaves the newest record of each key only, and with `tombstones` not even the last word of what was deleted.
    fn compacted(&self, tombstones: bool) -> Self {
        let newest: BTreeMap<&String, i64> = self.0.iter().map(|(offset, key, _)| (key, *offset)).collect();
        let is_kept = |(offset, key, value): &&(i64, String, Option<Vec<u8>>)| {
            newest[key] == *offset && (tombstones || value.is_some())
        };
        Self(self.0.iter().filter(is_kept).cloned().collect())
    }

    fn feed(&self, fold: &mut ConfigFold) {
        for (offset, key, value) in &self.0 {
            fold.apply(*offset, Some(key.as_bytes()), value.as_deref());
        }
    }

    fn fold(&self) -> ConfigFold {
        let mut fold = ConfigFold::new(false);
        self.feed(&mut fold);
        fold.go_live();
        fold
    }

    fn snapshot(&self) -> ConfigSnapshot {
        self.fold().snapshot().clone()
    }
}

fn config(version: &str) -> Config {
    Config::from([("version".to_owned(), Some(version.to_owned()))])
}

/// What a live fold makes of one more record.
fn changes_of(fold: &mut ConfigFold, (key, value): KeyValue) -> Changes {
    let offset = fold.snapshot().offset().max(0);
    fold.apply(offset, Some(key.as_bytes()), value.as_deref());
    fold.take_changes()
}

#[test]
fn nothing_read_is_offset_minus_one() {
    assert_eq!(ConfigSnapshot::default().offset(), -1);
}

#[test]
fn a_restored_log_is_the_starting_point_and_no_change() {
    let log = Log::default().connector("c", "1").tasks("c", [0, 1]).commit("c", 2).count("c", 2);
    let mut fold = log.fold();
    assert!(fold.take_changes().is_empty());
    let snapshot = fold.snapshot();
    assert_eq!(snapshot.offset(), 5);
    assert_eq!(snapshot.connectors().collect::<Vec<_>>(), ["c"]);
    assert_eq!(snapshot.target_state("c"), Some(TargetState::Started));
    assert_eq!((snapshot.tasks("c"), snapshot.task_count("c")), (vec![0, 1], 2));
    assert_eq!(**snapshot.task_config("c", 1).unwrap(), config("task 1"));
    assert_eq!(snapshot.task_configs("c").len(), 2);
    assert_eq!(snapshot.task_count_record("c"), Some(2));
    assert_eq!(snapshot.applied_config("c"), snapshot.config("c"));
    assert!(!snapshot.pending_fencing("c") && !snapshot.lost_tasks("c"));
}

/// B23 commit-is-barrier
#[test]
fn task_configs_are_invisible_until_their_commit() {
    let log = Log::default().connector("c", "1").tasks("c", [0]).commit("c", 1).tasks("c", [0, 1]);
    assert_eq!(log.snapshot().tasks("c"), [0]);
    assert_eq!(log.clone().commit("c", 2).snapshot().tasks("c"), [0, 1]);
}

/// B24 compacted-incomplete
#[test]
fn an_incomplete_commit_takes_the_tasks_away_until_a_complete_one() {
    let log = Log::default().connector("c", "1").tasks("c", [1]).commit("c", 2);
    let snapshot = log.snapshot();
    assert!(snapshot.inconsistent("c") && snapshot.lost_tasks("c"));
    assert_eq!((snapshot.tasks("c"), snapshot.task_count("c")), (vec![], 2));
    assert!(snapshot.pending_fencing("c"));
    // What came before the incomplete commit does not count for the next one.
    assert!(log.clone().tasks("c", [0]).commit("c", 2).snapshot().inconsistent("c"));
    let healed = log.tasks("c", [0, 1]).commit("c", 2).snapshot();
    assert!(!healed.inconsistent("c"));
    assert_eq!(healed.tasks("c"), [0, 1]);
}

/// B25 shrinking-set
#[test]
fn more_tasks_than_the_commit_counts_are_passed_over() {
    // After a compaction that left the records of a larger set.
    let snapshot = Log::default().connector("c", "1").tasks("c", [2, 3, 0, 1]).commit("c", 2).snapshot();
    assert_eq!(snapshot.tasks("c"), [0, 1]);
    assert!(snapshot.task_config("c", 2).is_none());
}

/// B26 zero-tasks
#[test]
fn a_connector_may_have_no_tasks() {
    let snapshot = Log::default().connector("c", "1").commit("c", 0).snapshot();
    assert!(!snapshot.inconsistent("c"));
    assert_eq!((snapshot.tasks("c"), snapshot.generation("c")), (vec![], 0));
}

#[test]
fn a_commit_of_an_enormous_count_is_incomplete_and_costs_nothing() {
    let snapshot = Log::default().connector("c", "1").tasks("c", [0]).commit("c", i32::MAX.unsigned_abs()).snapshot();
    assert!(snapshot.inconsistent("c") && snapshot.tasks("c").is_empty());
}

#[test]
fn the_generation_counts_commits_that_had_task_configs() {
    let log = Log::default().connector("c", "1").commit("c", 0);
    assert_eq!(log.snapshot().generation("c"), 0);
    let log = log.tasks("c", [0]).commit("c", 1);
    assert_eq!(log.snapshot().generation("c"), 1);
    // There were some once, so an empty set is a new generation, too.
    assert_eq!(log.clone().commit("c", 0).snapshot().generation("c"), 2);
    assert_eq!(log.clone().tasks("c", [1]).commit("c", 2).snapshot().generation("c"), 1, "an incomplete set is none");
    assert_eq!(log.remove("c").connector("c", "2").snapshot().generation("c"), 1, "it stays over a deletion");
}

/// B30 task-count-record-vs-generation
#[test]
fn fencing_is_pending_while_a_commit_is_behind_the_last_task_count_record() {
    let log = Log::default().connector("c", "1").tasks("c", [0]).commit("c", 1);
    assert!(log.snapshot().pending_fencing("c"));
    let log = log.count("c", 1);
    assert!(!log.snapshot().pending_fencing("c"));
    assert!(log.clone().tasks("c", [0]).commit("c", 1).snapshot().pending_fencing("c"));
    let gone = log.tasks("c", [0]).commit("c", 1).remove("c").connector("c", "2").snapshot();
    assert!(gone.pending_fencing("c"), "the tasks of the deleted one may still write");
    assert_eq!(gone.task_count_record("c"), Some(1));
    assert!(gone.tasks("c").is_empty() && gone.applied_config("c").is_none());
}

/// B27 commit-for-unknown-connector
#[test]
fn leftovers_of_a_deleted_connector_are_passed_over() {
    let full =
        Log::default().connector("c", "1").tasks("c", [0]).commit("c", 1).count("c", 1).remove("c").connector("d", "1");
    let snapshot = full.compacted(false).snapshot();
    assert_eq!(snapshot.connectors().collect::<Vec<_>>(), ["d"]);
    assert!(snapshot.tasks("c").is_empty() && !snapshot.lost_tasks("c"));
    assert_eq!(snapshot.offset(), full.snapshot().offset());
    let created = full.compacted(false).connector("c", "2").tasks("c", [0]).commit("c", 1).snapshot();
    assert_eq!(created.tasks("c"), [0]);
}

#[test]
fn task_configs_that_compaction_left_before_their_connector_are_lost_and_not_half_used() {
    let full = Log::default().connector("c", "1").tasks("c", [0]).commit("c", 1).count("c", 1).connector("c", "2");
    assert_eq!(full.snapshot().tasks("c"), [0]);
    let compacted = full.compacted(true);
    let snapshot = compacted.snapshot();
    assert_eq!(snapshot.config("c"), full.snapshot().config("c"));
    assert!(snapshot.tasks("c").is_empty() && snapshot.task_config("c", 0).is_none());
    assert!(snapshot.lost_tasks("c") && !snapshot.inconsistent("c"));
    assert_eq!(snapshot.offset(), full.snapshot().offset());
    let again = compacted.tasks("c", [0]).commit("c", 1).snapshot();
    assert!(!again.lost_tasks("c") && again.pending_fencing("c"));
    assert_eq!(again.tasks("c"), [0]);
}

#[test]
fn a_target_state_before_its_connector_is_its_first_state_and_no_change() {
    let mut fold = Log::default().fold();
    assert!(changes_of(&mut fold, records::target_state("c", TargetState::Stopped)).is_empty());
    let changes = changes_of(&mut fold, records::connector("c", &config("1")));
    assert!(changes.added.contains("c") && changes.target_states.is_empty());
    assert_eq!(fold.snapshot().target_state("c"), Some(TargetState::Stopped));
}

#[test]
fn a_target_state_that_is_told_again_is_no_change() {
    let mut fold = Log::default().connector("c", "1").fold();
    assert!(changes_of(&mut fold, records::target_state("c", TargetState::Started)).is_empty());
    let changes = changes_of(&mut fold, records::target_state("c", TargetState::Paused));
    assert!(changes.target_states.contains("c"));
    // Removed while the connector is there: started, and nobody is told.
    assert!(changes_of(&mut fold, records::target_state_tombstone("c")).is_empty());
    assert_eq!(fold.snapshot().target_state("c"), Some(TargetState::Started));
}

#[test]
fn changes_tell_added_from_reconfigured_from_removed() {
    let mut fold = Log::default().fold();
    assert!(changes_of(&mut fold, records::connector("c", &config("1"))).added.contains("c"));
    assert!(changes_of(&mut fold, records::connector("c", &config("1"))).reconfigured.contains("c"));
    assert!(changes_of(&mut fold, records::commit("c", 0)).task_commits.contains("c"));
    assert!(changes_of(&mut fold, records::connector_tombstone("c")).removed.contains("c"));
    assert!(changes_of(&mut fold, records::connector_tombstone("c")).is_empty());
    assert!(changes_of(&mut fold, records::commit("c", 0)).is_empty(), "no connector, no commit");
}

#[test]
fn restarts_and_logger_levels_count_after_the_replay_only() {
    let request = RestartRequest { connector: "c".into(), only_failed: false, include_tasks: true };
    let log = Log::default().and(records::restart(&request)).and(records::logger_level("a.b", "DEBUG"));
    let mut fold = log.fold();
    assert!(fold.take_changes().is_empty());
    assert_eq!(fold.snapshot().offset(), 2, "but they count for the offset");
    assert_eq!(changes_of(&mut fold, records::restart(&request)).restarts["c"], request);
    assert_eq!(changes_of(&mut fold, records::logger_level("a.b", "INFO")).loggers["a.b"], "INFO");
}

#[test]
fn the_newest_session_key_counts() {
    let key = |byte: u8| SessionKey { key: vec![byte; 32], algorithm: "HmacSHA256".into(), created_ms: 1 };
    let mut fold = Log::default().and(records::session_key(&key(1))).fold();
    assert_eq!(fold.snapshot().session_key(), Some(&key(1)));
    assert!(changes_of(&mut fold, records::session_key(&key(2))).session_key);
    assert_eq!(fold.snapshot().session_key(), Some(&key(2)));
}

#[test]
fn what_is_no_json_does_not_move_the_offset_and_what_is_unknown_does() {
    let mut fold = Log::default().connector("c", "1").fold();
    fold.apply(7, Some(b"connector-c"), Some(b"{\"properties\":"));
    fold.apply(8, Some(b"connector-c"), Some(b""));
    assert_eq!(fold.snapshot().offset(), 1);
    fold.apply(9, Some(b"who-knows"), Some(b"{}"));
    assert_eq!(fold.snapshot().offset(), 10);
    fold.apply(10, None, Some(b"{}"));
    assert_eq!(fold.snapshot().offset(), 11);
    fold.apply(11, Some(b"\xff\xfe"), Some(b"{}"));
    assert_eq!(fold.snapshot().offset(), 12);
}

#[test]
fn what_has_no_meaning_is_passed_over() {
    let good = Log::default().connector("c", "1").tasks("c", [0]).commit("c", 1).count("c", 1);
    let bad = [
        ("target-state-c", r#"{"state":"FLYING"}"#),
        ("target-state-c", "7"),
        ("connector-c", r#"{"properties":[]}"#),
        ("connector-c", r#"{"properties":{"a":{"b":1}}}"#),
        ("connector-c", "[]"),
        ("task-c-0", "null"),
        ("task-c-x", r#"{"properties":{}}"#),
        ("task-c", r#"{"properties":{}}"#),
        ("commit-c", "null"),
        ("commit-c", r#"{"tasks":"1"}"#),
        ("tasks-fencing-c", "null"),
        ("tasks-fencing-c", r#"{"task-count":1.5}"#),
        ("session-key", "null"),
        ("session-key", r#"{"key":"%","algorithm":"x","creation-timestamp":1}"#),
        ("restart-connector-c", "null"),
        ("logger-cluster-a", "null"),
    ];
    let mut expected = good.snapshot();
    for (key, value) in bad {
        let log = good.clone().raw(key, value);
        let mut fold = log.fold();
        expected.offset = fold.snapshot().offset();
        assert_eq!(fold.snapshot(), &expected, "{key} {value}");
        assert_eq!(expected.offset(), 5, "{key} {value}");
        let mut live = good.fold();
        assert!(changes_of(&mut live, (key.to_owned(), Some(value.as_bytes().to_vec()))).is_empty(), "{key} {value}");
        assert!(fold.take_changes().is_empty());
    }
}

mod random {
    use super::*;
    use proptest::prelude::*;

    const CONNECTORS: [&str; 3] = ["c", "c-0", "d"];

    /// What a leader writes, so that the log is one that a cluster can have.
    #[derive(Debug, Clone)]
    enum Act {
        Configure(usize, u8),
        Remove(usize),
        Tasks(usize, u32),
        Count(usize, u32),
        State(usize, u8),
        Key(u8),
        Restart(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        let connector = 0..CONNECTORS.len();
        prop_oneof![
            3 => (connector.clone(), any::<u8>()).prop_map(|(c, version)| Act::Configure(c, version)),
            1 => connector.clone().prop_map(Act::Remove),
            4 => (connector.clone(), 0..4_u32).prop_map(|(c, count)| Act::Tasks(c, count)),
            2 => (connector.clone(), 0..4_u32).prop_map(|(c, count)| Act::Count(c, count)),
            2 => (connector.clone(), 0..3_u8).prop_map(|(c, state)| Act::State(c, state)),
            1 => any::<u8>().prop_map(Act::Key),
            1 => connector.prop_map(Act::Restart),
        ]
    }

    fn log(acts: &[Act]) -> Log {
        let mut log = Log::default();
        for act in acts {
            log = match act {
                Act::Configure(c, version) => log.connector(CONNECTORS[*c], &version.to_string()),
                Act::Remove(c) => log.remove(CONNECTORS[*c]),
                Act::Tasks(c, count) => log.tasks(CONNECTORS[*c], 0..*count).commit(CONNECTORS[*c], *count),
                Act::Count(c, count) => log.count(CONNECTORS[*c], *count),
                Act::State(c, state) => {
                    let state = [TargetState::Started, TargetState::Paused, TargetState::Stopped][usize::from(*state)];
                    log.and(records::target_state(CONNECTORS[*c], state))
                }
                Act::Key(byte) => {
                    let key = SessionKey { key: vec![*byte; 4], algorithm: "HmacSHA256".into(), created_ms: 1 };
                    log.and(records::session_key(&key))
                }
                Act::Restart(c) => {
                    let connector = CONNECTORS[*c].to_owned();
                    log.and(records::restart(&RestartRequest { connector, only_failed: true, include_tasks: true }))
                }
            };
        }
        log
    }

    /// Compaction works on what is behind some point, so the newest part of a log is whole; and it may be cut anywhere.
    fn compacted_up_to(log: &Log, end: usize, tombstones: bool) -> Log {
        let end = end.min(log.0.len());
        let mut head = Log(log.0[..end].to_vec()).compacted(tombstones);
        head.0.extend_from_slice(&log.0[end..]);
        head
    }

    proptest! {
        #[test]
        fn a_compacted_log_says_what_the_whole_one_says(
            acts in proptest::collection::vec(act(), 0..40), end in 0..200_usize, tombstones: bool,
        ) {
            let log = log(&acts);
            let (full, thin) = (log.snapshot(), compacted_up_to(&log, end, tombstones).snapshot());
            prop_assert_eq!(&full.configs, &thin.configs);
            prop_assert_eq!(&full.task_count_records, &thin.task_count_records);
            prop_assert_eq!(&full.session_key, &thin.session_key);
            // The last record of a log is never compacted away, but a tombstone may be.
            if tombstones {
                prop_assert_eq!(full.offset, thin.offset);
            }
            for connector in CONNECTORS {
                if full.contains(connector) {
                    prop_assert_eq!(full.target_state(connector), thin.target_state(connector));
                }
                // Tasks are the same or none at all, and then it is known that they are missing.
                let (tasks, thin_tasks) = (full.task_configs(connector), thin.task_configs(connector));
                if tasks != thin_tasks {
                    prop_assert!(thin_tasks.is_empty());
                    prop_assert!(thin.lost_tasks(connector), "{connector}: {:?}", acts);
                }
                // Fencing that is pending is known, unless there are no tasks that could start without it.
                if full.pending_fencing(connector) && !thin.pending_fencing(connector) {
                    prop_assert!(thin_tasks.is_empty());
                }
            }
        }

        #[test]
        fn tasks_always_have_configs(
            acts in proptest::collection::vec(act(), 0..40), kept in proptest::collection::vec(any::<bool>(), 200),
            from in 0..50_usize,
        ) {
            // Any thinning, also ones that no compaction does, and any place to start.
            let log = log(&acts);
            let thin = Log(log.0.into_iter().zip(kept).skip(from).filter(|(_, kept)| *kept).map(|(record, _)| record).collect());
            let snapshot = thin.snapshot();
            for connector in CONNECTORS {
                let tasks = snapshot.tasks(connector);
                prop_assert_eq!(tasks.len(), snapshot.task_configs(connector).len());
                prop_assert!(tasks.is_empty() || tasks.len() == snapshot.task_count(connector) as usize);
                prop_assert!(tasks.is_empty() || snapshot.contains(connector));
                prop_assert!(snapshot.target_state(connector).is_some() || !snapshot.contains(connector));
            }
        }

        #[test]
        fn whatever_is_in_the_topic_is_survived(
            records in proptest::collection::vec((
                proptest::option::of(prop_oneof![
                    Just("session-key".to_owned()),
                    "(target-state-|connector-|task-|commit-|restart-connector-|tasks-fencing-|logger-cluster-|)[-cé0-9]{0,4}",
                ]),
                proptest::option::of(prop_oneof![
                    "\\{\"(properties|tasks|task-count|state|state.v2|key|level)\":(\\{\"a\":[1-9ntf]\\}|[1-9]{1,30}|\"[A-Z]{0,9}\"|null|\\[\\])\\}",
                    "\\PC{0,20}",
                ]),
            ), 0..30), live: bool,
        ) {
            let mut fold = ConfigFold::new(live);
            for (offset, (key, value)) in records.iter().enumerate() {
                let offset = i64::try_from(offset).unwrap();
                fold.apply(offset, key.as_ref().map(String::as_bytes), value.as_ref().map(String::as_bytes));
                prop_assert!(fold.snapshot().offset() <= offset + 1);
            }
            fold.go_live();
        }
    }
}
