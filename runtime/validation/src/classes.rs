//! Names of classes: which plug-in a property names, and whether it is one of the right kind.

use oncewire_api::config_def::{CheckedValue, ConfigValue};
use oncewire_api::plugin::{Plugin, PluginKind, PluginRegistry};

use crate::versions::VersionRequirement;

/// What a property of type CLASS must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassRole {
    /// A converter for keys or values.
    Converter,
    /// A converter for headers: one made for them, or any other.
    HeaderConverter,
    /// A transformation; there is none.
    Transformation,
    /// A predicate; there is none.
    Predicate,
}

impl ClassRole {
    /// Its name in Connect's messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Converter => "Converter",
            Self::HeaderConverter => "HeaderConverter",
            Self::Transformation => "Transformation",
            Self::Predicate => "Predicate",
        }
    }

    fn kinds(self) -> &'static [PluginKind] {
        match self {
            Self::Converter => &[PluginKind::Converter],
            Self::HeaderConverter => &[PluginKind::HeaderConverter, PluginKind::Converter],
            Self::Transformation | Self::Predicate => &[],
        }
    }
}

const KINDS: [PluginKind; 3] = [PluginKind::Source, PluginKind::Converter, PluginKind::HeaderConverter];

/// Any plug-in of this name.
pub(crate) fn find_any<'a>(registry: &'a PluginRegistry, name: &str) -> Option<&'a Plugin> {
    KINDS.into_iter().find_map(|kind| registry.find(kind, name).ok())
}

/// The plug-in of this name that can play the role.
pub(crate) fn find<'a>(registry: &'a PluginRegistry, role: ClassRole, name: &str) -> Option<&'a Plugin> {
    role.kinds().iter().find_map(|kind| registry.find(*kind, name).ok())
}

/// The classes that can play the role, in the order of their names.
pub(crate) fn classes(registry: &PluginRegistry, role: ClassRole) -> Vec<&'static str> {
    let mut classes: Vec<&str> = registry
        .plugins()
        .iter()
        .filter(|plugin| role.kinds().contains(&plugin.kind()))
        .map(|plugin| plugin.class)
        .collect();
    classes.sort_unstable();
    classes
}

/// Puts the full name of the class in place of the name that was given, and says what is wrong with it.
pub(crate) fn check_class(registry: &PluginRegistry, role: ClassRole, given: &str, checked: &mut CheckedValue) {
    let ConfigValue::Text(name) = &checked.value else { return };
    if let Some(plugin) = find(registry, role, name) {
        checked.value = ConfigValue::Text(plugin.class.into());
        return;
    }
    let Some(other) = find_any(registry, name) else {
        let key = &checked.name;
        let error = format!("Invalid value {given} for configuration {key}: Class {given} could not be found.");
        checked.value = ConfigValue::Null;
        checked.errors.push(error);
        return;
    };
    checked.value = ConfigValue::Text(other.class.into());
    checked.errors.push(format!("Class class {} does not implement the {} interface", other.class, role.name()));
}

/// What is said when a plug-in does not have the version that is asked for.
pub(crate) fn other_version(plugin: &Plugin, requirement: &VersionRequirement) -> String {
    // A converter serves for headers too and is therefore listed twice in Java.
    let times = if plugin.kind() == PluginKind::Converter { 2 } else { 1 };
    let available = vec![plugin.version; times].join(", ");
    format!(
        "Plugin {} not found that matches the version range {requirement}, available versions: [{available}]",
        plugin.class
    )
}
