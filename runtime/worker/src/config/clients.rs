//! Which properties a task's clients get: the worker's own, then `producer.*`, then the connector's `producer.override.*`.
//!
//! In exactly-once mode two settings belong to the runtime: `transactional.id` and `enable.idempotence`. Other values of a
//! user are replaced, with a warning that names both (KIP-618); settings that would weaken the transaction are refused by
//! the client itself.

use super::properties::Properties;
use super::worker::WorkerConfig;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::net::tls;
use oncewire_client::producer::PlainConfig;
use oncewire_client::reader::Isolation;

/// The clients of one task.
#[derive(Debug, Clone)]
pub struct TaskClients {
    /// For its connections.
    pub client: ClientConfig,
    /// For its producer.
    pub producer: ProducerConfig,
    /// For the log.
    pub warnings: Vec<String>,
}

/// Requests on their way at once, which is what a broker remembers of a producer per partition.
const IN_FLIGHT_MAX: u32 = 5;

/// The first wait before a request is tried again, unless `retry.backoff.ms` says otherwise; it doubles from there to
/// `retry.backoff.max.ms`. Kafka's default of 100 ms would be most of a start: a topic that was made a moment ago has
/// leaders that do not know it yet, for some tens of milliseconds.
const RETRY_BACKOFF_MS: &str = "20";

/// The configuration of the worker's own connections: its top-level properties with `admin.*` on top.
///
/// # Errors
/// What the client refuses, naming the property.
pub fn worker_client(worker: &WorkerConfig) -> Result<ClientConfig, String> {
    let mut merged = with_bootstrap(worker);
    overlay(&mut merged, &worker.originals, "admin.");
    let (mut config, _) = ClientConfig::from_properties(&merged).map_err(|error| error.to_string())?;
    if !merged.contains_key("client.id") {
        config.client_id = format!("{}-worker", worker.group_id);
    }
    Ok(config)
}

/// Whether the files that a client's TLS settings name can be used. They are read again when it connects; a mistake in them is a
/// mistake in the properties, and is best told before anything runs.
///
/// # Errors
/// What is wrong, naming the property.
pub fn usable_stores(client: &ClientConfig) -> Result<(), String> {
    let Some(tls) = &client.security.tls else { return Ok(()) };
    tls::client_config(tls).map(drop).map_err(|error| error.to_string())
}

/// What in a worker's properties for its tasks' clients would keep every connector here from running; one line for each kind of client.
pub fn unusable_below_prefixes(worker: &WorkerConfig) -> Vec<String> {
    let unusable = |prefix: &str| {
        let mut own = Properties::new();
        overlay(&mut own, &worker.originals, prefix);
        if own.is_empty() {
            return None;
        }
        let error = side_client(worker, &own, "").and_then(|client| usable_stores(&client)).err()?;
        Some(format!("connectors can't use what the properties below '{prefix}' say: {error}"))
    };
    ["producer.", "consumer.", "admin."].into_iter().filter_map(unusable).collect()
}

/// The clients of task `task` of a connector, in exactly-once mode.
///
/// # Errors
/// What the clients refuse, naming the property.
pub fn task_clients(
    worker: &WorkerConfig,
    connector: &Properties,
    name: &str,
    task: u32,
) -> Result<TaskClients, String> {
    let mut merged = with_bootstrap(worker);
    let mut own = Properties::new();
    overlay(&mut own, &worker.originals, "producer.");
    overlay(&mut own, connector, "producer.override.");
    let mut warnings = Vec::new();
    let id = transactional_id(&worker.group_id, name, task);
    for (key, value) in [("transactional.id", id.as_str()), ("enable.idempotence", "true")] {
        if let Some(given) =
            own.insert(key.to_owned(), value.to_owned()).filter(|given| !given.eq_ignore_ascii_case(value))
        {
            warnings.push(format!(
                "'{key}' is '{given}' in the producer's properties; exactly-once uses '{value}' instead"
            ));
        }
    }
    merged.extend(own.clone());
    let (mut client, _) = ClientConfig::from_properties(&merged).map_err(|error| error.to_string())?;
    if !own.contains_key("client.id") {
        client.client_id = format!("connector-producer-{name}-{task}");
    }
    let (producer, _) = ProducerConfig::from_properties(&own).map_err(|error| error.to_string())?;
    Ok(TaskClients { client, producer, warnings })
}

/// The clients of one task in at-least-once mode.
#[derive(Debug, Clone)]
pub struct PlainClients {
    /// For its connections.
    pub client: ClientConfig,
    /// For its producer.
    pub producer: PlainConfig,
    /// For the log.
    pub warnings: Vec<String>,
}

