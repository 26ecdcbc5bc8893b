//! Distributed workers of ours, each behind proxies of its own, under a supervisor as in production: who has ended is started again, and that is counted.
//!
//! ```text
//! worker n ──► link n/broker 1..3 ──► brokers
//! others   ──► link rest n        ──► worker n
//! test     ──────────────────────► worker n
//! ```
//!
//! Unlike [`crate::connect_cluster`] nothing here waits or panics for a worker that is in trouble: trouble is what the test makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::binary::oncewire;
use crate::process::{Process, Signal};
use crate::rest::Rest;
use crate::target::free_low_port;

/// From SIGTERM until the end: a worker gives up what it can't do in order, and each of these has its limit.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// The workers.
#[derive(Debug)]
pub struct Fleet {
    members: Vec<Member>,
}

/// What one worker has to itself.
#[derive(Debug)]
pub struct MemberOptions {
    /// Of the brokers, as this worker sees them.
    pub bootstrap: String,
    /// The port under which the other workers find it.
    pub advertised_port: u16,
    /// Its files.
    pub folder: PathBuf,
}

#[derive(Debug)]
struct Member {
    port: u16,
    properties: PathBuf,
    folder: PathBuf,
    process: Option<Process>,
    /// A killed worker is down until it is started; an ended one is started by the supervisor.
    wanted: bool,
    /// When it was asked to end.
    stopped_at: Option<Instant>,
    logs: Vec<PathBuf>,
    ended: Vec<Ended>,
}

/// A worker that ended although nobody wanted it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its place.
    pub slot: usize,
    /// How it ended.
    pub how: String,
    /// Whether it had served REST before: if not, it gave up its start.
    pub served: bool,
    /// Its last lines.
    pub tail: String,
}

impl Fleet {
    /// Nobody runs yet. `properties` are those that all share.
    ///
    /// # Panics
    /// The files can't be written.
    pub fn new(members: Vec<MemberOptions>, properties: &[(&str, &str)]) -> Self {
        let members = members.into_iter().map(|member| {
            let port = free_low_port();
            let own = [
                ("bootstrap.servers", member.bootstrap),
                ("listeners", format!("http://127.0.0.1:{port}")),
                ("rest.advertised.host.name", "127.0.0.1".to_owned()),
                ("rest.advertised.port", member.advertised_port.to_string()),
            ];
            let own = own.iter().map(|(key, value)| format!("{key}={value}\n"));
            let text: String = own.chain(properties.iter().map(|(key, value)| format!("{key}={value}\n"))).collect();
            std::fs::create_dir_all(&member.folder).expect("the test's folder can be written");
            let properties = member.folder.join("worker.properties");
            std::fs::write(&properties, text).expect("the test's folder can be written");
            Member {
                port,
                properties,
                folder: member.folder,
                process: None,
                wanted: false,
                stopped_at: None,
                logs: Vec::new(),
                ended: Vec::new(),
            }
        });
        Fleet { members: members.collect() }
    }

    /// How many places there are.
    pub fn slots(&self) -> usize {
        self.members.len()
    }

    /// A worker's REST interface, past all proxies.
    pub fn rest(&self, slot: usize) -> Rest {
        Rest::new(&self.address(slot))
    }

    /// Where a worker really serves REST.
    pub fn address(&self, slot: usize) -> String {
        format!("127.0.0.1:{}", self.members[slot].port)
    }

    /// Starts a worker unless it runs; one that is on its way to its end is started by the supervisor when it is there.
    ///
    /// # Panics
    /// The program can't be run.
    pub fn start(&mut self, slot: usize) {
        let member = &mut self.members[slot];
        member.wanted = true;
        if member.process.is_some() {
            return;
        }
        let log = member.folder.join(format!("run-{}.log", member.logs.len() + 1));
        let mut command = Command::new(oncewire());
        command.arg("distributed").arg(&member.properties);
        member.process = Some(Process::start(&mut command, &log).expect("oncewire starts"));
        member.logs.push(log);
    }

    /// SIGKILL, if it runs.
    pub fn kill9(&mut self, slot: usize) {
        self.note_ended(slot);
        let member = &mut self.members[slot];
        (member.wanted, member.stopped_at) = (false, None);
        if let Some(mut process) = member.process.take() {
            process.kill9();
        }
    }

    /// SIGTERM, if it runs; it ends when it has done all in order.
    pub fn stop(&mut self, slot: usize) {
        self.signal(slot, Signal::Terminate);
        let member = &mut self.members[slot];
        member.wanted = false;
        member.stopped_at = member.process.is_some().then(Instant::now);
    }

    /// Freezes a worker, if it runs.
    pub fn freeze(&mut self, slot: usize) {
        self.signal(slot, Signal::Stop);
    }

    /// Thaws it.
    pub fn thaw(&mut self, slot: usize) {
        self.signal(slot, Signal::Continue);
    }

    fn signal(&mut self, slot: usize, signal: Signal) {
        self.note_ended(slot);
        if let Some(process) = &self.members[slot].process {
            process.signal(signal);
        }
    }

    /// Starts who has ended.
    ///
    /// # Panics
    /// A worker that was asked to end does not.
    pub fn supervise(&mut self) {
        for slot in 0..self.members.len() {
            self.note_ended(slot);
            if self.members[slot].wanted {
                self.start(slot);
            }
        }
    }

    fn note_ended(&mut self, slot: usize) {
        let member = &mut self.members[slot];
        let Some(status) = member.process.as_mut().and_then(Process::ended) else {
            let late = member.stopped_at.is_some_and(|at| at.elapsed() > STOP_PATIENCE);
            let log = || member.process.as_ref().map(Process::log).unwrap_or_default();
            assert!(!late, "worker {slot} runs {STOP_PATIENCE:?} after SIGTERM; it wrote:\n{}", tail(&log(), 40));
            return;
        };
        let log = member.process.take().map(|process| process.log()).unwrap_or_default();
        if member.stopped_at.take().is_some() && status.success() {
            return;
        }
        let ended = Ended { slot, how: status.to_string(), served: log.contains("assignment "), tail: tail(&log, 5) };
        member.ended.push(ended);
    }

    /// All that have ended by themselves.
    pub fn ended(&self) -> Vec<Ended> {
        self.members.iter().flat_map(|member| member.ended.clone()).collect()
    }

    /// Ends all in order.
    ///
    /// # Panics
    /// One takes too long, or ends with another code than 0.
    pub fn stop_all(&mut self, patience: Duration) {
        for member in &mut self.members {
            member.wanted = false;
            let Some(process) = &mut member.process else { continue };
            process.signal(Signal::Terminate);
            let status = process.wait(patience);
            assert_eq!(status.code(), Some(0), "an orderly end; the worker wrote:\n{}", tail(&process.log(), 40));
            member.process = None;
        }
    }

    /// The logs of all runs.
    pub fn logs(&self) -> Vec<PathBuf> {
        self.members.iter().flat_map(|member| member.logs.clone()).collect()
    }

    /// How many times the group has been balanced anew: the generations that any worker was assigned in.
    pub fn rebalances(&self) -> usize {
        let logs = self.logs();
        let generations = logs.iter().flat_map(|log| {
            let log = read(log);
            let lines = log.lines().filter(|line| line.contains(" assignment generation="));
            let generation = |line: &str| line.split("generation=").nth(1)?.split(' ').next()?.parse::<i64>().ok();
            lines.filter_map(generation).collect::<Vec<_>>()
        });
        generations.collect::<std::collections::BTreeSet<_>>().len()
    }
}

/// A log's text.
pub fn read(log: &Path) -> String {
    std::fs::read(log).map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).into_owned())
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
