//! The properties of Kafka's own clients, as far as a form shows them: type, default, importance.
//!
//! `client_keys.tsv` is written by `tests/golden/validate/ClientKeys.java` from the clients of Apache Kafka 4.3.1.

use oncewire_api::config_def::{ConfigKey, ConfigType, Fallback, Importance};

use crate::ClientKind;

const TABLE: &str = include_str!("client_keys.tsv");

fn letter(client: ClientKind) -> char {
    match client {
        ClientKind::Producer => 'p',
        ClientKind::Consumer => 'c',
        ClientKind::Admin => 'a',
    }
}

/// The names of all properties of a client of Kafka's.
pub fn client_keys(client: ClientKind) -> impl Iterator<Item = &'static str> {
    let letter = letter(client);
    TABLE.lines().filter_map(move |line| {
        let (clients, rest) = line.split_once('\t')?;
        clients.contains(letter).then(|| rest.split('\t').next())?
    })
}

/// The default of a client's property as text; `None` where there is none, where it is null, and for what Kafka's client does not
/// know.
pub fn client_default(client: ClientKind, property: &str) -> Option<String> {
    match client_key(client, property)?.fallback {
        Fallback::Text(text) => Some(text),
        Fallback::Required | Fallback::Null => None,
    }
}

/// The definition of a client's property; `None` when Kafka's client does not know it.
pub(crate) fn client_key(client: ClientKind, property: &str) -> Option<ConfigKey> {
    let letter = letter(client);
    TABLE.lines().find_map(|line| {
        let mut columns = line.split('\t');
        let (clients, name) = (columns.next()?, columns.next()?);
        if name != property || !clients.contains(letter) {
            return None;
        }
        key(name, columns.next()?, columns.next()?, columns.next()?)
    })
}

fn key(name: &str, kind: &str, default: &str, importance: &str) -> Option<ConfigKey> {
    let kind = match kind {
        "BOOLEAN" => ConfigType::Boolean,
        "SHORT" => ConfigType::Short,
        "INT" => ConfigType::Int,
        "LONG" => ConfigType::Long,
        "DOUBLE" => ConfigType::Double,
        "LIST" => ConfigType::List,
        "CLASS" => ConfigType::Class,
        "PASSWORD" => ConfigType::Password,
        "STRING" => ConfigType::String,
        _ => return None,
    };
    let importance = match importance {
        "HIGH" => Importance::High,
        "MEDIUM" => Importance::Medium,
        "LOW" => Importance::Low,
        _ => return None,
    };
    let doc = "A property of Kafka's client; see the documentation of Apache Kafka.";
    Some(match default {
        "required" => ConfigKey::required(name, kind, importance, doc),
        "null" => ConfigKey::optional(name, kind, importance, doc),
        text => ConfigKey::with_default(name, kind, text.strip_prefix('=')?, importance, doc),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_property() {
        for line in TABLE.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns.len(), 5, "{line}");
            assert!(key(columns[1], columns[2], columns[3], columns[4]).is_some(), "{line}");
        }
        assert!(TABLE.lines().count() > 100);
    }

    #[test]
    fn clients_have_properties_of_their_own() {
        assert!(client_key(ClientKind::Producer, "acks").is_some());
        assert!(client_key(ClientKind::Consumer, "acks").is_none());
        assert!(client_key(ClientKind::Admin, "security.protocol").is_some());
        assert!(client_key(ClientKind::Producer, "ack").is_none());
        assert!(client_keys(ClientKind::Producer).any(|key| key == "acks"));
        assert!(client_keys(ClientKind::Consumer).all(|key| key != "acks"));
        assert_eq!(client_default(ClientKind::Producer, "acks").as_deref(), Some("all"));
        assert_eq!(client_default(ClientKind::Admin, "ssl.provider"), None);
    }
}
