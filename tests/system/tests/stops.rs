//! How a worker ends and goes on when nobody takes its place: asked to stop in mid-stream, or frozen until its transaction timed out.

use std::time::{Duration, Instant};

use oncewire_audit::Check;
use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::files::{LINE_BYTES, write_lines};
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::{LOOK_EVERY, Process, Signal};
use oncewire_system_tests::target::{Broker, Target};

const PATIENCE: Duration = Duration::from_secs(60);

fn end_and_audit(client: &Client, job: &Job, check: Check, mut worker: Process) {
    worker.signal(Signal::Terminate);
    assert_eq!(worker.wait(PATIENCE).code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());
    client.wait_until_nothing_is_open(job, &worker);
    let report = client.audit_against(job, check);
    assert!(report.is_content(), "the auditor is not content:\n{report}");
}

/// How often a worker is asked to stop, and how often at least: a quick one may be through the file before.
const STOPS: u32 = 4;
const STOPS_MIN: u32 = 2;

/// Every stop is orderly, takes no longer than its time, leaves nothing open, and the next worker goes on from there.
fn a_worker_stops_in_mid_stream(broker: &Broker, client: &Client, lines: u64) {
    let mut job = Job::new("stop", broker.bootstrap())
        .connector("batch.size", "100")
        .connector("transaction.boundary", "interval")
        .connector("transaction.boundary.interval.ms", "20");
    write_lines(&job.file(), lines, LINE_BYTES).expect("the file can be written");
    let topic = job.topic();
    let mut stops = 0;
    while stops < STOPS {
        // Offsets count markers too, so this is past the last line at the latest.
        let goal = client.end(&topic, Isolation::Committed) + lines as i64 / 40;
        if goal >= lines as i64 {
            break;
        }
        let mut worker = job.start();
        client.wait_for_stable_end(&topic, goal, &mut worker, PATIENCE);
        stops += 1;
        let asked = Instant::now();
        worker.signal(Signal::Terminate);
        assert_eq!(worker.wait(PATIENCE).code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());
        assert!(
            asked.elapsed() < Duration::from_secs(10),
            "it stops within task.shutdown.graceful.timeout.ms and a little"
        );
        client.wait_until_nothing_is_open(&job, &worker);
    }
    assert!(stops >= STOPS_MIN, "only {stops} stops before the end of the file: it is too short for this machine");
    let mut worker = job.start();
    client.wait_for_visible(&topic, lines, &mut worker, PATIENCE);
    let check = Check::Lines(job.file());
    end_and_audit(client, &job, check, worker);
}

/// The broker's answers are those that a zombie gets, but there is no successor: this worker has to go on by itself.
fn a_worker_that_slept_beyond_its_time_limit_goes_on(broker: &Broker, client: &Client) {
    // At this rate a transaction is open nearly all the time, and the end is seconds away.
    const RECORDS: u64 = 20_000;
    let mut job = Job::sequence("sleep", broker.bootstrap(), 1, RECORDS)
        .connector("rate.per.second", "4000")
        .connector("batch.size", "100")
        .connector("transaction.boundary", "interval")
        .connector("transaction.boundary.interval.ms", "200")
        .connector("producer.override.transaction.timeout.ms", "1500");
    let topic = job.topic();
    let mut worker = job.start();
    client.wait_for_stable_end(&topic, 1, &mut worker, PATIENCE);
    let deadline = Instant::now() + PATIENCE;
    // Freeze it with a transaction open; a look and a signal are two moments, so it may take some tries.
    loop {
        worker.signal(Signal::Stop);
        if client.end(&topic, Isolation::Uncommitted) > client.end(&topic, Isolation::Committed) {
            break;
        }
        worker.signal(Signal::Continue);
        assert!(Instant::now() < deadline, "a transaction is open at some moment");
        std::thread::sleep(LOOK_EVERY);
    }
    let frozen_at = client.end(&topic, Isolation::Committed);
    assert!(frozen_at < RECORDS as i64, "frozen in mid-stream, not at offset {frozen_at}");
    while client.end(&topic, Isolation::Uncommitted) > client.end(&topic, Isolation::Committed) {
        assert!(Instant::now() < deadline, "the broker aborts what stays open too long");
        std::thread::sleep(Duration::from_millis(50));
    }
    worker.signal(Signal::Continue);
    client.wait_for_visible(&topic, RECORDS, &mut worker, PATIENCE);
    end_and_audit(client, &job, Check::Sequence, worker);
}

fn stories(target: Target, lines: u64) {
    // The broker looks for transactions beyond their time limit every 10 s by default.
    let broker = target.start_with(&["transaction.abort.timed.out.transaction.cleanup.interval.ms=500"]);
    let client = Client::connect(broker.bootstrap());
    a_worker_stops_in_mid_stream(&broker, &client, lines);
    a_worker_that_slept_beyond_its_time_limit_goes_on(&broker, &client);
}

#[test]
fn stops_lose_nothing_on_the_embedded_broker() {
    stories(Target::DevBroker, 400_000);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn stops_lose_nothing_on_kafka_4_3_1() {
    stories(Target::Kafka431, 400_000);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn stops_lose_nothing_on_kafka_4_3_1_with_transactions_v1() {
    stories(Target::Kafka431Tv1, 400_000);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn stops_lose_nothing_on_kafka_3_9_2() {
    stories(Target::Kafka392, 400_000);
}
