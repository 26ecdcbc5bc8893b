//! Offsets in the worker's topic and in a connector's own: who reads and writes what, in which order, and the offsets API.

mod support;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_api::{SourceOffset, SourcePartition, SourceRecord};
use oncewire_client::admin::{Admin, OffsetSpec};
use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::TransactionalProducer;
use oncewire_client::reader::Isolation;
use oncewire_dev_broker::Fault;
use oncewire_worker::worker::{AlterError, OffsetChange, State, TargetState};
use std::time::Duration;
use support::{Event, Herd, Stand, Step, map, record};

const KEY: &str = r#"["c",{"p":"p"}]"#;

async fn stand(mode: &str, pairs: &[(&str, &str)]) -> (Stand, Herd) {
    let mut stand = Stand::new().await;
    stand.distribute(mode);
    stand.connector.extend(map(pairs));
    let herd = stand.herd().await;
    (stand, herd)
}

fn tombstone(number: i64) -> SourceRecord {
    SourceRecord { source_offset: None, ..record(number) }
}

fn partition() -> SourcePartition {
    SourcePartition::single("p", "p")
}

async fn last(stand: &Stand, topic: &str) -> Option<String> {
    stand.read(topic).await.into_iter().rfind(|(key, _)| key == KEY).and_then(|(_, value)| value)
}

