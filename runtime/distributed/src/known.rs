//! Which properties of a worker nobody here knows, and which are known and change nothing.

use crate::config::config_def;
use oncewire_api::Properties;
use oncewire_worker::config::distributed::{self, is_known};
use oncewire_worker::config::meant;

/// Keys and prefixes that other parts read: REST, TLS of REST, config providers, client override policies, internal topics.
const READ_ELSEWHERE: &[&str] = &[
    "access.control.allow.",
    "admin.listeners",
    "config.providers",
    "config.storage.",
    "connector.client.config.override.",
    "listeners",
    "offset.storage.",
    "response.http.headers.config",
    "rest.",
    "status.storage.",
];

/// Known in Java, without effect here.
const WITHOUT_EFFECT: &[&str] = &[
    "internal.key.converter",
    "internal.value.converter",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "plugin.discovery",
    "plugin.path",
];

/// Prefixes of the same kind.
const WITHOUT_EFFECT_BELOW: &[&str] = &["internal.key.converter.", "internal.value.converter.", "metrics.context."];

/// Warnings for the log: one for each unknown key, one for all that change nothing.
pub fn warnings(properties: &Properties) -> Vec<String> {
    let def = config_def().merged(distributed::config_def());
    let mut lines = Vec::new();
    let mut idle = Vec::new();
    for key in properties.keys() {
        let key = key.as_str();
        if WITHOUT_EFFECT.contains(&key) || WITHOUT_EFFECT_BELOW.iter().any(|prefix| key.starts_with(prefix)) {
            idle.push(key);
        } else if def.key(key).is_none() && !is_known(key) && !READ_ELSEWHERE.iter().any(|known| key.starts_with(known))
        {
            let names = def.keys().iter().map(|known| known.name.as_str()).chain(READ_ELSEWHERE.iter().copied());
            let hint = meant(key, names).map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
            lines.push(format!("property '{key}' is not known and has no effect{hint}"));
        }
    }
    if !idle.is_empty() {
        let keys = idle.join(", ");
        lines.push(format!(
            "these properties have no effect here (connectors are built in, metrics are counted otherwise): {keys}"
        ));
    }
    lines
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
        let properties: Properties = given.iter().map(|key| ((*key).to_owned(), "x".to_owned())).collect();
        let lines = warnings(&properties);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("'gruop.id'") && lines[0].contains("did you mean 'group.id'?"), "{lines:?}");
        assert!(lines[1].contains("plugin.path"), "{lines:?}");
    }
}