/// The clients of task `task` of a connector, in at-least-once mode. Kafka Connect's defaults (no limit on waiting, one
/// request in flight) are kept where they matter: order per partition, and no record given up.
///
/// # Errors
/// What the clients refuse, naming the property.
pub fn plain_clients(
    worker: &WorkerConfig,
    connector: &Properties,
    name: &str,
    task: u32,
) -> Result<PlainClients, String> {
    let mut merged = with_bootstrap(worker);
    let mut own = Properties::new();
    overlay(&mut own, &worker.originals, "producer.");
    overlay(&mut own, connector, "producer.override.");
    merged.extend(own.clone());
    let (mut client, _) = ClientConfig::from_properties(&merged).map_err(|error| error.to_string())?;
    if !own.contains_key("client.id") {
        client.client_id = format!("connector-producer-{name}-{task}");
    }
    for (key, value) in [("delivery.timeout.ms", i64::from(i32::MAX)), ("max.block.ms", i64::MAX)] {
        own.entry(key.to_owned()).or_insert_with(|| value.to_string());
    }
    // The sizes and times of both producers have the same names and checks; the transactional id is not used.
    own.insert("transactional.id".to_owned(), "none".to_owned());
    own.remove("enable.idempotence");
    let warnings = strengthened(&mut own);
    let (read, _) = ProducerConfig::from_properties(&own).map_err(|error| error.to_string())?;
    Ok(PlainClients { client, producer: plain(&read), warnings })
}

/// Sizes, times and compression of a producer, without its transactions.
pub fn plain(read: &ProducerConfig) -> PlainConfig {
    PlainConfig {
        delivery_timeout: read.delivery_timeout,
        max_block: read.max_block,
        max_request_bytes: read.max_request_bytes,
        batch_bytes: read.batch_bytes,
        buffer_memory_bytes: read.buffer_memory_bytes,
        max_in_flight: read.max_in_flight,
        compression: read.compression,
    }
}

/// Properties at a worker's top level that the producers of its internal topics read, as in Kafka Connect. Those of tasks read
/// `producer.*` alone.
pub const INTERNAL_PRODUCER_KEYS: [&str; 6] =
    ["batch.size", "buffer.memory", "compression.type", "max.block.ms", "max.request.size", "transaction.timeout.ms"];

/// The properties of a producer of internal topics.
pub fn internal_producer(worker: &Properties, transactional_id: &str) -> Properties {
    let given = worker.iter().filter(|(key, _)| INTERNAL_PRODUCER_KEYS.contains(&key.as_str()));
    let mut own: Properties = given.map(|(key, value)| (key.clone(), value.clone())).collect();
    own.insert("transactional.id".to_owned(), transactional_id.to_owned());
    own
}

/// The producer of the worker's offsets topic.
///
/// # Errors
/// What the client refuses, naming the property.
pub fn offsets_producer(worker: &WorkerConfig) -> Result<PlainConfig, String> {
    let own = internal_producer(&worker.originals, "none");
    let (read, _) = ProducerConfig::from_properties(&own).map_err(|error| error.to_string())?;
    Ok(PlainConfig { max_in_flight: PlainConfig::default().max_in_flight, ..plain(&read) })
}

/// Settings with which a Java producer would lose or reorder records. This one has no such mode: they are lifted, and said.
fn strengthened(own: &mut Properties) -> Vec<String> {
    let mut warnings = Vec::new();
    let too_weak = |key: &str, value: &str| match key {
        "acks" => !matches!(value, "all" | "-1"),
        "retries" => value == "0",
        "max.in.flight.requests.per.connection" => value.parse::<u32>().is_ok_and(|count| count > IN_FLIGHT_MAX),
        _ => false,
    };
    for key in ["acks", "retries", "max.in.flight.requests.per.connection"] {
        if own.get(key).is_some_and(|value| too_weak(key, value.trim()))
            && let Some(value) = own.remove(key)
        {
            warnings.push(format!("producer property '{key}' is '{value}' and has no effect: the default is used"));
        }
    }
    warnings
}

/// What a connector's offsets consumer is.
#[derive(Debug, Clone)]
pub struct ConsumerClient {
    /// For its connections.
    pub client: ClientConfig,
    /// What it sees.
    pub isolation: Isolation,
    /// For the log.
    pub warnings: Vec<String>,
}

