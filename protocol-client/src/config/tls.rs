//! `ssl.*`: whom we trust, who we are, which TLS.
//!
//! Kafka's names and rules, read into values in which only sensible combinations exist. Reading the files is
//! [`crate::net::tls`]'s work. Left out: what only a Java security provider understands (`ssl.provider`,
//! `ssl.keymanager.algorithm` and so on: warned about), and `ssl.engine.factory.class` (refused).
//!
//! Source: the `ssl.*` rows of Kafka's producer configuration, KIP-651 (PEM), KIP-553 (TLS 1.3).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::parse::{ConfigError, Properties};
use super::secret::Secret;

pub(super) const KEYS: &[&str] = &[
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.key.password",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "security.providers",
];

/// Keys that choose among the parts of Java's TLS; there is nothing to choose here.
const WITHOUT_EFFECT: &[&str] = &[
    "ssl.provider",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
    "security.providers",
];

/// Settings of an encrypted connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// Whose signature on a broker's certificate counts.
    pub trust: TrustConfig,
    /// Our own certificate, for brokers that ask for one.
    pub identity: Option<IdentityConfig>,
    /// `ssl.endpoint.identification.algorithm`: whether the certificate must name the host that was dialled. Default true (`https`).
    pub verify_host_name: bool,
    /// Whether TLS 1.2 may be spoken (`ssl.enabled.protocols`). Default true.
    pub tls12: bool,
    /// Whether TLS 1.3 may be spoken. Default true.
    pub tls13: bool,
    /// `ssl.cipher.suites` by their IANA names; empty for all that the provider has.
    pub cipher_suites: Vec<String>,
}

/// `ssl.truststore.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustConfig {
    /// Nothing was said: the system's roots, or Mozilla's where the system has none.
    System,
    /// `ssl.truststore.certificates`: PEM text.
    Inline(String),
    /// `ssl.truststore.location`.
    File(StoreFile),
}

/// `ssl.keystore.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityConfig {
    /// `ssl.keystore.certificate.chain` and `ssl.keystore.key`: PEM text.
    Inline {
        /// Our certificate first, then those that lead to a root.
        chain: String,
        /// The private key, PKCS#8, perhaps encrypted.
        key: Secret,
        /// `ssl.key.password`.
        key_password: Option<Secret>,
    },
    /// `ssl.keystore.location`.
    File {
        /// The store.
        store: StoreFile,
        /// `ssl.key.password`; for a JKS or PKCS#12 store its own password stands in.
        key_password: Option<Secret>,
    },
}

/// A store in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub format: StoreFormat,
    /// Its password, if one was given.
    pub password: Option<Secret>,
}

/// `ssl.truststore.type` and `ssl.keystore.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFormat {
    /// PEM text.
    Pem,
    /// JKS or PKCS#12, told apart by their first bytes: Java's own loader opens either under either name.
    Java,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            trust: TrustConfig::System,
            identity: None,
            verify_host_name: true,
            tls12: true,
            tls13: true,
            cipher_suites: Vec::new(),
        }
    }
}

impl TlsConfig {
    /// Reads the `ssl.*` keys alone, for another user of TLS than a broker's connection, such as a REST listener.
    ///
    /// # Errors
    /// A value that cannot be used, by the name of its key.
    pub fn from_properties(properties: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        Self::read(&mut Properties::new(properties))
    }

    pub(super) fn read(read: &mut Properties<'_>) -> Result<Self, ConfigError> {
        read.none("ssl.engine.factory.class", "the TLS of this client is rustls; Java engines cannot be plugged in")?;
        for key in WITHOUT_EFFECT {
            if read.filled(key).is_some() {
                tracing::warn!(
                    setting = key,
                    "this setting chooses among Java's security providers; it has no effect here"
                );
            }
        }
        read.only("ssl.protocol", &["TLSv1.3", "TLSv1.2", "TLS"], "older protocols are broken")?;
        let (tls12, tls13) = protocols(read)?;
        Ok(Self {
            trust: trust(read)?,
            identity: identity(read)?,
            verify_host_name: verify_host_name(read)?,
            tls12,
            tls13,
            cipher_suites: list(read.filled("ssl.cipher.suites").unwrap_or_default()),
        })
    }
}

/// Absent means `https`; set but empty means that names are not checked.
fn verify_host_name(read: &mut Properties<'_>) -> Result<bool, ConfigError> {
    let key = "ssl.endpoint.identification.algorithm";
    match read.optional(key) {
        None => Ok(true),
        Some("") => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("https") => Ok(true),
        Some(value) => Err(ConfigError::Invalid {
            key: key.to_owned(),
            value: value.to_owned(),
            allowed: "https, or empty for no check of the host name".to_owned(),
        }),
    }
}

