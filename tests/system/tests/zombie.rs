//! A worker is frozen, its successor takes over, the worker thaws: the zombie commits nothing, says that it was superseded, and stays down.

use std::time::{Duration, Instant};

use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::files::{LINE_BYTES, write_lines};
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::Signal;
use oncewire_system_tests::target::{Broker, Target};

const PATIENCE: Duration = Duration::from_secs(60);

/// The exit code of a worker that a newer one has replaced.
const SUPERSEDED: i32 = 5;

struct Story {
    lines: u64,
    batch: u64,
}

const LARGE: Story = Story { lines: 300_000, batch: 500 };

const SMALL: Story = Story { lines: 40_000, batch: 100 };

/// How long the worker stays frozen while its successor works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sleep {
    /// Until the successor has committed something.
    Short,
    /// Beyond its own transaction's time limit, so that its own clock cannot rule out a time-out.
    BeyondTimeLimit,
}

const TIME_LIMIT: Duration = Duration::from_millis(1_500);

fn a_zombie_commits_nothing(target: Target, story: &Story) {
    let broker = target.start();
    let client = Client::connect(broker.bootstrap());
    zombie(&broker, &client, story, Sleep::Short);
    zombie(&broker, &client, story, Sleep::BeyondTimeLimit);
}

fn zombie(broker: &Broker, client: &Client, story: &Story, sleep: Sleep) {
    let name = if sleep == Sleep::Short { "zombie" } else { "sleeper" };
    let mut job = Job::new(name, broker.bootstrap())
        .connector("batch.size", &story.batch.to_string())
        .connector("producer.override.transaction.timeout.ms", &TIME_LIMIT.as_millis().to_string());
    write_lines(&job.file(), story.lines, LINE_BYTES).expect("the file can be written");
    let topic = job.topic();
    let (lines, step) = (story.lines as i64, story.lines as i64 / 20);

    let mut zombie = job.start();
    client.wait_for_stable_end(&topic, step, &mut zombie, PATIENCE);
    zombie.signal(Signal::Stop);
    let asleep = Instant::now();
    let frozen_at = client.end(&topic, Isolation::Committed);
    assert!(frozen_at < lines / 2, "frozen in mid-stream, not at offset {frozen_at} of {lines}");

    let mut successor = job.start();
    client.wait_for_stable_end(&topic, frozen_at + step, &mut successor, PATIENCE);
    if sleep == Sleep::BeyondTimeLimit {
        // Its clock has to move, whatever the successor does meanwhile: this is no wait for a condition.
        std::thread::sleep((TIME_LIMIT * 2).saturating_sub(asleep.elapsed()));
    }
    zombie.signal(Signal::Continue);
    let status = zombie.wait(PATIENCE);
    let log = zombie.log();
    assert_eq!(status.code(), Some(SUPERSEDED), "the zombie's exit code; it wrote:\n{log}");
    assert!(log.contains("superseded"), "the zombie says why it stops; it wrote:\n{log}");
    assert!(!log.contains("panicked"), "{log}");
    println!("the zombie wrote:\n{log}");

    client.wait_for_visible(&topic, story.lines, &mut successor, PATIENCE);
    successor.signal(Signal::Terminate);
    assert_eq!(successor.wait(PATIENCE).code(), Some(0), "an orderly end; the successor wrote:\n{}", successor.log());
    client.wait_until_nothing_is_open(&job, &successor);
    let report = client.audit(&job);
    println!("{report}");
    assert!(report.is_content(), "the auditor is not content:\n{report}");
    assert_eq!(report.records.visible, story.lines);
}

#[test]
fn a_zombie_commits_nothing_on_the_embedded_broker() {
    a_zombie_commits_nothing(Target::DevBroker, &SMALL);
}

#[test]
fn a_zombie_commits_nothing_on_the_embedded_broker_with_transactions_v1() {
    a_zombie_commits_nothing(Target::DevBrokerTv1, &SMALL);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_zombie_commits_nothing_on_kafka_4_3_1() {
    a_zombie_commits_nothing(Target::Kafka431, &LARGE);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_zombie_commits_nothing_on_kafka_4_3_1_with_transactions_v1() {
    a_zombie_commits_nothing(Target::Kafka431Tv1, &LARGE);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_zombie_commits_nothing_on_kafka_3_9_2() {
    a_zombie_commits_nothing(Target::Kafka392, &LARGE);
}
