//! Past bugs of other clients, as facts that hold here: outcomes, identities, fencing, closing.
//!
//! Each test names the fact; its comment names the report. Everything runs against the honest broker of `model/`.

mod model;

use model::{Operation, World};
use oncewire_txn::{
    Cause, Command, EndGoal, ErrorCode, Event, Outcome, ProducerIdentity, Protocol, Refusal, Reply, Request,
    RequestKind, Span, StateName,
};

const BOTH: [Protocol; 2] = [Protocol::Explicit, Protocol::Implicit];

fn end_code(code: i16) -> Cause {
    Cause::Code { request: RequestKind::EndTxn, code: ErrorCode(code), partition: None }
}

/// A transaction whose batch is in the log, with its EndTxn(commit) in flight.
fn committing(protocol: Protocol) -> World {
    let mut world = World::with_batches(protocol, &[0]);
    world.calm();
    world.apply(Operation::Commit);
    assert!(matches!(world.in_flight[..], [(_, Request::EndTxn { goal: EndGoal::Commit, .. })]));
    world.requests();
    world
}

// KAFKA-17754, and the Jepsen report on Bufstream 0.1.0.
#[test]
fn late_copy_of_a_commit_cannot_end_the_next_transaction() {
    for protocol in BOTH {
        let mut world = committing(protocol);
        world.apply(Operation::Delay { which: 0 });
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::Committed], "the same commit was sent again");
        let expected: &[&str] = match protocol {
            Protocol::Explicit => &["find", "commit", "bump"],
            Protocol::Implicit => &["find", "commit"],
        };
        assert_eq!(world.requests(), expected);
        world.begin(&[1]);
        world.calm();
        world.apply(Operation::ArriveLate { which: 0 });
        assert!(world.broker.is_ongoing(), "the late copy ended the next transaction");
        world.apply(Operation::Abort);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::Committed, Outcome::Aborted]);
        world.finish();
    }
}

#[test]
fn batches_appended_during_a_bump_leave_after_it_under_the_new_epoch() {
    let mut world = committing(Protocol::Explicit);
    world.lose();
    while world.machine.state() != StateName::Ready {
        if world.in_flight.is_empty() { world.apply(Operation::Wake) } else { world.deliver(0) }
    }
    world.begin(&[0]);
    assert!(!world.requests().contains(&"add"));
    world.calm();
    let first = world.sent.iter().find(|request| matches!(request, Request::Produce { .. }));
    assert!(matches!(
        first,
        Some(Request::Produce { identity: ProducerIdentity { epoch: 1, .. }, base_sequence: 0, .. })
    ));
    world.apply(Operation::Commit);
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::Committed, Outcome::Committed]);
    world.finish();
}

// librdkafka #3575: the first half of the transaction was lost in silence.
#[test]
fn gap_in_a_transaction_aborts_it_before_the_epoch_is_bumped() {
    let mut world = World::with_batches(Protocol::Explicit, &[0]);
    world.calm();
    world.apply(Operation::Append { partition: 0 });
    world.refuse(45);
    assert_eq!(world.machine.state(), StateName::AbortRequired);
    world.apply(Operation::Commit);
    world.calm();
    assert!(matches!(world.outcomes()[..], [Outcome::NotCommitted(Cause::Code { code: ErrorCode(45), .. })]));
    assert_eq!(world.requests(), ["add", "produce", "produce", "abort", "bump"]);
    world.finish();
}

// librdkafka 1.5.2 and KAFKA-9279: a record failed locally and the commit succeeded without it.
#[test]
fn commit_after_a_failed_record_aborts_and_reports_that_record() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        world.calm();
        let cause =
            Cause::BatchRejected { batch: None, reason: "2097152 bytes, and max.request.size is 1048576".into() };
        world.command(Command::Fail(cause.clone()));
        assert_eq!(world.events.last(), Some(&Event::AbortRequired(cause.clone())));
        world.apply(Operation::Append { partition: 0 });
        assert_eq!(world.machine.open_batches(), 0, "an append after the failure was taken");
        world.apply(Operation::Commit);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::NotCommitted(cause)]);
        assert!(world.requests().contains(&"abort"));
        assert_eq!(world.machine.state(), StateName::Ready, "no operator is needed");
        world.finish();
    }
}

