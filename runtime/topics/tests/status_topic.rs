//! The status topic over a broker: what is told arrives, also over outages, and puts never wait.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_dev_broker::Fault;
use oncewire_topics::{State, Status, StatusTopic, TopicError};
use std::time::Duration;
use support::{PATIENCE, Stage, soon};

async fn start(stage: &Stage) -> StatusTopic {
    soon(StatusTopic::start(stage.status_topic())).await.unwrap()
}

fn status(state: State, worker: &str, generation: i32) -> Status {
    Status { state, trace: None, worker_id: worker.into(), generation, version: Some("1.0".into()) }
}

async fn settle(topic: &StatusTopic) {
    soon(topic.flush(PATIENCE)).await.unwrap();
    soon(topic.refresh(PATIENCE)).await.unwrap();
}

#[tokio::test]
async fn statuses_of_all_partitions_are_read_by_every_worker() {
    let stage = Stage::start().await;
    let (one, other) = (start(&stage).await, start(&stage).await);
    let running = status(State::Running, "one:8083", 5);
    one.put_connector("c", &running);
    (0..20).for_each(|task| one.put_task("c", task, &running));
    settle(&one).await;
    soon(other.refresh(PATIENCE)).await.unwrap();
    for topic in [&one, &other] {
        assert_eq!(topic.connector("c"), Some(running.clone()));
        assert_eq!(topic.tasks("c").len(), 20);
        assert_eq!(topic.connectors().into_iter().collect::<Vec<_>>(), ["c"]);
    }
    one.delete_connector("c");
    (0..20).for_each(|task| one.delete_task("c", task));
    settle(&one).await;
    let late = start(&stage).await;
    assert!(late.connector("c").is_none() && late.tasks("c").is_empty() && late.connectors().is_empty());
}

#[tokio::test]
async fn a_safe_put_gives_way_and_an_ordinary_one_does_not() {
    let stage = Stage::start().await;
    let topic = start(&stage).await;
    topic.put_task("c", 0, &status(State::Running, "new:8083", 6));
    settle(&topic).await;
    topic.put_task_safe("c", 0, &status(State::Failed, "old:8083", 5));
    settle(&topic).await;
    assert_eq!(topic.task("c", 0).unwrap().state, State::Running);
    topic.put_task("c", 0, &status(State::Failed, "old:8083", 5));
    settle(&topic).await;
    assert_eq!(topic.task("c", 0).unwrap().state, State::Failed);
    topic.put_connector_safe("c", &status(State::Unassigned, "old:8083", 5));
    settle(&topic).await;
    assert_eq!(topic.connector("c").unwrap().state, State::Unassigned);
}

#[tokio::test]
async fn a_known_topic_is_not_written_again_until_it_was_forgotten() {
    let stage = Stage::start().await;
    let topic = start(&stage).await;
    topic.put_topic("c", 0, "t");
    topic.put_topic("c", 1, "t");
    topic.put_topic("c", 1, "u");
    settle(&topic).await;
    assert_eq!(
        topic.topics("c").into_iter().map(|(name, known)| (name, known.task)).collect::<Vec<_>>(),
        [("t".to_owned(), 0), ("u".to_owned(), 1)]
    );
    let written = stage.broker.requests(ApiKey::Produce);
    topic.put_topic("c", 0, "t");
    settle(&topic).await;
    assert_eq!(stage.broker.requests(ApiKey::Produce), written);
    topic.delete_topics("c");
    topic.put_topic("c", 2, "t");
    settle(&topic).await;
    assert_eq!(topic.topics("c").keys().collect::<Vec<_>>(), ["t"]);
    topic.delete_topics("c");
    settle(&topic).await;
    assert!(topic.topics("c").is_empty());
}

#[tokio::test]
async fn what_is_told_during_an_outage_arrives_after_it_and_only_the_newest() {
    let stage = Stage::start().await;
    let topic = start(&stage).await;
    (1..=3).for_each(|nth| stage.broker.faults().inject(ApiKey::Produce, nth, Fault::CloseBefore));
    for generation in 0..50 {
        topic.put_task("c", 0, &status(State::Running, "one:8083", generation));
        topic.put_task("c", 1, &status(State::Paused, "one:8083", generation));
    }
    settle(&topic).await;
    assert_eq!(topic.task("c", 0).unwrap().generation, 49);
    assert_eq!(topic.task("c", 1).unwrap().generation, 49);
}

#[tokio::test]
async fn what_the_broker_refuses_is_given_up_and_the_next_one_is_written() {
    let stage = Stage::start().await;
    let topic = start(&stage).await;
    stage.broker.faults().inject(ApiKey::Produce, 1, Fault::Answer(ResponseError::TopicAuthorizationFailed));
    topic.put_connector("c", &status(State::Running, "one:8083", 1));
    soon(topic.flush(PATIENCE)).await.unwrap();
    topic.put_connector("c", &status(State::Running, "one:8083", 2));
    settle(&topic).await;
    assert_eq!(topic.connector("c").unwrap().generation, 2);
}

#[tokio::test]
async fn a_flush_keeps_its_time() {
    let stage = Stage::start().await;
    let topic = start(&stage).await;
    stage.broker.faults().inject(ApiKey::Produce, 1, Fault::DelayAnswer(Duration::from_secs(1)));
    topic.put_connector("c", &status(State::Running, "one:8083", 1));
    let late = topic.flush(Duration::from_millis(50)).await;
    assert!(matches!(late, Err(TopicError::Timeout { .. })), "{late:?}");
    soon(topic.close(PATIENCE)).await;
    assert_eq!(start(&stage).await.connector("c").unwrap().generation, 1, "the close waited for it");
}

#[tokio::test]
async fn a_topic_that_would_lose_statuses_is_refused() {
    let stage = Stage::start().await;
    stage.make("statuses", 3, "compact,delete").await;
    let error = soon(StatusTopic::start(stage.status_topic())).await.unwrap_err().to_string();
    assert!(error.contains("status.storage.topic") && error.contains("compact,delete"), "{error}");
}
