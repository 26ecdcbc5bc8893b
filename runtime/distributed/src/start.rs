//! A distributed worker from its properties file to its end, in the one right order.
//!
//! Start: check every property → bind REST (its URL is what the group is told) → connect → offsets, status and config topics,
//! each made, checked and read to its end → the loop, which joins the group → REST answers.
//! End: REST stops → the loop (tasks, statuses, LeaveGroup) → topics → connections.

use crate::clients;
use crate::config::DistributedConfig;
use crate::herder::command::QUEUE_MAX;
use crate::herder::{Handle, Parts, Rivals, Tick};
use crate::loggers::Loggers;
use crate::statuses::Told;
use crate::view::View;
use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{ConfigProblem, Properties, StopSignal};
use oncewire_client::cluster::Cluster;
use oncewire_client::group::GroupMember;
use oncewire_plugins::providers::{ConfigProviders, Secrets};
use oncewire_rest::model::ServerInfo;
use oncewire_rest::{RestClient, RestConfig, RestServer};
use oncewire_topics::{ConfigTopic, ConfigTopicSettings, StatusTopic, StatusTopicSettings};
use oncewire_validation::{Mode, OverridePolicy, Validator, WorkerFacts};
use oncewire_worker::config::clients::{unusable_below_prefixes, usable_stores};
use oncewire_worker::config::distributed;
use oncewire_worker::config::worker::{ExactlyOnceSource, WorkerConfig};
use oncewire_worker::worker::Worker;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long running REST requests may take to end when the worker stops: 3 s.
const REST_CLOSE_MAX: Duration = Duration::from_secs(3);

/// How long the last statuses may take: 3 s.
const STATUS_CLOSE_MAX: Duration = Duration::from_secs(3);

/// Why a worker did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartError {
    /// A person has to change properties; one line each.
    Config {
        /// The file.
        of: String,
        /// What is wrong.
        problems: Vec<String>,
    },
    /// The brokers, what lies on them, or a listener.
    Start(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { of, problems } => write!(f, "{of}: {}", problems.join("; ")),
            Self::Start(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for StartError {}

/// Why a worker that was up ended without being asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndError {
    /// Its group never took it; a person has to change properties.
    Refused(String),
    /// Our bug.
    Herder(String),
}

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(problem) => f.write_str(problem),
            Self::Herder(problem) => write!(f, "the herder ended by a bug of the worker: {problem}"),
        }
    }
}

impl std::error::Error for EndError {}

/// Everything about a worker that can be checked without a broker.
pub struct Prepared {
    config: Arc<DistributedConfig>,
    worker: Arc<WorkerConfig>,
    rest: RestConfig,
    providers: ConfigProviders,
    validator: Validator,
    registry: PluginRegistry,
    loggers: Loggers,
}

