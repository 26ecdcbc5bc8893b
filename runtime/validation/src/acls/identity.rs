//! Whom brokers take a client for, as far as its properties tell: `security.protocol` decides which of its credentials count.
//!
//! Of the credentials nothing but the user's name is looked at. The subject of a certificate is not read: the broker's
//! `ssl.principal.mapping.rules` make the principal of it.

use oncewire_api::Properties;

/// Where a client's properties stand: what their keys begin with, the properties, and whose they are in words.
pub(super) type Layer<'a> = (&'a str, &'a Properties, &'a str);

/// Whom brokers see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// As `User:name`, where the properties give it away.
    pub(super) principal: Option<String>,
    /// Where it comes from, in words.
    pub(super) hint: String,
}

/// Everybody without credentials.
const ANONYMOUS: &str = "User:ANONYMOUS";

impl Identity {
    /// Of the layers, weakest first, the last that sets a key counts for it.
    pub(super) fn new(layers: &[Layer<'_>]) -> Self {
        let find = |key: &str| {
            layers.iter().rev().find_map(|(prefix, properties, whose)| {
                let value = properties.get(&format!("{prefix}{key}"))?.trim();
                (!value.is_empty()).then_some((value, *whose))
            })
        };
        let protocol = find("security.protocol").map_or("PLAINTEXT", |(protocol, _)| protocol).to_ascii_uppercase();
        match protocol.as_str() {
            "SASL_PLAINTEXT" | "SASL_SSL" => match find("sasl.jaas.config") {
                Some((jaas, whose)) => match user_name(jaas) {
                    Some(name) => Self { principal: Some(format!("User:{name}")), hint: whose.to_owned() },
                    None => Self { principal: None, hint: format!("{whose}; sasl.jaas.config names no user") },
                },
                None => Self { principal: None, hint: format!("{protocol} without sasl.jaas.config") },
            },
            "SSL" => match find("ssl.keystore.location").or_else(|| find("ssl.keystore.certificate.chain")) {
                Some((_, whose)) => {
                    Self { principal: None, hint: format!("{whose}: the subject of the certificate in ssl.keystore.*") }
                }
                None => Self::anonymous("SSL without a certificate (ssl.keystore.*)"),
            },
            _ => Self::anonymous("no security.protocol, so without credentials"),
        }
    }

    fn anonymous(why: &str) -> Self {
        Self { principal: Some(ANONYMOUS.to_owned()), hint: why.to_owned() }
    }
}

/// The user of a login module's line; `None` when it names none.
fn user_name(jaas: &str) -> Option<&str> {
    let after = jaas.split_once("username")?.1.trim_start().strip_prefix('=')?.trim_start();
    let name = match after.chars().next().filter(|quote| matches!(quote, '"' | '\'')) {
        Some(quote) => after[1..].split(quote).next()?,
        None => after.split([' ', ';', '\t', '\n', '\r']).next()?,
    };
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> (Option<String>, String) {
        let properties = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let identity = Identity::new(&[("", &properties, "the worker's credentials")]);
        (identity.principal, identity.hint)
    }

    #[test]
    fn the_protocol_decides_which_credentials_count() {
        let jaas = ("sasl.jaas.config", "x.ScramLoginModule required username=\"alice\" password=\"tiger\";");
        let store = ("ssl.keystore.location", "/k.p12");
        let user = |name: &str| Some(format!("User:{name}"));
        assert_eq!(of(&[]).0, user("ANONYMOUS"));
        assert_eq!(of(&[jaas, store]).0, user("ANONYMOUS"), "they are not shown in plain text");
        assert_eq!(of(&[("security.protocol", "sasl_ssl"), jaas, store]).0, user("alice"));
        assert_eq!(
            of(&[("security.protocol", "SSL"), jaas]).0,
            user("ANONYMOUS"),
            "only the broker shows a certificate"
        );
        let (nobody, hint) = of(&[("security.protocol", "SSL"), jaas, store]);
        assert!(nobody.is_none() && hint.contains("certificate"), "{hint}");
        let (nobody, hint) = of(&[("security.protocol", "SASL_PLAINTEXT"), store]);
        assert!(nobody.is_none() && hint.contains("without sasl.jaas.config"), "{hint}");
    }

    #[test]
    fn a_user_is_found_in_every_way_of_writing_the_line() {
        for line in [
            "x required username=alice password=tiger;",
            "x required username=alice;",
            "x required password='tiger' username = 'alice';",
            "x required\tusername=\"alice\"\tpassword=tiger;",
        ] {
            assert_eq!(user_name(line), Some("alice"), "{line}");
        }
        assert_eq!(user_name("x required password=tiger;"), None);
        assert_eq!(user_name("x required username=\"\";"), None);
    }
}
