//! A file is streamed while its worker gets SIGKILL again and again; afterwards every line is visible once and in order, and the offsets agree.
//!
//! The moments are tied to progress, not to a clock: each kill comes after a random number of further lines became visible, so all
//! of them hit a worker that streams, on slow machines and fast ones.

use std::time::{Duration, Instant};

use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::files::{LINE_BYTES, write_lines};
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::Signal;
use oncewire_system_tests::seed::Seed;
use oncewire_system_tests::target::Target;

const KILLS: u64 = 20;

/// From a worker's start to its first committed line, and from there to the next kill.
const STEP_PATIENCE: Duration = Duration::from_secs(60);

const END_PATIENCE: Duration = Duration::from_secs(180);

struct Story {
    lines: u64,
    /// Lines in one transaction.
    batch: u64,
}

const LARGE: Story = Story { lines: 1_000_000, batch: 2_000 };

const SMALL: Story = Story { lines: 50_000, batch: 100 };

fn every_line_arrives_once(target: Target, story: &Story) {
    let mut seed = Seed::of_run(&format!("kill test on {target:?}"));
    let broker = target.start();
    let client = Client::connect(broker.bootstrap());
    let mut job = Job::new("kill", broker.bootstrap()).connector("batch.size", &story.batch.to_string());
    write_lines(&job.file(), story.lines, LINE_BYTES).expect("the file can be written");
    let topic = job.topic();

    let began = Instant::now();
    let mut worker = job.start();
    // All steps together are at most 4/5 of the file; the rest is for what a worker writes between the look and the kill.
    let step_max = story.lines * 4 / 5 / KILLS;
    for kill in 1..=KILLS {
        let goal = client.end(&topic, Isolation::Committed) + 1 + seed.below(step_max) as i64;
        client.wait_for_stable_end(&topic, goal, &mut worker, STEP_PATIENCE);
        worker.kill9();
        let end = client.end(&topic, Isolation::Committed);
        assert!((end as u64) < story.lines, "kill {kill} came at offset {end}, after the last line");
        worker = job.start();
    }
    client.wait_for_visible(&topic, story.lines, &mut worker, END_PATIENCE);
    let streamed = began.elapsed();
    worker.signal(Signal::Terminate);
    let status = worker.wait(STEP_PATIENCE);
    assert_eq!(status.code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());

    client.wait_until_nothing_is_open(&job, &worker);
    let report = client.audit(&job);
    println!("{KILLS} kills in {streamed:.1?}\n{report}");
    assert!(report.is_content(), "the auditor is not content:\n{report}");
    assert_eq!(report.records.visible, story.lines);
}

#[test]
fn every_line_arrives_once_on_the_embedded_broker() {
    every_line_arrives_once(Target::DevBroker, &SMALL);
}

#[test]
fn every_line_arrives_once_on_the_embedded_broker_with_transactions_v1() {
    every_line_arrives_once(Target::DevBrokerTv1, &SMALL);
}

#[test]
#[ignore = "takes a minute: a million lines"]
fn every_line_of_a_million_arrives_once_on_the_embedded_broker() {
    every_line_arrives_once(Target::DevBroker, &LARGE);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn every_line_arrives_once_on_kafka_4_3_1() {
    every_line_arrives_once(Target::Kafka431, &LARGE);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn every_line_arrives_once_on_kafka_4_3_1_with_transactions_v1() {
    every_line_arrives_once(Target::Kafka431Tv1, &LARGE);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn every_line_arrives_once_on_kafka_3_9_2() {
    every_line_arrives_once(Target::Kafka392, &LARGE);
}