/// Checks the properties. `of` names them in errors: the path of the file. What config providers give to this worker is remembered in
/// `secrets`; the worker's REST answers and statuses are masked by it, its log has to be masked by whoever writes it
/// ([`Secrets::masking`]).
///
/// # Errors
/// [`StartError::Config`] with every problem that was found.
pub fn prepare(
    of: &str,
    properties: &Properties,
    registry: PluginRegistry,
    loggers: Loggers,
    secrets: &Secrets,
) -> Result<Prepared, StartError> {
    let mut problems = Vec::new();
    let mut note = |problem: String| problems.push(problem);
    let providers = ConfigProviders::from_worker(properties).map(|providers| providers.remembering_in(secrets));
    let providers = providers.map_err(|problem| note(problem.to_string())).ok();
    let resolved = providers.as_ref().map(|providers| providers.resolve_worker(properties));
    let resolved = match resolved {
        Some(Ok(resolved)) => resolved,
        Some(Err(problem)) => {
            note(problem.to_string());
            properties.clone()
        }
        None => properties.clone(),
    };
    let refused = values_refused(&resolved);
    refused.iter().for_each(|problem| note(problem.to_string()));
    let (config, worker) = if refused.is_empty() {
        let config = DistributedConfig::read(&resolved).map_err(|found| found.into_iter().for_each(&mut note)).ok();
        let worker = WorkerConfig::distributed(of, resolved.clone());
        (config, worker.map_err(|found| found.problems.into_iter().for_each(&mut note)).ok())
    } else {
        (None, None)
    };
    if let Some(config) = &config {
        let client = clients::client(config, "").and_then(|client| usable_stores(&client));
        for checked in [client, clients::plain_producer(config).map(drop)] {
            checked.unwrap_or_else(&mut note);
        }
    }
    let rest = RestConfig::from_properties(&resolved);
    match &rest {
        Ok((rest, _)) => rest.problems().into_iter().for_each(&mut note),
        // REST reads two of the worker's keys, too.
        Err(problem) if refused.iter().any(|refused| problem.starts_with(refused.key())) => {}
        Err(problem) => note(problem.clone()),
    }
    let rest = rest.ok();
    let overrides = OverridePolicy::from_worker(&resolved).map_err(&mut note).ok();
    unknown_converters(&resolved, &registry).into_iter().for_each(&mut note);
    let (Some(config), Some(worker), Some((rest, rest_warnings)), Some(overrides), Some(providers), true) =
        (config, worker, rest, overrides, providers, problems.is_empty())
    else {
        let mut said = BTreeSet::new();
        // Without keys of its own REST has those of the brokers' clients, and their mistakes.
        problems.retain(|problem| said.insert(problem.strip_prefix("https: ").unwrap_or(problem).to_owned()));
        return Err(StartError::Config { of: of.to_owned(), problems });
    };
    introduce(&config, &resolved);
    let unknown = crate::known::warnings(&resolved);
    let unusable = unusable_below_prefixes(&worker);
    let all = [&config.warnings, &worker.warnings, &rest_warnings, &unknown, &unusable];
    for warning in all.into_iter().flatten() {
        tracing::warn!("{warning}");
    }
    let facts = WorkerFacts {
        mode: Mode::Distributed,
        exactly_once: config.exactly_once == ExactlyOnceSource::Enabled,
        overrides,
        properties: resolved,
    };
    let validator = Validator::new(registry.clone(), facts, providers.clone());
    Ok(Prepared { config: Arc::new(config), worker: Arc::new(worker), rest, providers, validator, registry, loggers })
}

/// Values that are missing or not allowed, each once, in the order of the definitions: the group's, the topics', the tasks'. Some keys
/// are read for the group and for tasks.
fn values_refused(properties: &Properties) -> Vec<ConfigProblem> {
    let def = crate::config::config_def().merged(distributed::config_def());
    def.parse(properties).err().unwrap_or_default()
}

/// A worker that is up.
pub struct Running {
    rest: RestServer,
    view: View,
    herder: tokio::task::JoinHandle<Result<(), String>>,
    clusters: Vec<Cluster>,
}

