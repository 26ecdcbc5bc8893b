//! A cluster in which everyone does as told, put through what happens to clusters. Scenarios A6 to A18 of the list of Connect's behaviour.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dealing_early;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use oncewire_membership::*;

const DELAY_MAX_MS: u64 = 300_000;

struct Cluster {
    assignor: Assignor,
    configured: Configured,
    held: BTreeMap<String, Load>,
    /// Members that hand over what they hold.
    going: BTreeSet<String>,
    generation: i32,
    last_completed: i32,
    now_ms: i64,
}

/// Which members get what the leader has decided.
#[derive(PartialEq)]
enum Delivery {
    All,
    None,
}

fn url(member: &str) -> String {
    format!("http://{member}:8083/")
}

impl Cluster {
    fn new(delay_max_ms: u64, members: &[&str], connectors: &[(&str, i32)]) -> Self {
        let mut cluster = Self {
            assignor: Assignor::new(Duration::from_millis(delay_max_ms)),
            configured: Configured { offset: 1, tasks: BTreeMap::new() },
            held: members.iter().map(|&member| (member.to_owned(), Load::default())).collect(),
            going: BTreeSet::new(),
            generation: 0,
            last_completed: -1,
            now_ms: 1_000,
        };
        connectors.iter().for_each(|&(connector, tasks)| cluster.configure(connector, tasks));
        cluster
    }

    fn configure(&mut self, connector: &str, tasks: i32) {
        self.configured.tasks.insert(connector.to_owned(), (0..tasks).collect());
    }

    fn join(&mut self, member: &str) {
        self.held.insert(member.to_owned(), Load::default());
    }

    fn leave(&mut self, member: &str) -> Load {
        self.held.remove(member).unwrap()
    }

    fn pass(&mut self, time: Duration) {
        self.now_ms += i64::try_from(time.as_millis()).unwrap();
    }

    fn round_for(&mut self, protocol: ConnectProtocol, delivery: Delivery) -> Outcome {
        self.generation += 1;
        for member in &self.going {
            self.held.insert(member.clone(), Load::default());
        }
        let members = self.held.iter().map(|(member, held)| {
            if self.going.contains(member) {
                return (member.clone(), MemberState::going(url(member), self.configured.offset));
            }
            let allocation = (!held.is_empty()).then(|| Assignment { assigned: held.clone(), ..Assignment::default() });
            (member.clone(), MemberState { url: url(member), offset: self.configured.offset, allocation })
        });
        let round = Round {
            protocol,
            leader: self.held.keys().next().unwrap().clone(),
            generation: self.generation,
            last_completed_generation: self.last_completed,
            members: members.collect(),
            configured: self.configured.clone(),
        };
        let outcome = self.assignor.assign(round, self.now_ms);
        if delivery == Delivery::All {
            for (member, held) in &mut self.held {
                let told = &outcome.assignments[member];
                let before = Assignment { assigned: held.clone(), ..Assignment::default() };
                *held = merge(Some(&before), told).assigned;
            }
            self.last_completed = self.generation;
        }
        outcome
    }

    fn round(&mut self) -> Outcome {
        self.round_for(ConnectProtocol::Sessioned, Delivery::All)
    }

    /// Rounds as they follow each other when nobody waits for a date, until there is nothing to revoke.
    fn settle(&mut self) {
        for _ in 0..10 {
            if self.round().assignments.values().all(|told| told.revoked.is_empty()) {
                return;
            }
        }
        panic!("ten rounds, and still something is revoked");
    }

    fn tasks_of(&self, member: &str) -> usize {
        self.held[member].tasks.len()
    }

    /// Everything configured runs, and runs once.
    fn check_complete(&self) {
        let mut running: Vec<&TaskId> = self.held.values().flat_map(|held| &held.tasks).collect();
        running.sort();
        let configured: Vec<TaskId> = self
            .configured
            .tasks
            .iter()
            .flat_map(|(connector, tasks)| tasks.iter().map(move |&task| TaskId::new(connector, task)))
            .collect();
        assert_eq!(running, configured.iter().collect::<Vec<_>>());
        let mut connectors: Vec<&String> = self.held.values().flat_map(|held| &held.connectors).collect();
        connectors.sort();
        assert_eq!(connectors, self.configured.tasks.keys().collect::<Vec<_>>());
    }
}

