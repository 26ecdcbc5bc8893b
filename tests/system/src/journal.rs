//! What a long story did when, and all that helps to understand its failure: the seed, the steps, the end of every log.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::fleet::{read, tail};

/// Shown of each log.
const LOG_TAIL_LINES: usize = 60;

/// What was done when; printed as it happens. Clones write to one journal.
#[derive(Clone, Debug)]
pub struct Journal {
    began: Instant,
    began_ms: i64,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Journal {
    /// Times count from now on.
    pub fn begin() -> Self {
        let mut journal = Journal { began: Instant::now(), began_ms: 0, lines: Arc::default() };
        journal.restart();
        journal
    }

    /// Times count from now on, in this clone and those that are made of it.
    pub fn restart(&mut self) {
        self.began = Instant::now();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.began_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    }

    /// The time that has passed.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// A time in ms since 1970 as the seconds of the journal.
    pub fn seconds_of(&self, at_ms: i64) -> f64 {
        (at_ms - self.began_ms) as f64 / 1000.0
    }

    /// Writes a line.
    pub fn note(&self, text: &str) {
        let line = format!("{:>7.2} s {text}", self.elapsed().as_secs_f64());
        println!("{line}");
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// What is told of a failure.
#[derive(Debug)]
pub struct Evidence {
    /// Repeats the run.
    pub seed: u64,
    /// The steps.
    pub journal: Journal,
    /// All logs.
    pub logs: Vec<PathBuf>,
    /// Holds what the story wrote.
    pub folder: Option<TempDir>,
}

impl Evidence {
    /// The folder stays.
    pub fn keep(&mut self) {
        if let Some(folder) = self.folder.take() {
            println!("\nthe story's files are kept in {}", folder.keep().display());
        }
    }

    /// Prints everything.
    pub fn tell(&mut self) {
        for log in &self.logs {
            println!("\n== the end of {}\n{}", log.display(), tail(&read(log), LOG_TAIL_LINES));
        }
        self.keep();
        println!("\nONCEWIRE_SEED={} repeats the plan. What happened:", self.seed);
        for line in self.journal.lines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            println!("{line}");
        }
    }
}
