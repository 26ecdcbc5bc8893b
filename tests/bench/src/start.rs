//! `start`: from a process's start to its first committed record, and what it holds when it has nothing to do.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;

use crate::broker::Broker;
use crate::cost::{Memory, memory_mb};
use crate::report::{Aim, number_or_dash, table};
use crate::run::{Boundary, Run, Settings, seconds_between};
use crate::statistics::median;
use crate::watch::Watcher;
use crate::worker::{Job, Worker};
use crate::{KAFKA_VERSION, in_sources, java, lines, progress, worker};

/// Process start to first committed record, in seconds: what the project wants.
pub const FIRST_COMMIT_AIM_S: f64 = 0.3;

/// Idle resident memory in MB: what the project wants.
const IDLE_RSS_AIM_MB: f64 = 15.0;

/// Lines in the file.
const LINES: u64 = 10;

/// How long a worker has nothing to do before its memory is read.
const IDLE: Duration = Duration::from_secs(5);

/// Finer than for a long copy: what is measured takes a few of these.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How often.
#[derive(Debug, Clone, Args)]
pub struct StartArgs {
    /// Starts of our worker
    #[arg(long, default_value_t = 7)]
    starts: u32,
    /// Leave Kafka Connect out
    #[arg(long)]
    without_java: bool,
}

/// What was measured.
#[derive(Debug, Default, Serialize)]
pub struct Starts {
    /// A group that the cluster has never seen: its offsets topic must be made.
    fresh_s: Vec<f64>,
    /// The same worker again, after the file has grown.
    again_s: Vec<f64>,
    idle_rss_mb: Vec<f64>,
    java: Option<JavaStart>,
}

#[derive(Debug, Serialize)]
struct JavaStart {
    start_to_rest_s: f64,
    start_to_first_commit_s: Option<f64>,
    idle_rss_mb: f64,
}

/// Measures everything.
///
/// # Errors
/// A worker, the broker or a script fails.
pub fn measure(args: &StartArgs, broker: &Broker) -> Result<Starts> {
    let binary = worker::binary()?;
    let folder = tempfile::Builder::new().prefix("oncewire-bench-start-").tempdir()?;
    let mut starts = Starts::default();
    for round in 1..=args.starts.max(1) {
        let file = folder.path().join(format!("lines-{round}.txt"));
        lines::write(&file, LINES)?;
        let fresh = job(broker, &file, format!("start-{round}"));
        let group = fresh.group();
        let (seconds, rss) = start_once(&binary, &fresh, &group)?;
        starts.fresh_s.push(seconds);
        starts.idle_rss_mb.push(rss);
        let mut out = OpenOptions::new().append(true).open(&file)?;
        out.write_all("one more line\n".repeat(10).as_bytes())?;
        let again = job(broker, &file, format!("start-{round}-again"));
        let (seconds, rss) = start_once(&binary, &again, &group)?;
        starts.again_s.push(seconds);
        starts.idle_rss_mb.push(rss);
        progress(&format!(
            "start {round} of {}: {:.3} s, again {seconds:.3} s, {rss:.1} MB idle",
            args.starts,
            starts.fresh_s[starts.fresh_s.len() - 1]
        ));
    }
    if !args.without_java {
        let file = folder.path().join("lines.txt");
        lines::write(&file, LINES)?;
        starts.java = Some(java_start(&job(broker, &file, "start-java".to_owned()))?);
    }
    Ok(starts)
}

fn job<'a>(broker: &'a Broker, file: &'a Path, topic: String) -> Job<'a> {
    let settings = Settings { boundary: Boundary::Poll, batch_size: 2000, interval_ms: 1000 };
    Job { bootstrap: broker.bootstrap(), file, lines: LINES, topic, settings }
}

