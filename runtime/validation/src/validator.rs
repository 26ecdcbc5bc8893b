//! The steps of a validation, in Java's order.
//!
//! ```text
//! resolve references → framework's properties → exactly-once → nulls → the connector's own → converters → overrides
//! ```
//!
//! A value that came from a config provider is shown as the reference that was given, also in errors: the REST interface has no secrets.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use oncewire_api::config_def::{CheckedValue, ConfigDef, ConfigKey, ConfigValue, Fallback, NullableProperties};
use oncewire_api::plugin::{Plugin, PluginKind, PluginRegistry};
use oncewire_api::{Properties, SourceConnector};
use oncewire_plugins::providers::ConfigProviders;
use serde_json::Value;

use crate::aliases::{check_aliases, with_aliases};
use crate::classes::other_version;
use crate::converters::{check_slots, converter_infos};
use crate::exactly_once::check_exactly_once;
use crate::framework::{
    CONNECTOR_CLASS, CONNECTOR_VERSION, ConverterDefault, ConverterDefaults, ConverterSlot, DEAD_LETTER_TOPIC,
    OFFSETS_TOPIC, PREDICATES, TRANSFORMS, connector_def, source_def,
};
use crate::infos::KeyInfo;
use crate::overrides::override_infos;
use crate::plugin_config::plugin_config;
use crate::topic_creation::topic_creation_infos;
use crate::versions::VersionRequirement;
use crate::{ClientKind, ConfigInfos, OverridePolicy, PluginConfigError};

