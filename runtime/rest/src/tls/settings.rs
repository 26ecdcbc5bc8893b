//! The `ssl.*` keys of a listener, read but not acted upon. Pure.
//!
//! As in Java, a prefix (`listeners.https.`, `admin.listeners.https.`) counts for all keys or for none: when any key has it, the plain ones are not
//! looked at.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

/// How to make a PEM file of a keystore.
pub(super) const CONVERT: &str = "convert it with: keytool -importkeystore -srckeystore keystore.jks -destkeystore keystore.p12 -deststoretype \
     PKCS12 && openssl pkcs12 -in keystore.p12 -nodes -out keystore.pem, and set the type to PEM";

/// Certificates or a key, in a file or in the property itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The key that it comes from.
    pub name: String,
    /// The file.
    pub path: Option<PathBuf>,
    /// The text, when there is no file.
    pub inline: String,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The text may be a private key.
        write!(formatter, "Pem({} {:?})", self.name, self.path)
    }
}

/// `ssl.client.auth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// No certificate is asked for.
    None,
    /// One is asked for, and checked when it comes.
    Requested,
    /// None, no connection.
    Required,
}

/// What the `ssl.*` keys say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    prefix: String,
    /// The worker's certificate chain.
    pub certificates: Option<Pem>,
    /// Its private key.
    pub key: Option<Pem>,
    /// Who is trusted.
    pub trust: Option<Pem>,
    /// Whether clients show a certificate.
    pub client_auth: ClientAuth,
    tls12: bool,
    tls13: bool,
}

impl TlsSettings {
    /// Reads the keys under `prefix`, or the plain ones.
    ///
    /// # Errors
    /// A value that cannot be used, by the name of its key.
    pub fn from_properties(properties: &BTreeMap<String, String>, prefix: &str) -> Result<Self, String> {
        let prefixed = properties.keys().any(|name| name.starts_with(prefix));
        let prefix = if prefixed { prefix } else { "" };
        let keys = Keys { properties, prefix };
        let keystore = keys.store("ssl.keystore.type", "ssl.keystore.location")?;
        let (certificates, key) = match keystore {
            Some(file) => (Some(file.clone()), Some(file)),
            None => (keys.inline("ssl.keystore.certificate.chain"), keys.inline("ssl.keystore.key")),
        };
        let trust = match keys.store("ssl.truststore.type", "ssl.truststore.location")? {
            Some(file) => Some(file),
            None => keys.inline("ssl.truststore.certificates"),
        };
        if keys.value("ssl.endpoint.identification.algorithm").is_some_and(|value| value.is_empty()) {
            return Err(format!(
                "{}: host names are always checked; give the workers certificates with their names, and take the key out",
                keys.name("ssl.endpoint.identification.algorithm")
            ));
        }
        let (tls12, tls13) = keys.protocols()?;
        Ok(TlsSettings {
            prefix: prefix.to_owned(),
            certificates,
            key,
            trust,
            client_auth: keys.client_auth()?,
            tls12,
            tls13,
        })
    }

    /// A key's full name.
    pub(super) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(super) fn missing(&self, key: &str, what: &str) -> String {
        format!("{} is needed for https: {what}", self.name(key))
    }

    pub(super) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        static OLD: [&SupportedProtocolVersion; 1] = [&TLS12];
        static NEW: [&SupportedProtocolVersion; 1] = [&TLS13];
        static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        match (self.tls12, self.tls13) {
            (true, false) => &OLD,
            (false, true) => &NEW,
            _ => &BOTH,
        }
    }
}

struct Keys<'a> {
    properties: &'a BTreeMap<String, String>,
    prefix: &'a str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.properties.get(&self.name(key)).map(|value| value.trim())
    }

    fn inline(&self, key: &str) -> Option<Pem> {
        let text = self.value(key).filter(|text| !text.is_empty())?;
        Some(Pem { name: self.name(key), path: None, inline: text.to_owned() })
    }

    fn store(&self, kind: &str, location: &str) -> Result<Option<Pem>, String> {
        let Some(path) = self.value(location).filter(|path| !path.is_empty()) else { return Ok(None) };
        match self.value(kind) {
            Some(value) if value.eq_ignore_ascii_case("PEM") => {
                Ok(Some(Pem { name: self.name(location), path: Some(PathBuf::from(path)), inline: String::new() }))
            }
            other => Err(format!(
                "{} is {}; only PEM is supported: {CONVERT}",
                self.name(kind),
                other.map_or("not set, which means JKS".to_owned(), |value| format!("'{value}'"))
            )),
        }
    }

    fn client_auth(&self) -> Result<ClientAuth, String> {
        match self.value("ssl.client.auth").unwrap_or("none").to_ascii_lowercase().as_str() {
            "none" | "" => Ok(ClientAuth::None),
            "requested" => Ok(ClientAuth::Requested),
            "required" => Ok(ClientAuth::Required),
            other => {
                Err(format!("{} is '{other}'; it can be none, requested or required", self.name("ssl.client.auth")))
            }
        }
    }

    fn protocols(&self) -> Result<(bool, bool), String> {
        let list = self.value("ssl.enabled.protocols").filter(|list| !list.is_empty()).unwrap_or("TLSv1.2,TLSv1.3");
        let has = |version: &str| list.split(',').any(|part| part.trim() == version);
        let (tls12, tls13) = (has("TLSv1.2"), has("TLSv1.3"));
        if !tls12 && !tls13 {
            return Err(format!("{} is '{list}'; it must name TLSv1.2 or TLSv1.3", self.name("ssl.enabled.protocols")));
        }
        Ok((tls12, tls13))
    }
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
        let plain = [("ssl.client.auth", "required"), ("ssl.truststore.certificates", "x")];
        let settings = read(&plain, "listeners.https.").expect("settings");
        assert_eq!(settings.client_auth, ClientAuth::Required);
        let mixed = [plain[0], plain[1], ("listeners.https.ssl.keystore.key", "k")];
        let settings = read(&mixed, "listeners.https.").expect("settings");
        assert_eq!((settings.client_auth, settings.trust), (ClientAuth::None, None));
    }

    #[test]
    fn other_keystores_are_refused_with_the_way_out() {
        for pairs in [
            &[("ssl.keystore.location", "/k.jks")][..],
            &[("ssl.keystore.location", "/k.p12"), ("ssl.keystore.type", "PKCS12")][..],
        ] {
            let error = read(pairs, "x.").expect_err("refused");
            assert!(error.starts_with("ssl.keystore.type is") && error.contains("openssl pkcs12"), "{error}");
        }
    }

    #[test]
    fn wrong_values_name_their_keys() {
        for (name, value) in [
            ("ssl.client.auth", "maybe"),
            ("ssl.enabled.protocols", "SSLv3"),
            ("ssl.endpoint.identification.algorithm", ""),
        ] {
            assert!(read(&[(name, value)], "x.").expect_err("refused").starts_with(name));
        }
    }

    #[test]
    fn a_private_key_is_not_printed() {
        let settings = read(&[("ssl.keystore.key", "secret-key-text")], "x.").expect("settings");
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
