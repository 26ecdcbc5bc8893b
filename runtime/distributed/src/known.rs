//! Which properties of a worker nobody here knows, and which are known and change nothing.
//!
//! Nothing is ignored in silence, and nothing is said of a line that repeats Java's default. What begins with a client's prefix is
//! judged by `client_keys` of the worker crate; here is the rest.

#[cfg(test)]
mod java_keys;

use crate::config::config_def;
use oncewire_api::{ConfigDef, Properties};
use oncewire_validation::{ClientKind, client_keys};
use oncewire_worker::config::client_keys::{below, is_default, java_classes, warnings_below_prefixes};
use oncewire_worker::config::clients::INTERNAL_PRODUCER_KEYS;
use oncewire_worker::config::distributed::{self, is_known};
use oncewire_worker::config::meant;

/// Keys that other parts read: REST, config providers, client override policies, the clients of internal topics.
const READ_ELSEWHERE: &[&str] = &[
    "access.control.allow.methods",
    "access.control.allow.origin",
    "admin.listeners",
    "config.providers",
    "config.storage.partitions",
    "connector.client.config.override.allowlist",
    "connector.client.config.override.policy",
    "isolation.level",
    "listeners",
    "response.http.headers.config",
    "rest.advertised.host.name",
    "rest.advertised.listener",
    "rest.advertised.port",
    "rest.basic.auth.jaas.config",
    "rest.extension.classes",
    "ssl.client.auth",
];

/// Known in Java, without effect here; and Java's default.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("internal.key.converter", ""),
    ("internal.value.converter", ""),
    ("metrics.num.samples", "2"),
    ("metrics.recording.level", "INFO"),
    ("metrics.sample.window.ms", "30000"),
    ("plugin.discovery", "hybrid_warn"),
    ("plugin.path", ""),
];

/// Prefixes of the same kind.
const WITHOUT_EFFECT_BELOW: &[&str] = &["internal.key.converter.", "internal.value.converter.", "metrics.context."];

/// Prefixes of converters, which know their own keys, and of clients, which are judged apart.
const OF_PLUGINS: &[&str] =
    &["admin.", "consumer.", "header.converter.", "key.converter.", "producer.", "value.converter."];

/// Prefixes of topic settings, and the keys below them that are not a topic's.
const TOPICS: &[&str] = &["config.storage.", "offset.storage.", "status.storage."];
const TOPIC_KEYS: &[&str] = &["partitions", "replication.factor", "topic"];

/// Prefixes of TLS settings of REST's listeners.
const LISTENERS: &[&str] = &["admin.listeners.https.", "listeners.https."];

const REPORTERS: &str = "metric.reporters";

/// What one property is.
enum Standing {
    /// Somebody reads it, or it says what holds anyway.
    Fine,
    /// Java's worker knows it; here it changes nothing.
    Idle,
    /// Clients of Java's internal topics read it; here it changes nothing.
    IdleInClients,
    /// A line of its own.
    Told(String),
    /// Nobody knows it; what was meant, perhaps.
    Unknown(Option<String>),
}

/// Warnings for the log: one for each unknown key, one for all that change nothing.
pub fn warnings(properties: &Properties) -> Vec<String> {
    let def = config_def().merged(distributed::config_def());
    let mut lines = Vec::new();
    let (mut idle, mut idle_in_clients) = (Vec::new(), Vec::new());
    for (key, value) in properties {
        match standing(key, value.trim(), &def, properties) {
            Standing::Fine => {}
            Standing::Idle => idle.push(key.as_str()),
            Standing::IdleInClients => idle_in_clients.push(key.as_str()),
            Standing::Told(line) => lines.push(line),
            Standing::Unknown(meant) => {
                let hint = meant.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
                lines.push(format!("property '{key}' is not known and has no effect{hint}"));
            }
        }
    }
    lines.extend(warnings_below_prefixes(properties));
    if !idle.is_empty() {
        let keys = idle.join(", ");
        lines.push(format!(
            "these properties have no effect here (plug-ins are built in, and no metrics go out, over JMX or otherwise): {keys}"
        ));
    }
    if !idle_in_clients.is_empty() {
        let keys = idle_in_clients.join(", ");
        lines.push(format!(
            "these properties of Kafka's clients have no effect at the top level here; tasks read them below producer., consumer. and \
             admin.: {keys}"
        ));
    }
    lines
}

