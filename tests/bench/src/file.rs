//! `file`: our worker and Kafka Connect copy the same file, taking turns, under both transaction boundaries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::Table;
use serde::Serialize;
use serde_json::json;

use crate::broker::Broker;
use crate::client::Client;
use crate::report::{Aim, number, number_or_dash, table};
use crate::run::{Boundary, Run, Settings, Side};
use crate::statistics::median;
use crate::worker::Job;
use crate::{java, lines, progress, worker};

/// `--short`: a look whether everything works, in less than three minutes.
const SHORT_LINES: u64 = 300_000;
const SHORT_ROUNDS: u32 = 1;
/// We would copy that many lines within one interval of a second, and then there is no steady rate.
const SHORT_INTERVAL_MS: u32 = 100;

/// What to copy, how often, and under which boundaries.
#[derive(Debug, Clone, Args)]
pub struct FileArgs {
    /// Lines of 84 bytes in the file
    #[arg(long, default_value_t = 3_000_000)]
    lines: u64,
    /// Runs of each side under each boundary; medians of fewer than 3 say little
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// 300,000 lines, one round, and an interval of 100 ms
    #[arg(long, conflicts_with_all = ["lines", "rounds", "interval_ms"])]
    short: bool,
    /// Where transactions end
    #[arg(long, value_delimiter = ',', default_values = ["poll", "interval"])]
    boundaries: Vec<Boundary>,
    /// Lines in one poll, so in one transaction of the boundary poll (batch.size)
    #[arg(long, default_value_t = 2000)]
    batch_size: u32,
    /// Length of a transaction of the boundary interval, in milliseconds
    #[arg(long, default_value_t = 1000)]
    interval_ms: u32,
    /// Leave Kafka Connect out
    #[arg(long)]
    without_java: bool,
    /// Keep the file that is copied here, and use it again when it is there
    #[arg(long)]
    file: Option<PathBuf>,
}

impl FileArgs {
    /// Whether it is only a look whether everything works.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.short
    }
}

/// All runs of one comparison.
#[derive(Debug, Default, Serialize)]
pub struct Comparison {
    lines: u64,
    rounds: u32,
    batch_size: u32,
    interval_ms: u32,
    runs: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    round: u32,
    boundary: Boundary,
    side: Side,
    #[serde(flatten)]
    run: Run,
}

/// Measures everything.
///
/// # Errors
/// A worker, the broker or a script fails.
pub fn measure(args: &FileArgs, broker: &Broker) -> Result<Comparison> {
    let (lines, rounds, interval_ms) = if args.short {
        (SHORT_LINES, SHORT_ROUNDS, SHORT_INTERVAL_MS)
    } else {
        (args.lines, args.rounds.max(1), args.interval_ms)
    };
    let binary = worker::binary()?;
    let folder = tempfile::Builder::new().prefix("oncewire-bench-file-").tempdir()?;
    let file = args.file.clone().unwrap_or_else(|| folder.path().join("lines.txt"));
    let bytes = lines * (crate::lines::LINE_BYTES as u64 + 1);
    if std::fs::metadata(&file).map_or(0, |metadata| metadata.len()) != bytes {
        progress(&format!("writing {lines} lines"));
        lines::write(&file, lines)?;
    }
    let client = Client::connect(broker.bootstrap())?;
    let bench = Bench {
        batch_size: args.batch_size,
        interval_ms,
        bootstrap: broker.bootstrap(),
        client: &client,
        binary: &binary,
        file: &file,
        lines,
        bytes,
    };
    let mut comparison = Comparison { lines, rounds, batch_size: args.batch_size, interval_ms, runs: Vec::new() };
    for round in 1..=rounds {
        for &boundary in &args.boundaries {
            // Taking turns in who goes first evens out what a run leaves behind in the broker and the page cache.
            let mut sides =
                if round % 2 == 1 { [Side::Oncewire, Side::Java] } else { [Side::Java, Side::Oncewire] }.to_vec();
            sides.retain(|side| *side == Side::Oncewire || !args.without_java);
            for side in sides {
                let run = bench.run(round, boundary, side)?;
                progress(&format!(
                    "round {round} of {rounds}, boundary {}, {}: {} records/s, {} CPU-s, {} MB",
                    boundary.name(),
                    side.name(),
                    number(run.records_per_s),
                    number(run.cpu_s),
                    number(run.peak_rss_mb)
                ));
                comparison.runs.push(Entry { round, boundary, side, run });
            }
        }
    }
    Ok(comparison)
}

struct Bench<'a> {
    batch_size: u32,
    interval_ms: u32,
    bootstrap: &'a str,
    client: &'a Client,
    binary: &'a Path,
    file: &'a Path,
    lines: u64,
    bytes: u64,
}

impl Bench<'_> {
    fn run(&self, round: u32, boundary: Boundary, side: Side) -> Result<Run> {
        let name = if side == Side::Java { "java" } else { "oncewire" };
        let job = Job {
            bootstrap: self.bootstrap,
            file: self.file,
            lines: self.lines,
            topic: format!("file-{}-{round}-{name}", boundary.name()),
            settings: Settings { boundary, batch_size: self.batch_size, interval_ms: self.interval_ms },
        };
        let run = match side {
            Side::Oncewire => {
                let run = worker::copy(self.binary, &job)?;
                // The Java script makes the same check.
                self.client.check_position(&job.offsets_topic(), self.bytes)?;
                run
            }
            Side::Java => java::copy(&job)?,
        };
        self.client.delete_topics(&[job.topic]).context("can't clear up after a run")?;
        Ok(run)
    }
}

