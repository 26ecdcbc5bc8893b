//! The demo from its first line to its table.

use super::DemoArgs;
use super::killer::{Dice, kill_points};
use super::reader::{Seen, line, read};
use crate::exit::{Exit, Stop};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use oncewire_audit::{AuditPlan, Check, OffsetsPlan, Report, audit};
use oncewire_client::admin::{Admin, NewTopic};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_dev_broker::{DevBroker, DevBrokerConfig};
use std::collections::BTreeMap;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const CONNECTOR: &str = "demo";

/// A kill waits up to so long after its point was reached, so that it strikes at any moment of a transaction.
const JITTER_MAX_MICROS: u64 = 8_000;

type Reading = (watch::Receiver<Seen>, JoinHandle<Result<(), String>>);

/// Everything that the demo owns, and has to put away.
pub(crate) struct Story {
    args: DemoArgs,
    dice: Dice,
    seed: u64,
    folder: tempfile::TempDir,
    broker: Option<DevBroker>,
    bootstrap: String,
    cluster: Cluster,
    topic: String,
    group: String,
    worker: Option<Child>,
    workers: u64,
    reader: Option<Reading>,
}

impl Story {
    /// Starts or reaches the broker, writes the files, makes the topic.
    pub(crate) async fn prepare(args: DemoArgs) -> Result<Self, Stop> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = args.seed.unwrap_or_else(|| u64::from(since.subsec_nanos()) | 1);
        let run = format!("{:x}", since.as_micros());
        let (topic, group) = (format!("oncewire-demo-{run}"), format!("oncewire-demo-group-{run}"));
        let folder = tempfile::Builder::new().prefix("oncewire-demo-").tempdir().map_err(|error| {
            Stop::not_started(format!(
                "can't make a working folder: {error}; set TMPDIR to a place that can be written"
            ))
        })?;
        let broker = match args.bootstrap_server {
            Some(_) => None,
            None => Some(start_broker().await?),
        };
        let bootstrap = match (&args.bootstrap_server, &broker) {
            (Some(given), _) => given.clone(),
            (None, Some(broker)) => broker.bootstrap(),
            (None, None) => return Err(Stop::not_started("no broker")),
        };
        let mut client = ClientConfig::new(&bootstrap).map_err(|error| Stop::usage(error.to_string()))?;
        client.default_api_timeout = Duration::from_secs(15);
        let cluster = Cluster::connect_aloud(client).await.map_err(|error| Stop::not_started(error.to_string()))?;
        let new_topic =
            NewTopic { name: topic.clone(), partitions: Some(1), replication_factor: None, configs: BTreeMap::new() };
        let made = Admin::new(cluster.clone()).create_topic(&new_topic).await;
        made.map_err(|error| Stop::not_started(format!("topic {topic:?} can't be made: {error}")))?;
        let dice = Dice::new(seed);
        let story = Self {
            args,
            dice,
            seed,
            folder,
            broker,
            bootstrap,
            cluster,
            topic,
            group,
            worker: None,
            workers: 0,
            reader: None,
        };
        story.write_configs()?;
        Ok(story)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write_configs(&self) -> Result<(), Stop> {
        let worker = format!(
            "bootstrap.servers={}\ngroup.id={}\nkey.converter=String\nvalue.converter=String\noffset.storage.partitions=1\n",
            self.bootstrap, self.group
        );
        let connector = format!(
            "name={CONNECTOR}\nconnector.class=FileStreamSource\nfile={}\ntopic={}\nbatch.size={}\n",
            self.path("lines.txt").display(),
            self.topic,
            self.args.batch_size
        );
        for (name, text) in [("worker.properties", worker), ("connector.properties", connector)] {
            std::fs::write(self.path(name), text)
                .map_err(|error| Stop::not_started(format!("{}: {error}", self.path(name).display())))?;
        }
        Ok(())
    }

