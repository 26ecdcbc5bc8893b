//! Config providers: values that a configuration only refers to, `${provider:path:key}` (KIP-297, KIP-421).
//!
//! References are resolved where a value is used, and never stored: what is written to the config topic keeps them. What could not be
//! resolved stays as it is written, as in Java, so that a person sees it. Every value that was resolved is remembered as a secret and
//! masked in all that the worker says ([`Secrets`]).

mod properties_file;
mod redactor;
mod reference;
mod secrets;
mod sources;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use oncewire_api::Properties;
use oncewire_api::config_def::NullableProperties;

pub use redactor::{MASK, Redactor, SECRET_BYTES_MIN};
use reference::{Piece, has_reference, pieces};
pub use secrets::{Masking, SECRETS_BYTES_MAX, SECRETS_MAX, Secrets};
pub use sources::FILE_BYTES_MAX;
use sources::{Opened, Source};

const PROVIDERS: &str = "config.providers";

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
pub struct ConfigProviders {
    sources: Arc<BTreeMap<String, Source>>,
    secrets: Secrets,
}

impl ConfigProviders {
    /// The providers that `config.providers` names. What they give is remembered in a register of their own.
    ///
    /// # Errors
    /// [`ProviderError::Config`] for a class that there is not, or a parameter that cannot be read.
    pub fn from_worker(worker: &Properties) -> Result<Self, ProviderError> {
        let listed = worker.get(PROVIDERS).map(|list| list.trim()).unwrap_or_default();
        let mut sources = BTreeMap::new();
        for name in listed.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let key = |last: &str| format!("{PROVIDERS}.{name}.{last}");
            let error = |key: String, message: String| ProviderError::Config { key, message };
            let class = worker
                .get(&key("class"))
                .ok_or_else(|| error(key("class"), format!("it must name the class of the provider '{name}'")))?;
            let prefix = key("param.");
            let parameters = worker
                .iter()
                .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.clone())))
                .collect();
            let source = Source::new(class, &parameters).map_err(|(parameter, message)| match parameter {
                "" => error(key("class"), message),
                parameter => error(format!("{prefix}{parameter}"), message),
            })?;
            sources.insert(name.to_owned(), source);
        }
        Ok(Self { sources: Arc::new(sources), secrets: Secrets::default() })
    }

    /// The same, with what they give remembered in this register, by which others mask too.
    #[must_use]
    pub fn remembering_in(self, secrets: &Secrets) -> Self {
        Self { secrets: secrets.clone(), ..self }
    }

    /// The worker's own properties with their references resolved. Those of the providers themselves are left as they are.
    ///
    /// # Errors
    /// [`ProviderError::Read`].
    pub fn resolve_worker(&self, worker: &Properties) -> Result<Properties, ProviderError> {
        let mut opened = BTreeMap::new();
        let mut one = |key: &String, value: &String| match key.starts_with(PROVIDERS) {
            true => Ok(value.clone()),
            false => self.resolve_text(value, &mut opened),
        };
        worker.iter().map(|(key, value)| Ok((key.clone(), one(key, value)?))).collect()
    }

    /// A connector's or a task's properties with their references resolved; properties that are null are left out. Reads files in the
    /// calling thread.
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
        let mut opened = BTreeMap::new();
        let mut one = |value: &String| self.resolve_text(value, &mut opened);
        raw.iter().map(|(key, value)| Ok((key.clone(), value.as_ref().map(&mut one).transpose()?))).collect()
    }

    /// A task configuration as it is stored: under each key whose value in the connector's raw configuration holds a reference, that
    /// raw value in place of the resolved one.
    pub fn keep_references(raw: &NullableProperties, task: &Properties) -> Properties {
        let stored = |key: &String, value: &String| {
            let given = raw.get(key).and_then(Option::as_ref).filter(|given| has_reference(given));
            given.unwrap_or(value).clone()
        };
        task.iter().map(|(key, value)| (key.clone(), stored(key, value))).collect()
    }

    /// What was resolved, and the mask over it.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    fn resolve_text(
        &self,
        text: &str,
        opened: &mut BTreeMap<(String, String), Option<Opened>>,
    ) -> Result<String, ProviderError> {
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Reference(reference, written) => {
                    let value = self.value(reference, opened)?;
                    out.push_str(value.as_deref().unwrap_or(written));
                }
            }
        }
        Ok(out)
    }

    /// Each path is opened once for all references of a configuration, so that they fit together.
    fn value(
        &self,
        reference: reference::Reference<'_>,
        opened: &mut BTreeMap<(String, String), Option<Opened>>,
    ) -> Result<Option<String>, ProviderError> {
        let Some(source) = self.sources.get(reference.provider) else { return Ok(None) };
        let failed = |message| ProviderError::Read { provider: reference.provider.into(), message };
        let place = (reference.provider.to_owned(), reference.path.to_owned());
        let at_path = match opened.entry(place) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(source.open(reference.path).map_err(failed)?)
            }
        };
        let Some(at_path) = at_path else { return Ok(None) };
        let value = at_path.value(reference.key).map_err(failed)?;
        if let Some(value) = &value {
            self.secrets.remember(value);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
