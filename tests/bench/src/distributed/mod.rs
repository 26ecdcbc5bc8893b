//! `distributed`: `oncewire distributed` beside Kafka Connect's distributed worker, on the same broker, taking turns.
//!
//! Every section makes a fresh group for each side in each round, does the same to both over REST and with signals, and looks from outside: at
//! REST, at what is committed, at `/proc`, at the status topic. The load is the sequence connector, which both sides have. Left out: records per
//! second, which are the same tasks' as standalone (`file`).

pub mod figures;
pub mod flow;
pub mod group;
pub mod idle;
pub mod load;
pub mod many;
pub mod moves;
pub mod rest;
pub mod roll;
pub mod start;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::broker::Broker;
use crate::client::Client;
use crate::distributed::figures::{Measured, Place};
use crate::distributed::group::{Group, Programs};
use crate::progress;
use crate::run::Side;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// From a worker's start until REST answers and until a task runs; memory without work
    Start,
    /// Many tasks with nothing to write: memory and processor time
    Idle,
    /// A worker is killed: how long its tasks' data stand still
    Kill,
    /// A worker hands over (Java: stops): how long its tasks' data stand still
    Drain,
    /// Three workers are started anew one by one: how often each task is
    Roll,
    /// Many connectors: making, listing, asking, and a second worker that takes its half
    Many,
}

impl Section {
    /// As the argument spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Idle => "idle",
            Self::Kill => "kill",
            Self::Drain => "drain",
            Self::Roll => "roll",
            Self::Many => "many",
        }
    }

    fn measure(self, bench: &Bench<'_>, place: Place, out: &mut Measured) -> Result<()> {
        match self {
            Self::Start => start::measure(bench, place, out),
            Self::Idle => idle::measure(bench, place, out),
            Self::Kill => moves::measure_kill(bench, place, out),
            Self::Drain => moves::measure_drain(bench, place, out),
            Self::Roll => roll::measure(bench, place, out),
            Self::Many => many::measure(bench, place, out),
        }
    }
}

/// What to measure, and how much of it.
#[derive(Debug, Clone, Args)]
pub struct DistributedArgs {
    /// Which sections
    #[arg(long, value_delimiter = ',', default_values = ["start", "idle", "kill", "drain", "roll", "many"])]
    only: Vec<Section>,
    /// Runs of each side in each section; medians of fewer than 3 say little
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// start, idle with 10 connectors, and drain; one round without Kafka Connect
    #[arg(long, conflicts_with_all = ["only", "rounds", "idle_connectors", "connectors"])]
    short: bool,
    /// Connectors of 4 tasks each in the section idle
    #[arg(long, default_value_t = 100)]
    idle_connectors: u32,
    /// Connectors of one task in the section many
    #[arg(long, default_value_t = 1_000)]
    connectors: u32,
    /// How long a departed worker's tasks wait for its return in the section roll (scheduled.rebalance.max.delay.ms)
    #[arg(long, default_value_t = 20_000)]
    roll_delay_ms: u32,
    /// Leave Kafka Connect out
    #[arg(long)]
    without_java: bool,
    /// Keep the workers' properties and logs in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
}

impl DistributedArgs {
    /// A look whether everything works, in less than a minute.
    #[must_use]
    pub fn short() -> Self {
        Self {
            only: vec![Section::Start, Section::Idle, Section::Drain],
            rounds: 1,
            short: true,
            idle_connectors: 10,
            connectors: 100,
            roll_delay_ms: 5_000,
            without_java: true,
            keep: None,
        }
    }
}

/// How long and how much.
#[derive(Debug)]
struct Scale {
    idle_connectors: u32,
    connectors: u32,
    roll_delay_ms: u32,
    /// A worker has nothing to do for so long before its memory is read.
    rest: Duration,
    /// Over which processor time is counted.
    window: Duration,
}

/// What all sections share.
#[derive(Debug)]
pub struct Bench<'a> {
    bootstrap: &'a str,
    programs: Programs,
    client: Client,
    keep: Option<PathBuf>,
    scale: Scale,
}

impl Bench<'_> {
    /// A group of this place's own.
    fn group(&self, place: Place, properties: &[(&str, &str)]) -> Result<Group<'_>> {
        let side = if place.side == Side::Java { "java" } else { "oncewire" };
        let name = format!("bench-{}-{side}-{}", place.section.name(), place.round);
        Group::new(&self.programs, place.side, self.bootstrap, &name, properties, self.keep.as_deref())
    }

    /// Deletes what a group has left, so that a long bench does not slow its broker down.
    fn clear(&self, group: &Group<'_>, data: &str) -> Result<()> {
        let mut topics = group.topics();
        topics.push(data.to_owned());
        self.client.delete_topics(&topics)
    }
}

/// Measures everything. What can't be measured is told with the rest.
///
/// # Errors
/// The broker or a script fails.
pub fn measure(args: &DistributedArgs, broker: &Broker) -> Result<Measured> {
    let short = DistributedArgs::short();
    let keep = args.keep.clone();
    let args = if args.short { &short } else { args };
    let (rest, window) = if args.short { (3, 5) } else { (10, 20) };
    let bench = Bench {
        bootstrap: broker.bootstrap(),
        programs: Programs::find(broker, !args.without_java)?,
        client: Client::connect(broker.bootstrap())?,
        keep,
        scale: Scale {
            idle_connectors: args.idle_connectors.max(1),
            connectors: args.connectors.max(1),
            roll_delay_ms: args.roll_delay_ms,
            rest: Duration::from_secs(rest),
            window: Duration::from_secs(window),
        },
    };
    let rounds = args.rounds.max(1);
    let mut measured = Measured::default();
    for &section in &args.only {
        for round in 1..=rounds {
            let mut sides = bench.programs.sides();
            if round % 2 == 0 {
                // Taking turns in who goes first evens out what a run leaves behind in the broker.
                sides.reverse();
            }
            for side in sides {
                let place = Place { section, side, round };
                if let Err(error) = section.measure(&bench, place, &mut measured) {
                    progress(&format!("not measured: {error:#}"));
                    measured.fail(place, &error);
                }
                let (name, side) = (section.name(), side.name());
                progress(&format!("{name}, round {round} of {rounds}, {side}: {}", measured.of(place)));
            }
        }
    }
    Ok(measured)
}
