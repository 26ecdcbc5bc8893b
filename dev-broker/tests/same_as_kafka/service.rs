//! Apache Kafka from `tests/services`.

use std::process::Command;
use std::time::Duration;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/services/kafka");

/// A running broker; ends with this value.
pub(crate) struct RealKafka {
    pub(crate) bootstrap: String,
    directory: String,
}

impl RealKafka {
    pub(crate) fn start(version: &str, transaction_version: i16, scan_interval: Duration) -> Self {
        let owner = std::process::id().to_string();
        let level = transaction_version.to_string();
        let scan = format!("transaction.abort.timed.out.transaction.cleanup.interval.ms={}", scan_interval.as_millis());
        let started = Command::new(SCRIPT)
            .args(["start", "--version", version, "--owner", &owner])
            .args(["--transaction-version", &level, "--property", &scan])
            .output()
            .expect("tests/services/kafka runs");
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        let told = String::from_utf8_lossy(&started.stdout);
        let mut lines = told.lines().map(str::to_owned);
        let bootstrap = lines.next().expect("the first line is host:port");
        let directory = lines.next().expect("the second line is the directory");
        Self { bootstrap, directory }
    }
}

impl Drop for RealKafka {
    fn drop(&mut self) {
        match Command::new(SCRIPT).args(["stop", &self.directory]).status() {
            Ok(status) if status.success() => {}
            failed => eprintln!("Kafka in {} was not stopped: {failed:?}", self.directory),
        }
    }
}