#[test]
fn record_that_fails_while_the_commit_still_flushes_turns_it_into_an_abort() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.apply(Operation::Commit);
    world.command(Command::Fail(Cause::Requested));
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::NotCommitted(Cause::Requested)]);
    world.finish();
}

// librdkafka 1.6.0 did not propagate a fenced commit; franz-go 1.21.4 reported UNKNOWN_SERVER_ERROR as a commit.
#[test]
fn commit_is_reported_for_code_zero_and_for_no_other_code() {
    for protocol in BOTH {
        for code in (-1..=140).chain([999, i16::MIN, i16::MAX]) {
            let mut world = committing(protocol);
            world.refuse(code);
            let committed = world.outcomes().contains(&Outcome::Committed);
            assert_eq!(committed, code == 0, "code {code}");
            if matches!(code, -1 | 999 | 89) {
                // Indefinite: the same is asked again, and time decides.
                assert!(world.outcomes().is_empty(), "code {code}");
                world.apply(Operation::Pass { millis: 9_000 });
                assert!(matches!(world.outcomes()[..], [Outcome::Unknown(_)]), "code {code}");
                assert!(!world.requests().contains(&"abort"));
            }
        }
    }
}

// kafkajs #469, librdkafka #4849, KAFKA-14799, rust-rdkafka #349.
#[test]
fn transaction_in_which_nothing_was_sent_ends_without_a_request() {
    for protocol in BOTH {
        let mut world = World::ready(protocol);
        for _ in 0..3 {
            for end in [Operation::Abort, Operation::Commit] {
                world.begin(&[]);
                world.apply(end);
            }
        }
        assert!(world.requests().is_empty());
        assert_eq!(world.outcomes().len(), 6);
        world.begin(&[0]);
        world.calm();
        world.apply(Operation::Commit);
        world.calm();
        assert_eq!(world.outcomes().last(), Some(&Outcome::Committed));
        world.finish();
    }
}

#[test]
fn batches_that_never_left_are_aborted_without_a_request() {
    let mut world = World::with_batches(Protocol::Explicit, &[0, 1]);
    world.apply(Operation::NeverSent { which: 0 });
    world.requests();
    world.apply(Operation::Abort);
    assert_eq!(world.outcomes(), [Outcome::Aborted]);
    assert!(world.requests().is_empty(), "an EndTxn for a transaction that the coordinator never saw");
    world.finish();
}

// KAFKA-18464.
#[test]
fn empty_abort_right_after_a_commit_does_not_fence_its_own_producer() {
    let mut world = committing(Protocol::Implicit);
    world.deliver(0);
    world.begin(&[]);
    world.apply(Operation::Abort);
    assert_eq!(world.outcomes(), [Outcome::Committed, Outcome::Aborted]);
    // The same with a Produce that was lost on its way, so that the abort must be sent while the markers are written.
    world.begin(&[0]);
    world.lose();
    world.apply(Operation::Abort);
    world.deliver(0);
    world.deliver(0);
    assert_eq!(world.outcomes().last(), Some(&Outcome::Aborted));
    assert_eq!(world.machine.state(), StateName::InitRequired, "InitProducerId decides, not the refusal");
    world.apply(Operation::WriteMarkers);
    world.apply(Operation::Init);
    world.calm();
    assert_eq!(world.machine.state(), StateName::Ready);
    world.finish();
}

// KAFKA-20785, librdkafka #3297.
#[test]
fn commit_of_a_transaction_that_the_coordinator_timed_out_is_lost_and_needs_only_an_init() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.calm();
    // The machine slept through its own limit, as a suspended process does; the coordinator did not.
    world.broker.expire(u64::MAX);
    world.apply(Operation::Commit);
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::NotCommitted(end_code(48))]);
    assert!(world.machine.needs_init());
    world.requests();
    world.apply(Operation::Init);
    world.calm();
    assert_eq!(world.machine.state(), StateName::Ready);
    assert!(matches!(world.events.last(), Some(Event::Initialized(_))));
    world.begin(&[0]);
    world.calm();
    world.apply(Operation::Commit);
    world.calm();
    assert_eq!(world.outcomes().last(), Some(&Outcome::Committed));
    world.finish();
}

