//! How long a task's data stand still when its worker goes: killed, or in order. Two workers share a steady load; the second is taken away and
//! replaced, then the first, which leads the group.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Bench;
use super::figures::{Figure, Measured, Place};
use super::flow::Flow;
use super::group::{Group, LOOK_EVERY, Member};
use super::load::Load;
use crate::run::Side;

const KILL_FOLLOWER: Figure = Figure::new("kill -9 of a follower until its tasks' data go on, s");
const KILL_LEADER: Figure = Figure::new("kill -9 of the leader until its tasks' data go on, s");
const QUIET: Figure = Figure::new("longest pause of a task with nobody going, s");
const DRAIN_FOLLOWER: Figure = Figure::at_most("a follower goes: longest pause of its tasks, s", 1.0);
const DRAIN_LEADER: Figure = Figure::at_most("the leader goes: longest pause of its tasks, s", 1.0);
const GONE: Figure = Figure::new("asked to go until nothing runs there, s");

/// A worker that is killed is missed after this.
const SESSION_TIMEOUT_MS: &str = "6000";
const HEARTBEAT_MS: &str = "1000";

/// Tasks that two workers share, and records that each writes in a second.
const TASKS: u32 = 4;
const RATE: u32 = 100;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a group must be seen at rest before it is disturbed.
const STEADY: Duration = Duration::from_secs(2);

/// Commits of a task after which its data flow again.
const COMMITS: usize = 20;

struct Pair<'a> {
    group: Group<'a>,
    members: Vec<Member>,
    load: Load,
    /// Once its topic is there.
    flow: Option<Flow>,
}

/// Which worker goes.
const WHO: [(usize, Figure, Figure); 2] = [(1, KILL_FOLLOWER, DRAIN_FOLLOWER), (0, KILL_LEADER, DRAIN_LEADER)];

pub(super) fn measure_kill(bench: &Bench<'_>, place: Place, out: &mut Measured) -> Result<()> {
    out.title(
        place.section,
        format!(
            "two workers with {TASKS} tasks of {RATE} records/s, session.timeout.ms={SESSION_TIMEOUT_MS}, \
             heartbeat.interval.ms={HEARTBEAT_MS}, scheduled.rebalance.max.delay.ms=0"
        ),
    );
    let mut pair = Pair::start(bench, place, "0")?;
    for (index, figure, _) in WHO {
        let tasks = pair.tasks_of(index)?;
        let killed = Instant::now();
        pair.members.remove(index).process.kill9()?;
        pair.wait_until_flows_again(&tasks, killed)?;
        let mut longest = Duration::ZERO;
        for task in tasks {
            let pause = pair.flow()?.longest_pause(task, killed).context("a killed worker's task did not go on")?;
            longest = longest.max(pause.ended - killed);
        }
        out.add(place, figure, longest.as_secs_f64());
        pair.replace(index)?;
    }
    pair.end(bench)
}

pub(super) fn measure_drain(bench: &Bench<'_>, place: Place, out: &mut Measured) -> Result<()> {
    out.title(
        place.section,
        format!(
            "two workers with {TASKS} tasks of {RATE} records/s, one goes in order: ours with POST /worker/drain, Kafka Connect's by \
             SIGTERM with scheduled.rebalance.max.delay.ms=0"
        ),
    );
    // What draining is for: without it they would wait so long.
    let delay = if place.side == Side::Java { "0" } else { "300000" };
    let mut pair = Pair::start(bench, place, delay)?;
    let all: Vec<i32> = (0..).take(TASKS as usize).collect();
    for (index, _, figure) in WHO {
        let tasks = pair.tasks_of(index)?;
        out.add(place, QUIET, pair.longest_pause(&all, Instant::now() - STEADY));
        let asked = Instant::now();
        let drained = go(place.side, pair.members.remove(index))?;
        let gone = asked.elapsed();
        pair.wait_until_flows_again(&tasks, asked)?;
        out.add(place, figure, pair.longest_pause(&tasks, asked));
        out.add(place, GONE, gone.as_secs_f64());
        if let Some(drained) = drained {
            drained.process.stop()?;
        }
        pair.replace(index)?;
    }
    pair.end(bench)
}

