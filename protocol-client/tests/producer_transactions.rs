//! Transactions against a dev broker whose network and answers fail: each story is something that happened to somebody.

#![allow(clippy::unwrap_used, reason = "a step that fails is the test's end")]

mod producer_support;

use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::{ProducerError, ProducerRecord, ProducerState, TransactionalProducer};
use producer_support::{ApiKey, Fault, GENERATIONS, ResponseError, Stage, batch, soon};
use std::time::{Duration, Instant};

const ALL: u64 = 200;

async fn transact(stage: &Stage, producer: &TransactionalProducer, values: &[&str]) -> Result<u64, ProducerError> {
    producer.begin().await?;
    producer.send(batch(producer, &stage.topic, 0, values)).await?;
    soon(producer.commit()).await.map(|committed| committed.records)
}

#[tokio::test]
async fn committed_transactions_are_visible_and_aborted_ones_are_not() {
    for generation in [0, 1, 2] {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        assert_eq!(transact(&stage, &producer, &["a", "b"]).await, Ok(2));
        producer.begin().await.unwrap();
        producer.send(batch(&producer, &stage.topic, 0, &["x"])).await.unwrap();
        soon(producer.abort()).await.unwrap();
        assert_eq!(transact(&stage, &producer, &["c"]).await, Ok(1));
        assert_eq!(stage.committed(0).await, ["a", "b", "c"], "generation {generation}");
        let metrics = producer.metrics();
        assert_eq!((metrics.transactions_committed, metrics.transactions_aborted), (2, 1));
        producer.close(Duration::from_secs(5)).await.unwrap();
        assert_eq!(producer.state(), ProducerState::Closed);
    }
}

/// KIP-890 is opted into by the finalized feature, not by API versions alone (franz-go 1.19.2).
#[tokio::test]
async fn partitions_are_added_explicitly_below_transactions_v2_and_never_with_it() {
    for (generation, added) in [(0, 1), (1, 1), (2, 0)] {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        transact(&stage, &producer, &["a"]).await.unwrap();
        assert_eq!(stage.broker.requests(ApiKey::AddPartitionsToTxn), added, "generation {generation}");
    }
}

/// All partitions of one leader share a request, and so do the partitions to add.
#[tokio::test]
async fn one_produce_request_carries_all_partitions() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        producer.begin().await.unwrap();
        let mut batches = Vec::new();
        for partition in 0..3 {
            batches.extend(batch(&producer, &stage.topic, partition, &["v"]));
        }
        producer.send(batches).await.unwrap();
        soon(producer.commit()).await.unwrap();
        assert_eq!(stage.broker.requests(ApiKey::Produce), 1, "generation {generation}");
        assert_eq!(stage.broker.requests(ApiKey::AddPartitionsToTxn), if generation == 1 { 1 } else { 0 });
    }
}

/// KIP-890's motivation: an EndTxn whose answer is lost is asked again, and never becomes the next transaction's end.
#[tokio::test]
async fn lost_end_txn_answer_is_asked_for_again() {
    for generation in GENERATIONS {
        for fault in [Fault::CloseBefore, Fault::CloseAfter] {
            let stage = Stage::set(generation).await;
            let producer = stage.ready("t").await;
            stage.suffer(ApiKey::EndTxn, 1, fault);
            assert_eq!(transact(&stage, &producer, &["a"]).await, Ok(1), "generation {generation}, {fault:?}");
            assert!(stage.broker.requests(ApiKey::EndTxn) >= 2);
            transact(&stage, &producer, &["b"]).await.unwrap();
            assert_eq!(stage.committed(0).await, ["a", "b"], "generation {generation}, {fault:?}");
        }
    }
}

/// The Jepsen report on late EndTxn requests: one that arrives after its time-out must not end the next transaction.
#[tokio::test]
async fn late_end_txn_does_not_end_the_next_transaction() {
    for generation in GENERATIONS {
        let late = Duration::from_millis(3000);
        let stage =
            Stage::set_with(generation, |_| {}, |client| client.request_timeout = Duration::from_millis(100)).await;
        let producer = stage.ready("t").await;
        let sent = Instant::now();
        stage.suffer(ApiKey::EndTxn, 1, Fault::DelayRequest(late));
        transact(&stage, &producer, &["a"]).await.unwrap();
        producer.begin().await.unwrap();
        producer.send(batch(&producer, &stage.topic, 0, &["b"])).await.unwrap();
        // The late copy arrives while this transaction is open.
        tokio::time::sleep_until((sent + late + Duration::from_millis(200)).into()).await;
        soon(producer.abort()).await.unwrap();
        assert_eq!(stage.committed(0).await, ["a"], "generation {generation}");
    }
}

