//! Changing the stored offsets of a stopped connector (KIP-875): the leader fences old tasks first where it delivers exactly
//! once, and looks again whether the connector is still stopped.

use super::command::Reply;
use super::errors::{not_leader, unknown_connector};
use super::fence::Waiter;
use super::job::Done;
use super::tick::{Tick, answer};
use crate::offset_json::{offset_from_json, partition_from_json};
use oncewire_rest::HerderError;
use oncewire_rest::herder::Answer;
use oncewire_rest::model::{ConnectorType, OffsetEntry};
use oncewire_topics::TargetState;
use oncewire_worker::config::worker::ExactlyOnceSource;
use oncewire_worker::worker::{AlterError, OffsetChange};

/// A change that waits for its turn.
#[derive(Debug)]
pub(super) struct OffsetsJob {
    connector: String,
    entries: Option<Vec<OffsetEntry>>,
    pub(super) reply: Reply<String>,
}

impl Tick {
    /// `entries`: the new offsets; `None` resets all.
    pub(super) async fn change_offsets(
        &mut self,
        connector: String,
        entries: Option<Vec<OffsetEntry>>,
        reply: Reply<String>,
    ) {
        if !self.leads() {
            return answer(reply, Err(not_leader(&self.parts.view)));
        }
        let read = self.parts.view.configs.refresh(self.parts.config.sync_timeout).await;
        if let Err(error) = read {
            let problem = format!("Failed to read to end of config topic: {error}");
            return answer(reply, Err(HerderError::Internal(problem)));
        }
        if let Err(error) = self.may_change_offsets(&connector) {
            return answer(reply, Err(error));
        }
        let job = OffsetsJob { connector, entries, reply };
        if self.parts.config.exactly_once == ExactlyOnceSource::Enabled {
            self.fence(job.connector.clone(), Waiter::Offsets(job)).await;
        } else {
            self.go_on_with_offsets(job);
        }
    }

    fn may_change_offsets(&self, connector: &str) -> Answer<()> {
        let snapshot = self.parts.view.snapshot();
        let Some(config) = snapshot.config(connector) else { return Err(unknown_connector(connector)) };
        let stopped = snapshot.target_state(connector) == Some(TargetState::Stopped);
        if !stopped || snapshot.task_count(connector) != 0 {
            return Err(HerderError::BadRequest(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
                    .replace("{name}", connector),
            ));
        }
        if crate::kinds::kind(&self.parts.registry, config) != ConnectorType::Source {
            return Err(HerderError::BadRequest(format!(
                "Connector {connector} is not of a class that this worker has"
            )));
        }
        Ok(())
    }

    /// Old tasks are fenced, where that is asked for.
    pub(super) fn go_on_with_offsets(&mut self, job: OffsetsJob) {
        let OffsetsJob { connector, entries, reply } = job;
        if let Err(error) = self.may_change_offsets(&connector) {
            return answer(reply, Err(error));
        }
        let snapshot = self.parts.view.snapshot();
        let Some(config) = snapshot.config(&connector) else {
            return answer(reply, Err(unknown_connector(&connector)));
        };
        let config = match crate::kinds::resolved(&self.parts.providers, &connector, config) {
            Ok(config) => config,
            Err(problem) => return answer(reply, Err(HerderError::Internal(problem.to_string()))),
        };
        let (change, verb) = match entries {
            None => (OffsetChange::Reset, "reset"),
            Some(entries) => match change(&entries) {
                Ok(change) => (change, "altered"),
                Err(error) => return answer(reply, Err(error)),
            },
        };
        let worker = self.parts.worker.clone();
        self.jobs.spawn(async move {
            let changed = worker.alter_offsets(&connector, &config, change).await;
            let answer = changed.map(|checked| message(verb, checked)).map_err(|error| match error {
                AlterError::Illegal(problem) => HerderError::BadRequest(problem),
                other => HerderError::Internal(other.to_string()),
            });
            Done::OffsetsChanged { reply, answer }
        });
    }
}

fn change(entries: &[OffsetEntry]) -> Answer<OffsetChange> {
    let mut offsets = Vec::with_capacity(entries.len());
    for entry in entries {
        let partition = partition_from_json(entry.partition.as_ref()).map_err(HerderError::BadRequest)?;
        let offset = entry.offset.as_ref().map(offset_from_json).transpose().map_err(HerderError::BadRequest)?;
        offsets.push((partition, offset));
    }
    Ok(OffsetChange::Alter(offsets))
}

/// Java's words.
fn message(verb: &str, checked: bool) -> String {
    if checked {
        format!("The offsets for this connector have been {verb} successfully")
    } else {
        format!(
            "The Connect framework-managed offsets for this connector have been {verb} successfully. However, if this connector manages offsets externally, they will need to be manually {verb} in the system that the connector uses."
        )
    }
}
