//! A real Apache Kafka broker for one test, run by `tests/services/kafka`. It ends with the handle, and with this process however that ends.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// What to start.
#[derive(Clone, Copy, Debug)]
pub struct KafkaOptions<'a> {
    /// The release, such as `4.3.1`.
    pub version: &'a str,
    /// The feature level `transaction.version` that the data are formatted with; `None` for the release's own.
    pub transaction_version: Option<u32>,
    /// Lines for server.properties, `name=value`.
    pub properties: &'a [&'a str],
}

/// A running broker.
#[derive(Debug)]
pub struct RealKafka {
    /// Holds everything of the broker; removed after it was stopped.
    folder: TempDir,
    address: String,
}

impl RealKafka {
    /// Installs the release if need be, starts it, and waits until it is ready.
    ///
    /// # Panics
    /// It does not start; the script's own message is on standard error.
    pub fn start(options: KafkaOptions<'_>) -> Self {
        let folder =
            tempfile::Builder::new().prefix("oncewire-kafka-").tempdir().expect("a temporary folder can be made");
        let owner = std::process::id().to_string();
        let mut arguments = vec!["start", "--version", options.version, "--owner", &owner];
        let level = options.transaction_version.map(|level| level.to_string());
        if let Some(level) = &level {
            arguments.extend(["--transaction-version", level]);
        }
        for property in options.properties {
            arguments.extend(["--property", property]);
        }
        let dir = folder.path().join("broker");
        let dir_text = dir.to_str().expect("temporary folders have text names");
        arguments.extend(["--dir", dir_text]);
        let address = script(&arguments);
        RealKafka { folder, address }
    }

    /// `host:port`.
    pub fn bootstrap(&self) -> &str {
        &self.address
    }

    /// SIGKILL; returns when the process is gone.
    ///
    /// # Panics
    /// The script fails.
    pub fn kill9(&self) {
        self.act("kill9");
    }

    /// Starts the broker again with its data, on its port, and waits until it is ready.
    ///
    /// # Panics
    /// The script fails.
    pub fn restart(&self) {
        self.act("restart");
    }

    fn act(&self, action: &str) {
        let dir = self.folder.path().join("broker");
        script(&[action, dir.to_str().expect("temporary folders have text names")]);
    }
}

impl Drop for RealKafka {
    fn drop(&mut self) {
        // No time for an orderly end: nobody reads these data again. `stop` clears what the script keeps.
        self.act("kill9");
        self.act("stop");
    }
}

/// Runs the script and returns the first line of its standard output.
fn script(arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../services/kafka");
    let output = Command::new(&script).args(arguments).stderr(Stdio::inherit()).output();
    let output = output.unwrap_or_else(|error| panic!("{} runs: {error}", script.display()));
    assert!(output.status.success(), "{} {} ended with {}", script.display(), arguments.join(" "), output.status);
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}
