//! One `host:port`, as written in `bootstrap.servers` or advertised by a broker.

use std::fmt;

use super::ConfigError;

const KEY: &str = "bootstrap.servers";

/// A host name or IP address and a port. Not yet looked up: names are resolved anew at each connect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BrokerAddress {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP port, 1 to 65535.
    pub port: u16,
}

impl BrokerAddress {
    /// Reads `host:port`, `[v6]:port`, and, as Kafka does, an optional `PROTOCOL://` in front.
    ///
    /// # Errors
    /// When host or port is missing or the port is no number from 1 to 65535.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let invalid = || ConfigError::Invalid {
            key: KEY.to_owned(),
            value: text.to_owned(),
            allowed: "a list of host:port, such as broker1:9092,broker2:9092".to_owned(),
        };
        let after_scheme = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (host, port) = after_scheme.rsplit_once(':').ok_or_else(invalid)?;
        let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
        let port: u16 = port.parse().map_err(|_| invalid())?;
        let host_is_usable = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '/' || c == ',');
        if !host_is_usable || port == 0 {
            return Err(invalid());
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// An address that a broker advertised, unless it is one that cannot be.
    pub(crate) fn advertised(host: &str, port: i32) -> Option<Self> {
        let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

pub(super) fn parse_list(text: &str) -> Result<Vec<BrokerAddress>, ConfigError> {
    let mut addresses = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let address = BrokerAddress::parse(part)?;
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(ConfigError::Missing { key: KEY.to_owned() });
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_host_or_port_are_refused() {
        for text in ["localhost", "localhost:", ":9092", "localhost:0", "localhost:99999", "a b:1", "http://x/y:1"] {
            assert!(BrokerAddress::parse(text).is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn a_scheme_and_brackets_are_taken_off() {
        let address = BrokerAddress::parse("PLAINTEXT://[fe80::1]:9092").unwrap();
        assert_eq!((address.host.as_str(), address.port), ("fe80::1", 9092));
    }

    #[test]
    fn an_empty_list_is_a_missing_setting() {
        assert!(matches!(parse_list(" , "), Err(ConfigError::Missing { .. })));
    }
}
