//! What a source task asks of the group before it may write exactly once (KIP-618): a round of fencing by the leader, and,
//! once its producer has the transactional id, that it is still wanted.
//!
//! A leader that is not known, moves, or has not distributed its key yet is asked again for a while: Java fails the task then
//! and waits for a person. It is asked again when what the answer depends on is different (the group, its leader, the key), else
//! after a back-off.

use super::command::Command;
use crate::decide::backoff::repeat_wait;
use crate::view::{GroupView, News, View};
use async_trait::async_trait;
use oncewire_rest::herder::Answer;
use oncewire_rest::{HerderError, RestClient, SigningKey};
use oncewire_worker::worker::{GateRefusal, TaskGate};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How long a leader is looked for: 60 s.
const FENCE_PATIENCE: Duration = Duration::from_secs(60);

/// How long the config topic may take to be read to its end before a task starts: 5 minutes, longer than any transaction of
/// a leader may stay open.
const READ_MAX: Duration = Duration::from_secs(300);

/// One task's gate.
pub(super) struct Gate {
    pub(super) connector: String,
    pub(super) task: u32,
    pub(super) generation: u64,
    pub(super) view: View,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) rest: RestClient,
    pub(super) signature_algorithm: String,
}

#[async_trait]
impl TaskGate for Gate {
    async fn fence(&self) -> Result<(), GateRefusal> {
        let deadline = Instant::now() + FENCE_PATIENCE;
        let mut attempt = 1;
        loop {
            let (mut news, asked_in) = (self.view.news(), self.circumstances());
            // A task that starts again by itself may have become old meanwhile; its producer would fence the new one's.
            if self.view.snapshot().generation(&self.connector) != self.generation {
                return Err(GateRefusal::Final(old(&self.connector, self.task)));
            }
            let error = match self.ask_as_member().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let wait = repeat_wait(attempt);
            let problem = words(&error);
            if !is_passing(&error) {
                return Err(GateRefusal::Final(problem));
            }
            if Instant::now() + wait > deadline {
                return Err(GateRefusal::Passing(problem));
            }
            tracing::debug!(connector = self.connector, task = self.task, "fencing is asked for again: {problem}");
            if tokio::time::timeout(wait, self.circumstances_differ(&mut news, &asked_in)).await.is_err() {
                attempt += 1;
            }
        }
    }

    async fn written_topics(&self) -> Vec<String> {
        self.view.statuses.topics(&self.connector).into_keys().collect()
    }

    async fn verify(&self) -> Result<(), GateRefusal> {
        let read = self.view.configs.refresh(READ_MAX).await;
        read.map_err(|error| GateRefusal::Passing(error.to_string()))?;
        let (reply, answer) = oneshot::channel();
        let (name, task, generation) = (self.connector.clone(), self.task, self.generation);
        self.ask(Command::Verify { name, task, generation, reply }, answer)
            .await
            .map_err(|error| GateRefusal::Final(words(&error)))
    }
}

/// What the answer to a question depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Circumstances {
    group: GroupView,
    generation: u64,
    key_created_ms: Option<i64>,
}

impl Gate {
    fn circumstances(&self) -> Circumstances {
        let snapshot = self.view.snapshot();
        Circumstances {
            group: self.view.group(),
            generation: snapshot.generation(&self.connector),
            key_created_ms: snapshot.session_key().map(|key| key.created_ms),
        }
    }

    /// Returns when they are others than those. Every task that waits looks at each change, but only then asks again.
    async fn circumstances_differ(&self, news: &mut News, asked_in: &Circumstances) {
        while self.circumstances() == *asked_in {
            news.next().await;
        }
    }

    /// A worker that is out of the group waits until it is in again: the group may have given the task to another, whose producer
    /// this one's would fence. So does one that hands over, until it stops. Asked again after the answer, which a worker that slept
    /// may have had in its hands for long.
    async fn ask_as_member(&self) -> Answer<()> {
        let membership = || {
            let group = self.view.group();
            if group.member && !group.draining { Ok(()) } else { Err(HerderError::RebalanceExpected) }
        };
        membership()?;
        self.ask_leader().await?;
        membership()
    }

