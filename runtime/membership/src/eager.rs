//! The eager way: all members have stopped everything, and all is dealt out anew, round after round like cards.
//!
//! First the connectors in order of their names, then, where that left off, the tasks; to the members in order of their ids.

use std::collections::BTreeMap;

use crate::assignor::Dealt;
use crate::load::Load;

/// Deals `configured` to `members`, which are sorted.
pub(crate) fn deal<'a>(members: impl Iterator<Item = &'a String>, configured: &Load) -> BTreeMap<String, Dealt> {
    let members: Vec<&String> = members.collect();
    let mut loads: Vec<Load> = vec![Load::default(); members.len()];
    if members.is_empty() {
        return BTreeMap::new();
    }
    let mut turn = 0;
    let mut next = || {
        turn += 1;
        (turn - 1) % members.len()
    };
    for connector in &configured.connectors {
        loads[next()].connectors.insert(connector.clone());
    }
    for task in &configured.tasks {
        loads[next()].tasks.insert(task.clone());
    }
    members
        .iter()
        .zip(loads)
        .map(|(member, load)| {
            ((*member).clone(), Dealt { owned: load.clone(), assigned: load, revoked: Load::default() })
        })
        .collect()
}
