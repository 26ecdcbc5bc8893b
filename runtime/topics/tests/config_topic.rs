//! The config topic over a broker: writes are read back, leaders fence each other, trouble is told.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_client::admin::Admin;
use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::{ProducerRecord, TransactionalProducer};
use oncewire_dev_broker::Fault;
use oncewire_topics::{ConfigTopic, RestartRequest, SessionKey, TargetState, TopicError};
use std::time::Duration;
use support::{PATIENCE, Stage, config, soon};

async fn start(stage: &Stage, exactly_once: bool) -> ConfigTopic {
    soon(ConfigTopic::start(stage.config_topic(exactly_once))).await.unwrap()
}

#[tokio::test]
async fn what_the_leader_writes_every_worker_reads() {
    for exactly_once in [false, true] {
        let stage = Stage::start().await;
        let (leader, other) = (start(&stage, exactly_once).await, start(&stage, exactly_once).await);
        soon(leader.claim_write_privileges()).await.unwrap();
        soon(leader.put_connector("c", &config("1"), Some(TargetState::Paused))).await.unwrap();
        let snapshot = leader.snapshot();
        assert_eq!(snapshot.config("c").map(|known| (**known).clone()), Some(config("1")), "read back at the return");
        assert_eq!(snapshot.target_state("c"), Some(TargetState::Paused));
        soon(leader.put_task_configs("c", &[config("a"), config("b")])).await.unwrap();
        assert_eq!(leader.snapshot().tasks("c"), [0, 1]);
        assert!(leader.snapshot().pending_fencing("c"));
        soon(leader.put_task_count("c", 2)).await.unwrap();
        assert!(!leader.snapshot().pending_fencing("c"));
        soon(other.changed()).await;
        soon(other.refresh(PATIENCE)).await.unwrap();
        assert_eq!(other.snapshot().offset(), leader.snapshot().offset());
        let changes = other.take_changes();
        assert!(changes.added.contains("c") && changes.task_commits.contains("c"));
        soon(leader.remove_connector("c")).await.unwrap();
        assert!(!leader.snapshot().contains("c"));
        leader.close().await;
        other.close().await;
    }
}

#[tokio::test]
async fn the_offset_counts_data_records_and_no_markers() {
    let stage = Stage::start().await;
    let topic = start(&stage, true).await;
    assert_eq!(topic.snapshot().offset(), -1);
    soon(topic.claim_write_privileges()).await.unwrap();
    soon(topic.put_connector("c", &config("1"), None)).await.unwrap();
    assert_eq!(topic.snapshot().offset(), 1, "the marker at offset 1 does not count");
    soon(topic.put_task_configs("c", &[])).await.unwrap();
    assert_eq!(topic.snapshot().offset(), 3, "the commit is at offset 2");
    topic.close().await;
    assert_eq!(start(&stage, true).await.snapshot().offset(), 3, "and whoever starts now tells the same");
}

/// B31 write-privileges
#[tokio::test]
async fn a_second_leader_fences_the_first() {
    let stage = Stage::start().await;
    let (old, new) = (start(&stage, true).await, start(&stage, true).await);
    let refused = soon(old.put_connector("c", &config("1"), None)).await;
    assert!(matches!(refused, Err(TopicError::NotPrivileged)), "{refused:?}");
    soon(old.claim_write_privileges()).await.unwrap();
    soon(new.claim_write_privileges()).await.unwrap();
    let fenced = soon(old.put_connector("c", &config("1"), None)).await;
    assert!(matches!(fenced, Err(TopicError::Privileged(_))), "{fenced:?}");
    // Its producer is closed, and it does not come back by itself.
    let closed = soon(old.put_session_key(&key())).await;
    assert!(matches!(closed, Err(TopicError::NotPrivileged)), "{closed:?}");
    soon(new.put_connector("c", &config("2"), None)).await.unwrap();
    soon(old.refresh(PATIENCE)).await.unwrap();
    assert_eq!(**old.snapshot().config("c").unwrap(), config("2"));
    // What needs no privilege is written all the same.
    soon(old.put_target_state("c", TargetState::Stopped)).await.unwrap();
    soon(new.refresh(PATIENCE)).await.unwrap();
    assert_eq!(new.snapshot().target_state("c"), Some(TargetState::Stopped));
    soon(old.claim_write_privileges()).await.unwrap();
    soon(old.put_connector("c", &config("3"), None)).await.unwrap();
}