#[test]
fn refused_epoch_of_a_transaction_older_than_its_timeout_is_left_to_init_to_decide() {
    for protocol in BOTH {
        for fenced in [false, true] {
            let mut world = World::with_batches(protocol, &[0]);
            world.calm();
            world.apply(Operation::Pass { millis: 20_000 });
            assert_eq!(world.events.last(), Some(&Event::AbortRequired(Cause::TransactionTooOld)));
            world.apply(Operation::Commit);
            world.refuse(90);
            assert_eq!(world.outcomes(), [Outcome::NotCommitted(Cause::TransactionTooOld)]);
            assert!(world.machine.needs_init());
            world.apply(Operation::Init);
            world.refuse(if fenced { 90 } else { 0 });
            if protocol == Protocol::Implicit && !fenced {
                // Settled: now the identity itself.
                assert!(matches!(world.in_flight[..], [(_, Request::InitProducerId { current: Some(_) })]));
            }
            let state = world.machine.state();
            assert_eq!(state == StateName::Fenced, fenced, "{protocol:?}");
        }
    }
}

// KAFKA-14278, KAFKA-9911: which refusal means what.
#[test]
fn produce_with_an_old_epoch_aborts_and_the_coordinator_decides_whether_we_are_fenced() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        world.calm();
        world.apply(Operation::TakeOver);
        world.apply(Operation::WriteMarkers);
        world.apply(Operation::WriteMarkers);
        world.requests();
        world.apply(Operation::Append { partition: 0 });
        world.deliver(0);
        assert!(matches!(
            world.events.last(),
            Some(Event::AbortRequired(Cause::Code { request: RequestKind::Produce, code: ErrorCode(47), .. }))
        ));
        world.apply(Operation::Commit);
        world.calm();
        assert!(matches!(world.outcomes()[..], [Outcome::NotCommitted(_)]));
        assert_eq!(world.machine.state(), StateName::Fenced);
        assert!(!world.requests().contains(&"bump"), "an InitProducerId would abort what the new owner has open");
        assert!(matches!(world.machine.handle_command(world.now, Command::Init), Err(Refusal::Fenced(_))));
        world.finish();
    }
}

#[test]
fn produce_with_an_old_epoch_after_a_time_out_goes_on_with_transactions_v2() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.calm();
    world.broker.expire(u64::MAX);
    world.apply(Operation::WriteMarkers);
    world.apply(Operation::Append { partition: 0 });
    world.deliver(0);
    assert_eq!(world.machine.state(), StateName::AbortRequired);
    world.apply(Operation::Abort);
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::Aborted]);
    assert_eq!(world.machine.state(), StateName::Ready);
    world.begin(&[0]);
    world.calm();
    world.apply(Operation::Commit);
    world.calm();
    assert_eq!(world.outcomes().last(), Some(&Outcome::Committed));
    world.finish();
}

#[test]
fn fenced_at_the_commit_of_a_young_transaction_stops_without_another_request() {
    for protocol in BOTH {
        let mut world = committing(protocol);
        world.refuse(90);
        assert_eq!(world.outcomes(), [Outcome::NotCommitted(end_code(90))]);
        assert_eq!(world.events.last(), Some(&Event::Fenced(end_code(90))));
        assert!(world.in_flight.is_empty());
    }
}

#[test]
fn fenced_after_a_commit_that_may_have_arrived_is_an_unknown_outcome() {
    for protocol in BOTH {
        let mut world = committing(protocol);
        world.lose();
        world.deliver(0);
        world.apply(Operation::Wake);
        world.refuse(90);
        assert_eq!(world.outcomes(), [Outcome::Unknown(end_code(90))]);
        assert_eq!(world.machine.state(), StateName::Fenced);
    }
}

