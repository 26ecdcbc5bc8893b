//! Waiting for the markers of the last transaction, against a dev broker that needs a while to write them.

#![allow(clippy::unwrap_used, reason = "a step that fails is the test's end")]

mod producer_support;

use producer_support::{ApiKey, Fault, GENERATIONS, ResponseError, Stage, batch, soon};
use std::time::Duration;

async fn transact(stage: &Stage, producer: &oncewire_client::producer::TransactionalProducer, value: &str) {
    producer.begin().await.unwrap();
    producer.send(batch(producer, &stage.topic, 0, &[value])).await.unwrap();
    soon(producer.commit()).await.unwrap();
}

async fn slow_markers(generation: i16) -> Stage {
    Stage::set_with(generation, |broker| broker.marker_delay = Duration::from_millis(2), |_| {}).await
}

#[tokio::test]
async fn first_request_of_a_transaction_waits_for_the_markers_of_the_last() {
    for generation in GENERATIONS {
        let stage = slow_markers(generation).await;
        let producer = stage.ready("t").await;
        for value in ["a", "b", "c", "d"] {
            transact(&stage, &producer, value).await;
        }
        let metrics = producer.metrics();
        assert!(metrics.marker_polls >= 3, "{metrics:?}");
        assert!(metrics.marker_holds >= 1, "{metrics:?}");
        assert_eq!(stage.committed(0).await, ["a", "b", "c", "d"], "generation {generation}");
    }
}

#[tokio::test]
async fn producer_that_may_not_ask_stops_asking() {
    for generation in GENERATIONS {
        let stage = slow_markers(generation).await;
        let producer = stage.ready("t").await;
        stage.suffer(
            ApiKey::DescribeTransactions,
            50,
            Fault::Answer(ResponseError::TransactionalIdAuthorizationFailed),
        );
        let mut values: Vec<String> = Vec::new();
        let mut more = async || {
            values.push(values.len().to_string());
            transact(&stage, &producer, values.last().unwrap()).await;
            values.clone()
        };
        // A busy machine may bring an answer too late, and then it is asked again; so each answer is this one. The question after
        // a transaction is settled when the next one is committed: all but the last were given up, or one was answered in time.
        let mut committed = 0;
        while producer.metrics().marker_give_ups + 1 >= committed {
            assert!(committed < 50, "{:?}", producer.metrics());
            committed += 1;
            more().await;
        }
        let asked = producer.metrics().marker_polls;
        assert_eq!(asked, producer.metrics().marker_give_ups + 1);
        more().await;
        let values = more().await;
        assert_eq!(producer.metrics().marker_polls, asked, "no more");
        assert!(stage.broker.requests(ApiKey::DescribeTransactions) <= asked);
        assert_eq!(stage.committed(0).await, values);
    }
}

#[tokio::test]
async fn coordinator_that_never_answers_the_question_holds_nothing_up_for_long() {
    for generation in GENERATIONS {
        let stage = slow_markers(generation).await;
        let producer = stage.ready("t").await;
        transact(&stage, &producer, "a").await;
        stage.suffer(ApiKey::DescribeTransactions, 50, Fault::DelayAnswer(Duration::from_millis(60)));
        transact(&stage, &producer, "b").await;
        transact(&stage, &producer, "c").await;
        assert!(producer.metrics().marker_give_ups >= 1);
        assert_eq!(stage.committed(0).await, ["a", "b", "c"]);
    }
}

#[tokio::test]
async fn producer_without_settling_asks_nothing() {
    let stage = slow_markers(2).await;
    let producer = stage.producer("t").without_marker_settling();
    producer.init().await.unwrap();
    for value in ["a", "b", "c"] {
        transact(&stage, &producer, value).await;
    }
    assert_eq!(stage.broker.requests(ApiKey::DescribeTransactions), 0);
    assert_eq!(stage.committed(0).await, ["a", "b", "c"]);
}
