//! The scripted source: each `poll` takes the next step; what happens to the task is written down.

use async_trait::async_trait;
use oncewire_api::config_def::{ConfigKey, ConfigType, Importance};
use oncewire_api::{
    Boundary, ConfigDef, ConnectorContext, ConnectorError, ConnectorTransactionBoundaries, ExactlyOnceSupport,
    OffsetValue, Properties, RecordMetadata, Schema, SourceConnector, SourceOffset, SourcePartition, SourceRecord,
    SourceTask, TaskContext, TaskError, Value,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// One poll.
#[derive(Clone)]
pub enum Step {
    /// These records; then what the connector asks for: after a place in the batch, and after the batch.
    Batch(Vec<SourceRecord>, Option<(usize, Boundary)>, Option<Boundary>),
    /// No records, and what the connector asks for.
    Nothing(Option<Boundary>),
    /// An error worth another try.
    Retriable,
    /// An error for good.
    Fatal,
    /// A bug in the connector.
    Panic,
    /// Does not come back, whatever is asked.
    Hang,
}

/// What happened to the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It was started; the stored offset of partition "p", if any.
    Started(Option<i64>),
    /// It was polled.
    Poll,
    /// Its `commit` was called.
    Commit,
    /// Its `commit_record` was called with the record of this number.
    CommitRecord(i64),
    /// Its `stop` was called.
    Stopped,
    /// The connector's `stop` was called.
    ConnectorStopped,
}

/// Steps, and when they are used up polls without records until the stop.
#[derive(Clone, Default)]
pub struct Script(pub Vec<Step>);

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self(steps)
    }
}

#[derive(Default)]
struct Stage {
    steps: VecDeque<Step>,
    events: Vec<Event>,
}

static STAGES: LazyLock<Mutex<HashMap<String, Stage>>> = LazyLock::new(Mutex::default);

fn with<R>(id: &str, work: impl FnOnce(&mut Stage) -> R) -> R {
    let mut stages = STAGES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    work(stages.entry(id.to_owned()).or_default())
}

pub fn register(id: &str, script: Script) {
    with(id, |stage| stage.steps = script.0.into());
}

pub fn forget(id: &str) {
    STAGES.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(id);
}

pub fn events(id: &str) -> Vec<Event> {
    with(id, |stage| stage.events.clone())
}

fn partition() -> SourcePartition {
    SourcePartition::single("p", "p")
}

/// A record with this text and source offset `{"n": number}`.
pub fn record(number: i64) -> SourceRecord {
    let offset = SourceOffset::single("n", OffsetValue::Int(number));
    let mut record = SourceRecord::new(partition(), Some(offset), "t");
    record.value_schema = Some(Schema::string());
    record.value = Some(Value::from(number.to_string().as_str()));
    record
}

impl Step {
    /// A poll with records of these numbers.
    pub fn records(numbers: impl IntoIterator<Item = i64>) -> Self {
        Self::Batch(numbers.into_iter().map(record).collect(), None, None)
    }
}

/// Hands its own properties to its only task.
#[derive(Default)]
pub struct ScriptedConnector(Properties);

impl ScriptedConnector {
    fn on(&self, key: &str) -> &str {
        self.0.get(key).map(String::as_str).unwrap_or_default()
    }
}

#[async_trait]
impl SourceConnector for ScriptedConnector {
    fn version(&self) -> &str {
        "1"
    }

    fn config_def(&self) -> ConfigDef {
        ConfigDef::new()
            .define(ConfigKey::required("script.id", ConfigType::String, Importance::High, "which script"))
            .define(ConfigKey::optional("records", ConfigType::String, Importance::Low, "keep: hear of each record"))
            .define(ConfigKey::optional("on.start", ConfigType::String, Importance::Low, "panic, fail or hang"))
            .define(ConfigKey::optional("on.stop", ConfigType::String, Importance::Low, "note or hang"))
            .define(ConfigKey::optional("on.alter", ConfigType::String, Importance::Low, "panic, refuse or yes"))
            .define(ConfigKey::optional("on.task.start", ConfigType::String, Importance::Low, "panic"))
            .define(ConfigKey::optional("tasks", ConfigType::String, Importance::Low, "how many tasks"))
    }