async fn until_last(stand: &Stand, topic: &str, wanted: Option<&str>) {
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    loop {
        let found = last(stand, topic).await;
        if found.as_deref() == wanted {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{topic} ends with {found:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn started_at(stand: &Stand, herd: &Herd, number: Option<i64>) {
    herd.start(stand, TargetState::Started);
    stand.until("the start", |events| events.contains(&Event::Started(number))).await;
    herd.stop().await;
}

#[tokio::test]
async fn scenario_75_an_own_topic_is_made_and_written_in_the_transaction_and_copied_to_the_worker_s_topic() {
    let (stand, herd) = stand("enabled", &[("offsets.storage.topic", "own")]).await;
    stand.script(vec![Step::records(1..=3)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    assert_eq!(last(&stand, "own").await.as_deref(), Some(r#"{"n":3}"#));
    until_last(&stand, "w-offsets", Some(r#"{"n":3}"#)).await;
    herd.stop().await;
    stand.script(vec![]);
    started_at(&stand, &herd, Some(3)).await;
}

#[tokio::test]
async fn a_connector_that_gets_an_own_topic_goes_on_where_the_worker_s_topic_says() {
    let (mut stand, herd) = stand("enabled", &[]).await;
    stand.script(vec![Step::records(1..=3)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    herd.stop().await;
    stand.connector.extend(map(&[("offsets.storage.topic", "own")]));
    stand.script(vec![]);
    started_at(&stand, &herd, Some(3)).await;
    let listed = herd.worker.offsets("c", &stand.connector).await.expect("it is listed");
    assert_eq!(listed, [(partition(), Some(SourceOffset::single("n", 3)))]);
}

/// What a killed task of a worker with exactly-once support left open, when the cluster was set back to `preparing` before anybody fenced it.
#[tokio::test]
async fn an_offset_that_is_not_committed_moves_nobody_although_exactly_once_is_off() {
    let (stand, herd) = stand("preparing", &[]).await;
    let cluster = stand.cluster().await;
    let config = || ProducerConfig::new("g-c-0").expect("an id");
    let killed = TransactionalProducer::new(cluster.clone(), config());
    killed.init().await.expect("it takes the id");
    killed.begin().await.expect("local");
    let mut stage = killed.stage();
    stage.append(&"w-offsets".into(), 0, 0, Some(KEY.as_bytes()), Some(br#"{"n":5}"#), &[]).expect("it is small");
    killed.send(stage.seal()).await.expect("room");
    let admin = Admin::new(cluster.clone());
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    while admin
        .list_offsets("w-offsets", Some(&[0]), OffsetSpec::Latest, Isolation::Uncommitted)
        .await
        .expect("it is there")[&0]
        .offset
        == 0
    {
        assert!(tokio::time::Instant::now() < deadline, "the offset is not in the log");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stand.script(vec![]);
    herd.start(&stand, TargetState::Started);
    // The broker ends it, sooner or later.
    TransactionalProducer::new(cluster.clone(), config()).init().await.expect("it ends the open transaction");
    stand.until("the start without offset", |events| events.contains(&Event::Started(None))).await;
    herd.stop().await;
    cluster.close().await;
}

#[tokio::test]
async fn scenario_46_removals_reach_the_worker_s_topic_before_the_transaction_is_committed() {
    let (stand, herd) = stand("enabled", &[("offsets.storage.topic", "own")]).await;
    stand.script(vec![Step::records(1..=1)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    until_last(&stand, "w-offsets", Some(r#"{"n":1}"#)).await;
    stand.script(vec![Step::Batch(vec![tombstone(2)], None, None)]);
    stand.until_visible("t", |seen| seen.len() == 2).await;
    assert_eq!(last(&stand, "w-offsets").await, None, "visible records imply that the removal is there");
    assert_eq!(last(&stand, "own").await, None);
    herd.stop().await;
    started_at(&stand, &herd, None).await;
}

#[tokio::test]
async fn b06_a_removal_that_the_worker_s_topic_refuses_commits_nothing() {
    let (mut stand, _) =
        stand("enabled", &[("offsets.storage.topic", "own"), ("producer.override.retries", "1")]).await;
    stand.worker.extend(map(&[("task.restart.attempts.max", "0")]));
    let herd = stand.herd().await;
    stand.script(vec![Step::records(1..=1)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    until_last(&stand, "w-offsets", Some(r#"{"n":1}"#)).await;
    stand.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    stand.script(vec![Step::Batch(vec![tombstone(2)], None, None)]);
    herd.until_state(State::Failed).await;
    assert!(herd.trace().contains("w-offsets"), "{}", herd.trace());
    assert_eq!(stand.visible("t").await, ["1"]);
    assert_eq!(last(&stand, "own").await.as_deref(), Some(r#"{"n":1}"#));
}

/// D46: the second step is the transaction itself; when its write of the connector's topic is refused, nothing is committed, and only
/// the removal of the first step has reached the worker's topic.
#[tokio::test]
async fn scenario_46_a_transaction_that_is_refused_leaves_the_connector_s_topic_as_it_was() {
    let (mut stand, _) = stand("enabled", &[("offsets.storage.topic", "own")]).await;
    stand.worker.extend(map(&[("task.restart.attempts.max", "0")]));
    let herd = stand.herd().await;
    stand.script(vec![Step::records(1..=1)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    until_last(&stand, "w-offsets", Some(r#"{"n":1}"#)).await;
    stand.broker.faults().inject(ApiKey::Produce, 2, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    stand.script(vec![Step::Batch(vec![tombstone(2)], None, None)]);
    herd.until_state(State::Failed).await;
    assert_eq!(stand.visible("t").await, ["1"]);
    assert_eq!(last(&stand, "own").await.as_deref(), Some(r#"{"n":1}"#));
    assert_eq!(last(&stand, "w-offsets").await, None);
}

/// D46: the third step, the copy to the worker's topic, may fail: that is a warning, and the task goes on.
#[tokio::test]
async fn scenario_46_a_copy_that_the_worker_s_topic_refuses_fails_nothing() {
    let (stand, herd) = stand("enabled", &[("offsets.storage.topic", "own")]).await;
    let produced = || stand.broker.requests(ApiKey::Produce);
    stand.script(vec![Step::records(1..=1)]);
    herd.start(&stand, TargetState::Started);
    until_last(&stand, "w-offsets", Some(r#"{"n":1}"#)).await;
    let before = produced();
    stand.script(vec![Step::records(2..=2)]);
    until_last(&stand, "w-offsets", Some(r#"{"n":2}"#)).await;
    // The last request of a batch is its copy.
    let requests = produced() - before;
    stand.broker.faults().inject(ApiKey::Produce, requests, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    let before = produced();
    stand.script(vec![Step::records(3..=3)]);
    stand.until_visible("t", |seen| seen.len() == 3).await;
    until_last(&stand, "own", Some(r#"{"n":3}"#)).await;
    herd.until("the copy is tried", |_| produced() >= before + requests).await;
    assert_eq!(last(&stand, "w-offsets").await.as_deref(), Some(r#"{"n":2}"#), "the copy was refused");
    stand.script(vec![Step::records(4..=4)]);
    until_last(&stand, "w-offsets", Some(r#"{"n":4}"#)).await;
    assert_eq!(last(&stand, "own").await.as_deref(), Some(r#"{"n":4}"#));
    assert!(!herd.task_states().contains(&State::Failed), "{:?}", herd.task_states());
    herd.stop().await;
}

#[tokio::test]
async fn without_transactions_offsets_follow_into_the_worker_s_topic_or_an_own_one() {
    for (mode, own) in [("disabled", None), ("preparing", Some("own"))] {
        let pairs: Vec<(&str, &str)> = own.iter().map(|own| ("offsets.storage.topic", *own)).collect();
        let (stand, herd) = stand(mode, &pairs).await;
        stand.script(vec![Step::records(1..=3), Step::records(4..=5)]);
        herd.start(&stand, TargetState::Started);
        stand.until_visible("t", |seen| seen == ["1", "2", "3", "4", "5"]).await;
        until_last(&stand, "w-offsets", Some(r#"{"n":5}"#)).await;
        if let Some(own) = own {
            assert_eq!(last(&stand, own).await.as_deref(), Some(r#"{"n":5}"#));
        }
        herd.stop().await;
        assert!(!herd.log.told().contains(&support::Told::Fence), "nothing is fenced without transactions");
        stand.script(vec![]);
        started_at(&stand, &herd, Some(5)).await;
        herd.worker.close().await;
    }
}

#[tokio::test]
async fn scenario_86_a_flush_that_fails_is_made_up_for_by_the_next_and_never_fails_the_task() {
    let (mut stand, _) = stand("disabled", &[]).await;
    stand.worker.extend(map(&[("offset.flush.interval.ms", "100")]));
    let herd = stand.herd().await;
    stand.script(vec![Step::records(1..=1)]);
    herd.start(&stand, TargetState::Started);
    until_last(&stand, "w-offsets", Some(r#"{"n":1}"#)).await;
    // From here on every leader is known: the next Produce is the record's, the one after it the flush's.
    stand.broker.faults().inject(ApiKey::Produce, 2, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    stand.script(vec![Step::records(2..=2)]);
    until_last(&stand, "w-offsets", Some(r#"{"n":2}"#)).await;
    assert_eq!(herd.worker.task_counts("c", 0).expect("it is here").commits_failed, 1);
    assert_eq!(herd.task_states(), [State::Running]);
    herd.stop().await;
}

#[tokio::test]
async fn scenario_87_with_tolerance_a_record_that_cannot_be_sent_is_passed_over_and_its_offset_stored() {
    let (stand, herd) = stand("disabled", &[("errors.tolerance", "all"), ("records", "keep")]).await;
    let mut large = record(2);
    large.value = Some("x".repeat(2 << 20).as_str().into());
    stand.script(vec![Step::Batch(vec![record(1), large, record(3)], None, None)]);
    herd.start(&stand, TargetState::Started);
    stand.until_visible("t", |seen| seen == ["1", "3"]).await;
    until_last(&stand, "w-offsets", Some(r#"{"n":3}"#)).await;
    stand
        .until("each record told", |events| {
            events.iter().filter(|event| matches!(event, Event::CommitRecord(_))).count() == 3
        })
        .await;
    let counts = herd.worker.task_counts("c", 0).expect("it is here");
    assert_eq!((counts.records_received, counts.records_committed, counts.records_skipped), (3, 2, 1));
    // A whole batch that the broker refuses.
    stand.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::InvalidRecord));
    stand.script(vec![Step::records(4..=5)]);
    until_last(&stand, "w-offsets", Some(r#"{"n":5}"#)).await;
    herd.stop().await;
    assert_eq!(herd.task_states(), [State::Running, State::Unassigned]);
    assert_eq!(stand.visible("t").await, ["1", "3"]);
}

#[tokio::test]
async fn scenario_88_a_failed_task_stores_the_offsets_of_what_was_acknowledged() {
    let (mut stand, _) = stand("disabled", &[]).await;
    stand.worker.extend(map(&[("offset.flush.interval.ms", "600000")]));
    let herd = stand.herd().await;
    stand.script(vec![Step::records(1..=2), Step::Fatal]);
    herd.start(&stand, TargetState::Started);
    herd.until_state(State::Failed).await;
    assert_eq!(last(&stand, "w-offsets").await.as_deref(), Some(r#"{"n":2}"#));
}

#[tokio::test]
async fn scenario_83_offsets_are_altered_and_reset_in_one_transaction_of_task_0() {
    for own in [None, Some(("offsets.storage.topic", "own"))] {
        let (mut stand, herd) = stand("enabled", own.as_slice()).await;
        stand.script(vec![Step::records(1..=3)]);
        herd.start(&stand, TargetState::Started);
        stand.until_commits(1).await;
        herd.stop().await;
        let altered = OffsetChange::Alter(vec![(partition(), Some(SourceOffset::single("n", 1)))]);
        let (inits, ends) = (stand.broker.requests(ApiKey::InitProducerId), stand.broker.requests(ApiKey::EndTxn));
        assert_eq!(herd.worker.alter_offsets("c", &stand.connector, altered).await, Ok(false));
        assert_eq!(stand.broker.requests(ApiKey::InitProducerId), inits + 1);
        assert_eq!(stand.broker.requests(ApiKey::EndTxn), ends + 1);
        let listed = herd.worker.offsets("c", &stand.connector).await.expect("it is listed");
        assert_eq!(listed, [(partition(), Some(SourceOffset::single("n", 1)))]);
        stand.script(vec![]);
        started_at(&stand, &herd, Some(1)).await;
        stand.connector.extend(map(&[("on.alter", "yes")]));
        assert_eq!(herd.worker.alter_offsets("c", &stand.connector, OffsetChange::Reset).await, Ok(true));
        assert_eq!(herd.worker.offsets("c", &stand.connector).await, Ok(vec![]));
        assert_eq!(last(&stand, "w-offsets").await, None);
        assert_eq!(
            herd.worker.alter_offsets("c", &stand.connector, OffsetChange::Reset).await,
            Ok(true),
            "nothing is left"
        );
        started_at(&stand, &herd, None).await;
        herd.worker.close().await;
    }
}

#[tokio::test]
async fn a_connector_that_refuses_or_panics_changes_nothing() {
    for mode in ["enabled", "disabled"] {
        let (mut stand, herd) = stand(mode, &[]).await;
        for (how, says) in [("refuse", "1 offsets refused"), ("panic", "panicked")] {
            stand.connector.extend(map(&[("on.alter", how)]));
            let change = OffsetChange::Alter(vec![(partition(), Some(SourceOffset::single("n", 1)))]);
            match herd.worker.alter_offsets("c", &stand.connector, change).await {
                Err(AlterError::Refused(problem)) => assert!(problem.contains(says), "{problem}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(stand.read("w-offsets").await.is_empty());
        stand.connector.extend(map(&[("on.alter", "yes")]));
        let change = OffsetChange::Alter(vec![(partition(), Some(SourceOffset::single("n", 7)))]);
        assert_eq!(herd.worker.alter_offsets("c", &stand.connector, change).await, Ok(true));
        started_at(&stand, &herd, Some(7)).await;
        herd.worker.close().await;
    }
}

#[tokio::test]
async fn b11_a_reset_removes_every_spelling_of_a_partition() {
    let (stand, herd) = stand("enabled", &[]).await;
    let cluster = stand.cluster().await;
    let producer = oncewire_client::producer::PlainProducer::new(cluster.clone(), Default::default());
    let mut stage = producer.stage();
    let spellings = [r#"["c",{"a":1,"b":2}]"#, r#"["c",{"b":2,"a":1}]"#];
    for (key, value) in spellings.iter().zip([r#"{"n":10}"#, r#"{"n":7}"#]) {
        let at = oncewire_client::producer::partition_for_key(key.as_bytes(), 3);
        stage.append(&"w-offsets".into(), at, 1, Some(key.as_bytes()), Some(value.as_bytes()), &[]).expect("it fits");
    }
    producer.send(stage.seal()).await.expect("room").wait().await.expect("delivered");
    herd.worker.alter_offsets("c", &stand.connector, OffsetChange::Reset).await.expect("reset");
    let removed: Vec<String> =
        stand.read("w-offsets").await.into_iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect();
    assert!(
        removed.len() == 2 && spellings.iter().all(|key| removed.iter().any(|removed| removed == key)),
        "{removed:?}"
    );
}
