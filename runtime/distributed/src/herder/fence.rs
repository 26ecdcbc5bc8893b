//! Rounds of zombie fencing, by the leader (KIP-618): before new tasks of a source connector may start, the producers of all
//! older ones are fenced, and a record says so.
//!
//! One round per connector at a time; who comes later waits for the same one. New task configurations while a round is under
//! way make it void: its tasks are old already. Who asks after that belongs to the new ones, and gets a round of its own when
//! the void one has ended (in Java it fails with the old tasks, and waits for a person).

use super::command::Reply;
use super::connectors::EXACTLY_ONCE_SOURCE;
use super::errors::{not_leader, unknown_connector};
use super::job::Done;
use super::offsets::OffsetsJob;
use super::tick::{Tick, answer};
use crate::decide::fencing::{Fencing, fencing};
use oncewire_api::Properties;
use oncewire_client::admin::Admin;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_rest::HerderError;
use oncewire_rest::model::ConnectorType;
use oncewire_worker::config::clients::admin_client;
use std::collections::BTreeMap;
use std::time::Duration;

/// Stored as the transaction timeout of a fenced id until its next owner sets its own: 60 s, as brokers' lowest common cap
/// allows (KAFKA-16047), where Java asks for 90 s.
const FENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a round may take: 90 s, as long as a REST request may.
const ROUND_MAX: Duration = Duration::from_secs(90);

/// Who waits for a round.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A task that wants to start, here or on another worker.
    Reply(Reply<()>),
    /// A change of offsets, which goes on when the round is done.
    Offsets(OffsetsJob),
}

/// The rounds under way. Bound: one for each connector.
#[derive(Debug, Default)]
pub(super) struct Rounds(BTreeMap<String, ActiveRound>);

#[derive(Debug)]
struct ActiveRound {
    waiters: Vec<Waiter>,
    /// Who came after the round was void.
    late: Vec<Waiter>,
    generation: u64,
    tasks: u32,
    superseded: bool,
}

impl Rounds {
    /// New task configurations were committed.
    pub(super) fn supersede(&mut self, connector: &str) {
        if let Some(round) = self.0.get_mut(connector) {
            round.superseded = true;
        }
    }

    /// Begins a round that lets nobody in: who comes meanwhile is seen to when it has ended.
    pub(super) fn occupy(&mut self, connector: &str) {
        let round = ActiveRound { waiters: Vec::new(), late: Vec::new(), generation: 0, tasks: 0, superseded: true };
        self.0.insert(connector.to_owned(), round);
    }

    /// Whether a round of this connector is under way.
    pub(super) fn contains(&self, connector: &str) -> bool {
        self.0.contains_key(connector)
    }

    /// The worker stops.
    pub(super) fn fail_all(&mut self, error: &HerderError) {
        for round in std::mem::take(&mut self.0).into_values() {
            for waiter in round.waiters.into_iter().chain(round.late) {
                waiter.fail(error.clone());
            }
        }
    }
}

impl Waiter {
    pub(super) fn fail(self, error: HerderError) {
        match self {
            Self::Reply(reply) => answer(reply, Err(error)),
            Self::Offsets(job) => answer(job.reply, Err(error)),
        }
    }
}

impl Tick {
    /// Begins a round, joins the one under way, or finds that none is needed.
    pub(super) async fn fence(&mut self, name: String, waiter: Waiter) {
        if !self.leads() {
            return waiter.fail(not_leader(&self.parts.view));
        }
        if let Some(round) = self.rounds.0.get_mut(&name) {
            let queue = if round.superseded { &mut round.late } else { &mut round.waiters };
            return queue.push(waiter);
        }
        let read = self.parts.view.configs.refresh(self.parts.config.sync_timeout).await;
        if let Err(error) = read {
            return waiter.fail(HerderError::Internal(format!("Failed to read to end of config topic: {error}")));
        }
        let snapshot = self.parts.view.snapshot();
        let Some(config) = snapshot.config(&name) else { return waiter.fail(unknown_connector(&name)) };
        if crate::kinds::kind(&self.parts.registry, config) != ConnectorType::Source {
            return waiter.fail(HerderError::BadRequest(format!("Connector {name} is not a source connector")));
        }
        // What is left behind is fenced by this round, or by the one new task's own start.
        self.leftovers.forget(&name);
        let (pending, recorded) = (snapshot.pending_fencing(&name), snapshot.task_count_record(&name));
        match fencing(&self.parts.config.group_id, &name, pending, recorded, snapshot.task_count(&name)) {
            Fencing::NotNeeded => self.let_in(waiter),
            Fencing::Record { tasks } => {
                let written = self.parts.view.configs.put_task_count(&name, tasks).await;
                match self.written(written) {
                    Ok(()) => self.let_in(waiter),
                    Err(error) => waiter.fail(error),
                }
            }
            Fencing::Fence { ids, tasks } => {
                let generation = snapshot.generation(&name);
                let round =
                    ActiveRound { waiters: vec![waiter], late: Vec::new(), generation, tasks, superseded: false };
                tracing::info!(connector = name, ids = ids.len(), "fencing the producers of older tasks");
                match crate::kinds::resolved(&self.parts.providers, &name, config) {
                    Ok(resolved) => {
                        self.rounds.0.insert(name.clone(), round);
                        self.spawn_fencing(name, resolved, ids);
                    }
                    Err(problem) => {
                        round
                            .waiters
                            .into_iter()
                            .for_each(|waiter| waiter.fail(HerderError::Internal(problem.to_string())));
                    }
                }
            }
        }
    }

