//! The broker gets SIGKILL in mid-transaction and comes back; one and the same worker goes on: nothing lost, torn or doubled, and no hang.

use std::time::{Duration, Instant};

use oncewire_client::reader::Isolation;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::files::{LINE_BYTES, write_lines};
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::{LOOK_EVERY, Signal};
use oncewire_system_tests::target::Target;

const LINES: u64 = 600_000;

const CRASHES: u64 = 2;

const STEP_PATIENCE: Duration = Duration::from_secs(60);

/// The producer's delivery deadline (`delivery.timeout.ms`, 120 s) bounds every wait for a broker that is away; the broker is away for about 5 s.
const END_PATIENCE: Duration = Duration::from_secs(150);

fn a_worker_survives_its_broker(target: Target) {
    let broker = target.start();
    let client = Client::connect(broker.bootstrap());
    let mut job = Job::new("crash", broker.bootstrap())
        .connector("transaction.boundary", "interval")
        .connector("transaction.boundary.interval.ms", "100");
    write_lines(&job.file(), LINES, LINE_BYTES).expect("the file can be written");
    let topic = job.topic();

    let began = Instant::now();
    let mut worker = job.start();
    for crash in 1..=CRASHES {
        let goal = client.end(&topic, Isolation::Committed) + 10_000;
        client.wait_for_stable_end(&topic, goal, &mut worker, STEP_PATIENCE);
        let deadline = Instant::now() + STEP_PATIENCE;
        // An end beyond the last stable offset is a transaction that is open at this moment.
        while client.end(&topic, Isolation::Uncommitted) <= client.end(&topic, Isolation::Committed) {
            assert!(Instant::now() < deadline, "a transaction is open at some moment");
            std::thread::sleep(LOOK_EVERY);
        }
        println!("crash {crash} at {:.1?}, offset {}", began.elapsed(), client.end(&topic, Isolation::Committed));
        broker.kill9();
        broker.restart();
        println!("the broker is back at {:.1?}", began.elapsed());
        let end = client.end(&topic, Isolation::Committed);
        assert!((end as u64) < LINES, "crash {crash} came at offset {end}, after the last line");
    }
    client.wait_for_visible(&topic, LINES, &mut worker, END_PATIENCE);
    println!("all lines are visible at {:.1?}; the worker wrote:\n{}", began.elapsed(), worker.log());
    worker.signal(Signal::Terminate);
    assert_eq!(worker.wait(STEP_PATIENCE).code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());

    client.wait_until_nothing_is_open(&job, &worker);
    let report = client.audit(&job);
    println!("{report}");
    assert!(report.is_content(), "the auditor is not content:\n{report}");
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_worker_survives_its_broker_on_kafka_4_3_1() {
    a_worker_survives_its_broker(Target::Kafka431);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_worker_survives_its_broker_on_kafka_4_3_1_with_transactions_v1() {
    a_worker_survives_its_broker(Target::Kafka431Tv1);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn a_worker_survives_its_broker_on_kafka_3_9_2() {
    a_worker_survives_its_broker(Target::Kafka392);
}
