//! The properties of transformations and predicates (KIP-66, KIP-585): two for each alias that `transforms` and `predicates` name.
//!
//! There are no transformations and no predicates here, so that every class is one that cannot be found; the lists that name aliases
//! say why, and what to do.

use std::collections::BTreeSet;

use oncewire_api::config_def::{
    CheckedValue, ConfigDef, ConfigKey, ConfigType, ConfigValue, Importance, NullableProperties, Width,
};
use oncewire_api::plugin::PluginRegistry;

use crate::classes::{ClassRole, check_class, classes};
use crate::framework::{PREDICATES, TRANSFORMS};

/// Why a connector with transformations or predicates does not run here, and what to do. Each worker of a group validates, and any of
/// them may be given the tasks, whoever took the configuration.
pub const NO_TRANSFORMS: &str = "transformations and predicates are classes of Java, which cannot run in this worker. Remove them, or leave \
     the connector to a group of Java workers alone: a group with this worker in it may give it the tasks, which then fail";

/// More aliases of one kind are not looked at: the answer grows with each.
const ALIASES_MAX: usize = 1000;

/// One alias of one kind.
struct Alias {
    /// `transforms.a` or `predicates.p`.
    prefix: String,
    name: String,
    heading: &'static str,
    role: ClassRole,
}

impl Alias {
    fn key(&self, last: &str) -> String {
        format!("{}.{last}", self.prefix)
    }

    fn define(&self, def: ConfigDef, registry: &PluginRegistry) -> ConfigDef {
        let (role, group) = (self.role.name(), format!("{}: {}", self.heading, self.name));
        let place = |key: ConfigKey, order, what: &str| {
            let display_name = format!("{role} {what} for {}", self.name);
            key.group(&group).order(order).width(Width::Long).display_name(display_name)
        };
        let high = Importance::High;
        let class = ConfigKey::required(self.key("type"), ConfigType::Class, high, "The class behind the alias.")
            .recommended(classes(registry, self.role));
        let version =
            ConfigKey::optional(self.key("plugin.version"), ConfigType::String, high, "Which versions of it will do.");
        def.define(place(class, 0, "type")).define(place(version, 1, "version"))
    }
}

fn list<'a>(config: &'a NullableProperties, key: &str) -> Vec<&'a str> {
    let text = config.get(key).and_then(Option::as_deref).unwrap_or_default().trim();
    let mut seen = BTreeSet::new();
    let items = text.split(',').map(str::trim).filter(|_| !text.is_empty());
    items.filter(|item| seen.insert(*item)).take(ALIASES_MAX).collect()
}

fn aliases(config: &NullableProperties) -> Vec<Alias> {
    let of = |kind: &str, heading, role| {
        list(config, kind)
            .into_iter()
            .map(|name| Alias { prefix: format!("{kind}.{name}"), name: name.into(), heading, role })
            .collect::<Vec<_>>()
    };
    let mut all = of(TRANSFORMS, "Transforms", ClassRole::Transformation);
    all.extend(of(PREDICATES, "Predicates", ClassRole::Predicate));
    all
}

/// The definition with the properties of every alias that the configuration names.
pub(crate) fn with_aliases(def: ConfigDef, registry: &PluginRegistry, config: &NullableProperties) -> ConfigDef {
    aliases(config).iter().fold(def, |def, alias| alias.define(def, registry))
}

/// Checks the lists, and the classes of the aliases.
pub(crate) fn check_aliases(registry: &PluginRegistry, config: &NullableProperties, checked: &mut [CheckedValue]) {
    for key in [TRANSFORMS, PREDICATES] {
        let names = list(config, key);
        if let Some(value) = checked.iter_mut().find(|value| value.name == key && !names.is_empty()) {
            value.errors.push(format!("Invalid value [{}] for configuration {key}: {NO_TRANSFORMS}", names.join(", ")));
        }
    }
    for alias in aliases(config) {
        let key = alias.key("type");
        let Some(value) = checked.iter_mut().find(|value| value.name == key) else { continue };
        if let Some(Some(given)) = config.get(&key) {
            check_class(registry, alias.role, given, value);
        }
        let (negate, predicate) = (alias.key("negate"), alias.key("predicate"));
        if alias.role == ClassRole::Transformation && config.contains_key(&negate) && !config.contains_key(&predicate) {
            value.errors.push(format!(
                "Config '{negate}' was provided but there is no config '{predicate}' defining a predicate to be negated."
            ));
        }
        if value.value == ConfigValue::Text(String::new()) {
            value.value = ConfigValue::Null;
        }
    }
}
