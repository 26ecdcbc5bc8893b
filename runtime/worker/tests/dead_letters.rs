//! Dead letters: a record that is left out is in the dead letter topic by the very commit that moves its offset on, or the task fails.

mod support;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_api::Boundary::{Abort, Commit};
use oncewire_api::{SourceRecord, Value};
use oncewire_client::batch::Record;
use oncewire_dev_broker::Fault;
use oncewire_worker::herder::supervisor::TaskState;
use oncewire_worker::worker::{State, TargetState};
use std::ops::RangeInclusive;
use support::{Event, Herd, Stand, Step, map, record};

const TOPIC: &str = "errors.deadletterqueue.topic.name";
const REPLICAS: &str = "errors.deadletterqueue.topic.replication.factor";
const CONTEXT: &str = "errors.deadletterqueue.context.headers.enable";

/// Its dead letters go to the topic "dead".
async fn stand(more: &[(&str, &str)]) -> Stand {
    let mut stand = Stand::new().await;
    stand.connector.extend(map(&[("errors.tolerance", "all"), (TOPIC, "dead"), (REPLICAS, "1")]));
    stand.connector.extend(map(more));
    stand
}

/// The same number as [`record`] has, as bytes, which StringConverter refuses.
fn bad(number: i64) -> SourceRecord {
    SourceRecord { value_schema: None, value: Some(Value::Bytes(Bytes::from(number.to_string()))), ..record(number) }
}

/// Odd numbers can be converted, even ones can't.
fn mixed(numbers: RangeInclusive<i64>) -> Vec<SourceRecord> {
    numbers.map(|number| if number % 2 == 0 { bad(number) } else { record(number) }).collect()
}

fn poll(numbers: RangeInclusive<i64>) -> Step {
    Step::Batch(mixed(numbers), None, None)
}

fn cause(state: TaskState) -> String {
    match state {
        TaskState::Failed { cause } => cause,
        other => panic!("the task is {other:?}, not failed"),
    }
}

fn header<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    let found = record.headers.iter().find(|(key, _)| key == name.as_bytes());
    found.and_then(|(_, value)| std::str::from_utf8(value.as_deref()?).ok())
}

async fn last_offset(stand: &Stand, topic: &str) -> Option<String> {
    stand.read(topic).await.pop().and_then(|(_, value)| value)
}