/// Makes a worker hand over what it runs; ours goes on without work.
fn go(side: Side, mut member: Member) -> Result<Option<Member>> {
    if side == Side::Java {
        return member.process.stop().map(|()| None);
    }
    member.wait_until("POST /worker/drain", PATIENCE, LOOK_EVERY, |rest| {
        let status = rest.post("/worker/drain", &Value::Null).ok()?;
        (status["state"] == "DRAINED").then_some(())
    })?;
    Ok(Some(member))
}

impl<'a> Pair<'a> {
    fn start(bench: &'a Bench<'_>, place: Place, delay_ms: &str) -> Result<Self> {
        let properties = [
            ("scheduled.rebalance.max.delay.ms", delay_ms),
            ("session.timeout.ms", SESSION_TIMEOUT_MS),
            ("heartbeat.interval.ms", HEARTBEAT_MS),
        ];
        let mut group = bench.group(place, &properties)?;
        let members = vec![group.start_ready()?, group.start_ready()?];
        let load = Load::steady(&format!("{}-data", group.name), TASKS, RATE);
        members[0].rest.create(&load.name, load.config())?;
        let mut pair = Self { group, members, flow: None, load };
        pair.wait_until_shared()?;
        pair.flow = Some(Flow::watch(bench.bootstrap, &pair.load.name)?);
        Ok(pair)
    }

    /// Waits until the load runs and both workers have a part of it, for a while.
    fn wait_until_shared(&mut self) -> Result<()> {
        let ids: Vec<String> = self.members.iter().map(|member| member.rest.worker_id.clone()).collect();
        let (name, tasks) = (&self.load.name, self.load.tasks as usize);
        self.members[0].wait_until_steady("both workers share the load", PATIENCE, STEADY, |rest| {
            let status = rest.status(name)?;
            let shared = ids.iter().all(|id| !status.tasks_on(id).is_empty());
            Some(status.runs(tasks) && shared)
        })?;
        Ok(())
    }

    /// The tasks of a worker, once all have moved while nothing happened.
    fn tasks_of(&mut self, index: usize) -> Result<Vec<i32>> {
        self.wait_until_shared()?;
        let all: Vec<i32> = (0..).take(self.load.tasks as usize).collect();
        self.flow()?.wait_for(&all, Instant::now(), COMMITS, PATIENCE)?;
        let member = &self.members[index].rest;
        let tasks = member.status(&self.load.name).map(|status| status.tasks_on(&member.worker_id));
        tasks.filter(|tasks| !tasks.is_empty()).context("the worker has no task")
    }

    /// Waits until the worker that is left has all tasks and these write.
    fn wait_until_flows_again(&mut self, tasks: &[i32], since: Instant) -> Result<()> {
        let (name, count) = (&self.load.name, self.load.tasks as usize);
        self.members[0].wait_until("the other worker takes over", PATIENCE, LOOK_EVERY, |rest| {
            let status = rest.status(name)?;
            (status.runs(count) && status.tasks_on(&rest.worker_id).len() == count).then_some(())
        })?;
        self.flow()?.wait_for(tasks, since.max(Instant::now()), COMMITS, PATIENCE)
    }

    /// In seconds; 0 where a partition has not moved.
    fn longest_pause(&self, tasks: &[i32], since: Instant) -> f64 {
        let pauses = tasks.iter().filter_map(|task| self.flow.as_ref()?.longest_pause(*task, since));
        pauses.map(|pause| pause.length().as_secs_f64()).fold(0.0, f64::max)
    }

    /// A new worker in the place of one that went.
    fn replace(&mut self, index: usize) -> Result<()> {
        let member = self.group.start_ready()?;
        self.members.insert(index, member);
        Ok(())
    }

    fn flow(&mut self) -> Result<&mut Flow> {
        self.flow.as_mut().context("nobody watches")
    }

    fn end(mut self, bench: &Bench<'_>) -> Result<()> {
        self.flow = None;
        for member in self.members {
            member.process.stop()?;
        }
        bench.clear(&self.group, &self.load.name)
    }
}