fn standing(key: &str, value: &str, def: &ConfigDef, all: &Properties) -> Standing {
    if let Some(prefix) = LISTENERS.iter().find(|prefix| key.starts_with(**prefix)) {
        return of_listener(&key[prefix.len()..], prefix);
    }
    if key.starts_with("config.providers.") {
        return of_provider(key, all);
    }
    if key == REPORTERS {
        let is_java_default = value.is_empty() || is_default(ClientKind::Admin, key, value);
        return if is_java_default { Standing::Fine } else { Standing::Told(java_classes(key)) };
    }
    if let Some((_, default)) = WITHOUT_EFFECT.iter().find(|(name, _)| *name == key) {
        return if value.eq_ignore_ascii_case(default) { Standing::Fine } else { Standing::Idle };
    }
    if WITHOUT_EFFECT_BELOW.iter().any(|prefix| key.starts_with(prefix)) {
        return Standing::Idle;
    }
    let kinds = [ClientKind::Producer, ClientKind::Consumer, ClientKind::Admin];
    let is_read = def.key(key).is_some()
        || READ_ELSEWHERE.contains(&key)
        || INTERNAL_PRODUCER_KEYS.contains(&key)
        || OF_PLUGINS.iter().any(|prefix| key.starts_with(prefix))
        || is_known(key) && !of_security(key) && !TOPICS.iter().any(|prefix| key.starts_with(prefix));
    if is_read {
        return Standing::Fine;
    }
    if let Some((prefix, setting)) = TOPICS.iter().find_map(|prefix| Some((prefix, key.strip_prefix(prefix)?))) {
        // The broker knows the settings of topics; a slip of one of ours would be one that it does not know.
        let slip = meant(setting, TOPIC_KEYS.iter().copied()).filter(|meant| *meant != setting);
        return slip.map_or(Standing::Fine, |meant| Standing::Unknown(Some(format!("{prefix}{meant}"))));
    }
    if let Some(kind) = kinds.into_iter().find(|kind| client_keys(*kind).any(|name| name == key)) {
        let says_nothing = of_security(key) || is_default(kind, key, value);
        return if says_nothing { Standing::Fine } else { Standing::IdleInClients };
    }
    let ours = meant(key, def.keys().iter().map(|known| known.name.as_str())).map(str::to_owned);
    let javas = || meant(key, READ_ELSEWHERE.iter().copied().chain(kinds.into_iter().flat_map(client_keys)));
    Standing::Unknown(ours.or_else(|| javas().map(str::to_owned)))
}

/// Where connections are made, what is not supported of these is refused; the others belong to a mechanism that is not chosen.
fn of_security(key: &str) -> bool {
    key.starts_with("ssl.") || key.starts_with("sasl.")
}

fn of_listener(key: &str, prefix: &str) -> Standing {
    let names = || client_keys(ClientKind::Admin).filter(|name| name.starts_with("ssl.")).chain(["ssl.client.auth"]);
    if names().any(|name| name == key) {
        return Standing::Fine;
    }
    Standing::Unknown(meant(key, names()).map(|name| format!("{prefix}{name}")))
}

