//! The incremental cooperative way (KIP-415): what runs goes on running, and only what must move is stopped.
//!
//! A move takes two rounds: in the first its holder is told to stop, in the second, which the holder asks for, it is handed out.
//! When a worker is gone its work is left alone for a while, because most workers come back:
//!
//! ```text
//!                 work is missing, a member is gone: wait delay_max, all join again then
//!   settled ------------------------------------------------------------------------> waiting
//!      ^                                                                                 |
//!      |  the date has passed: to those who came with nothing meanwhile, else to all     |
//!      |  (dealing early) as many came with nothing as are gone: to them, at once        |
//!      +---------------------------------------------------------------------------------+
//! ```
//!
//! Revocations for the sake of balance in round after round (workers that flap) are put off too, by 40 ms, 1.6 s, 64 s… up to `delay_max`.
//!
//! The memory is the leader's alone. A new leader begins with none, and what departed workers held then counts as new and is handed out at
//! once; unless it is told what they left behind ([`Incremental::take_over`]).
//!
//! Differences from Java, all allowed for by the protocol: which member keeps one item more than others is by member id here and by hash
//! there; and what runs but is no longer configured is revoked even if we did not lead when it was assigned.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::assignor::Dealt;
use crate::balance::{self, Loads};
use crate::load::Load;

/// Each revocation in a row waits so many times longer than the one before.
const REVOCATION_BACKOFF_MULTIPLIER: i64 = 40;

/// The leader's memory.
#[derive(Debug, Clone)]
pub(crate) struct Incremental {
    delay_max_ms: i64,
    /// What the last round left in the cluster, what was lost included.
    assigned: Load,
    /// What the last round told members to stop.
    revoked: Load,
    members: BTreeSet<String>,
    generation: i32,
    /// When lost work is handed out, and everyone joins again; 0: no such date.
    scheduled_ms: i64,
    delay_ms: i64,
    /// Members that came with nothing while lost work waits, in order of their coming.
    candidates: Vec<String>,
    /// Whether lost work goes to those who came in place of the missing before the date.
    deals_early: bool,
    /// How many members are missed since lost work waits.
    missing: usize,
    /// Those who came since then and had not been here, in order of their coming.
    returned: Vec<String>,
    revoked_in_previous: bool,
    successive_revocations: u32,
}

impl Incremental {
    pub(crate) fn new(delay_max: Duration, deals_early: bool) -> Self {
        Self {
            delay_max_ms: i64::from(i32::try_from(delay_max.as_millis()).unwrap_or(i32::MAX)),
            assigned: Load::default(),
            revoked: Load::default(),
            members: BTreeSet::new(),
            generation: -1,
            scheduled_ms: 0,
            delay_ms: 0,
            candidates: Vec::new(),
            deals_early,
            missing: 0,
            returned: Vec::new(),
            revoked_in_previous: false,
            successive_revocations: 0,
        }
    }

    pub(crate) fn forget(&mut self) {
        let delay_max = Duration::from_millis(self.delay_max_ms.unsigned_abs());
        *self = Self::new(delay_max, self.deals_early);
    }

    /// Begins to lead a group that has lived before: `lost` is what so many `workers` that are gone left behind, and waits for them as if
    /// this leader had assigned it in `last_completed_generation`.
    pub(crate) fn take_over(&mut self, lost: Load, workers: usize, last_completed_generation: i32) {
        self.forget();
        // Each stands for one who is gone; no member has such an id.
        let workers = if lost.is_empty() { 0 } else { workers.max(1) };
        self.members = (0..workers).map(|number| format!("gone/{number}")).collect();
        self.assigned = lost;
        self.generation = last_completed_generation;
    }

    /// One round: each member's part, and the delay in milliseconds. `going` are members that are here for the last time, with nothing: they get
    /// nothing, and nobody waits for them.
    pub(crate) fn deal(
        &mut self,
        held: Loads,
        going: &BTreeSet<String>,
        configured: Load,
        last_completed_generation: i32,
        generation: i32,
        now_ms: i64,
    ) -> (BTreeMap<String, Dealt>, i32) {
        let active = held.values().fold(Load::default(), |sum, load| sum.union(load));
        self.recall(&active, last_completed_generation);

        let deleted = self.assigned.union(&active).difference(&configured);
        let lost = self.assigned.difference(&active).difference(&deleted);
        let created = configured.difference(&self.assigned).difference(&active);
        // Of what runs twice every holder is told to stop it; the round that follows hands it out once.
        let mut revoked = Loads::new();
        let stop = deleted.union(&duplicated(&held));
        for (member, load) in &held {
            add(&mut revoked, member, load.intersection(&stop));
        }
        let mut next = held.clone();
        take_away(&mut next, &revoked);

        let again = self.handle_lost(&lost, &mut next, going, now_ms);
        let surplus = self.balance(&held, &next, &configured, now_ms);
        take_away(&mut next, &surplus);
        surplus.into_iter().for_each(|(member, load)| add(&mut revoked, &member, load));
        balance::fill(&mut next, [&created, &again]);

        self.remember(&next, &revoked, &lost, generation);
        let dealt = next
            .into_iter()
            .map(|(member, owned)| {
                let assigned = owned.difference(&held[&member].difference(&deleted));
                let revoked = revoked.remove(&member).unwrap_or_default();
                (member, Dealt { assigned, revoked, owned })
            })
            .collect();
        (dealt, i32::try_from(self.delay_ms).unwrap_or(i32::MAX))
    }