    async fn ask_leader(&self) -> Answer<()> {
        let group = self.view.group();
        if group.leads {
            let (reply, answer) = oneshot::channel();
            return self.ask(Command::Fence { name: self.connector.clone(), reply }, answer).await;
        }
        let Some(url) = group.leader_url.clone() else { return Err(HerderError::NotLeader { leader_url: None }) };
        let snapshot = self.view.snapshot();
        let key = snapshot.session_key().filter(|_| group.is_signed());
        let key = key.map(|key| SigningKey { algorithm: &self.signature_algorithm, key: &key.key });
        self.rest.fence(&url, &self.connector, key).await
    }

    async fn ask(&self, command: Command, answer: oneshot::Receiver<Answer<()>>) -> Answer<()> {
        let gone = || HerderError::Unavailable("Worker is shutting down".to_owned());
        self.commands.send(command).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Why a task of an earlier generation is not to start; in Java's words.
pub(super) fn old(connector: &str, task: u32) -> String {
    format!(
        "Cannot start source task {connector}-{task} with exactly-once support as the connector has already generated a new set of task configs"
    )
}

/// Whether asking again may help: the leader changes, a key is on its way, a connection broke, brokers are away. Java fails
/// the task where the leader can't read the config topic or reach a coordinator in time.
fn is_passing(error: &HerderError) -> bool {
    match error {
        HerderError::NotLeader { .. } | HerderError::RebalanceExpected | HerderError::Unavailable(_) => true,
        HerderError::Status { code, message } => match code {
            403 | 503 => true,
            409 => !message.contains("task config"),
            // The leader's word, or our own client's for a leader that does not answer.
            500 => !is_refusal(message),
            _ => false,
        },
        HerderError::Internal(message) => !is_refusal(message),
        HerderError::Timeout { .. } => true,
        _ => false,
    }
}

/// Brokers say no, and will until somebody grants it.
fn is_refusal(message: &str) -> bool {
    message.contains("AUTHORIZATION_FAILED")
}

fn words(error: &HerderError) -> String {
    match error {
        HerderError::NotFound(message)
        | HerderError::AlreadyExists(message)
        | HerderError::BadRequest(message)
        | HerderError::Forbidden(message)
        | HerderError::Conflict(message)
        | HerderError::Unavailable(message)
        | HerderError::Internal(message) => message.clone(),
        HerderError::Status { code, message } => format!("{message} (code {code})"),
        HerderError::NotLeader { .. } => "no leader of the group is known".to_owned(),
        HerderError::Elsewhere { url } => format!("the worker at {url} has it"),
        HerderError::RebalanceExpected => "a rebalance is under way".to_owned(),
        HerderError::Timeout { stage } => format!("timed out: {stage}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fencing_is_asked_for_again_when_the_leader_or_its_brokers_were_away() {
        let status = |code, message: &str| HerderError::Status { code, message: message.to_owned() };
        let internal = |message: &str| HerderError::Internal(message.to_owned());
        for passing in [
            internal("Failed to read to end of config topic: it did not succeed within 3000 ms"),
            internal("Failed to perform zombie fencing: transactional id \"g-c-0\" can't be fenced: timed out"),
            status(500, "Failed to read to end of config topic: it did not succeed within 3000 ms"),
            status(500, "IO Error trying to forward REST request: connection refused"),
            status(503, "Worker is shutting down"),
        ] {
            assert!(is_passing(&passing), "{passing:?}");
        }
        for lasting in [
            status(409, "Failed to complete zombie fencing because a new set of task configs was generated"),
            status(500, "transactional id \"g-c-0\" can't be fenced: TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53)"),
            internal("transactional id \"g-c-0\" can't be fenced: TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53)"),
            status(404, "Connector c not found"),
        ] {
            assert!(!is_passing(&lasting), "{lasting:?}");
        }
    }
}
