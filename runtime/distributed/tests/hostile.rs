//! Any bytes in the internal topics: a worker on config, status and offsets topics full of them comes up, answers, runs a good connector
//! beside them, and lets the others be stopped and deleted; also when they are written while it runs, and for the next worker.
//!
//! A hand-made list of what each kind of record could get wrong, and records out of a generator whose seed is printed; `ONCEWIRE_SEED`
//! repeats a run. Left out: records without a key, which a broker does not let into a compacted topic (the folds' own tests have them).

#![allow(missing_docs, unreachable_pub, reason = "a test binary has no public API")]
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

#[path = "scenarios/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the scenarios use all of it")]
mod support;

#[path = "hostile/generator.rs"]
mod generator;
#[path = "hostile/list.rs"]
mod list;

use generator::Generator;
use oncewire_client::producer::{PlainConfig, PlainProducer};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use support::{CONFIGS, Group, Node, OFFSETS, PATIENCE, STATUSES, eventually};

/// A record: key, and value unless it is a tombstone.
pub type Record = (Vec<u8>, Option<Vec<u8>>);

/// Of each topic, at the start and again while the worker runs.
const GENERATED: usize = 300;

/// Panics of any thread: those of a task are caught, and would show nowhere else.
fn panics() -> Arc<Mutex<Vec<String>>> {
    let panics = Arc::new(Mutex::new(Vec::new()));
    let heard = panics.clone();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        heard.lock().unwrap().push(panic.to_string());
        before(panic);
    }));
    panics
}

async fn write(group: &Group, topic: &str, records: &[Record]) {
    let cluster = group.cluster().await;
    let producer = PlainProducer::new(cluster.clone(), PlainConfig::default());
    for some in records.chunks(50) {
        let mut stage = producer.stage();
        for (key, value) in some {
            stage.append(&topic.into(), 0, 1_700_000_000_000, Some(key), value.as_deref(), &[]).unwrap();
        }
        let delivery = producer.send(stage.seal()).await.unwrap();
        tokio::time::timeout(PATIENCE, delivery.wait()).await.expect("it is answered").unwrap();
    }
    producer.close(PATIENCE).await.unwrap();
    cluster.close().await;
}

async fn write_all(group: &Group, generator: &mut Generator) {
    let id = group.stage.id().to_owned();
    for (topic, made, mutated) in [
        (CONFIGS, list::configs(&id), list::configs(&id)),
        (STATUSES, list::statuses(), list::statuses()),
        (OFFSETS, list::offsets(), list::offsets()),
    ] {
        write(group, topic, &made).await;
        let generated: Vec<Record> = (0..GENERATED).map(|_| generator.record(&mutated)).collect();
        write(group, topic, &generated).await;
    }
}

/// A path's segment.
fn encoded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Whether REST can speak of it. A name without letters or with control characters is none that REST lets in, as in Java; such a connector
/// goes by a tombstone, and harms nobody meanwhile.
fn has_path(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(char::is_control)
}

async fn names(node: &Node) -> Vec<String> {
    let answer = node.rest.get("/connectors").await;
    assert_eq!(answer.status, 200, "{answer}");
    serde_json::from_value(answer.body).unwrap()
}

/// Everything that can be asked is answered.
async fn ask_everything(node: &Node) {
    for path in ["/", "/health", "/connectors?expand=info&expand=status", "/admin/loggers", "/connector-plugins"] {
        let answer = node.rest.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer}");
    }
    for name in names(node).await.iter().filter(|name| has_path(name)) {
        for (resource, may) in [
            ("", &[200][..]),
            ("/config", &[200]),
            ("/tasks", &[200]),
            ("/topics", &[200]),
            ("/status", &[200, 404]),
            // The connector's own offsets topic may be one that cannot be.
            ("/offsets", &[200, 400, 404, 500]),
        ] {
            // Each reads the offsets topic; those that are in it, and that have one of their own, are enough.
            if resource == "/offsets" && !["evil", "good", "wrong-11"].contains(&name.as_str()) {
                continue;
            }
            let answer = node.rest.get(&format!("/connectors/{}{resource}", encoded(name))).await;
            assert!(may.contains(&answer.status), "{resource} of {name:?}: {answer}");
        }
    }
}

async fn is_well(group: &Group, node: &Node) {
    ask_everything(node).await;
    group.until_delivered(1, 30).await;
    let status = node.rest.until_states("good", "RUNNING", &["RUNNING"]).await;
    assert_eq!(status["connector"]["worker_id"], node.id(), "{status}");
    let config: Value = json!({"connector.class": "ScriptedSourceConnector", "name": "x", "script.id": "x"});
    node.rest.must(200, "PUT", "/connector-plugins/ScriptedSourceConnector/config/validate", Some(&config)).await;
}

async fn clear_up(node: &Node) {
    let names_now = names(node).await;
    for (number, name) in names_now.iter().filter(|name| has_path(name) && *name != "good").enumerate() {
        let path = format!("/connectors/{}", encoded(name));
        // Each way out for some of them: deleted while it is to run, paused, stopped.
        match number % 3 {
            0 => drop(node.rest.must(204, "PUT", &format!("{path}/stop"), None).await),
            1 => drop(node.rest.must(202, "PUT", &format!("{path}/pause"), None).await),
            _ => {}
        }
        node.rest.must(204, "DELETE", &path, None).await;
    }
    eventually("only the good one is left", async || {
        let left = names(node).await;
        if left.iter().all(|name| !has_path(name) || name == "good") { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_worker_lives_with_any_bytes_in_its_internal_topics() {
    let panics = panics();
    let mut generator = Generator::from_environment();
    let group = Group::new().await;
    // It makes the topics.
    group.join().await.stop().await;
    write_all(&group, &mut generator).await;

    let first = group.join().await;
    assert!(names(&first).await.len() >= 10, "there is something to live with");
    first.rest.create("good", &group.scripted(&[])).await;
    group.until_number(1, 30).await;
    is_well(&group, &first).await;

    write_all(&group, &mut generator).await;
    is_well(&group, &first).await;

    clear_up(&first).await;
    is_well(&group, &first).await;

    write_all(&group, &mut generator).await;
    let second = group.join().await;
    first.stop().await;
    second.rest.until_states("good", "RUNNING", &["RUNNING"]).await;
    is_well(&group, &second).await;
    clear_up(&second).await;
    group.close([second]).await;
    assert_eq!(*panics.lock().unwrap(), [""; 0]);
}
