//! The standalone herder: one process, connectors from files, offsets in a topic (exactly-once) or a file.
//!
//! Everything that can be checked is checked before anything is started: files, every property, the converters, the broker,
//! the offsets topic. Then each connector makes its task configurations and each task gets a supervisor. A task that failed
//! does not stop the others; the herder ends when it is told to, or when no task is left that could still do something.

use super::fence::fence_beyond;
use super::supervisor::{TaskState, supervise};
use crate::config::ConfigErrors;
use crate::config::clients::{plain_clients, task_clients, usable_stores, worker_client};
use crate::config::connector::ConnectorConfig;
use crate::config::properties::{ConnectorFile, Properties};
use crate::config::worker::{Delivery, WorkerConfig};
use crate::metrics::TaskMetrics;
use crate::store::offset_file::OffsetFile;
use crate::store::offset_topic;
use crate::task::ahead::Target;
use crate::task::run::TaskSpec;
use crate::task::teller::Teller;
use oncewire_api::plugin::{PluginFactory, PluginKind, PluginRegistry};
use oncewire_api::{ConnectorContext, ConnectorRequest, SourceConnector, StopSignal};
use oncewire_client::admin::Admin;
use oncewire_client::cluster::Cluster;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Why nothing was started.
#[derive(Debug)]
pub enum StartError {
    /// A person has to change a property.
    Config(ConfigErrors),
    /// The brokers, or what lies on them.
    Cluster(String),
    /// A connector could not start.
    Connector {
        /// Its name.
        connector: String,
        /// Its words.
        problem: String,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(errors) => errors.fmt(f),
            Self::Cluster(problem) => f.write_str(problem),
            Self::Connector { connector, problem } => write!(f, "connector {connector:?} can't start: {problem}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<ConfigErrors> for StartError {
    fn from(errors: ConfigErrors) -> Self {
        Self::Config(errors)
    }
}

/// How each task ended, by its name `<connector>-<number>`.
pub type Ends = Vec<(String, TaskState)>;

struct Checked {
    config: Arc<ConnectorConfig>,
    connector: Box<dyn SourceConnector>,
    make: fn() -> Box<dyn SourceConnector>,
    target: Target,
}

struct Started {
    connector: Box<dyn SourceConnector>,
    /// Tasks that wait for a resume end when this is dropped.
    _target: watch::Sender<Target>,
}

/// Runs the connectors until `stop`, or until every task has ended for good.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub async fn run(
    worker: WorkerConfig,
    files: Vec<ConnectorFile>,
    registry: PluginRegistry,
    stop: StopSignal,
) -> Result<Ends, StartError> {
    let worker = Arc::new(worker);
    for warning in &worker.warnings {
        tracing::warn!("{warning}");
    }
    let mut checked = Vec::with_capacity(files.len());
    for file in files {
        let names: Vec<String> = checked.iter().map(|other: &Checked| other.config.name.clone()).collect();
        checked.push(check(&worker, file, &registry, &names).await?);
    }
    let file = match &worker.delivery {
        Delivery::AtLeastOnce(path) => {
            let file = OffsetFile::open(path).map_err(|problem| ConfigErrors::one("worker", problem))?;
            Some(Arc::new(file))
        }
        Delivery::ExactlyOnce(_) | Delivery::Distributed { .. } => None,
    };
    let cluster = tokio::select! {
        connected = connect(&worker) => connected?,
        () = stop.stopped() => return Ok(Ends::new()),
    };
    let place = Place { worker, registry, cluster, file, stop };
    let mut tasks = JoinSet::new();
    let mut connectors = Vec::new();
    for one in checked {
        connectors.push(start(&place, one, &mut tasks).await?);
    }
    place.cluster.close().await;
    let mut ends = Ends::new();
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(end) => ends.push(end),
            Err(error) => tracing::error!("a task's supervisor ended by a bug of the worker: {error}"),
        }
    }
    for mut started in connectors {
        started.connector.stop().await;
    }
    ends.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(ends)
}

