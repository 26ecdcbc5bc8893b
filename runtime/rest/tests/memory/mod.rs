//! A herder in memory that behaves as a Java worker of one, with `FileStreamSource` and nothing else, whose every change is done at once.
//!
//! Just enough for the recorded answers: validation knows a handful of keys, and its texts are not Java's.

mod loggers;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use loggers::Loggers;
use oncewire_rest::model::{
    ConfigMap, ConnectorInfo, ConnectorState, ConnectorStateInfo, ConnectorType, DrainState, DrainStatus, InitialState,
    LoggerLevel, OffsetEntry, PluginInfo, RestartRequest, ServerInfo, Stage, TaskId, TaskInfo, TaskState,
};
use oncewire_rest::sign::{RequestSignature, verify};
use oncewire_rest::{Answer, Herder, HerderError, Plugins, Put, Replace};
use serde_json::{Value, json};

const CLASS: &str = "org.apache.kafka.connect.file.FileStreamSourceConnector";
/// The key that the tests sign with.
pub(crate) const KEY: &[u8] = b"the session key";

#[derive(Clone)]
struct Connector {
    config: ConfigMap,
    state: InitialState,
    tasks: usize,
    offsets: Vec<OffsetEntry>,
    topics: Vec<String>,
}

/// What the herder masks.
pub(crate) const SECRET: &str = "hunter2";

/// The herder.
pub(crate) struct MemoryHerder {
    worker_id: String,
    leader_url: Option<String>,
    connectors: Mutex<BTreeMap<String, Connector>>,
    loggers: Mutex<Loggers>,
}

impl MemoryHerder {
    /// `worker_id` is `host:port`.
    pub(crate) fn new(worker_id: &str) -> Self {
        let loggers = Mutex::new(Loggers::new("INFO"));
        MemoryHerder { worker_id: worker_id.to_owned(), leader_url: None, connectors: Mutex::default(), loggers }
    }

    /// One that leaves changes to a leader.
    #[allow(dead_code, reason = "not every test has two workers")]
    pub(crate) fn following(worker_id: &str, leader_url: &str) -> Self {
        MemoryHerder { leader_url: Some(leader_url.to_owned()), ..Self::new(worker_id) }
    }

