//! On what, with what and by which command the figures were made: without it they are not worth keeping.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::{KAFKA_VERSION, in_sources};

/// Load per core above which figures are marked as disturbed.
const QUIET_LOAD_PER_CORE: f64 = 0.35;

/// The machine and the programs of one bench.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in GB of 10^9 bytes.
    pub memory_gb: f64,
    /// The kernel's release.
    pub kernel: String,
    /// The Java that runs broker and peer.
    pub java: String,
    /// The release of broker and peer.
    pub kafka: &'static str,
    /// Our version and commit.
    pub oncewire: String,
    /// Load average over a minute when the bench began.
    pub load_before: f64,
    /// The command that repeats it.
    pub command: String,
}

impl Machine {
    /// Looks.
    #[must_use]
    pub fn look() -> Self {
        Self {
            processor: value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_gb: value_of("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
                .map_or(0.0, |kilobytes| kilobytes * 1.024 / 1e6),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            java: java_version(),
            kafka: KAFKA_VERSION,
            oncewire: format!("{} {}", env!("CARGO_PKG_VERSION"), commit()),
            load_before: load(),
            command: command(),
        }
    }

    /// In two lines, with a warning where one is due.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!(
            "{} cores ({}), {:.0} GB, Linux {}, {}; Kafka {}; oncewire {}; load {:.1} at the start, {:.1} at the end\n{}",
            self.cores,
            self.processor,
            self.memory_gb,
            self.kernel,
            self.java,
            self.kafka,
            self.oncewire,
            self.load_before,
            load(),
            self.command
        );
        if !self.is_quiet() {
            text += "\nthe machine was busy when the bench began, which hits whoever needs more of it harder: keep neither figures nor ratios";
        }
        text
    }

    /// Whether others were at work when it began.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a few cores
    pub fn is_quiet(&self) -> bool {
        self.load_before <= QUIET_LOAD_PER_CORE * self.cores as f64
    }
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|one| one.parse().ok()).unwrap_or(0.0)
}

/// The value behind `key:` in a file of such lines.
fn value_of(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim_start().trim_start_matches(':').trim().to_owned())
}

fn java_version() -> String {
    let output = Command::new("java").arg("-version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("no java").replace('"', "")
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(in_sources(".")).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "of an unknown commit".to_owned(),
    }
}

fn command() -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(program) = words.first_mut() {
        *program = Path::new(program).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    }
    format!("cargo run --release -p {} -- {}", env!("CARGO_PKG_NAME"), words[1..].join(" ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_is() {
        let machine = Machine::look();
        assert!(machine.cores >= 1 && machine.memory_gb > 0.0, "{machine:?}");
        assert!(machine.describe().contains(KAFKA_VERSION));
    }
}
