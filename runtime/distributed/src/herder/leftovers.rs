//! Transactional ids whose tasks are gone for good: of a connector that was deleted, or stopped.
//!
//! A task that was killed leaves its transaction open until `transaction.timeout.ms`, and whoever reads the offsets topic to its
//! end waits for that. Where new tasks follow, the round that lets them in fences the old ones (`fence.rs`). Where none do, the
//! leader does it:
//!
//! ```text
//! deletion or stop written ─► rounds of the group: its tasks are given back ─► no member runs one any more ─► fenced, as a job
//! ```
//!
//! Fenced earlier, tasks that are about to stop in good order would fail instead. While the job goes on it occupies the
//! connector's place among the rounds of fencing, so that the tasks of a connector that is made again under the name are let in
//! when it has ended, and never fenced by it. A connector that has tasks again by then is left to their own round.
//!
//! Left out: a leader that goes before it has fenced leaves it to the time-out; so does a Java leader. Its successor could not
//! tell what is left to do. Of a deleted connector the config topic still has how many tasks were let in, but not the configuration
//! with the rights to fence them; of a stopped one it has both. Neither says whether the fencing was done, so each new leader would
//! fence all that were ever deleted or stopped, and revive ids that brokers have forgotten; a record that says so would be one more
//! write for each deletion, in a topic that Java workers share. What it costs: a task was killed with a transaction open, its
//! connector was deleted or stopped, and the leader went, all within `transaction.timeout.ms`, after which readers go on.
//!
//! Invariant: nobody waits for this but tasks of the same name, and nothing fails because of it.

use super::fence::{fence_ids, named};
use super::job::Done;
use super::tick::Tick;
use crate::decide::fencing::left_behind;
use bytes::Bytes;
use oncewire_membership::decode_metadata;
use oncewire_rest::model::{ConfigMap, ConnectorType};
use oncewire_topics::ConfigSnapshot;
use oncewire_worker::config::clients::admin_client;
use oncewire_worker::config::worker::ExactlyOnceSource;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Connectors that are fenced at the same time, each by a connection of its own: 10.
const AT_ONCE: usize = 10;

/// What waits to be fenced. Bound: one for each connector that was deleted or stopped since the last round.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    waiting: BTreeMap<String, Leftover>,
    under_way: usize,
}

#[derive(Debug)]
struct Leftover {
    ids: Vec<String>,
    /// Its configuration, for the rights to do it with.
    config: Arc<ConfigMap>,
    /// When the last round began no member ran a task of it.
    is_free: bool,
}

impl Leftovers {
    /// A round begins with what these members say that they run.
    pub(super) fn note_round(&mut self, members: &[(String, Bytes)]) {
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.values_mut().for_each(|leftover| leftover.is_free = true);
        for (_, metadata) in members {
            let Ok(state) = decode_metadata(metadata) else {
                // What it runs is not known.
                return self.waiting.values_mut().for_each(|leftover| leftover.is_free = false);
            };
            for task in state.allocation.into_iter().flat_map(|allocation| allocation.assigned.tasks) {
                if let Some(leftover) = self.waiting.get_mut(&task.connector) {
                    leftover.is_free = false;
                }
            }
        }
    }

    /// Somebody else sees to it.
    pub(super) fn forget(&mut self, connector: &str) {
        self.waiting.remove(connector);
    }

    fn next_free(&mut self) -> Option<(String, Leftover)> {
        if self.under_way >= AT_ONCE {
            return None;
        }
        let name = self.waiting.iter().find(|(_, leftover)| leftover.is_free)?.0.clone();
        self.waiting.remove_entry(&name)
    }
}

impl Tick {
    /// A deletion or a stop was written; `before`: what there was.
    pub(super) fn leave_behind(&mut self, before: &ConfigSnapshot, name: &str) {
        let Some(config) = before.config(name) else { return };
        let is_source = crate::kinds::kind(&self.parts.registry, config) == ConnectorType::Source;
        if self.parts.config.exactly_once != ExactlyOnceSource::Enabled || !is_source {
            return;
        }
        let (recorded, tasks) = (before.task_count_record(name), before.task_count(name));
        let ids = left_behind(&self.parts.config.group_id, name, recorded, tasks);
        if !ids.is_empty() {
            let leftover = Leftover { ids, config: config.clone(), is_free: false };
            self.leftovers.waiting.insert(name.to_owned(), leftover);
        }
    }