/// The client that reads a connector's own offsets topic: the worker's properties, `consumer.*`, `consumer.override.*`.
/// Exactly once, it reads committed records only, whatever a user says.
///
/// # Errors
/// What the client refuses, naming the property.
pub fn consumer_client(
    worker: &WorkerConfig,
    connector: &Properties,
    name: &str,
    exactly_once: bool,
) -> Result<ConsumerClient, String> {
    let mut own = Properties::new();
    overlay(&mut own, &worker.originals, "consumer.");
    overlay(&mut own, connector, "consumer.override.");
    let mut warnings = Vec::new();
    let isolation = match own.get("isolation.level").map(|level| level.to_ascii_lowercase()) {
        Some(level) if level == "read_uncommitted" && exactly_once => {
            warnings.push(format!(
                "'isolation.level' is '{level}' in the consumer's properties; exactly-once uses 'read_committed' instead"
            ));
            Isolation::Committed
        }
        Some(level) if level == "read_uncommitted" => Isolation::Uncommitted,
        Some(level) if level != "read_committed" => {
            return Err(format!("property 'isolation.level' is '{level}', allowed: read_committed, read_uncommitted"));
        }
        _ => Isolation::Committed,
    };
    let client = side_client(worker, &own, &format!("connector-consumer-{name}"))?;
    Ok(ConsumerClient { client, isolation, warnings })
}

/// The client that makes and checks a connector's topics and fences its tasks: the worker's properties, `admin.*`,
/// `admin.override.*`.
///
/// # Errors
/// What the client refuses, naming the property.
pub fn admin_client(worker: &WorkerConfig, connector: &Properties, name: &str) -> Result<ClientConfig, String> {
    let mut own = Properties::new();
    overlay(&mut own, &worker.originals, "admin.");
    overlay(&mut own, connector, "admin.override.");
    side_client(worker, &own, &format!("connector-adminclient-{name}"))
}

/// The client of the worker's own offsets topic: the worker's top-level properties alone.
///
/// # Errors
/// What the client refuses, naming the property.
pub fn offsets_client(worker: &WorkerConfig) -> Result<ClientConfig, String> {
    let mut name = worker.group_id.clone();
    if let Some(client_id) = worker.originals.get("client.id").filter(|client_id| !client_id.trim().is_empty()) {
        name = format!("{name}-{client_id}");
    }
    side_client(worker, &Properties::new(), &format!("{name}-offsets"))
}

/// Everything that a task's producer is told, the worker's properties included.
pub fn producer_properties(worker: &WorkerConfig, connector: &Properties) -> Properties {
    let mut merged = with_bootstrap(worker);
    overlay(&mut merged, &worker.originals, "producer.");
    overlay(&mut merged, connector, "producer.override.");
    merged
}

/// The worker's own `bootstrap.servers`.
pub fn worker_servers(worker: &WorkerConfig) -> String {
    with_bootstrap(worker).remove("bootstrap.servers").unwrap_or_default()
}

fn side_client(worker: &WorkerConfig, own: &Properties, client_id: &str) -> Result<ClientConfig, String> {
    let mut merged = with_bootstrap(worker);
    merged.extend(own.clone());
    let (mut client, _) = ClientConfig::from_properties(&merged).map_err(|error| error.to_string())?;
    if !own.contains_key("client.id") {
        client_id.clone_into(&mut client.client_id);
    }
    Ok(client)
}

/// `<group.id>-<connector>-<task>`: the same id that a Java worker gives the task.
pub fn transactional_id(group_id: &str, connector: &str, task: u32) -> String {
    format!("{group_id}-{connector}-{task}")
}

fn with_bootstrap(worker: &WorkerConfig) -> Properties {
    let mut merged = worker.originals.clone();
    merged.entry("bootstrap.servers".to_owned()).or_insert_with(|| "localhost:9092".to_owned());
    merged.entry("retry.backoff.ms".to_owned()).or_insert_with(|| RETRY_BACKOFF_MS.to_owned());
    merged
}

