//! The member's machine: every state with every input against one table, the stories behind its rules, and a random walk.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::state::*;
use super::{GroupConfig, GroupEvent, Lost, Protocol};
use crate::cluster::{Backoff, NodeId};
use crate::error::Error;
use crate::wire::error_code::ErrorCode;

const HEARTBEAT: Duration = Duration::from_secs(3);
const SESSION: Duration = Duration::from_secs(10);
const REBALANCE: Duration = Duration::from_secs(60);
/// No pause of the tests' back-off is longer.
const PAUSE: Duration = Duration::from_secs(1);

/// A machine with its clock and the requests that it sent.
struct Member {
    machine: Machine,
    now: Instant,
    sent: Vec<(Ticket, Request)>,
    abandoned: usize,
}

fn protocols() -> Vec<Protocol> {
    vec![Protocol { name: "p".into(), metadata: Bytes::from_static(b"m") }]
}

fn joined(generation: i32, leader: &str) -> Answer {
    let members = if leader == "me" { vec![("me".to_owned(), Bytes::new())] } else { Vec::new() };
    let (protocol, member_id, leader_id) = ("p".to_owned(), "me".to_owned(), leader.to_owned());
    Answer::Joined(Joined { generation, protocol, member_id, leader_id, members })
}

fn code(code: i16) -> Result<Answer, Error> {
    Err(Error::broker("Test", code, "group 'g'"))
}

fn disconnected() -> Result<Answer, Error> {
    Err(Error::Disconnected { peer: "node 1".into(), reason: "the broker closed it".into() })
}

impl Member {
    fn new() -> Self {
        let config = GroupConfig {
            group_id: "g".into(),
            protocol_type: "t".into(),
            session_timeout: SESSION,
            rebalance_timeout: REBALANCE,
            heartbeat_interval: HEARTBEAT,
        };
        let now = Instant::now();
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(800));
        Self { machine: Machine::new(config, backoff, now), now, sent: Vec::new(), abandoned: 0 }
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Send { ticket, request } => self.sent.push((ticket, request)),
                Output::Abandon(_) => self.abandoned += 1,
            }
        }
    }

    fn poll(&mut self) -> Option<GroupEvent> {
        self.machine.handle_polled(self.now);
        let event = self.machine.poll_event();
        self.drain();
        event
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.machine.handle_timeout(self.now);
        self.drain();
    }

    fn offer(&mut self) {
        self.machine.handle_offer(self.now, protocols());
        self.drain();
    }

    fn assign(&mut self) {
        self.machine.handle_assign(self.now, vec![("me".into(), Bytes::from_static(b"a"))]);
        self.drain();
    }

    fn rejoin(&mut self) {
        self.machine.handle_rejoin(self.now, "wanted");
        self.drain();
    }

    fn leave(&mut self) {
        self.machine.handle_leave(self.now, "bye", SESSION);
        self.drain();
    }

    /// Answers the latest request of a kind.
    fn answer(&mut self, kind: &str, answer: Result<Answer, Error>) {
        let found = self.sent.iter().rposition(|(_, request)| name(request) == kind);
        let ticket = found.map(|at| self.sent[at].0).unwrap_or_else(|| panic!("no {kind} was sent"));
        self.machine.handle_answer(self.now, 0, ticket, answer);
        self.drain();
    }

    fn has_sent(&self, kind: &str) -> bool {
        self.sent.iter().any(|(_, request)| name(request) == kind)
    }
}

fn name(request: &Request) -> &'static str {
    match request {
        Request::FindCoordinator => "find",
        Request::Join { .. } => "join",
        Request::Sync { .. } => "sync",
        Request::Heartbeat { .. } => "heartbeat",
        Request::Leave { .. } => "leave",
    }
}

// The ways into each state; the last request of each is unanswered.

fn idle() -> Member {
    Member::new()
}

fn looking() -> Member {
    let mut member = idle();
    assert!(member.poll().is_none());
    member
}

fn offering() -> Member {
    let mut member = looking();
    member.answer("find", Ok(Answer::Found(NodeId(1))));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member
}

fn joining() -> Member {
    let mut member = offering();
    member.offer();
    member
}

fn pausing() -> Member {
    let mut member = joining();
    member.answer("join", code(14));
    member
}

fn leading() -> Member {
    let mut member = joining();
    member.answer("join", Ok(joined(1, "me")));
    assert!(matches!(member.poll(), Some(GroupEvent::Lead { generation: 1, .. })));
    member
}

