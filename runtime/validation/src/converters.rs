//! What a converter that the connector sets says of its own properties. A converter of the worker is not asked: the worker did that when
//! it started.

use oncewire_api::config_def::{
    CheckedValue, ConfigDef, ConfigKey, ConfigType, Importance, NullableProperties, Validator,
};
use oncewire_api::plugin::{Plugin, PluginKind, PluginRegistry};

use crate::classes::{check_class, find, other_version};
use crate::framework::{ConverterDefaults, ConverterSlot};
use crate::hash_order::hash_order;
use crate::infos::{ConfigInfo, KeyInfo};
use crate::versions::VersionRequirement;

/// The property by which Java tells a converter for what it works.
const CONVERTER_TYPE: &str = "converter.type";

/// A converter's properties as Java lists them.
pub(crate) fn converter_def(plugin: &Plugin) -> ConfigDef {
    let own = plugin.config_def();
    if plugin.kind() == PluginKind::HeaderConverter {
        return own;
    }
    let allowed = Validator::one_of(&["key", "value", "header"]);
    ConfigDef::new()
        .define(
            ConfigKey::required(
                CONVERTER_TYPE,
                ConfigType::String,
                Importance::Low,
                "For what it works: key, value or header. The worker sets it.",
            )
            .validator(allowed),
        )
        .merged(own)
}

/// Checks the classes and versions that the connector's properties name.
pub(crate) fn check_slots(
    registry: &PluginRegistry,
    defaults: &ConverterDefaults,
    config: &NullableProperties,
    checked: &mut [CheckedValue],
) {
    for (slot, default) in ConverterSlot::ALL.into_iter().zip(defaults) {
        let given = config.get(slot.property()).and_then(Option::as_deref);
        if let (Some(given), Some(class)) = (given, find_value(checked, slot.property())) {
            check_class(registry, slot.role(), given, class);
        }
        if let Some(version) = find_value(checked, &slot.version_property()) {
            version.visible = default.shows_version;
        }
        check_version(registry, slot, config, checked);
    }
}

/// A version that is asked for counts only together with a class.
fn check_version(
    registry: &PluginRegistry,
    slot: ConverterSlot,
    config: &NullableProperties,
    checked: &mut [CheckedValue],
) {
    let version_property = slot.version_property();
    let given = |key: &str| config.get(key).and_then(Option::as_deref);
    let (Some(class), Some(version)) = (given(slot.property()), given(&version_property)) else { return };
    let Some(plugin) = find(registry, slot.role(), class) else { return };
    let (properties, error): (&[&str], _) = match VersionRequirement::parse(version) {
        Ok(Some(requirement)) if !requirement.accepts(plugin.version) => {
            (&[slot.property(), &version_property], other_version(plugin, &requirement))
        }
        Ok(_) => return,
        Err(error) => (&[&version_property], error),
    };
    for property in properties {
        if let Some(value) = find_value(checked, property) {
            value.errors.push(error.clone());
        }
    }
}

fn find_value<'a>(checked: &'a mut [CheckedValue], name: &str) -> Option<&'a mut CheckedValue> {
    checked.iter_mut().find(|value| value.name == name)
}

/// The properties of the converters that the connector sets, where nothing is wrong with their classes.
pub(crate) fn converter_infos(
    registry: &PluginRegistry,
    config: &NullableProperties,
    checked: &[CheckedValue],
) -> Vec<ConfigInfo> {
    let is_good = |name: &str| checked.iter().any(|value| value.name == name && value.errors.is_empty());
    // Java's order differs from that of the definition.
    [ConverterSlot::Header, ConverterSlot::Key, ConverterSlot::Value]
        .into_iter()
        .filter(|slot| is_good(slot.property()) && is_good(&slot.version_property()))
        .filter_map(|slot| {
            let class = config.get(slot.property())?.as_deref()?;
            Some(slot_infos(find(registry, slot.role(), class)?, slot, config))
        })
        .flatten()
        .collect()
}

fn slot_infos(plugin: &Plugin, slot: ConverterSlot, config: &NullableProperties) -> Vec<ConfigInfo> {
    let def = converter_def(plugin);
    let prefix = format!("{}.", slot.property());
    let mut own: NullableProperties =
        config.iter().filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.clone()))).collect();
    own.insert(CONVERTER_TYPE.into(), Some(slot.converter_type().into()));
    let infos = def.check(&own).into_iter().zip(def.keys()).map(|(value, key)| prefixed(&prefix, key, value)).collect();
    hash_order(infos, |info: &ConfigInfo| {
        let name = info.value.as_ref().map(|value| value.name.as_str()).unwrap_or_default();
        name.strip_prefix(&prefix).unwrap_or(name)
    })
}

/// An entry under its full name; a form shows the short one.
pub(crate) fn prefixed(prefix: &str, key: &ConfigKey, value: CheckedValue) -> ConfigInfo {
    let mut shown = key.clone();
    shown.display_name.get_or_insert_with(|| key.name.clone());
    shown.name = format!("{prefix}{}", key.name);
    let name = format!("{prefix}{}", value.name);
    ConfigInfo { definition: Some(KeyInfo(shown)), value: Some(CheckedValue { name, ..value }) }
}
