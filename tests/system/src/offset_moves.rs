//! Offsets that a person changes over REST, so that exactly those records are missing or doubled that this explains.
//!
//! A move stops the connector, puts both tasks to the same place (or to their beginning), and resumes it:
//!
//! ```text
//! forward   to the next stretch of a million numbers     …, 412 │ 1000000, 1000001, …     413 to 999999 are never written
//! back      to a few numbers after its beginning         …, 1000730 │ 1000003, …          1000003 to 1000730 are there twice
//! reset     no offset                                    …, 1000730 │ 0, 1, …
//! ```
//!
//! Whether a request that was not answered had its effect nobody knows; so a number may stand where another was due if a move to it was asked for,
//! as often as that. A move that was answered with success, and after which the task went on, must be found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::rest::Rest;

/// Numbers between the beginnings of two stretches; no task comes that far in a test.
const STRETCH: u64 = 1_000_000;

/// How long each of the three requests is repeated.
const ASK_PATIENCE: Duration = Duration::from_secs(15);

/// How long the tasks are watched after a move.
const WATCH_PATIENCE: Duration = Duration::from_secs(30);

const ASK_EVERY: Duration = Duration::from_millis(100);

/// Where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// To the next stretch: numbers are left out.
    Forward,
    /// Within the stretch: numbers are written again.
    Back,
    /// To the beginning of all.
    Reset,
}

/// All moves of one connector. Clones share them.
#[derive(Clone, Debug)]
pub struct Moves {
    connector: &'static str,
    tasks: u32,
    moves: Arc<Mutex<Vec<Asked>>>,
}

/// One move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    which: Move,
    /// The number that follows.
    next: u64,
    /// How often it was asked for.
    requests: u32,
    /// It was answered with success, and each task has gone on from there.
    went_on: bool,
}

/// A number that stands where another was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Which task's.
    pub task: u32,
    /// The one that was due.
    pub due: u64,
    /// The one that came.
    pub to: u64,
}

/// What the moves explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// In the order of each task's records.
    pub jumps: Vec<Jump>,
    /// Numbers below each task's highest that were never written.
    pub missing: u64,
    /// Records whose number was there before.
    pub doubled: u64,
}

