//! What the properties of Kafka's clients mean here: read, without effect, unknown, or refused.
//!
//! Kafka's own lists decide what is unknown (`oncewire_validation`); which of them are read is asked of the clients' readers. A
//! property without effect that says no more than Kafka's default makes no noise. Interceptors of a producer may change records:
//! where they are configured nothing runs without them.

use super::meant;
use super::properties::Properties;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_validation::{ClientKind, client_default, client_keys};

/// In a worker's properties: what begins so is for its tasks' clients.
const PREFIXES: [(&str, ClientKind); 3] =
    [("producer.", ClientKind::Producer), ("consumer.", ClientKind::Consumer), ("admin.", ClientKind::Admin)];

/// Keys below `admin.` that are the REST interface's.
const REST: &str = "admin.listeners";

const INTERCEPTORS: &str = "interceptor.classes";
const REPORTERS: &str = "metric.reporters";

/// Whether a client of this worker reads a property (without its prefix).
pub fn is_read(kind: ClientKind, key: &str) -> bool {
    let with = |least: (&str, &str)| -> Properties {
        [(least.0.to_owned(), least.1.to_owned()), (key.to_owned(), String::new())].into()
    };
    // Of a key that is read, the empty value is an error or nothing.
    let is_known = |unknown: Option<Vec<String>>| unknown.is_none_or(|keys| !keys.iter().any(|one| one == key));
    let by_client = ClientConfig::from_properties(&with(("bootstrap.servers", "h:1"))).map(|(_, unknown)| unknown);
    let by_producer = || ProducerConfig::from_properties(&with(("transactional.id", "t"))).map(|(_, unknown)| unknown);
    is_known(by_client.ok())
        || match kind {
            ClientKind::Producer => is_known(by_producer().ok()),
            ClientKind::Consumer => key == "isolation.level",
            ClientKind::Admin => false,
        }
}

/// Whether a value says what holds anyway: Kafka's default.
pub fn is_default(kind: ClientKind, key: &str, value: &str) -> bool {
    client_default(kind, key).unwrap_or_default().eq_ignore_ascii_case(value.trim())
}

/// Warnings about the properties of one client, without their prefix in `own`.
pub fn warnings(own: &Properties, kind: ClientKind, prefix: &str) -> Vec<String> {
    let (mut lines, mut idle) = (Vec::new(), Vec::new());
    for (key, value) in own {
        if is_read(kind, key) {
            continue;
        }
        if !client_keys(kind).any(|known| known == key) {
            let hint = meant(key, client_keys(kind)).map(|name| format!("; did you mean '{prefix}{name}'?"));
            lines.push(format!("property '{prefix}{key}' is not known and has no effect{}", hint.unwrap_or_default()));
        } else if !is_default(kind, key, value) {
            match key.as_str() {
                INTERCEPTORS if kind == ClientKind::Producer => {}
                INTERCEPTORS | REPORTERS => lines.push(java_classes(&format!("{prefix}{key}"))),
                _ => idle.push(format!("{prefix}{key}")),
            }
        }
    }
    if !idle.is_empty() {
        lines.push(format!("these properties of Kafka's clients have no effect here: {}", idle.join(", ")));
    }
    lines
}

/// Of a property that names plug-ins of Kafka's clients.
pub fn java_classes(property: &str) -> String {
    format!("property '{property}' has no effect: it names classes of Java, which can't run here")
}

/// Why a producer with these properties (without their prefix) must not write.
pub fn refusal(own: &Properties, prefix: &str) -> Option<String> {
    own.get(INTERCEPTORS).filter(|classes| !classes.trim().is_empty())?;
    Some(format!(
        "property '{prefix}{INTERCEPTORS}' is not supported: interceptors are classes of Java and may change records; remove it"
    ))
}

/// Warnings about everything in a worker's properties that is for its tasks' clients.
pub fn warnings_below_prefixes(worker: &Properties) -> Vec<String> {
    let of = |(prefix, kind): (&str, ClientKind)| warnings(&below(worker, prefix), kind, prefix);
    PREFIXES.into_iter().flat_map(of).collect()
}

/// The properties that begin with a prefix, without it.
pub fn below(properties: &Properties, prefix: &str) -> Properties {
    let own = properties.iter().filter(|(key, _)| !key.starts_with(REST));
    own.filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(pairs: &[(&str, &str)]) -> Vec<String> {
        let properties = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        warnings_below_prefixes(&properties)
    }

    #[test]
    fn slips_below_a_clients_prefix_are_named_with_what_was_meant() {
        for (given, meant) in [
            ("producer.lingr.ms", "producer.linger.ms"),
            ("consumer.isolation.levle", "consumer.isolation.level"),
            ("admin.retries.ms", ""),
            ("producer.ssl.truststore.locaton", "producer.ssl.truststore.location"),
            ("admin.acks", ""),
        ] {
            let lines = worker(&[(given, "x")]);
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains(&format!("'{given}' is not known")), "{lines:?}");
            let hint = format!("did you mean '{meant}'?");
            assert_eq!(lines[0].contains(&hint), !meant.is_empty(), "{lines:?}");
        }
    }

    #[test]
    fn what_is_read_or_says_the_default_makes_no_noise() {
        let jmx = "org.apache.kafka.common.metrics.JmxReporter";
        let quiet = [
            ("producer.linger.ms", "7"),
            ("producer.request.timeout.ms", "7000"),
            ("producer.metric.reporters", jmx),
            ("producer.interceptor.classes", ""),
            ("consumer.isolation.level", "read_committed"),
            ("consumer.max.poll.records", "500"),
            ("admin.sasl.mechanism", "PLAIN"),
            ("admin.listeners", "http://h:1"),
            ("admin.listeners.https.ssl.key.password", "x"),
        ];
        assert_eq!(worker(&quiet), Vec::<String>::new());
    }

    #[test]
    fn what_changes_nothing_is_said_and_an_interceptor_of_records_is_refused() {
        let lines = worker(&[("producer.partitioner.class", "x"), ("consumer.max.poll.records", "7")]);
        assert!(lines[0].ends_with("no effect here: producer.partitioner.class"), "{lines:?}");
        assert!(lines[1].ends_with("no effect here: consumer.max.poll.records"), "{lines:?}");
        let lines = worker(&[("consumer.interceptor.classes", "a.B"), ("admin.metric.reporters", "a.B")]);
        assert!(lines.iter().all(|line| line.contains("classes of Java")) && lines.len() == 2, "{lines:?}");
        let own = [("interceptor.classes".to_owned(), "a.B".to_owned())].into();
        let refused = refusal(&own, "producer.override.").unwrap();
        assert!(refused.contains("'producer.override.interceptor.classes' is not supported"), "{refused}");
        assert_eq!(refusal(&Properties::new(), "producer."), None);
    }
}
