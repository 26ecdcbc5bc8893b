//! What kind of connector a configuration is for.

use oncewire_api::plugin::{PluginKind, PluginRegistry};
use oncewire_rest::model::{ConfigMap, ConnectorType};

/// Source, or unknown where the class is not one of this worker's.
pub fn kind(registry: &PluginRegistry, config: &ConfigMap) -> ConnectorType {
    let class = config.get("connector.class").cloned().flatten().unwrap_or_default();
    match registry.find(PluginKind::Source, &class) {
        Ok(_) => ConnectorType::Source,
        Err(_) => ConnectorType::Unknown,
    }
}

/// The class name of a connector's tasks, as it is stored with their configurations for Java workers: Java's connectors are
/// called `…Connector`, and their tasks `…Task`.
pub fn task_class(registry: &PluginRegistry, config: &ConfigMap) -> Option<String> {
    let class = config.get("connector.class").cloned().flatten()?;
    let class = registry.find(PluginKind::Source, &class).ok()?.class;
    Some(format!("{}Task", class.strip_suffix("Connector").unwrap_or(class)))
}