    /// Fences what nobody runs any more.
    pub(super) fn fence_leftovers(&mut self) {
        if self.leftovers.waiting.is_empty() || self.is_rebalancing() {
            return;
        }
        if !self.leads() {
            return self.leftovers.waiting.clear();
        }
        let snapshot = self.parts.view.snapshot();
        while let Some((connector, leftover)) = self.leftovers.next_free() {
            if snapshot.task_count(&connector) > 0 || self.rounds.contains(&connector) {
                continue;
            }
            tracing::info!(connector, ids = leftover.ids.len(), "fencing the producers of tasks that are gone");
            self.rounds.occupy(&connector);
            self.leftovers.under_way += 1;
            let worker = self.parts.worker.clone();
            let resolved = crate::kinds::resolved(&self.parts.providers, &connector, &leftover.config);
            self.jobs.spawn(async move {
                let client = resolved.map_err(|problem| problem.to_string());
                let client = client.and_then(|config| admin_client(worker.config(), &config, &connector));
                let result = match client {
                    Ok(client) => fence_ids(client, &leftover.ids).await,
                    Err(problem) => Err(format!("{}: {problem}", named(&leftover.ids, ", "))),
                };
                Done::LeftoversFenced { connector, result }
            });
        }
    }

    /// A job of them has ended.
    pub(super) fn end_leftover(&mut self) {
        self.leftovers.under_way = self.leftovers.under_way.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncewire_membership::{Assignment, ConnectProtocol, Load, MemberState, TaskId, encode_metadata};

    fn member(connectors: &[&str]) -> (String, Bytes) {
        let tasks = connectors.iter().map(|connector| TaskId::new((*connector).to_owned(), 0)).collect();
        let assigned = Load { tasks, ..Load::default() };
        let allocation = Some(Assignment { assigned, ..Assignment::default() });
        let state = MemberState { url: "http://w/".to_owned(), offset: 7, allocation };
        ("m".to_owned(), encode_metadata(ConnectProtocol::Sessioned, &state))
    }

    fn leftovers(names: &[&str]) -> Leftovers {
        let leftover = || Leftover { ids: vec!["g-c-0".to_owned()], config: Arc::default(), is_free: false };
        Leftovers { waiting: names.iter().map(|name| ((*name).to_owned(), leftover())).collect(), under_way: 0 }
    }

    fn free(leftovers: &mut Leftovers) -> Vec<String> {
        std::iter::from_fn(|| leftovers.next_free()).map(|(name, _)| name).collect()
    }

    #[test]
    fn what_a_member_still_runs_is_not_fenced() {
        let mut leftovers = leftovers(&["a", "b"]);
        assert!(free(&mut leftovers).is_empty(), "before a round nobody knows");
        leftovers.note_round(&[member(&["x"]), member(&["b"])]);
        assert_eq!(free(&mut leftovers), ["a"]);
        leftovers.note_round(&[member(&["x"]), member(&[])]);
        assert_eq!(free(&mut leftovers), ["b"]);
    }

    #[test]
    fn nothing_is_fenced_while_a_member_can_t_be_read() {
        let mut leftovers = leftovers(&["a"]);
        leftovers.note_round(&[member(&[]), ("n".to_owned(), Bytes::from_static(b"\x00"))]);
        assert!(free(&mut leftovers).is_empty());
    }

    #[test]
    fn so_many_are_fenced_at_once_and_no_more() {
        let mut leftovers = leftovers(&["a"]);
        leftovers.note_round(&[member(&[])]);
        leftovers.under_way = AT_ONCE;
        assert!(free(&mut leftovers).is_empty());
        leftovers.under_way = AT_ONCE - 1;
        assert_eq!(free(&mut leftovers), ["a"]);
    }
}
