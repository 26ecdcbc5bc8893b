//! Several tasks, several partitions, and transactions that the connector itself ends or aborts, all under kills.

use std::collections::BTreeSet;
use std::time::Duration;

use oncewire_audit::Check;
use oncewire_client::reader::Isolation;
use oncewire_connector_sequence::{BoundaryPlan, pattern};
use oncewire_system_tests::client::Client;
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::{Process, Signal};
use oncewire_system_tests::seed::Seed;
use oncewire_system_tests::target::{Broker, Target};

const PATIENCE: Duration = Duration::from_secs(90);

const KILLS: u64 = 5;

/// Kills the worker at moments that follow its progress; `records` is what all tasks write together. Returns the last worker, running.
fn kill_in_mid_stream(job: &mut Job, client: &Client, seed: &mut Seed, records: u64) -> Process {
    let mut worker = job.start();
    for _ in 0..KILLS {
        let goal = client.end(&job.topic(), Isolation::Committed) + 1 + seed.below(records / 2 / KILLS) as i64;
        client.wait_for_stable_end(&job.topic(), goal, &mut worker, PATIENCE);
        worker.kill9();
        worker = job.start();
    }
    worker
}

fn end(client: &Client, job: &Job, mut worker: Process) {
    worker.signal(Signal::Terminate);
    assert_eq!(worker.wait(PATIENCE).code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());
    client.wait_until_nothing_is_open(job, &worker);
}

fn three_tasks_write_their_numbers_once(broker: &Broker, client: &Client, seed: &mut Seed, records: u64) {
    const TASKS: u32 = 3;
    let job = Job::sequence("tasks", broker.bootstrap(), TASKS, records);
    let mut job = job.connector("batch.size", "200").connector("partitions", "2");
    client.make_topic(&job.topic(), 4, &[]);
    let all = records * u64::from(TASKS);
    let mut worker = kill_in_mid_stream(&mut job, client, seed, all);
    client.wait_for_visible(&job.topic(), all, &mut worker, PATIENCE);
    end(client, &job, worker);
    let report = client.audit_against(&job, Check::Sequence);
    assert!(report.is_content(), "the auditor is not content:\n{report}");
    assert_eq!((report.records.visible, report.content.expected), (all, Some(all)), "{report}");
    let checks = &report.offsets.as_ref().expect("offsets were asked for").checks;
    assert_eq!(checks.len(), TASKS as usize, "{report}");
}

fn what_the_connector_aborts_stays_hidden_and_is_not_written_again(
    broker: &Broker,
    client: &Client,
    seed: &mut Seed,
    records: u64,
) {
    let plan = BoundaryPlan { commit_every: 50, abort_every: 5, records_max: Some(records) };
    let mut job = Job::sequence("aborts", broker.bootstrap(), 1, records)
        .connector("batch.size", "120")
        .connector("transaction.boundary", "connector")
        .connector("commit.every", "50")
        .connector("abort.every", "5");
    let due: BTreeSet<u64> = (0..records).filter(|n| !plan.is_aborted(*n)).collect();
    let mut worker = kill_in_mid_stream(&mut job, client, seed, records);
    client.wait_for_visible(&job.topic(), due.len() as u64, &mut worker, PATIENCE);
    end(client, &job, worker);
    let visible = client.records(&job.topic(), Isolation::Committed);
    let numbers: Vec<u64> = visible
        .iter()
        .map(|record| pattern::parse(record.value.as_deref().expect("no tombstones")).expect("of the pattern").n)
        .collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "each once and in order");
    assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>(), due);
}

fn stories(target: Target, records: u64) {
    let mut seed = Seed::of_run(&format!("tasks on {target:?}"));
    let broker = target.start();
    let client = Client::connect(broker.bootstrap());
    three_tasks_write_their_numbers_once(&broker, &client, &mut seed, records);
    what_the_connector_aborts_stays_hidden_and_is_not_written_again(&broker, &client, &mut seed, records);
}

#[test]
fn tasks_keep_their_numbers_on_the_embedded_broker() {
    stories(Target::DevBroker, 10_000);
}

#[test]
fn tasks_keep_their_numbers_on_the_embedded_broker_with_transactions_v1() {
    stories(Target::DevBrokerTv1, 10_000);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn tasks_keep_their_numbers_on_kafka_4_3_1() {
    stories(Target::Kafka431, 20_000);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn tasks_keep_their_numbers_on_kafka_3_9_2() {
    stories(Target::Kafka392, 20_000);
}
