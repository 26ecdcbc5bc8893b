//! Past bugs of other clients, as facts that hold here: sequences, retries, partitions, the coordinator.
//!
//! Each test names the fact; its comment names the report. Everything runs against the honest broker of `model/`, unless a
//! test needs an answer that an honest broker never gives.

mod model;

use model::{Operation, World};
use oncewire_txn::{
    BatchId, Cause, Command, ErrorCode, Event, Outcome, PartitionIndex, Protocol, Reply, Request, RequestKind, Span,
    StateName, Time,
};

const BOTH: [Protocol; 2] = [Protocol::Explicit, Protocol::Implicit];

/// Each Produce so far: partition, batch, base sequence, retry.
fn produced(world: &World) -> Vec<(u32, u64, i32, bool)> {
    let sent = world.sent.iter().filter_map(|request| match request {
        Request::Produce { partition, batch, base_sequence, retry, .. } => {
            Some((partition.0, batch.0, *base_sequence, *retry))
        }
        _ => None,
    });
    sent.collect()
}

fn wake_until_sent(world: &mut World) {
    while world.in_flight.is_empty() {
        world.apply(Operation::Wake);
    }
}

// kafkajs #296, librdkafka #3003, sarama #2915: clients gave up after three tries, or aborted healthy transactions.
#[test]
fn concurrent_transactions_is_waited_for_as_often_as_needed_with_short_waits() {
    let mut world = World::new(Protocol::Explicit, 0);
    world.apply(Operation::Init);
    world.deliver(0);
    let begin = world.now;
    for _ in 0..40 {
        world.refuse(51);
        wake_until_sent(&mut world);
    }
    let waited = world.now.since(begin);
    assert!((Span::from_millis(500)..=Span::from_millis(800)).contains(&waited), "{waited:?}");
    world.calm();
    world.begin(&[0]);
    let begin = world.now;
    for _ in 0..10 {
        world.refuse(51);
        wake_until_sent(&mut world);
    }
    assert!(world.now.since(begin) <= Span::from_millis(150), "{:?}", world.now.since(begin));
    world.calm();
    world.apply(Operation::Commit);
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::Committed]);
    world.finish();
}

#[test]
fn first_wait_for_markers_is_about_a_millisecond_in_both_protocols() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        world.refuse(51);
        let begin = world.now;
        wake_until_sent(&mut world);
        assert!(world.now.since(begin) <= Span::from_millis(1), "{protocol:?}");
        assert!(produced(&world).last().is_none_or(|last| last.2 == 0), "the sequence stays");
    }
}

// KAFKA-7693, franz-go #227.
#[test]
fn sequence_after_the_largest_is_zero() {
    let mut world = World::ready(Protocol::Explicit);
    let partition = PartitionIndex(0);
    world.command(Command::Begin);
    for (batch, records) in [(1_000, 2_147_483_640), (1_001, 20), (1_002, 1)] {
        let command = Command::Append { partition, batch: BatchId(batch), records };
        world.machine.handle_command(world.now, command).expect("legal");
    }
    let mut bases = Vec::new();
    let mut answer = |machine: &mut oncewire_txn::Machine| {
        while let oncewire_txn::Output::Send(id, request) = machine.poll_output() {
            match request {
                Request::AddPartitions { .. } => {
                    machine.handle_reply(Time(2), id, Reply::PartitionsAdded(vec![(partition, ErrorCode::NONE)]));
                }
                Request::Produce { base_sequence, .. } => bases.push(base_sequence),
                other => panic!("{other:?}"),
            }
        }
    };
    answer(&mut world.machine);
    assert_eq!(bases, [0, 2_147_483_640, 12]);
}

// librdkafka 1.9.0: a topic that vanished from the metadata for a moment restarted its sequences, and data was lost.
#[test]
fn topic_that_seems_to_vanish_keeps_its_sequences() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        world.calm();
        world.apply(Operation::Append { partition: 0 });
        world.refuse(3);
        assert!(matches!(world.in_flight[..], [(_, Request::RefreshMetadata { .. })]));
        world.deliver(0);
        wake_until_sent(&mut world);
        world.calm();
        world.apply(Operation::Append { partition: 0 });
        world.calm();
        let expected = [(0, 0, 0, false), (0, 1, 1, false), (0, 1, 1, true), (0, 2, 3, false)];
        assert_eq!(produced(&world), expected);
        world.apply(Operation::Commit);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::Committed]);
        world.finish();
    }
}

