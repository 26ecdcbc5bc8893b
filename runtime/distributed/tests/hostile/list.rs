//! What each kind of record could get wrong, by hand.

use super::Record;
use super::support::CONFIGS;
use serde_json::{Value, json};

/// Deeper than any reader that calls itself for each level survives.
const DEPTH: usize = 50_000;
/// Deeper than is read; in the offsets topic, which is read anew for each connector.
const DEPTH_OF_OFFSETS: usize = 500;
/// The count that a commit and a task count record claim; nothing of it is there.
const CLAIMED: u32 = 2_147_483_647;

/// Names of connectors, as no REST interface would let them in.
fn names() -> Vec<String> {
    let names = [
        "evil",
        "evil-1",
        "0",
        "-",
        "connector-",
        "a/b",
        "a b",
        "..",
        "ünï\u{202e}💥",
        "a\u{0}\n\u{1b}[31m",
        "%2F",
        "a,b:c=d",
    ];
    names.into_iter().map(str::to_owned).chain(["n".repeat(3_000)]).collect()
}

fn text(key: &str, value: &str) -> Record {
    (key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()))
}

fn json_record(key: &str, value: &Value) -> Record {
    text(key, &value.to_string())
}

/// Values that fit nowhere.
fn wrong_values(depth: usize) -> Vec<Vec<u8>> {
    let deep = |open: &str| open.repeat(depth).into_bytes();
    let texts =
        ["", " ", "null", "true", "7", "\"x\"", "[]", "{}", "{", "{\"a\":1e999}", "-", "nul", "{} {}", "\u{feff}{}"];
    let texts = texts.into_iter().map(|text| text.as_bytes().to_vec());
    let bytes =
        [vec![0xff, 0xfe, 0x00], b"{\"properties\":{\"\xff\":\"\xc3\x28\"}}".to_vec(), deep("["), deep("{\"a\":")];
    texts.chain(bytes).collect()
}

/// Members that ought to be a count, a text, an object.
fn wrong_members() -> Vec<String> {
    let texts = [
        "null",
        "true",
        "\"3\"",
        "[]",
        "{}",
        "-1",
        "1.5",
        "1e400",
        "2147483648",
        "-9223372036854775808",
        "18446744073709551616",
        "123456789012345678901234567890",
    ];
    texts.map(str::to_owned).to_vec()
}

