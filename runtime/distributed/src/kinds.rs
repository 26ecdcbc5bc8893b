//! What kind of connector a configuration is for.

use oncewire_api::Properties;
use oncewire_api::plugin::{PluginKind, PluginRegistry};
use oncewire_plugins::providers::{ConfigProviders, ProviderError};
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

/// A connector's configuration as its tasks and stores get it: references resolved, and under the name that it has in the config
/// topic. A Java worker may have written another `name` into it (by a PATCH).
///
/// # Errors
/// What a config provider could not read.
pub fn resolved(providers: &ConfigProviders, name: &str, raw: &ConfigMap) -> Result<Properties, ProviderError> {
    let mut config = providers.resolve(raw)?;
    config.insert("name".to_owned(), name.to_owned());
    Ok(config)
}
