//! Creating, changing, stopping and deleting connectors: what the leader writes when it is asked to.

use super::errors::{not_leader, unknown_connector};
use super::tick::Tick;
use oncewire_rest::HerderError;
use oncewire_rest::herder::{Answer, Put, Replace};
use oncewire_rest::model::{ConfigMap, ConnectorInfo, InitialState, TaskId};
use oncewire_topics::{ConfigSnapshot, TargetState};
use oncewire_worker::config::distributed::offsets_topic_name;

/// Whether a connector of an exactly-once cluster delivers exactly once.
pub(super) const EXACTLY_ONCE_SOURCE: &str = "exactly.once.source";

/// Own offsets topic of a connector.
const OFFSETS_TOPIC: &str = "offsets.storage.topic";

impl Tick {
    pub(super) async fn put_connector(
        &mut self,
        name: String,
        mut config: ConfigMap,
        initial_state: Option<InitialState>,
        replace: Replace,
    ) -> Answer<Put> {
        if !self.leads() {
            return Err(not_leader(&self.parts.view));
        }
        let snapshot = self.parts.view.snapshot();
        let created = !snapshot.contains(&name);
        if !created && replace == Replace::Forbidden {
            return Err(HerderError::AlreadyExists(format!("Connector {name} already exists")));
        }
        refuse_silent_return(snapshot.config(&name).map(|known| &**known), &config)?;
        if let Some(topic) = self.own_offsets_topic(&name, snapshot.config(&name).map(|known| &**known)) {
            // From now on it is the connector's own property, so that every worker, whatever its settings, agrees.
            config.entry(OFFSETS_TOPIC.to_owned()).or_insert(Some(topic));
        }
        let target = initial_state.map(|state| match state {
            InitialState::Running => TargetState::Started,
            InitialState::Paused => TargetState::Paused,
            InitialState::Stopped => TargetState::Stopped,
        });
        let written = self.parts.view.configs.put_connector(&name, &config, target).await;
        self.written(written)?;
        let kind = Some(crate::kinds::kind(&self.parts.registry, &config));
        let tasks = task_ids(&snapshot, &name);
        Ok(Put { created, connector: ConnectorInfo { name, config, tasks, kind } })
    }

    /// `offsets.storage.topic.template`, filled in for a new connector. One that is there already keeps what it has: who puts the
    /// configuration that was once created has not heard of the property, and its tasks must not look elsewhere for their offsets.
    fn own_offsets_topic(&self, connector: &str, known: Option<&ConfigMap>) -> Option<String> {
        let template = self.parts.worker.config().offsets_topic_template.as_ref()?;
        if let Some(known) = known {
            return known.get(OFFSETS_TOPIC).cloned().flatten();
        }
        offsets_topic_name(template, connector)
            .inspect_err(|problem| tracing::warn!(connector, "no offsets topic of its own: {problem}"))
            .ok()
    }

    pub(super) async fn delete_connector(&mut self, name: &str) -> Answer<()> {
        if !self.leads() {
            return Err(not_leader(&self.parts.view));
        }
        let before = self.parts.view.snapshot();
        if !before.contains(name) {
            return Err(unknown_connector(name));
        }
        let written = self.parts.view.configs.remove_connector(name).await;
        self.written(written)?;
        self.leave_behind(&before, name);
        Ok(())
    }

    /// Pauses or resumes; any worker may.
    pub(super) async fn put_target(&mut self, name: &str, state: TargetState) -> Answer<()> {
        if !self.parts.view.snapshot().contains(name) {
            return Err(HerderError::NotFound(format!("Unknown connector {name}")));
        }
        let written = self.parts.view.configs.put_target_state(name, state).await;
        self.written(written)
    }

    /// No tasks first, then the state: a worker that sees the state alone would still have tasks to run.
    pub(super) async fn stop_connector(&mut self, name: &str) -> Answer<()> {
        if !self.leads() {
            return Err(not_leader(&self.parts.view));
        }
        let before = self.parts.view.snapshot();
        if !before.contains(name) {
            return Err(HerderError::NotFound(format!("Unknown connector {name}")));
        }
        let written = self.parts.view.configs.put_task_configs(name, &[]).await;
        self.written(written)?;
        self.leave_behind(&before, name);
        let written = self.parts.view.configs.put_target_state(name, TargetState::Stopped).await;
        self.written(written)?;
        let read = self.parts.view.configs.refresh(self.parts.config.sync_timeout).await;
        self.written(read)
    }
}

/// A connector that was switched off exactly-once may have zombies that write without transactions. Coming back has to be said,
/// so that its tasks keep them out (docs/decisions/0007).
fn refuse_silent_return(known: Option<&ConfigMap>, config: &ConfigMap) -> Answer<()> {
    let setting = |config: &ConfigMap| config.get(EXACTLY_ONCE_SOURCE).cloned().flatten();
    let was_off = known.and_then(setting).is_some_and(|value| value.trim().eq_ignore_ascii_case("disabled"));
    if was_off && setting(config).is_none() {
        return Err(HerderError::BadRequest(format!(
            "'{EXACTLY_ONCE_SOURCE}' was disabled; set it to enabled, so that what was written without transactions is fenced, and remove it later"
        )));
    }
    Ok(())
}

/// The ids of a connector's tasks, in order.
pub(super) fn task_ids(snapshot: &ConfigSnapshot, connector: &str) -> Vec<TaskId> {
    let tasks = snapshot.tasks(connector).into_iter().filter_map(|task| i32::try_from(task).ok());
    tasks.map(|task| TaskId { connector: connector.to_owned(), task }).collect()
}
