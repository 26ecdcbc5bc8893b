//! Chaos: three workers, five connectors with twelve tasks and three brokers, everything between them through proxies, and for a while all of it is
//! killed, frozen, drained, cut, slowed and reconfigured at random. Then it heals by itself, the sources run to their end, and every record is there once:
//! of the connector that opted out at least once, and of the one whose offsets were moved as often as the moves explain.
//!
//! One seed gives the whole plan (ONCEWIRE_SEED repeats it); ONCEWIRE_CHAOS_SECONDS is its length, 120 by default; with ONCEWIRE_KEEP=1 the workers' files
//! are kept even when all is well. No task may need a person: after the chaos all run without a request that could mend them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oncewire_audit::Check;
use oncewire_client::reader::Isolation;
use oncewire_connector_sequence::pattern;
use oncewire_system_tests::chaos_load::{self, Load, OFFSETS_TOPIC, RATE, audit, extra, loads, moved};
use oncewire_system_tests::chaos_plan::{Deed, Request, Shape, Step, plan};
use oncewire_system_tests::client::Client;
use oncewire_system_tests::files::LINE_BYTES;
use oncewire_system_tests::fleet::{Fleet, MemberOptions};
use oncewire_system_tests::growing_file::GrowingFile;
use oncewire_system_tests::journal::{Evidence, Journal};
use oncewire_system_tests::kafka_cluster::{KafkaCluster, KafkaClusterOptions};
use oncewire_system_tests::offset_moves::{Move, Moves, stored as stored_numbers};
use oncewire_system_tests::proxy::{Fault, Link, Proxy};
use oncewire_system_tests::rest::Rest;
use oncewire_system_tests::seed::Seed;
use oncewire_system_tests::status_history::failures;
use oncewire_system_tests::target::alone;
use oncewire_system_tests::worker::wait_until;
use serde_json::Value;

const WORKERS: usize = 3;
const BROKERS: usize = 3;
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
const STATUS_TOPIC: &str = "chaos-status";

/// From the last heal until all tasks run by themselves.
const HEAL_PATIENCE: Duration = Duration::from_secs(180);
/// From there until the sources are at their end, without a limit on their rate.
const END_PATIENCE: Duration = Duration::from_secs(180);
const START_PATIENCE: Duration = Duration::from_secs(120);
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// Offsets that have not changed for so long are the last ones.
const STILL: Duration = Duration::from_secs(2);
/// A drain is watched for so long: longer than the plan has patience for it.
const DRAIN_PATIENCE: Duration = Duration::from_secs(15);

fn length() -> Duration {
    let seconds = std::env::var("ONCEWIRE_CHAOS_SECONDS").map_or(Ok(120), |seconds| seconds.parse());
    Duration::from_secs(seconds.expect("ONCEWIRE_CHAOS_SECONDS is a number"))
}

/// Everything that can be broken.
struct Scene {
    // In the order of their ends.
    fleet: Fleet,
    kafka: Arc<KafkaCluster>,
    links: Vec<Link>,
    _proxy: Proxy,
    loads: Vec<Load>,
    moved: Load,
    moves: Moves,
    journal: Journal,
    moving: Option<JoinHandle<()>>,
    asked: Vec<JoinHandle<()>>,
    broker_comes_back: Option<JoinHandle<()>>,
}

/// Worker `w` reaches broker `b` by link `w * BROKERS + b`; then come the brokers' links to each other, then those of REST.
fn links(proxy: &Proxy) -> Vec<Link> {
    let to_brokers = (0..WORKERS).flat_map(|worker| (0..BROKERS).map(move |broker| (worker, broker)));
    let to_brokers = to_brokers.map(|(worker, broker)| format!("worker {worker} to broker {broker}"));
    let between = (0..BROKERS).map(|broker| format!("brokers to broker {broker}"));
    let rest = (0..WORKERS).map(|worker| format!("rest of worker {worker}"));
    to_brokers.chain(between).chain(rest).map(|name| proxy.link(&name)).collect()
}

/// The listener of a broker for one worker: its name is of letters.
fn listener(worker: usize) -> String {
    ["ONE", "TWO", "THREE"][worker].to_owned()
}

