//! Apache Kafka's own clients against the dev broker.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use oncewire_dev_broker::{BrokerSettings, DevBroker, DevBrokerConfig};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/services/kafka");
const KAFKA_VERSION: &str = "4.3.1";
const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const PRODUCE: &str = "org.apache.kafka.tools.ConsoleProducer";
const CONSUME: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";
const PERFORM: &str = "org.apache.kafka.tools.ProducerPerformance";
const TRANSACTIONS: &str = "org.apache.kafka.tools.TransactionsCommand";
/// The consumer ends when nothing came for this long.
const QUIET_MS: &str = "3000";

/// A dev broker and the tools pointed at it.
struct Bench {
    runtime: tokio::runtime::Runtime,
    broker: Option<DevBroker>,
    bootstrap: String,
}

impl Bench {
    fn start(transaction_version: i16) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
        let broker = BrokerSettings {
            transaction_version,
            marker_delay: std::time::Duration::from_millis(1),
            ..BrokerSettings::default()
        };
        let config = DevBrokerConfig { broker, ..DevBrokerConfig::default() };
        let broker = runtime.block_on(DevBroker::start(config)).expect("a free port is there");
        let bootstrap = broker.bootstrap();
        Self { runtime, broker: Some(broker), bootstrap }
    }

    fn tool(&self, class: &str, arguments: &str, input: &str) -> String {
        let mut child = Command::new(SCRIPT)
            .args(["tool", KAFKA_VERSION, class])
            .args(arguments.split_whitespace().map(|argument| argument.replace("BOOTSTRAP", &self.bootstrap)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests/services/kafka runs");
        let mut stdin = child.stdin.take().expect("it was piped");
        stdin.write_all(input.as_bytes()).expect("the tool reads");
        drop(stdin);
        let output = child.wait_with_output().expect("the tool ends");
        String::from_utf8(output.stdout).expect("the tool writes text")
    }

    fn committed(&self, topic: &str, partition: u32) -> Vec<String> {
        let arguments = format!(
            "--bootstrap-server BOOTSTRAP --topic {topic} --partition {partition} --offset earliest \
             --isolation-level read_committed --timeout-ms {QUIET_MS}"
        );
        self.tool(CONSUME, &arguments, "").lines().map(str::to_owned).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(broker) = self.broker.take() {
            self.runtime.block_on(broker.shutdown());
        }
    }
}

#[test]
#[ignore = "needs Java and Apache Kafka's tools"]
fn topics_are_made_and_described() {
    let bench = Bench::start(2);
    let create = "--bootstrap-server BOOTSTRAP --create --topic made --partitions 3 --config cleanup.policy=compact";
    assert!(bench.tool(TOPICS, create, "").contains("Created topic made"));
    let described = bench.tool(TOPICS, "--bootstrap-server BOOTSTRAP --describe --topic made", "");
    assert!(described.contains("PartitionCount: 3") && described.contains("cleanup.policy=compact"), "{described}");
}

#[test]
#[ignore = "needs Java and Apache Kafka's tools"]
fn lines_come_back_in_every_compression() {
    let bench = Bench::start(2);
    let mut lines = String::new();
    for number in 0..2_000 {
        writeln!(lines, "line {number}").expect("a string takes text");
    }
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let topic = format!("lines-{codec}");
        bench.tool(TOPICS, &format!("--bootstrap-server BOOTSTRAP --create --topic {topic} --partitions 1"), "");
        let produce = format!("--bootstrap-server BOOTSTRAP --topic {topic} --compression-codec {codec}");
        bench.tool(PRODUCE, &produce, &lines);
        assert_eq!(bench.committed(&topic, 0).join("\n") + "\n", lines, "{codec}");
    }
}

#[test]
#[ignore = "needs Java and Apache Kafka's tools"]
fn transactions_of_both_generations_are_read_back_committed() {
    for transaction_version in [1, 2] {
        let bench = Bench::start(transaction_version);
        bench.tool(TOPICS, "--bootstrap-server BOOTSTRAP --create --topic txn --partitions 1", "");
        let perform = "--topic txn --num-records 50000 --record-size 84 --throughput -1 \
                       --producer-props bootstrap.servers=BOOTSTRAP --transactional-id perf --transaction-duration-ms 20";
        bench.tool(PERFORM, perform, "");
        assert_eq!(bench.committed("txn", 0).len(), 50_000);
        let listed = bench.tool(TRANSACTIONS, "--bootstrap-server BOOTSTRAP list", "");
        assert!(listed.contains("perf") && listed.contains("CompleteCommit"), "{listed}");
    }
}
