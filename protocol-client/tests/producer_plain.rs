//! The producer without transactions against a dev broker whose network and answers fail.

#![allow(clippy::unwrap_used, reason = "a step that fails is the test's end")]

mod producer_support;

use oncewire_client::producer::{PlainProducer, ProducerError, StagedBatch};
use producer_support::{ApiKey, Fault, ResponseError, Stage, soon};
use std::time::Duration;

fn batch(stage: &Stage, producer: &PlainProducer, value: &str) -> Vec<StagedBatch> {
    let mut records = producer.stage();
    records.append(&stage.topic, 0, 1_700_000_000_000, None, Some(value.as_bytes()), &[]).unwrap();
    records.seal()
}

#[tokio::test]
async fn records_arrive_in_order_through_refusals() {
    let stage = Stage::set(2).await;
    let producer = stage.plain(|_| {});
    let faults = stage.broker.faults();
    faults.inject(ApiKey::Produce, 2, Fault::Answer(ResponseError::NotLeaderOrFollower));
    faults.inject(ApiKey::Produce, 5, Fault::Answer(ResponseError::NotEnoughReplicas));
    faults.inject(ApiKey::Produce, 9, Fault::CloseBefore);
    let values: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let mut deliveries = Vec::new();
    for value in &values {
        deliveries.push(producer.send(batch(&stage, &producer, value)).await.unwrap());
    }
    for delivery in deliveries {
        soon(delivery.wait()).await.unwrap();
    }
    assert_eq!(stage.committed(0).await, values);
    assert!(producer.metrics().batch_retries >= 3);
    assert_eq!(producer.metrics().buffered_bytes, 0);
    producer.close(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn lost_answer_may_double_a_batch_but_never_loses_one() {
    let stage = Stage::set(2).await;
    let producer = stage.plain(|_| {});
    stage.suffer(ApiKey::Produce, 1, Fault::CloseAfter);
    for value in ["a", "b"] {
        soon(producer.send(batch(&stage, &producer, value)).await.unwrap().wait()).await.unwrap();
    }
    let mut values = stage.committed(0).await;
    values.dedup();
    assert_eq!(values, ["a", "b"]);
}

#[tokio::test]
async fn refused_batch_is_named_and_the_next_goes_on() {
    let stage = Stage::set(2).await;
    let producer = stage.plain(|_| {});
    stage.suffer(ApiKey::Produce, 1, Fault::Answer(ResponseError::MessageTooLarge));
    let refused = producer.send(batch(&stage, &producer, "x")).await.unwrap();
    let text = soon(refused.wait()).await.unwrap_err().to_string();
    assert!(text.contains("orders-0") && text.contains("MESSAGE_TOO_LARGE (10)"), "{text}");
    soon(producer.send(batch(&stage, &producer, "a")).await.unwrap().wait()).await.unwrap();
    assert_eq!(stage.committed(0).await, ["a"]);
}

#[tokio::test]
async fn delivery_ends_with_its_timeout() {
    let stage = Stage::set(2).await;
    let producer = stage.plain(|config| config.delivery_timeout = Duration::from_millis(300));
    stage.suffer(ApiKey::Produce, 1000, Fault::Answer(ResponseError::NotEnoughReplicas));
    let delivery = producer.send(batch(&stage, &producer, "x")).await.unwrap();
    let error = soon(delivery.wait()).await.unwrap_err();
    assert!(matches!(error, ProducerError::NotDelivered { .. }));
    let text = error.to_string();
    assert!(text.contains("NOT_ENOUGH_REPLICAS (19)") && text.contains("delivery.timeout.ms"), "{text}");
}

#[tokio::test]
async fn close_delivers_what_is_left() {
    let stage = Stage::set(2).await;
    let producer = stage.plain(|_| {});
    let deliveries = [
        producer.send(batch(&stage, &producer, "a")).await.unwrap(),
        producer.send(batch(&stage, &producer, "b")).await.unwrap(),
    ];
    producer.close(Duration::from_secs(10)).await.unwrap();
    for delivery in deliveries {
        soon(delivery.wait()).await.unwrap();
    }
    assert_eq!(stage.committed(0).await, ["a", "b"]);
}

/// `batch.size` says when a batch is full; which records are too large is said by `max.request.size`.
#[tokio::test]
async fn record_larger_than_a_batch_goes_alone() {
    let stage = Stage::set(2).await;
    let producer = stage.plain(|config| (config.batch_bytes, config.max_request_bytes) = (100, 1_000));
    let value = "x".repeat(500);
    soon(producer.send(batch(&stage, &producer, &value)).await.unwrap().wait()).await.unwrap();
    assert_eq!(stage.committed(0).await, [value]);
    let mut records = producer.stage();
    let too_large = records.append(&stage.topic, 0, 0, None, Some(&[0; 2_000]), &[]).unwrap_err();
    assert!(too_large.to_string().contains("1000"), "{too_large}");
}

#[tokio::test]
async fn what_is_larger_than_the_buffer_goes_when_the_buffer_is_empty() {
    let stage = Stage::set(2).await;
    let producer = stage.plain(|config| (config.batch_bytes, config.buffer_memory_bytes) = (200, 500));
    let values: Vec<String> = (0..10).map(|number| format!("{number}{}", "x".repeat(150))).collect();
    let mut records = producer.stage();
    for value in &values {
        records.append(&stage.topic, 0, 0, None, Some(value.as_bytes()), &[]).unwrap();
    }
    let large = soon(producer.send(records.seal())).await.unwrap();
    let small = soon(producer.send(batch(&stage, &producer, "small"))).await.unwrap();
    soon(large.wait()).await.unwrap();
    soon(small.wait()).await.unwrap();
    let mut wanted = values;
    wanted.push("small".to_owned());
    assert_eq!(stage.committed(0).await, wanted);
}
