//! What fails, what is lost and mended, what is superseded: and that nothing half-done is ever visible.

mod support;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_api::{OffsetValue, SourceOffset, Value};
use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::TransactionalProducer;
use oncewire_dev_broker::Fault;
use oncewire_worker::herder::supervisor::TaskState;
use std::time::{Duration, Instant};
use support::{Event, Stand, Step, map, record};

fn cause(state: TaskState) -> String {
    match state {
        TaskState::Failed { cause } => cause,
        other => panic!("the task is {other:?}, not failed"),
    }
}

/// E70 offset-serialization-failure
#[tokio::test]
async fn an_offset_that_cannot_be_stored_fails_the_task_before_its_records_are_visible() {
    let stand = Stand::new().await;
    let mut bad = record(2);
    bad.source_offset = Some(SourceOffset::single("n", OffsetValue::Float(f64::NAN)));
    let worker = stand.run(vec![Step::Batch(vec![record(1), bad], None, None)]);
    let cause = cause(worker.ended().await);
    assert!(cause.contains("can't be stored") && cause.contains("{p=p}"), "{cause}");
    assert!(stand.visible("t").await.is_empty());
}

#[tokio::test]
async fn one_record_that_is_too_large_fails_its_whole_transaction_by_name_size_and_limit() {
    let stand = Stand::new().await;
    let mut large = record(2);
    large.value = Some(Value::from("x".repeat(2 << 20).as_str()));
    let worker = stand.run(vec![Step::Batch(vec![record(1), large, record(3)], None, None)]);
    let cause = cause(worker.ended().await);
    assert!(cause.contains("\"t\"") && cause.contains("2097") && cause.contains("max.request.size"), "{cause}");
    assert!(stand.visible("t").await.is_empty() && stand.stored_offsets().await.is_empty());
}

/// E71 async-send-failure: what a broker refuses after `poll` went on is an error of the commit, whatever is tolerated.
#[tokio::test]
async fn records_that_a_broker_refuses_fail_their_transaction_although_all_is_tolerated() {
    let mut stand = Stand::new().await;
    stand.worker.extend(map(&[("task.restart.attempts.max", "0")]));
    let interval = ("transaction.boundary.interval.ms", "300");
    stand.connector.extend(map(&[("errors.tolerance", "all"), ("transaction.boundary", "interval"), interval]));
    stand.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::InvalidRecord));
    let worker = stand.run(vec![Step::records(1..=2), Step::records(3..=3)]);
    let cause = cause(worker.ended().await);
    assert!(cause.contains("INVALID_RECORD") && cause.contains("t-0"), "{cause}");
    assert!(stand.events().iter().filter(|event| **event == Event::Poll).count() >= 2, "polling went on");
    assert!(stand.visible("t").await.is_empty() && stand.stored_offsets().await.is_empty());
}

/// E69 dropped-record
#[tokio::test]
async fn records_that_are_left_out_still_advance_the_offset_and_idle_polls_open_no_transaction() {
    let mut stand = Stand::new().await;
    stand.connector.extend(map(&[("errors.tolerance", "all")]));
    let unwritable = |number| {
        let mut record = record(number);
        record.value_schema = None;
        record.value = Some(Value::Bytes(bytes::Bytes::from_static(b"\xff")));
        record
    };
    let worker = stand.run(vec![Step::Batch((1..=9).map(unwritable).collect(), None, None)]);
    stand.until_commits(1).await;
    let ends = stand.broker.requests(ApiKey::EndTxn);
    stand.until_commits(5).await;
    assert_eq!(stand.broker.requests(ApiKey::EndTxn), ends, "an idle task makes no transactions");
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert!(stand.visible("t").await.is_empty());
    let again = stand.run(vec![]);
    stand.until("the restart", |events| events.contains(&Event::Started(Some(9)))).await;
    assert_eq!(again.stop().await, TaskState::Stopped);
}