/// `config.providers.<name>.class` and `config.providers.<name>.param.<key>`.
fn of_provider(key: &str, all: &Properties) -> Standing {
    let names = || all.get("config.providers").into_iter().flat_map(|list| list.split(',')).map(str::trim);
    let mine = |name: &str| {
        let own = below(all, &format!("config.providers.{name}."));
        own.keys().find(|own| key == format!("config.providers.{name}.{own}")).cloned()
    };
    let found = names().filter(|name| !name.is_empty()).find_map(|name| Some((name, mine(name)?)));
    match found {
        Some((_, setting)) if setting == "class" || setting.starts_with("param.") => Standing::Fine,
        Some((name, setting)) => {
            let wanted = meant(&setting, ["class"].into_iter());
            let param = setting.split_once('.').filter(|(head, _)| meant(head, ["param"].into_iter()).is_some());
            let wanted = wanted.map(str::to_owned).or_else(|| param.map(|(_, rest)| format!("param.{rest}")));
            Standing::Unknown(wanted.map(|wanted| format!("config.providers.{name}.{wanted}")))
        }
        None => Standing::Told(format!("property '{key}' has no effect: config.providers names no such provider")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncewire_worker::config::properties::read_properties;
    use oncewire_worker::config::worker::WorkerConfig;

    #[test]
    fn every_line_of_the_example_has_an_effect() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/connect-distributed.properties");
        let properties = read_properties(std::path::Path::new(path)).unwrap();
        assert_eq!(warnings(&properties), Vec::<String>::new());
        let worker = WorkerConfig::distributed(path, properties).unwrap();
        assert_eq!(worker.offsets_topic_template.as_deref(), Some("${connector}-offsets"));
    }

    fn told(pairs: &[(&str, &str)]) -> Vec<String> {
        warnings(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn unknown_keys_are_named_and_known_ones_are_not() {
        let given = [
            "group.id",
            "listeners",
            "listeners.https.ssl.key.password",
            "config.storage.min.insync.replicas",
            "producer.linger.ms",
            "security.protocol",
            "plugin.path",
            "gruop.id",
        ];
        let lines = told(&given.map(|key| (key, "x")));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("'gruop.id'") && lines[0].contains("did you mean 'group.id'?"), "{lines:?}");
        assert!(lines[1].contains("plugin.path"), "{lines:?}");
    }

    #[test]
    fn a_slip_below_every_prefix_is_named_with_what_was_meant() {
        for (given, meant) in [
            ("rest.advertised.hostname", "rest.advertised.host.name"),
            ("rest.extension.clases", "rest.extension.classes"),
            ("listener", "listeners"),
            ("listeners.https.ssl.keystore.locaton", "listeners.https.ssl.keystore.location"),
            ("admin.listeners.https.ssl.client.atuh", "admin.listeners.https.ssl.client.auth"),
            ("admin.listener", ""),
            ("config.provider", "config.providers"),
            ("config.providers.f.clas", "config.providers.f.class"),
            ("config.providers.f.params.x", "config.providers.f.param.x"),
            ("ssl.truststore.pasword", "ssl.truststore.password"),
            ("sasl.mechanisms", "sasl.mechanism"),
            ("producer.lingr.ms", "producer.linger.ms"),
            ("consumer.fetch.min.byte", "consumer.fetch.min.bytes"),
            ("admin.request.timeout", ""),
            ("access.control.allow.orign", "access.control.allow.origin"),
            ("connector.client.config.override.polcy", "connector.client.config.override.policy"),
            ("status.storage.partition", "status.storage.partitions"),
            ("isolation.levl", "isolation.level"),
            ("metadata.recovery.rebootstrap.triger.ms", "metadata.recovery.rebootstrap.trigger.ms"),
        ] {
            let lines = told(&[(given, "x"), ("config.providers", "f, g")]);
            assert_eq!(lines.len(), 1, "{given}: {lines:?}");
            assert!(lines[0].contains(&format!("'{given}' is not known")), "{lines:?}");
            assert_eq!(lines[0].contains(&format!("did you mean '{meant}'?")), !meant.is_empty(), "{lines:?}");
        }
        let lines = told(&[("config.providers.h.class", "x"), ("config.providers", "f")]);
        assert!(lines[0].contains("'config.providers.h.class'") && lines[0].contains("no such provider"), "{lines:?}");
    }

    #[test]
    fn of_the_clients_keys_at_the_top_level_those_that_change_nothing_are_said() {
        let read = ["isolation.level", "transaction.timeout.ms", "batch.size", "buffer.memory", "max.request.size"];
        assert_eq!(told(&read.map(|key| (key, "7"))), Vec::<String>::new());
        assert_eq!(told(&[("max.block.ms", "7"), ("compression.type", "gzip")]), Vec::<String>::new());
        let lines = told(&[("linger.ms", "7"), ("max.poll.records", "500"), ("interceptor.classes", "a.B")]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].ends_with("admin.: interceptor.classes, linger.ms"), "{lines:?}");
    }

    #[test]
    fn nothing_is_promised_of_metrics() {
        let lines = told(&[("metrics.num.samples", "5"), ("metrics.recording.level", "DEBUG"), ("plugin.path", "/p")]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("no metrics go out"), "{lines:?}");
        assert!(lines[0].ends_with(": metrics.num.samples, metrics.recording.level, plugin.path"), "{lines:?}");
    }

    #[test]
    fn a_reporter_of_javas_is_said_unless_it_is_the_default_one() {
        assert_eq!(told(&[("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter")]), Vec::<String>::new());
        let lines = told(&[("metric.reporters", "com.example.Reporter")]);
        assert!(lines[0].contains("'metric.reporters' has no effect"), "{lines:?}");
    }
}
