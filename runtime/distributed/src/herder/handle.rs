//! The herder as REST sees it: reads come from the last snapshot, everything else is a command to the loop.

use super::collision::Rivals;
use super::command::{Command, Reply};
use super::connectors::task_ids;
use super::errors::{not_leader, unknown_connector};
use crate::config::DistributedConfig;
use crate::kinds::kind;
use crate::loggers::Loggers;
use crate::status_info::{connector_state, task_state};
use crate::view::{View, now_ms};
use async_trait::async_trait;
use oncewire_api::plugin::{PluginKind, PluginRegistry};
use oncewire_plugins::providers::ConfigProviders;
use oncewire_rest::herder::{Answer, Put, Replace};
use oncewire_rest::model::{
    ConfigMap, ConnectorInfo, ConnectorStateInfo, ConnectorType, DrainStatus, InitialState, LoggerLevel, OffsetEntry,
    PluginInfo, RestartRequest, ServerInfo, Stage, TaskId, TaskInfo, TaskState,
};
use oncewire_rest::sign::{RequestSignature, verify};
use oncewire_rest::{Herder, HerderError, Plugins};
use oncewire_topics::TargetState;
use oncewire_validation::{PluginConfigError, Validator};
use oncewire_worker::config::worker::ExactlyOnceSource;
use oncewire_worker::worker::Worker;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// What the handle needs.
pub struct Handle {
    /// Version and cluster id.
    pub info: ServerInfo,
    /// The configuration.
    pub config: Arc<DistributedConfig>,
    /// Snapshots.
    pub view: View,
    /// Reads offsets.
    pub worker: Worker,
    /// Checks configurations.
    pub validator: Validator,
    /// Resolves `${…}`.
    pub providers: ConfigProviders,
    /// Plug-ins.
    pub registry: PluginRegistry,
    /// Levels.
    pub loggers: Loggers,
    /// Looks for connectors of other groups with the same transactional ids.
    pub rivals: Rivals,
    /// To the loop.
    pub commands: mpsc::Sender<Command>,
}

impl Handle {
    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        let gone = || HerderError::Unavailable("Worker is shutting down".to_owned());
        self.commands.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Refuses what validation finds wrong, with the list of it.
    async fn check(&self, name: &str, config: &ConfigMap) -> Answer<()> {
        let infos = self.validator.validate(config).await.map_err(HerderError::BadRequest)?;
        if let Some(message) = infos.invalid_message() {
            return Err(HerderError::BadRequest(message));
        }
        // An old connector has its ids already; who has them too was told when it came.
        let snapshot = self.view.snapshot();
        let is_new = !snapshot.contains(name);
        if is_new
            && self.config.exactly_once == ExactlyOnceSource::Enabled
            && self.kind(config) == ConnectorType::Source
        {
            // The record of how many tasks were let in outlives a connector.
            self.rivals.check(name, snapshot.task_count_record(name).is_some()).await?;
        }
        Ok(())
    }

    /// Only a leader may go on; whoever asked is sent there.
    fn leader_only(&self) -> Answer<()> {
        if self.view.group().leads { Ok(()) } else { Err(not_leader(&self.view)) }
    }

    /// Checks an internal request, where the group signs them.
    fn verify(&self, signature: Option<&RequestSignature>) -> Answer<()> {
        if !self.view.group().is_signed() {
            return Ok(());
        }
        let snapshot = self.view.snapshot();
        let key = snapshot.session_key().map(|key| key.key.as_slice());
        verify(signature, &self.config.session_keys.verification_algorithms, key)
    }

    fn kind(&self, config: &ConfigMap) -> ConnectorType {
        kind(&self.registry, config)
    }
}

#[async_trait]
impl Herder for Handle {
    fn server_info(&self) -> ServerInfo {
        self.info.clone()
    }

    fn is_ready(&self) -> bool {
        self.view.group().joined
    }

    fn stage(&self) -> Option<Stage> {
        self.view.stage()
    }

    fn masked(&self, text: String) -> String {
        self.providers.secrets().redacted(text)
    }

    async fn ping(&self) -> Answer<()> {
        self.ask(Command::Ping).await?;
        match self.view.group().trouble {
            None => Ok(()),
            Some(trouble) => Err(HerderError::Unavailable(trouble)),
        }
    }

    async fn connectors(&self) -> Answer<Vec<String>> {
        Ok(self.view.snapshot().connectors().map(str::to_owned).collect())
    }

