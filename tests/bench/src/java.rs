//! The peer's side: one run of `java/run`, which starts Kafka Connect, submits the connector and measures from outside.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::run::Run;
use crate::worker::Job;
use crate::{KAFKA_VERSION, in_sources, watch};

/// Copies the file once.
///
/// # Errors
/// The script fails; its own words are on standard error.
pub fn copy(job: &Job<'_>) -> Result<Run> {
    let script = in_sources("java/run");
    let output = Command::new(&script)
        .args(["--bootstrap", job.bootstrap, "--topic", &job.topic, "--version", KAFKA_VERSION])
        .arg("--file")
        .arg(job.file)
        .args(["--boundary", job.settings.boundary.name(), "--lines", &job.lines.to_string()])
        .args(["--batch-size", &job.settings.batch_size.to_string()])
        .args(["--interval-ms", &job.settings.interval_ms.to_string()])
        .arg("--watch")
        .arg(watch::program()?)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{} can't be run", script.display()))?;
    ensure!(output.status.success(), "{} ended with {}", script.display(), output.status);
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} printed {:?}", script.display(), String::from_utf8_lossy(&output.stdout)))
}