fn syncing() -> Member {
    let mut member = joining();
    member.answer("join", Ok(joined(1, "other")));
    member
}

fn stable() -> Member {
    let mut member = syncing();
    member.answer("sync", Ok(Answer::Synced(Bytes::from_static(b"a"))));
    assert!(matches!(member.poll(), Some(GroupEvent::Assigned { generation: 1, .. })));
    member
}

/// Asked to offer again, still with the old assignment and its heartbeats.
fn reoffering() -> Member {
    let mut member = stable();
    member.rejoin();
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member
}

fn rejoining() -> Member {
    let mut member = reoffering();
    member.offer();
    member
}

/// In the group, and the coordinator is being looked for.
fn astray() -> Member {
    let mut member = stable();
    member.pass(HEARTBEAT);
    member.answer("heartbeat", code(16));
    member.pass(PAUSE);
    member
}

fn leaving() -> Member {
    let mut member = stable();
    member.leave();
    member
}

type Way = (&'static str, fn() -> Member);

const STATES: &[Way] = &[
    ("idle", idle),
    ("looking", looking),
    ("offering", offering),
    ("joining", joining),
    ("pausing", pausing),
    ("leading", leading),
    ("syncing", syncing),
    ("stable", stable),
    ("reoffering", reoffering),
    ("rejoining", rejoining),
    ("astray", astray),
    ("leaving", leaving),
];

/// A kind of request with its good answer.
type Good = (&'static str, fn() -> Answer);

type Input = (String, Box<dyn Fn(&mut Member) -> bool>);

/// One input: its name, and what it does; `false` when the state cannot have it (no such request is under way).
fn inputs() -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut always = |name: &str, input: fn(&mut Member)| {
        inputs.push((
            name.to_owned(),
            Box::new(move |member| {
                input(member);
                true
            }),
        ));
    };
    always("polled", |member| member.machine.handle_polled(member.now));
    always("offer", Member::offer);
    always("assign", Member::assign);
    always("rejoin", Member::rejoin);
    always("leave", Member::leave);
    always("3 s", |member| member.pass(HEARTBEAT));
    always("10 s", |member| member.pass(SESSION));
    always("60 s", |member| member.pass(REBALANCE));
    let answers: &[Good] = &[
        ("find", || Answer::Found(NodeId(2))),
        ("join", || joined(2, "other")),
        ("sync", || Answer::Synced(Bytes::new())),
        ("heartbeat", || Answer::Alive),
        ("leave", || Answer::Left),
    ];
    for &(kind, answer) in answers {
        let mut answered = |what: String, give: Box<dyn Fn() -> Result<Answer, Error>>| {
            let input = move |member: &mut Member| {
                // The heartbeat is due at some moment in every state that has one; the others are under way or not.
                if kind == "heartbeat" {
                    member.now += HEARTBEAT;
                    member.machine.step(member.now);
                    member.drain();
                }
                let is_under_way = member.has_sent(kind);
                if is_under_way {
                    member.answer(kind, give());
                }
                is_under_way
            };
            inputs.push((what, Box::new(input)));
        };
        answered(format!("{kind} ok"), Box::new(move || Ok(answer())));
        for number in [25, 22, 27, 16, 14, 30] {
            let what = format!("{kind} {}", ErrorCode(number).name());
            answered(what, Box::new(move || code(number)));
        }
        answered(format!("{kind} disconnected"), Box::new(disconnected));
    }
    inputs.push((
        "join MEMBER_ID_REQUIRED".to_owned(),
        Box::new(|member| {
            let is_under_way = member.has_sent("join");
            if is_under_way {
                member.answer("join", Ok(Answer::Named("me".into())));
            }
            is_under_way
        }),
    ));
    inputs
}

fn picture(member: &Member) -> String {
    let machine = &member.machine;
    let state = format!("{:?}", machine.state);
    let mut picture = state.split([' ', '{']).next().unwrap_or_default().to_owned();
    let mut mark = |is_so: bool, text: &str| {
        if is_so {
            let _ = write!(picture, " {text}"); // a String takes everything
        }
    };
    mark(matches!(machine.coordinator, Coordinator::Unknown { .. }), "astray");
    mark(!machine.member_id.is_empty(), "id");
    mark(machine.generation >= 0, &format!("generation={}", machine.generation));
    mark(machine.holds, "holds");
    mark(machine.rejoin.is_some(), "rejoin");
    let sent: Vec<&str> = member.sent.iter().map(|(_, request)| name(request)).collect();
    mark(!sent.is_empty(), &format!("→ {}", sent.join(", ")));
    mark(member.abandoned > 0, "→ abandon");
    if let Some(cause) = machine.lost {
        mark(true, &format!("! Lost({cause:?})"));
    }
    mark(machine.assigned.is_some(), "! Assigned");
    if let Some(error) = &machine.failed {
        let what = error.code().map_or("timeout".to_owned(), |code| ErrorCode(code).name().to_owned());
        mark(true, &format!("! Failed({what})"));
    }
    picture
}

/// State × input → where it ends, what it sends (→) and what it tells (!). Pairs that change nothing are left out, so is
/// the answer to a request that the state has not sent.
const TABLE: &str = include_str!("state_table.txt");

#[test]
fn every_state_with_every_input_does_what_the_table_says() {
    let mut table = String::new();
    for &(state, way) in STATES {
        for (input, apply) in inputs() {
            let mut member = way();
            member.abandoned = 0;
            let kept: Vec<Ticket> = member.sent.iter().map(|(ticket, _)| *ticket).collect();
            let mut before = way();
            before.sent.clear();
            before.abandoned = 0;
            let is_possible = apply(&mut member);
            member.sent.retain(|(ticket, _)| !kept.contains(ticket));
            let after = picture(&member);
            if is_possible && after != picture(&before) {
                let _ = writeln!(table, "{state} + {input} = {after}"); // a String takes everything
            }
        }
    }
    for (got, expected) in table.lines().zip(TABLE.lines()) {
        assert_eq!(got, expected);
    }
    assert_eq!(table.lines().count(), TABLE.lines().count(), "the table is:\n{table}");
}

#[test]
fn a_rejoin_asked_for_during_a_join_follows_it() {
    for way in [joining as fn() -> Member, syncing, leading] {
        let mut member = way();
        member.rejoin();
        if matches!(member.machine.state, State::Joining { .. }) {
            member.answer("join", Ok(joined(1, "other")));
        }
        member.assign();
        member.answer("sync", Ok(Answer::Synced(Bytes::new())));
        assert!(matches!(member.poll(), Some(GroupEvent::Assigned { .. })));
        assert!(matches!(member.poll(), Some(GroupEvent::Offer { cause }) if cause == "wanted"));
    }
}

#[test]
fn a_rejoin_asked_for_before_the_offer_is_part_of_it() {
    let mut member = reoffering();
    member.rejoin();
    member.offer();
    member.answer("join", Ok(joined(2, "other")));
    member.answer("sync", Ok(Answer::Synced(Bytes::new())));
    assert!(matches!(member.poll(), Some(GroupEvent::Assigned { generation: 2, .. })));
    assert!(member.poll().is_none());
}

#[test]
fn the_id_that_is_required_joins_at_once_with_the_same_offer_and_keeps_a_rejoin() {
    let mut member = joining();
    member.rejoin();
    member.answer("join", Ok(Answer::Named("me".into())));
    match member.sent.last() {
        Some((_, Request::Join { member_id, protocols: offered, .. })) => {
            assert_eq!((member_id.as_str(), offered), ("me", &protocols()));
        }
        other => panic!("{other:?}"),
    }
    assert!(member.machine.rejoin.is_some());
}

#[test]
fn an_answer_that_was_not_asked_for_is_ignored() {
    let mut member = looking();
    member.answer("find", Ok(Answer::Found(NodeId(1))));
    member.offer(); // the question was not told yet
    assert!(!member.has_sent("join"));
    let mut member = joining();
    member.answer("join", Ok(joined(1, "me")));
    member.assign();
    assert!(!member.has_sent("sync"));
}

#[test]
fn questions_are_told_until_they_are_answered() {
    let mut member = offering();
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    let mut member = leading();
    assert!(matches!(member.poll(), Some(GroupEvent::Lead { .. })));
}

#[test]
fn an_assignment_that_was_not_taken_is_told_before_the_next_offer() {
    let mut member = syncing();
    member.answer("sync", Ok(Answer::Synced(Bytes::new())));
    member.pass(HEARTBEAT);
    member.answer("heartbeat", code(27));
    assert!(matches!(member.poll(), Some(GroupEvent::Assigned { .. })));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
}

#[test]
fn an_assignment_that_is_void_before_it_was_taken_is_not_told() {
    let mut member = syncing();
    member.answer("sync", Ok(Answer::Synced(Bytes::new())));
    member.pass(HEARTBEAT);
    member.answer("heartbeat", code(25));
    assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: Lost::UnknownMember })));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
}