    async fn connector_info(&self, name: &str) -> Answer<ConnectorInfo> {
        let snapshot = self.view.snapshot();
        let config = snapshot.config(name).ok_or_else(|| unknown_connector(name))?;
        let kind = Some(self.kind(config));
        Ok(ConnectorInfo { name: name.to_owned(), config: (**config).clone(), tasks: task_ids(&snapshot, name), kind })
    }

    async fn connector_config(&self, name: &str) -> Answer<ConfigMap> {
        let snapshot = self.view.snapshot();
        snapshot.config(name).map(|config| (**config).clone()).ok_or_else(|| unknown_connector(name))
    }

    async fn put_connector_config(
        &self,
        name: &str,
        config: ConfigMap,
        initial_state: Option<InitialState>,
        replace: Replace,
    ) -> Answer<Put> {
        self.check(name, &config).await?;
        let name = name.to_owned();
        self.ask(|reply| Command::Put { name, config, initial_state, replace, reply }).await
    }

    async fn patch_connector_config(&self, name: &str, patch: ConfigMap) -> Answer<ConnectorInfo> {
        self.leader_only()?;
        let mut config = self.connector_config(name).await?;
        for (key, value) in patch {
            match value {
                None => drop(config.remove(&key)),
                value => drop(config.insert(key, value)),
            }
        }
        self.check(name, &config).await?;
        let (name, replace) = (name.to_owned(), Replace::Allowed);
        let put = self.ask(|reply| Command::Put { name, config, initial_state: None, replace, reply }).await?;
        Ok(put.connector)
    }

    async fn delete_connector(&self, name: &str) -> Answer<()> {
        let name = name.to_owned();
        self.ask(|reply| Command::Delete { name, reply }).await
    }

    async fn connector_status(&self, name: &str) -> Answer<ConnectorStateInfo> {
        let status = self.view.statuses.connector(name);
        let status = status.ok_or_else(|| HerderError::NotFound(format!("No status found for connector {name}")))?;
        let tasks = self.view.statuses.tasks(name).into_iter().map(|(task, status)| task_state(task, &status));
        let snapshot = self.view.snapshot();
        let kind = snapshot.config(name).map_or(ConnectorType::Unknown, |config| self.kind(config));
        let (name, connector) = (name.to_owned(), connector_state(&status));
        Ok(ConnectorStateInfo { name, connector, tasks: tasks.collect(), kind })
    }

    async fn task_status(&self, name: &str, task: i32) -> Answer<TaskState> {
        let status = u32::try_from(task).ok().and_then(|number| self.view.statuses.task(name, number));
        match status {
            Some(status) => Ok(task_state(task.unsigned_abs(), &status)),
            None => Err(HerderError::NotFound(format!("No status found for task {name}-{task}"))),
        }
    }

    async fn tasks(&self, name: &str) -> Answer<Vec<TaskInfo>> {
        let snapshot = self.view.snapshot();
        if !snapshot.contains(name) {
            return Err(unknown_connector(name));
        }
        let tasks = snapshot.tasks(name).into_iter().filter_map(|task| {
            let config = (**snapshot.task_config(name, task)?).clone();
            Some(TaskInfo { id: TaskId { connector: name.to_owned(), task: i32::try_from(task).ok()? }, config })
        });
        Ok(tasks.collect())
    }

    async fn restart_connector(&self, name: &str) -> Answer<()> {
        let name = name.to_owned();
        self.ask(|reply| Command::RestartConnector { name, reply }).await
    }

    async fn restart_connector_and_tasks(&self, request: RestartRequest) -> Answer<ConnectorStateInfo> {
        self.ask(|reply| Command::RestartPlan { request, reply }).await
    }

    async fn restart_task(&self, name: &str, task: i32) -> Answer<()> {
        let Ok(number) = u32::try_from(task) else {
            return Err(HerderError::NotFound(format!("Unknown task: {name}-{task}")));
        };
        let name = name.to_owned();
        self.ask(|reply| Command::RestartTask { name, task: number, reply }).await
    }

    async fn pause_connector(&self, name: &str) -> Answer<()> {
        let name = name.to_owned();
        self.ask(|reply| Command::Target { name, state: TargetState::Paused, reply }).await
    }

    async fn resume_connector(&self, name: &str) -> Answer<()> {
        let name = name.to_owned();
        self.ask(|reply| Command::Target { name, state: TargetState::Started, reply }).await
    }