    /// The demo itself.
    pub(crate) async fn tell(&mut self) -> Result<Exit, Stop> {
        let (lines, kills) = (self.args.lines, self.args.kills);
        say(&match &self.args.bootstrap_server {
            None => format!("Embedded broker on {} (in memory, real protocol).", self.bootstrap),
            Some(given) => format!("Broker {given}, topic {}.", self.topic),
        });
        write_lines(&self.path("lines.txt"), lines)?;
        say(&format!("{lines} lines of 84 bytes lie in {}.", self.path("lines.txt").display()));
        say(&format!(
            "A worker streams them, {kills} times SIGKILL ends it, a read_committed reader counts (seed {})…",
            self.seed
        ));
        let (sender, seen) = watch::channel(Seen::default());
        let reading = tokio::spawn(read(self.cluster.clone(), self.topic.clone(), sender));
        self.reader = Some((seen.clone(), reading));
        let bar = bar(lines);
        let began = Instant::now();
        let streamed = self.stream(seen, &bar).await;
        let took = began.elapsed();
        bar.finish_and_clear();
        let killed = streamed?;
        self.kill_worker().await;
        say("Everything is visible. The auditor reads both isolation levels, the file and the offsets…");
        let report = self.audit().await?;
        self.show(&report, killed, took);
        if report.is_content() {
            say(&format!("Every line once, in order, and the stored offset agrees. {}", self.what_next()));
            return Ok(Exit::Done);
        }
        println!("{report}");
        Ok(Exit::NotContent)
    }

    /// Returns how often a worker was killed in the middle of its work.
    async fn stream(&mut self, mut seen: watch::Receiver<Seen>, bar: &ProgressBar) -> Result<u64, Stop> {
        let lines = self.args.lines;
        let points = kill_points(lines, self.args.kills, &mut self.dice);
        let mut killed = 0;
        for point in points {
            self.start_worker()?;
            self.until(&mut seen, point, bar).await?;
            tokio::time::sleep(Duration::from_micros(self.dice.below(JITTER_MAX_MICROS))).await;
            if seen.borrow().lines >= lines {
                break;
            }
            self.kill_worker().await;
            killed += 1;
            bar.set_message(format!("{killed} killed"));
        }
        if self.worker.is_none() {
            self.start_worker()?;
        }
        self.until(&mut seen, lines, bar).await?;
        Ok(killed)
    }

    async fn until(&mut self, seen: &mut watch::Receiver<Seen>, point: u64, bar: &ProgressBar) -> Result<(), Stop> {
        loop {
            let now = seen.borrow_and_update().clone();
            bar.set_position(now.lines);
            if let Some(fault) = now.fault {
                return Err(Stop { exit: Exit::NotContent, message: format!("the reader met a fault: {fault}") });
            }
            if now.lines >= point {
                return Ok(());
            }
            let Some(worker) = &mut self.worker else { return Err(Stop::failed("no worker runs")) };
            tokio::select! {
                changed = seen.changed() => {
                    if changed.is_err() {
                        return Err(self.reader_problem().await);
                    }
                }
                ended = worker.wait() => {
                    let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                    self.worker = None;
                    return Err(Stop::failed(format!("a worker ended by itself ({how}): {}", self.last_words())));
                }
            }
        }
    }

    async fn reader_problem(&mut self) -> Stop {
        let said = match self.reader.take() {
            Some((_, reading)) => reading.await.unwrap_or_else(|error| Err(error.to_string())),
            None => Ok(()),
        };
        Stop::failed(format!("the reader ended: {}", said.err().unwrap_or_default()))
    }

