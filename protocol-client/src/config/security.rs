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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{ClientConfig, SaslMechanism, TrustConfig};
    use super::*;

    const LOGIN: &str =
        "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"a\" password=\"hunter2\";";

    fn read(pairs: &[(&str, &str)]) -> Result<SecurityConfig, ConfigError> {
        let all = [&[("bootstrap.servers", "one:9092")], pairs].concat();
        let properties: BTreeMap<_, _> =
            all.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let (config, unknown) = ClientConfig::from_properties(&properties)?;
        assert_eq!(unknown, Vec::<String>::new());
        Ok(config.security)
    }

    fn refused(pairs: &[(&str, &str)]) -> String {
        let error = read(pairs).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2"), "{text}");
        text
    }

    #[test]
    fn the_protocol_says_which_parts_there_are() {
        for (protocol, tls, sasl) in [
            ("PLAINTEXT", false, false),
            ("ssl", true, false),
            ("SASL_PLAINTEXT", false, true),
            ("SASL_SSL", true, true),
        ] {
            let pairs =
                [("security.protocol", protocol), ("sasl.mechanism", "SCRAM-SHA-512"), ("sasl.jaas.config", LOGIN)];
            let config = read(&pairs).unwrap();
            assert_eq!((config.tls.is_some(), config.sasl.is_some()), (tls, sasl), "{protocol}");
            assert_eq!(config.protocol(), protocol.to_uppercase());
            assert!(!format!("{config:?}").contains("hunter2"));
        }
        assert!(refused(&[("security.protocol", "TLS")]).contains("SASL_SSL"));
    }

    #[test]
    fn settings_of_another_protocol_are_known_and_not_looked_at() {
        let config = read(&[("ssl.truststore.type", "BCFKS"), ("sasl.mechanism", "GSSAPI")]).unwrap();
        assert_eq!(config, SecurityConfig::default());
    }

    #[test]
    fn tls_settings_are_read_under_kafkas_names() {
        let tls = |pairs: &[(&str, &str)]| read(&[&[("security.protocol", "SSL")], pairs].concat());
        let plain = tls(&[]).unwrap().tls.unwrap();
        assert_eq!(plain, TlsConfig::default());
        let chosen = tls(&[
            ("ssl.endpoint.identification.algorithm", ""),
            ("ssl.enabled.protocols", "TLSv1.1, TLSv1.3"),
            ("ssl.cipher.suites", "A, B"),
            ("ssl.provider", "BC"),
            ("ssl.truststore.type", "pem"),
            ("ssl.truststore.certificates", "text"),
        ]);
        let chosen = chosen.unwrap().tls.unwrap();
        assert!(!chosen.verify_host_name && chosen.tls13 && !chosen.tls12);
        assert_eq!(chosen.cipher_suites, ["A", "B"]);
        assert_eq!(chosen.trust, TrustConfig::Inline("text".to_owned()));
    }

    #[test]
    fn tls_settings_that_cannot_be_are_refused_by_name() {
        let cases: [(&str, &[(&str, &str)]); 9] = [
            ("ssl.truststore.type", &[("ssl.truststore.location", "x"), ("ssl.truststore.type", "BCFKS")]),
            ("ssl.truststore.type", &[("ssl.truststore.certificates", "x")]),
            ("ssl.truststore.location", &[("ssl.truststore.certificates", "x"), ("ssl.truststore.location", "y")]),
            ("ssl.keystore.key", &[("ssl.keystore.type", "PEM"), ("ssl.keystore.certificate.chain", "x")]),
            ("ssl.keystore.certificate.chain", &[("ssl.keystore.type", "PEM"), ("ssl.keystore.key", "hunter2")]),
            ("ssl.enabled.protocols", &[("ssl.enabled.protocols", "TLSv1.1")]),
            ("ssl.enabled.protocols", &[("ssl.enabled.protocols", "TLSv1.4")]),
            ("ssl.endpoint.identification.algorithm", &[("ssl.endpoint.identification.algorithm", "ldaps")]),
            ("ssl.engine.factory.class", &[("ssl.engine.factory.class", "x.Y")]),
        ];
        for (key, pairs) in cases {
            let text = refused(&[&[("security.protocol", "SSL")], pairs].concat());
            assert!(text.contains(key), "{key}: {text}");
        }
    }

    #[test]
    fn sasl_settings_that_cannot_be_are_refused_by_name_and_without_the_password() {
        let cases: [(&str, &[(&str, &str)]); 9] = [
            ("sasl.mechanism", &[("sasl.jaas.config", LOGIN)]),
            ("sasl.mechanism", &[("sasl.mechanism", "GSSAPI"), ("sasl.jaas.config", LOGIN)]),
            ("sasl.mechanism", &[("sasl.mechanism", "OAUTHBEARER"), ("sasl.jaas.config", LOGIN)]),
            ("sasl.jaas.config", &[("sasl.mechanism", "PLAIN")]),
            ("PlainLoginModule", &[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", LOGIN)]),
            ("username", &[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", NAMELESS)]),
            ("semicolon", &[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", "hunter2 required password=hunter2")]),
            ("tokenauth", &[("sasl.mechanism", "SCRAM-SHA-256"), ("sasl.jaas.config", TOKEN)]),
            ("sasl.login.class", &[("sasl.mechanism", "PLAIN"), ("sasl.login.class", "x.Y")]),
        ];
        for (words, pairs) in cases {
            let text = refused(&[&[("security.protocol", "SASL_SSL")], pairs].concat());
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    const NAMELESS: &str = "org.apache.kafka.common.security.plain.PlainLoginModule required password=\"hunter2\";";
    const TOKEN: &str = "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"a\" password=\"hunter2\" tokenauth=true;";

    #[test]
    fn a_login_is_read_from_javas_line() {
        let pairs =
            [("security.protocol", "SASL_PLAINTEXT"), ("sasl.mechanism", "SCRAM-SHA-256"), ("sasl.jaas.config", LOGIN)];
        let sasl = read(&pairs).unwrap().sasl.unwrap();
        assert_eq!((sasl.mechanism, sasl.username.as_str()), (SaslMechanism::ScramSha256, "a"));
        assert_eq!(sasl.password.expose(), "hunter2");
    }
}
