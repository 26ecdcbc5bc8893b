//! What happens to a cluster in a run of chaos, and when: made from one seed before the run begins, so that the same seed gives the same plan. Pure.
//!
//! Whatever is broken is mended within the plan: a killed, or drained and stopped, worker is started, a frozen one thawed, a link opened, a connector
//! resumed. Brokers are killed one at a time, and the next only after the last had time to start. Everything else may overlap, so that all workers may be away at once.

use std::fmt;
use std::time::Duration;

use crate::offset_moves::Move;
use crate::proxy::{Direction, Fault};
use crate::seed::Seed;

/// What there is to break.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Workers.
    pub workers: usize,
    /// Brokers.
    pub brokers: usize,
    /// Links between any two.
    pub links: usize,
    /// Connectors that are there all the time: the most tasks of each.
    pub tasks: Vec<u32>,
    /// After this a worker without heartbeats is given up.
    pub session_timeout: Duration,
}

/// What is done at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// SIGKILL.
    KillWorker(usize),
    /// Asked to hand over what it has.
    DrainWorker(usize),
    /// SIGTERM, some time after that.
    StopWorker(usize),
    /// Start after a kill or a stop.
    StartWorker(usize),
    /// SIGSTOP.
    FreezeWorker(usize),
    /// SIGCONT.
    ThawWorker(usize),
    /// SIGKILL.
    KillBroker(usize),
    /// Start after that.
    StartBroker(usize),
    /// A link's fault from now on.
    Link(usize, Fault),
    /// A request of a person, to that worker.
    Ask(usize, Request),
}

/// A change by REST. Connectors are numbered as in [`Shape::tasks`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Pause.
    Pause(usize),
    /// Resume.
    Resume(usize),
    /// So many tasks from now on.
    Tasks(usize, u32),
    /// The connector instance, and its tasks too if that says so.
    Restart(usize, bool),
    /// One task.
    RestartTask(usize, u32),
    /// One more connector.
    CreateExtra,
    /// It goes.
    DeleteExtra,
    /// The offsets of the connector that is there for it are changed; it is stopped meanwhile.
    MoveOffsets(Move),
}

/// A deed and its time from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Duration,
    /// What.
    pub deed: Deed,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>7.2} s {:?}", self.at.as_secs_f64(), self.deed)
    }
}

/// Time that a broker gets to come back on a busy machine before another is killed.
const BROKER_COMES_BACK: Duration = Duration::from_secs(30);
/// A move of offsets and the look at what came of it; another that begins within would not be carried out.
const MOVE_TAKES: Duration = Duration::from_secs(8);
/// The longest time between two deeds that break something.
const GAP_MAX_MS: u64 = 2_500;
/// The shortest.
const GAP_MIN_MS: u64 = 200;

/// Makes the plan of a run.
pub fn plan(seed: &mut Seed, shape: &Shape, length: Duration) -> Vec<Step> {
    let mut planner = Planner {
        busy_until: Busy {
            workers: vec![Duration::ZERO; shape.workers],
            brokers: Duration::ZERO,
            links: vec![Duration::ZERO; shape.links],
            connectors: vec![Duration::ZERO; shape.tasks.len()],
            offsets: Duration::ZERO,
        },
        extra: false,
        steps: Vec::new(),
        seed,
        shape,
        length,
    };
    let mut at = Duration::ZERO;
    loop {
        at += Duration::from_millis(GAP_MIN_MS + planner.seed.below(GAP_MAX_MS - GAP_MIN_MS));
        if at >= length {
            break;
        }
        planner.break_something(at);
    }
    planner.steps.sort_by_key(|step| step.at);
    planner.steps
}

struct Busy {
    workers: Vec<Duration>,
    brokers: Duration,
    links: Vec<Duration>,
    connectors: Vec<Duration>,
    offsets: Duration,
}

struct Planner<'a> {
    seed: &'a mut Seed,
    shape: &'a Shape,
    length: Duration,
    busy_until: Busy,
    extra: bool,
    steps: Vec<Step>,
}

