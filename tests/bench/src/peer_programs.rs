//! The small programs that drive a peer's client: `go/` for franz-go, `java/Transactions.java` for Java's producer.
//!
//! Each is called with HOST:PORT TOPIC RECORDS SECONDS WARM_UP_SECONDS and prints one [`Timing`] as JSON.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::txn::{Load, Timing, WARM_UP};
use crate::{broker, in_sources, progress};

/// A peer's program, ready to run.
#[derive(Debug)]
pub struct Peer {
    program: String,
    arguments: Vec<String>,
    /// Holds what was built.
    _folder: Option<TempDir>,
}

impl Peer {
    /// Builds the Go program.
    ///
    /// # Errors
    /// There is no Go, or it can't build.
    pub fn franz_go() -> Result<Self> {
        progress("building the Go program");
        let folder = tempfile::Builder::new().prefix("oncewire-bench-go-").tempdir()?;
        let program = folder.path().join("transactions").display().to_string();
        let status = Command::new("go")
            .args(["build", "-o", &program, "."])
            .current_dir(in_sources("go"))
            .status()
            .context("go can't be run; it is needed for --peers")?;
        ensure!(status.success(), "go build in tests/bench/go ended with {status}");
        Ok(Self { program, arguments: Vec::new(), _folder: Some(folder) })
    }

    /// Java compiles its program when it starts.
    ///
    /// # Errors
    /// Kafka's jars can't be had.
    pub fn java() -> Result<Self> {
        let jars = broker::jars()?;
        let services = in_sources("../services");
        let arguments = vec![
            "-Xmx1g".to_owned(),
            "-cp".to_owned(),
            format!("{}/*", jars.display()),
            format!("-Dlog4j2.configurationFile={}", services.join("log4j2.properties").display()),
            "-Dlogging.level=warn".to_owned(),
            in_sources("java/Transactions.java").display().to_string(),
        ];
        Ok(Self { program: "java".to_owned(), arguments, _folder: None })
    }

    /// Runs it once.
    ///
    /// # Errors
    /// It fails; its own words are on standard error.
    pub fn run(&self, load: &Load<'_>) -> Result<Timing> {
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .args([load.bootstrap, load.topic])
            .args([u64::from(load.records), load.length.as_secs(), WARM_UP.as_secs()].map(|number| number.to_string()))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("{} can't be run", self.program))?;
        ensure!(output.status.success(), "{} ended with {}", self.program, output.status);
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{} printed {:?}", self.program, String::from_utf8_lossy(&output.stdout)))
    }
}