fn start_kafka(links: &[Link]) -> KafkaCluster {
    let advertised: Vec<_> = (0..BROKERS)
        .map(|broker| {
            let workers = (0..WORKERS).map(|worker| (listener(worker), links[worker * BROKERS + broker].port()));
            let between = ("REPLICATION".to_owned(), links[WORKERS * BROKERS + broker].port());
            workers.chain([between]).collect()
        })
        .collect();
    let options = KafkaClusterOptions {
        version: "4.3.1",
        heap: "512m",
        // Longer than the script's: three brokers on two cores answer late even when nobody cuts them off.
        properties: &["broker.session.timeout.ms=6000", "controller.quorum.fetch.timeout.ms=4000"],
        advertised: &advertised,
    };
    let kafka = KafkaCluster::start(options);
    for broker in 0..BROKERS {
        for worker in 0..WORKERS {
            links[worker * BROKERS + broker].lead_to(kafka.listener(broker, &listener(worker)));
        }
        links[WORKERS * BROKERS + broker].lead_to(kafka.listener(broker, "REPLICATION"));
    }
    kafka
}

fn start_fleet(links: &[Link], folder: &std::path::Path) -> Fleet {
    let rest = &links[(WORKERS + 1) * BROKERS..];
    let members = (0..WORKERS).map(|worker| {
        let brokers = links[worker * BROKERS..(worker + 1) * BROKERS].iter();
        let brokers: Vec<_> = brokers.map(|link| format!("127.0.0.1:{}", link.port())).collect();
        let folder = folder.join(format!("worker-{worker}"));
        MemberOptions { bootstrap: brokers.join(","), advertised_port: rest[worker].port(), folder }
    });
    let session_timeout_ms = SESSION_TIMEOUT.as_millis().to_string();
    let string = "org.apache.kafka.connect.storage.StringConverter";
    let properties = [
        ("group.id", "chaos"),
        ("key.converter", string),
        ("value.converter", string),
        ("offset.storage.topic", OFFSETS_TOPIC),
        ("offset.storage.partitions", "3"),
        ("config.storage.topic", "chaos-configs"),
        ("status.storage.topic", STATUS_TOPIC),
        ("status.storage.partitions", "2"),
        ("exactly.once.source.support", "enabled"),
        ("connector.client.config.override.policy", "All"),
        ("scheduled.rebalance.max.delay.ms", "1000"),
        // Of tasks that deliver at least once: their progress is looked at.
        ("offset.flush.interval.ms", "1000"),
        ("session.timeout.ms", &session_timeout_ms),
        ("heartbeat.interval.ms", "1000"),
    ];
    let mut fleet = Fleet::new(members.collect(), &properties);
    for (worker, link) in rest.iter().enumerate() {
        link.lead_to(&fleet.address(worker));
        fleet.start(worker);
    }
    fleet
}

impl Scene {
    fn do_step(&mut self, step: &Step) {
        let journal = self.journal.clone();
        match &step.deed {
            Deed::KillWorker(slot) => self.fleet.kill9(*slot),
            Deed::DrainWorker(slot) => self.drain(*slot),
            Deed::StopWorker(slot) => self.fleet.stop(*slot),
            Deed::StartWorker(slot) => self.fleet.start(*slot),
            Deed::FreezeWorker(slot) => self.fleet.freeze(*slot),
            Deed::ThawWorker(slot) => self.fleet.thaw(*slot),
            Deed::KillBroker(broker) => {
                // The plan leaves time for it; a busy machine may need more.
                self.join_broker();
                self.kafka.kill9(*broker);
            }
            Deed::StartBroker(broker) => {
                let (kafka, broker) = (self.kafka.clone(), *broker);
                let started = std::thread::spawn(move || {
                    kafka.restart(broker);
                    journal.note(&format!("broker {broker} is back"));
                });
                self.broker_comes_back = Some(started);
            }
            Deed::Link(link, fault) => self.links[*link].set(*fault),
            Deed::Ask(slot, Request::MoveOffsets(which)) => return self.move_offsets(*slot, *which),
            Deed::Ask(slot, request) => return self.ask(*slot, request),
        }
        let link = if let Deed::Link(link, _) = &step.deed { self.links[*link].name() } else { "" };
        self.journal.note(&format!("{:?} {link}", step.deed));
    }

