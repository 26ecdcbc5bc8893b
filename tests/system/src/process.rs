//! A child process of a test: its standard error in a file, its end awaited with a deadline, signals by name.
//!
//! Nothing outlives the test: dropping the handle kills the process, stopped or not.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a condition is looked at while it is awaited.
pub const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A signal that a test sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Asks for an orderly end.
    Terminate,
    /// Freezes the process.
    Stop,
    /// Thaws it.
    Continue,
}

/// Sends a signal to a process that the test started, itself or by a script.
///
/// # Panics
/// The process is gone.
pub(crate) fn send(pid: u32, signal: Signal) {
    let name = match signal {
        Signal::Terminate => "-TERM",
        Signal::Stop => "-STOP",
        Signal::Continue => "-CONT",
    };
    let sent = Command::new("sh").args(["-c", "kill \"$1\" \"$2\"", "sh", name, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "process {pid} is there to get {signal:?}");
}

/// A running child.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; its standard error goes to the new file `log`, its standard output to nowhere.
    ///
    /// # Errors
    /// The log cannot be made or the program cannot be started.
    pub fn start(command: &mut Command, log: &Path) -> io::Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log)?).spawn()?;
        Ok(Process { child, log: log.to_owned() })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything it wrote to standard error so far.
    pub fn log(&self) -> String {
        fs::read(&self.log).map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).into_owned())
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// The process is gone.
    pub fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// SIGKILL, and waits for the end.
    ///
    /// # Panics
    /// The kernel refuses.
    pub fn kill9(&mut self) -> ExitStatus {
        self.child.kill().expect("a child that was not waited for can be killed");
        self.child.wait().expect("a child can be waited for")
    }

    /// How it ended, if it did.
    ///
    /// # Panics
    /// The kernel refuses.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// It does not come in time; the log is shown.
    pub fn wait(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "process {} runs after {patience:?}; it wrote:\n{}",
                self.id(),
                self.log()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill9();
        }
    }
}
