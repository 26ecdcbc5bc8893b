//! A group of distributed workers in slots: whoever is in a slot has its port, so that a Java worker can be replaced by ours and back.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::rest::{Rest, Status};
use crate::target::free_low_port;
use crate::worker::{Kind, Worker, WorkerOptions, wait_until};

/// A worker that is killed is missed after this.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

/// Long enough for a group that cannot agree to show it.
const QUIET: Duration = Duration::from_secs(3);

/// What a cluster of Java workers alone logs as errors when its tasks are moved, restarted or stopped. A task that is to stop may be waiting for the
/// leader to fence its predecessors, or for its own worker to say that it may start, while that worker's only thread waits for a task of its own to
/// stop: after five seconds both are given up, and what they wait for fails late.
const OF_JAVA_ALONE: [&str; 3] =
    ["Graceful stop of task", "Failed to fetch offsets from namespace", "' restart failed"];

/// The group.
#[derive(Debug)]
pub struct ConnectCluster {
    bootstrap: String,
    group: String,
    properties: Vec<(String, String)>,
    slots: Vec<Slot>,
    /// Logs of workers that have ended, with their kind.
    ended: Vec<(Kind, String)>,
    started: u32,
    folder: Option<TempDir>,
}

#[derive(Debug)]
struct Slot {
    port: u16,
    worker: Option<Worker>,
}