// KAFKA-12152, KAFKA-13794.
#[test]
fn partition_that_was_idle_during_a_bump_starts_at_zero_too() {
    let mut world = World::with_batches(Protocol::Explicit, &[0, 1]);
    world.calm();
    world.apply(Operation::Append { partition: 0 });
    world.refuse(45);
    world.apply(Operation::Abort);
    world.calm();
    world.requests();
    world.begin(&[1, 0]);
    world.calm();
    let bases: Vec<i32> = produced(&world).into_iter().map(|(_, _, base, _)| base).collect();
    assert_eq!(bases, [0, 0]);
    world.apply(Operation::Commit);
    world.calm();
    world.finish();
}

// franz-go #1217, librdkafka #4438: "timed out" was taken for "not written".
#[test]
fn batch_whose_answer_was_lost_is_sent_again_under_its_sequence_and_is_in_the_log_once() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        while !matches!(world.in_flight[0].1, Request::Produce { .. }) {
            world.deliver(0);
        }
        world.apply(Operation::LoseReply { which: 0 });
        world.calm();
        assert_eq!(produced(&world), [(0, 0, 0, false), (0, 0, 0, true)]);
        assert_eq!(world.broker.entries(PartitionIndex(0)).len(), 1);
        world.apply(Operation::Commit);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::Committed]);
        world.finish();
    }
}

#[test]
fn duplicate_sequence_is_success_without_an_offset() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.apply(Operation::LoseReply { which: 0 });
    world.deliver(0);
    wake_until_sent(&mut world);
    world.refuse(46);
    assert_eq!(world.events.last(), Some(&Event::Acked { batch: BatchId(0), base_offset: None }));
}

#[test]
fn batch_that_timed_out_for_good_makes_the_transaction_abort_only() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        while !matches!(world.in_flight[0].1, Request::Produce { .. }) {
            world.deliver(0);
        }
        world.apply(Operation::Pass { millis: 15_000 });
        let cause = Cause::DeadlinePassed { request: RequestKind::Produce, partition: Some(PartitionIndex(0)) };
        assert_eq!(world.events.last(), Some(&Event::AbortRequired(cause.clone())));
        world.apply(Operation::Commit);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::NotCommitted(cause)]);
        world.finish();
    }
}

// kafkajs #598, sarama #2915, librdkafka #3584.
#[test]
fn leader_that_moves_under_five_batches_does_not_change_their_order() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0, 0, 0, 0, 0, 0, 0]);
        while !matches!(world.in_flight[0].1, Request::Produce { .. }) {
            world.deliver(0);
        }
        assert_eq!(world.in_flight.len(), 5);
        world.deliver(0);
        world.requests();
        // The second is refused; the ones behind it then have a gap before them.
        world.refuse(6);
        assert!(world.machine.produces_in_flight() == 4, "{:?}", world.in_flight);
        for _ in 0..3 {
            world.refuse(45);
        }
        assert_eq!(world.machine.state(), StateName::InTransaction, "a gap behind an open batch is no failure");
        world.calm();
        world.apply(Operation::Commit);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::Committed]);
        let log: Vec<u64> = world.broker.entries(PartitionIndex(0)).iter().map(|entry| entry.batch.0).collect();
        assert_eq!(log, [0, 1, 2, 3, 4, 5, 6]);
        world.finish();
    }
}

// franz-go #223.
#[test]
fn after_a_failure_one_batch_goes_alone_until_it_is_acknowledged() {
    let mut world = World::with_batches(Protocol::Implicit, &[0, 0, 0]);
    for _ in 0..3 {
        world.refuse(19);
    }
    wake_until_sent(&mut world);
    assert_eq!(world.in_flight.len(), 1);
    world.deliver(0);
    assert_eq!(world.in_flight.len(), 2);
}