    fn join_broker(&mut self) {
        if let Some(comes_back) = self.broker_comes_back.take() {
            comes_back.join().expect("the broker starts again");
        }
    }

    /// Asks until it is drained, cannot be asked any more, or takes too long, and notes which.
    fn drain(&mut self, slot: usize) {
        let (rest, journal) = (self.fleet.rest(slot), self.journal.clone());
        self.asked.push(std::thread::spawn(move || {
            let began = Instant::now();
            loop {
                let answer = rest.request("POST", "/worker/drain", None);
                if answer.as_ref().is_ok_and(|answer| answer.status == 202) && began.elapsed() < DRAIN_PATIENCE {
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
                let told = answer.map_or_else(|error| error.to_string(), |answer| answer.to_string());
                return journal.note(&format!("drain of worker {slot}: {told} after {:.1?}", began.elapsed()));
            }
        }));
    }

    /// One after the other: who stops a connector while another changes its offsets has them refused.
    fn move_offsets(&mut self, slot: usize, which: Move) {
        if self.moving.as_ref().is_some_and(|moving| !moving.is_finished()) {
            return self.journal.note("the last move of offsets still goes on");
        }
        self.join_moving();
        let workers: Vec<Rest> = (slot..slot + WORKERS).map(|slot| self.fleet.rest(slot % WORKERS)).collect();
        let (moves, journal) = (self.moves.clone(), self.journal.clone());
        self.moving = Some(std::thread::spawn(move || {
            let began = Instant::now();
            let told = moves.carry_out(&workers, which);
            journal.note(&format!("moved {told} after {:.1?}", began.elapsed()));
        }));
    }

    fn join_moving(&mut self) {
        if let Some(moving) = self.moving.take() {
            moving.join().expect("a move of offsets does not panic");
        }
    }

    /// Sends a request and notes its answer, whatever it is.
    fn ask(&mut self, slot: usize, request: &Request) {
        let of = |number: &usize, what: &str| self.loads[*number].path(what);
        let (method, path, body) = match request {
            Request::Pause(number) => ("PUT", of(number, "pause"), None),
            Request::Resume(number) => ("PUT", of(number, "resume"), None),
            Request::Tasks(number, tasks) => {
                ("PUT", of(number, "config"), Some(self.loads[*number].with_tasks(*tasks)))
            }
            Request::Restart(number, tasks) => ("POST", of(number, &format!("restart?includeTasks={tasks}")), None),
            Request::RestartTask(number, task) => ("POST", of(number, &format!("tasks/{task}/restart")), None),
            Request::CreateExtra => ("PUT", extra().path("config"), Some(extra().config)),
            Request::DeleteExtra => ("DELETE", "/connectors/extra".to_owned(), None),
            Request::MoveOffsets(_) => return,
        };
        let (rest, journal) = (self.fleet.rest(slot), self.journal.clone());
        let text = format!("{method} {path} at worker {slot}");
        self.asked.push(std::thread::spawn(move || {
            let began = Instant::now();
            let answer = rest.request(method, &path, body.as_ref());
            let answer = answer.map_or_else(|error| error.to_string(), |answer| answer.status.to_string());
            journal.note(&format!("{text}: {answer} after {:.1?}", began.elapsed()));
        }));
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            while self.journal.elapsed() < step.at {
                let left = step.at.saturating_sub(self.journal.elapsed());
                std::thread::sleep(left.min(Duration::from_millis(100)));
                self.supervise();
            }
            self.do_step(step);
        }
    }

    fn supervise(&mut self) {
        let before = self.fleet.ended().len();
        self.fleet.supervise();
        for ended in self.fleet.ended().iter().skip(before) {
            self.journal.note(&format!("worker {} ended with {} and was started", ended.slot, ended.how));
        }
    }

    /// The plan has mended everything but what takes its time.
    fn heal(&mut self) {
        self.join_broker();
        for asked in std::mem::take(&mut self.asked) {
            asked.join().expect("a request does not panic");
        }
        self.join_moving();
        for link in &self.links {
            link.set(Fault::Open);
        }
        self.journal.note("everything is healed");
        // A request to resume may have failed; it mends nothing but that.
        for load in self.all_loads() {
            self.until_accepted("PUT", &load.path("resume"), None);
        }
    }