/// "Timed out" is not "not written": a batch whose answer was lost goes out again with the same bytes.
#[tokio::test]
async fn lost_produce_answers_neither_lose_nor_double_records() {
    for generation in GENERATIONS {
        for fault in [Fault::CloseBefore, Fault::CloseAfter] {
            let stage = Stage::set(generation).await;
            let producer = stage.ready("t").await;
            stage.suffer(ApiKey::Produce, 1, fault);
            transact(&stage, &producer, &["a", "b"]).await.unwrap();
            transact(&stage, &producer, &["c"]).await.unwrap();
            assert_eq!(stage.committed(0).await, ["a", "b", "c"], "generation {generation}, {fault:?}");
        }
    }
}

/// Retriable refusals in the middle of a pipeline keep the order (kafkajs #598, librdkafka #3584).
/// E72 sync-retriable-send
#[tokio::test]
async fn refusals_in_the_middle_of_a_pipeline_keep_the_order() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        let faults = stage.broker.faults();
        faults.inject(ApiKey::Produce, 2, Fault::Answer(ResponseError::NotLeaderOrFollower));
        faults.inject(ApiKey::Produce, 7, Fault::Answer(ResponseError::NotEnoughReplicas));
        faults.inject(ApiKey::Produce, 15, Fault::CloseAfter);
        producer.begin().await.unwrap();
        let values: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        for value in &values {
            producer.send(batch(&producer, &stage.topic, 0, &[value])).await.unwrap();
            tokio::task::yield_now().await;
        }
        soon(producer.commit()).await.unwrap();
        assert_eq!(stage.committed(0).await, values, "generation {generation}");
        assert!(producer.metrics().batch_retries > 0);
    }
}

/// librdkafka 1.9.0: a topic that metadata leaves out for a moment must keep its sequence numbers.
#[tokio::test]
async fn topic_that_vanishes_for_a_moment_keeps_its_sequences() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        producer.begin().await.unwrap();
        producer.send(batch(&producer, &stage.topic, 0, &["1", "2", "3", "4", "5"])).await.unwrap();
        stage.suffer(ApiKey::Metadata, 1, Fault::Answer(ResponseError::UnknownTopicOrPartition));
        stage.broker.faults().inject(ApiKey::Produce, 2, Fault::Answer(ResponseError::UnknownTopicOrPartition));
        producer.send(batch(&producer, &stage.topic, 0, &["6", "7", "8", "9", "10"])).await.unwrap();
        soon(producer.commit()).await.unwrap();
        assert_eq!(stage.committed(0).await, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
    }
}

/// KAFKA-9279, librdkafka 1.5.2: one record that could not be sent, and the commit must not pass over it.
#[tokio::test]
async fn oversized_record_fails_the_whole_transaction_and_is_named() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        let large = vec![b'x'; 2 * 1024 * 1024];
        let mut transaction = producer.transaction().await.unwrap();
        let record = |value| ProducerRecord { topic: "orders", value: Some(value), ..ProducerRecord::default() };
        transaction.send(record(b"before")).await.unwrap();
        let error = transaction.send(record(&large)).await.unwrap_err().to_string();
        assert!(error.contains("orders") && error.contains("max.request.size"), "{error}");
        let error = soon(transaction.commit()).await.unwrap_err();
        assert!(matches!(error, ProducerError::NotCommitted { recoverable: true, .. }), "{error}");
        assert!(error.to_string().contains("max.request.size"), "{error}");
        transact(&stage, &producer, &["after"]).await.unwrap();
        assert_eq!(stage.committed(0).await, ["after"]);
    }
}

/// A batch that the broker refuses for good aborts the transaction, and the producer goes on.
#[tokio::test]
async fn refused_batch_aborts_and_the_next_transaction_works() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        stage.suffer(ApiKey::Produce, 1, Fault::Answer(ResponseError::MessageTooLarge));
        let error = transact(&stage, &producer, &["x"]).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ProducerError::NotCommitted { .. }), "{text}");
        assert!(text.contains("orders-0") && text.contains("MESSAGE_TOO_LARGE (10)"), "{text}");
        producer.abort().await.unwrap();
        if producer.state() == ProducerState::Uninitialized {
            producer.init().await.unwrap();
        }
        transact(&stage, &producer, &["a"]).await.unwrap();
        assert_eq!(stage.committed(0).await, ["a"], "generation {generation}");
    }
}