impl ConnectCluster {
    /// A group without workers, with exactly-once source support and without delay for departed workers.
    ///
    /// # Panics
    /// No temporary folder can be made.
    pub fn new(group: &str, bootstrap: &str, slots: usize) -> Self {
        let folder =
            tempfile::Builder::new().prefix("oncewire-connect-").tempdir().expect("a temporary folder can be made");
        let session_timeout_ms = SESSION_TIMEOUT.as_millis().to_string();
        let string = "org.apache.kafka.connect.storage.StringConverter";
        let properties = [
            ("group.id", group),
            ("key.converter", string),
            ("value.converter", string),
            ("offset.storage.topic", &format!("{group}-offsets")),
            ("offset.storage.replication.factor", "1"),
            ("offset.storage.partitions", "3"),
            ("config.storage.topic", &format!("{group}-configs")),
            ("config.storage.replication.factor", "1"),
            ("status.storage.topic", &format!("{group}-status")),
            ("status.storage.replication.factor", "1"),
            ("status.storage.partitions", "2"),
            ("exactly.once.source.support", "enabled"),
            ("connector.client.config.override.policy", "All"),
            ("scheduled.rebalance.max.delay.ms", "0"),
            ("session.timeout.ms", &session_timeout_ms),
            ("heartbeat.interval.ms", "1000"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
        ConnectCluster {
            bootstrap: bootstrap.to_owned(),
            group: group.to_owned(),
            properties: properties.to_vec(),
            slots: (0..slots).map(|_| Slot { port: free_low_port(), worker: None }).collect(),
            ended: Vec::new(),
            started: 0,
            folder: Some(folder),
        }
    }

    /// Sets a property for workers that are started from now on.
    pub fn set(&mut self, key: &str, value: &str) {
        self.properties.retain(|(known, _)| known != key);
        self.properties.push((key.to_owned(), value.to_owned()));
    }

    /// The topic with all source offsets.
    pub fn offsets_topic(&self) -> String {
        format!("{}-offsets", self.group)
    }

    /// The topic with all states.
    pub fn status_topic(&self) -> String {
        format!("{}-status", self.group)
    }

    /// A path for a file of the test.
    ///
    /// # Panics
    /// Never: the folder is there as long as the cluster.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().expect("the folder stays until the cluster is dropped").path().join(name)
    }

    /// Starts a worker in an empty slot.
    ///
    /// # Panics
    /// It doesn't start.
    pub fn start(&mut self, slot: usize, kind: Kind) {
        self.started += 1;
        let folder = self.path(&format!("{}-slot-{slot}-{kind}", self.started));
        let place = &mut self.slots[slot];
        assert!(place.worker.is_none(), "slot {slot} is empty");
        let options = WorkerOptions { bootstrap: &self.bootstrap, port: place.port, properties: &self.properties };
        place.worker = Some(Worker::start(kind, &folder, &options));
    }

    /// Starts workers in several empty slots at once.
    ///
    /// # Panics
    /// One doesn't start.
    pub fn start_all(&mut self, kinds: &[Kind]) {
        let started = self.started;
        let folders: Vec<_> =
            (0..kinds.len()).map(|slot| self.path(&format!("{}-slot-{slot}-{}", started, kinds[slot]))).collect();
        self.started += 1;
        let (bootstrap, properties) = (&self.bootstrap, &self.properties);
        std::thread::scope(|scope| {
            for ((slot, kind), folder) in self.slots.iter_mut().zip(kinds).zip(&folders) {
                scope.spawn(move || {
                    let options = WorkerOptions { bootstrap, port: slot.port, properties };
                    slot.worker = Some(Worker::start(*kind, folder, &options));
                });
            }
        });
    }

    fn take(&mut self, slot: usize) -> Worker {
        self.slots[slot].worker.take().unwrap_or_else(|| panic!("a worker is in slot {slot}"))
    }

    /// Ends the worker of a slot in order.
    ///
    /// # Panics
    /// There is none, or it doesn't end well.
    pub fn stop(&mut self, slot: usize) {
        let worker = self.take(slot);
        let kind = worker.kind();
        self.ended.push((kind, worker.stop()));
    }

    /// SIGKILL for the worker of a slot.
    ///
    /// # Panics
    /// There is none.
    pub fn kill9(&mut self, slot: usize) {
        let worker = self.take(slot);
        let kind = worker.kind();
        self.ended.push((kind, worker.kill9()));
    }

    /// Ends all workers in order, the last slot first.
    ///
    /// # Panics
    /// One doesn't end well.
    pub fn stop_all(&mut self) {
        for slot in (0..self.slots.len()).rev() {
            if self.slots[slot].worker.is_some() {
                self.stop(slot);
            }
        }
    }

    /// The worker of a slot.
    ///
    /// # Panics
    /// There is none.
    pub fn worker(&self, slot: usize) -> &Worker {
        self.slots[slot].worker.as_ref().unwrap_or_else(|| panic!("a worker is in slot {slot}"))
    }

    /// The REST interface of a slot, whether or not someone is there.
    pub fn rest(&self, slot: usize) -> Rest {
        Rest::new(&format!("127.0.0.1:{}", self.slots[slot].port))
    }

    /// The slot of the worker that leads, by the last assignment in the logs of Java's workers, or of ours where there is none of Java's; `None` while
    /// nobody says so.
    pub fn leader(&self) -> Option<usize> {
        let workers = || self.slots.iter().filter_map(|slot| slot.worker.as_ref());
        let Some(java) = workers().find(|worker| worker.kind() == Kind::Java) else {
            return (0..self.slots.len())
                .find(|slot| self.slots[*slot].worker.as_ref().is_some_and(says_that_it_leads));
        };
        let log = java.log();
        let (_, url) = log.rsplit_once("leaderUrl='")?;
        let url = url.split('\'').next()?;
        (0..self.slots.len()).find(|slot| url.contains(self.rest(*slot).worker_id()))
    }

    /// What `slot`'s worker says of a connector, once it satisfies the condition.
    ///
    /// # Panics
    /// It doesn't in time.
    pub fn wait_for_status(
        &self,
        slot: usize,
        connector: &str,
        what: &str,
        patience: Duration,
        condition: impl Fn(&Status) -> bool,
    ) -> Status {
        let rest = self.rest(slot);
        let mut seen = None;
        wait_until(
            &format!("{connector} {what}"),
            patience,
            || {
                seen = rest.status(connector);
                seen.as_ref().is_some_and(&condition)
            },
            || format!("{:?}; logs are in {}", rest.status(connector), self.path("").display()),
        );
        seen.unwrap_or_default()
    }

    /// Makes a connector with so many tasks run, asked at `slot`.
    ///
    /// # Panics
    /// It doesn't in time.
    pub fn wait_until_running(&self, slot: usize, connector: &str, tasks: usize, patience: Duration) -> Status {
        self.wait_for_status(slot, connector, &format!("runs with {tasks} tasks"), patience, |status| {
            status.all_are("RUNNING", tasks)
        })
    }

    /// A connector's source offsets, sorted: workers list them in an order of their own.
    ///
    /// # Panics
    /// The worker refuses.
    pub fn offsets(&self, slot: usize, connector: &str) -> Vec<String> {
        let body = self.rest(slot).must(200, "GET", &format!("/connectors/{connector}/offsets"), None);
        let mut offsets: Vec<_> = body["offsets"].as_array().into_iter().flatten().map(Value::to_string).collect();
        offsets.sort();
        offsets
    }

    /// The logs of all workers, those that have ended first.
    pub fn logs(&self) -> Vec<(Kind, String)> {
        let running = self.slots.iter().filter_map(|slot| slot.worker.as_ref());
        self.ended.iter().cloned().chain(running.map(|worker| (worker.kind(), worker.log()))).collect()
    }

    /// Waits until a connector runs with so many tasks, some of them on each worker.
    ///
    /// # Panics
    /// It doesn't in time.
    pub fn wait_until_shared(&self, slot: usize, connector: &str, tasks: usize, patience: Duration) -> Status {
        let workers: Vec<String> = self.workers().map(|worker| worker.rest().worker_id().to_owned()).collect();
        let shared = |status: &Status| {
            status.all_are("RUNNING", tasks) && workers.iter().all(|worker| status.tasks_on(worker) > 0)
        };
        self.wait_for_status(slot, connector, &format!("shares {tasks} tasks"), patience, shared)
    }

    /// Waits until a connector runs with so many tasks, all of them on the worker of `slot`, by that worker's own account.
    ///
    /// # Panics
    /// It doesn't in time.
    pub fn wait_until_all_on(&self, slot: usize, connector: &str, tasks: usize, patience: Duration) -> Status {
        let worker = self.rest(slot).worker_id().to_owned();
        let here = |status: &Status| status.all_are("RUNNING", tasks) && status.tasks_on(&worker) == tasks;
        self.wait_for_status(slot, connector, &format!("runs on {worker} alone"), patience, here)
    }

    fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.slots.iter().filter_map(|slot| slot.worker.as_ref())
    }