fn revoked(outcome: &Outcome) -> usize {
    outcome.assignments.values().map(|told| told.revoked.len()).sum()
}

fn assigned(outcome: &Outcome) -> usize {
    outcome.assignments.values().map(|told| told.assigned.len()).sum()
}

const NO_DELAY: Duration = Duration::ZERO;

/// Scenario A6.
#[test]
fn eager_round_robin() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2"], &[("a", 2), ("b", 1)]);
    let outcome = cluster.round_for(ConnectProtocol::Eager, Delivery::All);
    let load = |connectors: &[&str], tasks: &[(&str, i32)]| Load {
        connectors: connectors.iter().map(|&connector| connector.to_owned()).collect(),
        tasks: tasks.iter().map(|&(connector, task)| TaskId::new(connector, task)).collect(),
    };
    assert_eq!(outcome.assignments["m1"].assigned, load(&["a"], &[("a", 0), ("b", 0)]));
    assert_eq!(outcome.assignments["m2"].assigned, load(&["b"], &[("a", 1)]));
    assert_eq!(outcome.owners.task_url(&TaskId::new("b", 0)), Some("http://m1:8083/"));
    assert_eq!(outcome.owners.connector_url("b"), Some("http://m2:8083/"));
    // With one connector the tasks go on where it left off.
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2"], &[("a", 2)]);
    let outcome = cluster.round_for(ConnectProtocol::Eager, Delivery::All);
    assert_eq!(outcome.assignments["m2"].assigned, load(&[], &[("a", 0)]));
    cluster.check_complete();
}

/// Scenario A7, the leader's part; what it then does is `resolve`'s.
#[test]
fn leader_behind() {
    let ahead = MemberState { url: url("m2"), offset: 9, allocation: None };
    let leader = MemberState { url: url("m1"), offset: 7, allocation: None };
    for protocol in ConnectProtocol::Sessioned.offered() {
        let round = Round {
            protocol,
            leader: "m1".to_owned(),
            generation: 3,
            last_completed_generation: 2,
            members: BTreeMap::from([("m1".to_owned(), leader.clone()), ("m2".to_owned(), ahead.clone())]),
            configured: Configured { offset: 8, tasks: BTreeMap::from([("a".to_owned(), vec![0])]) },
        };
        let mut assignor = Assignor::new(NO_DELAY);
        let outcome = assignor.assign(round.clone(), 0);
        for told in outcome.assignments.values() {
            assert_eq!((told.error, told.offset, told.delay_ms), (CONFIG_MISMATCH, 9, 0));
            assert!(told.assigned.is_empty() && told.revoked.is_empty());
            assert_eq!((told.leader.as_str(), told.leader_url.as_str()), ("m1", "http://m1:8083/"));
        }
        assert_eq!(outcome.assignments.len(), 2);
        assert_eq!(outcome.owners, LeaderState::default());
        let told = &outcome.assignments["m1"];
        assert_eq!(resolve(told, 8, "m1", Reread::Pending), Resolve::ReadConfigs, "the leader reads on");
        assert_eq!(resolve(told, 9, "m1", Reread::Done), Resolve::Rejoin, "and asks for another round");
        assert_eq!(resolve(told, 9, "m2", Reread::Pending), Resolve::Rejoin, "who was ahead has nothing to read");
        // A fresh snapshot that has caught up, or gone past the others, is used, and its offset told.
        let fresh = Configured { offset: 10, ..round.configured.clone() };
        let outcome = assignor.assign(Round { configured: fresh, ..round }, 0);
        assert!(outcome.assignments.values().all(|told| (told.error, told.offset) == (NO_ERROR, 10)));
        assert_eq!(assigned(&outcome), 2);
    }
}

/// Scenario A8.
#[test]
fn member_ahead() {
    let told = Assignment { offset: 7, leader: "m1".to_owned(), ..Assignment::default() };
    assert_eq!(resolve(&told, 7, "m2", Reread::Pending), Resolve::Work);
    assert_eq!(resolve(&told, 8, "m2", Reread::Pending), Resolve::Rejoin);
    assert_eq!(resolve(&told, 6, "m2", Reread::Pending), Resolve::ReadConfigs);
    assert_eq!(resolve(&told, 7, "m2", Reread::Done), Resolve::Work);
    assert_eq!(resolve(&told, 8, "m2", Reread::Done), Resolve::Rejoin, "the read went past the assignment");
}

