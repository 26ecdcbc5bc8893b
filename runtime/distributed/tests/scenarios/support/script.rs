//! The scripted source: its tasks count, each in its own source partition, and its properties say what goes wrong.
//!
//! Task `k` writes `k/1`, `k/2`, … to the topic, with `{"task": "k"}` as source partition and `{"n": …}` as offset, so that a gap or
//! a duplicate shows in the topic alone. What the connector and its tasks saw is in the test's [`Stage`].

use async_trait::async_trait;
use oncewire_api::config_def::{CheckedValue, ConfigKey, ConfigType, Importance, NullableProperties};
use oncewire_api::plugin::{Plugin, PluginFactory};
use oncewire_api::{
    ConfigDef, ConnectorContext, ConnectorError, ConnectorTransactionBoundaries, ExactlyOnceSupport, OffsetValue,
    Properties, Schema, SourceConnector, SourceOffset, SourcePartition, SourceRecord, SourceTask, TaskContext,
    TaskError, Value,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

pub const CLASS: &str = "test.ScriptedSourceConnector";

/// What one test's connectors share with it, whatever worker they run on.
pub struct Stage {
    id: String,
    events: Mutex<Vec<String>>,
    /// How many of the next calls of `task_configs` fail.
    pub failing_configs: AtomicU32,
    /// Properties that win over the connector's own: what the source itself is like.
    pub source: Mutex<Properties>,
}

static STAGES: LazyLock<Mutex<HashMap<String, Weak<Stage>>>> = LazyLock::new(Mutex::default);

impl Stage {
    pub fn new() -> Arc<Self> {
        let id = uuid::Uuid::new_v4().to_string();
        let stage = Self {
            id: id.clone(),
            events: Mutex::default(),
            failing_configs: AtomicU32::new(0),
            source: Mutex::default(),
        };
        let stage = Arc::new(stage);
        STAGES.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::downgrade(&stage));
        stage
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Makes the source like this from now on.
    pub fn set(&self, key: &str, value: &str) {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), value.to_owned());
    }

    /// What was seen so far, oldest first.
    pub fn events(&self) -> Vec<String> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many events begin so.
    pub fn count(&self, start: &str) -> usize {
        self.events().iter().filter(|event| event.starts_with(start)).count()
    }

    fn note(&self, event: String) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

/// Properties over which the source's own win.
#[derive(Clone, Default)]
struct Script {
    properties: Properties,
    stage: Option<Arc<Stage>>,
}

impl Script {
    fn new(properties: &Properties) -> Self {
        let id = properties.get("script.id").map(String::as_str).unwrap_or_default();
        let stages = STAGES.lock().unwrap_or_else(PoisonError::into_inner);
        Self { properties: properties.clone(), stage: stages.get(id).and_then(Weak::upgrade) }
    }

    fn get(&self, key: &str) -> String {
        let source = self
            .stage
            .as_ref()
            .and_then(|stage| stage.source.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned());
        source.or_else(|| self.properties.get(key).cloned()).unwrap_or_default()
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.get(key).parse().unwrap_or(default)
    }

    /// An error's words; they quote the secret, if there is one, as careless connectors do.
    fn words(&self, words: &str) -> String {
        match self.properties.get("secret") {
            Some(secret) => format!("{words}: login as scott:{secret}@host"),
            None => words.to_owned(),
        }
    }

    fn note(&self, event: impl Into<String>) {
        if let Some(stage) = &self.stage {
            stage.note(event.into());
        }
    }
}

/// Makes task configurations of its own one.
#[derive(Default)]
struct ScriptedConnector(Script);

#[async_trait]
impl SourceConnector for ScriptedConnector {
    fn version(&self) -> &str {
        "1"
    }

