//! Topics that a Java worker wrote, folded up to each stage of its life, say what its REST interface said at that stage.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use oncewire_topics::{Config, ConfigFold, ConfigSnapshot, Status, StatusFold, TargetState};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const CONFIGS: &str = include_str!("../../../tests/golden/connect-topics/configs.tsv");
const STATUS: &str = include_str!("../../../tests/golden/connect-topics/status.tsv");
const STAGES: &str = include_str!("../../../tests/golden/connect-topics/stages.txt");

/// What REST said at one stage.
#[derive(Default)]
struct Stage {
    name: String,
    expand: Map<String, Value>,
    topics: BTreeMap<String, Value>,
    tasks: BTreeMap<String, Value>,
    /// The end of each partition, by topic and partition.
    ends: BTreeMap<(String, i32), i64>,
}

fn stages() -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for line in STAGES.lines() {
        let (word, rest) = line.split_once(' ').unwrap();
        if word == "stage" {
            stages.push(Stage { name: rest.to_owned(), ..Stage::default() });
            continue;
        }
        let stage = stages.last_mut().unwrap();
        match word {
            "expand" => stage.expand = serde_json::from_str(rest).unwrap(),
            "topics" => stage.topics.extend(serde_json::from_str::<BTreeMap<String, Value>>(rest).unwrap()),
            "tasks" => {
                let (connector, tasks) = rest.split_once(' ').unwrap();
                stage.tasks.insert(connector.to_owned(), serde_json::from_str(tasks).unwrap());
            }
            "end" => {
                let mut parts = rest.rsplitn(3, ':');
                let (end, partition) = (parts.next().unwrap().parse().unwrap(), parts.next().unwrap().parse().unwrap());
                stage.ends.insert((parts.next().unwrap().to_owned(), partition), end);
            }
            other => panic!("{other}"),
        }
    }
    stages
}

/// Partition, offset, key, value.
fn records(dump: &str) -> impl Iterator<Item = (i32, i64, &str, Option<&str>)> {
    dump.lines().map(|line| {
        let mut parts = line.splitn(4, '\t');
        let mut next = || parts.next().unwrap();
        let (partition, offset, key) = (next().parse().unwrap(), next().parse().unwrap(), next());
        (partition, offset, key, Some(next()).filter(|value| *value != "NULL"))
    })
}

fn configs(stage: &Stage) -> ConfigSnapshot {
    let end = stage.ends[&("golden-cluster-configs".to_owned(), 0)];
    let mut fold = ConfigFold::new(false);
    for (_, offset, key, value) in records(CONFIGS).filter(|(_, offset, ..)| *offset < end) {
        fold.apply(offset, Some(key.as_bytes()), value.map(str::as_bytes));
    }
    fold.go_live();
    fold.snapshot().clone()
}

fn statuses(stage: &Stage) -> StatusFold {
    let mut fold = StatusFold::default();
    for (partition, offset, key, value) in records(STATUS) {
        if offset < stage.ends[&("golden-cluster-status".to_owned(), partition)] {
            fold.apply(Some(key.as_bytes()), value.map(str::as_bytes));
        }
    }
    fold
}

fn as_json(config: &Config) -> Value {
    json!(config)
}

fn shown(status: &Status) -> Value {
    let mut value = json!({"state": status.state.name(), "worker_id": status.worker_id});
    if let Some(version) = &status.version {
        value["version"] = version.as_str().into();
    }
    if let Some(trace) = &status.trace {
        value["trace"] = trace.as_str().into();
    }
    value
}

#[test]
fn connectors_and_task_configs_are_those_that_java_told() {
    for stage in stages() {
        let (snapshot, name) = (configs(&stage), &stage.name);
        assert_eq!(snapshot.connectors().collect::<Vec<_>>(), stage.expand.keys().collect::<Vec<_>>(), "{name}");
        for (connector, told) in &stage.expand {
            let info = &told["info"];
            assert_eq!(as_json(snapshot.config(connector).unwrap()), info["config"], "{name}: {connector}");
            let tasks: Vec<Value> = (snapshot.tasks(connector).into_iter())
                .map(|task| json!({"connector": connector, "task": task}))
                .collect();
            assert_eq!(Value::from(tasks), info["tasks"], "{name}: {connector}");
            let tasks: Vec<Value> = (snapshot.tasks(connector).into_iter())
                .map(|task| {
                    let config = as_json(snapshot.task_config(connector, task).unwrap());
                    json!({"config": config, "id": {"connector": connector, "task": task}})
                })
                .collect();
            assert_eq!(Value::from(tasks), stage.tasks[connector], "{name}: {connector}");
            let tasks_run = !snapshot.tasks(connector).is_empty();
            assert!(!(tasks_run && snapshot.pending_fencing(connector)), "{name}: {connector}: fenced before they ran");
            assert!(!snapshot.lost_tasks(connector));
        }
    }
}

#[test]
fn statuses_are_those_that_java_told() {
    for stage in stages() {
        let (fold, name) = (statuses(&stage), &stage.name);
        assert_eq!(fold.connectors().collect::<Vec<_>>(), stage.expand.keys().collect::<Vec<_>>(), "{name}");
        for (connector, told) in &stage.expand {
            let status = &told["status"];
            assert_eq!(shown(fold.connector(connector).unwrap()), status["connector"], "{name}: {connector}");
            let tasks: Vec<Value> = (fold.tasks(connector))
                .map(|(task, status)| {
                    let mut value = shown(status);
                    value["id"] = task.into();
                    value
                })
                .collect();
            assert_eq!(Value::from(tasks), status["tasks"], "{name}: {connector}");
            let topics: Vec<&str> = fold.topics(connector).map(|(topic, _)| topic).collect();
            assert_eq!(json!({"topics": topics}), stage.topics[connector], "{name}: {connector}");
        }
    }
}

#[test]
fn target_states_fit_the_stages() {
    let state = |stage: &str, connector: &str| {
        let stage = stages().into_iter().find(|known| known.name == stage).expect("a stage of the recording");
        configs(&stage).target_state(connector)
    };
    assert_eq!(state("created-stopped", "waits-1"), Some(TargetState::Stopped));
    assert_eq!(state("paused", "lines"), Some(TargetState::Paused));
    assert_eq!(state("stopped", "lines"), Some(TargetState::Stopped));
    assert_eq!(state("resumed-from-stopped", "lines"), Some(TargetState::Started));
    assert_eq!(state("deleted", "lines"), None);
    assert_eq!(state("made-again", "lines"), Some(TargetState::Started));
}

#[test]
fn the_whole_log_has_a_session_key_and_the_counts_of_its_tasks() {
    let stage = stages().pop().unwrap();
    let snapshot = configs(&stage);
    let key = snapshot.session_key().unwrap();
    assert_eq!((key.key.len(), key.algorithm.as_str()), (32, "HmacSHA256"));
    assert_eq!(snapshot.task_count_record("sequence"), Some(2));
    assert_eq!(snapshot.offset(), records(CONFIGS).last().unwrap().1 + 1);
}