    fn start_worker(&mut self) -> Result<(), Stop> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path("worker.log"));
        let named = |error: std::io::Error| Stop::failed(format!("{}: {error}", self.path("worker.log").display()));
        let log = log.map_err(named)?;
        let log_too = log.try_clone().map_err(named)?;
        let child = Command::new(this_program())
            .arg("standalone")
            .args([self.path("worker.properties"), self.path("connector.properties")])
            // Not null: an empty root directory has no /dev/null to open.
            .stdin(Stdio::piped())
            .stdout(log_too)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Stop::failed(format!("can't start a worker process: {error}")))?;
        self.worker = Some(child);
        self.workers += 1;
        Ok(())
    }

    /// SIGKILL, and waits for the end.
    async fn kill_worker(&mut self) {
        if let Some(mut worker) = self.worker.take()
            && let Err(error) = worker.kill().await
        {
            tracing::warn!("a worker can't be killed: {error}");
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.path("worker.log")).unwrap_or_default();
        log.lines().last().unwrap_or("it said nothing").to_owned()
    }

    async fn audit(&self) -> Result<Report, Stop> {
        let plan = AuditPlan {
            topic: self.topic.clone(),
            check: Check::Lines(self.path("lines.txt")),
            offsets: Some(OffsetsPlan { topic: format!("{}-offsets", self.group), connector: CONNECTOR.to_owned() }),
            timeout: Duration::from_secs(self.args.timeout),
        };
        audit(&self.cluster, &plan, |_| {}).await.map_err(|error| Stop::failed(error.to_string()))
    }

    fn show(&self, report: &Report, killed: u64, took: Duration) {
        let faults: BTreeMap<&str, u64> =
            report.content.faults().iter().map(|(name, tally)| (*name, tally.count)).collect();
        let rate = self.args.lines as f64 / took.as_secs_f64().max(0.001);
        let rows = [
            ("lines in the file", self.args.lines.to_string()),
            ("records written", report.records.in_log.to_string()),
            ("of them aborted", report.records.aborted.to_string()),
            ("visible (read_committed)", report.records.visible.to_string()),
            ("duplicates", faults.get("duplicates").copied().unwrap_or(0).to_string()),
            ("gaps", faults.get("gaps").copied().unwrap_or(0).to_string()),
            ("out of order", faults.get("out of order").copied().unwrap_or(0).to_string()),
            ("workers killed with SIGKILL", killed.to_string()),
            ("worker processes", self.workers.to_string()),
            ("time, starts and kills included", format!("{:.1} s", took.as_secs_f64())),
            ("records/s", format!("{rate:.0}")),
        ];
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        for (name, figure) in rows {
            table.add_row([name.to_owned(), figure]);
        }
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        println!("{table}");
    }

    fn what_next(&self) -> String {
        let program = called_as();
        match self.args.bootstrap_server {
            None => format!(
                "Try next:\n  {program} demo --bootstrap-server localhost:9092     the same on your cluster\n  \
                 {program} demo --lines 3000000 --kills 50             longer\n  \
                 {program} standalone worker.properties file.properties   your own file; README.md shows the two files"
            ),
            Some(_) => format!(
                "Try next:\n  {program} standalone worker.properties file.properties   your own file; README.md shows the two files\n  \
                 {program} verify --help                                audit a topic of yours"
            ),
        }
    }

    /// Puts everything away, whatever happened before.
    pub(crate) async fn clean_up(mut self) {
        self.kill_worker().await;
        if let Some((seen, reading)) = self.reader.take() {
            drop(seen);
            reading.abort();
        }
        if self.args.keep {
            say(&format!(
                "Left behind: {}, topics {} and {}-offsets.",
                self.folder.path().display(),
                self.topic,
                self.group
            ));
            self.folder.disable_cleanup(true);
        } else if self.args.bootstrap_server.is_some() {
            let admin = Admin::new(self.cluster.clone());
            for topic in [self.topic.clone(), format!("{}-offsets", self.group)] {
                if let Err(error) = admin.delete_topic(&topic).await {
                    tracing::warn!("topic {topic} is left behind: {error}");
                }
            }
        }
        self.cluster.close().await;
        if let Some(broker) = self.broker.take() {
            broker.shutdown().await;
        }
    }
}

async fn start_broker() -> Result<DevBroker, Stop> {
    let config = DevBrokerConfig { listen: ([127, 0, 0, 1], 0).into(), ..DevBrokerConfig::default() };
    DevBroker::start(config)
        .await
        .map_err(|error| Stop::not_started(format!("the embedded broker can't start: {error}")))
}

/// This binary, for the worker processes. Without /proc (an empty root directory) the name it was called by has to do.
fn this_program() -> PathBuf {
    std::env::current_exe()
        .unwrap_or_else(|_| std::env::args_os().next().map(PathBuf::from).unwrap_or_else(|| "oncewire".into()))
}

/// How a person calls this program again: through cargo from a clone, by its name where it is installed.
fn called_as() -> &'static str {
    let name = std::env::args_os().next().unwrap_or_default();
    let from_clone = Path::new(&name).components().any(|part| part.as_os_str() == "target");
    if from_clone { "cargo run --release --" } else { "oncewire" }
}

fn write_lines(path: &Path, lines: u64) -> Result<(), Stop> {
    let failed = |error: std::io::Error| Stop::not_started(format!("{} can't be written: {error}", path.display()));
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path).map_err(failed)?);
    for number in 1..=lines {
        out.write_all(line(number).as_bytes()).map_err(failed)?;
    }
    out.flush().map_err(failed)
}

fn say(text: &str) {
    println!("{text}");
}

fn bar(lines: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} lines visible, {per_sec}, {msg}");
    let bar = ProgressBar::with_draw_target(Some(lines), ProgressDrawTarget::stderr());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
