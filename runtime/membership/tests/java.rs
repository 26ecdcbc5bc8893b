//! Replays what Java's assignors were given and compares what they decided (see `tests/golden/assignor/SOURCE.md`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use oncewire_membership::*;

const ROUNDS: &str = include_str!("../../../tests/golden/assignor/rounds.txt");
const SCENARIOS: usize = 200;
const EAGER_ROUNDS: usize = 30;

fn load(items: &str, sign: &str) -> Load {
    let mut load = Load::default();
    for item in items.split_whitespace().filter_map(|item| item.strip_prefix(sign)) {
        match item.split_once('/') {
            None => load.connectors.insert(item.to_owned()),
            Some((connector, task)) => load.tasks.insert(TaskId::new(connector, task.parse().unwrap())),
        };
    }
    load
}

fn configured(text: &str, offset: i64) -> Configured {
    let tasks = text.split_whitespace().map(|connector| {
        let (name, count) = connector.split_once('=').unwrap();
        (name.to_owned(), (0..count.parse().unwrap()).collect())
    });
    Configured { offset, tasks: tasks.collect() }
}

fn url(member: &str) -> String {
    format!("http://{member}:8083/")
}

fn state(member: &str, held: Load) -> MemberState {
    let allocation = (!held.is_empty()).then(|| Assignment { assigned: held, ..Assignment::default() });
    MemberState { url: url(member), offset: 5, allocation }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Who owns what must be what members hold once they have done as told.
fn check_owners(round: &Round, outcome: &Outcome) {
    let mut owners = LeaderState::default();
    for (member, state) in &round.members {
        let told = &outcome.assignments[member];
        let mut runs = state.allocation.clone().unwrap_or_default().assigned;
        runs.remove_all(&told.revoked);
        runs.insert_all(&told.assigned);
        owners.connectors.extend(runs.connectors.into_iter().map(|connector| (connector, state.url.clone())));
        owners.tasks.extend(runs.tasks.into_iter().map(|task| (task, state.url.clone())));
    }
    assert_eq!(outcome.owners, owners);
}

#[test]
fn incremental_rounds_are_decided_as_java_decides_them() {
    let (mut scenarios, mut rounds, mut revoking, mut delayed) = (0, 0, 0, 0);
    let mut assignor = Assignor::new(Duration::ZERO);
    let mut place = String::new();
    let mut lines = ROUNDS.lines().peekable();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["scenario", number, "delay", delay] => {
                assignor = Assignor::new(Duration::from_millis(delay.parse().unwrap()));
                place = format!("scenario {number}");
                scenarios += 1;
            }
            ["leader"] => assignor.forget(),
            ["round", now, last, generation] => {
                let config = lines.next().unwrap().strip_prefix("config").unwrap();
                let mut members = BTreeMap::new();
                while let Some(member) = lines.peek().and_then(|line| line.strip_prefix("member ")) {
                    let (name, held) = member.split_at(1);
                    members.insert(name.to_owned(), state(name, load(held, "")));
                    lines.next();
                }
                let round = Round {
                    protocol: ConnectProtocol::Sessioned,
                    leader: members.keys().next().unwrap().clone(),
                    generation: generation.parse().unwrap(),
                    last_completed_generation: last.parse().unwrap(),
                    members,
                    configured: configured(config, 5),
                };
                let outcome = assignor.assign(round.clone(), now.parse().unwrap());
                let delay: u64 = lines.next().unwrap().strip_prefix("delay ").unwrap().parse().unwrap();
                assert_eq!(outcome.delay, Duration::from_millis(delay), "{place}, round {generation}");
                for (member, told) in &outcome.assignments {
                    let java =
                        lines.next().unwrap().strip_prefix("to ").unwrap().strip_prefix(member.as_str()).unwrap();
                    assert_eq!(told.assigned, load(java, "+"), "{place}, round {generation}, assigned to {member}");
                    assert_eq!(told.revoked, load(java, "-"), "{place}, round {generation}, revoked from {member}");
                    assert_eq!((told.error, told.offset, u64::try_from(told.delay_ms).unwrap()), (NO_ERROR, 5, delay));
                    revoking += usize::from(!told.revoked.is_empty());
                }
                check_owners(&round, &outcome);
                rounds += 1;
                delayed += usize::from(delay > 0);
            }
            ["eager", ..] => break,
            _ => panic!("{line}"),
        }
    }
    // A file cut short must not pass for a proof.
    assert_eq!((scenarios, rounds), (SCENARIOS, SCENARIOS * 12));
    assert!(revoking > 500 && delayed > 200, "{revoking} {delayed}");
}

#[test]
fn eager_rounds_give_the_same_bytes_as_java() {
    let (mut rounds, mut mismatches) = (0, 0);
    let mut lines = ROUNDS.lines().skip_while(|line| !line.starts_with("eager ")).peekable();
    while let Some(line) = lines.next() {
        let offset = line.rsplit(' ').next().unwrap().parse().unwrap();
        let config = lines.next().unwrap().strip_prefix("config").unwrap();
        let mut members = BTreeMap::new();
        while let Some(member) = lines.peek().and_then(|line| line.strip_prefix("member ")) {
            let (name, metadata) = member.split_once(' ').unwrap();
            let state = decode_metadata(&bytes(metadata)).unwrap();
            assert_eq!(encode_metadata(ConnectProtocol::Eager, &state), bytes(metadata));
            members.insert(name.to_owned(), state);
            lines.next();
        }
        let leader = lines.next().unwrap().strip_prefix("leader ").unwrap().to_owned();
        let configured = configured(config, offset);
        let round = Round {
            protocol: ConnectProtocol::Eager,
            leader,
            generation: 1,
            last_completed_generation: -1,
            members,
            configured,
        };
        let outcome = Assignor::new(Duration::ZERO).assign(round, 0);
        for (member, told) in &outcome.assignments {
            let java = lines.next().unwrap().strip_prefix(&format!("to {member} ")).unwrap();
            assert_eq!(*told, decode_assignment(&bytes(java)).unwrap(), "{line}, {member}");
            assert_eq!(encode_assignment(ConnectProtocol::Eager, told), bytes(java), "{line}, {member}");
            mismatches += usize::from(told.failed());
        }
        rounds += 1;
    }
    assert_eq!(rounds, EAGER_ROUNDS);
    assert!(mismatches > 0);
}