    /// Drops from memory what did not come to pass.
    fn recall(&mut self, active: &Load, last_completed_generation: i32) {
        if self.generation != last_completed_generation {
            // Our last assignment reached nobody, or another has led since.
            self.assigned = Load::default();
        }
        let revoked = std::mem::take(&mut self.revoked);
        if !revoked.intersection(active).is_empty() {
            self.assigned = active.clone();
        }
    }

    /// Decides about work that nobody runs any more: returns what is to be handed out now, or gives it to candidates in `next`, or waits.
    fn handle_lost(&mut self, lost: &Load, next: &mut Loads, going: &BTreeSet<String>, now_ms: i64) -> Load {
        if lost.is_empty() && !self.revoked_in_previous {
            self.reset_delay();
            return Load::default();
        }
        self.note_missing(next, going);
        let all_are_here = self.members.iter().all(|member| next.contains_key(member) || going.contains(member));
        if (self.scheduled_ms <= 0 && all_are_here) || self.delay_max_ms == 0 {
            // All are here: it was the assignment that got lost, not a worker.
            return lost.clone();
        }
        if self.scheduled_ms > 0 && now_ms >= self.scheduled_ms {
            let candidates: Vec<String> =
                self.candidates.iter().filter(|member| next.contains_key(*member)).cloned().collect();
            self.reset_delay();
            self.revoked_in_previous = false;
            if candidates.is_empty() {
                return lost.clone();
            }
            deal_round(lost, &candidates, next);
            return Load::default();
        }
        if self.deals_early && !lost.is_empty() && self.missing > 0 && self.returned.len() >= self.missing {
            deal_round(lost, &std::mem::take(&mut self.returned), next);
            self.reset_delay();
            return Load::default();
        }
        for (member, _) in next.iter().filter(|(_, load)| load.is_empty()) {
            if !self.candidates.contains(member) {
                self.candidates.push(member.clone());
            }
        }
        self.delay_ms = if now_ms < self.scheduled_ms {
            (self.scheduled_ms - now_ms).min(self.delay_max_ms)
        } else {
            self.delay_max_ms
        };
        self.scheduled_ms = now_ms + self.delay_ms;
        Load::default()
    }

    /// Counts who is missed and who came instead. Whoever comes and goes again while work waits had none of it.
    fn note_missing(&mut self, next: &Loads, going: &BTreeSet<String>) {
        let is_away = |member: &String| !next.contains_key(member) && !going.contains(member);
        self.missing += self.members.iter().filter(|member| is_away(member) && !self.returned.contains(member)).count();
        self.returned.retain(|member| next.contains_key(member));
        let came = next.iter().filter(|(member, load)| load.is_empty() && !self.members.contains(*member));
        self.returned.extend(came.map(|(member, _)| member.clone()));
    }

    fn reset_delay(&mut self) {
        self.candidates.clear();
        self.missing = 0;
        self.returned.clear();
        self.scheduled_ms = 0;
        self.delay_ms = 0;
    }

    /// What to take from members for the sake of balance in this round.
    fn balance(&mut self, held: &Loads, next: &Loads, configured: &Load, now_ms: i64) -> Loads {
        if self.delay_ms != 0 {
            self.revoked_in_previous = false;
            return Loads::new();
        }
        let surplus = balance::surplus(held, next, configured);
        if surplus.is_empty() {
            if self.revoked_in_previous {
                self.revoked_in_previous = false;
                self.successive_revocations = 0;
            }
        } else if self.revoked_in_previous {
            self.successive_revocations = self.successive_revocations.saturating_add(1);
            self.delay_ms =
                REVOCATION_BACKOFF_MULTIPLIER.saturating_pow(self.successive_revocations).min(self.delay_max_ms);
            if self.delay_ms != 0 {
                self.scheduled_ms = now_ms + self.delay_ms;
                return Loads::new();
            }
        } else {
            self.revoked_in_previous = true;
        }
        surplus
    }

    fn remember(&mut self, next: &Loads, revoked: &Loads, lost: &Load, generation: i32) {
        self.assigned = next.values().fold(Load::default(), |sum, load| sum.union(load));
        self.revoked = revoked.values().fold(Load::default(), |sum, load| sum.union(load));
        self.assigned.remove_all(&self.revoked);
        self.assigned.insert_all(lost);
        self.members = next.keys().cloned().collect();
        self.generation = generation;
    }
}

/// What more than one member runs.
fn duplicated(held: &Loads) -> Load {
    let (mut seen, mut twice) = (Load::default(), Load::default());
    for load in held.values() {
        twice.insert_all(&load.intersection(&seen));
        seen.insert_all(load);
    }
    twice
}

/// Deals `lost` to `candidates` in turn, connectors and tasks each beginning with the first.
fn deal_round(lost: &Load, candidates: &[String], next: &mut Loads) {
    for (connector, member) in lost.connectors.iter().zip(candidates.iter().cycle()) {
        next.entry(member.clone()).or_default().connectors.insert(connector.clone());
    }
    for (task, member) in lost.tasks.iter().zip(candidates.iter().cycle()) {
        next.entry(member.clone()).or_default().tasks.insert(task.clone());
    }
}

fn add(loads: &mut Loads, member: &str, load: Load) {
    if !load.is_empty() {
        loads.entry(member.to_owned()).or_default().insert_all(&load);
    }
}

fn take_away(loads: &mut Loads, away: &Loads) {
    for (member, load) in away {
        if let Some(held) = loads.get_mut(member) {
            held.remove_all(load);
        }
    }
}
