//! The same requests to the dev broker and to Apache Kafka get the same answers.
//!
//! Each story sends requests and writes down what came back, with producer ids as letters and topics under fixed
//! names. The files `recorded_level_*.txt` are what Kafka 4.3.1 answered at that level of `transaction.version`. The
//! dev broker must answer the same (always), and so must Kafka (when it is there), so that the record stays true. To
//! record anew: run the ignored test with ONCEWIRE_RECORD=1.

mod raw;
mod service;
mod stories;
mod transcript;

use std::time::Duration;

use oncewire_dev_broker::{BrokerSettings, DevBroker, DevBrokerConfig};

use crate::service::RealKafka;

const KAFKA_VERSION: &str = "4.3.1";
/// How often either broker looks for transactions that took too long.
const SCAN_INTERVAL: Duration = Duration::from_millis(100);

/// What was recorded at one level of the feature `transaction.version`.
struct Record {
    level: i16,
    file: &'static str,
    told: &'static str,
}

const RECORDS: [Record; 2] = [
    Record { level: 1, file: "recorded_level_1.txt", told: include_str!("recorded_level_1.txt") },
    Record { level: 2, file: "recorded_level_2.txt", told: include_str!("recorded_level_2.txt") },
];

#[test]
fn the_dev_broker_answers_as_kafka_did() {
    for record in RECORDS {
        for marker_delay in [Duration::ZERO, Duration::from_millis(3)] {
            let broker = BrokerSettings {
                transaction_version: record.level,
                transaction_scan_interval: SCAN_INTERVAL,
                marker_delay,
                ..BrokerSettings::default()
            };
            assert_same(&on_dev_broker(broker), record.told);
        }
    }
}

#[test]
#[ignore = "needs Java and Apache Kafka"]
fn kafka_still_answers_as_recorded() {
    for record in RECORDS {
        let kafka = RealKafka::start(KAFKA_VERSION, record.level, SCAN_INTERVAL);
        let told = stories::tell_all(&kafka.bootstrap);
        if std::env::var_os("ONCEWIRE_RECORD").is_some() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/same_as_kafka/");
            std::fs::write(format!("{folder}{}", record.file), told).expect("the record can be written");
        } else {
            assert_same(&told, record.told);
        }
    }
}

fn on_dev_broker(broker: BrokerSettings) -> String {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let config = DevBrokerConfig { broker, ..DevBrokerConfig::default() };
    let broker = runtime.block_on(DevBroker::start(config)).expect("a free port is there");
    let told = stories::tell_all(&broker.bootstrap());
    runtime.block_on(broker.shutdown());
    told
}

/// Compares story by story and line by line, so that a difference shows with the step that it is in.
fn assert_same(told: &str, recorded: &str) {
    let ours: Vec<&str> = told.split("# ").collect();
    let theirs: Vec<&str> = recorded.split("# ").collect();
    let mut differences = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let title = ours.lines().next().unwrap_or_default();
        let lines = ours.lines().count().max(theirs.lines().count());
        for number in 0..lines {
            let here = ours.lines().nth(number).unwrap_or("(nothing)");
            let there = theirs.lines().nth(number).unwrap_or("(nothing)");
            if here != there {
                differences.push(format!("{title}\n    here:     {here}\n    recorded: {there}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} answers differ:\n{}", differences.len(), differences.join("\n"));
    assert_eq!(ours.len(), theirs.len(), "one of them tells more stories");
}
