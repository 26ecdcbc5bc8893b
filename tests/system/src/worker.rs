//! One distributed worker of a test: Java's, run by `tests/services/connect`, or ours. What can be done to the one can be done to the other.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::binary::oncewire;
use crate::process::{LOOK_EVERY, Process, Signal, send};
use crate::rest::Rest;
use crate::services::run;

/// Java takes 7 to 9 s on a quiet machine of two cores.
const START_PATIENCE: Duration = Duration::from_secs(90);
/// An orderly end: tasks get 5 s, the group and the producers as much again.
const STOP_PATIENCE: Duration = Duration::from_secs(40);
/// How often a starting worker is asked whether it answers.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Whose worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Kafka Connect 4.3.1.
    Java,
    /// `oncewire distributed`.
    Ours,
}

impl Kind {
    /// Whose worker stands beside Java's in the tests of the mixed cluster: ours, unless ONCEWIRE_MIXED_WITH=java, which proves the tests themselves.
    ///
    /// # Panics
    /// The variable has another value.
    pub fn beside_java() -> Self {
        match std::env::var("ONCEWIRE_MIXED_WITH").as_deref() {
            Ok("java") => Kind::Java,
            Ok("ours") | Err(_) => Kind::Ours,
            Ok(other) => panic!("ONCEWIRE_MIXED_WITH is {other}, neither java nor ours"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Java => "java",
            Kind::Ours => "ours",
        })
    }
}

/// How the last rebalance ended for a worker, by its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAssignment {
    /// The group's generation.
    pub generation: i64,
    /// The group protocol: `default`, `compatible` or `sessioned`.
    pub protocol: String,
    /// Milliseconds until all are to join again, because somebody is gone; 0: nobody is waited for.
    pub delay_ms: i64,
}

/// What a worker is started with.
#[derive(Clone, Debug)]
pub struct WorkerOptions<'a> {
    /// The broker's address.
    pub bootstrap: &'a str,
    /// The port of 127.0.0.1 for REST.
    pub port: u16,
    /// `worker.properties` but for what follows from the above.
    pub properties: &'a [(String, String)],
}

/// A running worker; it ends with the handle.
#[derive(Debug)]
pub struct Worker {
    kind: Kind,
    folder: PathBuf,
    rest: Rest,
    /// Ours only: Java's process is the script's.
    process: Option<Process>,
}

impl Worker {
    /// Starts a worker whose files are in `folder`, which must be new, and waits until it answers.
    ///
    /// # Panics
    /// It doesn't start; its log is shown.
    pub fn start(kind: Kind, folder: &Path, options: &WorkerOptions<'_>) -> Self {
        let rest = Rest::new(&format!("127.0.0.1:{}", options.port));
        let process = match kind {
            Kind::Java => {
                start_java(folder, options);
                None
            }
            Kind::Ours => Some(start_ours(folder, options)),
        };
        let mut worker = Worker { kind, folder: folder.to_owned(), rest, process };
        worker.wait_for_rest();
        worker
    }

    fn wait_for_rest(&mut self) {
        let deadline = Instant::now() + START_PATIENCE;
        while !self.rest.request("GET", "/connectors", None).is_ok_and(|answer| answer.status == 200) {
            let ended = self.process.as_mut().and_then(Process::ended);
            assert!(ended.is_none(), "the worker ended with {ended:?} while it started; it wrote:\n{}", self.log());
            assert!(Instant::now() < deadline, "no answer after {START_PATIENCE:?}; the worker wrote:\n{}", self.log());
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Whose it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its REST interface.
    pub fn rest(&self) -> &Rest {
        &self.rest
    }

    /// Its process id.
    ///
    /// # Panics
    /// The script has not told it.
    pub fn id(&self) -> u32 {
        match &self.process {
            Some(process) => process.id(),
            None => {
                let pid =
                    std::fs::read_to_string(self.folder.join("pid")).expect("the script writes a started worker's pid");
                pid.split(' ').next().and_then(|pid| pid.parse().ok()).expect("the pid comes first")
            }
        }
    }

    /// Everything it has logged.
    pub fn log(&self) -> String {
        match &self.process {
            Some(process) => process.log(),
            None => std::fs::read(self.folder.join("connect.log"))
                .map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).into_owned()),
        }
    }