fn key() -> SessionKey {
    SessionKey { key: vec![7; 32], algorithm: "HmacSHA256".into(), created_ms: 1 }
}

#[tokio::test]
async fn restarts_levels_and_keys_reach_workers_that_run() {
    let stage = Stage::start().await;
    let topic = start(&stage, false).await;
    let request = RestartRequest { connector: "c".into(), only_failed: true, include_tasks: true };
    soon(topic.put_restart(&request)).await.unwrap();
    soon(topic.put_session_key(&key())).await.unwrap();
    soon(topic.put_logger_level("a.b", "DEBUG")).await.unwrap();
    soon(topic.refresh(PATIENCE)).await.unwrap();
    let changes = topic.take_changes();
    assert_eq!(changes.restarts["c"], request);
    assert_eq!(changes.loggers["a.b"], "DEBUG");
    assert!(changes.session_key);
    assert_eq!(topic.snapshot().session_key(), Some(&key()));
    let late = start(&stage, false).await;
    assert!(late.take_changes().is_empty());
    assert_eq!(late.snapshot().session_key(), Some(&key()));
}

#[tokio::test]
async fn an_open_transaction_makes_a_refresh_wait() {
    let stage = Stage::start().await;
    let topic = start(&stage, true).await;
    let producer = TransactionalProducer::new(stage.cluster.clone(), ProducerConfig::new("someone").unwrap());
    producer.init().await.unwrap();
    producer.begin().await.unwrap();
    let mut batches = producer.stage();
    let value = br#"{"properties":{}}"#;
    batches.append(&"configs".into(), 0, 1, Some(b"connector-c"), Some(value), &[]).unwrap();
    producer.send(batches.seal()).await.unwrap();
    let admin = Admin::new(stage.cluster.clone());
    soon(async {
        loop {
            let end = admin
                .list_offsets("configs", None, oncewire_client::admin::OffsetSpec::Latest, Default::default())
                .await
                .unwrap();
            let transactions = admin.list_transactions().await.map_or(0, |open| open.len());
            if end[&0].offset == 0 && transactions > 0 {
                break;
            }
        }
    })
    .await;
    let waiting = topic.refresh(Duration::from_millis(300)).await;
    assert!(matches!(waiting, Err(TopicError::Timeout { .. })), "{waiting:?}");
    producer.commit().await.unwrap();
    soon(topic.refresh(PATIENCE)).await.unwrap();
    assert!(topic.snapshot().contains("c"));
}

#[tokio::test]
async fn topics_that_would_lose_configs_are_refused() {
    let stage = Stage::start().await;
    stage.make("configs", 1, "delete").await;
    let error = soon(ConfigTopic::start(stage.config_topic(true))).await.unwrap_err().to_string();
    assert!(error.contains("cleanup.policy=delete") && error.contains("config.storage.topic"), "{error}");
    let stage = Stage::start().await;
    stage.make("configs", 2, "compact").await;
    let error = soon(ConfigTopic::start(stage.config_topic(true))).await.unwrap_err().to_string();
    assert!(error.contains("required to have a single partition"), "{error}");
}

