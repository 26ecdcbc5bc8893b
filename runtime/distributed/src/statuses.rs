//! What happens to connectors and tasks here, written to the status topic under this worker's id and the group's generation.
//!
//! A state that says "not here any more" (UNASSIGNED, FAILED) is a safe write: it never covers the status of a newer owner.
//! Resolved secrets are masked in traces: a connector's error may quote its configuration.

use crate::view::View;
use oncewire_api::plugin::{PluginKind, PluginRegistry};
use oncewire_plugins::providers::Secrets;
use oncewire_topics::Status;
use oncewire_worker::worker::{State, Statuses};

/// See the module.
#[derive(Clone)]
pub struct Told {
    view: View,
    worker_id: String,
    registry: PluginRegistry,
    secrets: Secrets,
    topic_tracking: bool,
}

impl Told {
    /// For this worker.
    pub fn new(
        view: View,
        worker_id: String,
        registry: PluginRegistry,
        secrets: Secrets,
        topic_tracking: bool,
    ) -> Self {
        Self { view, worker_id, registry, secrets, topic_tracking }
    }

    fn status(&self, connector: &str, state: State, trace: Option<String>) -> Status {
        Status {
            state: written(state),
            trace: trace.map(|trace| self.secrets.redacted(trace)),
            worker_id: self.worker_id.clone(),
            generation: self.view.group().generation,
            version: self.version(connector),
        }
    }

    fn version(&self, connector: &str) -> Option<String> {
        let snapshot = self.view.snapshot();
        let class = snapshot.config(connector)?.get("connector.class").cloned().flatten()?;
        let plugin = self.registry.find(PluginKind::Source, &class).ok()?;
        Some(plugin.version.to_owned())
    }
}

impl Statuses for Told {
    fn connector(&self, name: &str, state: State, trace: Option<String>) {
        let status = self.status(name, state, trace);
        match state {
            State::Failed | State::Unassigned => self.view.statuses.put_connector_safe(name, &status),
            _ => self.view.statuses.put_connector(name, &status),
        }
    }

    fn task(&self, connector: &str, task: u32, state: State, trace: Option<String>) {
        let status = self.status(connector, state, trace);
        match state {
            State::Failed | State::Unassigned => self.view.statuses.put_task_safe(connector, task, &status),
            _ => self.view.statuses.put_task(connector, task, &status),
        }
    }

    fn topic(&self, connector: &str, task: u32, topic: &str) {
        if self.topic_tracking {
            self.view.statuses.put_topic(connector, task, topic);
        }
    }
}

fn written(state: State) -> oncewire_topics::State {
    match state {
        State::Unassigned => oncewire_topics::State::Unassigned,
        State::Running => oncewire_topics::State::Running,
        State::Paused => oncewire_topics::State::Paused,
        State::Failed => oncewire_topics::State::Failed,
        State::Restarting => oncewire_topics::State::Restarting,
        State::Stopped => oncewire_topics::State::Stopped,
    }
}
