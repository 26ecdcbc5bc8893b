//! A group of distributed workers, ours or Java's, on the same properties and started in the same way: the program itself, without a script
//! around it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::rest::Rest;
use crate::broker::Broker;
use crate::process::Process;
use crate::run::Side;
use crate::{KAFKA_VERSION, in_sources, progress};

/// How long a worker may take from its start until it lists connectors.
const READY_MAX: Duration = Duration::from_secs(120);

/// While something is waited for: what is measured takes many of these.
pub const LOOK_EVERY: Duration = Duration::from_millis(5);

/// While a whole group is watched: the states of a thousand connectors cost something to tell.
const STEADY_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Below the range from which Linux takes ports for outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// How each side is started.
#[derive(Debug)]
pub struct Programs {
    oncewire: PathBuf,
    java: Option<JavaWorker>,
}

/// A Java worker's command line but for its properties file, and the folder with the sequence connector.
#[derive(Debug)]
struct JavaWorker {
    command: Vec<String>,
    plugin_path: String,
}

impl Programs {
    /// Our binary, and the command by which `tests/services/connect` starts Java's worker: it is started once for that.
    ///
    /// # Errors
    /// One can't be had.
    pub fn find(broker: &Broker, with_java: bool) -> Result<Self> {
        let oncewire = crate::worker::binary()?;
        let java = if with_java { Some(JavaWorker::find(broker.bootstrap())?) } else { None };
        Ok(Self { oncewire, java })
    }

    /// The sides that can be measured.
    #[must_use]
    pub fn sides(&self) -> Vec<Side> {
        if self.java.is_some() { vec![Side::Oncewire, Side::Java] } else { vec![Side::Oncewire] }
    }

    fn command(&self, side: Side, properties: &PathBuf) -> Result<Command> {
        if side == Side::Oncewire {
            let mut command = Command::new(&self.oncewire);
            command.arg("distributed").arg(properties);
            return Ok(command);
        }
        let java = self.java.as_ref().context("Java's worker was left out")?;
        let mut command = Command::new(&java.command[0]);
        command.args(&java.command[1..]).arg(properties);
        Ok(command)
    }
}

impl JavaWorker {
    fn find(bootstrap: &str) -> Result<Self> {
        progress("starting Kafka Connect once, for its command line");
        let folder = tempfile::Builder::new().prefix("oncewire-bench-connect-").tempdir()?;
        let dir = folder.path().join("worker");
        let (dir_text, owner) = (dir.display().to_string(), std::process::id().to_string());
        let start = ["start", "--bootstrap", bootstrap, "--dir", &dir_text, "--group", "bench-distributed-command"];
        connect(&[&start[..], &["--version", KAFKA_VERSION, "--owner", &owner]].concat())?;
        connect(&["kill9", &dir_text])?;
        let mut command: Vec<String> =
            fs::read_to_string(dir.join("command"))?.lines().map(ToOwned::to_owned).collect();
        let properties = command.pop().unwrap_or_default();
        ensure!(command.len() > 1 && properties.ends_with("worker.properties"), "{dir_text}/command has no such end");
        let properties = fs::read_to_string(properties)?;
        let path = properties.lines().find_map(|line| line.strip_prefix("plugin.path="));
        let (_, sequence) = path.and_then(|path| path.rsplit_once(',')).context("no sequence connector for Java")?;
        Ok(Self { command, plugin_path: sequence.to_owned() })
    }
}

fn connect(arguments: &[&str]) -> Result<()> {
    let script = in_sources("../services/connect");
    let status = Command::new(&script).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("{} can't be run", script.display()))?;
    ensure!(status.success(), "{} {} ended with {status}", script.display(), arguments.join(" "));
    Ok(())
}

/// Workers with one `group.id`.
#[derive(Debug)]
pub struct Group<'a> {
    programs: &'a Programs,
    /// Whose workers.
    pub side: Side,
    /// `group.id`; also names its topics.
    pub name: String,
    properties: String,
    started: u32,
    folder: TempDir,
}

/// One worker of a group. Dropping it kills it.
#[derive(Debug)]
pub struct Member {
    /// Its process.
    pub process: Process,
    /// Its REST interface.
    pub rest: Rest,
}

