//! The client library against real brokers, both transaction protocols: what is visible, what is fenced, what an end leaves behind.
//!
//! One broker for all stories of a target; each story has topics and transactional ids of its own.

use std::time::Duration;

use oncewire_audit::{AuditPlan, Check, Repeats, audit};
use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::{ProducerError, ProducerRecord, TransactionalProducer};
use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::target::Target;

const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

fn config(transactional_id: &str) -> ProducerConfig {
    ProducerConfig::new(transactional_id).expect("the id is not empty")
}

async fn producer(client: &Client, config: ProducerConfig) -> TransactionalProducer {
    let producer = TransactionalProducer::new(client.cluster().clone(), config);
    producer.init().await.expect("a producer id can be had");
    producer
}

fn record<'a>(topic: &'a str, partition: u32, value: &'a str) -> ProducerRecord<'a> {
    ProducerRecord { topic, partition: Some(partition), value: Some(value.as_bytes()), ..ProducerRecord::default() }
}

/// Sends now, so that the records are on the broker while the transaction is open.
async fn send_open(producer: &TransactionalProducer, topic: &str, values: &[&str]) {
    producer.begin().await.expect("no transaction is open");
    let mut stage = producer.stage();
    for value in values {
        stage.append(&topic.into(), 0, 1, None, Some(value.as_bytes()), &[]).expect("small records fit");
    }
    producer.send(stage.seal()).await.expect("the batch is taken");
}

async fn commit(producer: &TransactionalProducer, topic: &str, values: &[&str]) {
    let mut transaction = producer.transaction().await.expect("no transaction is open");
    for value in values {
        transaction.send(record(topic, 0, value)).await.expect("the record is taken");
    }
    let committed = transaction.commit().await.expect("the transaction commits");
    assert_eq!(committed.records, values.len() as u64);
}

fn values(client: &Client, topic: &str, isolation: Isolation) -> Vec<String> {
    let text =
        |value: Option<bytes::Bytes>| String::from_utf8(value.expect("no tombstones here").to_vec()).expect("text");
    client.records(topic, isolation).into_iter().map(|record| text(record.value)).collect()
}