/// One figure of a [`Run`].
struct Figure {
    name: &'static str,
    of: fn(&Run) -> Option<f64>,
    /// For the ratio ours / Java under a boundary.
    ratio_aim: fn(Boundary) -> Option<Aim>,
    /// For our own figure under a boundary.
    own_aim: fn(Boundary) -> Option<Aim>,
}

/// The aims are those of the issue that this bench was built for.
const FIGURES: [Figure; 6] = [
    Figure {
        name: "records/s, first to last commit",
        of: |run| Some(run.records_per_s).filter(|rate| *rate > 0.0),
        ratio_aim: |boundary| {
            Some(Aim::AtLeast(match boundary {
                Boundary::Poll => 3.5,
                Boundary::Interval => 4.0,
            }))
        },
        own_aim: |_| None,
    },
    Figure {
        name: "records/s, from submit",
        of: |run| Some(run.records_per_s_from_submit),
        ratio_aim: |_| None,
        own_aim: |_| None,
    },
    Figure {
        name: "CPU-seconds",
        of: |run| Some(run.cpu_s),
        ratio_aim: |_| Some(Aim::AtMost(1.0 / 6.0)),
        own_aim: |_| None,
    },
    Figure {
        name: "peak RSS, MB",
        of: |run| Some(run.peak_rss_mb),
        ratio_aim: |_| Some(Aim::AtMost(1.0 / 20.0)),
        own_aim: |_| None,
    },
    Figure {
        name: "start to first commit, s",
        of: |run| Some(run.start_to_first_commit_s),
        ratio_aim: |_| None,
        // Under the other boundary the first commit waits for the interval.
        own_aim: |boundary| (boundary == Boundary::Poll).then_some(Aim::AtMost(crate::start::FIRST_COMMIT_AIM_S)),
    },
    Figure { name: "start to REST, s", of: |run| run.start_to_rest_s, ratio_aim: |_| None, own_aim: |_| None },
];

impl Comparison {
    /// The median of a figure over a side's runs.
    fn median(&self, boundary: Boundary, side: Side, of: fn(&Run) -> Option<f64>) -> Option<f64> {
        let runs = self.runs.iter().filter(|entry| entry.boundary == boundary && entry.side == side);
        median(runs.filter_map(|entry| of(&entry.run)).collect())
    }

    fn boundaries(&self) -> Vec<Boundary> {
        let mut boundaries: Vec<Boundary> = self.runs.iter().map(|entry| entry.boundary).collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        boundaries
    }

    /// A table for each boundary.
    #[must_use]
    pub fn tables(&self) -> String {
        let tables = self.boundaries().into_iter().map(|boundary| {
            let title = format!(
                "{} lines of {} bytes, boundary {}, medians of {}",
                number(crate::run::count(self.lines)),
                lines::LINE_BYTES,
                match boundary {
                    Boundary::Poll => format!("poll with {} lines in each", number(f64::from(self.batch_size))),
                    Boundary::Interval => format!("interval of {} ms", self.interval_ms),
                },
                self.rounds
            );
            format!("{title}\n{}", self.table(boundary))
        });
        tables.collect::<Vec<_>>().join("\n\n")
    }

    fn table(&self, boundary: Boundary) -> Table {
        let mut table = table(&["", "oncewire", "Kafka Connect", "ratio", "what the project wants"]);
        for figure in FIGURES {
            let ours = self.median(boundary, Side::Oncewire, figure.of);
            let java = self.median(boundary, Side::Java, figure.of);
            let ratio = ours.zip(java).filter(|(_, java)| *java > 0.0).map(|(ours, java)| ours / java);
            let verdict = match (ratio.zip((figure.ratio_aim)(boundary)), ours.zip((figure.own_aim)(boundary))) {
                (Some((ratio, aim)), _) => format!("ratio: {}", aim.verdict(ratio)),
                (None, Some((ours, aim))) => format!("ours: {}", aim.verdict(ours)),
                (None, None) => String::new(),
            };
            table.add_row([
                figure.name.to_owned(),
                number_or_dash(ours),
                number_or_dash(java),
                number_or_dash(ratio),
                verdict,
            ]);
        }
        table
    }

    /// Runs and medians.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut medians: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, Option<f64>>>> = BTreeMap::new();
        for boundary in self.boundaries() {
            for side in [Side::Oncewire, Side::Java] {
                for figure in FIGURES {
                    let value = self.median(boundary, side, figure.of);
                    medians
                        .entry(boundary.name())
                        .or_default()
                        .entry(side.name())
                        .or_default()
                        .insert(figure.name, value);
                }
            }
        }
        json!({ "lines": self.lines, "rounds": self.rounds, "runs": self.runs, "medians": medians })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(side: Side, records_per_s: f64) -> Entry {
        let run = Run {
            records_per_s,
            records_per_s_from_submit: 1.0,
            cpu_s: 2.0,
            peak_rss_mb: 40.0,
            start_to_first_commit_s: 0.2,
            start_to_rest_s: None,
        };
        Entry { round: 1, boundary: Boundary::Poll, side, run }
    }

    #[test]
    fn the_table_says_whether_the_aim_is_met() {
        let runs = vec![
            entry(Side::Oncewire, 900_000.0),
            entry(Side::Java, 250_000.0),
            entry(Side::Java, 240_000.0),
            entry(Side::Java, 100.0),
        ];
        let comparison = Comparison { lines: 3_000_000, rounds: 3, batch_size: 2000, interval_ms: 1000, runs };
        let text = comparison.tables();
        assert!(text.contains("900,000") && text.contains("240,000") && text.contains("3.75"), "{text}");
        assert!(text.contains("aim ≥ 3.5: met"), "{text}");
        assert!(text.contains("aim ≤ 0.17: not met"), "{text}");
        assert!(text.contains("poll with 2,000") && !text.contains("interval"), "{text}");
    }
}
