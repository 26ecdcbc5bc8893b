//! Every property of Java's distributed worker, by the golden list of Apache Kafka 4.3.1: each is accepted, or refused by name, and
//! its default is the one that holds here, or listed as another.

use super::warnings;
use crate::clients;
use crate::config::DistributedConfig;
use oncewire_api::Properties;
use oncewire_plugins::providers::ConfigProviders;
use oncewire_rest::RestConfig;
use oncewire_validation::OverridePolicy;
use oncewire_worker::config::clients as task_clients;
use oncewire_worker::config::worker::WorkerConfig;

const GOLDEN: &str = include_str!("../../../../tests/golden/worker-keys/worker-4.3.1.tsv");

/// Where another default holds here; the reasons are in `docs/decisions/0009-where-the-herder-differs.md`. `request.timeout.ms` is not
/// another, but the group's alone: written out, it holds for all the clients of the worker, in Java too.
const OTHER_DEFAULT: &[&str] = &["receive.buffer.bytes", "request.timeout.ms", "retry.backoff.ms", "send.buffer.bytes"];

struct Key {
    name: &'static str,
    kind: &'static str,
    /// `None`: required, or null.
    default: Option<&'static str>,
}

fn keys() -> impl Iterator<Item = Key> {
    GOLDEN.lines().map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        Key { name: columns[0], kind: columns[1], default: columns[2].strip_prefix('=') }
    })
}

fn least(more: &[(&str, &str)]) -> Properties {
    let text = "org.apache.kafka.connect.storage.StringConverter";
    let least = [
        ("bootstrap.servers", "h:1"),
        ("group.id", "g"),
        ("config.storage.topic", "c"),
        ("offset.storage.topic", "o"),
        ("status.storage.topic", "s"),
        ("key.converter", text),
        ("value.converter", text),
    ];
    least.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Everything that a worker makes of its properties, as text without the properties themselves.
fn read(properties: &Properties) -> Result<String, Vec<String>> {
    let one = |problem: String| vec![problem];
    ConfigProviders::from_worker(properties).map_err(|problem| one(problem.to_string()))?;
    let mut config = DistributedConfig::read(properties)?;
    let mut worker = WorkerConfig::distributed("w", properties.clone()).map_err(|found| found.problems)?;
    let (rest, rest_warnings) = RestConfig::from_properties(properties).map_err(one)?;
    let overrides = OverridePolicy::from_worker(properties).map_err(one)?;
    let none = Properties::new();
    let made = [
        format!("{:?}", clients::client(&config, "").map_err(one)?),
        format!("{:?}", clients::group_client(&config, "w").map_err(one)?),
        format!("{:?}", clients::isolation(&config)),
        format!("{:?}", clients::plain_producer(&config).map_err(one)?),
        format!("{:?}", clients::leader_producer(&config).map_err(one)?.map(|leader| leader.producer)),
        format!("{:?}", task_clients::task_clients(&worker, &none, "c", 0).map_err(one)?),
        format!("{:?}", task_clients::plain_clients(&worker, &none, "c", 0).map_err(one)?),
        format!("{:?}", task_clients::consumer_client(&worker, &none, "c", false).map_err(one)?),
        format!("{:?}", task_clients::admin_client(&worker, &none, "c").map_err(one)?),
        format!("{rest:?} {overrides:?} {rest_warnings:?}"),
    ];
    config.originals.clear();
    worker.originals.clear();
    Ok(format!("{config:?} {worker:?} {made:?}"))
}

/// The base of each comparison: nothing more than must be; a transactional leader; TLS with a login.
fn bases() -> [Vec<(&'static str, &'static str)>; 3] {
    let login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"p\";";
    let secure = vec![("security.protocol", "SASL_SSL"), ("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", login)];
    [vec![], vec![("exactly.once.source.support", "preparing")], secure]
}

#[test]
fn javas_default_written_out_changes_nothing_and_makes_no_noise() {
    for base in bases() {
        let without = read(&least(&base)).unwrap();
        for Key { name, default, .. } in keys() {
            let Some(default) = default.filter(|_| !base.iter().any(|(key, _)| *key == name)) else { continue };
            let mut given = least(&base);
            given.insert(name.to_owned(), default.to_owned());
            assert_eq!(warnings(&given), Vec::<String>::new(), "{name}");
            let with = read(&given).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(with == without, !OTHER_DEFAULT.contains(&name), "{name}\n{with}\n{without}");
        }
    }
}

/// Connect's own defaults for the producers of tasks, on top of Kafka's; written out they change nothing but what is listed.
#[test]
fn connects_defaults_for_a_tasks_producer_hold_where_they_can() {
    let producers = |more: &[(&str, &str)], exactly_once: bool| {
        let worker = WorkerConfig::distributed("w", least(more)).unwrap();
        let none = Properties::new();
        match exactly_once {
            true => format!("{:?}", task_clients::task_clients(&worker, &none, "c", 0).unwrap()),
            false => format!("{:?}", task_clients::plain_clients(&worker, &none, "c", 0).unwrap()),
        }
    };
    for (key, value, differs_exactly_once, differs) in [
        ("producer.max.block.ms", "9223372036854775807", true, false),
        ("producer.delivery.timeout.ms", "2147483647", true, false),
        ("producer.acks", "all", false, false),
        ("producer.max.in.flight.requests.per.connection", "1", true, true),
        ("producer.batch.size", "16384", true, true),
        ("producer.linger.ms", "5", false, false),
        ("producer.buffer.memory", "33554432", false, false),
        ("producer.max.request.size", "1048576", false, false),
        ("producer.compression.type", "none", false, false),
        ("producer.transaction.timeout.ms", "60000", false, false),
        ("producer.request.timeout.ms", "30000", false, false),
    ] {
        let given = [(key, value)];
        assert_eq!(producers(&given, true) != producers(&[], true), differs_exactly_once, "{key}");
        assert_eq!(producers(&given, false) != producers(&[], false), differs, "{key}");
    }
}

#[test]
fn no_property_of_javas_worker_is_unknown_here() {
    for Key { name, kind, .. } in keys() {
        let value = match kind {
            "BOOLEAN" => "false",
            "SHORT" | "INT" | "LONG" => "7",
            "DOUBLE" => "0.5",
            _ => "x",
        };
        for base in bases() {
            let mut given = least(&base);
            given.insert(name.to_owned(), value.to_owned());
            let lines = warnings(&given);
            assert!(!lines.iter().any(|line| line.contains("not known")), "{name}: {lines:?}");
            for problem in read(&given).err().unwrap_or_default() {
                let about = name.split('.').next().unwrap();
                assert!(problem.contains(name) || problem.contains(&format!("{about}.")), "{name}: {problem}");
            }
        }
    }
}
