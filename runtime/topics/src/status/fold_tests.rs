//! The scenarios of a status topic, each as a fact.

use super::*;

fn apply(fold: &mut StatusFold, key: &str, value: &str) {
    fold.apply(Some(key.as_bytes()), Some(value.as_bytes()));
}

fn told(state: &str, generation: i32) -> String {
    format!(r#"{{"state":"{state}","trace":null,"worker_id":"host:8083","generation":{generation}}}"#)
}

#[test]
fn a_status_is_written_as_java_writes_it_and_read_back() {
    let status = Status {
        state: State::Failed,
        trace: Some("java.lang.Error\n\tat A".into()),
        worker_id: "host:8083".into(),
        generation: 5,
        version: None,
    };
    let text =
        r#"{"state":"FAILED","trace":"java.lang.Error\n\tat A","worker_id":"host:8083","generation":5,"version":null}"#;
    assert_eq!(String::from_utf8(records::status(&status)).unwrap(), text);
    let mut fold = StatusFold::default();
    apply(&mut fold, "status-connector-c", text);
    assert_eq!(fold.connector("c"), Some(&status));
}

#[test]
fn a_status_without_version_is_read() {
    let mut fold = StatusFold::default();
    apply(&mut fold, "status-task-my-c-3", &told("RUNNING", 5));
    let status = fold.task("my-c", 3).unwrap();
    assert_eq!((status.state, status.generation, &status.version), (State::Running, 5, &None));
    assert_eq!(fold.tasks("my-c").count(), 1);
}

#[test]
fn a_task_that_runs_is_not_unassigned_by_a_worker_that_tells_it_late() {
    for generation in [4, 5] {
        let mut fold = StatusFold::default();
        apply(&mut fold, "status-task-c-0", &told("RUNNING", 5));
        apply(&mut fold, "status-task-c-0", &told("UNASSIGNED", generation));
        assert_eq!(fold.task("c", 0).unwrap().state, State::Running, "generation {generation}");
    }
    let mut fold = StatusFold::default();
    apply(&mut fold, "status-task-c-0", &told("RUNNING", 5));
    apply(&mut fold, "status-task-c-0", &told("UNASSIGNED", 6));
    assert_eq!(fold.task("c", 0).unwrap().state, State::Unassigned);
    apply(&mut fold, "status-task-c-0", &told("PAUSED", 6));
    apply(&mut fold, "status-task-c-0", &told("UNASSIGNED", 5));
    assert_eq!(fold.task("c", 0).unwrap().state, State::Unassigned, "only RUNNING is kept");
}

#[test]
fn a_task_is_given_up_when_its_last_worker_says_so_whatever_its_status_shows() {
    let by = |worker: &str, state: &str, generation: i32| told(state, generation).replace("host:8083", worker);
    let mut fold = StatusFold::default();
    apply(&mut fold, "status-task-c-0", &by("a:1", "RUNNING", 5));
    assert!(!fold.is_given_up("c", 0));
    apply(&mut fold, "status-task-c-0", &by("b:1", "UNASSIGNED", 5));
    assert!(!fold.is_given_up("c", 0), "told by one who had it before");
    apply(&mut fold, "status-task-c-0", &by("a:1", "UNASSIGNED", 5));
    assert!(fold.is_given_up("c", 0) && fold.task("c", 0).unwrap().state == State::Running);
    apply(&mut fold, "status-task-c-0", &by("b:1", "RUNNING", 6));
    assert!(!fold.is_given_up("c", 0), "another has begun");
    apply(&mut fold, "status-task-c-0", &by("b:1", "UNASSIGNED", 7));
    assert!(fold.is_given_up("c", 0) && !fold.is_given_up("c", 1));
    apply(&mut fold, "status-task-c-0", &by("b:1", "FAILED", 7));
    assert!(!fold.is_given_up("c", 0));
}

#[test]
fn connectors_are_unassigned_whoever_tells_it() {
    let mut fold = StatusFold::default();
    apply(&mut fold, "status-connector-c", &told("RUNNING", 5));
    apply(&mut fold, "status-connector-c", &told("UNASSIGNED", 5));
    assert_eq!(fold.connector("c").unwrap().state, State::Unassigned);
}

#[test]
fn a_connectors_tombstone_takes_the_statuses_of_its_tasks_along() {
    let mut fold = StatusFold::default();
    apply(&mut fold, "status-connector-c", &told("RUNNING", 5));
    apply(&mut fold, "status-task-c-0", &told("RUNNING", 5));
    apply(&mut fold, "status-task-c-1", &told("RUNNING", 5));
    fold.apply(Some(b"status-task-c-1"), None);
    assert_eq!(fold.tasks("c").map(|(task, _)| task).collect::<Vec<_>>(), [0]);
    fold.apply(Some(b"status-connector-c"), None);
    assert_eq!(fold, StatusFold::default());
}

#[test]
fn topics_come_and_go() {
    let mut fold = StatusFold::default();
    let text = String::from_utf8(records::topic("c", 2, "t", 1_700_000_000_000)).unwrap();
    assert_eq!(text, r#"{"topic":{"name":"t","connector":"c","task":2,"discoverTimestamp":1700000000000}}"#);
    let key = records::topic_key("c", "t");
    assert_eq!(key, "status-topic-t:connector-c");
    apply(&mut fold, &key, &text);
    assert_eq!(fold.topic("c", "t"), Some(TopicStatus { task: 2, discovered_ms: 1_700_000_000_000 }));
    assert_eq!(fold.topics("c").map(|(topic, _)| topic).collect::<Vec<_>>(), ["t"]);
    fold.apply(Some(key.as_bytes()), None);
    assert_eq!(fold, StatusFold::default());
}

#[test]
fn what_has_no_meaning_is_passed_over() {
    let mut fold = StatusFold::default();
    let bad = [
        ("status-connector-", told("RUNNING", 5)),
        ("status-task-c", told("RUNNING", 5)),
        ("status-task-c-x", told("RUNNING", 5)),
        ("status-topic-t", "{}".to_owned()),
        ("status-topic-:connector-c", "{}".to_owned()),
        ("status-topic-t:connector-", "{}".to_owned()),
        ("status-topic-t:é", "{}".to_owned()),
        ("status-topic-t:connector-c", "{}".to_owned()),
        ("status-topic-t:connector-c", r#"{"topic":{"task":-1,"discoverTimestamp":1}}"#.to_owned()),
        ("who-knows", told("RUNNING", 5)),
        ("status-connector-c", told("DESTROYED", 5)),
        ("status-connector-c", "{".to_owned()),
        ("status-connector-c", "null".to_owned()),
        ("status-connector-c", r#"{"state":"RUNNING","worker_id":"w","generation":"5"}"#.to_owned()),
        ("status-connector-c", r#"{"state":"RUNNING","worker_id":7,"generation":5}"#.to_owned()),
        ("status-connector-c", r#"{"state":"RUNNING","generation":5}"#.to_owned()),
    ];
    for (key, value) in bad {
        apply(&mut fold, key, &value);
        assert_eq!(fold, StatusFold::default(), "{key} {value}");
    }
    fold.apply(None, None);
    fold.apply(Some(b"\xff"), Some(b"\xff"));
    assert_eq!(fold, StatusFold::default());
}

mod random {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_is_in_the_topic_is_survived(
            records in proptest::collection::vec((
                proptest::option::of("(status-connector-|status-task-|status-topic-|)[-:cé0-9]{0,6}(:connector-c)?"),
                proptest::option::of(prop_oneof![
                    "\\{\"state\":\"(RUNNING|FAILED|X)\",\"worker_id\":(\"w\"|1),\"generation\":[0-9]{1,12}\\}",
                    "\\{\"topic\":\\{\"task\":-?[0-9]{1,12},\"discoverTimestamp\":[0-9]{1,22}\\}\\}",
                    "\\PC{0,20}",
                ]),
            ), 0..30),
        ) {
            let mut fold = StatusFold::default();
            for (key, value) in &records {
                fold.apply(key.as_ref().map(String::as_bytes), value.as_ref().map(String::as_bytes));
            }
        }
    }
}
