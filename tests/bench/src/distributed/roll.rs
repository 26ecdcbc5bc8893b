//! Three workers are stopped and started anew, one after the other, as a person does for a new version: how often each task is started again.
//!
//! The leader goes last. Counted by the RUNNING statuses that the workers write into the status topic. A departed worker's tasks wait for it (KIP-415), long enough
//! for either side's start.

use std::time::{Duration, Instant};

use anyhow::Result;
use oncewire_client::batch::Record;
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};

use super::Bench;
use super::figures::{Figure, Measured, Place};
use super::group::Member;
use super::load::Load;
use crate::client::Client;
use crate::run::count;

const STARTS: Figure = Figure::at_most("starts of a task, mean", 1.0);
const STARTS_MAX: Figure = Figure::at_most("starts of a task, most", 1.0);
const TOOK: Figure = Figure::new("first stop until all run again, s");

const WORKERS: usize = 3;
const TASKS: u32 = 9;
const RATE: u32 = 10;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long all tasks must run before the next worker is stopped.
const STEADY: Duration = Duration::from_secs(3);

pub(super) fn measure(bench: &Bench<'_>, place: Place, out: &mut Measured) -> Result<()> {
    let delay = bench.scale.roll_delay_ms.to_string();
    out.title(
        place.section,
        format!("{WORKERS} workers with {TASKS} tasks, each worker stopped and started once, the leader last, scheduled.rebalance.max.delay.ms={delay}"),
    );
    let mut group = bench.group(place, &[("scheduled.rebalance.max.delay.ms", &delay)])?;
    let load = Load::steady(&format!("{}-data", group.name), TASKS, RATE);
    let mut members: Vec<Member> = (0..WORKERS).map(|_| group.start_ready()).collect::<Result<_>>()?;
    members[0].rest.create(&load.name, load.config())?;
    wait_until_shared(&mut members, &load)?;
    let status_topic = format!("{}-status", group.name);
    let before = starts(&bench.client, &status_topic, &load)?;
    let (began, mut settled) = (Instant::now(), Instant::now());
    // The youngest first: the oldest leads, and what a new leader does not know of departed workers is to show.
    for index in (0..WORKERS).rev() {
        members.remove(index).process.stop()?;
        members.insert(index, group.start_ready()?);
        settled = wait_until_shared(&mut members, &load)?;
    }
    let after = starts(&bench.client, &status_topic, &load)?;
    let counts: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
    out.add(place, STARTS, count(counts.iter().sum()) / f64::from(TASKS));
    out.add(place, STARTS_MAX, count(counts.iter().copied().max().unwrap_or(0)));
    out.add(place, TOOK, (settled - began).as_secs_f64());
    for member in members {
        member.process.stop()?;
    }
    bench.clear(&group, &load.name)
}

/// When all tasks began to run, every worker having some, for a while.
fn wait_until_shared(members: &mut [Member], load: &Load) -> Result<Instant> {
    let ids: Vec<String> = members.iter().map(|member| member.rest.worker_id.clone()).collect();
    members[0].wait_until_steady("all workers share the load", PATIENCE, STEADY, |rest| {
        let status = rest.status(&load.name)?;
        Some(status.runs(load.tasks as usize) && ids.iter().all(|id| !status.tasks_on(id).is_empty()))
    })
}

/// How often each task said RUNNING.
fn starts(client: &Client, status_topic: &str, load: &Load) -> Result<Vec<u64>> {
    let mut starts = vec![0; load.tasks as usize];
    let prefix = format!("status-task-{}-", load.name);
    client.block_on(async {
        let options = ReaderOptions { isolation: Isolation::Uncommitted, ..ReaderOptions::default() };
        let mut reader = LogReader::open(client.cluster(), status_topic, options).await?;
        let deadline = Instant::now() + PATIENCE;
        let count = |_, records: Vec<Record>| {
            for task in records.iter().filter_map(|record| started(record, &prefix)) {
                if let Some(starts) = starts.get_mut(task) {
                    *starts += 1;
                }
            }
        };
        reader.read_to_end(deadline.into(), count).await
    })?;
    Ok(starts)
}

/// The number of the task that a status tells to run.
fn started(record: &Record, prefix: &str) -> Option<usize> {
    let key = std::str::from_utf8(record.key.as_ref()?).ok()?;
    let status: serde_json::Value = serde_json::from_slice(record.value.as_ref()?).ok()?;
    let task = key.strip_prefix(prefix)?.parse().ok()?;
    (status["state"] == "RUNNING").then_some(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, value: &str) -> Record {
        let (key, value) = (Some(key.to_owned().into()), Some(value.to_owned().into()));
        Record { offset: 0, timestamp_ms: 0, key, value, headers: Vec::new() }
    }

    #[test]
    fn only_a_running_status_of_the_connectors_tasks_counts() {
        let running = r#"{"state":"RUNNING","trace":null,"worker_id":"w","generation":1}"#;
        assert_eq!(started(&record("status-task-c-7", running), "status-task-c-"), Some(7));
        assert_eq!(started(&record("status-task-other-7", running), "status-task-c-"), None);
        assert_eq!(started(&record("status-connector-c", running), "status-task-c-"), None);
        assert_eq!(started(&record("status-task-c-7", r#"{"state":"UNASSIGNED"}"#), "status-task-c-"), None);
    }
}