/// The worker's `header.converter` when it sets none, as in Java.
const HEADER_CONVERTER: &str = "org.apache.kafka.connect.storage.SimpleHeaderConverter";
/// What names other properties.
const ALIAS_LISTS: [&str; 2] = [TRANSFORMS, PREDICATES];
const HIDDEN_ALIASES: &str = "The aliases are behind a reference to a config provider, and are part of the names of other properties; write them out.";
const NULL: &str = "Null value can not be supplied as the configuration value.";

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

    /// Checks a configuration as it was given, references unresolved.
    ///
    /// # Errors
    /// The text of a 400: there is no such connector, its version makes no sense, or a file that a reference names cannot be read.
    ///
    /// # Cancel safety
    /// May be dropped at any time. Takes as long as the connector's own validation does; patience is the caller's.
    pub async fn validate(&self, raw: &NullableProperties) -> Result<ConfigInfos, String> {
        // Errors too may name a value that came from a config provider.
        self.validate_resolved(raw).await.map_err(|error| self.providers.secrets().redacted(error))
    }

    async fn validate_resolved(&self, raw: &NullableProperties) -> Result<ConfigInfos, String> {
        let config = self.providers.resolve_nullable(raw).map_err(|error| error.to_string())?;
        let class = config
            .get(CONNECTOR_CLASS)
            .and_then(Option::as_deref)
            .ok_or_else(|| format!("Connector config contains no connector type; set '{CONNECTOR_CLASS}'"))?;
        let plugin = self.registry.find(PluginKind::Source, class).map_err(|error| error.to_string())?;
        let wanted = config.get(CONNECTOR_VERSION).and_then(Option::as_deref).unwrap_or_default();
        let mut infos = match VersionRequirement::parse(wanted)? {
            Some(requirement) if !requirement.accepts(plugin.version) => {
                self.other_version(plugin, &requirement, class, &config)
            }
            _ => self.this_version(plugin, class, raw, &config).await?,
        };
        self.hide_secrets(raw, &config, &mut infos);
        Ok(infos)
    }

    /// The definition of a plug-in, one JSON object for each property.
    ///
    /// # Errors
    /// [`PluginConfigError`].
    pub fn plugin_config(&self, name: &str, version: Option<&str>) -> Result<Vec<Value>, PluginConfigError> {
        plugin_config(&self.registry, name, version)
    }

    async fn this_version(
        &self,
        plugin: &Plugin,
        class: &str,
        raw: &NullableProperties,
        config: &NullableProperties,
    ) -> Result<ConfigInfos, String> {
        let defaults = self.converter_defaults(config);
        let written_out = with_aliases_written_out(raw, config);
        let def = with_aliases(source_def(Some(plugin.version), &defaults), &self.registry, &written_out);
        let def = without_additions(def, config);
        let mut checked = def.check(config);
        check_slots(&self.registry, &defaults, config, &mut checked);
        check_aliases(&self.registry, &written_out, &mut checked);
        flag_hidden_aliases(raw, config, &mut checked);
        let mut connector = self.registry.source(class).map_err(|error| error.to_string())?;
        check_exactly_once(self.worker.exactly_once, &*connector, &without_nulls(config), &mut checked);
        flag_nulls(config, &mut checked);

        let own_def = without_additions(connector.config_def(), config);
        let own = own_values(&mut *connector, &own_def, config).await?;
        let converters = converter_infos(&self.registry, config, &checked);
        let (keys, groups) = merged(&def, &own_def);
        checked.extend(own);
        let mut infos = ConfigInfos::new(class, groups, &keys, checked);
        infos.extend(converters);
        infos.extend(override_infos(&self.worker.overrides, &self.clients(config), config));
        if self.makes_topics() {
            infos.extend(topic_creation_infos(config));
        }
        Ok(infos)
    }

    /// The answer when the connector does not have the version that is asked for: nothing else of it can be asked.
    fn other_version(
        &self,
        plugin: &Plugin,
        requirement: &VersionRequirement,
        class: &str,
        config: &NullableProperties,
    ) -> ConfigInfos {
        let defaults = ConverterDefaults::default();
        let def = connector_def(Some(plugin.version), &defaults);
        let mut checked = def.check(config);
        check_slots(&self.registry, &defaults, config, &mut checked);
        let error = other_version(plugin, requirement);
        for value in checked.iter_mut().filter(|value| [CONNECTOR_CLASS, CONNECTOR_VERSION].contains(&&*value.name)) {
            value.errors.push(error.clone());
        }
        flag_nulls(config, &mut checked);
        let (keys, groups) = merged(&def, &ConfigDef::new());
        ConfigInfos::new(class, groups, &keys, checked)
    }

    fn converter_defaults(&self, config: &NullableProperties) -> ConverterDefaults {
        ConverterSlot::ALL.map(|slot| {
            let of_worker = self.worker.properties.get(slot.property()).map(String::as_str);
            let fallback = (slot == ConverterSlot::Header).then_some(HEADER_CONVERTER);
            ConverterDefault::new(&self.registry, slot, config, of_worker.or(fallback))
        })
    }

    fn makes_topics(&self) -> bool {
        let setting = self.worker.properties.get("topic.creation.enable");
        setting.is_none_or(|text| !text.trim().eq_ignore_ascii_case("false"))
    }

    /// Which of its clients the connector will have.
    fn clients(&self, config: &NullableProperties) -> Vec<ClientKind> {
        let is_given = |key: &str| config.get(key).is_some_and(Option::is_some);
        let own_offsets = self.worker.exactly_once || self.worker.mode == Mode::Distributed && is_given(OFFSETS_TOPIC);
        let makes_topics =
            self.makes_topics() && config.keys().any(|key| key.starts_with("topic.creation.") && is_given(key));
        let makes_topics = makes_topics || is_given(DEAD_LETTER_TOPIC);
        let mut clients = vec![ClientKind::Producer];
        clients.extend(own_offsets.then_some(ClientKind::Consumer));
        clients.extend((own_offsets || makes_topics).then_some(ClientKind::Admin));
        clients
    }

    /// A property that was given by reference shows the reference. In all else that the connector may have worded what was resolved is
    /// masked; what was given literally stays as it was given.
    fn hide_secrets(&self, raw: &NullableProperties, config: &NullableProperties, infos: &mut ConfigInfos) {
        let secrets = self.providers.secrets();
        let mask = |text: &mut String| *text = secrets.redacted(std::mem::take(text));
        mask(&mut infos.name);
        for info in &mut infos.configs {
            if let Some(KeyInfo(ConfigKey { fallback: Fallback::Text(default), .. })) = &mut info.definition {
                mask(default);
            }
            let Some(value) = &mut info.value else { continue };
            let given = raw.get(&value.name).and_then(Option::as_ref);
            match (given, config.get(&value.name).and_then(Option::as_ref)) {
                (Some(given), Some(resolved)) if given != resolved => {
                    if !matches!(value.value, ConfigValue::Null | ConfigValue::Password(_)) {
                        value.value = ConfigValue::Text(given.clone());
                    }
                    if !resolved.is_empty() {
                        value.errors.iter_mut().for_each(|error| *error = error.replace(resolved, given));
                    }
                }
                _ if given.map(|given| given.trim()) != value.value.to_text().as_deref() => match &mut value.value {
                    ConfigValue::Text(text) => mask(text),
                    ConfigValue::List(texts) => texts.iter_mut().for_each(mask),
                    _ => {}
                },
                _ => {}
            }
            value.recommended.iter_mut().chain(&mut value.errors).for_each(mask);
        }
    }
}