#[tokio::test]
async fn what_is_left_out_is_in_the_dead_letter_topic_once_in_order_and_its_offset_moves_on() {
    let stand = stand(&[("records", "keep")]).await;
    let worker = stand.run(vec![poll(1..=6), poll(7..=8), Step::Batch(vec![bad(10)], None, None)]);
    stand.until_commits(3).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1", "3", "5", "7"]);
    assert_eq!(stand.visible("dead").await, ["2", "4", "6", "8", "10"]);
    assert_eq!(last_offset(&stand, "g-offsets").await.as_deref(), Some(r#"{"n":10}"#));
    assert!(stand.records("dead").await.iter().all(|record| record.headers.is_empty()), "no context was asked for");
    let told = stand.events().iter().filter(|event| matches!(event, Event::CommitRecord(_))).count();
    assert_eq!(told, 9, "the connector hears of each record, left out or not");
    let cluster = stand.cluster().await;
    let topic = cluster.topic("dead").await.expect("the broker answers").expect("it was made");
    assert_eq!(topic.partitions.len(), 1);
    cluster.close().await;
}

#[tokio::test]
async fn with_context_a_dead_letter_says_what_failed_and_where() {
    let stand = stand(&[(CONTEXT, "true")]).await;
    let worker = stand.run(vec![poll(1..=2)]);
    stand.until_commits(1).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    let letters = stand.records("dead").await;
    assert_eq!(letters.len(), 1);
    for (name, value) in [
        ("__connect.errors.topic", "t"),
        ("__connect.errors.connector.name", "c"),
        ("__connect.errors.task.id", "0"),
        ("__connect.errors.stage", "VALUE_CONVERTER"),
        ("__connect.errors.class.name", "org.apache.kafka.connect.storage.StringConverter"),
        ("__connect.errors.exception.class.name", "org.apache.kafka.connect.errors.DataException"),
        ("__oncewire.errors.source.partition", r#"["c",{"p":"p"}]"#),
        ("__oncewire.errors.source.offset", r#"{"n":2}"#),
        ("__oncewire.errors.key.form", "null"),
        ("__oncewire.errors.value.form", "bytes"),
    ] {
        assert_eq!(header(&letters[0], name), Some(value), "{name}");
    }
    let message = header(&letters[0], "__connect.errors.exception.message").expect("there is one");
    assert!(message.contains("StringConverter has no text for bytes"), "{message}");
}

#[tokio::test]
async fn a_commit_whose_answers_are_lost_neither_loses_nor_doubles_dead_letters() {
    for fault in [Fault::CloseBefore, Fault::CloseAfter, Fault::Swallow] {
        let stand = stand(&[]).await;
        stand.broker.faults().inject(ApiKey::EndTxn, 1, fault);
        let worker = stand.run(vec![poll(1..=3), poll(4..=6)]);
        // The script gives each record once: what a restart lost would never become visible.
        stand.until_visible("dead", |seen| seen.len() >= 3).await;
        stand.until_visible("t", |seen| seen.len() >= 3).await;
        assert_eq!(worker.stop().await, TaskState::Stopped);
        assert_eq!(stand.visible("t").await, ["1", "3", "5"], "{fault:?}");
        assert_eq!(stand.visible("dead").await, ["2", "4", "6"], "{fault:?}");
    }
}

#[tokio::test]
async fn a_task_that_dies_in_its_transaction_leaves_no_dead_letter_behind() {
    let hour = ("transaction.boundary.interval.ms", "3600000");
    let stand = stand(&[("transaction.boundary", "interval"), hour]).await;
    let worker = stand.run(vec![poll(1..=4), Step::Hang]);
    let sent = async {
        while stand.broker.requests(ApiKey::Produce) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(support::PATIENCE, sent).await.expect("the transaction's records are sent");
    worker.kill();
    let again = stand.run(vec![poll(1..=4)]);
    let starts = |events: &[Event]| events.iter().filter(|event| **event == Event::Started(None)).count();
    let idle = |events: &[Event]| events.iter().rev().take_while(|event| **event == Event::Poll).count() >= 3;
    stand.until("a start without an offset, and its poll", |events| starts(events) == 2 && idle(events)).await;
    assert_eq!(again.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1", "3"]);
    assert_eq!(stand.visible("dead").await, ["2", "4"]);
}

#[tokio::test]
async fn a_transaction_that_the_connector_aborts_takes_its_dead_letters_with_it() {
    let stand = stand(&[("transaction.boundary", "connector")]).await;
    let worker = stand.run(vec![
        Step::Batch(mixed(1..=4), None, Some(Abort)),
        Step::Batch(mixed(5..=8), Some((1, Abort)), Some(Commit)),
    ]);
    stand.until_visible("dead", |seen| !seen.is_empty()).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["7"]);
    assert_eq!(stand.visible("dead").await, ["8"]);
}

#[tokio::test]
async fn a_dead_letter_that_the_broker_refuses_fails_its_transaction_by_name() {
    let interval = ("transaction.boundary.interval.ms", "300");
    let stand = stand(&[("transaction.boundary", "interval"), interval]).await;
    stand.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    let worker = stand.run(vec![Step::Batch(vec![bad(2)], None, None)]);
    let cause = cause(worker.ended().await);
    assert!(
        cause.contains("dead letters can't be written to topic \"dead\"") && cause.contains("grant Write"),
        "{cause}"
    );
    assert!(stand.visible("dead").await.is_empty() && stand.stored_offsets().await.is_empty());
}

/// In JSON a control character takes six bytes, in a dead letter one.
#[tokio::test]
async fn a_record_that_is_too_large_is_left_out_only_if_its_dead_letter_is_not() {
    for mode in ["enabled", "disabled"] {
        let mut stand = stand(&[("value.converter", "Json"), (CONTEXT, "true")]).await;
        stand.distribute(mode);
        let herd = stand.herd().await;
        let text = |number: i64, bytes: usize| {
            let value = Some(Value::from("\u{1}".repeat(bytes).as_str()));
            SourceRecord { value, ..record(number) }
        };
        stand.script(vec![Step::Batch(vec![record(1), text(2, 300_000), record(3)], None, None)]);
        herd.start(&stand, TargetState::Started);
        stand.until_visible("t", |seen| seen.len() == 2).await;
        stand.until_visible("dead", |seen| seen.len() == 1).await;
        let letters = stand.records("dead").await;
        assert_eq!(letters[0].value.as_ref().map(Bytes::len), Some(300_000), "{mode}");
        assert_eq!(header(&letters[0], "__connect.errors.stage"), Some("KAFKA_PRODUCE"));
        until_last(&stand, r#"{"n":3}"#).await;

        stand.script(vec![Step::Batch(vec![text(4, 2 << 20)], None, None)]);
        herd.until_state(State::Failed).await;
        let trace = herd.trace();
        for word in ["\"t\"", "\"dead\"", "max.request.size"] {
            assert!(trace.contains(word), "{mode}: {trace}");
        }
        until_last(&stand, r#"{"n":3}"#).await;
        herd.stop().await;
    }
}

async fn until_last(stand: &Stand, wanted: &str) {
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    loop {
        let found = last_offset(stand, "w-offsets").await;
        if found.as_deref() == Some(wanted) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "the last offset is {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

async fn failed_and_stopped(herd: &Herd) -> String {
    herd.until_state(State::Failed).await;
    let trace = herd.trace();
    herd.stop().await;
    trace
}

#[tokio::test]
async fn without_transactions_an_offset_counts_once_its_dead_letter_is_acknowledged() {
    let mut stand = stand(&[]).await;
    stand.distribute("disabled");
    let herd = stand.herd().await;
    stand.script(vec![poll(1..=3)]);
    herd.start(&stand, TargetState::Started);
    until_last(&stand, r#"{"n":3}"#).await;
    assert_eq!(
        (stand.visible("t").await, stand.visible("dead").await),
        (vec!["1".into(), "3".into()], vec!["2".into()])
    );
    let counts = herd.worker.task_counts("c", 0).expect("it is here");
    assert_eq!((counts.records_received, counts.records_committed), (3, 2));
    assert_eq!((counts.records_skipped, counts.dead_letters), (1, 1));

    // All is flushed: the next Produce is the dead letter's.
    stand.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::InvalidRecord));
    stand.script(vec![Step::Batch(vec![bad(4)], None, None)]);
    let trace = failed_and_stopped(&herd).await;
    assert!(trace.contains("dead letters can't be written to topic \"dead\""), "{trace}");
    assert_eq!(last_offset(&stand, "w-offsets").await.as_deref(), Some(r#"{"n":3}"#));

    // Its content is a batch already: there is no dead letter of a record that a broker refuses.
    stand.script(vec![Step::Batch(vec![bad(4)], None, None)]);
    herd.start(&stand, TargetState::Started);
    until_last(&stand, r#"{"n":4}"#).await;
    stand.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::InvalidRecord));
    stand.script(vec![Step::records(5..=5)]);
    let trace = failed_and_stopped(&herd).await;
    assert!(trace.contains("t-0") && trace.contains("have no dead letters"), "{trace}");
    assert_eq!(last_offset(&stand, "w-offsets").await.as_deref(), Some(r#"{"n":4}"#));
    assert_eq!(stand.visible("dead").await, ["2", "4"]);
}

#[tokio::test]
async fn a_dead_letter_topic_that_cannot_be_had_fails_the_task_before_the_connector_starts() {
    let stand = stand(&[(REPLICAS, "3")]).await;
    let cause = cause(stand.run(vec![poll(1..=2)]).ended().await);
    assert!(cause.contains("\"dead\"") && cause.contains(REPLICAS), "{cause}");
    assert!(stand.events().is_empty(), "the task was never started");
}

#[tokio::test]
async fn dead_letters_do_not_go_to_the_tasks_own_offsets_topic() {
    let stand = stand(&[(TOPIC, "g-offsets")]).await;
    let cause = cause(stand.run(vec![poll(1..=2)]).ended().await);
    assert!(cause.contains("own offsets topic"), "{cause}");
}

#[tokio::test]
async fn without_tolerance_the_record_fails_its_task_and_no_topic_is_made() {
    let stand = stand(&[("errors.tolerance", "none")]).await;
    let cause = cause(stand.run(vec![poll(1..=2)]).ended().await);
    assert!(cause.contains("value: StringConverter has no text for bytes"), "{cause}");
    let cluster = stand.cluster().await;
    assert!(cluster.topic("dead").await.expect("the broker answers").is_none());
    cluster.close().await;
}