/// librdkafka 1.5.3, franz-go 1.21.4: only code 0 is a commit.
#[tokio::test]
async fn no_code_but_zero_is_a_commit() {
    let codes = [
        ResponseError::UnknownServerError,
        ResponseError::InvalidProducerEpoch,
        ResponseError::InvalidTxnState,
        ResponseError::InvalidProducerIdMapping,
        ResponseError::TransactionalIdAuthorizationFailed,
        ResponseError::ProducerFenced,
        ResponseError::TransactionAbortable,
        ResponseError::UnknownProducerId,
        ResponseError::CoordinatorLoadInProgress,
        ResponseError::ConcurrentTransactions,
        ResponseError::RequestTimedOut,
        ResponseError::Unknown(999),
    ];
    let mut stories = tokio::task::JoinSet::new();
    for generation in GENERATIONS {
        for code in codes {
            stories.spawn(async move {
                let stage = Stage::set(generation).await;
                let producer = stage
                    .producer_with("t", |config: &mut ProducerConfig| config.max_block = Duration::from_millis(300));
                producer.init().await.unwrap();
                stage.suffer(ApiKey::EndTxn, ALL, Fault::Answer(code));
                let result = transact(&stage, &producer, &["x"]).await;
                assert!(result.is_err(), "generation {generation}, {code:?}: {result:?}");
            });
        }
    }
    while let Some(ended) = stories.join_next().await {
        ended.unwrap();
    }
}

/// kafkajs #296, librdkafka #3003: 51 is a wait, however often it comes.
#[tokio::test]
async fn concurrent_transactions_is_waited_out() {
    let stage = Stage::set(1).await;
    let producer = stage.producer("t");
    stage.suffer(ApiKey::InitProducerId, 40, Fault::Answer(ResponseError::ConcurrentTransactions));
    soon(producer.init()).await.unwrap();
    stage.suffer(ApiKey::AddPartitionsToTxn, 10, Fault::Answer(ResponseError::ConcurrentTransactions));
    transact(&stage, &producer, &["a"]).await.unwrap();
    assert_eq!(stage.committed(0).await, ["a"]);
}

/// kafkajs #469, librdkafka #4849, KAFKA-14799: nothing was sent, so there is nothing to end.
#[tokio::test]
async fn empty_transactions_send_no_end_txn() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        for _ in 0..3 {
            producer.begin().await.unwrap();
            soon(producer.abort()).await.unwrap();
            producer.begin().await.unwrap();
            assert_eq!(soon(producer.commit()).await.unwrap().records, 0);
        }
        assert_eq!(stage.broker.requests(ApiKey::EndTxn), 0);
        transact(&stage, &producer, &["a"]).await.unwrap();
        assert_eq!(stage.committed(0).await, ["a"]);
    }
}

/// KAFKA-20077, KAFKA-9287: a topic that is never found ends the commit in time.
#[tokio::test]
async fn endless_unknown_topic_ends_the_commit_within_the_delivery_timeout() {
    for (generation, api) in [(1, ApiKey::AddPartitionsToTxn), (2, ApiKey::Produce)] {
        let stage = Stage::set(generation).await;
        let producer = stage
            .producer_with("t", |config: &mut ProducerConfig| config.delivery_timeout = Duration::from_millis(500));
        producer.init().await.unwrap();
        stage.suffer(api, 1000, Fault::Answer(ResponseError::UnknownTopicOrPartition));
        let begun = Instant::now();
        let error = transact(&stage, &producer, &["x"]).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(error.to_string().contains("orders-0"), "{error}");
        producer.close(Duration::from_secs(5)).await.unwrap();
    }
}

/// KAFKA-7763, KAFKA-16217: with the brokers gone every call ends, and so does close.
#[tokio::test]
async fn commit_and_close_end_when_the_broker_is_gone() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.producer_with("t", |config: &mut ProducerConfig| {
            config.max_block = Duration::from_millis(400);
        });
        producer.init().await.unwrap();
        producer.begin().await.unwrap();
        producer.send(batch(&producer, &stage.topic, 0, &["x"])).await.unwrap();
        let Stage { broker, cluster, .. } = stage;
        broker.shutdown().await;
        let error = soon(producer.commit()).await.unwrap_err();
        assert!(!matches!(error, ProducerError::Misuse { .. }), "{error}");
        let begun = Instant::now();
        // Whether the last abort got out in time is not the point.
        let _ = producer.close(Duration::from_secs(4)).await;
        assert!(begun.elapsed() < Duration::from_secs(5));
        drop(cluster);
    }
}

/// KAFKA-13412: an init whose caller went away is joined, not repeated.
#[tokio::test]
async fn dropped_init_is_joined_by_the_next() {
    let stage = Stage::set(2).await;
    let producer = stage.producer("t");
    stage.suffer(ApiKey::InitProducerId, 1, Fault::DelayAnswer(Duration::from_millis(300)));
    assert!(tokio::time::timeout(Duration::from_millis(100), producer.init()).await.is_err());
    let identity = soon(producer.init()).await.unwrap();
    assert_eq!(identity.epoch, 0);
    assert_eq!(stage.broker.requests(ApiKey::InitProducerId), 1);
    assert_eq!(soon(producer.init()).await.unwrap(), identity);
}