#[tokio::test]
async fn a_policy_that_may_not_be_seen_is_believed() {
    let stage = Stage::start().await;
    stage.make("configs", 1, "delete").await;
    stage.broker.faults().inject(ApiKey::DescribeConfigs, 1, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    start(&stage, true).await;
}

#[tokio::test]
async fn a_refused_write_is_told_and_nothing_is_there() {
    let stage = Stage::start().await;
    let topic = start(&stage, false).await;
    stage.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    let error = soon(topic.put_connector("c", &config("1"), None)).await.unwrap_err();
    assert!(error.to_string().contains("TOPIC_AUTHORIZATION_FAILED"), "{error}");
    soon(topic.refresh(PATIENCE)).await.unwrap();
    assert!(!topic.snapshot().contains("c"));
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_made_again() {
    let stage = Stage::start().await;
    let topic = start(&stage, true).await;
    soon(topic.claim_write_privileges()).await.unwrap();
    for api in [ApiKey::Produce, ApiKey::EndTxn] {
        stage.broker.faults().inject(api, 1, Fault::CloseAfter);
        soon(topic.put_connector("c", &config(&format!("{api:?}")), None)).await.unwrap();
        assert_eq!(**topic.snapshot().config("c").unwrap(), config(&format!("{api:?}")));
    }
}

#[tokio::test]
async fn trouble_is_told_once_to_who_waits_for_changes_and_every_time_to_who_asks() {
    let stage = Stage::start().await;
    let topic = start(&stage, false).await;
    let broken = Fault::Answer(ResponseError::TopicAuthorizationFailed);
    (1..=3).for_each(|nth| stage.broker.faults().inject(ApiKey::Fetch, nth, broken));
    soon(topic.changed()).await;
    let trouble = topic.take_changes().trouble.expect("the reason");
    assert!(trouble.contains("TOPIC_AUTHORIZATION_FAILED"), "{trouble}");
    let written = soon(topic.put_connector("c", &config("1"), None)).await;
    assert!(matches!(written, Err(TopicError::Unreadable { .. })), "it can't be read back: {written:?}");
    // The faults are used up now, or will be soon.
    soon(async { while topic.put_connector("c", &config("2"), None).await.is_err() {} }).await;
    assert_eq!(**topic.snapshot().config("c").unwrap(), config("2"));
    assert!(topic.take_changes().trouble.is_none());
}

#[tokio::test]
async fn lost_connections_are_made_again() {
    let stage = Stage::start().await;
    let topic = start(&stage, true).await;
    soon(topic.claim_write_privileges()).await.unwrap();
    (1..=4).for_each(|nth| stage.broker.faults().inject(ApiKey::Fetch, nth, Fault::CloseBefore));
    stage.broker.faults().inject(ApiKey::ListOffsets, 1, Fault::CloseAfter);
    soon(topic.put_connector("c", &config("1"), None)).await.unwrap();
    assert!(topic.take_changes().trouble.is_none());
}

#[tokio::test]
async fn a_dropped_write_goes_on() {
    let stage = Stage::start().await;
    let topic = start(&stage, true).await;
    soon(topic.claim_write_privileges()).await.unwrap();
    stage.broker.faults().inject(ApiKey::Produce, 1, Fault::DelayAnswer(Duration::from_millis(200)));
    let dropped = tokio::time::timeout(Duration::from_millis(20), topic.put_connector("c", &config("1"), None)).await;
    assert!(dropped.is_err(), "it was still on its way");
    soon(topic.put_connector("d", &config("1"), None)).await.unwrap();
    assert!(topic.snapshot().contains("c"), "the writes keep their order and none is cut in two");
}

#[tokio::test]
async fn a_closed_topic_says_so() {
    let stage = Stage::start().await;
    let topic = start(&stage, true).await;
    soon(topic.close()).await;
    soon(topic.close()).await;
    let error = topic.put_target_state("c", TargetState::Paused).await;
    assert!(matches!(error, Err(TopicError::Closed)), "{error:?}");
    let error = topic.refresh(PATIENCE).await;
    assert!(matches!(error, Err(TopicError::Closed)), "{error:?}");
}

#[tokio::test]
async fn rubbish_in_the_topic_stops_nobody() {
    let stage = Stage::start().await;
    let topic = start(&stage, true).await;
    let producer = TransactionalProducer::new(stage.cluster.clone(), ProducerConfig::new("someone").unwrap());
    producer.init().await.unwrap();
    let mut transaction = producer.transaction().await.unwrap();
    for (key, value) in [
        (&b"connector-c"[..], Some(&b"{"[..])),
        (b"commit-c", None),
        (b"\xff", Some(b"\xff")),
        (b"", Some(b"")),
        (b"task-c", Some(b"{}")),
    ] {
        let record = ProducerRecord { topic: "configs", key: Some(key), value, ..Default::default() };
        transaction.send(record).await.unwrap();
    }
    transaction.commit().await.unwrap();
    soon(topic.claim_write_privileges()).await.unwrap();
    soon(topic.put_connector("c", &config("1"), None)).await.unwrap();
    assert!(topic.snapshot().contains("c"));
}
