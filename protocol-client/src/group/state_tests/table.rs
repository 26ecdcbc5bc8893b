//! Every state with every input, against one table.

use std::fmt::Write;

use super::*;
use crate::wire::error_code::ErrorCode;

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

pub(super) type Input = (String, Box<dyn Fn(&mut Member) -> bool>);

/// One input: its name, and what it does; `false` when the state cannot have it (no such request is under way).
pub(super) fn inputs() -> Vec<Input> {
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