/// Scenario A10.
#[test]
fn two_phase_revocation() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1"], &[("a", 4), ("b", 4)]);
    cluster.settle();
    assert_eq!(cluster.tasks_of("m1"), 8);
    cluster.join("m2");
    let first = cluster.round();
    assert_eq!((first.assignments["m1"].revoked.tasks.len(), first.assignments["m1"].revoked.connectors.len()), (4, 1));
    assert!(first.assignments["m2"].assigned.is_empty());
    assert_eq!(first.delay, NO_DELAY);
    let second = cluster.round();
    assert_eq!(second.assignments["m2"].assigned, first.assignments["m1"].revoked);
    assert_eq!(revoked(&second), 0);
    cluster.check_complete();
}

/// Scenario A11.
#[test]
fn worker_bounce_within_delay() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 4), ("b", 4)]);
    cluster.settle();
    let lost = cluster.leave("m3");
    let alone = cluster.round();
    assert_eq!((alone.delay, assigned(&alone)), (Duration::from_millis(DELAY_MAX_MS), 0));
    cluster.pass(alone.delay / 3);
    cluster.join("m3");
    let back = cluster.round();
    assert_eq!((back.delay, assigned(&back)), (Duration::from_millis(DELAY_MAX_MS) * 2 / 3, 0));
    cluster.pass(back.delay);
    let expired = cluster.round();
    assert_eq!(expired.assignments["m3"].assigned, lost);
    assert_eq!((expired.delay, revoked(&expired)), (NO_DELAY, 0));
    cluster.check_complete();
}

/// Scenario A12.
#[test]
fn worker_leaves_for_good() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 4), ("b", 4)]);
    cluster.settle();
    cluster.leave("m3");
    let delay = cluster.round().delay;
    cluster.pass(delay);
    let expired = cluster.round();
    assert_eq!((expired.delay, revoked(&expired)), (NO_DELAY, 0));
    assert_eq!((cluster.tasks_of("m1"), cluster.tasks_of("m2")), (4, 4));
    cluster.check_complete();
}

/// Scenario A13.
#[test]
fn leader_leaves() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 4), ("b", 4)]);
    cluster.settle();
    cluster.leave("m1");
    cluster.assignor = Assignor::new(Duration::from_millis(DELAY_MAX_MS));
    let outcome = cluster.round();
    assert_eq!(outcome.delay, NO_DELAY);
    cluster.check_complete();
}

/// Beyond A13: told what the old leader left behind, the new one waits for it as for anybody else.
#[test]
fn a_new_leader_keeps_what_was_left_behind_for_the_worker_that_comes_back() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 4), ("b", 5)]);
    cluster.settle();
    let (second, third) = (cluster.held["m2"].clone(), cluster.held["m3"].clone());
    let lost = cluster.leave("m1");
    cluster.assignor.take_over(lost.clone(), 1, cluster.last_completed);
    let alone = cluster.round();
    assert_eq!((alone.delay, assigned(&alone), revoked(&alone)), (Duration::from_millis(DELAY_MAX_MS), 0, 0));
    cluster.pass(alone.delay / 3);
    cluster.join("m1 again");
    let back = cluster.round();
    assert_eq!((back.delay, assigned(&back)), (Duration::from_millis(DELAY_MAX_MS) * 2 / 3, 0));
    cluster.pass(back.delay);
    let expired = cluster.round();
    assert_eq!(expired.assignments["m1 again"].assigned, lost);
    assert_eq!((expired.delay, revoked(&expired)), (NO_DELAY, 0));
    assert_eq!((&cluster.held["m2"], &cluster.held["m3"]), (&second, &third), "nothing else moved");
    cluster.settle();
    cluster.check_complete();
}

#[test]
fn a_new_leader_waits_no_longer_than_the_delay_for_who_does_not_come_back() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 4), ("b", 4)]);
    cluster.settle();
    let lost = cluster.leave("m1");
    // Its first round reaches nobody; the second begins anew.
    cluster.assignor.take_over(lost.clone(), 1, cluster.last_completed);
    cluster.round_for(ConnectProtocol::Sessioned, Delivery::None);
    cluster.assignor.take_over(lost, 1, cluster.last_completed);
    let delay = cluster.round().delay;
    cluster.pass(delay);
    let expired = cluster.round();
    assert_eq!((delay, expired.delay, revoked(&expired)), (Duration::from_millis(DELAY_MAX_MS), NO_DELAY, 0));
    cluster.check_complete();
}