impl Moves {
    /// Of a sequence connector with so many tasks.
    pub fn new(connector: &'static str, tasks: u32) -> Self {
        Moves { connector, tasks, moves: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, what: &str) -> String {
        format!("/connectors/{}/{what}", self.connector)
    }

    /// Moves the offsets at whichever worker answers; returns in words what came of it. One at a time.
    pub fn carry_out(&self, workers: &[Rest], which: Move) -> String {
        let (place, next) = {
            let mut moves = self.lock();
            let next = next_of(&moves, which);
            moves.push(Asked { which, next, requests: 0, went_on: false });
            (moves.len() - 1, next)
        };
        let (method, body) = change(next, self.tasks);
        let stopped = repeat(workers, "PUT", &self.path("stop"), None, || {});
        let changed = stopped.and_then(|()| {
            repeat(workers, method, &self.path("offsets"), body.as_ref(), || self.lock()[place].requests += 1)
        });
        let resumed = repeat(workers, "PUT", &self.path("resume"), None, || {});
        let went_on = changed.is_ok() && resumed.is_ok() && self.go_on(workers, next);
        self.lock()[place].went_on = went_on;
        let told = |what: Result<(), String>| what.err().unwrap_or_else(|| "done".to_owned());
        format!("{which:?} to {next}: {}; resumed: {}; went on: {went_on}", told(changed), told(resumed))
    }

    /// Whether all tasks commit numbers of the place that they were put to.
    fn go_on(&self, workers: &[Rest], next: u64) -> bool {
        let deadline = Instant::now() + WATCH_PATIENCE;
        for rest in workers.iter().cycle() {
            let now = stored(rest, self.connector);
            if (0..self.tasks).all(|task| now.get(&task).is_some_and(|n| (next..next + STRETCH).contains(n))) {
                return true;
            }
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(ASK_EVERY);
        }
        false
    }

    /// Holds the numbers of each task, in the order of its records, against the moves.
    ///
    /// # Errors
    /// Something is there, or is not, that no move explains.
    pub fn account(&self, written: &BTreeMap<u32, Vec<u64>>) -> Result<Account, String> {
        account(&self.lock(), written)
    }
}

fn next_of(moves: &[Asked], which: Move) -> u64 {
    let count = |wanted: Move| moves.iter().filter(|asked| asked.which == wanted).count() as u64;
    match which {
        Move::Forward => (count(Move::Forward) + 1) * STRETCH,
        // Each back to another number, so that each can be told from the others.
        Move::Back => count(Move::Forward) * STRETCH + count(Move::Back) + 1,
        Move::Reset => 0,
    }
}

/// The request for it: the offset is the last number that counts as written.
fn change(next: u64, tasks: u32) -> (&'static str, Option<Value>) {
    let Some(last) = next.checked_sub(1) else { return ("DELETE", None) };
    let one = |task: u32| json!({"partition": {"task": task}, "offset": {"n": last}});
    ("PATCH", Some(json!({"offsets": (0..tasks).map(one).collect::<Vec<_>>()})))
}

/// Asks one worker after the other until one says yes.
fn repeat(
    workers: &[Rest],
    method: &str,
    path: &str,
    body: Option<&Value>,
    mut on_request: impl FnMut(),
) -> Result<(), String> {
    let deadline = Instant::now() + ASK_PATIENCE;
    let mut said = String::new();
    for rest in workers.iter().cycle() {
        if Instant::now() >= deadline {
            break;
        }
        on_request();
        match rest.request(method, path, body) {
            Ok(answer) if answer.status / 100 == 2 => return Ok(()),
            Ok(answer) => said = answer.to_string(),
            Err(error) => said = error.to_string(),
        }
        std::thread::sleep(ASK_EVERY);
    }
    Err(format!("{method} {path}: {said}"))
}

/// The last number of each task by the stored offsets.
pub fn stored(rest: &Rest, connector: &str) -> BTreeMap<u32, u64> {
    let answer = rest.request("GET", &format!("/connectors/{connector}/offsets"), None);
    let body = answer.map_or(Value::Null, |answer| answer.body);
    let all = body["offsets"].as_array().into_iter().flatten();
    let number =
        |one: &Value| Some((u32::try_from(one["partition"]["task"].as_u64()?).ok()?, one["offset"]["n"].as_u64()?));
    all.filter_map(number).collect()
}

fn account(moves: &[Asked], written: &BTreeMap<u32, Vec<u64>>) -> Result<Account, String> {
    let mut allowed: BTreeMap<u64, u32> = BTreeMap::new();
    let mut required: BTreeMap<u64, usize> = BTreeMap::new();
    for asked in moves {
        *allowed.entry(asked.next).or_default() += asked.requests;
        *required.entry(asked.next).or_default() += usize::from(asked.went_on);
    }
    let mut account = Account::default();
    for (&task, numbers) in written {
        let (mut due, mut left) = (0, allowed.clone());
        let first = account.jumps.len();
        for &number in numbers {
            if number != due {
                match left.get_mut(&number) {
                    Some(left @ 1..) => *left -= 1,
                    _ => {
                        return Err(format!(
                            "task {task}: {number} stands where {due} was due, and no move explains it"
                        ));
                    }
                }
                account.jumps.push(Jump { task, due, to: number });
            }
            due = number + 1;
        }
        for (next, times) in &required {
            let found = account.jumps[first..].iter().filter(|jump| jump.to == *next).count();
            if found < *times {
                return Err(format!("task {task}: {times} moves to {next} were made, and {found} are found"));
            }
        }
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        account.doubled += (numbers.len() - distinct.len()) as u64;
        account.missing += distinct.last().map_or(0, |last| last + 1 - distinct.len() as u64);
    }
    Ok(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(which: Move, next: u64, requests: u32) -> Asked {
        Asked { which, next, requests, went_on: false }
    }

    fn of(moves: &[Asked], numbers: &[u64]) -> Result<Account, String> {
        account(moves, &BTreeMap::from([(0, numbers.to_vec())]))
    }

    #[test]
    fn each_kind_of_move_leads_to_a_number_of_its_own() {
        let mut moves = Vec::new();
        let mut next = |which| {
            let next = next_of(&moves, which);
            moves.push(asked(which, next, 1));
            next
        };
        assert_eq!([Move::Back, Move::Forward, Move::Back, Move::Reset].map(&mut next), [1, 1_000_000, 1_000_002, 0]);
        assert_eq!(change(0, 2), ("DELETE", None));
        let (method, body) = change(1_000_000, 1);
        assert_eq!(method, "PATCH");
        assert_eq!(body, Some(json!({"offsets": [{"partition": {"task": 0}, "offset": {"n": 999_999}}]})));
    }

    #[test]
    fn what_is_missing_and_doubled_is_what_the_moves_say() {
        let moves = [asked(Move::Forward, 10, 1), asked(Move::Back, 11, 1), asked(Move::Reset, 0, 1)];
        let account = of(&moves, &[0, 1, 10, 11, 12, 11, 12, 13, 0, 1, 2]).unwrap();
        let jump = |due, to| Jump { task: 0, due, to };
        assert_eq!(account.jumps, [jump(2, 10), jump(13, 11), jump(14, 0)]);
        assert_eq!((account.missing, account.doubled), (7, 4));
    }

    #[test]
    fn what_nobody_asked_for_is_a_fault() {
        assert!(of(&[], &[0, 1, 2]).is_ok());
        assert!(of(&[], &[0, 2]).is_err());
        assert!(of(&[], &[0, 1, 1]).is_err());
        let once = [asked(Move::Reset, 0, 1)];
        assert!(of(&once, &[0, 1, 0, 1]).is_ok());
        assert!(of(&once, &[0, 1, 0, 1, 0]).is_err(), "more often than it was asked for");
    }

    #[test]
    fn a_move_that_was_made_has_to_be_found() {
        let made = [Asked { went_on: true, ..asked(Move::Forward, 10, 2) }];
        assert!(of(&made, &[0, 1, 10]).is_ok());
        assert!(of(&made, &[0, 1, 2]).is_err());
        assert!(of(&[asked(Move::Forward, 10, 2)], &[0, 1, 2]).is_ok(), "nobody knows whether this one was");
    }
}