    async fn start(&mut self, context: ConnectorContext, properties: &Properties) -> Result<(), ConnectorError> {
        self.0 = properties.clone();
        match self.on("on.start") {
            "panic" => panic!("a bug in the connector's start"),
            "fail" => Err(ConnectorError::new("the source says no")),
            "hang" => std::future::pending().await,
            "complain" => {
                context.request(oncewire_api::ConnectorRequest::ReconfigureTasks);
                context.request(oncewire_api::ConnectorRequest::Fail("the source went away".into()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn task_configs(&mut self, _tasks_max: usize) -> Result<Vec<Properties>, ConnectorError> {
        let count = self.0.get("tasks").and_then(|count| count.parse().ok()).unwrap_or(1);
        Ok(vec![self.0.clone(); count])
    }

    async fn alter_offsets(
        &mut self,
        properties: &Properties,
        offsets: &[(SourcePartition, Option<SourceOffset>)],
    ) -> Result<bool, ConnectorError> {
        self.0 = properties.clone();
        match self.on("on.alter") {
            "panic" => panic!("a bug in alter_offsets"),
            "refuse" => Err(ConnectorError::new(format!("{} offsets refused", offsets.len()))),
            answer => Ok(answer == "yes"),
        }
    }

    async fn stop(&mut self) {
        if self.0.contains_key("on.stop") {
            note(self.on("script.id"), Event::ConnectorStopped);
        }
        if self.on("on.stop") == "hang" {
            std::future::pending().await
        }
    }

    fn task(&self) -> Box<dyn SourceTask> {
        Box::new(ScriptedTask::default())
    }

    fn exactly_once_support(&self, _properties: &Properties) -> Option<ExactlyOnceSupport> {
        Some(ExactlyOnceSupport::Supported)
    }

    fn can_define_transaction_boundaries(&self, _properties: &Properties) -> Option<ConnectorTransactionBoundaries> {
        Some(ConnectorTransactionBoundaries::Supported)
    }
}

#[derive(Default)]
struct ScriptedTask {
    id: String,
    keep: bool,
    context: Option<TaskContext>,
}

fn note(id: &str, event: Event) {
    with(id, |stage| stage.events.push(event));
}

#[async_trait]
impl SourceTask for ScriptedTask {
    async fn start(&mut self, context: TaskContext, properties: &Properties) -> Result<(), TaskError> {
        self.id = properties.get("script.id").cloned().unwrap_or_default();
        self.keep = properties.contains_key("records");
        assert!(!properties.contains_key("on.task.start"), "a bug in the task's start");
        let stored = context.offset(&partition()).await?;
        note(&self.id, Event::Started(stored.and_then(|offset| offset.get("n")?.as_int())));
        self.context = Some(context);
        Ok(())
    }

    async fn poll(&mut self) -> Result<Option<Vec<SourceRecord>>, TaskError> {
        let Some(context) = self.context.clone() else { return Err(TaskError::fatal("not started")) };
        let step = with(&self.id, |stage| stage.steps.pop_front());
        note(&self.id, Event::Poll);
        let ask = |boundary| match (context.transaction(), boundary) {
            (Some(transaction), Some(Boundary::Commit)) => transaction.commit_transaction(),
            (Some(transaction), Some(Boundary::Abort)) => transaction.abort_transaction(),
            _ => {}
        };
        match step {
            Some(Step::Batch(records, after, batch)) => {
                match (context.transaction(), after) {
                    (Some(transaction), Some((place, Boundary::Commit))) => transaction.commit_transaction_after(place),
                    (Some(transaction), Some((place, Boundary::Abort))) => transaction.abort_transaction_after(place),
                    _ => {}
                }
                ask(batch);
                Ok(Some(records))
            }
            Some(Step::Nothing(boundary)) => {
                ask(boundary);
                Ok(None)
            }
            Some(Step::Retriable) => Err(TaskError::retriable("the source is away for a moment")),
            Some(Step::Fatal) => Err(TaskError::fatal("the source says no")),
            Some(Step::Panic) => panic!("a bug in the connector"),
            Some(Step::Hang) => std::future::pending().await,
            None => {
                tokio::select! {
                    () = context.stop().stopped() => {}
                    () = tokio::time::sleep(Duration::from_millis(20)) => {}
                }
                Ok(None)
            }
        }
    }

    async fn commit(&mut self) -> Result<(), TaskError> {
        note(&self.id, Event::Commit);
        Ok(())
    }

    fn wants_commit_record(&self) -> bool {
        self.keep
    }

    async fn commit_record(&mut self, record: &SourceRecord, _: Option<RecordMetadata>) -> Result<(), TaskError> {
        let number = record.source_offset.as_ref().and_then(|offset| offset.get("n")?.as_int()).unwrap_or(-1);
        note(&self.id, Event::CommitRecord(number));
        Ok(())
    }

    async fn stop(&mut self) {
        note(&self.id, Event::Stopped);
    }
}