/// Waits until the broker has all that was sent: an open transaction's records are acknowledged in their own time.
fn wait_for_end(client: &Client, topic: &str, end: i64) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while client.end(topic, Isolation::Uncommitted) < end {
        assert!(std::time::Instant::now() < deadline, "{topic} reaches offset {end}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn aborted_records_are_in_the_log_and_not_visible(client: &Client) {
    client.make_topic("abort", 1, &[]);
    client.block_on(async {
        let producer = producer(client, config("abort")).await;
        commit(&producer, "abort", &["a", "b"]).await;
        send_open(&producer, "abort", &["x", "y"]).await;
        producer.abort().await.expect("the transaction aborts");
        commit(&producer, "abort", &["c"]).await;
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
    assert_eq!(values(client, "abort", Isolation::Committed), ["a", "b", "c"]);
    let all = values(client, "abort", Isolation::Uncommitted);
    // An abort may overtake batches that were not sent yet; those never reach the log.
    assert!(all == ["a", "b", "x", "y", "c"] || all == ["a", "b", "c"], "{all:?}");
}

fn open_transaction_hides_what_follows_and_the_auditor_names_it(client: &Client) {
    client.make_topic("open", 1, &[]);
    let (slow, id) = client.block_on(async {
        let slow = producer(client, config("open-slow")).await;
        send_open(&slow, "open", &["slow"]).await;
        let id = slow.identity().expect("it was initialized").id;
        (slow, id)
    });
    wait_for_end(client, "open", 1);
    client.block_on(async {
        let quick = producer(client, config("open-quick")).await;
        commit(&quick, "open", &["quick"]).await;
        quick.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
    assert_eq!(client.end("open", Isolation::Committed), 0);
    let plan = AuditPlan {
        topic: "open".to_owned(),
        check: Check::Plain(Repeats::Count),
        offsets: None,
        timeout: Duration::from_secs(30),
    };
    let report =
        client.block_on(audit(client.cluster(), &plan, |_| {})).expect("the audit does not wait for the transaction");
    assert_eq!((report.records.visible, report.records.undecided), (0, 2), "{report}");
    assert_eq!(report.open.len(), 1, "{report}");
    assert!(report.open[0].producers.iter().any(|open| open.producer_id == id), "{report}");

    client.block_on(slow.commit()).expect("the slow transaction commits");
    assert_eq!(values(client, "open", Isolation::Committed), ["slow", "quick"]);
    client.block_on(slow.close(CLOSE_TIMEOUT)).expect("the producer closes");
}

fn older_producer_is_fenced_and_its_records_never_show(client: &Client) {
    client.make_topic("fence", 1, &[]);
    client.block_on(async {
        let old = producer(client, config("fence")).await;
        send_open(&old, "fence", &["old"]).await;
        let new = producer(client, config("fence")).await;
        let mut error = old.commit().await.expect_err("the old producer is fenced");
        assert!(!error.is_outcome_unknown(), "{error}");
        // A refused Produce may also mean that the transaction timed out; what follows under the same epoch tells.
        if !error.is_fenced() {
            error = match old.abort().await {
                Ok(()) => old.init().await.expect_err("its epoch is gone"),
                Err(error) => error,
            };
        }
        assert!(error.is_fenced(), "{error}");
        let error = old.begin().await.expect_err("a fenced producer stays so");
        assert!(error.is_fenced(), "{error}");
        commit(&new, "fence", &["new"]).await;
        new.close(CLOSE_TIMEOUT).await.expect("the producer closes");
        // Whatever it says: it must not hang.
        let _ = old.close(CLOSE_TIMEOUT).await;
    });
    assert_eq!(values(client, "fence", Isolation::Committed), ["new"]);
}

fn close_aborts_what_is_open(client: &Client) {
    client.make_topic("close", 1, &[]);
    let producer = client.block_on(async {
        let producer = producer(client, config("close")).await;
        send_open(&producer, "close", &["x"]).await;
        producer
    });
    wait_for_end(client, "close", 1);
    client.block_on(producer.close(CLOSE_TIMEOUT)).expect("the producer closes");
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while client.end("close", Isolation::Committed) < 2 {
        assert!(
            std::time::Instant::now() < deadline,
            "the abort marker is written long before the transaction's time limit"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(values(client, "close", Isolation::Committed).is_empty());
}

fn one_transaction_spans_topics_and_partitions(client: &Client) {
    client.make_topic("span-a", 3, &[]);
    client.make_topic("span-b", 1, &[]);
    client.block_on(async {
        let producer = producer(client, config("span")).await;
        let mut transaction = producer.transaction().await.expect("no transaction is open");
        for number in 0..300_u32 {
            let value = number.to_string();
            transaction.send(record("span-a", number % 3, &value)).await.expect("the record is taken");
            transaction.send(record("span-b", 0, &value)).await.expect("the record is taken");
        }
        assert_eq!(transaction.commit().await.expect("the transaction commits").records, 600);
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
    assert_eq!(client.records("span-a", Isolation::Committed).len(), 300);
    let expected: Vec<_> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(values(client, "span-b", Isolation::Committed), expected);
}

fn commit_that_the_caller_dropped_goes_on_once(client: &Client) {
    client.make_topic("dropped", 1, &[]);
    client.block_on(async {
        let producer = producer(client, config("dropped")).await;
        for round in 0..20_u64 {
            send_open(&producer, "dropped", &[&round.to_string()]).await;
            // The future is dropped after a moment that grows from round to round, mostly before it is done.
            let dropped = tokio::time::timeout(Duration::from_micros(100 * round), producer.commit()).await;
            match dropped {
                Ok(committed) => assert_eq!(committed.expect("the transaction commits").records, 1),
                Err(_) => assert_eq!(producer.commit().await.expect("the commit goes on").records, 1),
            }
        }
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
    let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(values(client, "dropped", Isolation::Committed), expected);
}

fn record_that_is_too_large_is_refused_and_the_producer_goes_on(client: &Client) {
    client.make_topic("large", 1, &[]);
    client.block_on(async {
        let producer = producer(client, config("large")).await;
        let large = "x".repeat(2_000_000);
        let mut transaction = producer.transaction().await.expect("no transaction is open");
        let error = transaction.send(record("large", 0, &large)).await.expect_err("2 MB is above max.request.size");
        assert!(matches!(error, ProducerError::Stage(_)), "{error}");
        assert!(error.to_string().contains("max.request.size"), "the error says what to change: {error}");
        transaction.abort().await.expect("the transaction aborts");
        commit(&producer, "large", &["small"]).await;
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
    assert_eq!(values(client, "large", Isolation::Committed), ["small"]);
}

fn record_that_only_the_broker_finds_too_large_is_not_committed(client: &Client) {
    client.make_topic("broker-large", 1, &[]);
    client.block_on(async {
        let mut config = config("broker-large");
        config.max_request_bytes = 8_000_000;
        let producer = producer(client, config).await;
        let large = "x".repeat(2_000_000);
        let mut transaction = producer.transaction().await.expect("no transaction is open");
        let sent = transaction.send(record("broker-large", 0, &large)).await;
        let error = match sent {
            Ok(()) => transaction.commit().await.expect_err("the broker's message.max.bytes is about 1 MB"),
            Err(error) => {
                transaction.abort().await.expect("the transaction aborts");
                error
            }
        };
        assert_eq!(error.code(), Some(10), "MESSAGE_TOO_LARGE, not: {error}");
        commit(&producer, "broker-large", &["small"]).await;
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
    assert_eq!(values(client, "broker-large", Isolation::Committed), ["small"]);
}

fn transaction_beyond_its_time_limit_is_never_visible(client: &Client) {
    client.make_topic("late", 1, &[]);
    let producer = client.block_on(async {
        let mut config = config("late");
        config.transaction_timeout = Duration::from_secs(1);
        let producer = producer(client, config).await;
        send_open(&producer, "late", &["late"]).await;
        producer
    });
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while client.end("late", Isolation::Committed) < 2 {
        assert!(std::time::Instant::now() < deadline, "the broker aborts it");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.block_on(async {
        let error = producer.commit().await.expect_err("it was aborted");
        assert!(!error.is_outcome_unknown(), "{error}");
        let _ = producer.close(CLOSE_TIMEOUT).await;
    });
    assert!(values(client, "late", Isolation::Committed).is_empty());
}

fn stories(target: Target, transaction_version: i16) {
    // The broker looks for transactions beyond their time limit every 10 s by default.
    let broker = target.start_with(&["transaction.abort.timed.out.transaction.cleanup.interval.ms=500"]);
    let client = Client::connect(broker.bootstrap());
    assert_eq!(client.cluster().transaction_version().level, transaction_version);
    aborted_records_are_in_the_log_and_not_visible(&client);
    open_transaction_hides_what_follows_and_the_auditor_names_it(&client);
    older_producer_is_fenced_and_its_records_never_show(&client);
    close_aborts_what_is_open(&client);
    one_transaction_spans_topics_and_partitions(&client);
    commit_that_the_caller_dropped_goes_on_once(&client);
    record_that_is_too_large_is_refused_and_the_producer_goes_on(&client);
    record_that_only_the_broker_finds_too_large_is_not_committed(&client);
    transaction_beyond_its_time_limit_is_never_visible(&client);
}

#[test]
fn the_client_keeps_its_word_on_the_embedded_broker() {
    stories(Target::DevBroker, 2);
}

#[test]
fn the_client_keeps_its_word_on_the_embedded_broker_with_transactions_v1() {
    stories(Target::DevBrokerTv1, 1);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn the_client_keeps_its_word_on_kafka_4_3_1() {
    stories(Target::Kafka431, 2);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn the_client_keeps_its_word_on_kafka_4_3_1_with_transactions_v1() {
    stories(Target::Kafka431Tv1, 1);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn the_client_keeps_its_word_on_kafka_3_9_2() {
    stories(Target::Kafka392, 0);
}
