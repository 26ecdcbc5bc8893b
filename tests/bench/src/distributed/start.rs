//! From a worker's process start until REST answers and until a task runs that was in its topics already, and its memory without work.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use super::figures::{Figure, Measured, Place};
use super::group::LOOK_EVERY;
use super::load::Load;
use crate::cost::{Memory, memory_mb};

const FRESH: Figure = Figure::new("the group's first start ever to GET /connectors, s");
const ROOT: Figure = Figure::at_most("start to GET /, s", 0.1);
const CONNECTORS: Figure = Figure::at_most("start to GET /connectors, s", 0.1);
const RUNNING: Figure = Figure::at_most("start to a known connector's task RUNNING, s", 1.0);
const IDLE_RSS: Figure = Figure::at_most("RSS with one idle task, MB", 20.0);

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn measure(bench: &Bench<'_>, place: Place, out: &mut Measured) -> Result<()> {
    let rest = bench.scale.rest.as_secs();
    out.title(place.section, format!("a worker's start; memory after {rest} s with nothing to do"));
    let mut group = bench.group(place, &[])?;
    let load = Load::idle("known", &format!("{}-data", group.name), 1);

    let mut first = group.start()?;
    let (fresh, ()) =
        first.wait_until("the first start", PATIENCE, LOOK_EVERY, |rest| rest.answers("/connectors").then_some(()))?;
    out.add(place, FRESH, fresh.as_secs_f64());
    first.rest.create(&load.name, load.config())?;
    first.wait_until("the connector runs", PATIENCE, LOOK_EVERY, |rest| {
        rest.status(&load.name).filter(|status| status.runs(1))
    })?;
    first.process.stop()?;

    let mut worker = group.start()?;
    let (root, ()) = worker.wait_until("GET /", PATIENCE, LOOK_EVERY, |rest| rest.answers("/").then_some(()))?;
    let (listed, ()) =
        worker.wait_until("GET /connectors", PATIENCE, LOOK_EVERY, |rest| rest.answers("/connectors").then_some(()))?;
    // The worker before had another port: what it said last is not taken for this one's.
    let (running, ()) = worker.wait_until("the task runs", PATIENCE, LOOK_EVERY, |rest| {
        let status = rest.status(&load.name)?;
        (status.runs(1) && status.load_on(&rest.worker_id) == 2).then_some(())
    })?;
    out.add(place, ROOT, root.as_secs_f64());
    out.add(place, CONNECTORS, listed.as_secs_f64());
    out.add(place, RUNNING, running.as_secs_f64());
    std::thread::sleep(bench.scale.rest);
    out.add(place, IDLE_RSS, memory_mb(worker.process.id(), Memory::Now)?);
    worker.process.stop()?;
    bench.clear(&group, &format!("{}-data", group.name))
}