    /// Those that are there all the time.
    fn all_loads(&self) -> Vec<Load> {
        self.loads.iter().chain([&self.moved]).cloned().collect()
    }

    /// Any worker may be asked; the answer may be late, but it comes.
    fn until_accepted(&mut self, method: &str, path: &str, body: Option<&Value>) {
        let deadline = Instant::now() + HEAL_PATIENCE;
        for slot in (0..WORKERS).cycle() {
            self.supervise();
            let answer = self.fleet.rest(slot).request(method, path, body);
            match answer {
                Ok(answer) if answer.status / 100 == 2 => return,
                other => {
                    let said = other.map_or_else(|error| error.to_string(), |answer| answer.to_string());
                    assert!(Instant::now() < deadline, "{method} {path} is accepted; it was: {said}");
                    std::thread::sleep(Duration::from_millis(200));
                }
            }
        }
    }

    /// All tasks of all connectors run, as many as are configured.
    fn wait_until_all_run(&mut self, what: &str) {
        let names: Vec<_> = self.all_loads().iter().map(|load| load.name).collect();
        let began = Instant::now();
        let mut seen = String::new();
        for slot in 0..WORKERS {
            for name in &names {
                let rest = self.fleet.rest(slot);
                while !runs(&rest, name, &mut seen) {
                    assert!(
                        began.elapsed() < HEAL_PATIENCE,
                        "{what}: not after {HEAL_PATIENCE:?}, by worker {slot}: {seen}"
                    );
                    self.supervise();
                    std::thread::sleep(Duration::from_millis(200));
                }
            }
        }
        self.journal.note(&format!("{what}, {:.1?} after the look began", began.elapsed()));
    }

    /// Every task commits something new: one that is shown RUNNING but works nowhere is found so.
    fn wait_until_all_advance(&mut self) {
        let began = Instant::now();
        for (number, load) in self.all_loads().iter().enumerate() {
            let rest = self.fleet.rest(number % WORKERS);
            let before = stored(&rest, load.name);
            let tasks = tasks_of(&rest, load.name).unwrap_or(load.tasks as usize);
            let behind = |now: &BTreeMap<String, Value>| {
                let stands =
                    |one: &(&String, &Value)| is_at_work(one.0, tasks) && now.get(one.0).is_none_or(|now| now == one.1);
                before.iter().filter(stands).map(|(partition, _)| partition.clone()).collect::<Vec<_>>()
            };
            wait_until(
                &format!("all tasks of {} advance", load.name),
                END_PATIENCE,
                || behind(&stored(&rest, load.name)).is_empty(),
                || format!("{:?} stand still", behind(&stored(&rest, load.name))),
            );
        }
        self.journal.note(&format!("all tasks advance, {:.1?} after the look began", began.elapsed()));
    }

    /// A move whose end is known, with the number that was due of each task before it.
    fn move_for_certain(&mut self) -> BTreeMap<u32, u64> {
        let moved = self.moved.clone();
        self.until_accepted("PUT", &moved.path("stop"), None);
        let rest = self.fleet.rest(0);
        wait_until(
            "the connector is stopped",
            HEAL_PATIENCE,
            || rest.status(moved.name).is_some_and(|status| status.all_are("STOPPED", 0)),
            || format!("{:?}", rest.status(moved.name)),
        );
        // A status may come before the last commit is decided.
        let mut last = (stored_numbers(&rest, moved.name), Instant::now());
        let still = || {
            let now = stored_numbers(&rest, moved.name);
            if now != last.0 {
                last = (now, Instant::now());
            }
            last.1.elapsed() > STILL
        };
        wait_until("its offsets are still", HEAL_PATIENCE, still, String::new);
        let due = stored_numbers(&rest, moved.name).into_iter().map(|(task, n)| (task, n + 1)).collect();
        let workers: Vec<Rest> = (0..WORKERS).map(|slot| self.fleet.rest(slot)).collect();
        let told = self.moves.carry_out(&workers, Move::Forward);
        self.journal.note(&format!("moved for certain: {told}"));
        assert!(told.ends_with("went on: true"), "nothing stands in its way: {told}");
        due
    }

