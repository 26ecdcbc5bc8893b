//! `sasl.*`: the mechanism and the credentials.
//!
//! PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; GSSAPI (Kafka's default) and OAUTHBEARER are refused by name. Their settings,
//! and those of Java's login threads, are known and not looked at. Left out: delegation tokens (`tokenauth`), callback
//! handlers, a JAAS file named by a Java system property.
//!
//! Source: the `sasl.*` rows of Kafka's producer configuration, KIP-85 (`sasl.jaas.config`).

use std::fmt;

use super::jaas;
use super::parse::{ConfigError, Properties};
use super::secret::Secret;

pub(super) const KEYS: &[&str] = &[
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.mechanism",
];

const JAAS: &str = "sasl.jaas.config";
const MECHANISMS: &str = "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512";
const PLAIN_MODULE: &str = "org.apache.kafka.common.security.plain.PlainLoginModule";
const SCRAM_MODULE: &str = "org.apache.kafka.common.security.scram.ScramLoginModule";

/// Who we say we are, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslConfig {
    /// `sasl.mechanism`.
    pub mechanism: SaslMechanism,
    /// The name to log in by.
    pub username: String,
    /// Its password.
    pub password: Secret,
}

/// The mechanisms that this client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaslMechanism {
    /// RFC 4616. The password travels as it is: use it over TLS.
    Plain,
    /// RFC 5802 with SHA-256 (RFC 7677).
    ScramSha256,
    /// RFC 5802 with SHA-512.
    ScramSha512,
}

impl SaslMechanism {
    /// As SASL names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }

    fn module(self) -> &'static str {
        match self {
            Self::Plain => PLAIN_MODULE,
            Self::ScramSha256 | Self::ScramSha512 => SCRAM_MODULE,
        }
    }
}

impl fmt::Display for SaslMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl SaslConfig {
    pub(super) fn read(read: &mut Properties<'_>) -> Result<Self, ConfigError> {
        let reason = "Java callback handlers and login classes cannot be plugged in";
        for key in ["sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class"] {
            read.none(key, reason)?;
        }
        let mechanism = mechanism(read.filled("sasl.mechanism"))?;
        let mut entry = jaas::parse(read.required(JAAS)?).map_err(|reason| unusable(&reason))?;
        if entry.module != mechanism.module() {
            // The class name is shown only where it is one of Kafka's: anything else may be a misplaced password.
            let found = [PLAIN_MODULE, SCRAM_MODULE].into_iter().find(|module| entry.module == *module);
            return Err(unusable(&format!(
                "with sasl.mechanism {mechanism} its login module must be {}{}",
                mechanism.module(),
                found.map(|module| format!(", not {module}")).unwrap_or_default(),
            )));
        }
        if entry.options.get("tokenauth").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(unusable("delegation tokens (tokenauth) are not supported; use a SCRAM user"));
        }
        let mut option = |name: &str| match entry.options.remove(name) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(unusable(&format!("its option {name} is missing or empty; write {name}=\"…\""))),
        };
        let (username, password) = (option("username")?, option("password")?);
        if username.contains('\0') || password.contains('\0') {
            return Err(unusable("a zero character cannot be part of a name or a password"));
        }
        Ok(Self { mechanism, username, password: Secret::new(password) })
    }
}

fn mechanism(given: Option<&str>) -> Result<SaslMechanism, ConfigError> {
    let refused = |reason: &str| {
        let reason = format!("{reason}; set it to {MECHANISMS}");
        Err(ConfigError::Unusable { key: "sasl.mechanism".to_owned(), reason })
    };
    match given {
        Some("PLAIN") => Ok(SaslMechanism::Plain),
        Some("SCRAM-SHA-256") => Ok(SaslMechanism::ScramSha256),
        Some("SCRAM-SHA-512") => Ok(SaslMechanism::ScramSha512),
        None => refused("its default is GSSAPI, and Kerberos is not supported"),
        Some("GSSAPI") => refused("GSSAPI is Kerberos, which is not supported"),
        Some("OAUTHBEARER") => refused("OAUTHBEARER is not supported"),
        Some(value) => Err(ConfigError::Invalid {
            key: "sasl.mechanism".to_owned(),
            value: value.to_owned(),
            allowed: MECHANISMS.to_owned(),
        }),
    }
}

fn unusable(reason: &str) -> ConfigError {
    ConfigError::Unusable { key: JAAS.to_owned(), reason: reason.to_owned() }
}