// franz-go PR #967: transactions V2 were chosen from the API versions alone.
#[test]
fn protocol_is_what_the_driver_found_and_nothing_else() {
    for protocol in BOTH {
        let mut world = World::with_batches(protocol, &[0]);
        world.calm();
        let requests = world.requests();
        assert_eq!(requests.contains(&"add"), protocol == Protocol::Explicit, "{requests:?}");
        world.apply(Operation::Commit);
        let expected = [(0, protocol)];
        let found = world.in_flight.iter().filter_map(|(_, request)| match request {
            Request::EndTxn { protocol, .. } => Some((0, *protocol)),
            _ => None,
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
        world.calm();
    }
}

fn answer_partitions(world: &mut World, codes: &[(u32, i16)]) {
    let (id, request) = world.in_flight.remove(0);
    assert!(matches!(request, Request::AddPartitions { .. }));
    let codes = codes.iter().map(|(partition, code)| (PartitionIndex(*partition), ErrorCode(*code)));
    world.reply(id, Reply::PartitionsAdded(codes.collect()));
}

// KAFKA-13782, KAFKA-5364, franz-go 1.21.4.
#[test]
fn partition_counts_as_added_by_its_own_code_alone() {
    let mut world = World::with_batches(Protocol::Explicit, &[0, 1, 2]);
    // The first batch left alone; the others are added together.
    answer_partitions(&mut world, &[(0, 0)]);
    let adds = world.in_flight.iter().position(|(_, request)| matches!(request, Request::AddPartitions { .. }));
    world.in_flight.swap(0, adds.expect("the others are being added"));
    answer_partitions(&mut world, &[(1, 0), (2, 3)]);
    let to: Vec<u32> = produced(&world).iter().map(|(partition, ..)| *partition).collect();
    assert_eq!(to, [0, 1]);
    world.apply(Operation::Abort);
    world.requests();
    while world.machine.produces_in_flight() > 0 {
        world.lose();
    }
    assert_eq!(world.requests(), ["abort"], "what was added before the failure is still ended");
}

// librdkafka #4849 the other way round: what may have been added must be ended.
#[test]
fn partitions_whose_answer_was_lost_are_ended_and_the_epoch_is_bumped() {
    for arrives in [false, true] {
        let mut world = World::with_batches(Protocol::Explicit, &[0]);
        world.apply(if arrives { Operation::LoseReply { which: 0 } } else { Operation::LoseRequest { which: 0 } });
        world.apply(Operation::Abort);
        world.calm();
        assert_eq!(world.outcomes(), [Outcome::Aborted]);
        assert_eq!(world.requests(), ["add", "find", "abort", "bump"]);
        assert_eq!(world.machine.state(), StateName::Ready);
        world.finish();
    }
}

#[test]
fn partition_that_the_answer_forgot_is_asked_for_again() {
    let mut world = World::with_batches(Protocol::Explicit, &[0]);
    answer_partitions(&mut world, &[]);
    wake_until_sent(&mut world);
    assert!(matches!(&world.in_flight[..], [(_, Request::AddPartitions { partitions, .. })] if partitions.len() == 1));
}

// librdkafka 1.7.0: a later AddPartitionsToTxn was never sent.
#[test]
fn partitions_that_come_while_others_are_being_added_go_together_afterwards() {
    let mut world = World::with_batches(Protocol::Explicit, &[0, 1, 2]);
    assert_eq!(world.requests(), ["add"]);
    world.deliver(0);
    let adds = world.sent.iter().find_map(|request| match request {
        Request::AddPartitions { partitions, .. } => Some(partitions.len()),
        _ => None,
    });
    assert_eq!(adds, Some(2));
    world.calm();
    world.apply(Operation::Commit);
    world.calm();
    world.finish();
}

// KAFKA-20077, KAFKA-9287.
#[test]
fn topic_deleted_under_an_open_transaction_wakes_the_waiting_commit_at_the_delivery_timeout() {
    let mut world = World::with_batches(Protocol::Explicit, &[0]);
    let begin = world.now;
    while world.machine.state() == StateName::InTransaction {
        if world.in_flight.is_empty() { world.apply(Operation::Wake) } else { world.refuse(3) }
    }
    let cause = Cause::DeadlinePassed { request: RequestKind::AddPartitions, partition: Some(PartitionIndex(0)) };
    assert!(world.events.contains(&Event::AbortRequired(cause.clone())));
    assert_eq!(world.now.since(begin), Span::from_millis(15_000));
    world.apply(Operation::Commit);
    assert_eq!(world.outcomes(), [Outcome::NotCommitted(cause)], "at once");
}

#[test]
fn commit_that_waits_for_a_refused_partition_is_woken_at_once() {
    let mut world = World::with_batches(Protocol::Explicit, &[0]);
    world.apply(Operation::Commit);
    world.refuse(29);
    assert!(matches!(world.outcomes()[..], [Outcome::NotCommitted(Cause::Code { code: ErrorCode(29), .. })]));
    assert_eq!(world.requests(), ["add"], "nothing was added, so nothing is ended");
}

// librdkafka #3571, #4020; aiokafka's stale coordinator.
#[test]
fn moved_coordinator_is_looked_up_and_gets_the_same_request() {
    for (code, looks_up) in [(14, false), (15, true), (16, true)] {
        for protocol in BOTH {
            let mut world = World::with_batches(protocol, &[0]);
            world.calm();
            for goal in [Operation::Commit, Operation::Abort] {
                if world.machine.state() == StateName::Ready {
                    world.begin(&[0]);
                    world.calm();
                }
                world.apply(goal);
                world.requests();
                world.refuse(code);
                let name = if goal == Operation::Commit { "commit" } else { "abort" };
                let expected: &[&str] = if looks_up { &["find", name] } else { &[name] };
                world.calm();
                let sent: Vec<_> = world.requests().into_iter().filter(|name| *name != "bump").collect();
                assert_eq!(sent, expected, "{code} {protocol:?}");
            }
            assert_eq!(world.outcomes(), [Outcome::Committed, Outcome::Aborted]);
            world.finish();
        }
    }
}

#[test]
fn coordinator_that_cannot_be_found_for_a_while_delays_the_commit_and_changes_nothing_else() {
    let mut world = World::with_batches(Protocol::Explicit, &[0]);
    world.calm();
    world.apply(Operation::Commit);
    world.refuse(16);
    for _ in 0..3 {
        world.refuse(15);
        wake_until_sent(&mut world);
        assert!(matches!(world.in_flight[..], [(_, Request::FindCoordinator)]));
    }
    world.calm();
    assert_eq!(world.outcomes(), [Outcome::Committed]);
    world.finish();
}

// franz-go 1.21.4: an all-failed transaction V2 stayed open, and the next one joined it.
#[test]
fn implicit_transaction_whose_every_batch_was_refused_is_still_ended() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.refuse(10);
    world.requests();
    world.apply(Operation::Commit);
    assert_eq!(world.requests(), ["abort"]);
    world.calm();
    world.finish();
}

// librdkafka #4750 and krafka 0.19: a batch was split after it had a sequence.
#[test]
fn batch_that_is_too_large_for_the_broker_aborts_and_is_never_rebuilt() {
    for code in [10, 18] {
        let mut world = World::with_batches(Protocol::Implicit, &[0, 0]);
        world.refuse(code);
        assert_eq!(world.machine.state(), StateName::AbortRequired);
        world.calm();
        assert_eq!(produced(&world).iter().filter(|(_, batch, ..)| *batch == 0).count(), 1);
    }
}

#[test]
fn corrupt_batch_is_tried_once_more() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.refuse(2);
    wake_until_sent(&mut world);
    world.refuse(2);
    assert_eq!(world.machine.state(), StateName::AbortRequired);
}

