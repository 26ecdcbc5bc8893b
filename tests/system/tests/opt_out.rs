//! Writes without a transaction, under an epoch that a newer owner has taken over: what keeps them out of a partition.
//!
//! This is what `exactly.once.source=disabled` and its way back rest on (`docs/decisions/0007`). A leader learns an epoch from a batch or a
//! marker only; the markers of an aborted transaction without data carry it to partitions that neither owner has ever written to.

use std::collections::BTreeMap;
use std::sync::Arc;

use oncewire_client::admin::{Admin, NewTopic};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::producer::{PlainConfig, PlainProducer, ProducerError, TransactionalProducer};
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use oncewire_system_tests::target::Target;

const PARTITIONS: u32 = 3;

const INVALID_PRODUCER_EPOCH: i16 = 47;

async fn write(producer: &PlainProducer, partition: u32, value: &str) -> Result<(), ProducerError> {
    let mut stage = producer.stage();
    stage.append(&"t".into(), partition, 0, None, Some(value.as_bytes()), &[]).expect("it is small");
    producer.send(stage.seal()).await?.wait().await
}

async fn values(cluster: &Cluster, isolation: Isolation) -> Vec<String> {
    let options = ReaderOptions { isolation, ..ReaderOptions::default() };
    let mut reader = LogReader::open(cluster, "t", options).await.expect("the topic is there");
    let mut values = Vec::new();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    let take = |_: i32, records: Vec<oncewire_client::batch::Record>| {
        values.extend(records.iter().filter_map(|record| record.value.as_ref().map(text)));
    };
    reader.read_to_end(deadline, take).await.expect("no transaction is open");
    values.sort();
    values
}

async fn owner(cluster: &Cluster) -> TransactionalProducer {
    let owner = TransactionalProducer::new(cluster.clone(), ProducerConfig::new("g-c-0").expect("an id"));
    owner.init().await.expect("it takes the id");
    owner
}

async fn story(bootstrap: &str) {
    let cluster = Cluster::connect(ClientConfig::new(bootstrap).expect("an address")).await.expect("a broker answers");
    let admin = Admin::new(cluster.clone());
    let topic = NewTopic {
        name: "t".into(),
        partitions: Some(i32::try_from(PARTITIONS).expect("few")),
        replication_factor: Some(1),
        configs: BTreeMap::new(),
    };
    admin.create_topic(&topic).await.expect("it is made");

    let first = owner(&cluster).await;
    let identity = first.identity().expect("it has one");
    let plain = PlainProducer::fencible(cluster.clone(), PlainConfig::default(), identity);
    for n in 0..3 {
        write(&plain, 0, &format!("before {n}")).await.expect("the owner may write");
    }
    write(&plain, 1, "before").await.expect("the owner may write");

    let second = owner(&cluster).await;
    let newer = second.identity().expect("it has one");
    assert!(newer.id == identity.id && newer.epoch > identity.epoch, "{identity:?} then {newer:?}");
    // The coordinator knows the newer epoch, the partitions do not: this is the hole.
    write(&plain, 0, "zombie, not kept out yet")
        .await
        .expect("a partition learns epochs from batches and markers only");

    let partitions: Vec<i32> = (0..i32::try_from(PARTITIONS).expect("few")).collect();
    let carried = [(Arc::from("t"), partitions)];
    admin.carry_epoch("g-c-0", newer, &carried).await.expect("the newer owner may");
    for partition in 0..PARTITIONS {
        let refused = write(&plain, partition, "zombie").await.expect_err("every partition knows the newer epoch");
        assert_eq!(refused.code(), Some(INVALID_PRODUCER_EPOCH), "partition {partition}: {refused}");
    }
    let refused = admin.carry_epoch("g-c-0", identity, &carried).await.expect_err("a zombie can't carry its own epoch");
    assert!(matches!(refused.code(), Some(INVALID_PRODUCER_EPOCH | 90)), "{refused}");

    // The newer owner goes on as if nothing had been, twice, and again after it has carried its epoch once more.
    for round in 0..3 {
        second.begin().await.expect("local");
        let mut stage = second.stage();
        stage.append(&"t".into(), round % PARTITIONS, 0, None, Some(b"owner"), &[]).expect("it is small");
        second.send(stage.seal()).await.expect("it may write");
        second.commit().await.expect("it may commit");
        let now = second.identity().expect("it has one");
        if round == 1 {
            admin.carry_epoch("g-c-0", now, &carried).await.expect("the owner may");
        }
    }
    let expected =
        ["before", "before 0", "before 1", "before 2", "owner", "owner", "owner", "zombie, not kept out yet"];
    assert_eq!(values(&cluster, Isolation::Committed).await, expected);
    assert_eq!(values(&cluster, Isolation::Uncommitted).await, expected, "nothing was written to carry the epoch");
    cluster.close().await;
}

fn run(target: Target) {
    let broker = target.start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be made").block_on(story(broker.bootstrap()));
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_plain_write_of_a_zombie_is_refused_once_partitions_know_the_newer_epoch() {
    run(Target::Kafka431);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_plain_write_of_a_zombie_is_refused_before_transactions_v2() {
    run(Target::Kafka431Tv1);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_plain_write_of_a_zombie_is_refused_on_kafka_3_9() {
    run(Target::Kafka392);
}

#[test]
fn a_plain_write_of_a_zombie_is_refused_on_the_embedded_broker() {
    run(Target::DevBroker);
}

#[test]
fn a_plain_write_of_a_zombie_is_refused_on_the_embedded_broker_before_transactions_v2() {
    run(Target::DevBrokerTv1);
}