impl Planner<'_> {
    fn break_something(&mut self, at: Duration) {
        match self.seed.below(20) {
            0 | 1 => self.kill_worker(at),
            2 | 3 => self.freeze_worker(at),
            4 => self.kill_broker(at),
            5..=10 => self.disturb_link(at),
            11 | 12 => self.drain_worker(at),
            13 | 14 => self.move_offsets(at),
            _ => self.ask(at),
        }
    }

    fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.seed.below(count as u64)).unwrap_or(0)
    }

    fn between_ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.seed.below(to - from))
    }

    fn step(&mut self, at: Duration, deed: Deed) {
        self.steps.push(Step { at: at.min(self.length), deed });
    }

    fn kill_worker(&mut self, at: Duration) {
        let (slot, away) = (self.index(self.shape.workers), self.between_ms(50, 9_000));
        if self.busy_until.workers[slot] > at {
            return;
        }
        self.step(at, Deed::KillWorker(slot));
        self.step(at + away, Deed::StartWorker(slot));
        self.busy_until.workers[slot] = at + away + Duration::from_secs(1);
    }

    /// As an operator does it; at times without the patience to wait for its end.
    fn drain_worker(&mut self, at: Duration) {
        let slot = self.index(self.shape.workers);
        let (drains, away) = (self.between_ms(200, 12_000), self.between_ms(50, 5_000));
        if self.busy_until.workers[slot] > at {
            return;
        }
        self.step(at, Deed::DrainWorker(slot));
        self.step(at + drains, Deed::StopWorker(slot));
        self.step(at + drains + away, Deed::StartWorker(slot));
        self.busy_until.workers[slot] = at + drains + away + Duration::from_secs(1);
    }

    fn move_offsets(&mut self, at: Duration) {
        let (slot, choice) = (self.index(self.shape.workers), self.index(5));
        if self.busy_until.offsets > at {
            return;
        }
        let which = [Move::Forward, Move::Forward, Move::Back, Move::Back, Move::Reset][choice];
        self.step(at, Deed::Ask(slot, Request::MoveOffsets(which)));
        self.busy_until.offsets = at + MOVE_TAKES;
    }

    /// At times for a moment, at times until the group has given it up.
    fn freeze_worker(&mut self, at: Duration) {
        let slot = self.index(self.shape.workers);
        let session_ms = u64::try_from(self.shape.session_timeout.as_millis()).unwrap_or(0);
        let asleep = match self.seed.below(3) {
            0 => self.between_ms(100, session_ms),
            _ => self.between_ms(session_ms + 1_000, session_ms * 2 + 2_000),
        };
        if self.busy_until.workers[slot] > at {
            return;
        }
        self.step(at, Deed::FreezeWorker(slot));
        self.step(at + asleep, Deed::ThawWorker(slot));
        self.busy_until.workers[slot] = at + asleep + Duration::from_secs(1);
    }

    fn kill_broker(&mut self, at: Duration) {
        let (broker, away) = (self.index(self.shape.brokers), self.between_ms(50, 8_000));
        if self.busy_until.brokers > at {
            return;
        }
        self.step(at, Deed::KillBroker(broker));
        self.step(at + away, Deed::StartBroker(broker));
        self.busy_until.brokers = at + away + BROKER_COMES_BACK;
    }

    fn disturb_link(&mut self, at: Duration) {
        let link = self.index(self.shape.links);
        let lasts = self.between_ms(20, 6_000);
        let cut = Fault::Cut { last_bytes: usize::try_from(self.seed.below(2_000)).unwrap_or(0) };
        let direction = [Direction::ToServer, Direction::ToClient, Direction::Both][self.index(3)];
        let slow = Fault::Slow { wait: self.between_ms(1, 300), piece_bytes: 1 + self.index(4_000) };
        let choice = self.seed.below(5);
        if self.busy_until.links[link] > at {
            return;
        }
        self.busy_until.links[link] = at + lasts;
        let first = match choice {
            0 => cut,
            1 => slow,
            _ => Fault::Hold(direction),
        };
        self.step(at, Deed::Link(link, first));
        // What was held arrives late, or never.
        if choice == 2 {
            self.step(at + lasts, Deed::Link(link, cut));
        }
        self.step(at + lasts, Deed::Link(link, Fault::Open));
    }

    fn ask(&mut self, at: Duration) {
        let (slot, connector) = (self.index(self.shape.workers), self.index(self.shape.tasks.len()));
        let (choice, lasts) = (self.seed.below(8), self.between_ms(100, 6_000));
        let tasks_max = self.shape.tasks[connector];
        let task = u32::try_from(self.index(tasks_max as usize)).unwrap_or(0);
        let whole = self.seed.below(2) == 0;
        if choice >= 6 {
            self.extra = !self.extra;
            return self
                .step(at, Deed::Ask(slot, if self.extra { Request::CreateExtra } else { Request::DeleteExtra }));
        }
        if self.busy_until.connectors[connector] > at {
            return;
        }
        match choice {
            0 | 1 => {
                let other = self.index(self.shape.workers);
                self.step(at, Deed::Ask(slot, Request::Pause(connector)));
                self.step(at + lasts, Deed::Ask(other, Request::Resume(connector)));
                self.busy_until.connectors[connector] = at + lasts;
            }
            2 | 3 => self.step(at, Deed::Ask(slot, Request::Tasks(connector, task + 1))),
            4 => self.step(at, Deed::Ask(slot, Request::Restart(connector, whole))),
            _ => self.step(at, Deed::Ask(slot, Request::RestartTask(connector, task))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { workers: 3, brokers: 3, links: 15, tasks: vec![4, 3, 1], session_timeout: Duration::from_secs(6) }
    }

    fn made(number: u64) -> Vec<Step> {
        plan(&mut Seed::from(number), &shape(), Duration::from_secs(120))
    }

    #[test]
    fn a_seed_gives_one_plan() {
        assert_eq!(made(7), made(7));
        assert_ne!(made(7), made(8));
    }

    #[test]
    fn whatever_is_broken_is_mended() {
        for number in 0..200 {
            let (mut down, mut faults, mut paused) = ([0; 3], [Fault::Open; 15], [false; 3]);
            let (mut brokers_down, mut drains) = (0, [false; 3]);
            for step in made(number) {
                match step.deed {
                    Deed::KillWorker(slot) | Deed::FreezeWorker(slot) => down[slot] += 1,
                    Deed::DrainWorker(slot) => drains[slot] = true,
                    Deed::StopWorker(slot) => {
                        assert!(std::mem::take(&mut drains[slot]), "seed {number}: {step}");
                        down[slot] += 1;
                    }
                    Deed::StartWorker(slot) | Deed::ThawWorker(slot) => down[slot] -= 1,
                    Deed::KillBroker(_) => brokers_down += 1,
                    Deed::StartBroker(_) => brokers_down -= 1,
                    Deed::Link(link, fault) => faults[link] = fault,
                    Deed::Ask(_, Request::Pause(connector)) => paused[connector] = true,
                    Deed::Ask(_, Request::Resume(connector)) => paused[connector] = false,
                    Deed::Ask(..) => {}
                }
                assert!(brokers_down <= 1 && down.iter().all(|times| *times <= 1), "seed {number}: {step}");
            }
            assert_eq!((down, brokers_down, paused, drains), ([0; 3], 0, [false; 3], [false; 3]), "seed {number}");
            assert_eq!(faults, [Fault::Open; 15], "seed {number}");
        }
    }
}