impl Prepared {
    /// Starts the worker; it runs until `stop`.
    ///
    /// # Errors
    /// [`StartError::Start`]; nothing runs then.
    pub async fn start(self, stop: StopSignal) -> Result<Running, StartError> {
        let failed = StartError::Start;
        let config = self.config.clone();
        let rest = RestServer::bind(self.rest.clone()).await.map_err(failed)?;
        let url = rest.advertised_url().to_owned();
        let worker_id = worker_id(&url);
        // What does not need the other goes on at the same time: REST answers when all is read.
        let shared = clients::client(&config, "shared-admin").map_err(failed)?;
        let group = clients::group_client(&config, &worker_id).map_err(failed)?;
        // One of the two says what it waits for.
        let (cluster, group_cluster) = tokio::join!(Cluster::connect_aloud(shared), Cluster::connect(group));
        let not_reached = |error: oncewire_client::error::Error| StartError::Start(error.to_string());
        let (cluster, group_cluster) = (cluster.map_err(not_reached)?, group_cluster.map_err(not_reached)?);
        let (configs, statuses) = tokio::join!(self.config_topic(&cluster), self.status_topic(&cluster));
        let view = View::new(configs?, statuses?);
        let told = Told::new(
            view.clone(),
            worker_id.clone(),
            self.registry.clone(),
            self.providers.secrets().clone(),
            config.topic_tracking,
        );
        let worker = Worker::start(self.worker.clone(), self.registry.clone(), Arc::new(told)).await.map_err(failed)?;
        let member = GroupMember::new(group_cluster.clone(), clients::group(&config));
        let (commands, queue) = mpsc::channel(QUEUE_MAX);
        let rivals = Rivals::new(cluster.clone(), &self.config.group_id);
        let handle = Handle {
            info: server_info(&cluster),
            config: config.clone(),
            view: view.clone(),
            worker: worker.clone(),
            validator: self.validator,
            providers: self.providers.clone(),
            registry: self.registry.clone(),
            loggers: self.loggers.clone(),
            rivals: rivals.clone(),
            commands: commands.clone(),
        };
        let parts = Parts {
            config,
            view: view.clone(),
            worker,
            member,
            providers: self.providers,
            registry: self.registry,
            rest: RestClient::new(&self.rest).map_err(failed)?,
            rivals: Some(rivals),
            url,
            worker_id,
            loggers: self.loggers,
            commands,
        };
        let herder = tokio::spawn(Tick::new(parts).run(queue, stop));
        rest.serve(Arc::new(handle));
        Ok(Running { rest, view, herder, clusters: vec![cluster, group_cluster] })
    }

    async fn config_topic(&self, cluster: &Cluster) -> Result<ConfigTopic, StartError> {
        let settings = ConfigTopicSettings {
            topic: clients::topic(&self.config.config_topic),
            cluster: cluster.clone(),
            isolation: clients::isolation(&self.config),
            producer: clients::plain_producer(&self.config).map_err(StartError::Start)?,
            leader: clients::leader_producer(&self.config).map_err(StartError::Start)?,
        };
        ConfigTopic::start(settings).await.map_err(|error| StartError::Start(error.to_string()))
    }

    async fn status_topic(&self, cluster: &Cluster) -> Result<StatusTopic, StartError> {
        let settings = StatusTopicSettings {
            topic: clients::topic(&self.config.status_topic),
            cluster: cluster.clone(),
            isolation: clients::isolation(&self.config),
            producer: clients::plain_producer(&self.config).map_err(StartError::Start)?,
        };
        StatusTopic::start(settings).await.map_err(|error| StartError::Start(error.to_string()))
    }
}

impl Running {
    /// What this worker is reached by.
    pub fn url(&self) -> &str {
        self.rest.advertised_url()
    }

    /// Waits for the end that the stop signal brings, and closes what is left.
    ///
    /// # Errors
    /// [`EndError`]: it ended by itself.
    pub async fn ended(self) -> Result<(), EndError> {
        let herded = self.herder.await;
        self.rest.close(REST_CLOSE_MAX).await;
        self.view.statuses.close(STATUS_CLOSE_MAX).await;
        self.view.configs.close().await;
        for cluster in self.clusters {
            cluster.close().await;
        }
        match herded {
            Ok(ended) => ended.map_err(EndError::Refused),
            Err(error) => Err(EndError::Herder(error.to_string())),
        }
    }
}

/// `host:port` of the advertised URL, as statuses name a worker.
pub(crate) fn worker_id(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    host.trim_end_matches('/').to_owned()
}

/// The first line of a log: what a person has to know of this worker.
fn introduce(config: &DistributedConfig, properties: &Properties) {
    let said = |key: &str, default: &'static str| properties.get(key).map_or(default, String::as_str).to_owned();
    let support = said("exactly.once.source.support", "disabled").to_ascii_lowercase();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        group_id = config.group_id,
        bootstrap = said("bootstrap.servers", "localhost:9092"),
        "starting a distributed worker with exactly.once.source.support={support}"
    );
}

