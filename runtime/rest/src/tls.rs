//! TLS of the listeners and of requests to other workers: Java's prefixes, over the client's stores and cryptography.
//!
//! As in Java, a prefix (`listeners.https.`, `admin.listeners.https.`) counts for all keys or for none: when any key has it, the plain ones are not
//! looked at. Reading the stores (PEM, JKS, PKCS#12) is `oncewire_client::net::tls`'s work, and happens only where https is spoken.

use std::collections::BTreeMap;
use std::sync::Arc;

use oncewire_client::config::{ConfigError, TlsConfig, TrustConfig};
use oncewire_client::net::tls::{self, ClientCertificates};
use rustls::{ClientConfig, ServerConfig};

/// What the `ssl.*` keys under a prefix say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// What the keys begin with; empty for the plain ones.
    prefix: String,
    /// What a key that is missing should begin with: the prefix for this use alone, unless plain ones are used already.
    advised_prefix: String,
    keys: TlsConfig,
    /// Whether clients show a certificate.
    clients: ClientCertificates,
}

impl TlsSettings {
    /// Reads the keys under `prefix`, or the plain ones.
    ///
    /// # Errors
    /// A value that cannot be used, by the name of its key.
    pub fn from_properties(properties: &BTreeMap<String, String>, prefix: &str) -> Result<Self, String> {
        let own_prefix = prefix;
        let prefix = if properties.keys().any(|name| name.starts_with(prefix)) { prefix } else { "" };
        let keys: BTreeMap<String, String> = properties
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.trim().to_owned())))
            .collect();
        let clients = match keys.get("ssl.client.auth").map_or("", String::as_str).to_ascii_lowercase().as_str() {
            "none" | "" => ClientCertificates::NotAsked,
            "requested" => ClientCertificates::Requested,
            "required" => ClientCertificates::Required,
            other => {
                return Err(format!("{prefix}ssl.client.auth is '{other}'; it can be none, requested or required"));
            }
        };
        let keys = TlsConfig::from_properties(&keys).map_err(|error| told(prefix, error))?;
        let says_something = keys != TlsConfig::default() || clients != ClientCertificates::NotAsked;
        let uses_plain = prefix.is_empty() && says_something;
        let advised_prefix = if uses_plain { "" } else { own_prefix }.to_owned();
        Ok(TlsSettings { prefix: prefix.to_owned(), advised_prefix, keys, clients })
    }

    /// Whether it is said whom to trust.
    pub fn trusts_someone(&self) -> bool {
        self.keys.trust != TrustConfig::System
    }

    /// What a listener needs.
    ///
    /// # Errors
    /// What is wrong, by the name of the key.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, String> {
        let config = tls::server_config(&self.keys, self.clients);
        config.map(Arc::new).map_err(|error| {
            // A key that is to be set is best set where it counts for nothing else.
            let prefix = if matches!(error, ConfigError::Missing { .. }) { &self.advised_prefix } else { &self.prefix };
            format!("https: {}", told(prefix, error))
        })
    }

    /// What requests to other workers need.
    ///
    /// # Errors
    /// What is wrong, by the name of the key.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, String> {
        let config = tls::client_config(&self.keys);
        config.map(Arc::new).map_err(|error| format!("https: {}", told(&self.prefix, error)))
    }
}

/// The error, with its key's full name.
fn told(prefix: &str, mut error: ConfigError) -> String {
    match &mut error {
        // The processor is to blame, and no key under the prefix.
        ConfigError::Unusable { key, reason } if !key.starts_with("ssl.") => return std::mem::take(reason),
        ConfigError::Missing { key }
        | ConfigError::Invalid { key, .. }
        | ConfigError::Refused { key, .. }
        | ConfigError::Unusable { key, .. } => key.insert_str(0, prefix),
        ConfigError::Conflict { what } if !prefix.is_empty() => *what = format!("of the keys under {prefix}: {what}"),
        ConfigError::Conflict { .. } => {}
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)], prefix: &str) -> Result<TlsSettings, String> {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TlsSettings::from_properties(&properties, prefix)
    }

    #[test]
    fn a_prefix_counts_for_all_keys_or_for_none() {
        let plain =
            [("ssl.client.auth", "required"), ("ssl.truststore.certificates", "x"), ("ssl.truststore.type", "PEM")];
        let settings = read(&plain, "listeners.https.").expect("settings");
        assert_eq!(settings.clients, ClientCertificates::Required);
        assert!(settings.trusts_someone());
        let mixed = [&plain[..], &[("listeners.https.ssl.keystore.location", "k")]].concat();
        let settings = read(&mixed, "listeners.https.").expect("settings");
        assert_eq!((settings.clients, settings.trusts_someone()), (ClientCertificates::NotAsked, false));
    }

    #[test]
    fn wrong_values_name_their_keys_in_full() {
        for (name, value) in [
            ("ssl.client.auth", "maybe"),
            ("ssl.enabled.protocols", "SSLv9"),
            ("ssl.endpoint.identification.algorithm", "ldaps"),
            ("ssl.keystore.type", "BKS"),
        ] {
            let (key, location) = (format!("x.{name}"), ("x.ssl.keystore.location", "/k"));
            let error = read(&[(&key, value), location], "x.").expect_err("refused");
            assert!(error.contains(&key), "{error}");
        }
    }

    #[test]
    fn a_listener_without_a_key_store_names_the_key_that_it_needs() {
        let settings = read(&[("x.ssl.client.auth", "none")], "x.").expect("settings");
        let error = settings.server_config().expect_err("nothing to show");
        assert_eq!(error, "https: setting x.ssl.keystore.location is missing; set it");
    }

    #[test]
    fn clients_certificates_are_not_checked_against_the_systems_authorities() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/server.pem");
        for auth in ["requested", "required"] {
            let keys = [("ssl.keystore.location", file), ("ssl.keystore.type", "PEM"), ("ssl.client.auth", auth)];
            let error = read(&keys, "x.").expect("settings").server_config().expect_err("anybody could come in");
            assert_eq!(error, "https: setting ssl.truststore.location is missing; set it");
        }
    }

    #[test]
    fn what_the_processor_lacks_is_not_put_down_to_a_key() {
        let error = ConfigError::Unusable { key: "security.protocol".to_owned(), reason: "no AES".to_owned() };
        assert_eq!(told("listeners.https.", error), "no AES");
    }

    #[test]
    fn a_private_key_is_not_printed() {
        let pairs = [
            ("ssl.keystore.key", "secret-key-text"),
            ("ssl.keystore.certificate.chain", "c"),
            ("ssl.keystore.type", "PEM"),
        ];
        assert!(!format!("{:?}", read(&pairs, "x.").expect("settings")).contains("secret"));
    }
}