    fn config_def(&self) -> ConfigDef {
        let text = |key, doc| ConfigKey::optional(key, ConfigType::String, Importance::Low, doc);
        ConfigDef::new()
            .define(ConfigKey::required("script.id", ConfigType::String, Importance::High, "which stage"))
            .define(text("topic", "the topic, or topics by task with a comma between"))
            .define(text("tasks", "how many tasks; tasks.max is not looked at"))
            .define(text("records", "how many records each task writes"))
            .define(text("batch", "records of a poll"))
            .define(text("commit.batches", "asks to commit after each so many batches; 0: never"))
            .define(text("on.validate", "fail or panic"))
            .define(text("on.start", "fail, panic or hang"))
            .define(text("on.configs", "fail or tell"))
            .define(text("on.task.start", "fail"))
            .define(text("on.poll", "fail, retry, panic, hang or idle"))
            .define(text("on.alter", "refuse, panic or yes"))
            .define(text("on.commit", "fail"))
            .define(text("support", "yes, no or silent"))
            .define(text("boundaries", "yes, no or silent"))
            .define(ConfigKey::optional("secret", ConfigType::Password, Importance::Low, "a secret"))
    }

    async fn start(&mut self, _context: ConnectorContext, properties: &Properties) -> Result<(), ConnectorError> {
        self.0 = Script::new(properties);
        self.0.note("connector start");
        match self.0.get("on.start").as_str() {
            "fail" => Err(ConnectorError::new(self.0.words("the source says no"))),
            "panic" => panic!("{}", self.0.words("the connector says no")),
            "hang" => std::future::pending().await,
            _ => Ok(()),
        }
    }

    async fn task_configs(&mut self, _tasks_max: usize) -> Result<Vec<Properties>, ConnectorError> {
        self.0.note("task configs");
        let failing = self.0.stage.as_ref().map(|stage| &stage.failing_configs);
        let fails = |failing: &AtomicU32| {
            failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        };
        let on_configs = self.0.get("on.configs");
        if failing.is_some_and(fails) || on_configs == "fail" {
            return Err(ConnectorError::new(self.0.words("the source is away")));
        }
        let of_task = |task: u64| {
            let mut properties = self.0.properties.clone();
            properties.insert("script.task".to_owned(), task.to_string());
            if on_configs == "tell" {
                properties.insert("url".to_owned(), self.0.words("db"));
            }
            properties
        };
        Ok((0..self.0.number("tasks", 1)).map(of_task).collect())
    }

    async fn validate(&mut self, properties: &NullableProperties) -> Vec<CheckedValue> {
        let mut values = self.config_def().check(properties);
        let given = properties.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        let script = Script::new(&given.collect());
        match script.get("on.validate").as_str() {
            "fail" => values[0].errors.push(script.words("nobody is there")),
            "panic" => panic!("{}", script.words("no validation")),
            _ => {}
        }
        values
    }

    async fn alter_offsets(
        &mut self,
        properties: &Properties,
        offsets: &[(SourcePartition, Option<SourceOffset>)],
    ) -> Result<bool, ConnectorError> {
        let script = Script::new(properties);
        script.note("alter offsets");
        match script.get("on.alter").as_str() {
            "refuse" => Err(ConnectorError::new(script.words(&format!("{} offsets refused", offsets.len())))),
            "panic" => panic!("{}", script.words("no offsets")),
            answer => Ok(answer == "yes"),
        }
    }

    async fn stop(&mut self) {
        self.0.note("connector stop");
    }

    fn task(&self) -> Box<dyn SourceTask> {
        Box::<ScriptedTask>::default()
    }

    fn exactly_once_support(&self, properties: &Properties) -> Option<ExactlyOnceSupport> {
        match properties.get("support").map(String::as_str) {
            Some("no") => Some(ExactlyOnceSupport::Unsupported),
            Some("silent") => None,
            _ => Some(ExactlyOnceSupport::Supported),
        }
    }

    fn can_define_transaction_boundaries(&self, properties: &Properties) -> Option<ConnectorTransactionBoundaries> {
        match properties.get("boundaries").map(String::as_str) {
            Some("no") => Some(ConnectorTransactionBoundaries::Unsupported),
            Some("silent") => None,
            _ => Some(ConnectorTransactionBoundaries::Supported),
        }
    }
}