/// Seconds to the first committed record, and MB after a while without work.
fn start_once(binary: &Path, job: &Job<'_>, group: &str) -> Result<(f64, f64)> {
    let mut watcher = Watcher::start(job.bootstrap, &job.topic, job.lines, LOOK_EVERY)?;
    let worker = Worker::start(binary, job, group)?;
    let first = watcher.first().with_context(|| format!("the worker wrote:\n{}", worker.log()))?;
    drop(watcher);
    std::thread::sleep(IDLE);
    let rss = memory_mb(worker.id(), Memory::Now)?;
    let started_ms = worker.started_ms;
    worker.stop()?;
    Ok((seconds_between(started_ms, first.at_ms), rss))
}

/// Kafka Connect twice: with a connector for its first commit, and without anything to do for its memory.
fn java_start(job: &Job<'_>) -> Result<JavaStart> {
    progress("starting Kafka Connect with a connector");
    let Run { start_to_first_commit_s, .. } = java::copy(job)?;
    progress("starting Kafka Connect with nothing to do");
    let folder = tempfile::Builder::new().prefix("oncewire-bench-connect-").tempdir()?;
    let dir = folder.path().join("worker").display().to_string();
    let owner = std::process::id().to_string();
    let began = Instant::now();
    let arguments =
        ["start", "--bootstrap", job.bootstrap, "--dir", &dir, "--group", "bench-idle", "--version", KAFKA_VERSION];
    connect(&[&arguments[..], &["--owner", &owner]].concat())?;
    let start_to_rest_s = began.elapsed().as_secs_f64();
    std::thread::sleep(IDLE);
    let pid_file = std::fs::read_to_string(folder.path().join("worker/pid"))?;
    let pid = pid_file.split(' ').next().and_then(|pid| pid.parse().ok()).context("the script left no pid")?;
    let idle_rss_mb = memory_mb(pid, Memory::Now);
    connect(&["kill9", &dir])?;
    Ok(JavaStart { start_to_rest_s, start_to_first_commit_s: Some(start_to_first_commit_s), idle_rss_mb: idle_rss_mb? })
}

fn connect(arguments: &[&str]) -> Result<()> {
    let script = in_sources("../services/connect");
    let status = Command::new(&script).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("{} can't be run", script.display()))?;
    ensure!(status.success(), "{} {} ended with {status}", script.display(), arguments.join(" "));
    Ok(())
}

impl Starts {
    /// One table.
    #[must_use]
    pub fn tables(&self) -> String {
        let java = self.java.as_ref();
        let mut table = table(&["", "oncewire", "Kafka Connect", "what the project wants"]);
        let first = median(self.fresh_s.clone());
        let rows = [
            (
                "start to first committed record, s",
                first,
                java.and_then(|java| java.start_to_first_commit_s),
                Some(Aim::AtMost(FIRST_COMMIT_AIM_S)),
            ),
            (
                "the same with its offsets topic there, s",
                median(self.again_s.clone()),
                None,
                Some(Aim::AtMost(FIRST_COMMIT_AIM_S)),
            ),
            ("start to REST, s", None, java.map(|java| java.start_to_rest_s), None),
            (
                "idle RSS, MB",
                median(self.idle_rss_mb.clone()),
                java.map(|java| java.idle_rss_mb),
                Some(Aim::AtMost(IDLE_RSS_AIM_MB)),
            ),
        ];
        for (name, ours, java, aim) in rows {
            let verdict = ours.zip(aim).map(|(ours, aim)| format!("ours: {}", aim.verdict(ours))).unwrap_or_default();
            table.add_row([name.to_owned(), number_or_dash(ours), number_or_dash(java), verdict]);
        }
        format!("a file of {LINES} lines, medians of {} starts (Kafka Connect: one)\n{table}", self.fresh_s.len())
    }

    /// Everything that was measured.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "runs": self,
            "medians": {
                "start_to_first_commit_s": median(self.fresh_s.clone()),
                "start_to_first_commit_again_s": median(self.again_s.clone()),
                "idle_rss_mb": median(self.idle_rss_mb.clone()),
            }
        })
    }
}