#[test]
fn who_is_back_before_the_new_leaders_first_round_gets_what_it_had_at_once() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 4), ("b", 5)]);
    cluster.settle();
    let lost = cluster.leave("m1");
    cluster.join("m1 again");
    cluster.assignor.take_over(Load::default(), 0, cluster.last_completed);
    let first = cluster.round();
    assert_eq!((first.delay, revoked(&first)), (NO_DELAY, 0));
    assert_eq!(first.assignments["m1 again"].assigned.tasks, lost.tasks);
    assert_eq!(revoked(&cluster.round()), 0);
    cluster.check_complete();
}

#[test]
fn with_a_delay_of_zero_a_new_leader_waits_for_nobody() {
    let mut cluster = Cluster::new(0, &["m1", "m2"], &[("a", 4)]);
    cluster.settle();
    let lost = cluster.leave("m1");
    cluster.assignor.take_over(lost, 1, cluster.last_completed);
    assert_eq!(cluster.round().delay, NO_DELAY);
    cluster.check_complete();
}

/// Scenario A14.
#[test]
fn delay_zero() {
    let mut cluster = Cluster::new(0, &["m1", "m2", "m3"], &[("a", 4), ("b", 4)]);
    cluster.settle();
    cluster.leave("m3");
    assert_eq!(cluster.round().delay, NO_DELAY);
    cluster.check_complete();
    // Two that revoke in a row, each of them at once.
    cluster.join("m3");
    assert!(revoked(&cluster.round()) > 0);
    cluster.join("m4");
    let again = cluster.round();
    assert!(revoked(&again) > 0);
    assert_eq!(again.delay, NO_DELAY);
    cluster.settle();
    cluster.check_complete();
}

/// Scenario A15.
#[test]
fn consecutive_revocation_backoff() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1"], &[("a", 200)]);
    cluster.settle();
    let mut delays = Vec::new();
    for newcomer in 2..8 {
        cluster.join(&format!("m{newcomer}"));
        assert!(revoked(&cluster.round()) > 0, "the first revocation is at once");
        cluster.join(&format!("n{newcomer}"));
        let put_off = cluster.round();
        assert_eq!(revoked(&put_off), 0, "the second waits");
        delays.push(put_off.delay.as_millis());
        cluster.pass(put_off.delay);
    }
    assert_eq!(delays, [40, 1_600, 64_000, 300_000, 300_000, 300_000]);
    cluster.settle();
    cluster.settle();
    cluster.check_complete();
    // Rounds without a revocation have reset it.
    cluster.join("o1");
    cluster.round();
    cluster.join("o2");
    assert_eq!(cluster.round().delay, Duration::from_millis(40));
}

/// Scenario A16.
#[test]
fn sync_failure_is_not_departure() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2"], &[("a", 4)]);
    cluster.settle();
    cluster.configure("b", 4);
    let undelivered = cluster.round_for(ConnectProtocol::Sessioned, Delivery::None);
    assert_eq!(assigned(&undelivered), 5);
    let again = cluster.round();
    assert_eq!((again.delay, assigned(&again)), (NO_DELAY, 5));
    cluster.check_complete();
    // And when the leader got its own part, but the others did not get theirs.
    cluster.configure("c", 4);
    let before = cluster.held["m2"].clone();
    cluster.round();
    cluster.held.insert("m2".to_owned(), before);
    assert_eq!(cluster.round().delay, NO_DELAY);
    cluster.check_complete();
}

/// Scenario A17.
#[test]
fn duplicates() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2"], &[("a", 4)]);
    cluster.settle();
    let asleep = cluster.leave("m2");
    let delay = cluster.round().delay;
    cluster.pass(delay);
    cluster.round();
    cluster.check_complete();
    cluster.held.insert("m2".to_owned(), asleep.clone());
    let both = cluster.round();
    assert_eq!(both.assignments["m1"].revoked.intersection(&asleep), asleep);
    assert_eq!(both.assignments["m2"].revoked, asleep);
    cluster.settle();
    cluster.check_complete();
    assert_eq!((cluster.tasks_of("m1"), cluster.tasks_of("m2")), (2, 2));
}

