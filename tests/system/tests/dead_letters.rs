//! Records that a connector leaves out, while its worker gets SIGKILL again and again: each record is in the topic or in the dead letter
//! topic, once and in order.
//!
//! A text of control characters is six times as long in JSON: as JSON it does not fit into a request, as it is it does. So one file has
//! lines that JsonConverter can write and lines that it can't.

#![allow(clippy::unwrap_used, reason = "a test's own set-up, where a panic names the line")]

use std::fs;
use std::time::Duration;

use oncewire_client::batch::Record;
use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::files::{LINE_BYTES, line, write_lines};
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::Signal;
use oncewire_system_tests::seed::Seed;
use oncewire_system_tests::target::{Broker, Target};

const KILLS: u64 = 8;
const LINES: u64 = 20_000;
/// Of so many lines one is left out.
const BAD_EVERY: u64 = 7;
/// Six times as much is more than [`REQUEST_BYTES`].
const BAD_LINE_BYTES: usize = 3_500;
const REQUEST_BYTES: &str = "20000";
/// Lines in one transaction.
const BATCH: &str = "100";
const PATIENCE: Duration = Duration::from_secs(60);

fn is_bad(number: u64) -> bool {
    number % BAD_EVERY == 3
}

fn line_of(number: u64) -> Vec<u8> {
    let mut line = line(number, LINE_BYTES);
    if is_bad(number) {
        line.resize(BAD_LINE_BYTES, 1);
    }
    line
}

fn with_dead_letters(job: Job, topic: &str) -> Job {
    job.connector("errors.tolerance", "all")
        .connector("errors.deadletterqueue.topic.name", topic)
        .connector("errors.deadletterqueue.topic.replication.factor", "1")
        .connector("errors.deadletterqueue.context.headers.enable", "true")
}

fn header(record: &Record, name: &str) -> String {
    let found = record.headers.iter().find(|(key, _)| key == name.as_bytes());
    let value = found.and_then(|(_, value)| value.as_deref()).unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

/// The values of all visible records, in order.
fn values(client: &Client, topic: &str) -> Vec<Vec<u8>> {
    let records = client.records(topic, Isolation::Committed).into_iter();
    records.map(|record| record.value.unwrap_or_default().to_vec()).collect()
}

fn assert_same(what: &str, found: &[Vec<u8>], expected: &[Vec<u8>]) {
    assert_eq!(found.len(), expected.len(), "how many {what}");
    let other = found.iter().zip(expected).position(|(found, expected)| found != expected);
    assert_eq!(other, None, "the place of the first of the {what} that is another one");
}

fn each_line_is_here_or_there_once(broker: &Broker, client: &Client, seed: &mut Seed) {
    let dead = "dead-letters";
    let mut job = with_dead_letters(Job::new("mixed", broker.bootstrap()), dead)
        .connector("batch.size", BATCH)
        .connector("value.converter", "org.apache.kafka.connect.json.JsonConverter")
        .connector("value.converter.schemas.enable", "false")
        .connector("producer.override.max.request.size", REQUEST_BYTES);
    let lines: Vec<Vec<u8>> = (0..LINES).map(line_of).collect();
    fs::write(job.file(), lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect::<Vec<u8>>()).unwrap();
    let in_json = |line: &Vec<u8>| [b"\"", &line[..], b"\""].concat();
    let (bad, good): (Vec<_>, Vec<_>) = (0..LINES).zip(&lines).partition(|(number, _)| is_bad(*number));
    let bad: Vec<Vec<u8>> = bad.into_iter().map(|(_, line)| line.clone()).collect();
    let good: Vec<Vec<u8>> = good.into_iter().map(|(_, line)| in_json(line)).collect();
    client.make_topic(&job.topic(), 1, &[]);

    let mut worker = job.start();
    let step_max = good.len() as u64 * 4 / 5 / KILLS;
    for _ in 0..KILLS {
        let goal = client.end(&job.topic(), Isolation::Committed) + 1 + seed.below(step_max) as i64;
        client.wait_for_stable_end(&job.topic(), goal, &mut worker, PATIENCE);
        worker.kill9();
        worker = job.start();
    }
    client.wait_for_visible(&job.topic(), good.len() as u64, &mut worker, PATIENCE);
    client.wait_for_visible(dead, bad.len() as u64, &mut worker, PATIENCE);
    worker.signal(Signal::Terminate);
    assert_eq!(worker.wait(PATIENCE).code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());
    client.wait_until_nothing_is_open(&job, &worker);

    assert_same("lines in the topic", &values(client, &job.topic()), &good);
    assert_same("dead letters", &values(client, dead), &bad);
    let letters = client.records(dead, Isolation::Committed);
    assert!(letters.iter().all(|letter| header(letter, "__connect.errors.stage") == "KAFKA_PRODUCE"));
    assert_eq!(client.ends(dead, Isolation::Committed).len(), 1, "the topic was made with one partition");
}

/// A converter that takes none of the lines.
fn a_converter_that_refuses_everything(broker: &Broker, client: &Client) {
    let integers = "org.apache.kafka.connect.converters.IntegerConverter";
    let mut job = with_dead_letters(Job::new("integers", broker.bootstrap()), "no-integers")
        .connector("value.converter", integers);
    write_lines(&job.file(), 1_000, LINE_BYTES).unwrap();
    let mut worker = job.start();
    client.wait_for_visible("no-integers", 1_000, &mut worker, PATIENCE);
    worker.signal(Signal::Terminate);
    assert_eq!(worker.wait(PATIENCE).code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());
    let letters = client.records("no-integers", Isolation::Committed);
    let (first, last) = (&letters[0], &letters[999]);
    assert_eq!((letters.len(), last.value.as_deref()), (1_000, Some(&line(999, LINE_BYTES)[..])));
    assert_eq!(header(first, "__connect.errors.stage"), "VALUE_CONVERTER");
    assert_eq!(header(first, "__connect.errors.class.name"), integers);
    assert_eq!(header(first, "__connect.errors.topic"), job.topic());
    assert_eq!(header(last, "__oncewire.errors.source.offset"), format!(r#"{{"position":{}}}"#, 1_000 * LINE_BYTES));
    assert_eq!(client.end(&job.topic(), Isolation::Committed), 0);
}

fn stories(target: Target) {
    let mut seed = Seed::of_run(&format!("dead letters on {target:?}"));
    let broker = target.start();
    let client = Client::connect(broker.bootstrap());
    each_line_is_here_or_there_once(&broker, &client, &mut seed);
    a_converter_that_refuses_everything(&broker, &client);
}

#[test]
fn each_line_is_in_the_topic_or_a_dead_letter_once_on_the_embedded_broker() {
    stories(Target::DevBroker);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn each_line_is_in_the_topic_or_a_dead_letter_once_on_kafka_4_3_1() {
    stories(Target::Kafka431);
}