    /// Waits until nothing happens in a group to which nothing happens: members that cannot agree on where they are in the config topic would join
    /// again and again.
    ///
    /// # Panics
    /// They do.
    pub fn wait_until_quiet(&self, slot: usize) {
        let mut last = (self.rebalances(slot), Instant::now());
        let quiet = || {
            let now = self.rebalances(slot);
            if now != last.0 {
                last = (now, Instant::now());
            }
            last.1.elapsed() >= QUIET
        };
        wait_until("nothing happens in a group to which nothing happens", QUIET * 5, quiet, String::new);
    }

    /// How many rebalances the worker of a slot has taken part in.
    ///
    /// # Panics
    /// There is none.
    pub fn rebalances(&self, slot: usize) -> usize {
        let worker = self.worker(slot);
        let told = match worker.kind() {
            Kind::Java => "Joined group at generation",
            Kind::Ours => " assignment generation=",
        };
        worker.log().matches(told).count()
    }

    /// Lines of all logs that say that something went wrong, and would not stand in those of a cluster of Java's workers alone.
    pub fn complaints(&self) -> Vec<String> {
        let all = self.logs();
        let lines = all.iter().flat_map(|(kind, log)| log.lines().map(move |line| (kind, line)));
        let known = |line: &str| OF_JAVA_ALONE.iter().any(|known| line.contains(known));
        let bad = lines.filter(|(kind, line)| {
            (line.contains(" ERROR ") && !(**kind == Kind::Java && known(line))) || line.contains("panicked")
        });
        bad.map(|(kind, line)| format!("{kind}: {line}")).collect()
    }
}

/// By the last assignment in the log of a worker of ours.
fn says_that_it_leads(ours: &Worker) -> bool {
    let log = ours.log();
    let last = log.lines().rfind(|line| line.contains(" assignment generation="));
    last.is_some_and(|line| line.contains(" leads=true"))
}

impl Drop for ConnectCluster {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            println!("the workers' files are kept in {}", folder.keep().display());
        }
    }
}