// KAFKA-13412, KAFKA-7763: what a caller that timed out does next.
#[test]
fn init_that_is_asked_for_twice_is_sent_once() {
    let mut world = World::new(Protocol::Explicit, 0);
    world.apply(Operation::Init);
    world.deliver(0);
    world.apply(Operation::Init);
    world.apply(Operation::Pass { millis: 8_000 });
    assert!(matches!(world.events[..], [Event::InitFailed(Cause::DeadlinePassed { .. })]));
    world.apply(Operation::Init);
    world.deliver(0);
    assert!(matches!(world.events.last(), Some(Event::Initialized(_))));
    assert_eq!(world.requests(), ["find", "init"]);
    world.finish();
}

#[test]
fn init_whose_answer_came_after_its_deadline_is_done_when_asked_for_again() {
    let mut world = World::new(Protocol::Explicit, 0);
    world.apply(Operation::Init);
    world.deliver(0);
    world.apply(Operation::Pass { millis: 8_000 });
    world.deliver(0);
    assert_eq!(world.machine.state(), StateName::Uninitialized);
    world.apply(Operation::Init);
    assert_eq!(world.machine.state(), StateName::Ready);
    assert_eq!(world.requests(), ["find", "init"]);
    world.finish();
}

// KAFKA-7763, KAFKA-16217, librdkafka #4420.
#[test]
fn commit_abort_and_close_end_in_bounded_time_with_no_broker_at_all() {
    for protocol in BOTH {
        for (end, limit) in [(Operation::Commit, 10_000), (Operation::Abort, 8_000), (Operation::Close, 1_000)] {
            let mut world = World::with_batches(protocol, &[0]);
            world.calm();
            world.apply(Operation::Append { partition: 0 });
            let begin = world.now;
            world.apply(end);
            while !matches!(world.machine.state(), StateName::InitRequired | StateName::Closed) {
                if world.in_flight.is_empty() { world.apply(Operation::Wake) } else { world.lose() }
            }
            assert!(world.now.since(begin) <= Span::from_millis(limit), "{end:?} took {:?}", world.now.since(begin));
        }
    }
}

#[test]
fn commit_that_nobody_answers_is_unknown_and_never_an_open_transaction_again() {
    for protocol in BOTH {
        let mut world = committing(protocol);
        while world.machine.state() == StateName::Ending {
            if world.in_flight.is_empty() { world.apply(Operation::Wake) } else { world.lose() }
        }
        assert!(matches!(world.outcomes()[..], [Outcome::Unknown(Cause::DeadlinePassed { .. })]));
        assert!(!world.requests().contains(&"abort"));
        for command in [Command::Begin, Command::Abort, Command::Commit] {
            assert_eq!(world.machine.handle_command(world.now, command), Err(Refusal::InitRequired));
        }
        world.apply(Operation::Init);
        world.calm();
        let settled = world.sent.iter().rev().find_map(|request| match request {
            Request::InitProducerId { current: Some(current) } => Some(current.epoch),
            _ => None,
        });
        let epoch = if protocol == Protocol::Implicit { 1 } else { 0 };
        assert_eq!(settled, Some(epoch), "the identity that the settled end left us with");
        assert_eq!(world.requests(), ["find", "commit", "bump"], "the same commit is settled before the identity");
        assert!(matches!(world.events.last(), Some(Event::Initialized(_))));
        world.finish();
    }
}

// librdkafka #4016: the pending commit was overtaken by an abort.
#[test]
fn abort_is_refused_while_a_commit_is_pending() {
    let mut world = committing(Protocol::Explicit);
    for command in [Command::Abort, Command::Commit] {
        let answer = world.machine.handle_command(world.now, command);
        assert_eq!(answer, Err(Refusal::Ending(EndGoal::Commit)));
    }
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::Committed]);
    world.finish();
}

// librdkafka #3297.
#[test]
fn nothing_is_ended_after_a_new_init() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.calm();
    world.broker.expire(u64::MAX);
    world.apply(Operation::WriteMarkers);
    world.apply(Operation::Commit);
    world.calm();
    world.apply(Operation::Init);
    world.calm();
    world.requests();
    world.begin(&[]);
    world.apply(Operation::Abort);
    assert!(world.requests().is_empty());
    world.finish();
}

