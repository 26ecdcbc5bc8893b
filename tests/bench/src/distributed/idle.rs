//! What many tasks cost that have nothing to write.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::Bench;
use super::figures::{Figure, Measured, Place};
use super::load::Load;
use crate::cost::{Memory, cpu_seconds, memory_mb, open_sockets};
use crate::run::count;

const RUNNING: Figure = Figure::new("first POST to all tasks RUNNING, s");
const RSS: Figure = Figure::at_most("RSS, MB", 150.0);
const CPU: Figure = Figure::at_most("processor time, % of a core", 2.0);
const SOCKETS: Figure = Figure::new("open sockets");

/// Tasks of each connector.
const TASKS: u32 = 4;

/// How long all tasks may take to run: Java's worker starts a thread and a producer for each.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often the states of all are asked for, which costs something itself.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn measure(bench: &Bench<'_>, place: Place, out: &mut Measured) -> Result<()> {
    let (connectors, window) = (bench.scale.idle_connectors, bench.scale.window);
    out.title(
        place.section,
        format!("{connectors} connectors with {TASKS} idle tasks each, looked at for {} s", window.as_secs()),
    );
    let mut group = bench.group(place, &[])?;
    let data = format!("{}-data", group.name);
    let mut worker = group.start_ready()?;
    let began = Instant::now();
    for number in 0..connectors {
        let load = Load::idle(&format!("idle-{number}"), &data, TASKS);
        worker.rest.create(&load.name, load.config())?;
    }
    worker.wait_until("all tasks run", PATIENCE, LOOK_EVERY, |rest| {
        let statuses = rest.statuses()?;
        let running = statuses.values().filter(|status| status.runs(TASKS as usize)).count();
        (running == connectors as usize).then_some(())
    })?;
    out.add(place, RUNNING, began.elapsed().as_secs_f64());
    std::thread::sleep(bench.scale.rest);
    let id = worker.process.id();
    let (before, looked) = (cpu_seconds(id)?, Instant::now());
    std::thread::sleep(window);
    let share = (cpu_seconds(id)? - before) / looked.elapsed().as_secs_f64();
    out.add(place, RSS, memory_mb(id, Memory::Now)?);
    out.add(place, CPU, share * 100.0);
    out.add(place, SOCKETS, count(open_sockets(id)?));
    worker.process.stop()?;
    bench.clear(&group, &data)
}