    async fn stop_connector(&self, name: &str) -> Answer<()> {
        let name = name.to_owned();
        self.ask(|reply| Command::Stop { name, reply }).await
    }

    async fn connector_topics(&self, name: &str) -> Answer<Vec<String>> {
        Ok(self.view.statuses.topics(name).into_keys().collect())
    }

    async fn reset_connector_topics(&self, name: &str) -> Answer<()> {
        self.view.statuses.delete_topics(name);
        Ok(())
    }

    async fn connector_offsets(&self, name: &str) -> Answer<Vec<OffsetEntry>> {
        let config = self.connector_config(name).await?;
        if self.kind(&config) != ConnectorType::Source {
            return Err(HerderError::BadRequest(format!("Connector {name} is not of a class that this worker has")));
        }
        let config = crate::kinds::resolved(&self.providers, name, &config)
            .map_err(|problem| HerderError::Internal(problem.to_string()))?;
        let offsets = self.worker.offsets(name, &config).await.map_err(HerderError::Internal)?;
        let entries = offsets.iter().map(|(partition, offset)| crate::offset_json::entry(partition, offset.as_ref()));
        entries.collect::<Result<_, _>>().map_err(HerderError::Internal)
    }

    async fn alter_connector_offsets(&self, name: &str, offsets: Vec<OffsetEntry>) -> Answer<String> {
        let name = name.to_owned();
        self.ask(|reply| Command::Offsets { name, entries: Some(offsets), reply }).await
    }

    async fn reset_connector_offsets(&self, name: &str) -> Answer<String> {
        let name = name.to_owned();
        self.ask(|reply| Command::Offsets { name, entries: None, reply }).await
    }

    async fn validate(&self, config: ConfigMap) -> Answer<Value> {
        let infos = self.validator.validate(&config).await.map_err(HerderError::BadRequest)?;
        Ok(infos.to_json())
    }

    async fn plugins(&self, which: Plugins) -> Answer<Vec<PluginInfo>> {
        let plugins = self.registry.plugins().iter();
        let wanted = plugins.filter(|plugin| which == Plugins::All || plugin.kind() == PluginKind::Source);
        let infos = wanted.map(|plugin| PluginInfo {
            class: plugin.class.to_owned(),
            kind: plugin.kind().name().to_owned(),
            version: Some(plugin.version.to_owned()).filter(|version| !version.is_empty()),
        });
        Ok(infos.collect())
    }

    async fn plugin_config(&self, plugin: &str, version: Option<&str>) -> Answer<Vec<Value>> {
        self.validator.plugin_config(plugin, version).map_err(|error| match error {
            PluginConfigError::Unknown(message) => HerderError::NotFound(message),
            PluginConfigError::Invalid(message) => HerderError::BadRequest(message),
        })
    }

    async fn loggers(&self) -> Answer<Vec<(String, LoggerLevel)>> {
        let all = self.loggers.all().into_iter();
        Ok(all.map(|(name, level)| (name, shown(level))).collect())
    }

    async fn logger(&self, name: &str) -> Answer<Option<LoggerLevel>> {
        Ok(self.loggers.level(name).map(shown))
    }

    async fn set_logger_level(&self, namespace: &str, level: &str) -> Answer<Vec<String>> {
        let set = self.loggers.set(namespace, level, now_ms());
        set.ok_or_else(|| HerderError::BadRequest("too many loggers have a level of their own".to_owned()))
    }

    async fn set_cluster_logger_level(&self, namespace: &str, level: &str) -> Answer<()> {
        let (namespace, level) = (namespace.to_owned(), level.to_owned());
        self.ask(|reply| Command::ClusterLogger { namespace, level, reply }).await
    }

    async fn put_task_configs(
        &self,
        name: &str,
        configs: Vec<ConfigMap>,
        signature: Option<RequestSignature>,
    ) -> Answer<()> {
        self.verify(signature.as_ref())?;
        let name = name.to_owned();
        self.ask(|reply| Command::TaskConfigs { name, configs, reply }).await
    }

    async fn fence_zombies(&self, name: &str, signature: Option<RequestSignature>) -> Answer<()> {
        self.verify(signature.as_ref())?;
        let name = name.to_owned();
        self.ask(|reply| Command::Fence { name, reply }).await
    }

    async fn drain(&self) -> Answer<DrainStatus> {
        self.ask(Command::Drain).await
    }
}

fn shown(level: crate::loggers::Level) -> LoggerLevel {
    LoggerLevel { level: Some(level.level), last_modified: level.modified_ms }
}
