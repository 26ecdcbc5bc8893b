//! What a person is told when a topic of the cluster could not be written.

use super::tick::Tick;
use oncewire_rest::HerderError;
use oncewire_rest::herder::Answer;
use oncewire_topics::TopicError;
use std::time::Instant as SystemInstant;
use tokio::time::Instant;

/// Java's words for it; clients look for them.
const WRITE_FAILED: &str =
    "Failed to write to config topic; this may be due to a transient error and the request can be safely retried";

/// A write that was not done, for REST.
pub fn write_failed(error: &TopicError) -> HerderError {
    match error {
        TopicError::Privileged(_) | TopicError::NotPrivileged => HerderError::Internal(WRITE_FAILED.to_owned()),
        other => HerderError::Internal(format!("{WRITE_FAILED}: {other}")),
    }
}

impl Tick {
    /// The answer to a write; one that failed for the leader's producer has it claimed again.
    pub(super) fn written<T>(&mut self, written: Result<T, TopicError>) -> Answer<T> {
        if written.is_ok()
            && let Some(after) = self.write_trouble.over(SystemInstant::now())
        {
            tracing::info!("the config topic is written again after {:.1} s", after.as_secs_f32());
        }
        written.map_err(|error| {
            if let Some(told) = self.write_trouble.failed(SystemInstant::now(), &error.to_string()) {
                tracing::warn!("writes to the config topic fail{told}: {error}");
            }
            if matches!(error, TopicError::Privileged(_) | TopicError::NotPrivileged) {
                self.claim_at = Some(Instant::now());
            }
            write_failed(&error)
        })
    }
}

/// Only the leader may; whoever asked is sent there.
pub fn not_leader(view: &crate::view::View) -> HerderError {
    HerderError::NotLeader { leader_url: view.group().leader_url }
}

/// No connector of this name.
pub fn unknown_connector(name: &str) -> HerderError {
    HerderError::NotFound(format!("Connector {name} not found"))
}
