//! Levelling the load: what to take from whom, and whom to give what is free. Connectors and tasks are levelled each for itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::load::Load;

/// The members' loads while a round is being calculated.
pub(crate) type Loads = BTreeMap<String, Load>;

/// A kind of item that is levelled: a way to reach its set within a [`Load`].
pub(crate) trait Kind {
    /// What one is called by.
    type Item: Ord + Clone;
    /// Those of `load`.
    fn of(load: &Load) -> &BTreeSet<Self::Item>;
    /// Those of `load`, to change.
    fn of_mut(load: &mut Load) -> &mut BTreeSet<Self::Item>;
}

/// Connector instances.
pub(crate) struct Connectors;
/// Tasks.
pub(crate) struct Tasks;

impl Kind for Connectors {
    type Item = String;
    fn of(load: &Load) -> &BTreeSet<String> {
        &load.connectors
    }
    fn of_mut(load: &mut Load) -> &mut BTreeSet<String> {
        &mut load.connectors
    }
}

impl Kind for Tasks {
    type Item = crate::load::TaskId;
    fn of(load: &Load) -> &BTreeSet<Self::Item> {
        &load.tasks
    }
    fn of_mut(load: &mut Load) -> &mut BTreeSet<Self::Item> {
        &mut load.tasks
    }
}

/// What members have above their share of `configured`; members with nothing to give are not in the result.
///
/// `held` is what they run already, a part of `loads`. Of that they give first, as in Java, the lowest first.
pub(crate) fn surplus(held: &Loads, loads: &Loads, configured: &Load) -> Loads {
    let mut surplus = Loads::new();
    if configured.is_empty() || loads.values().all(Load::is_empty) {
        return surplus;
    }
    surplus_of::<Connectors>(held, loads, configured, &mut surplus);
    surplus_of::<Tasks>(held, loads, configured, &mut surplus);
    surplus
}

/// Every member may keep the same number, and as many as there are left over may keep one more. Which ones those are differs between
/// implementations (Java: by the hash order of member ids); the next round is calculated from what members then report.
fn surplus_of<K: Kind>(held: &Loads, loads: &Loads, configured: &Load, surplus: &mut Loads) {
    let total = K::of(configured).len();
    let (least, mut extras) = (total / loads.len(), total % loads.len());
    let with = |count: usize| loads.values().filter(|load| K::of(load).len() == count).count();
    if with(least + 1) == extras && with(least) + extras == loads.len() {
        return;
    }
    for (member, load) in loads {
        let has = K::of(load);
        if has.len() <= least {
            continue;
        }
        let keeps = if extras > 0 {
            extras -= 1;
            least + 1
        } else {
            least
        };
        if has.len() > keeps {
            let runs = K::of(&held[member]);
            let given = has.intersection(runs).chain(has.difference(runs)).take(has.len() - keeps).cloned();
            K::of_mut(surplus.entry(member.clone()).or_default()).extend(given);
        }
    }
}

/// Gives `free`, one load after the other, to those who have least, level by level.
pub(crate) fn fill(loads: &mut Loads, free: [&Load; 2]) {
    fill_with::<Connectors>(loads, free);
    fill_with::<Tasks>(loads, free);
}

fn fill_with<K: Kind>(loads: &mut Loads, free: [&Load; 2]) {
    let mut order: Vec<(&String, &mut Load)> = loads.iter_mut().collect();
    // Stable, so that members with the same number stay in the order of their ids. From here on the first has the least.
    order.sort_by_key(|(_, load)| K::of(load).len());
    let mut free = free.into_iter().flat_map(K::of);
    let Some(lowest) = order.first().map(|(_, load)| K::of(load).len()) else { return };
    for level in lowest.. {
        for (_, load) in order.iter_mut().take_while(|(_, load)| K::of(load).len() <= level) {
            let Some(item) = free.next() else { return };
            K::of_mut(load).insert(item.clone());
        }
    }
}
