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
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn committed_is_exactly_once_in_order_and_aborted_is_nothing(
        protocol in protocols(),
        operations in operations(),
    ) {
        run(protocol, 0, &operations);
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