#[derive(Default)]
struct ScriptedTask {
    script: Script,
    context: Option<TaskContext>,
    task: String,
    sent: u64,
    batches: u64,
}

impl ScriptedTask {
    fn record(&self, number: u64) -> SourceRecord {
        let partition = SourcePartition::single("task", OffsetValue::from(self.task.as_str()));
        let offset = SourceOffset::single("n", OffsetValue::Int(i64::try_from(number).unwrap_or(i64::MAX)));
        let topics = self.script.get("topic");
        let topics: Vec<&str> = topics.split(',').collect();
        let place = self.task.parse::<usize>().unwrap_or_default() % topics.len();
        let mut record = SourceRecord::new(partition, Some(offset), topics[place]);
        record.value_schema = Some(Schema::string());
        record.value = Some(Value::from(format!("{}/{number}", self.task).as_str()));
        record
    }

    /// Asks for a commit after every so many batches, where transactions are the connector's.
    fn ask(&mut self, context: &TaskContext) {
        self.batches += 1;
        let every = self.script.number("commit.batches", 0);
        if let Some(transaction) = context.transaction()
            && every > 0
            && self.batches.is_multiple_of(every)
        {
            transaction.commit_transaction();
        }
    }
}

#[async_trait]
impl SourceTask for ScriptedTask {
    async fn start(&mut self, context: TaskContext, properties: &Properties) -> Result<(), TaskError> {
        self.script = Script::new(properties);
        self.task = properties.get("script.task").cloned().unwrap_or_default();
        if self.script.get("on.task.start") == "fail" {
            return Err(TaskError::fatal(self.script.words("the task's source says no")));
        }
        let partition = SourcePartition::single("task", OffsetValue::from(self.task.as_str()));
        let stored = context.offset(&partition).await?;
        let stored = stored.and_then(|offset| offset.get("n")?.as_int()).unwrap_or(0);
        self.sent = u64::try_from(stored).unwrap_or(0);
        self.script.note(format!("task {} start {stored}", self.task));
        self.context = Some(context);
        Ok(())
    }

    async fn poll(&mut self) -> Result<Option<Vec<SourceRecord>>, TaskError> {
        let Some(context) = self.context.clone() else { return Err(TaskError::fatal("not started")) };
        tokio::select! {
            () = context.stop().stopped() => return Ok(None),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
        match self.script.get("on.poll").as_str() {
            "fail" => return Err(TaskError::fatal(self.script.words("the source broke"))),
            "retry" => return Err(TaskError::retriable(self.script.words("the source is busy"))),
            "panic" => panic!("{}", self.script.words("the task broke")),
            "hang" => {
                self.script.note(format!("task {} hangs", self.task));
                std::future::pending::<()>().await;
            }
            "idle" => return Ok(None),
            _ => {}
        }
        let left = self.script.number("records", u64::MAX).saturating_sub(self.sent);
        let count = self.script.number("batch", 3).min(left);
        if count == 0 {
            return Ok(None);
        }
        let records = (self.sent + 1..=self.sent + count).map(|number| self.record(number)).collect();
        self.sent += count;
        self.ask(&context);
        Ok(Some(records))
    }

    async fn commit(&mut self) -> Result<(), TaskError> {
        match self.script.get("on.commit").as_str() {
            "fail" => Err(TaskError::fatal(self.script.words("nothing is acknowledged"))),
            _ => Ok(()),
        }
    }

    async fn stop(&mut self) {
        self.script.note(format!("task {} stop", self.task));
    }
}

/// The connector, for the workers' registry.
pub fn plugin() -> Plugin {
    Plugin {
        class: CLASS,
        version: "1",
        summary: "does what a test says",
        factory: PluginFactory::Source(|| Box::<ScriptedConnector>::default()),
    }
}