    fn wait_for_end(&self, lines: u64, records: u64) {
        let rest = self.fleet.rest(0);
        for load in &self.loads {
            let field = if load.tasks > 1 { ("n", records - 1) } else { ("position", lines * LINE_BYTES as u64) };
            let offsets = || rest.request("GET", &format!("/connectors/{}/offsets", load.name), None);
            let at_end = |body: &Value| {
                let all = body["offsets"].as_array().map(Vec::as_slice).unwrap_or_default();
                all.len() == load.tasks as usize && all.iter().all(|one| one["offset"][field.0] == field.1)
            };
            wait_until(
                &format!("{} is at its end", load.name),
                END_PATIENCE,
                || offsets().is_ok_and(|answer| at_end(&answer.body)),
                || format!("{:?}; {:?}", offsets(), rest.status(load.name)),
            );
        }
    }
}

/// A connector's source offsets by their partition, as JSON.
fn stored(rest: &Rest, name: &str) -> BTreeMap<String, Value> {
    let answer = rest.request("GET", &format!("/connectors/{name}/offsets"), None);
    let body = answer.map_or(Value::Null, |answer| answer.body);
    let all = body["offsets"].as_array().into_iter().flatten();
    all.map(|one| (one["partition"].to_string(), one["offset"].clone())).collect()
}

/// Whether the task that has this source partition is one of so many; a file has one task.
fn is_at_work(partition: &str, tasks: usize) -> bool {
    let number = serde_json::from_str::<Value>(partition).ok().and_then(|partition| partition["task"].as_u64());
    number.is_none_or(|number| number < tasks as u64)
}

fn tasks_of(rest: &Rest, name: &str) -> Option<usize> {
    let config = rest.request("GET", &format!("/connectors/{name}/config"), None).ok()?;
    config.body["tasks"].as_str()?.parse().ok()
}

/// Whether a connector and all its tasks run by a worker's account.
fn runs(rest: &Rest, name: &str, seen: &mut String) -> bool {
    let (Some(status), Ok(config)) =
        (rest.status(name), rest.request("GET", &format!("/connectors/{name}/config"), None))
    else {
        *seen = format!("{name}: no answer");
        return false;
    };
    *seen = format!("{name}: {status:?}");
    let tasks = config.body["tasks"].as_str().and_then(|tasks| tasks.parse().ok()).unwrap_or(1);
    status.all_are("RUNNING", tasks)
}

#[test]
#[ignore = "needs Apache Kafka"]
fn every_record_is_there_once_after_chaos() {
    let _alone = alone();
    let length = length();
    let mut seed = Seed::of_run("chaos");
    let folder = tempfile::Builder::new().prefix("oncewire-chaos-").tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("lines.txt");
    // More than there is time for before the limit on the rate is taken away.
    let records = RATE * (length + HEAL_PATIENCE).as_secs();
    let proxy = Proxy::new();
    let links = links(&proxy);
    let kafka = Arc::new(start_kafka(&links));
    let workers = folder.path().to_owned();
    let mut evidence =
        Evidence { seed: seed.state(), journal: Journal::begin(), logs: kafka.logs(), folder: Some(folder) };
    let fleet = start_fleet(&links, &workers);
    let mut scene = Scene {
        fleet,
        kafka,
        links,
        _proxy: proxy,
        loads: loads(&file, records),
        moved: moved(),
        moves: Moves::new(moved().name, moved().tasks),
        journal: evidence.journal.clone(),
        moving: None,
        asked: Vec::new(),
        broker_comes_back: None,
    };
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        story(&mut scene, &mut seed, length, GrowingFile::start(file), records);
    }));
    if std::env::var_os("ONCEWIRE_KEEP").is_some() {
        evidence.keep();
    }
    if let Err(panic) = told {
        evidence.logs.extend(scene.fleet.logs());
        evidence.tell();
        std::panic::resume_unwind(panic);
    }
}

