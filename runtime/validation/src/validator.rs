//! The steps of a validation, in Java's order.

use oncewire_api::Properties;
use oncewire_api::config_def::NullableProperties;
use oncewire_api::plugin::PluginRegistry;
use oncewire_plugins::providers::ConfigProviders;
use serde_json::Value;

use crate::{ConfigInfos, OverridePolicy, PluginConfigError};

/// In which kind of worker a connector is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// On its own.
    Standalone,
    /// In a group.
    Distributed,
}

/// What a validation needs to know of the worker.
#[derive(Clone, Debug)]
pub struct WorkerFacts {
    /// Its mode.
    pub mode: Mode,
    /// Whether it delivers exactly once (`exactly.once.source.support=enabled`).
    pub exactly_once: bool,
    /// Which client properties connectors may set.
    pub overrides: OverridePolicy,
    /// Its properties, with references resolved.
    pub properties: Properties,
}

/// Validates configurations of connectors.
#[derive(Clone, Debug)]
pub struct Validator {
    registry: PluginRegistry,
    worker: WorkerFacts,
    providers: ConfigProviders,
}

impl Validator {
    /// For this worker.
    pub fn new(registry: PluginRegistry, worker: WorkerFacts, providers: ConfigProviders) -> Self {
        Self { registry, worker, providers }
    }

    /// Checks a configuration. References are resolved first; the answer shows resolved values only where Java does too.
    ///
    /// # Errors
    /// The text of a 400: no `connector.class`, or none that there is.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn validate(&self, config: &NullableProperties) -> Result<ConfigInfos, String> {
        let _ = (config, &self.worker, &self.providers);
        Err("not there yet".into())
    }

    /// The definition of a plug-in, one JSON object for each property.
    ///
    /// # Errors
    /// [`PluginConfigError`].
    pub fn plugin_config(&self, name: &str, version: Option<&str>) -> Result<Vec<Value>, PluginConfigError> {
        let _ = (version, &self.registry);
        Err(PluginConfigError::Unknown(format!("Unknown plugin {name}.")))
    }
}