#[tokio::test]
async fn an_offset_of_none_is_a_tombstone_and_the_next_start_sees_no_offset() {
    let stand = Stand::new().await;
    let mut last = record(2);
    last.source_offset = None;
    let worker = stand.run(vec![Step::records(1..=1), Step::Batch(vec![last], None, None)]);
    stand.until_commits(2).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.stored_offsets().await.last().expect("two records").1, None);
    let again = stand.run(vec![]);
    stand.until("the restart", |events| events.iter().filter(|e| **e == Event::Started(None)).count() == 2).await;
    assert_eq!(again.stop().await, TaskState::Stopped);
}

#[tokio::test]
async fn offsets_are_read_after_the_older_owner_is_fenced() {
    let stand = Stand::new().await;
    let first = stand.run(vec![Step::records(1..=1)]);
    stand.until_commits(1).await;
    assert_eq!(first.stop().await, TaskState::Stopped);
    // An older owner of the same transactional id with an offset that it has written and not committed.
    let cluster = stand.cluster().await;
    let zombie = TransactionalProducer::new(cluster.clone(), ProducerConfig::new("g-c-0").expect("an id"));
    zombie.init().await.expect("the zombie was the owner once");
    zombie.begin().await.expect("nothing is open");
    let mut stage = zombie.stage();
    let topic = "g-offsets".into();
    stage.append(&topic, 0, 0, Some(br#"["c",{"p":"p"}]"#), Some(br#"{"n":99}"#), &[]).expect("it is small");
    zombie.send(stage.seal()).await.expect("the broker takes it");

    let successor = stand.run(vec![Step::records(2..=2)]);
    stand.until("the restart", |events| events.contains(&Event::Started(Some(1)))).await;
    assert!(zombie.commit().await.is_err(), "what the zombie had under way is gone");
    stand.until_commits(2).await;
    assert_eq!(successor.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1", "2"]);
    cluster.close().await;
}

#[tokio::test]
async fn a_newer_owner_ends_the_task_as_superseded_and_is_not_fenced_by_it() {
    let stand = Stand::new().await;
    let old = stand.run(vec![Step::records(1..=1), Step::Nothing(None), Step::Nothing(None)]);
    stand.until_commits(1).await;
    let cluster = stand.cluster().await;
    let owner = TransactionalProducer::new(cluster.clone(), ProducerConfig::new("g-c-0").expect("an id"));
    owner.init().await.expect("the newer owner takes the id");
    support::register(stand.connector["script.id"].as_str(), vec![Step::records(2..=2)].into());
    assert!(matches!(old.ended().await, TaskState::Superseded { .. }));
    owner.begin().await.expect("the owner goes on");
    let mut stage = owner.stage();
    stage.append(&"t".into(), 0, 0, None, Some(b"owner"), &[]).expect("it is small");
    owner.send(stage.seal()).await.expect("the owner is not fenced");
    owner.commit().await.expect("the owner is not fenced");
    assert_eq!(stand.visible("t").await, ["1", "owner"]);
    cluster.close().await;
}

#[tokio::test]
async fn a_commit_whose_answers_are_lost_is_neither_lost_nor_doubled() {
    for fault in [Fault::CloseBefore, Fault::CloseAfter, Fault::Swallow] {
        let stand = Stand::new().await;
        let faults = stand.broker.faults();
        faults.inject(ApiKey::EndTxn, 1, fault);
        let worker = stand.run(vec![Step::records(1..=3), Step::records(4..=6)]);
        // The script gives each record once: what a restart lost would never become visible.
        stand.until_visible("t", |seen| seen.len() >= 6).await;
        assert_eq!(worker.stop().await, TaskState::Stopped);
        assert_eq!(stand.visible("t").await, ["1", "2", "3", "4", "5", "6"], "{fault:?}");
    }
}

#[tokio::test]
async fn a_refused_transaction_starts_the_task_again_at_the_stored_offset() {
    let stand = Stand::new().await;
    // Of two requests the first may carry the offsets of nothing yet; every Produce of the second transaction is refused once.
    let worker = stand.run(vec![Step::records(1..=1)]);
    stand.until_commits(1).await;
    stand.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::TransactionAbortable));
    support::register(stand.connector["script.id"].as_str(), vec![Step::records(2..=2)].into());
    stand.until("the restart", |events| events.contains(&Event::Started(Some(1)))).await;
    support::register(stand.connector["script.id"].as_str(), vec![Step::records(2..=2)].into());
    stand.until_visible("t", |seen| seen.len() >= 2).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1", "2"]);
}

#[tokio::test]
async fn a_retriable_poll_is_tried_again_and_a_fatal_one_fails_the_task_with_its_words() {
    let stand = Stand::new().await;
    let worker = stand.run(vec![Step::Retriable, Step::records(1..=1), Step::Fatal]);
    assert!(cause(worker.ended().await).contains("the source says no"));
    assert_eq!(stand.visible("t").await, ["1"], "what was polled in good order is committed");
    assert_eq!(stand.events().last(), Some(&Event::Stopped));
}

#[tokio::test]
async fn a_connector_that_panics_fails_its_task_and_nothing_else() {
    let stand = Stand::new().await;
    let worker = stand.run(vec![Step::Panic]);
    assert!(cause(worker.ended().await).contains("panicked"));
}

#[tokio::test]
async fn a_poll_that_never_returns_is_abandoned_and_its_transaction_aborted() {
    let mut stand = Stand::new().await;
    stand.worker.extend(map(&[("task.shutdown.graceful.timeout.ms", "200")]));
    stand
        .connector
        .extend(map(&[("transaction.boundary", "interval"), ("transaction.boundary.interval.ms", "600000")]));
    let worker = stand.run(vec![Step::records(1..=1), Step::Hang]);
    stand.until("the second poll", |events| events.iter().filter(|event| **event == Event::Poll).count() == 2).await;
    let began = Instant::now();
    worker.ask_to_stop();
    assert_eq!(worker.ended().await, TaskState::Stopped);
    assert!(began.elapsed() < Duration::from_secs(10), "stopping is bounded");
    // Nothing holds readers back: the next owner starts at once and sees no offset or that of a whole transaction.
    let again = stand.run(vec![]);
    stand.until("the restart", |events| events.iter().filter(|e| matches!(e, Event::Started(_))).count() == 2).await;
    assert_eq!(again.stop().await, TaskState::Stopped);
}

#[tokio::test]
async fn a_stop_during_the_start_asks_for_no_producer_id() {
    let stand = Stand::new().await;
    stand.broker.faults().inject(ApiKey::FindCoordinator, 1, Fault::DelayAnswer(Duration::from_millis(500)));
    let worker = stand.run(vec![]);
    let asked = async {
        while stand.broker.requests(ApiKey::FindCoordinator) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(support::PATIENCE, asked).await.expect("the task looks for its coordinator");
    assert_eq!(worker.stop().await, TaskState::Stopped);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(stand.broker.requests(ApiKey::InitProducerId), 0, "it would fence the successor");
    assert!(stand.events().is_empty(), "the task was never started");
}

#[tokio::test]
async fn tasks_that_the_connector_no_longer_has_are_fenced_at_the_start() {
    let stand = Stand::new().await;
    let cluster = stand.cluster().await;
    let gone = TransactionalProducer::new(cluster.clone(), ProducerConfig::new("g-c-3").expect("an id"));
    gone.init().await.expect("it was a task once");
    let worker = stand.run(vec![Step::records(1..=1)]);
    stand.until_commits(1).await;
    gone.begin().await.expect("local");
    let mut stage = gone.stage();
    stage.append(&"t".into(), 0, 0, None, Some(b"zombie"), &[]).expect("it is small");
    let sent = gone.send(stage.seal()).await;
    let committed = gone.commit().await;
    assert!(sent.is_err() || committed.is_err(), "a task beyond the present ones can't commit any more");
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1"]);
    cluster.close().await;
}
