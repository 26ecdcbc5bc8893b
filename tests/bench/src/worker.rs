//! Our side: `oncewire standalone` as a process on two properties files, measured from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::cost::{Memory, cpu_seconds, memory_mb};
use crate::now_ms;
use crate::process::Process;
use crate::run::{Boundary, Run, Settings, Times, count, seconds_between};
use crate::watch::Watcher;

/// How often the watcher asks; the same for both sides.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What to copy, and where to.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// `host:port`.
    pub bootstrap: &'a str,
    /// The file.
    pub file: &'a Path,
    /// Lines in it.
    pub lines: u64,
    /// A fresh topic.
    pub topic: String,
    /// The settings.
    pub settings: Settings,
}

impl Job<'_> {
    /// Our worker's group; its offsets live in the topic [`Job::offsets_topic`].
    #[must_use]
    pub fn group(&self) -> String {
        format!("bench-{}", self.topic)
    }

    /// Where the source offsets are kept, under either side.
    #[must_use]
    pub fn offsets_topic(&self) -> String {
        format!("{}-offsets", self.group())
    }
}

/// Finds the binary: ONCEWIRE_BIN, else the release build, brought up to date.
///
/// # Errors
/// It is neither named nor can be built.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ONCEWIRE_BIN") {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "ONCEWIRE_BIN names {}, which is no file", path.display());
        return Ok(path);
    }
    // Cargo sees in a moment that nothing changed; a figure of yesterday's binary would be worse.
    crate::progress("bringing the release build of oncewire up to date");
    let root = crate::in_sources("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", "oncewire"])
        .current_dir(&root)
        .status()
        .context("cargo can't be run; name a binary in ONCEWIRE_BIN")?;
    ensure!(status.success(), "cargo can't build oncewire");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let path = target.join("release/oncewire");
    path.canonicalize().with_context(|| format!("cargo left no {}", path.display()))
}

/// A worker process. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    process: Process,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Removed after the process has ended.
    _folder: TempDir,
}

impl Worker {
    /// Writes the properties files and starts it.
    ///
    /// # Errors
    /// The files can't be written, or the program can't be started.
    pub fn start(binary: &Path, job: &Job<'_>, group: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("oncewire-bench-worker-").tempdir()?;
        let (worker, connector) = (folder.path().join("worker.properties"), folder.path().join("connector.properties"));
        fs::write(&worker, worker_properties(job.bootstrap, group))?;
        fs::write(&connector, connector_properties(job))?;
        let started_ms = now_ms();
        let mut command = Command::new(binary);
        command.arg("standalone").arg(&worker).arg(&connector);
        let process = Process::start(&mut command, folder.path().join("log"))?;
        Ok(Self { process, started_ms, _folder: folder })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to stop in good order and waits.
    ///
    /// # Errors
    /// It does not end in time, or not well; its log is shown.
    pub fn stop(self) -> Result<()> {
        self.process.stop()
    }

    /// What it wrote last.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.tail()
    }
}

/// Copies the file once and reads the worker's cost just before it is asked to stop.
///
/// # Errors
/// The worker fails, or the records do not come.
pub fn copy(binary: &Path, job: &Job<'_>) -> Result<Run> {
    let mut watcher = Watcher::start(job.bootstrap, &job.topic, job.lines, LOOK_EVERY)?;
    let worker = Worker::start(binary, job, &job.group())?;
    let watched = watcher.first().and_then(|first| Ok((first, watcher.last()?)));
    let (first, last) = watched.with_context(|| format!("the worker wrote:\n{}", worker.log()))?;
    let (cpu_s, peak_rss_mb) = (cpu_seconds(worker.id())?, memory_mb(worker.id(), Memory::Peak)?);
    let started_ms = worker.started_ms;
    worker.stop()?;
    let times = Times { submitted_ms: started_ms, first, last };
    let lines = count(job.lines);
    Ok(Run {
        records_per_s: times.steady_rate(lines),
        records_per_s_from_submit: times.rate_from_submit(lines),
        cpu_s,
        peak_rss_mb,
        start_to_first_commit_s: seconds_between(started_ms, first.at_ms),
        start_to_rest_s: None,
    })
}

/// What `tests/services/connect` gives the Java worker, as far as a standalone worker has it.
fn worker_properties(bootstrap: &str, group: &str) -> String {
    format!(
        "bootstrap.servers={bootstrap}\n\
         group.id={group}\n\
         key.converter=org.apache.kafka.connect.storage.StringConverter\n\
         value.converter=org.apache.kafka.connect.storage.StringConverter\n\
         offset.storage.topic={group}-offsets\n\
         offset.storage.replication.factor=1\n\
         offset.storage.partitions=1\n"
    )
}

/// What `java/run` submits.
fn connector_properties(job: &Job<'_>) -> String {
    let Settings { boundary, batch_size, interval_ms } = job.settings;
    let mut text = format!(
        "name=bench\nconnector.class=org.apache.kafka.connect.file.FileStreamSourceConnector\ntasks.max=1\n\
         exactly.once.support=required\nfile={}\ntopic={}\nbatch.size={batch_size}\ntransaction.boundary={}\n",
        job.file.display(),
        job.topic,
        boundary.name()
    );
    if boundary == Boundary::Interval {
        text += &format!("transaction.boundary.interval.ms={interval_ms}\n");
    }
    text
}
