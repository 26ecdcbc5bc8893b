//! A process that the bench starts, with its output in a file, and how it is ended.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::children;

/// How long a process that was asked to stop may take.
const STOP_MAX: Duration = Duration::from_secs(60);

/// Last lines of a log that an error shows.
const LOG_LINES_MAX: usize = 8;

/// What Java answers SIGTERM with when it has ended in good order: 128 + 15.
const JAVA_STOPPED: i32 = 143;

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
    /// When it was started.
    pub started: Instant,
}

impl Process {
    /// Starts it, everything that it writes going to `log`.
    ///
    /// # Errors
    /// The log can't be made, or the program can't be started.
    pub fn start(command: &mut Command, log: PathBuf) -> Result<Self> {
        let out = File::create(&log).with_context(|| format!("can't make {}", log.display()))?;
        let started = Instant::now();
        let child = children::start(command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out));
        let child = child.with_context(|| format!("{} can't be started", command.get_program().display()))?;
        Ok(Self { child, log, started })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails when it has ended.
    ///
    /// # Errors
    /// It has; its log is shown.
    pub fn check_running(&mut self) -> Result<()> {
        if let Some(status) = children::ended(&mut self.child)? {
            bail!("the worker ended early with {status}; it wrote:\n{}", self.tail());
        }
        Ok(())
    }

    /// Asks it to stop in good order and waits.
    ///
    /// # Errors
    /// It does not end in time, or not well; its log is shown.
    pub fn stop(mut self) -> Result<()> {
        // The standard library sends no other signal than SIGKILL.
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$1\"", "sh", &self.id().to_string()]).status()?;
        ensure!(sent.success(), "the worker ended early; it wrote:\n{}", self.tail());
        let deadline = Instant::now() + STOP_MAX;
        while Instant::now() < deadline {
            if let Some(status) = children::ended(&mut self.child)? {
                ensure!(ended_well(status), "the worker ended with {status}; it wrote:\n{}", self.tail());
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the worker runs {STOP_MAX:?} after SIGTERM; it wrote:\n{}", self.tail());
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill9(mut self) -> Result<()> {
        children::kill(&mut self.child)?;
        Ok(())
    }

    /// What it wrote last.
    #[must_use]
    pub fn tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which is no error.
        let _ = children::kill(&mut self.child);
    }
}

fn ended_well(status: ExitStatus) -> bool {
    status.success() || status.code() == Some(JAVA_STOPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_fails_shows_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "trap 'echo no; exit 3' TERM; echo yes; while :; do sleep 0.01; done"]);
        let process = Process::start(&mut command, folder.path().join("log")).unwrap();
        while process.tail().is_empty() {
            std::thread::yield_now();
        }
        let error = process.stop().unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("yes\nno"), "{error}");
    }
}
