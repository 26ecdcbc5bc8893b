//! A paused task commits what it has, polls nothing, and goes on where it was.

mod support;

use oncewire_worker::config::connector::ConnectorConfig;
use oncewire_worker::config::worker::{Delivery, WorkerConfig};
use oncewire_worker::herder::supervisor::{TaskState, supervise};
use oncewire_worker::metrics::TaskMetrics;
use oncewire_worker::store::offset_topic;
use oncewire_worker::task::ahead::Target;
use oncewire_worker::task::run::TaskSpec;
use oncewire_worker::task::teller::Teller;
use std::sync::Arc;
use support::{Event, Stand, Step, map, register, registry};
use tokio::sync::watch;

async fn spec(stand: &Stand) -> TaskSpec {
    let registry = registry();
    let worker = WorkerConfig::standalone("worker", stand.worker.clone()).expect("the worker's properties are right");
    let Delivery::ExactlyOnce(topic) = &worker.delivery else { panic!("exactly-once is the default") };
    let cluster = stand.cluster().await;
    offset_topic::ensure(&cluster, topic).await.expect("the offsets topic can be made");
    cluster.close().await;
    let connector = registry.source("ScriptedSource").expect("it is in the registry");
    let config = ConnectorConfig::check(&worker, stand.connector.clone(), &*connector).expect("they are right");
    let makers = registry.clone();
    TaskSpec {
        worker: Arc::new(worker),
        connector: Arc::new(config),
        registry,
        number: 0,
        properties: stand.connector.clone(),
        file: None,
        make: Box::new(move || makers.source("ScriptedSource").expect("it is in the registry").task()),
        metrics: Arc::new(TaskMetrics::default()),
        teller: Arc::new(Teller::new(None, "c", 0)),
        surroundings: None,
    }
}

#[tokio::test]
async fn a_pause_commits_what_is_open_and_a_resume_goes_on() {
    let mut stand = Stand::new().await;
    stand
        .connector
        .extend(map(&[("transaction.boundary", "interval"), ("transaction.boundary.interval.ms", "600000")]));
    let id = stand.connector["script.id"].clone();
    register(&id, vec![Step::records(1..=2)].into());
    let (trigger, stop) = oncewire_api::stop_signal();
    let (target, targets) = watch::channel(Target::Running);
    let (states, _) = watch::channel(TaskState::Unassigned);
    let task = tokio::spawn(supervise(spec(&stand).await, stop, targets, states));
    stand.until("two polls", |events| events.iter().filter(|event| **event == Event::Poll).count() >= 2).await;

    target.send_replace(Target::Paused);
    stand.until_visible("t", |seen| seen.len() >= 2).await;
    let polls = |events: &[Event]| events.iter().filter(|event| **event == Event::Poll).count();
    let before = polls(&stand.events());
    register(&id, vec![Step::records(3..=3)].into());
    // A read of the whole topic gives a task that still polls the time to do so.
    assert_eq!(stand.visible("t").await, ["1", "2"], "the pause committed long before the interval was over");
    assert!(polls(&stand.events()) <= before + 1, "one poll may have been under way");

    target.send_replace(Target::Running);
    stand.until("more polls", |events| polls(events) >= before + 2).await;
    trigger.stop();
    assert_eq!(task.await.expect("no panic"), TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_task_that_begins_paused_polls_nothing_and_stops_at_once() {
    let stand = Stand::new().await;
    register(&stand.connector["script.id"], vec![Step::records(1..=1)].into());
    let (trigger, stop) = oncewire_api::stop_signal();
    let (target, targets) = watch::channel(Target::Paused);
    let (states, _) = watch::channel(TaskState::Unassigned);
    let task = tokio::spawn(supervise(spec(&stand).await, stop, targets, states));
    stand.until("the start", |events| events.contains(&Event::Started(None))).await;
    trigger.stop();
    assert_eq!(task.await.expect("no panic"), TaskState::Stopped);
    assert!(!stand.events().contains(&Event::Poll));
    drop(target);
}