/// A worker that can't make its own converters could run hardly a connector, and would take tasks from those who can.
fn unknown_converters(properties: &Properties, registry: &PluginRegistry) -> Vec<String> {
    let problem = |key: &str| {
        let class = properties.get(key)?;
        let found = match key {
            "header.converter" => registry.header_converter(class).map(drop),
            _ => registry.converter(class).map(drop),
        };
        Some(format!("property '{key}': {}", found.err()?))
    };
    ["key.converter", "value.converter", "header.converter"].into_iter().filter_map(problem).collect()
}

fn server_info(cluster: &Cluster) -> ServerInfo {
    ServerInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("ONCEWIRE_COMMIT").unwrap_or("unknown").to_owned(),
        kafka_cluster_id: cluster.cluster_id().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_converter_that_is_not_here_is_named_before_the_worker_takes_any_work() {
        let properties = [
            ("key.converter", "org.apache.kafka.connect.json.JsonConvertor"),
            ("value.converter", "String"),
            ("header.converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
        ];
        let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let problems = unknown_converters(&properties, &PluginRegistry::new(oncewire_plugins::converters()));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("'key.converter'") && problems[0].contains("JsonConvertor"), "{problems:?}");
    }

    struct Silent;

    impl crate::loggers::LevelSink for Silent {
        fn apply(&self, _levels: &std::collections::BTreeMap<String, String>) {}
    }

    fn problems(pairs: &[(&str, &str)]) -> Vec<String> {
        let properties = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let registry = PluginRegistry::new(oncewire_plugins::converters());
        let loggers = Loggers::new("info", Arc::new(Silent));
        match prepare("w.properties", &properties, registry, loggers, &Secrets::default()) {
            Err(StartError::Config { problems, .. }) => problems,
            Err(other) => panic!("{other}"),
            Ok(_) => Vec::new(),
        }
    }

    const LEAST: [(&str, &str); 7] = [
        ("bootstrap.servers", "h:1"),
        ("group.id", "g"),
        ("config.storage.topic", "c"),
        ("offset.storage.topic", "o"),
        ("status.storage.topic", "s"),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("value.converter", "org.apache.kafka.connect.storage.StringConverter"),
    ];

    #[test]
    fn each_problem_is_said_once_in_the_order_of_the_definitions() {
        let missing = problems(&[("topic.tracking.enable", "x"), ("exactly.once.source.support", "on")]);
        let keys: Vec<&str> = missing.iter().filter_map(|problem| problem.split('\'').nth(1)).collect();
        let expected = [
            "group.id",
            "exactly.once.source.support",
            "config.storage.topic",
            "offset.storage.topic",
            "status.storage.topic",
            "topic.tracking.enable",
            "key.converter",
            "value.converter",
        ];
        assert_eq!(keys, expected, "{missing:#?}");
        assert_eq!(problems(&LEAST), [""; 0]);
    }

    #[test]
    fn what_is_wrong_with_files_of_tls_is_a_mistake_in_the_properties() {
        let with = |more: &[(&str, &str)]| problems(&[&LEAST[..], more].concat());
        let told = with(&[("listeners", "https://127.0.0.1:0")]);
        assert_eq!(told, ["https: setting listeners.https.ssl.keystore.location is missing; set it"]);
        let told = with(&[
            ("security.protocol", "SSL"),
            ("ssl.truststore.location", "/nowhere.pem"),
            ("ssl.truststore.type", "PEM"),
        ]);
        assert!(told.len() == 1 && told[0].contains("ssl.truststore.location"), "{told:?}");
        let told = with(&[("config.storage.topic", "bad topic!")]);
        assert!(told.len() == 1 && told[0].contains("'config.storage.topic' is 'bad topic!'"), "{told:?}");
    }

    #[test]
    fn a_worker_is_named_by_host_and_port() {
        assert_eq!(worker_id("http://127.0.0.1:8083/"), "127.0.0.1:8083");
        assert_eq!(worker_id("https://[::1]:8443/"), "[::1]:8443");
    }
}