fn protocols(read: &mut Properties<'_>) -> Result<(bool, bool), ConfigError> {
    let key = "ssl.enabled.protocols";
    let Some(value) = read.filled(key) else { return Ok((true, true)) };
    let (mut tls12, mut tls13) = (false, false);
    for name in list(value) {
        match name.to_ascii_lowercase().as_str() {
            "tlsv1.2" => tls12 = true,
            "tlsv1.3" => tls13 = true,
            "tlsv1" | "tlsv1.1" | "sslv3" | "sslv2hello" => {
                tracing::warn!(setting = key, protocol = name, "this protocol is broken and is never spoken");
            }
            _ => return Err(allowed(key, value, "a list of TLSv1.2 and TLSv1.3")),
        }
    }
    match tls12 || tls13 {
        true => Ok((tls12, tls13)),
        false => Err(allowed(key, value, "a list with TLSv1.2, TLSv1.3 or both")),
    }
}

fn trust(read: &mut Properties<'_>) -> Result<TrustConfig, ConfigError> {
    let certificates = read.filled("ssl.truststore.certificates");
    let store = store_file(read, "ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password")?;
    match (certificates, store) {
        (Some(_), Some(_)) => Err(both("ssl.truststore.certificates", "ssl.truststore.location")),
        (Some(text), None) => {
            inline_needs_pem(read, "ssl.truststore.type")?;
            Ok(TrustConfig::Inline(text.to_owned()))
        }
        (None, Some(store)) => Ok(TrustConfig::File(store)),
        (None, None) => Ok(TrustConfig::System),
    }
}

fn identity(read: &mut Properties<'_>) -> Result<Option<IdentityConfig>, ConfigError> {
    let chain = read.filled("ssl.keystore.certificate.chain");
    let key = read.filled("ssl.keystore.key");
    let key_password = read.filled("ssl.key.password").map(Secret::new);
    let store = store_file(read, "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password")?;
    match (chain, key, store) {
        (None, None, None) => Ok(None),
        (None, None, Some(store)) => Ok(Some(IdentityConfig::File { store, key_password })),
        (_, _, Some(_)) => Err(both("ssl.keystore.certificate.chain and ssl.keystore.key", "ssl.keystore.location")),
        (Some(chain), Some(key), None) => {
            inline_needs_pem(read, "ssl.keystore.type")?;
            Ok(Some(IdentityConfig::Inline { chain: chain.to_owned(), key: Secret::new(key), key_password }))
        }
        (Some(_), None, None) => Err(ConfigError::Missing { key: "ssl.keystore.key".to_owned() }),
        (None, Some(_), None) => Err(ConfigError::Missing { key: "ssl.keystore.certificate.chain".to_owned() }),
    }
}

fn store_file(
    read: &mut Properties<'_>,
    location: &'static str,
    kind: &'static str,
    password: &'static str,
) -> Result<Option<StoreFile>, ConfigError> {
    let Some(path) = read.filled(location) else { return Ok(None) };
    let given = read.filled(kind).unwrap_or("JKS");
    let format = match given.to_ascii_uppercase().as_str() {
        "PEM" => StoreFormat::Pem,
        "JKS" | "PKCS12" | "P12" | "PFX" => StoreFormat::Java,
        _ => return Err(allowed(kind, given, "PEM, PKCS12 or JKS; keytool -importkeystore converts other types")),
    };
    let password = read.filled(password).map(Secret::new);
    Ok(Some(StoreFile { path: PathBuf::from(path), format, password }))
}

/// As in Java, whose default type is JKS: certificates in the properties are PEM, and the type must say so.
fn inline_needs_pem(read: &mut Properties<'_>, kind: &'static str) -> Result<(), ConfigError> {
    match read.filled(kind) {
        Some(value) if value.eq_ignore_ascii_case("PEM") => Ok(()),
        other => Err(allowed(kind, other.unwrap_or("JKS"), "PEM where certificates or keys stand in the properties")),
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn both(one: &str, other: &str) -> ConfigError {
    ConfigError::Conflict { what: format!("{one} and {other} are both set; leave one of them out") }
}

fn allowed(key: &str, value: &str, allowed: &str) -> ConfigError {
    ConfigError::Invalid { key: key.to_owned(), value: value.to_owned(), allowed: allowed.to_owned() }
}