/// Config topic; `script` is the id of a stage for connectors of the scripted class.
pub fn configs(script: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let kinds = [
        "connector-",
        "task-",
        "commit-",
        "target-state-",
        "restart-connector-",
        "tasks-fencing-",
        "logger-cluster-",
        "session-key",
        "nonsense-",
    ];
    for value in wrong_values(DEPTH) {
        for kind in kinds {
            let tail = if kind == "task-" {
                "evil-0"
            } else if kind == "session-key" {
                ""
            } else {
                "evil"
            };
            records.push((format!("{kind}{tail}").into_bytes(), Some(value.clone())));
        }
    }
    for key in [
        &b""[..],
        b"\xff\xfe",
        b"task-",
        b"task--",
        b"task-0",
        b"task-evil--1",
        b"task-evil-2147483648",
        b"task-evil-\xff",
        b"commit-",
        b"connector-\xff\xc3(",
    ] {
        records.push((key.to_vec(), Some(br#"{"properties":{"connector.class":"X"},"tasks":1}"#.to_vec())));
        records.push((key.to_vec(), None));
    }
    for name in names() {
        records.extend(connector(&name, script));
    }
    for (number, properties) in wrong_properties(script).into_iter().enumerate() {
        records.push(json_record(&format!("connector-wrong-{number}"), &json!({ "properties": properties })));
    }
    records.extend(counts());
    records.extend(session_keys());
    records.extend(loggers());
    records
}

/// A connector of that name with two tasks whose configurations say nothing, and requests about it.
fn connector(name: &str, script: &str) -> Vec<Record> {
    let config = json!({"connector.class": "test.ScriptedSourceConnector", "script.id": script, "name": "other", "topic": "evil", "records": "0"});
    let task = json!({"properties": {"task.class": "x", "script.id": script}});
    let mut records = vec![
        json_record(&format!("connector-{name}"), &json!({ "properties": config })),
        json_record(&format!("task-{name}-0"), &task),
        json_record(&format!("task-{name}-1"), &task),
        json_record(&format!("task-{name}-2147483647"), &task),
        json_record(&format!("commit-{name}"), &json!({"tasks": 2})),
    ];
    for state in [
        json!({"state": "FLYING"}),
        json!({"state": 7, "state.v2": []}),
        json!({"state.v2": "PAUSED"}),
        json!({"state": "STARTED"}),
    ] {
        records.push(json_record(&format!("target-state-{name}"), &state));
    }
    for restart in [json!({"include-tasks": "yes"}), json!({"include-tasks": true, "only-failed": false})] {
        records.push(json_record(&format!("restart-connector-{name}"), &restart));
    }
    records
}

/// Configurations of connectors that cannot be.
fn wrong_properties(script: &str) -> Vec<Value> {
    let scripted = |key: &str, value: &str| json!({"connector.class": "test.ScriptedSourceConnector", "script.id": script, "topic": "evil", "records": "0", key: value});
    let mut all = vec![
        json!({}),
        json!({"connector.class": null}),
        json!({"connector.class": 7, "tasks.max": true}),
        json!({"connector.class": "no.such.Connector"}),
        json!({"connector.class": "FileStreamSource", "file": null, "topic": null}),
        json!({"connector.class": "FileStreamSource", "file": "/proc/self/mem", "topic": "t/../\u{0}"}),
        json!({"connector.class": {"a": []}}),
    ];
    for (key, value) in [
        ("tasks.max", "99999999999999999999"),
        ("tasks.max", "-1"),
        ("tasks", "100000"),
        ("topic", "no such/topic\u{0}"),
        ("offsets.storage.topic", "no such/topic"),
        ("exactly.once.support", "maybe"),
        ("transaction.boundary", "sometimes"),
        ("transaction.boundary.interval.ms", "-5"),
        ("key.converter", "no.such.Converter"),
        ("producer.override.bootstrap.servers", "\u{0}:99999999"),
        ("producer.override.transaction.timeout.ms", "-1"),
        ("topic.creation.default.partitions", "2147483647"),
        ("transforms", "a,,b,\u{0}"),
        ("connector.plugin.version", "[,)"),
        ("script.id", "${dir:/proc/self:mem}${::}${"),
    ] {
        all.push(scripted(key, value));
    }
    all
}

/// Counts that cannot be, and one of which nothing is there.
fn counts() -> Vec<Record> {
    let mut records = Vec::new();
    for member in wrong_members() {
        records.push(text("commit-evil", &format!("{{\"tasks\":{member}}}")));
        records.push(text("tasks-fencing-evil", &format!("{{\"task-count\":{member}}}")));
        records.push(text("commit-nobody", &format!("{{\"tasks\":{member}}}")));
    }
    let config =
        json!({"properties": {"connector.class": "test.ScriptedSourceConnector", "script.id": "", "topic": "evil"}});
    records.push(json_record("connector-many", &config));
    records.push(json_record("task-many-0", &json!({"properties": {}})));
    records.push(json_record("commit-many", &json!({ "tasks": CLAIMED })));
    records.push(json_record("tasks-fencing-many", &json!({ "task-count": CLAIMED })));
    records
}

fn session_keys() -> Vec<Record> {
    let key = |key: &str, algorithm: &str, created: i64| {
        json_record("session-key", &json!({"key": key, "algorithm": algorithm, "creation-timestamp": created}))
    };
    let mut records: Vec<Record> = wrong_members()
        .iter()
        .map(|member| {
            text(
                "session-key",
                &format!("{{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\",\"creation-timestamp\":{member}}}"),
            )
        })
        .collect();
    records.extend([
        key("", "HmacSHA256", 0),
        key("*", "HmacSHA256", 0),
        key(&"A".repeat(100_000), "HmacSHA256", 0),
        key("AAAA", "HmacSHA256", i64::MAX),
        key("AAAA", "HmacSHA256", i64::MIN),
        key("AA==", "Rot13", 0),
    ]);
    records
}

fn loggers() -> Vec<Record> {
    let level =
        |namespace: &str, level: &str| json_record(&format!("logger-cluster-{namespace}"), &json!({ "level": level }));
    let mut records: Vec<Record> = (0..1_500).map(|number| level(&format!("l{number}"), "TRACE")).collect();
    records.extend([
        level("", "INFO"),
        level("root", "LOUD"),
        level("a=b,[{", "TRACE"),
        level("root", ""),
        level("\u{0}", "OFF"),
    ]);
    records
}

/// Status topic.
pub fn statuses() -> Vec<Record> {
    let mut records = Vec::new();
    let keys = [
        "status-connector-evil",
        "status-task-evil-0",
        "status-topic-t:connector-evil",
        "status-connector-",
        "status-",
        "status-task-evil",
        "status-topic-:connector-",
        "status-topic-t:ü",
    ];
    for value in wrong_values(DEPTH) {
        records.extend(keys.map(|key| (key.as_bytes().to_vec(), Some(value.clone()))));
    }
    records.extend(
        [&b"\xff\xfe"[..], b"status-connector-\xff", b"status-task-\xff-0", b""]
            .map(|key| (key.to_vec(), Some(b"{}".to_vec()))),
    );
    let status = |state: &str, generation: Value, trace: &str| json!({"state": state, "trace": trace, "worker_id": "💥:0", "generation": generation, "version": "\u{0}"});
    let long = "x".repeat(200_000);
    for name in names() {
        for value in [
            status("DANCING", json!(1), ""),
            status("RUNNING", json!(i64::MAX), ""),
            status("FAILED", json!(i32::MIN), &long),
            status("RUNNING", json!(i32::MAX), ""),
        ] {
            records.push(json_record(&format!("status-connector-{name}"), &value));
            records.push(json_record(&format!("status-task-{name}-0"), &value));
            records.push(json_record(&format!("status-task-{name}-2147483647"), &value));
        }
        let topic = |task: Value, time: Value| json!({"topic": {"name": "t", "connector": name, "task": task, "discoverTimestamp": time}});
        for value in [topic(json!(-1), json!(0)), topic(json!(0), json!(i64::MIN)), topic(json!("0"), json!(1.5))] {
            records.push(json_record(&format!("status-topic-{CONFIGS}:connector-{name}"), &value));
        }
        records.push((format!("status-task-{name}-1").into_bytes(), None));
    }
    records
}

/// Offsets topic.
pub fn offsets() -> Vec<Record> {
    let mut keys = wrong_values(DEPTH_OF_OFFSETS);
    for name in ["evil", "good"] {
        for partition in
            ["null", "7", "[]", "{}", "{\"a\":[[[]]]}", "{\"a\":1e300}", "{\"a\":{\"b\":null}}", "{\"task\":7}"]
        {
            keys.push(format!("[\"{name}\",{partition}]").into_bytes());
        }
        keys.push(format!("[\"{name}\"]").into_bytes());
        keys.push(format!("[\"{name}\",{{}},{{}}]").into_bytes());
        keys.push(format!("[\"{name}\",{}", "[".repeat(DEPTH_OF_OFFSETS)).into_bytes());
    }
    keys.push("[".repeat(DEPTH).into_bytes());
    keys.push(b"[7,{}]".to_vec());
    keys.push(b"[null,null]".to_vec());
    let mut records: Vec<Record> = Vec::new();
    for (number, value) in wrong_values(DEPTH_OF_OFFSETS).into_iter().enumerate() {
        records.extend(keys.iter().skip(number % 3).step_by(3).map(|key| (key.clone(), Some(value.clone()))));
    }
    records.extend(keys.into_iter().map(|key| (key, Some(b"{\"n\":[1,{\"a\":null}]}".to_vec()))));
    records
}