#[test]
fn an_unknown_member_loses_its_id_and_an_old_generation_does_not() {
    for (number, cause, id) in [(25, Lost::UnknownMember, ""), (22, Lost::IllegalGeneration, "me")] {
        let mut member = stable();
        member.pass(HEARTBEAT);
        member.answer("heartbeat", code(number));
        assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: told }) if told == cause));
        assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
        member.offer();
        match member.sent.last() {
            Some((_, Request::Join { member_id, .. })) => assert_eq!(member_id, id),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_heartbeat_of_an_older_generation_says_nothing_about_the_new_one() {
    let mut member = stable();
    member.pass(HEARTBEAT);
    member.rejoin();
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.offer();
    member.answer("join", Ok(joined(2, "other")));
    member.answer("heartbeat", code(22));
    assert_eq!((member.machine.generation, member.machine.holds), (2, true));
}

#[test]
fn the_session_counts_from_when_the_answered_heartbeat_was_sent() {
    let mut member = stable();
    member.pass(HEARTBEAT);
    let sent = member.now;
    member.now += Duration::from_secs(2);
    member.answer("heartbeat", Ok(Answer::Alive));
    member.pass(sent + SESSION - member.now - Duration::from_millis(1));
    assert!(member.machine.lost.is_none());
    member.pass(Duration::from_millis(1));
    assert_eq!(member.machine.lost, Some(Lost::SessionExpired));
    assert!(
        matches!(member.sent.last(), Some((_, Request::FindCoordinator))),
        "a silent coordinator is looked up again"
    );
}

#[test]
fn a_coordinator_that_stays_away_ends_the_assignment_once_and_is_reported_then() {
    let mut member = astray();
    member.pass(HEARTBEAT);
    assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: Lost::CoordinatorUnreachable })));
    member.answer("find", disconnected());
    for _ in 0..3 {
        member.pass(HEARTBEAT);
        let Some(GroupEvent::Failed(error)) = member.poll() else { panic!("told after each interval") };
        assert!(error.to_string().contains("coordinator of group 'g'"), "{error}");
        assert!(member.poll().is_none());
        member.pass(PAUSE);
        member.answer("find", disconnected());
    }
    member.pass(PAUSE);
    member.answer("find", Ok(Answer::Found(NodeId(1))));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    assert_eq!(member.machine.member_id, "me");
}