    /// The round's work, with the connector's own rights. Where the connector says that it may have written without
    /// transactions, the partitions are told of the new epochs too.
    fn spawn_fencing(&mut self, connector: String, config: Properties, ids: Vec<String>) {
        let worker = self.parts.worker.clone();
        let topics: Vec<String> = self.parts.view.statuses.topics(&connector).into_keys().collect();
        let came_back =
            config.get(EXACTLY_ONCE_SOURCE).is_some_and(|value| value.trim().eq_ignore_ascii_case("enabled"));
        self.jobs.spawn(async move {
            let result = if came_back {
                worker.fence_out(&connector, &config, &ids, &topics).await
            } else {
                match admin_client(worker.config(), &config, &connector) {
                    Ok(client) => fence_ids(client, &ids).await,
                    Err(problem) => Err(problem),
                }
            };
            Done::Fenced { connector, result }
        });
    }

    /// Fenced: the record is written if nothing changed meanwhile, and all who wait are let in or told why not.
    pub(super) async fn on_fenced(&mut self, connector: String, result: Result<(), String>) {
        let Some(mut round) = self.rounds.0.remove(&connector) else { return };
        let ended = self.end_round(&connector, &round, result).await;
        for waiter in std::mem::take(&mut round.waiters) {
            match &ended {
                Ok(()) => self.let_in(waiter),
                Err(error) => waiter.fail(error.clone()),
            }
        }
        for waiter in round.late {
            self.fence(connector.clone(), waiter).await;
        }
    }

    /// Ids without an owner were fenced, or not: that is no reason to keep anybody waiting.
    pub(super) async fn on_leftovers_fenced(&mut self, connector: String, result: Result<(), String>) {
        match result {
            Ok(()) => tracing::debug!(connector, "fenced what its tasks may have left open"),
            Err(problem) => tracing::warn!(
                connector,
                "the connector's tasks are gone, but what they may have left open is not aborted before its time-out: {problem}"
            ),
        }
        self.end_leftover();
        let Some(round) = self.rounds.0.remove(&connector) else { return };
        for waiter in round.waiters.into_iter().chain(round.late) {
            self.fence(connector.clone(), waiter).await;
        }
    }

    async fn end_round(
        &mut self,
        connector: &str,
        round: &ActiveRound,
        result: Result<(), String>,
    ) -> Result<(), HerderError> {
        if round.superseded {
            return Err(HerderError::Conflict(
                "Failed to complete zombie fencing because a new set of task configs was generated".to_owned(),
            ));
        }
        result.map_err(|problem| HerderError::Internal(format!("Failed to perform zombie fencing: {problem}")))?;
        let read = self.parts.view.configs.refresh(self.parts.config.sync_timeout).await;
        read.map_err(|error| HerderError::Internal(format!("Failed to read to end of config topic: {error}")))?;
        if self.parts.view.snapshot().generation(connector) != round.generation {
            return Err(HerderError::Conflict(
                "Fencing failed because new task configurations were generated for the connector".to_owned(),
            ));
        }
        let written = self.parts.view.configs.put_task_count(connector, round.tasks).await;
        self.written(written)
    }

    fn let_in(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Reply(reply) => answer(reply, Ok(())),
            Waiter::Offsets(job) => self.go_on_with_offsets(job),
        }
    }
}

/// How many ids an error names; of the rest it says how many they are.
const NAMED_MAX: usize = 20;

/// Fences with the connector's own rights. The error names the ids that could not be fenced.
pub(super) async fn fence_ids(client: ClientConfig, ids: &[String]) -> Result<(), String> {
    let cluster = Cluster::connect(client).await.map_err(|error| format!("{}: {error}", named(ids, ", ")))?;
    let fenced = Admin::new(cluster.clone()).fence_producers(ids, FENCE_TIMEOUT, ROUND_MAX).await;
    cluster.close().await;
    let failed = fenced.into_iter().filter_map(|(id, result)| Some((id, result.err()?)));
    let failed: Vec<String> =
        failed.map(|(id, error)| format!("transactional id {id:?} can't be fenced: {error}")).collect();
    if failed.is_empty() { Ok(()) } else { Err(named(&failed, "; ")) }
}

/// The first of them, and how many more there are.
pub(super) fn named(all: &[String], between: &str) -> String {
    let shown = all[..all.len().min(NAMED_MAX)].join(between);
    match all.len().checked_sub(NAMED_MAX) {
        Some(more @ 1..) => format!("{shown}{between}and {more} more"),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_first_ids_and_counts_the_rest() {
        let ids: Vec<String> = (0..10_000).map(|task| format!("g-c-{task}")).collect();
        assert_eq!(named(&ids[..2], ", "), "g-c-0, g-c-1");
        assert!(!named(&ids[..NAMED_MAX], ", ").contains("more"));
        assert!(named(&ids, ", ").ends_with("g-c-19, and 9980 more"));
    }
}