/// Scenario A18.
#[test]
fn deleted_connector() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2"], &[("a", 4), ("b", 2)]);
    cluster.settle();
    cluster.configured.tasks.remove("a");
    let outcome = cluster.round();
    assert_eq!(revoked(&outcome), 5);
    assert_eq!((outcome.delay, outcome.owners.connector_url("a")), (NO_DELAY, None));
    cluster.settle();
    cluster.check_complete();
}

/// Beyond A18: Java's new leader lets such work run on until another rebalance comes by.
#[test]
fn a_new_leader_revokes_what_was_deleted_before_its_time() {
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2"], &[("a", 4), ("b", 2)]);
    cluster.settle();
    cluster.configured.tasks.remove("a");
    cluster.assignor.forget();
    assert_eq!(revoked(&cluster.round()), 5);
    cluster.settle();
    cluster.check_complete();
}

#[test]
fn a_connector_whose_name_does_not_fit_the_wire_is_never_handed_out() {
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1"], &[("a", 1), (&long, 3)]);
    assert_eq!(assigned(&cluster.round()), 2);
    assert_eq!(revoked(&cluster.round()), 0);
}

#[test]
fn merge_keeps_what_is_not_revoked() {
    let load = |connectors: &[&str]| Load {
        connectors: connectors.iter().map(|&name| name.to_owned()).collect(),
        tasks: BTreeSet::new(),
    };
    let previous = Assignment { assigned: load(&["a", "b"]), offset: 1, ..Assignment::default() };
    let new =
        Assignment { assigned: load(&["c"]), revoked: load(&["b"]), offset: 2, delay_ms: 5, ..Assignment::default() };
    let merged = merge(Some(&previous), &new);
    assert_eq!(merged, Assignment { assigned: load(&["a", "c"]), ..new.clone() });
    assert_eq!(merge(None, &new), new);
}

#[test]
fn a_member_that_cannot_read_configs_waits_longer_and_longer_and_then_gives_up_its_work() {
    let mut backoff = Backoff::new(Duration::from_millis(DELAY_MAX_MS), Duration::from_mins(5));
    let mut waits = || match backoff.failed(ConnectProtocol::Sessioned) {
        AfterFailure::Wait(wait) => wait.as_millis(),
        AfterFailure::RevokeAll => 0,
    };
    assert_eq!(
        [waits(), waits(), waits(), waits(), waits(), waits(), waits()],
        [6_000, 7_500, 10_000, 15_000, 30_000, 0, 6_000]
    );
    backoff.succeeded();
    assert_eq!(backoff.failed(ConnectProtocol::Compatible), AfterFailure::Wait(Duration::from_secs(6)));
    assert_eq!(backoff.failed(ConnectProtocol::Eager), AfterFailure::Wait(Duration::from_mins(5)));
}

/// What a worker that drains holds goes to the others in one round, whoever leads and however level the load is; then nobody waits for it.
#[test]
fn who_is_going_gets_nothing_and_is_not_waited_for() {
    for going in ["m1", "m2"] {
        let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1", "m2", "m3"], &[("a", 6), ("b", 3)]);
        cluster.settle();
        cluster.going.insert(going.to_owned());
        let outcome = cluster.round();
        assert_eq!((outcome.delay, revoked(&outcome)), (NO_DELAY, 0));
        assert!(cluster.held[going].is_empty());
        cluster.check_complete();
        cluster.going.clear();
        cluster.leave(going);
        let outcome = cluster.round();
        assert_eq!((outcome.delay, revoked(&outcome), assigned(&outcome)), (NO_DELAY, 0, 0));
        cluster.check_complete();
    }
}

/// Nobody is left: the next leader begins anew.
#[test]
fn the_last_member_may_go() {
    for protocol in ConnectProtocol::Sessioned.offered() {
        let mut cluster = Cluster::new(DELAY_MAX_MS, &["m1"], &[("a", 2)]);
        cluster.round_for(protocol, Delivery::All);
        cluster.going.insert("m1".to_owned());
        let outcome = cluster.round_for(protocol, Delivery::All);
        assert_eq!((outcome.assignments.len(), assigned(&outcome), outcome.delay), (1, 0, NO_DELAY));
    }
}