impl<'a> Group<'a> {
    /// A group without workers; `properties` go beside the least that a worker needs. Its files are kept where `keep` says.
    ///
    /// # Errors
    /// Its folder can't be made.
    pub fn new(
        programs: &'a Programs,
        side: Side,
        bootstrap: &str,
        name: &str,
        properties: &[(&str, &str)],
        keep: Option<&Path>,
    ) -> Result<Self> {
        let mut folder = tempfile::Builder::new();
        let folder = match keep {
            None => folder.prefix("oncewire-bench-group-").tempdir()?,
            Some(keep) => {
                fs::create_dir_all(keep)?;
                folder.prefix(&format!("{name}-")).disable_cleanup(true).tempdir_in(keep)?
            }
        };
        let own = properties.iter().map(|(key, value)| format!("{key}={value}\n")).collect::<String>();
        let java = programs.java.as_ref().filter(|_| side == Side::Java);
        let plugins = java.map(|java| format!("plugin.path={}\n", java.plugin_path)).unwrap_or_default();
        let properties = format!(
            "bootstrap.servers={bootstrap}\ngroup.id={name}\n\
             key.converter=org.apache.kafka.connect.storage.StringConverter\n\
             value.converter=org.apache.kafka.connect.storage.StringConverter\n\
             offset.storage.topic={name}-offsets\noffset.storage.replication.factor=1\n\
             config.storage.topic={name}-configs\nconfig.storage.replication.factor=1\n\
             status.storage.topic={name}-status\nstatus.storage.replication.factor=1\n\
             exactly.once.source.support=enabled\n{own}{plugins}"
        );
        Ok(Self { programs, side, name: name.to_owned(), properties, started: 0, folder })
    }

    /// Starts a worker on a free port and does not wait.
    ///
    /// # Errors
    /// It can't be started.
    pub fn start(&mut self) -> Result<Member> {
        self.started += 1;
        let port = free_port()?;
        let file = self.folder.path().join(format!("worker-{}.properties", self.started));
        fs::write(&file, format!("{}listeners=http://127.0.0.1:{port}\n", self.properties))?;
        let mut command = self.programs.command(self.side, &file)?;
        let process = Process::start(&mut command, self.folder.path().join(format!("worker-{}.log", self.started)))?;
        Ok(Member { process, rest: Rest { worker_id: format!("127.0.0.1:{port}") } })
    }

    /// Starts a worker and waits until it lists connectors.
    ///
    /// # Errors
    /// It doesn't.
    pub fn start_ready(&mut self) -> Result<Member> {
        let mut member = self.start()?;
        member
            .wait_until("lists connectors", READY_MAX, LOOK_EVERY, |rest| rest.answers("/connectors").then_some(()))?;
        Ok(member)
    }

    /// The topics that its workers have made.
    #[must_use]
    pub fn topics(&self) -> Vec<String> {
        ["offsets", "configs", "status"].map(|kind| format!("{}-{kind}", self.name)).to_vec()
    }
}

impl Member {
    /// Asks until there is an answer; when it came, counted from the process's start.
    ///
    /// # Errors
    /// The process ends, or the answer does not come in time.
    pub fn wait_until<T>(
        &mut self,
        what: &str,
        patience: Duration,
        every: Duration,
        mut answer: impl FnMut(&Rest) -> Option<T>,
    ) -> Result<(Duration, T)> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(answer) = answer(&self.rest) {
                return Ok((self.process.started.elapsed(), answer));
            }
            self.process.check_running()?;
            if Instant::now() > deadline {
                bail!("{what}: not within {patience:?}; the worker wrote:\n{}", self.process.tail());
            }
            std::thread::sleep(every);
        }
    }

    /// Waits until a condition holds and has held for a while; when it began to.
    ///
    /// # Errors
    /// As [`Member::wait_until`].
    pub fn wait_until_steady(
        &mut self,
        what: &str,
        patience: Duration,
        hold: Duration,
        mut condition: impl FnMut(&Rest) -> Option<bool>,
    ) -> Result<Instant> {
        let mut since = None;
        let (_, since) = self.wait_until(what, patience, STEADY_LOOK_EVERY, |rest| {
            let now = Instant::now();
            if condition(rest) != Some(true) {
                since = None;
                return None;
            }
            since.get_or_insert(now).elapsed().gt(&hold).then_some(since?)
        })?;
        Ok(since)
    }
}

fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Benches that run side by side begin at different places.
    let first = u16::try_from(std::process::id() % u32::from(count)).unwrap_or(0);
    for _ in 0..count {
        let place = (first + NEXT.fetch_add(1, Ordering::Relaxed) % count) % count;
        let port = PORTS.start + place;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port of {PORTS:?} is free on 127.0.0.1")
}
