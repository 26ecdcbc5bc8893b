//! Which properties of its Kafka clients a connector may set (`connector.client.config.override.policy`, KIP-458), and what is wrong with
//! those that it sets.

use std::fmt;

use oncewire_api::Properties;
use oncewire_api::config_def::{CheckedValue, ConfigType, ConfigValue, NullableProperties};

use crate::client_keys::client_key;
use crate::converters::prefixed;
use crate::hash_order::hash_order;
use crate::infos::ConfigInfo;

const POLICY: &str = "connector.client.config.override.policy";
const ALLOWLIST: &str = "connector.client.config.override.allowlist";
const PACKAGE: &str = "org.apache.kafka.connect.connector.policy.";
const CLASS_END: &str = "ConnectorClientConfigOverridePolicy";
/// What the policy Principal lets through.
const CREDENTIALS: [&str; 3] = ["sasl.jaas.config", "sasl.mechanism", "security.protocol"];

/// The client whose properties are overridden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// `producer.override.`
    Producer,
    /// `consumer.override.`
    Consumer,
    /// `admin.override.`
    Admin,
}

impl ClientKind {
    /// What its properties begin with in a connector's configuration.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Producer => "producer.override.",
            Self::Consumer => "consumer.override.",
            Self::Admin => "admin.override.",
        }
    }
}

/// The policy of the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OverridePolicy {
    /// Everything.
    #[default]
    All,
    /// Nothing.
    None,
    /// Credentials only.
    Principal,
    /// These properties (KIP-1188).
    Allowlist(Vec<String>),
}

impl fmt::Display for OverridePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "All",
            Self::None => "None",
            Self::Principal => "Principal",
            Self::Allowlist(_) => "Allowlist",
        })
    }
}

impl OverridePolicy {
    /// The policy that the worker's properties name: by its short name or by Java's class name.
    ///
    /// # Errors
    /// What is wrong, and what to change.
    pub fn from_worker(worker: &Properties) -> Result<Self, String> {
        let given = worker.get(POLICY).map_or("All", |name| name.trim());
        let name = given.strip_prefix(PACKAGE).unwrap_or(given);
        match name.strip_suffix(CLASS_END).unwrap_or(name) {
            "All" => Ok(Self::All),
            "None" => Ok(Self::None),
            "Principal" => Ok(Self::Principal),
            "Allowlist" => {
                let listed = worker.get(ALLOWLIST).map(|list| list.trim()).unwrap_or_default();
                let items = listed.split(',').map(str::trim).filter(|item| !item.is_empty());
                Ok(Self::Allowlist(items.map(Into::into).collect()))
            }
            _ => Err(format!(
                "property '{POLICY}' is '{given}'; set it to All, None, Principal or Allowlist (with {ALLOWLIST})"
            )),
        }
    }

    /// Whether a client property (without its prefix) may be set.
    pub fn allows(&self, property: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Principal => CREDENTIALS.contains(&property),
            Self::Allowlist(allowed) => allowed.iter().any(|item| item == property),
        }
    }

    /// Why a client property may not be set; `None` when it may.
    pub fn refusal(&self, property: &str) -> Option<String> {
        let message = || {
            format!("The '{self}' policy does not allow '{property}' to be overridden in the connector configuration.")
        };
        (!self.allows(property)).then(message)
    }
}

/// The overrides for these clients, in this order.
pub(crate) fn override_infos(
    policy: &OverridePolicy,
    clients: &[ClientKind],
    config: &NullableProperties,
) -> Vec<ConfigInfo> {
    // Java takes them from one map into another; where the second has two in one bucket, the order of the first shows.
    let all = hash_order(config.iter().collect(), |(key, _)| key);
    let of_client = |client: &ClientKind| {
        let prefix = client.prefix();
        let own = all.iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value.as_deref())));
        let one = |(property, value): (&str, Option<&str>)| override_info(policy, *client, property, value);
        hash_order(own.collect(), |(property, _)| property).into_iter().map(one).collect::<Vec<_>>()
    };
    clients.iter().flat_map(of_client).collect()
}

fn override_info(policy: &OverridePolicy, client: ClientKind, property: &str, value: Option<&str>) -> ConfigInfo {
    let given = NullableProperties::from([(property.to_owned(), value.map(Into::into))]);
    let mut info = match client_key(client, property) {
        Some(key) => {
            let mut checked = key.check(&given);
            if key.config_type == ConfigType::Class && checked.value == ConfigValue::Text(String::new()) {
                checked.errors.push(format!("Invalid value  for configuration {property}: Class  could not be found."));
            }
            prefixed(client.prefix(), &key, checked)
        }
        None => {
            let name = format!("{}{property}", client.prefix());
            let value = value.map_or(ConfigValue::Null, |text| ConfigValue::Text(text.into()));
            ConfigInfo { definition: None, value: Some(CheckedValue { value, ..CheckedValue::new(name) }) }
        }
    };
    if let (Some(value), Some(refusal)) = (&mut info.value, policy.refusal(property)) {
        value.errors.insert(0, refusal);
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str) -> Result<OverridePolicy, String> {
        OverridePolicy::from_worker(&Properties::from([(POLICY.into(), name.into())]))
    }

    #[test]
    fn a_policy_has_a_short_name_and_a_class_name() {
        assert_eq!(policy("None"), Ok(OverridePolicy::None));
        assert_eq!(
            policy("org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy"),
            Ok(OverridePolicy::Principal)
        );
        assert_eq!(policy("NoneConnectorClientConfigOverridePolicy"), Ok(OverridePolicy::None));
        assert_eq!(OverridePolicy::from_worker(&Properties::new()), Ok(OverridePolicy::All));
        assert!(policy("Some").unwrap_err().contains("set it to All, None, Principal or Allowlist"));
    }

    #[test]
    fn a_value_of_the_wrong_type_is_an_error_at_its_key() {
        let config = NullableProperties::from([("producer.override.linger.ms".into(), Some("abc".into()))]);
        let infos = override_infos(&OverridePolicy::All, &[ClientKind::Producer], &config);
        let errors = &infos[0].value.as_ref().unwrap().errors;
        assert_eq!(errors, &["Invalid value abc for configuration linger.ms: Not a number of type LONG"]);
    }
}
