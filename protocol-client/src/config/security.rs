//! `security.protocol` and what hangs on it: whether connections are encrypted, and how we say who we are.
//!
//! Both parts are plain values here; files are read when a [`Cluster`](crate::cluster::Cluster) is made. Settings of the
//! protocol that is not chosen are known but not looked at, as in Java: a file may carry `ssl.*` for another day.

use super::parse::{ConfigError, Properties};
use super::sasl::SaslConfig;
use super::tls::TlsConfig;

const KEY: &str = "security.protocol";

/// How connections are protected. The default is Kafka's: `PLAINTEXT`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecurityConfig {
    /// Set by `SSL` and `SASL_SSL`.
    pub tls: Option<TlsConfig>,
    /// Set by `SASL_PLAINTEXT` and `SASL_SSL`.
    pub sasl: Option<SaslConfig>,
}

impl SecurityConfig {
    /// The value of `security.protocol` that means this.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        match (&self.tls, &self.sasl) {
            (None, None) => "PLAINTEXT",
            (Some(_), None) => "SSL",
            (None, Some(_)) => "SASL_PLAINTEXT",
            (Some(_), Some(_)) => "SASL_SSL",
        }
    }

    pub(super) fn read(read: &mut Properties<'_>) -> Result<Self, ConfigError> {
        let protocol = read.optional(KEY).unwrap_or("PLAINTEXT").to_ascii_uppercase();
        let (tls, sasl) = match protocol.as_str() {
            "" | "PLAINTEXT" => (false, false),
            "SSL" => (true, false),
            "SASL_PLAINTEXT" => (false, true),
            "SASL_SSL" => (true, true),
            _ => {
                return Err(ConfigError::Invalid {
                    key: KEY.to_owned(),
                    value: protocol,
                    allowed: "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL".to_owned(),
                });
            }
        };
        read.know_all(super::tls::KEYS);
        read.know_all(super::sasl::KEYS);
        Ok(Self {
            tls: tls.then(|| TlsConfig::read(read)).transpose()?,
            sasl: sasl.then(|| SaslConfig::read(read)).transpose()?,
        })
    }
}