    /// How its last rebalance ended; `None` before the first.
    pub fn last_assignment(&self) -> Option<LastAssignment> {
        let log = self.log();
        let after = |line: &str, what: &str| {
            let rest = line.split_once(what)?.1;
            Some(rest.split([' ', '"', ',', '.']).find(|word| !word.is_empty())?.to_owned())
        };
        let (generation, protocol, delay) = match self.kind {
            Kind::Java => {
                let line = log.lines().rfind(|line| line.contains("Joined group at generation"))?;
                let version = after(line, "protocol version ")?;
                let names = [("0", "default"), ("1", "compatible"), ("2", "sessioned")];
                let name = names.iter().find(|(number, _)| *number == version)?.1;
                (after(line, "at generation ")?, name.to_owned(), after(line, "rebalance delay: ")?)
            }
            Kind::Ours => {
                let line = log.lines().rfind(|line| line.contains(" assignment generation="))?;
                (after(line, "generation=")?, after(line, "protocol=")?, after(line, "delay_ms=")?)
            }
        };
        Some(LastAssignment { generation: generation.parse().ok()?, protocol, delay_ms: delay.parse().ok()? })
    }

    /// An orderly end.
    ///
    /// # Panics
    /// It takes too long, or ours ends with another code than 0.
    pub fn stop(mut self) -> String {
        match &mut self.process {
            Some(process) => {
                process.signal(Signal::Terminate);
                let status = process.wait(STOP_PATIENCE);
                assert_eq!(status.code(), Some(0), "an orderly end; the worker wrote:\n{}", process.log());
            }
            None => {
                self.script("stop");
            }
        }
        self.log()
    }

    /// SIGKILL.
    pub fn kill9(mut self) -> String {
        match &mut self.process {
            Some(process) => {
                process.kill9();
            }
            None => self.script("kill9"),
        }
        self.log()
    }

    /// SIGSTOP: the worker stands still and knows nothing of it.
    pub fn freeze(&self) {
        send(self.id(), Signal::Stop);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        send(self.id(), Signal::Continue);
    }

    fn script(&self, action: &str) {
        run("connect", &[action, self.folder.to_str().expect("test folders have text names")], "");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Ours ends with its `Process`.
        if self.process.is_none() && self.folder.join("pid").exists() {
            self.script("kill9");
        }
    }
}

fn start_java(folder: &Path, options: &WorkerOptions<'_>) {
    let owner = std::process::id().to_string();
    let port = options.port.to_string();
    let folder = folder.to_str().expect("test folders have text names");
    let mut arguments =
        vec!["start", "--quick", "--bootstrap", options.bootstrap, "--dir", folder, "--port", &port, "--owner", &owner];
    let properties: Vec<String> = options.properties.iter().map(|(key, value)| format!("{key}={value}")).collect();
    for property in &properties {
        arguments.extend(["--property", property]);
    }
    run("connect", &arguments, "");
}

fn start_ours(folder: &Path, options: &WorkerOptions<'_>) -> Process {
    std::fs::create_dir_all(folder).expect("the test's folder can be written");
    let mut text = format!("bootstrap.servers={}\nlisteners=http://127.0.0.1:{}\n", options.bootstrap, options.port);
    for (key, value) in options.properties {
        text.push_str(&format!("{key}={value}\n"));
    }
    let properties = folder.join("worker.properties");
    std::fs::write(&properties, text).expect("the test's folder can be written");
    let mut command = Command::new(oncewire());
    command.arg("distributed").arg(properties);
    Process::start(&mut command, &folder.join("oncewire.log")).expect("oncewire starts")
}

/// Waits for a condition.
///
/// # Panics
/// It does not come; `describe` says what there is instead.
pub fn wait_until(
    what: &str,
    patience: Duration,
    mut condition: impl FnMut() -> bool,
    describe: impl FnOnce() -> String,
) {
    let deadline = Instant::now() + patience;
    while !condition() {
        if Instant::now() >= deadline {
            panic!("{what}: not after {patience:?}; {}", describe());
        }
        std::thread::sleep(LOOK_EVERY * 25);
    }
}