#[test]
fn new_leader_that_the_answer_named_needs_no_look_up_and_no_wait() {
    let mut world = World::with_batches(Protocol::Implicit, &[0]);
    world.requests();
    let (id, _) = world.in_flight.remove(0);
    let hinted = Reply::Produced { code: ErrorCode(6), base_offset: -1, log_start_offset: -1, leader_known: true };
    world.reply(id, hinted);
    assert_eq!(world.requests(), ["produce"]);
}

#[test]
fn queue_and_partitions_are_bounded() {
    let settings = oncewire_txn::Settings { batches_max: 3, partitions_max: 2, ..oncewire_txn::Settings::default() };
    let mut world = World::with(settings, Protocol::Implicit, 0);
    world.apply(Operation::Init);
    world.calm();
    world.command(Command::Begin);
    let append = |partition: u32, batch: u64| Command::Append {
        partition: PartitionIndex(partition),
        batch: BatchId(batch),
        records: 1,
    };
    assert!(world.machine.handle_command(world.now, append(0, 0)).is_ok());
    assert!(world.machine.handle_command(world.now, append(1, 1)).is_ok());
    let full = world.machine.handle_command(world.now, append(2, 2));
    assert_eq!(full, Err(oncewire_txn::Refusal::TooManyPartitions { partitions_max: 2 }));
    assert!(world.machine.handle_command(world.now, append(1, 3)).is_ok());
    let full = world.machine.handle_command(world.now, append(1, 4));
    assert_eq!(full, Err(oncewire_txn::Refusal::Full { batches_max: 3 }));
}