async fn check(
    worker: &Arc<WorkerConfig>,
    file: ConnectorFile,
    registry: &PluginRegistry,
    names: &[String],
) -> Result<Checked, StartError> {
    let of = format!("connector {:?}", file.name);
    if names.contains(&file.name) {
        return Err(ConfigErrors::one(of, "two files have the same connector name; names must differ").into());
    }
    let class = file.config.get("connector.class").map(String::as_str).unwrap_or_default();
    if class.trim().is_empty() {
        let problem =
            "missing property 'connector.class': set it to a class name or alias; `oncewire plugins` lists them";
        return Err(ConfigErrors::one(of, problem).into());
    }
    let plugin = registry
        .find(PluginKind::Source, class)
        .map_err(|error| ConfigErrors::one(of.clone(), format!("property 'connector.class': {error}")))?;
    let PluginFactory::Source(make) = plugin.factory else {
        return Err(
            ConfigErrors::one(of, format!("property 'connector.class': {class:?} is not a source connector")).into()
        );
    };
    let mut connector = make();
    let config = ConnectorConfig::check(worker, file.config, &*connector)?;
    own_mistakes(&of, &mut *connector, &config.originals).await?;
    config.converters(worker, registry)?;
    let clients = match worker.delivery {
        Delivery::ExactlyOnce(_) | Delivery::Distributed { .. } => {
            task_clients(worker, &config.originals, &config.name, 0).map(|clients| clients.client)
        }
        Delivery::AtLeastOnce(_) => {
            plain_clients(worker, &config.originals, &config.name, 0).map(|clients| clients.client)
        }
    };
    clients.and_then(|client| usable_stores(&client)).map_err(|problem| ConfigErrors::one(of, problem))?;
    for warning in &config.warnings {
        tracing::warn!(connector = config.name, "{warning}");
    }
    let target = if file.paused { Target::Paused } else { Target::Running };
    Ok(Checked { config: Arc::new(config), connector, make, target })
}

/// What the connector itself finds wrong with its properties: a person is to hear of it before brokers are looked for.
async fn own_mistakes(
    of: &str,
    connector: &mut dyn SourceConnector,
    properties: &Properties,
) -> Result<(), ConfigErrors> {
    let given = properties.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    let found = connector.validate(&given).await;
    let problems: Vec<String> = found.into_iter().flat_map(|value| value.errors).collect();
    if problems.is_empty() { Ok(()) } else { Err(ConfigErrors { of: of.to_owned(), problems }) }
}

async fn connect(worker: &WorkerConfig) -> Result<Cluster, StartError> {
    let client = worker_client(worker).and_then(|client| usable_stores(&client).map(|()| client));
    let client = client.map_err(|problem| ConfigErrors::one("worker", problem))?;
    let cluster = Cluster::connect_aloud(client).await.map_err(|error| StartError::Cluster(error.to_string()))?;
    if let Delivery::ExactlyOnce(topic) = &worker.delivery {
        offset_topic::ensure(&cluster, topic).await.map_err(|failure| StartError::Cluster(failure.to_string()))?;
    }
    Ok(cluster)
}

/// What all tasks of this process share.
struct Place {
    worker: Arc<WorkerConfig>,
    registry: PluginRegistry,
    cluster: Cluster,
    file: Option<Arc<OffsetFile>>,
    stop: StopSignal,
}

async fn start(place: &Place, one: Checked, tasks: &mut JoinSet<(String, TaskState)>) -> Result<Started, StartError> {
    let Checked { config, mut connector, make, target } = one;
    let failed = |problem: String| StartError::Connector { connector: config.name.clone(), problem };
    let name = config.name.clone();
    let context = ConnectorContext::new(config.name.as_str(), move |request| match request {
        ConnectorRequest::ReconfigureTasks => {
            tracing::warn!(connector = name, "asks for new task configurations; restart the worker to have them");
        }
        ConnectorRequest::Fail(problem) => tracing::error!(connector = name, "connector failed: {problem}"),
    });
    connector.start(context, &config.originals).await.map_err(|error| failed(error.to_string()))?;
    let task_configs = connector.task_configs(config.tasks_max).await.map_err(|error| failed(error.to_string()))?;
    if task_configs.len() > config.tasks_max {
        return Err(failed(format!("it made {} tasks, and tasks.max is {}", task_configs.len(), config.tasks_max)));
    }
    if matches!(place.worker.delivery, Delivery::ExactlyOnce(_)) {
        let admin = Admin::new(place.cluster.clone());
        fence_beyond(&admin, &place.worker.group_id, &config.name, task_configs.len())
            .await
            .map_err(StartError::Cluster)?;
    }
    let (target, _) = watch::channel(target);
    for (number, properties) in task_configs.into_iter().enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let spec = TaskSpec {
            worker: place.worker.clone(),
            connector: config.clone(),
            registry: place.registry.clone(),
            file: place.file.clone(),
            number,
            properties,
            make: Box::new(move || make().task()),
            metrics: Arc::new(TaskMetrics::default()),
            teller: Arc::new(Teller::new(None, &config.name, number)),
            surroundings: None,
        };
        let (name, stop, target) = (spec.name(), place.stop.clone(), target.subscribe());
        let (states, _) = watch::channel(TaskState::Unassigned);
        tasks.spawn(async move { (name, supervise(spec, stop, target, states).await) });
    }
    Ok(Started { connector, _target: target })
}
