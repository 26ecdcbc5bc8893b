//! Each codec both ways: what we write, Java and librdkafka read; what they write, we read. All of them check checksums.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oncewire_client::batch::{Compression, batches};
use oncewire_client::config::{CompressionConfig, ProducerConfig};
use oncewire_client::producer::{PlainConfig, PlainProducer, ProducerRecord, TransactionalProducer};
use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::services::{KafkaOptions, RealKafka, java_tool, librdkafka};
use oncewire_system_tests::target::alone;

const VERSION: &str = "4.3.1";
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
const CODECS: [&str; 4] = ["gzip", "snappy", "lz4", "zstd"];
/// More than two of LZ4's blocks and several of snappy's go into one batch.
const RECORDS: u32 = 3_000;

fn values() -> Vec<String> {
    (0..RECORDS).map(|number| format!("record {number} of many that look alike, {}", number * 7_919)).collect()
}

fn config(codec: &str) -> CompressionConfig {
    let properties = [("transactional.id", "t"), ("compression.type", codec)];
    let properties: BTreeMap<_, _> =
        properties.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    ProducerConfig::from_properties(&properties).expect("the codec is known").0.compression
}

fn write_in_a_transaction(client: &Client, topic: &str, compression: CompressionConfig) {
    client.block_on(async {
        let config = ProducerConfig { compression, ..ProducerConfig::new(topic).expect("the id is not empty") };
        let producer = TransactionalProducer::new(client.cluster().clone(), config);
        producer.init().await.expect("a producer id can be had");
        let mut transaction = producer.transaction().await.expect("no transaction is open");
        for value in values() {
            let record = ProducerRecord { topic, value: Some(value.as_bytes()), ..ProducerRecord::default() };
            transaction.send(record).await.expect("the record is taken");
        }
        transaction.commit().await.expect("the transaction commits");
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
}

fn write_plainly(client: &Client, topic: &str, compression: CompressionConfig) {
    client.block_on(async {
        let config = PlainConfig { compression, ..PlainConfig::default() };
        let producer = PlainProducer::new(client.cluster().clone(), config);
        let mut stage = producer.stage();
        // Records of 1970 would be deleted while the test looks: a broker's retention counts from their timestamps.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right").as_millis();
        let now = i64::try_from(now).expect("the clock is right");
        for value in values() {
            stage.append(&topic.into(), 0, now, None, Some(value.as_bytes()), &[]).expect("small records fit");
        }
        let delivery = producer.send(stage.seal()).await.expect("the batches are taken");
        delivery.wait().await.expect("the batches arrive");
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
}

fn ours(client: &Client, topic: &str) -> Vec<String> {
    let records = client.records(topic, Isolation::Committed);
    let text = |value: Option<bytes::Bytes>| String::from_utf8(value.expect("no tombstones").to_vec()).expect("text");
    records.into_iter().map(|record| text(record.value)).collect()
}

fn javas(bootstrap: &str, topic: &str) -> Vec<String> {
    let count = RECORDS.to_string();
    let class = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    let arguments = [
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        &count,
        "--timeout-ms",
        "30000",
    ];
    java_tool(VERSION, class, &arguments, "").lines().map(str::to_owned).collect()
}

fn librdkafkas(bootstrap: &str, topic: &str) -> Vec<String> {
    let count = RECORDS.to_string();
    librdkafka(&["consume", bootstrap, topic, &count], "").lines().map(str::to_owned).collect()
}

/// The codecs of the batches in a log segment, control batches apart.
fn codecs_on_disk(segment: &std::path::Path) -> Vec<Compression> {
    let bytes =
        bytes::Bytes::from(std::fs::read(segment).unwrap_or_else(|error| panic!("{}: {error}", segment.display())));
    let mut found = Vec::new();
    for batch in batches(&bytes) {
        let batch = batch.expect("the broker's segment holds whole batches");
        if !batch.is_control() {
            found.push(batch.compression());
        }
    }
    found
}

#[test]
#[ignore = "needs Apache Kafka"]
fn java_and_librdkafka_read_what_each_codec_wrote_here() {
    let _alone = alone();
    let broker = RealKafka::start(KafkaOptions { version: VERSION, transaction_version: None, properties: &[] });
    let client = Client::connect(broker.bootstrap());
    for codec in CODECS {
        let (transactional, plain) = (format!("transactional-{codec}"), format!("plain-{codec}"));
        for topic in [&transactional, &plain] {
            client.make_topic(topic, 1, &[]);
        }
        write_in_a_transaction(&client, &transactional, config(codec));
        write_plainly(&client, &plain, config(codec));
        for topic in [&transactional, &plain] {
            assert!(ours(&client, topic) == values(), "we read {topic}");
            assert!(librdkafkas(broker.bootstrap(), topic) == values(), "librdkafka reads {topic}");
        }
        assert!(javas(broker.bootstrap(), &transactional) == values(), "Java reads {transactional}");
        let segment = broker.data().join(format!("{plain}-0/00000000000000000000.log"));
        assert_eq!(codecs_on_disk(&segment), [Compression::of(config(codec))], "{plain} is compressed by {codec}");
    }
}

#[test]
#[ignore = "needs Apache Kafka"]
fn what_java_and_librdkafka_wrote_with_each_codec_is_read_here() {
    let _alone = alone();
    let broker = RealKafka::start(KafkaOptions { version: VERSION, transaction_version: None, properties: &[] });
    let client = Client::connect(broker.bootstrap());
    let lines: String = values().iter().flat_map(|value| [value.as_str(), "\n"]).collect();
    for codec in CODECS {
        let (java, c) = (format!("java-{codec}"), format!("c-{codec}"));
        for topic in [&java, &c] {
            client.make_topic(topic, 1, &[]);
        }
        let class = "org.apache.kafka.tools.ConsoleProducer";
        let arguments = [
            "--bootstrap-server",
            broker.bootstrap(),
            "--topic",
            &java,
            "--compression-codec",
            codec,
            "--batch-size",
            "200000",
        ];
        java_tool(VERSION, class, &arguments, &lines);
        let property = format!("compression.type={codec}");
        librdkafka(&["produce", broker.bootstrap(), &c, &property, "linger.ms=200"], &lines);
        for topic in [&java, &c] {
            assert!(ours(&client, topic) == values(), "we read {topic}");
        }
    }
}
