//! A real Kafka broker of the bench's own, started and ended through `tests/services/kafka`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{KAFKA_VERSION, in_sources, progress};

/// A running broker. Dropping it ends it and removes its data.
#[derive(Debug)]
pub struct Broker {
    folder: TempDir,
    address: String,
}

impl Broker {
    /// Installs the release if need be, starts it, and waits until it is ready.
    ///
    /// # Errors
    /// The script fails; its own words are on standard error.
    pub fn start() -> Result<Self> {
        progress(&format!("starting Kafka {KAFKA_VERSION}"));
        let folder = tempfile::Builder::new().prefix("oncewire-bench-kafka-").tempdir()?;
        let dir = folder.path().join("broker").display().to_string();
        let owner = std::process::id().to_string();
        let address = kafka(&["start", "--version", KAFKA_VERSION, "--owner", &owner, "--dir", &dir])?;
        Ok(Self { folder, address })
    }

    /// `host:port`.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.address
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let dir = self.folder.path().join("broker").display().to_string();
        for action in ["kill9", "stop"] {
            if let Err(error) = kafka(&[action, &dir]) {
                progress(&format!("ending the broker: {error:#}"));
            }
        }
    }
}

/// The folder with the release's jars, installed if need be.
///
/// # Errors
/// The script fails.
pub fn jars() -> Result<PathBuf> {
    Ok(PathBuf::from(kafka(&["install", KAFKA_VERSION])?))
}

/// Runs the script; the first line of its standard output.
fn kafka(arguments: &[&str]) -> Result<String> {
    let script = in_sources("../services/kafka");
    let output = Command::new(&script)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{} can't be run", script.display()))?;
    ensure!(output.status.success(), "{} {} ended with {}", script.display(), arguments.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}
