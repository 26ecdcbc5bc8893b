//! A member that begins to lead finds out what the workers that are gone left behind.
//!
//! Only one that was a member without a break since another leader's assignment is an heir. At the cold start of a whole cluster, or
//! after a time outside the group, every status is of somebody who is gone, and nothing may wait for them. The status topic is
//! read to its end first: what a worker told before it left is in it.

use super::group::configured;
use super::tick::Tick;
use crate::decide::left_behind::{Item, LastWord, left_behind};
use crate::start::worker_id;
use oncewire_membership::{ConnectProtocol, Load, MemberState, TaskId};
use oncewire_topics::{State, TargetState};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long reading the status topic to its end may take, while the group waits for its assignments: 1 s.
const STATUS_READ_MAX: Duration = Duration::from_secs(1);

impl Tick {
    /// Before the first round that this worker leads in its predecessor's place.
    pub(super) async fn inherit(&mut self, protocol: ConnectProtocol, members: &BTreeMap<String, MemberState>) {
        if !self.is_heir || protocol.is_eager() {
            return;
        }
        let held = members.values().fold(Load::default(), |sum, state| sum.union(&state.load()));
        let missing = configured(&self.parts.view.snapshot()).load().difference(&held);
        let (mut lost, mut workers) = (Load::default(), 0);
        if !missing.is_empty() && !self.parts.config.rebalance_delay_max.is_zero() {
            if let Err(error) = self.parts.view.statuses.refresh(STATUS_READ_MAX).await {
                tracing::info!("the status topic was not read to its end before leading: {error}");
            }
            let here = members.values().map(|state| worker_id(&state.url)).collect();
            let found = left_behind(self.last_words(&missing), &here);
            if !found.load.is_empty() {
                tracing::info!(
                    connectors = found.load.connectors.len(),
                    tasks = found.load.tasks.len(),
                    workers = ?found.workers,
                    "waiting for workers that left under the leader before"
                );
            }
            (lost, workers) = (found.load, found.workers.len());
        }
        self.assignor.take_over(lost, workers, self.last_completed_generation);
    }

    /// The last statuses of these, where there are any.
    fn last_words(&self, missing: &Load) -> Vec<LastWord> {
        let (statuses, snapshot) = (&self.parts.view.statuses, self.parts.view.snapshot());
        let connectors = missing.connectors.iter().filter_map(|name| {
            let status = statuses.connector(name)?;
            let is_stopped = snapshot.target_state(name) == Some(TargetState::Stopped);
            let is_given_up = status.state == State::Unassigned;
            Some(LastWord {
                item: Item::Connector { name: name.clone(), is_stopped },
                worker_id: status.worker_id,
                is_given_up,
            })
        });
        let tasks = missing.tasks.iter().filter_map(|id| {
            let TaskId { connector, task } = id;
            let task = u32::try_from(*task).ok()?;
            let worker_id = statuses.task(connector, task)?.worker_id;
            let is_given_up = statuses.is_given_up(connector, task);
            Some(LastWord { item: Item::Task(id.clone()), worker_id, is_given_up })
        });
        connectors.chain(tasks).collect()
    }
}
