//! What to grant to whom when brokers refuse: the exact resource and the operations, and the principal as far as it can be
//! told from here. Pure. Source: KIP-618 (permissions), Kafka's authorization guide.

use oncewire_api::Properties;

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource<'a> {
    /// A topic that records go to.
    DataTopic(&'a str),
    /// A topic that offsets are read from and written to.
    OffsetsTopic(&'a str),
    /// A transactional id.
    TransactionalId(&'a str),
}

/// What to grant for a broker's error code; `None` when it is no matter of permissions.
pub fn advice(code: i16, resource: &Resource<'_>) -> Option<String> {
    const TOPIC: i16 = 29;
    const CLUSTER: i16 = 31;
    const TRANSACTIONAL_ID: i16 = 53;
    match (code, resource) {
        (TOPIC, Resource::DataTopic(topic)) => {
            Some(format!("grant Write and Describe (and Create, if it is to be made) on Topic {topic:?}"))
        }
        (TOPIC, Resource::OffsetsTopic(topic)) => {
            Some(format!("grant Read, Write and Describe (and Create, if it is to be made) on Topic {topic:?}"))
        }
        (TRANSACTIONAL_ID, Resource::TransactionalId(id)) => {
            Some(format!("grant Write and Describe on TransactionalId {id:?}"))
        }
        (CLUSTER, Resource::OffsetsTopic(topic) | Resource::DataTopic(topic)) => {
            Some(format!("grant Create on Topic {topic:?}, and IdempotentWrite on Cluster before Kafka 2.8"))
        }
        (CLUSTER, Resource::TransactionalId(_)) => {
            Some("grant IdempotentWrite on Cluster (brokers before Kafka 2.8)".to_owned())
        }
        _ => None,
    }
}

/// Who a client with these properties is to the brokers, as far as its properties tell.
pub fn principal(client: &Properties) -> String {
    let protocol = client.get("security.protocol").map(|text| text.to_ascii_uppercase()).unwrap_or_default();
    if protocol.starts_with("SASL") {
        return match client.get("sasl.jaas.config").and_then(|config| quoted_after(config, "username")) {
            Some(name) => format!("User:{name}"),
            None => "the user of sasl.jaas.config".to_owned(),
        };
    }
    match protocol.as_str() {
        "SSL" => "the subject of the client's certificate (ssl.keystore.*)".to_owned(),
        _ => "User:ANONYMOUS".to_owned(),
    }
}

/// The value of `key="value"` in a JAAS line.
fn quoted_after<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    let rest = config[config.find(key)? + key.len()..].trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    rest[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_and_its_operations_are_named() {
        assert_eq!(
            advice(53, &Resource::TransactionalId("g-c-0")).unwrap(),
            "grant Write and Describe on TransactionalId \"g-c-0\""
        );
        assert!(advice(29, &Resource::OffsetsTopic("o")).unwrap().contains("Read, Write and Describe"));
        assert_eq!(advice(3, &Resource::DataTopic("t")), None);
    }

    #[test]
    fn the_principal_comes_from_the_jaas_line() {
        let map = |pairs: &[(&str, &str)]| -> Properties {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let jaas = "x.ScramLoginModule required username=\"alice\" password=\"secret\";";
        let client = map(&[("security.protocol", "SASL_SSL"), ("sasl.jaas.config", jaas)]);
        assert_eq!(principal(&client), "User:alice");
        assert_eq!(principal(&map(&[])), "User:ANONYMOUS");
        assert!(
            !principal(&map(&[("security.protocol", "SASL_PLAINTEXT"), ("sasl.jaas.config", "password=\"x\"")]))
                .contains('x')
        );
    }
}