#[test]
fn a_coordinator_that_comes_back_in_time_hears_the_heartbeat_at_once() {
    let mut member = astray();
    member.sent.retain(|(_, request)| name(request) == "find");
    member.answer("find", Ok(Answer::Found(NodeId(2))));
    assert!(matches!(member.sent.last(), Some((_, Request::Heartbeat { node: NodeId(2), generation: 1, .. }))));
    member.answer("heartbeat", Ok(Answer::Alive));
    assert!(member.poll().is_none());
}

#[test]
fn a_refused_look_up_waits_until_it_was_told() {
    let mut member = looking();
    member.answer("find", code(30));
    member.sent.clear();
    member.pass(PAUSE);
    assert!(member.sent.is_empty());
    assert!(matches!(member.poll(), Some(GroupEvent::Failed(error)) if error.code() == Some(30)));
    assert!(member.poll().is_none());
    assert!(member.has_sent("find"));
}

#[test]
fn a_refused_join_is_told_each_time_and_tried_again_after_a_pause() {
    let mut member = joining();
    for _ in 0..3 {
        member.answer("join", code(23));
        assert!(matches!(member.poll(), Some(GroupEvent::Failed(error)) if error.code() == Some(23)));
        assert!(member.poll().is_none(), "it pauses");
        member.pass(PAUSE);
        assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
        member.offer();
    }
}

#[test]
fn a_refused_heartbeat_is_told_and_the_session_ends_it() {
    let mut member = stable();
    let mut told = 0;
    while member.machine.lost.is_none() {
        member.pass(Duration::from_secs(1));
        if member.machine.beat.under_way.is_some() {
            member.answer("heartbeat", code(30));
            assert!(matches!(member.poll(), Some(GroupEvent::Failed(_))));
            told += 1;
        }
    }
    assert_eq!((told, member.machine.lost), (3, Some(Lost::SessionExpired)));
}