    fn must_lead(&self) -> Answer<()> {
        match &self.leader_url {
            Some(url) => Err(HerderError::NotLeader { leader_url: Some(url.clone()) }),
            None => Ok(()),
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Connector>> {
        self.connectors.lock().expect("no test panics while it holds the lock")
    }

    fn with<T>(&self, name: &str, unknown: String, act: impl FnOnce(&mut Connector) -> T) -> Answer<T> {
        self.all().get_mut(name).map(act).ok_or(HerderError::NotFound(unknown))
    }

    fn find(&self, name: &str) -> Answer<Connector> {
        self.with(name, format!("Connector {name} not found"), |connector| connector.clone())
    }

    fn set_state(&self, name: &str, state: InitialState) -> Answer<()> {
        self.with(name, format!("Unknown connector {name}"), |connector| {
            connector.state = state;
            match state {
                InitialState::Running => connector.start(),
                InitialState::Paused => {}
                InitialState::Stopped => connector.tasks = 0,
            }
        })
    }

    fn status(&self, name: &str, connector: &Connector) -> ConnectorStateInfo {
        let state = state_name(connector.state).to_owned();
        let version = Some("4.3.1".to_owned());
        let task = |id: usize| TaskState {
            id: i32::try_from(id).expect("few tasks"),
            state: if connector.fails() { "FAILED".to_owned() } else { state.clone() },
            worker_id: self.worker_id.clone(),
            trace: connector.fails().then(|| connector.trace()),
            version: version.clone().filter(|_| !connector.fails()),
        };
        ConnectorStateInfo {
            name: name.to_owned(),
            tasks: (0..connector.tasks).map(task).collect(),
            connector: ConnectorState {
                state: state.clone(),
                worker_id: self.worker_id.clone(),
                trace: None,
                version: version.clone(),
            },
            kind: ConnectorType::Source,
        }
    }

    fn must_be_stopped(&self, name: &str) -> Answer<()> {
        if self.find(name)?.state == InitialState::Stopped {
            return Ok(());
        }
        Err(HerderError::BadRequest(format!(
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified connector by \
             issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
        )))
    }
}

impl Connector {
    fn start(&mut self) {
        self.tasks = 1;
        if !self.fails() {
            let file = self.config.get("file").cloned().flatten().unwrap_or_default();
            let object = |value: Value| value.as_object().cloned();
            let entry = OffsetEntry {
                partition: object(json!({ "filename": file })),
                offset: object(json!({ "position": 8 })),
            };
            self.offsets = vec![entry];
            self.topics = self.config.get("topic").cloned().flatten().into_iter().collect();
        }
    }

    fn fails(&self) -> bool {
        self.config.get("producer.override.acks").is_some_and(|acks| acks.as_deref() == Some("nonsense"))
    }

    fn trace(&self) -> String {
        match self.config.get("file") {
            Some(Some(file)) if file == SECRET => format!("it failed with {file}"),
            _ => "it failed".to_owned(),
        }
    }

    fn info(&self, name: &str) -> ConnectorInfo {
        let task = |task: usize| TaskId { connector: name.to_owned(), task: i32::try_from(task).expect("few tasks") };
        ConnectorInfo {
            name: name.to_owned(),
            config: self.config.clone(),
            tasks: (0..self.tasks).map(task).collect(),
            kind: Some(ConnectorType::Source),
        }
    }
}

fn state_name(state: InitialState) -> &'static str {
    match state {
        InitialState::Running => "RUNNING",
        InitialState::Paused => "PAUSED",
        InitialState::Stopped => "STOPPED",
    }
}

fn check(config: &ConfigMap) -> Answer<()> {
    let value = |key: &str| config.get(key).cloned().flatten();
    let refused = |text: String| Err(HerderError::BadRequest(text));
    let Some(class) = value("connector.class") else { return refused("it contains no connector type".to_owned()) };
    if class != CLASS {
        return refused(format!("Failed to find any class that implements Connector and which name matches {class}"));
    }
    let number = |key: &str| value(key).is_none_or(|text| text.parse::<u32>().is_ok_and(|number| number > 0));
    let one_of = |key: &str, known: &[&str]| value(key).is_none_or(|text| known.contains(&text.as_str()));
    let good = value("topic").is_some_and(|topic| !topic.is_empty())
        && value("name").is_some_and(|name| !name.trim().is_empty() && !name.chars().any(char::is_control))
        && config.values().all(Option::is_some)
        && number("tasks.max")
        && number("batch.size")
        && one_of("transaction.boundary", &["poll", "interval"])
        && one_of("exactly.once.support", &["requested", "required"])
        && one_of("errors.tolerance", &["none", "all"])
        && one_of("value.converter", &[])
        && one_of("config.action.reload", &["none", "restart"]);
    if good { Ok(()) } else { refused("Connector configuration is invalid".to_owned()) }
}

#[async_trait]
impl Herder for MemoryHerder {
    fn server_info(&self) -> ServerInfo {
        let text = |text: &str| text.to_owned();
        ServerInfo { version: text("0"), commit: text("0"), kafka_cluster_id: text("b25jZXdpcmUtdGVzdHMtMQ") }
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn stage(&self) -> Option<Stage> {
        None
    }

    fn masked(&self, text: String) -> String {
        text.replace(SECRET, "[hidden]")
    }

    async fn ping(&self) -> Answer<()> {
        Ok(())
    }

    async fn connectors(&self) -> Answer<Vec<String>> {
        Ok(self.all().keys().cloned().collect())
    }

    async fn connector_info(&self, name: &str) -> Answer<ConnectorInfo> {
        Ok(self.find(name)?.info(name))
    }

    async fn connector_config(&self, name: &str) -> Answer<ConfigMap> {
        Ok(self.find(name)?.config)
    }

    async fn put_connector_config(
        &self,
        name: &str,
        config: ConfigMap,
        initial: Option<InitialState>,
        replace: Replace,
    ) -> Answer<Put> {
        self.must_lead()?;
        check(&config)?;
        let mut all = self.all();
        if let Some(known) = all.get_mut(name) {
            if replace == Replace::Forbidden {
                return Err(HerderError::AlreadyExists(format!("Connector {name} already exists")));
            }
            known.config = config;
            return Ok(Put { created: false, connector: known.info(name) });
        }
        let state = initial.unwrap_or(InitialState::Running);
        let mut new = Connector { config, state, tasks: 0, offsets: Vec::new(), topics: Vec::new() };
        let connector = new.info(name);
        if state == InitialState::Running {
            new.start();
        }
        all.insert(name.to_owned(), new);
        Ok(Put { created: true, connector })
    }

    async fn patch_connector_config(&self, name: &str, patch: ConfigMap) -> Answer<ConnectorInfo> {
        let mut config = self.find(name)?.config;
        for (key, value) in patch {
            match value {
                Some(value) => config.insert(key, Some(value)),
                None => config.remove(&key),
            };
        }
        Ok(self.put_connector_config(name, config, None, Replace::Allowed).await?.connector)
    }

    async fn delete_connector(&self, name: &str) -> Answer<()> {
        self.must_lead()?;
        self.find(name)?;
        self.all().remove(name);
        Ok(())
    }

    async fn connector_status(&self, name: &str) -> Answer<ConnectorStateInfo> {
        let unknown = format!("No status found for connector {name}");
        let connector = self.with(name, unknown, |connector| connector.clone())?;
        Ok(self.status(name, &connector))
    }

    async fn task_status(&self, name: &str, task: i32) -> Answer<TaskState> {
        let unknown = || HerderError::NotFound(format!("No status found for task {name}-{task}"));
        let status = self.connector_status(name).await.map_err(|_| unknown())?;
        status.tasks.into_iter().find(|status| status.id == task).ok_or_else(unknown)
    }

    async fn tasks(&self, name: &str) -> Answer<Vec<TaskInfo>> {
        let connector = self.find(name)?;
        let mut config = connector.config.clone();
        config.insert("task.class".to_owned(), Some("org.apache.kafka.connect.file.FileStreamSourceTask".to_owned()));
        Ok(connector.info(name).tasks.into_iter().map(|id| TaskInfo { id, config: config.clone() }).collect())
    }

    async fn restart_connector(&self, name: &str) -> Answer<()> {
        self.with(name, format!("Unknown connector: {name}"), |_| ())
    }

    async fn restart_connector_and_tasks(&self, request: RestartRequest) -> Answer<ConnectorStateInfo> {
        self.must_lead()?;
        self.restart_connector(&request.connector).await?;
        let mut plan = self.connector_status(&request.connector).await?;
        if !request.only_failed {
            plan.connector.state = "RESTARTING".to_owned();
        }
        for task in &mut plan.tasks {
            if request.include_tasks && (!request.only_failed || task.state == "FAILED") {
                task.state = "RESTARTING".to_owned();
            }
        }
        Ok(plan)
    }

    async fn restart_task(&self, name: &str, task: i32) -> Answer<()> {
        self.restart_connector(name).await?;
        let connector = self.find(name)?;
        if connector.state == InitialState::Stopped {
            return Err(HerderError::NotLeader { leader_url: None });
        }
        if usize::try_from(task).is_ok_and(|task| task < connector.tasks) {
            let failed = Err(HerderError::Internal(format!("Failed to start task: {name}-{task}")));
            return if connector.fails() { failed } else { Ok(()) };
        }
        Err(HerderError::NotFound(format!("Unknown task: {name}-{task}")))
    }

    async fn pause_connector(&self, name: &str) -> Answer<()> {
        self.set_state(name, InitialState::Paused)
    }

    async fn resume_connector(&self, name: &str) -> Answer<()> {
        self.set_state(name, InitialState::Running)
    }

    async fn stop_connector(&self, name: &str) -> Answer<()> {
        self.set_state(name, InitialState::Stopped)
    }

    async fn connector_topics(&self, name: &str) -> Answer<Vec<String>> {
        Ok(self.find(name).map(|connector| connector.topics).unwrap_or_default())
    }

    async fn reset_connector_topics(&self, name: &str) -> Answer<()> {
        if let Some(connector) = self.all().get_mut(name) {
            connector.topics.clear();
        }
        Ok(())
    }

    async fn connector_offsets(&self, name: &str) -> Answer<Vec<OffsetEntry>> {
        Ok(self.find(name)?.offsets)
    }

    async fn alter_connector_offsets(&self, name: &str, offsets: Vec<OffsetEntry>) -> Answer<String> {
        self.must_be_stopped(name)?;
        for OffsetEntry { partition, offset } in offsets {
            let named = partition.unwrap_or_default();
            if let Some(offset) = &offset {
                let position = offset.get("position").and_then(Value::as_i64);
                if position.is_none_or(|position| position < 0) || !named.contains_key("filename") {
                    return Err(HerderError::Internal("the connector does not want it".to_owned()));
                }
            }
            self.with(name, String::new(), |connector| {
                connector.offsets.retain(|known| known.partition.as_ref() != Some(&named));
                if offset.is_some() {
                    connector.offsets.push(OffsetEntry { partition: Some(named), offset });
                }
            })?;
        }
        Ok("The offsets for this connector have been altered successfully".to_owned())
    }

    async fn reset_connector_offsets(&self, name: &str) -> Answer<String> {
        self.must_be_stopped(name)?;
        self.with(name, String::new(), |connector| connector.offsets.clear())?;
        Ok("The offsets for this connector have been reset successfully".to_owned())
    }

    async fn validate(&self, config: ConfigMap) -> Answer<Value> {
        match config.get("connector.class") {
            Some(Some(class)) if class == "Nope" => Err(HerderError::BadRequest("no such class".to_owned())),
            Some(Some(class)) => Ok(json!({ "name": class, "error_count": 0, "groups": [], "configs": [] })),
            _ => Err(HerderError::BadRequest("it contains no connector type".to_owned())),
        }
    }

    async fn plugins(&self, _which: Plugins) -> Answer<Vec<PluginInfo>> {
        Ok(vec![PluginInfo { class: CLASS.to_owned(), kind: "source".to_owned(), version: Some("4.3.1".to_owned()) }])
    }

    async fn plugin_config(&self, plugin: &str, version: Option<&str>) -> Answer<Vec<Value>> {
        if version.is_some_and(|version| version != "4.3.1") {
            return Err(HerderError::BadRequest("no such version".to_owned()));
        }
        if CLASS.contains(plugin) || plugin.ends_with("StringConverter") {
            Ok(Vec::new())
        } else {
            Err(HerderError::NotFound(format!("Unknown plugin {plugin}.")))
        }
    }

    async fn loggers(&self) -> Answer<Vec<(String, LoggerLevel)>> {
        Ok(self.loggers.lock().expect("no panic under the lock").all())
    }

    async fn logger(&self, name: &str) -> Answer<Option<LoggerLevel>> {
        Ok(self.loggers.lock().expect("no panic under the lock").one(name))
    }

    async fn set_logger_level(&self, namespace: &str, level: &str) -> Answer<Vec<String>> {
        Ok(self.loggers.lock().expect("no panic under the lock").set(namespace, level))
    }

    async fn set_cluster_logger_level(&self, namespace: &str, level: &str) -> Answer<()> {
        self.set_logger_level(namespace, level).await.map(|_| ())
    }

    async fn put_task_configs(
        &self,
        name: &str,
        _configs: Vec<ConfigMap>,
        signature: Option<RequestSignature>,
    ) -> Answer<()> {
        verify(signature.as_ref(), &["HmacSHA256".to_owned()], Some(KEY))?;
        self.find(name).map(|_| ())
    }

    async fn fence_zombies(&self, name: &str, signature: Option<RequestSignature>) -> Answer<()> {
        verify(signature.as_ref(), &["HmacSHA256".to_owned()], Some(KEY))?;
        self.find(name).map(|_| ())
    }

    async fn drain(&self) -> Answer<DrainStatus> {
        Ok(DrainStatus { state: DrainState::Drained, connectors: 0, tasks: 0 })
    }
}