// KAFKA-18227.
#[test]
fn first_transaction_v2_after_an_upgrade_has_an_epoch_of_its_own() {
    let mut world = World::with_batches(Protocol::Explicit, &[0]);
    world.calm();
    world.apply(Operation::Upgrade);
    world.apply(Operation::Append { partition: 1 });
    world.calm();
    assert_eq!(world.machine.protocol(), Some(Protocol::Explicit), "latched while the transaction is open");
    world.apply(Operation::Commit);
    world.calm();
    assert_eq!(world.requests(), ["add", "produce", "add", "produce", "commit", "bump"]);
    world.begin(&[0]);
    world.calm();
    assert_eq!(world.machine.protocol(), Some(Protocol::Implicit));
    assert_eq!(world.requests(), ["produce"]);
    world.apply(Operation::Commit);
    world.calm();
    world.finish();
}

// KIP-890: TRANSACTION_ABORTABLE.
#[test]
fn commit_answered_with_transaction_abortable_is_aborted_and_an_abort_answered_so_is_fatal() {
    let mut world = committing(Protocol::Implicit);
    world.refuse(120);
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::NotCommitted(end_code(120))]);
    assert_eq!(world.requests(), ["abort"]);
    let mut world = committing(Protocol::Implicit);
    world.refuse(120);
    world.refuse(120);
    assert_eq!(world.machine.state(), StateName::Fatal);
}

#[test]
fn transaction_near_its_timeout_is_aborted_by_ourselves_and_the_producer_goes_on() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        world.calm();
        world.apply(Operation::Pass { millis: 18_000 });
        assert_eq!(world.events.last(), Some(&Event::AbortRequired(Cause::TransactionTooOld)));
        world.apply(Operation::Commit);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::NotCommitted(Cause::TransactionTooOld)]);
        assert_eq!(world.machine.state(), StateName::Ready);
        world.finish();
    }
}

#[test]
fn epoch_above_the_largest_usable_one_is_bumped_away_before_it_is_used() {
    let mut world = committing(Protocol::Implicit);
    let (id, _) = world.in_flight.remove(0);
    let largest = ProducerIdentity { id: 100, epoch: i16::MAX };
    world.reply(id, Reply::Ended { code: ErrorCode(0), next: Some(largest), protocol: Protocol::Implicit });
    assert!(
        matches!(world.in_flight[..], [(_, Request::InitProducerId { current: Some(current) })] if current == largest)
    );
}

#[test]
fn close_lets_a_commit_that_left_finish_and_turns_one_that_did_not_into_an_abort() {
    let mut world = committing(Protocol::Explicit);
    world.apply(Operation::Close);
    world.deliver(0);
    assert_eq!(world.outcomes(), [Outcome::Committed]);
    assert_eq!(world.events.last(), Some(&Event::Closed));

    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.apply(Operation::Commit);
    world.apply(Operation::Close);
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::NotCommitted(Cause::Requested)]);
    assert_eq!(world.events.last(), Some(&Event::Closed));
}

#[test]
fn close_of_a_fenced_producer_is_answered() {
    let mut world = committing(Protocol::Explicit);
    world.refuse(90);
    assert!(world.machine.handle_command(world.now, Command::Close).is_ok());
    assert_eq!(world.machine.state(), StateName::Closed);
    assert_eq!(world.machine.handle_command(world.now, Command::Close), Err(Refusal::Closed));
}

#[test]
fn transaction_abortable_after_a_commit_that_may_have_arrived_does_not_abort() {
    let mut world = committing(Protocol::Implicit);
    world.lose();
    world.deliver(0);
    world.apply(Operation::Wake);
    world.refuse(120);
    assert!(world.in_flight.is_empty(), "and the same commit is not sent again without a wait");
    world.calm();
    assert_eq!(world.requests(), ["find", "commit", "commit"]);
    assert_eq!(world.outcomes(), [Outcome::Committed]);
    world.finish();
}

#[test]
fn close_answers_an_init_that_is_under_way() {
    let mut world = World::new(Protocol::Implicit, 0);
    world.apply(Operation::Init);
    world.apply(Operation::Close);
    assert_eq!(world.events, [Event::InitFailed(Cause::Requested), Event::Closed]);
}
