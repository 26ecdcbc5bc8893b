//! The leader's duties beside assigning: its transactional producer, the session key, statuses of what is gone.

use super::tick::Tick;
use crate::decide::session_key::{Known, Wanted, expires_at, is_due};
use crate::view::now_ms;
use oncewire_topics::SessionKey;
use std::time::{Duration, Instant as SystemInstant};
use tokio::time::Instant;

/// The wait before the leader's producer is claimed again after a failure: 250 ms.
const CLAIM_AGAIN: Duration = Duration::from_millis(250);

/// How long one claim may take before the loop goes on without: 30 s. Until then nothing is written by the leader anyway.
const CLAIM_MAX: Duration = Duration::from_secs(30);

impl Tick {
    /// What a worker does first when it leads: it takes the leader's transactional id, so that no older leader writes any
    /// more, and buries the statuses of connectors and tasks that are gone.
    pub(super) async fn begin_leading(&mut self) {
        self.bury_statuses();
        if self.parts.config.exactly_once.leader_is_transactional() {
            self.claim().await;
            self.look_for_sharing();
        }
    }

    /// Claims when a failed write, or a failed claim, made it necessary.
    pub(super) async fn claim_if_due(&mut self) {
        if self.claim_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.claim_at = None;
        // A worker that leads no longer was fenced rightly.
        if self.leads() && self.parts.config.exactly_once.leader_is_transactional() {
            self.claim().await;
        }
    }

    async fn claim(&mut self) {
        self.parts.view.begin_stage("claiming the leader's transactional producer");
        match tokio::time::timeout(CLAIM_MAX, self.parts.view.configs.claim_write_privileges()).await {
            Ok(Ok(())) => {
                if let Some(after) = self.leading_trouble.over(SystemInstant::now()) {
                    tracing::info!("the leader's transactional producer is ours after {:.1} s", after.as_secs_f32());
                }
            }
            Ok(Err(error)) => self.claim_again(&error.to_string()),
            Err(_) => self.claim_again(&format!("no answer in {CLAIM_MAX:?}")),
        }
    }

    fn claim_again(&mut self, problem: &str) {
        if let Some(told) = self.leading_trouble.failed(SystemInstant::now(), problem) {
            tracing::warn!("the leader's transactional producer can't be had{told}, trying again: {problem}");
        }
        self.claim_at = Some(Instant::now() + CLAIM_AGAIN);
    }

    fn bury_statuses(&self) {
        let snapshot = self.parts.view.snapshot();
        let statuses = &self.parts.view.statuses;
        for connector in statuses.connectors() {
            if !snapshot.contains(&connector) {
                statuses.delete_connector(&connector);
            }
            let tasks = snapshot.tasks(&connector);
            for task in statuses.tasks(&connector).into_keys().filter(|task| !tasks.contains(task)) {
                statuses.delete_task(&connector, task);
            }
        }
    }

    /// Whether this worker has to see to the key between workers.
    fn keeps_session_key(&self) -> bool {
        let group = self.parts.view.group();
        group.is_signed() && self.leads() && !group.rebalancing
    }

    /// When the key has to be replaced, for the loop's timer.
    pub(super) fn session_key_due(&self) -> Option<Instant> {
        if !self.keeps_session_key() {
            return None;
        }
        let snapshot = self.parts.view.snapshot();
        let expires = expires_at(snapshot.session_key()?.created_ms, self.parts.config.session_keys.ttl)?;
        let left = u64::try_from(expires.saturating_sub(now_ms())).unwrap_or(0);
        Some(Instant::now() + Duration::from_millis(left))
    }

    /// Makes a new key when one is due.
    pub(super) async fn rotate_session_key(&mut self) {
        if !self.keeps_session_key() || self.claim_at.is_some() {
            return;
        }
        let settings = &self.parts.config.session_keys;
        let wanted = Wanted { algorithm: &settings.key_algorithm, bytes: settings.key_bytes, ttl: settings.ttl };
        let snapshot = self.parts.view.snapshot();
        let known = snapshot.session_key().map(|key| Known {
            algorithm: &key.algorithm,
            bytes: key.key.len(),
            created_ms: key.created_ms,
        });
        if !is_due(known, wanted, now_ms()) {
            return;
        }
        self.parts.view.begin_stage("distributing a new session key");
        let key = match random_bytes(settings.key_bytes) {
            Ok(key) => key,
            Err(error) => {
                if let Some(told) = self.leading_trouble.failed(SystemInstant::now(), &error.to_string()) {
                    tracing::error!(
                        "the operating system gives no random bytes for a session key{told}, trying again: {error}"
                    );
                }
                self.claim_at.get_or_insert_with(|| Instant::now() + CLAIM_AGAIN);
                return;
            }
        };
        let key = SessionKey { key, algorithm: settings.key_algorithm.clone(), created_ms: now_ms() };
        let written = self.parts.view.configs.put_session_key(&key).await;
        if self.written(written).is_err() {
            // A failed write claims the producer anew; the key is due again in the next turn after that.
            self.claim_at.get_or_insert_with(|| Instant::now() + CLAIM_AGAIN);
        }
    }
}

/// From the operating system's source.
fn random_bytes(count: usize) -> Result<Vec<u8>, getrandom::Error> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes made of random UUIDs would have six bits that never change.
    #[test]
    fn every_bit_of_a_session_key_is_random() {
        let (mut ones, mut zeros) = (vec![0; 32], vec![0; 32]);
        for _ in 0..64 {
            for (at, byte) in random_bytes(32).unwrap().into_iter().enumerate() {
                ones[at] |= byte;
                zeros[at] |= !byte;
            }
        }
        assert_eq!((ones, zeros), (vec![255; 32], vec![255; 32]));
    }
}
