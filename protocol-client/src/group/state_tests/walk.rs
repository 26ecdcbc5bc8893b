//! A random walk through all inputs.

use super::table::inputs;
use super::*;

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