fn overlay(onto: &mut Properties, from: &Properties, prefix: &str) {
    for (key, value) in from {
        if let Some(key) = key.strip_prefix(prefix).filter(|key| !key.starts_with("override.")) {
            onto.insert(key.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Properties {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn worker(pairs: &[(&str, &str)]) -> WorkerConfig {
        let mut properties = map(pairs);
        properties.extend(map(&[("group.id", "g"), ("key.converter", "String"), ("value.converter", "String")]));
        WorkerConfig::standalone("w", properties).unwrap()
    }

    #[test]
    fn the_connector_overrides_the_worker_and_the_runtime_overrides_both() {
        let worker = worker(&[("producer.transaction.timeout.ms", "1000"), ("producer.max.request.size", "5000")]);
        let connector = map(&[
            ("producer.override.transaction.timeout.ms", "2000"),
            ("producer.override.transactional.id", "mine"),
            ("producer.override.enable.idempotence", "false"),
        ]);
        let clients = task_clients(&worker, &connector, "c", 3).unwrap();
        assert_eq!(clients.producer.transaction_timeout.as_millis(), 2000);
        assert_eq!(clients.producer.max_request_bytes, 5000);
        assert_eq!(clients.producer.transactional_id, "g-c-3");
        assert_eq!(clients.client.client_id, "connector-producer-c-3");
        assert_eq!(clients.warnings.len(), 2, "{:?}", clients.warnings);
    }

    #[test]
    fn settings_that_would_lose_records_are_lifted_without_transactions_and_said() {
        let connector = map(&[
            ("producer.override.acks", "1"),
            ("producer.override.retries", "0"),
            ("producer.override.max.in.flight.requests.per.connection", "20"),
        ]);
        let clients = plain_clients(&worker(&[]), &connector, "c", 0).unwrap();
        assert_eq!((clients.warnings.len(), clients.producer.max_in_flight), (3, 5));
    }

    #[test]
    fn without_transactions_nothing_is_given_up_by_the_clock_as_in_java() {
        let clients = plain_clients(&worker(&[("producer.max.request.size", "5000")]), &map(&[]), "c", 0).unwrap();
        let century = std::time::Duration::from_secs(100 * 365 * 24 * 3600);
        assert_eq!((clients.producer.max_block, clients.producer.max_request_bytes), (century, 5000));
        assert_eq!(clients.producer.delivery_timeout.as_millis(), 2_147_483_647);
    }

    #[test]
    fn the_offsets_topics_producer_reads_the_top_level_and_tasks_do_not() {
        let worker =
            worker(&[("buffer.memory", "7000000"), ("max.request.size", "2000000"), ("producer.batch.size", "9")]);
        let own = offsets_producer(&worker).unwrap();
        assert_eq!(
            (own.buffer_memory_bytes, own.max_request_bytes, own.batch_bytes),
            (7_000_000, 2_000_000, 1_000_000)
        );
        let task = plain_clients(&worker, &map(&[]), "c", 0).unwrap().producer;
        assert_eq!((task.max_request_bytes, task.batch_bytes), (1_048_576, 9));
    }

    #[test]
    fn exactly_once_reads_offsets_committed_whatever_a_user_says() {
        let worker =
            worker(&[("consumer.isolation.level", "read_uncommitted"), ("consumer.request.timeout.ms", "7000")]);
        let forced = consumer_client(&worker, &map(&[]), "c", true).unwrap();
        assert_eq!((forced.isolation, forced.warnings.len()), (Isolation::Committed, 1));
        assert_eq!(forced.client.request_timeout.as_secs(), 7);
        let free = consumer_client(&worker, &map(&[]), "c", false).unwrap();
        assert_eq!((free.isolation, free.warnings.len()), (Isolation::Uncommitted, 0));
        let overridden = map(&[("consumer.override.isolation.level", "read_committed")]);
        assert_eq!(consumer_client(&worker, &overridden, "c", false).unwrap().isolation, Isolation::Committed);
    }

    #[test]
    fn a_connector_overrides_its_admin_client() {
        let worker = worker(&[("admin.request.timeout.ms", "7000")]);
        let client = admin_client(&worker, &map(&[("admin.override.request.timeout.ms", "8000")]), "c").unwrap();
        assert_eq!((client.request_timeout.as_secs(), client.client_id.as_str()), (8, "connector-adminclient-c"));
    }

    #[test]
    fn a_store_of_tls_that_is_not_there_is_found_before_a_task_needs_it() {
        let nowhere =
            [("security.protocol", "SSL"), ("ssl.truststore.location", "/nowhere.pem"), ("ssl.truststore.type", "PEM")];
        let client = worker_client(&worker(&nowhere)).unwrap();
        assert!(usable_stores(&client).unwrap_err().contains("ssl.truststore.location"));
        let below = nowhere.map(|(key, value)| (format!("producer.{key}"), value));
        let given = worker(&below.each_ref().map(|(key, value)| (key.as_str(), *value)));
        assert_eq!(usable_stores(&worker_client(&given).unwrap()), Ok(()));
        let told = unusable_below_prefixes(&given);
        assert!(told.len() == 1 && told[0].contains("'producer.'") && told[0].contains("/nowhere.pem"), "{told:?}");
        assert_eq!(unusable_below_prefixes(&worker(&[("producer.linger.ms", "7")])), [""; 0]);
    }

    #[test]
    fn a_setting_that_weakens_the_transaction_is_refused_by_name() {
        let error = task_clients(&worker(&[]), &map(&[("producer.override.acks", "1")]), "c", 0).unwrap_err();
        assert!(error.contains("acks"), "{error}");
    }
}