#[test]
fn a_member_that_nobody_polls_leaves_and_joins_afresh() {
    let mut member = stable();
    for _ in 0..19 {
        member.pass(HEARTBEAT);
        member.answer("heartbeat", Ok(Answer::Alive));
    }
    member.pass(HEARTBEAT);
    assert!(matches!(member.sent.last(), Some((_, Request::Leave { member_id, .. })) if member_id == "me"));
    assert_eq!(member.machine.state, State::Idle);
    assert_eq!(member.machine.deadline(), None, "nothing goes on while nobody asks");
    assert!(matches!(member.poll(), Some(GroupEvent::Lost { cause: Lost::PollTimeout })));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.offer();
    assert!(matches!(member.sent.last(), Some((_, Request::Join { member_id, .. })) if member_id.is_empty()));
}

#[test]
fn a_join_that_failed_keeps_the_assignment_for_one_session() {
    let mut member = rejoining();
    member.answer("join", code(14));
    assert!(member.machine.holds);
    member.now += SESSION - Duration::from_millis(1);
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.pass(Duration::from_millis(1));
    assert_eq!(member.machine.lost, Some(Lost::SessionExpired));
}

#[test]
fn leaving_ends_with_the_answer_or_with_the_patience() {
    for end in
        [|member: &mut Member| member.answer("leave", Ok(Answer::Left)), |member: &mut Member| member.pass(SESSION)]
    {
        let mut member = leaving();
        assert!(member.poll().is_none());
        end(&mut member);
        assert_eq!((&member.machine.state, member.machine.member_id.as_str()), (&State::Idle, ""));
    }
}

#[test]
fn leaving_follows_the_coordinator() {
    let mut member = leaving();
    member.answer("leave", code(16));
    member.pass(PAUSE);
    member.answer("find", Ok(Answer::Found(NodeId(2))));
    assert!(matches!(member.sent.last(), Some((_, Request::Leave { node: NodeId(2), .. }))));
}

#[test]
fn a_long_reason_is_cut() {
    let mut member = stable();
    member.machine.handle_rejoin(member.now, &"ü".repeat(1_000));
    assert!(matches!(member.poll(), Some(GroupEvent::Offer { .. })));
    member.offer();
    match member.sent.last() {
        Some((_, Request::Join { reason, .. })) => assert_eq!(reason.chars().count(), REASON_CHARS_MAX),
        other => panic!("{other:?}"),
    }
}

/// SplitMix64: the seed repeats the walk.
fn below(seed: &mut u64, limit: u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % limit
}

/// Whatever comes in whatever order: time-outs that are handled are not due any more, requests of a kind are never doubled
/// beyond one that was given up, and an assignment is never told twice to be lost.
#[test]
fn no_walk_spins_or_doubles_a_request() {
    for walk in 0..300 {
        let mut seed = walk;
        let mut member = Member::new();
        let inputs = inputs();
        let mut knows_assignment = false;
        for _ in 0..200 {
            let (_, apply) = &inputs[usize::try_from(below(&mut seed, inputs.len() as u64)).expect("small")];
            apply(&mut member);
            member.drain();
            member.now += Duration::from_millis(below(&mut seed, 500));
            for turn in 0.. {
                let Some(deadline) = member.machine.deadline().filter(|deadline| *deadline <= member.now) else {
                    break;
                };
                assert!(turn < 5, "walk {walk} spins at {deadline:?} in {:?}", member.machine.state);
                member.pass(Duration::ZERO);
            }
            if below(&mut seed, 2) == 0 {
                match member.poll() {
                    Some(GroupEvent::Assigned { .. }) => knows_assignment = true,
                    Some(GroupEvent::Lost { .. }) => knows_assignment = false,
                    Some(GroupEvent::Offer { .. }) => member.offer(),
                    Some(GroupEvent::Lead { .. }) => member.assign(),
                    _ => {}
                }
            }
            assert!(!member.machine.holds || member.machine.lost.is_none(), "walk {walk}");
            assert!(!knows_assignment || member.machine.holds || member.machine.lost.is_some() || has_left(&member));
            knows_assignment &= !has_left(&member);
            assert!(member.machine.outputs.is_empty());
        }
    }
}

fn has_left(member: &Member) -> bool {
    !member.machine.holds && member.machine.lost.is_none()
}
