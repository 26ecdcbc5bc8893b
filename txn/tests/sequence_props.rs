//! The machine against an honest broker and a hostile network, with drawn operations.
//!
//! Whatever is lost, delayed, refused or taken over: no gap and no reuse of sequences, the order of appends in the log,
//! everything of a committed transaction exactly once, nothing of an aborted one, all or nothing of an unknown one. The
//! checks themselves stand in `model/ledger.rs`.

mod model;

use model::broker::EPOCH_EXHAUSTED;
use model::{Operation, World, operation};
use oncewire_txn::Protocol;
use proptest::prelude::*;

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec((any::<u8>(), any::<u8>()).prop_map(|(what, number)| operation(what, number)), 0..250)
}

/// Operations that mostly go well, so that runs get through many transactions and a late copy finds the next one open.
fn lively() -> impl Strategy<Value = Vec<Operation>> {
    let which = 0_usize..4;
    let one = prop_oneof![
        30 => Just(Operation::Deliver { which: 0 }),
        8 => (0_u32..3).prop_map(|partition| Operation::Append { partition }),
        8 => Just(Operation::Begin),
        6 => Just(Operation::Commit),
        2 => Just(Operation::Abort),
        8 => Just(Operation::WriteMarkers),
        6 => Just(Operation::Wake),
        5 => which.clone().prop_map(|which| Operation::Delay { which }),
        5 => which.clone().prop_map(|which| Operation::ArriveLate { which }),
        1 => which.clone().prop_map(|which| Operation::LoseReply { which }),
        1 => which.clone().prop_map(|which| Operation::Refuse { which, code: 6 }),
        1 => which.prop_map(|which| Operation::Refuse { which, code: 45 }),
        1 => Just(Operation::Init),
        1 => Just(Operation::Fail),
    ];
    prop::collection::vec(one, 0..300)
}

fn protocols() -> impl Strategy<Value = Protocol> {
    prop_oneof![Just(Protocol::Explicit), Just(Protocol::Implicit)]
}

fn run(protocol: Protocol, first_epoch: i16, operations: &[Operation]) -> World {
    let mut world = World::new(protocol, first_epoch);
    world.apply(Operation::Init);
    for operation in operations {
        world.apply(*operation);
    }
    world.finish()
}

proptest! {
    // 256 cases each; PROPTEST_CASES asks for more.

    #[test]
    fn committed_is_exactly_once_in_order_and_aborted_is_nothing(
        protocol in protocols(),
        operations in operations(),
    ) {
        run(protocol, 0, &operations);
    }

    #[test]
    fn late_copies_of_old_requests_change_nothing_of_later_transactions(
        protocol in protocols(),
        operations in lively(),
    ) {
        run(protocol, 0, &operations);
    }

    #[test]
    fn upgrade_between_any_two_steps_tears_nothing(operations in lively(), at in 0_usize..200) {
        let mut operations = operations;
        operations.insert(at.min(operations.len()), Operation::Upgrade);
        run(Protocol::Explicit, 0, &operations);
    }

    #[test]
    fn exhausted_epochs_lose_nothing_either(
        protocol in protocols(),
        first_epoch in EPOCH_EXHAUSTED - 4..=EPOCH_EXHAUSTED,
        operations in operations(),
    ) {
        run(protocol, first_epoch, &operations);
    }

    #[test]
    fn quiet_network_commits_every_transaction(
        protocol in protocols(),
        sizes in prop::collection::vec(0_u32..30, 1..12),
    ) {
        let mut world = World::new(protocol, 0);
        world.apply(Operation::Init);
        for _ in 0..2 {
            world.deliver(0);
        }
        for size in &sizes {
            world.apply(Operation::Begin);
            for partition in 0..*size {
                world.apply(Operation::Append { partition });
            }
            world.apply(Operation::Commit);
            for _ in 0..200 {
                if world.in_flight.is_empty() {
                    world.apply(Operation::WriteMarkers);
                    world.apply(Operation::Wake);
                } else {
                    world.deliver(0);
                }
                if world.machine.state() == oncewire_txn::StateName::Ready {
                    break;
                }
            }
        }
        let world = world.finish();
        prop_assert_eq!(world.ledger.committed(), sizes.len());
    }
}