fn story(scene: &mut Scene, seed: &mut Seed, length: Duration, file: GrowingFile, records: u64) {
    for slot in 0..WORKERS {
        let rest = scene.fleet.rest(slot);
        let answers = || rest.request("GET", "/connectors", None).is_ok_and(|answer| answer.status == 200);
        wait_until("a worker starts", START_PATIENCE, answers, || format!("worker {slot} does not answer"));
    }
    for load in scene.all_loads() {
        scene.until_accepted("PUT", &load.path("config"), Some(&load.config));
    }
    scene.wait_until_all_run("all run before the chaos");
    let (rest, name, tasks) = (scene.fleet.rest(0), scene.moved.name, scene.moved.tasks as usize);
    // A move to the beginning is seen by what was there before.
    let has_begun = || stored_numbers(&rest, name).len() == tasks;
    wait_until("all tasks have written something", START_PATIENCE, has_begun, || format!("{name} has not"));
    let shape = Shape {
        workers: WORKERS,
        brokers: BROKERS,
        links: scene.links.len(),
        tasks: scene.loads.iter().map(|load| load.tasks).collect(),
        session_timeout: SESSION_TIMEOUT,
    };
    let steps = plan(seed, &shape, length);
    scene.journal.restart();
    scene.journal.note(&format!("chaos of {length:?} begins: {} steps", steps.len()));
    scene.run(&steps);
    scene.heal();
    scene.wait_until_all_run("all run by themselves after the chaos");
    scene.wait_until_all_advance();

    let lines_path = file.path().to_owned();
    let lines = file.finish();
    let due = scene.move_for_certain();
    for load in scene.loads.clone() {
        scene.until_accepted("PUT", &load.path("config"), Some(&load.unlimited()));
    }
    scene.until_accepted("PUT", &extra().path("config"), Some(&extra().config));
    scene.wait_until_all_run("all run with all their tasks");
    scene.wait_for_end(lines, records);
    scene.journal.note("all sources are at their end");
    // An orderly end commits what extra had under way.
    scene.fleet.stop_all(STOP_PATIENCE);
    let client = Client::connect(&scene.kafka.bootstrap());
    judge_moves(scene, &client, &due);
    judge(scene, &client, &lines_path, (lines, records));
}

/// What is missing and doubled of the connector whose offsets were moved is what that explains. `due`: what was due before the last move.
fn judge_moves(scene: &Scene, client: &Client, due: &BTreeMap<u32, u64>) {
    let report = chaos_load::report(client, &scene.moved, Check::Sequence);
    let mut written: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for record in client.records(scene.moved.name, Isolation::Committed) {
        let item =
            record.value.and_then(|value| pattern::parse(&value).ok()).expect("the auditor found nothing foreign");
        written.entry(item.task).or_default().push(item.n);
    }
    let account =
        scene.moves.account(&written).unwrap_or_else(|fault| panic!("{}: {fault}\n{report}", scene.moved.name));
    for (task, due) in due {
        let last = account.jumps.iter().rfind(|jump| jump.task == *task).map(|jump| jump.due);
        assert_eq!(last, Some(*due), "task {task} was at its end before the last move: {:?}", account.jumps);
    }
    let content = &report.content;
    let found = (content.gaps.count, content.duplicates.count, content.foreign.count);
    assert_eq!(found, (account.missing, account.doubled, 0), "{:?}\n{report}", account.jumps);
    assert!(chaos_load::offsets_agree(&report), "{report}");
    println!("{} moves of offsets are found in {}: {:?}", account.jumps.len(), scene.moved.name, account.jumps);
}

fn judge(scene: &Scene, client: &Client, file: &std::path::Path, (lines, records): (u64, u64)) {
    let failures = failures(client, STATUS_TOPIC);
    for failure in &failures {
        println!("{:>7.2} s FAILED: {failure}", scene.journal.seconds_of(failure.at_ms));
    }
    let ended = scene.fleet.ended();
    for ended in &ended {
        println!("worker {} ended by itself ({}, served: {}):\n{}", ended.slot, ended.how, ended.served, ended.tail);
    }
    println!(
        "{} rebalances, {} times FAILED, of which {} stayed; {} workers ended by themselves",
        scene.fleet.rebalances(),
        failures.len(),
        failures.iter().filter(|failure| failure.next.is_none()).count(),
        ended.len()
    );
    for load in &scene.loads {
        let (check, expected) = match load.tasks {
            1 => (Check::Lines(file.to_owned()), lines),
            tasks => (Check::Sequence, records * u64::from(tasks)),
        };
        assert_eq!(audit(client, load, check), expected, "all records of {}", load.name);
    }
    audit(client, &extra(), Check::Sequence);
    assert!(!ended.iter().any(|ended| ended.served), "a worker that served ended by itself");
}