/// aiokafka, librdkafka #3571: a coordinator that moves or loads keeps the kind of the pending end.
#[tokio::test]
async fn moving_coordinator_keeps_the_pending_end() {
    for generation in GENERATIONS {
        for code in [
            ResponseError::NotCoordinator,
            ResponseError::CoordinatorNotAvailable,
            ResponseError::CoordinatorLoadInProgress,
        ] {
            let stage = Stage::set(generation).await;
            let producer = stage.ready("t").await;
            stage.suffer(ApiKey::EndTxn, 3, Fault::Answer(code));
            stage.suffer(ApiKey::FindCoordinator, 3, Fault::Answer(ResponseError::CoordinatorNotAvailable));
            transact(&stage, &producer, &["a"]).await.unwrap();
            assert_eq!(stage.committed(0).await, ["a"], "generation {generation}, {code:?}");
        }
    }
}

/// KAFKA-10520: one broker, one request in flight, slow metadata.
#[tokio::test]
async fn one_broker_with_one_request_in_flight_does_not_lock_up() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.producer_with("t", |config: &mut ProducerConfig| config.max_in_flight = 1);
        stage.suffer(ApiKey::Metadata, 3, Fault::DelayAnswer(Duration::from_millis(200)));
        soon(producer.init()).await.unwrap();
        for value in ["a", "b", "c"] {
            transact(&stage, &producer, &[value]).await.unwrap();
        }
        assert_eq!(stage.committed(0).await, ["a", "b", "c"]);
    }
}

/// A newer owner fences the older one, which never gets a commit through.
#[tokio::test]
async fn older_owner_is_fenced_and_says_so() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let old = stage.ready("t").await;
        old.begin().await.unwrap();
        old.send(batch(&old, &stage.topic, 0, &["zombie"])).await.unwrap();
        let new = stage.ready("t").await;
        transact(&stage, &new, &["a"]).await.unwrap();
        let error = soon(old.commit()).await.unwrap_err();
        assert!(!matches!(error, ProducerError::Unknown { .. }), "{error}");
        // Some answers look like a time-out; asking for the identity again settles it, and must not fence the owner.
        let fenced = error.is_fenced() || matches!(soon(old.init()).await, Err(error) if error.is_fenced());
        assert!(fenced, "generation {generation}: {error}");
        assert_eq!(old.state(), ProducerState::Fenced);
        transact(&stage, &new, &["b"]).await.unwrap();
        assert_eq!(stage.committed(0).await, ["a", "b"], "generation {generation}");
    }
}

/// A commit whose future is dropped at its first await goes on; asking again gives its result.
#[tokio::test]
async fn commit_dropped_at_once_is_taken_up_again() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        for value in ["a", "b", "c", "d"] {
            producer.begin().await.unwrap();
            producer.send(batch(&producer, &stage.topic, 0, &[value])).await.unwrap();
            for wait in [Duration::ZERO, Duration::from_micros(50), Duration::from_micros(300)] {
                // The outcome of a dropped wait comes with the next call.
                let _ = tokio::time::timeout(
                    wait,
                    std::future::poll_fn(|context| {
                        std::pin::pin!(producer.commit()).as_mut().poll(context).map(|_| ())
                    }),
                )
                .await;
                if producer.state() == ProducerState::Ready {
                    break;
                }
            }
            if producer.state() != ProducerState::Ready {
                soon(producer.commit()).await.unwrap();
            }
        }
        assert_eq!(stage.committed(0).await, ["a", "b", "c", "d"]);
    }
}

/// Batches wait for room and go on as acknowledgements come.
#[tokio::test]
async fn small_buffer_holds_back_and_delivers_everything() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.producer_with("t", |config: &mut ProducerConfig| config.buffer_memory_bytes = 300);
        producer.init().await.unwrap();
        producer.begin().await.unwrap();
        let values: Vec<String> = (0..50).map(|number| format!("value {number}")).collect();
        for value in &values {
            soon(producer.send(batch(&producer, &stage.topic, 1, &[value]))).await.unwrap();
            assert!(producer.metrics().buffered_bytes <= 300);
        }
        soon(producer.commit()).await.unwrap();
        assert_eq!(stage.committed(1).await, values);
    }
}

/// Dropping the handle aborts what was open, so that readers are not kept waiting.
#[tokio::test]
async fn dropped_producer_aborts_its_transaction() {
    for generation in GENERATIONS {
        let stage = Stage::set(generation).await;
        let producer = stage.ready("t").await;
        producer.begin().await.unwrap();
        producer.send(batch(&producer, &stage.topic, 0, &["x"])).await.unwrap();
        while producer.metrics().records_acknowledged == 0 {
            tokio::task::yield_now().await;
        }
        drop(producer);
        // Ends only when the open transaction has.
        assert_eq!(stage.committed(0).await, Vec::<String>::new());
    }
}
