//! Many connectors: how long it takes to make them, to ask for them, and until a second worker has its half of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Bench;
use super::figures::{Figure, Measured, Place};
use super::load::Load;
use crate::cost::{Memory, memory_mb};
use crate::statistics::median;

const CREATE: Figure = Figure::new("making all, one after the other, s");
const RUNNING: Figure = Figure::new("first POST to all RUNNING, s");
const LIST: Figure = Figure::new("GET /connectors, ms");
const STATUSES: Figure = Figure::new("GET /connectors?expand=status, ms");
const EACH_STATUS: Figure = Figure::new("GET status of each, one after the other, s");
const RSS: Figure = Figure::new("RSS of the one worker, MB");
const SETTLED: Figure = Figure::new("a second worker's start until it has its half and all run, s");

/// How long all may take to run, and to be moved.
const PATIENCE: Duration = Duration::from_secs(900);

/// How long it must have stayed so.
const STEADY: Duration = Duration::from_secs(3);

/// Questions of which the median counts.
const QUESTIONS: usize = 5;

/// How far from its half, in percent of all, the second worker may be.
const HALF_OFF_PERCENT: usize = 2;

pub(super) fn measure(bench: &Bench<'_>, place: Place, out: &mut Measured) -> Result<()> {
    let connectors = bench.scale.connectors as usize;
    out.title(place.section, format!("{connectors} connectors with one idle task each"));
    let mut group = bench.group(place, &[])?;
    let data = format!("{}-data", group.name);
    let mut first = group.start_ready()?;

    let began = Instant::now();
    let names: Vec<String> = (0..connectors).map(|number| format!("many-{number}")).collect();
    for (made, name) in names.iter().enumerate() {
        let load = Load::idle(name, &data, 1);
        first.rest.create(name, load.config()).with_context(|| format!("when {made} connectors had been made"))?;
    }
    out.add(place, CREATE, began.elapsed().as_secs_f64());
    let running = first.wait_until_steady("all run", PATIENCE, STEADY, |rest| {
        let statuses = rest.statuses()?;
        Some(statuses.values().filter(|status| status.runs(1)).count() == connectors)
    })?;
    out.add(place, RUNNING, (running - began).as_secs_f64());

    for (figure, path) in [(LIST, "/connectors"), (STATUSES, "/connectors?expand=status")] {
        let mut times = Vec::new();
        for _ in 0..QUESTIONS {
            let asked = Instant::now();
            ensure!(first.rest.answers(path), "GET {path} is not answered");
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        out.add(place, figure, median(times).context("no question was asked")?);
    }
    let asked = Instant::now();
    for name in &names {
        first.rest.status(name).with_context(|| format!("the status of {name} is not told"))?;
    }
    out.add(place, EACH_STATUS, asked.elapsed().as_secs_f64());
    out.add(place, RSS, memory_mb(first.process.id(), Memory::Now)?);

    let second = group.start()?;
    let half = connectors..=connectors + 2 * connectors * HALF_OFF_PERCENT / 100 + 1;
    let settled = first.wait_until_steady("the second worker has its half", PATIENCE, STEADY, |rest| {
        let statuses = rest.statuses()?;
        let ids = [&rest.worker_id, &second.rest.worker_id];
        let loads = ids.map(|id| statuses.values().map(|status| status.load_on(id)).sum::<usize>());
        let all_run = statuses.values().filter(|status| status.runs(1)).count() == connectors;
        Some(all_run && half.contains(loads.iter().max()?))
    })?;
    out.add(place, SETTLED, (settled - second.process.started).as_secs_f64());
    second.process.stop()?;
    first.process.stop()?;
    bench.clear(&group, &data)
}