/// Additions to what Java has stay out of the answer unless they are given, so that it is Java's.
fn without_additions(def: ConfigDef, config: &NullableProperties) -> ConfigDef {
    let kept = def.keys().iter().filter(|key| !key.is_addition || config.contains_key(&key.name));
    kept.cloned().fold(ConfigDef::new(), ConfigDef::define)
}

/// The configuration without lists of aliases that came from a config provider: their names would show in those of other properties.
fn with_aliases_written_out(raw: &NullableProperties, config: &NullableProperties) -> NullableProperties {
    let mut written_out = config.clone();
    written_out.retain(|key, value| !ALIAS_LISTS.contains(&key.as_str()) || raw.get(key) == Some(value));
    written_out
}

fn flag_hidden_aliases(raw: &NullableProperties, config: &NullableProperties, checked: &mut [CheckedValue]) {
    for value in checked.iter_mut().filter(|value| ALIAS_LISTS.contains(&value.name.as_str())) {
        if raw.get(&value.name) != config.get(&value.name) {
            value.errors.push(HIDDEN_ALIASES.into());
        }
    }
}

fn without_nulls(config: &NullableProperties) -> Properties {
    config.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?))).collect()
}

/// A null is an error at its property, known or not.
fn flag_nulls(config: &NullableProperties, checked: &mut Vec<CheckedValue>) {
    for name in config.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name) {
        match checked.iter_mut().find(|value| value.name == *name) {
            Some(value) => value.errors.push(NULL.into()),
            None => {
                checked.push(CheckedValue { errors: vec![NULL.into()], ..CheckedValue::new(name) });
            }
        }
    }
}

/// What the connector says of its own properties. Java lets a null pass here; where a value is required, that is an error.
async fn own_values(
    connector: &mut dyn SourceConnector,
    def: &ConfigDef,
    config: &NullableProperties,
) -> Result<Vec<CheckedValue>, String> {
    let mut validation = pin!(connector.validate(config));
    let answer = poll_fn(|context| {
        // A panic of a plug-in must not take the request with it.
        match catch_unwind(AssertUnwindSafe(|| validation.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(values)) => Poll::Ready(Ok(values)),
            Err(_) => Poll::Ready(Err(String::from("the connector panicked while it validated its configuration"))),
        }
    });
    let mut values = answer.await?;
    values.retain(|value| def.key(&value.name).is_some() || !value.errors.is_empty());
    for value in &mut values {
        let is_required = def.key(&value.name).is_some_and(|key| key.fallback == Fallback::Required);
        if is_required && config.get(&value.name) == Some(&None) && value.errors.is_empty() {
            value.errors.push(NULL.into());
        }
    }
    Ok(values)
}

/// The properties of both, each in the place where it was first defined, as it was defined last; and their headings.
fn merged(framework: &ConfigDef, own: &ConfigDef) -> (Vec<ConfigKey>, Vec<String>) {
    let merged = framework.clone().merged(own.clone());
    let mut groups: Vec<String> = Vec::new();
    for group in framework.keys().iter().chain(own.keys()).filter_map(|key| key.group.as_ref()) {
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    (merged.keys().to_vec(), groups)
}
