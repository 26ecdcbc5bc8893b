//! The client's one error type: variants sorted by whose fault they are, each with what an operator needs.
//!
//! `Error` is cheap to clone, so that one failure can be told to every caller that waited for it. What may be tried
//! again is decided in [`Error::retriable`] alone. The producer's verdicts (abort, fenced, fatal) are not here: they
//! are a table in `oncewire-txn`.

mod permission;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use permission::{Permission, needed as needed_permission};

use crate::config::{BrokerAddress, ConfigError};
use crate::wire::error_code::{ErrorCode, Retry, codes, retry};

/// Why something in the client failed.
#[derive(Debug, Clone)]
pub enum Error {
    // The peer's: a broker answered, but not with what was asked for.
    /// A broker answered with an error code.
    Broker(BrokerError),
    /// A broker sent bytes that are not what the protocol allows.
    Malformed {
        /// Which broker, as `node 1 at host:port`.
        peer: String,
        /// What was wrong.
        what: String,
    },
    /// Broker and client have no version of an API in common, or not the one that was asked for.
    Unsupported {
        /// The API's name.
        api: String,
        /// Which broker.
        peer: String,
        /// What each side speaks.
        what: String,
    },

    /// A broker refused our login, or did not prove itself in it. Trying again changes nothing.
    Authentication {
        /// Which broker.
        peer: String,
        /// The SASL mechanism.
        mechanism: &'static str,
        /// The user name.
        user: String,
        /// Who said no, and why. Never holds a password.
        reason: String,
    },

    // The network's.
    /// No connection could be made to one broker.
    Connect {
        /// Which broker.
        peer: String,
        /// What went wrong.
        failure: ConnectFailure,
    },
    /// A connection ended while requests were waiting. Whether the broker acted on them is not known.
    Disconnected {
        /// Which broker.
        peer: String,
        /// Why it ended.
        reason: String,
    },
    /// A deadline passed. If `last` is set it is what the attempts before it met.
    Timeout {
        /// What was being done.
        what: String,
        /// How long it was tried.
        after: Duration,
        /// The error of the last attempt.
        last: Option<Arc<Error>>,
    },
    /// No broker answered: neither a known one nor any of `bootstrap.servers`.
    NoBroker {
        /// What each one met, in the order in which they were tried.
        attempts: Vec<(String, Arc<Error>)>,
    },

    // The configuration's.
    /// A setting is wrong.
    Config(ConfigError),

    // The caller's.
    /// The topic or partition does not exist (and was given time to appear).
    UnknownTopic {
        /// Topic name, or `topic-partition`.
        topic: String,
    },
    /// The client was closed.
    Closed,
    /// The call cannot be right, whatever the cluster says.
    Usage {
        /// What to change.
        what: String,
    },

    // Ours.
    /// The client could not make a request out of what it was given.
    Encode {
        /// The API's name.
        api: String,
        /// What went wrong.
        what: String,
    },
}

/// A broker's error code with its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerError {
    /// The API's name, such as `InitProducerId`.
    pub api: &'static str,
    /// Kafka's error code.
    pub code: i16,
    /// What it was about: topic, partition, transactional id.
    pub subject: String,
    /// The broker's own words, if it sent any.
    pub message: Option<String>,
    /// Whom we logged in as, where a permission is missing and the configuration says.
    pub user: Option<Box<str>>,
}

/// Why a connection could not be made; each variant tells an operator something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The host name has no address.
    NameNotFound {
        /// The resolver's words.
        reason: String,
    },
    /// Nothing listens on the port.
    Refused,
    /// No answer in time, on any of the host's addresses.
    TimedOut {
        /// How long each address was given.
        after: Duration,
    },
    /// The connection was accepted, but the peer stayed silent.
    NoAnswer {
        /// How long it was given.
        after: Duration,
    },
    /// The peer speaks TLS on this port, and we did not.
    TlsPort,
    /// We spoke TLS, and the peer answered in something else.
    NotTls,
    /// The peer closed the connection while hands were shaken.
    ClosedInTls,
    /// One side refused the other in the TLS handshake.
    Tls {
        /// Which side.
        refused_by: TlsSide,
        /// Why, and what to change.
        reason: String,
    },
    /// The peer answered in something that is not Kafka's protocol.
    NotKafka {
        /// What it looks like, such as `HTTP`.
        found: String,
    },
    /// The connection was accepted and then closed before the first answer.
    ClosedAtOnce,
    /// Another socket error.
    Socket {
        /// The system's words.
        reason: String,
    },
    /// No broker has this id, as far as the cluster's metadata says.
    UnknownNode,
}

/// The two ends of a TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsSide {
    /// We refused the broker.
    Client,
    /// The broker refused us.
    Broker,
}

impl Error {
    pub(crate) fn broker(api: &'static str, code: i16, subject: impl Into<String>) -> Self {
        Self::Broker(BrokerError { api, code, subject: subject.into(), message: None, user: None })
    }

    /// The permission that a broker missed, when that is why it refused.
    #[must_use]
    pub fn missing_permission(&self) -> Option<Permission> {
        match self {
            Self::Broker(error) => needed_permission(error.api, error.code),
            Self::Timeout { last: Some(last), .. } => last.missing_permission(),
            _ => None,
        }
    }

    /// Names the user that a permission is missing for.
    #[must_use]
    pub(crate) fn for_user(mut self, user: Option<&str>) -> Self {
        if let Self::Broker(error) = &mut self
            && needed_permission(error.api, error.code).is_some()
        {
            error.user = user.map(Box::from);
        }
        self
    }

    /// The Kafka error code, when a broker sent one (also through a [`Error::Timeout`]'s last attempt).
    #[must_use]
    pub fn code(&self) -> Option<i16> {
        match self {
            Self::Broker(error) => Some(error.code),
            Self::Timeout { last: Some(last), .. } => last.code(),
            _ => None,
        }
    }

    /// Whether the same request may be sent again after a pause, possibly to another broker.
    ///
    /// It says nothing about whether the first one took effect: after [`Error::Disconnected`] it may have.
    #[must_use]
    pub fn retriable(&self) -> bool {
        match self {
            Self::Broker(error) => matches!(retry(error.code), Retry::Retriable | Retry::StaleMetadata),
            Self::Disconnected { .. } | Self::Timeout { .. } => true,
            Self::NoBroker { attempts } => attempts.iter().any(|(_, error)| error.retriable()),
            Self::Connect { failure, .. } => failure.retriable(),
            Self::Malformed { .. }
            | Self::Unsupported { .. }
            | Self::Authentication { .. }
            | Self::Config(_)
            | Self::UnknownTopic { .. }
            | Self::Closed
            | Self::Usage { .. }
            | Self::Encode { .. } => false,
        }
    }

    /// Whether a retriable failure to connect may as well be a wrong setting, of which somebody should hear at once.
    pub(crate) fn hints_at_configuration(&self) -> bool {
        use ConnectFailure::{ClosedAtOnce, ClosedInTls, NoAnswer};
        matches!(self, Self::Connect { failure: ClosedAtOnce | ClosedInTls | NoAnswer { .. }, .. })
    }

    /// Whether the answer means that our idea of leaders is old: refresh metadata before the next attempt.
    #[must_use]
    pub fn leader_is_stale(&self) -> bool {
        match self {
            Self::Broker(error) => matches!(retry(error.code), Retry::StaleMetadata),
            Self::Disconnected { .. } | Self::Connect { .. } => true,
            _ => false,
        }
    }

    /// Whether the answer means that the coordinator may have moved: look it up before the next attempt.
    #[must_use]
    pub fn coordinator_is_stale(&self) -> bool {
        match self {
            Self::Broker(error) => matches!(error.code, codes::COORDINATOR_NOT_AVAILABLE | codes::NOT_COORDINATOR),
            Self::Disconnected { .. } | Self::Connect { .. } => true,
            _ => false,
        }
    }
}

impl ConnectFailure {
    /// A port that speaks something else, and a certificate that is not good, will be so in a second, too; everything else
    /// may pass.
    #[must_use]
    pub fn retriable(&self) -> bool {
        !matches!(self, Self::TlsPort | Self::NotTls | Self::Tls { .. } | Self::NotKafka { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker(error) => error.fmt(f),
            Self::Malformed { peer, what } => write!(f, "{peer} sent bytes that are not valid: {what}"),
            Self::Unsupported { api, peer, what } => {
                write!(f, "{peer} and this client share no version of {api}: {what}")
            }
            Self::Authentication { peer, mechanism, user, reason } => {
                write!(
                    f,
                    "{peer} and user '{user}' did not agree on a login by {mechanism}: {reason}; check sasl.jaas.config"
                )
            }
            Self::Connect { peer, failure } => write!(f, "cannot connect to {peer}: {failure}"),
            Self::Disconnected { peer, reason } => write!(f, "the connection to {peer} ended: {reason}"),
            Self::Timeout { what, after, last } => {
                write!(f, "{what} did not succeed within {} ms", after.as_millis())?;
                match last {
                    Some(last) => write!(f, "; the last attempt: {last}"),
                    None => Ok(()),
                }
            }
            Self::NoBroker { attempts } => {
                f.write_str("no broker answered")?;
                for (index, (failure, peers)) in by_failure(attempts).into_iter().enumerate() {
                    let before = if index == 0 { ": " } else { "; " };
                    write!(f, "{before}{}: {failure}", peers.join(", "))?;
                }
                Ok(())
            }
            Self::Config(error) => error.fmt(f),
            Self::UnknownTopic { topic } => {
                write!(
                    f,
                    "topic {topic} does not exist; create it, or check its name and the permission to describe it"
                )
            }
            Self::Closed => f.write_str("the client is closed"),
            Self::Usage { what } => f.write_str(what),
            Self::Encode { api, what } => write!(f, "a {api} request could not be encoded: {what}"),
        }
    }
}

/// Who met each failure, in the order of the first: brokers that are away meet the same one, and a broker that is a bootstrap
/// server too is tried as both.
fn by_failure(attempts: &[(String, Arc<Error>)]) -> Vec<(String, Vec<&str>)> {
    let mut failures: Vec<(String, Vec<&str>)> = Vec::new();
    for (peer, error) in attempts {
        let failure = match error.as_ref() {
            Error::Connect { failure, .. } => failure.to_string(),
            other => other.to_string(),
        };
        match failures.iter_mut().find(|(known, _)| *known == failure) {
            Some((_, peers)) if peers.contains(&peer.as_str()) => {}
            Some((_, peers)) => peers.push(peer),
            None => failures.push((failure, vec![peer])),
        }
    }
    failures
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Timeout { last: Some(last), .. } => Some(last.as_ref()),
            _ => None,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {} was answered with {}", self.api, self.subject, ErrorCode(self.code))?;
        match &self.message {
            Some(message) if !message.is_empty() => write!(f, ": {message}")?,
            _ => {}
        }
        if let Some(Permission { resource, operation }) = needed_permission(self.api, self.code) {
            let who = match &self.user {
                Some(user) => format!("user '{user}'"),
                None => "the principal of this client".to_owned(),
            };
            write!(f, "; allow {who} the operation {operation} on this {resource}")?;
        }
        match advice(self.code) {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// What to change after a mistake in a topic's name or in the settings of a group's member.
fn advice(code: i16) -> Option<&'static str> {
    Some(match code {
        codes::INVALID_TOPIC_EXCEPTION => {
            "a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"
        }
        codes::INCONSISTENT_GROUP_PROTOCOL => {
            "the group's members are of another kind or share no protocol with this one: check that group.id is not another application's"
        }
        codes::INVALID_GROUP_ID => "group.id must not be empty",
        codes::INVALID_SESSION_TIMEOUT => {
            "session.timeout.ms must be within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
        }
        codes::GROUP_MAX_SIZE_REACHED => "the broker's group.max.size allows no more members",
        _ => return None,
    })
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameNotFound { reason } => {
                write!(f, "the host name cannot be resolved ({reason}); check its spelling and the name service")
            }
            Self::Refused => f.write_str("connection refused; nothing listens on that port: check the port and that the broker runs"),
            Self::TimedOut { after } => write!(
                f,
                "no answer within {} ms; check the address, and firewalls on the way",
                after.as_millis()
            ),
            Self::NoAnswer { after } => write!(
                f,
                "the connection was accepted, but nothing answered within {} ms; check that security.protocol is the listener's, and that the broker is not overloaded",
                after.as_millis()
            ),
            Self::TlsPort => f.write_str("the port speaks TLS; set security.protocol to SSL or SASL_SSL, or use a PLAINTEXT listener"),
            Self::NotTls => f.write_str("the port does not speak TLS; set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use the broker's TLS listener"),
            Self::ClosedInTls => f.write_str(
                "the peer closed the connection during the TLS handshake; if the port is a listener in plain text, set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
            ),
            Self::Tls { refused_by: TlsSide::Client, reason } => write!(f, "TLS failed, we refused the broker: {reason}"),
            Self::Tls { refused_by: TlsSide::Broker, reason } => write!(f, "TLS failed, the broker refused us by {reason}"),
            Self::NotKafka { found } => write!(f, "the port does not speak the Kafka protocol (it answered with {found}); check the port"),
            Self::ClosedAtOnce => f.write_str(
                "the peer closed the connection before its first answer; the port may speak TLS (set security.protocol to SSL or SASL_SSL), or is not Kafka's",
            ),
            Self::Socket { reason } => f.write_str(reason),
            Self::UnknownNode => f.write_str("the cluster's metadata has no such broker"),
        }
    }
}

/// How one broker is named in errors and logs: `node 1 at host:port`, or `bootstrap server host:port`.
pub(crate) fn peer_name(node: Option<i32>, address: &BrokerAddress) -> String {
    match node {
        Some(node) => format!("node {node} at {address}"),
        None => format!("bootstrap server {address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_that_met_the_same_are_named_together_and_once() {
        let refused = |peer: &str| {
            let error = Error::Connect { peer: peer.to_owned(), failure: ConnectFailure::Refused };
            (peer.to_owned(), Arc::new(error))
        };
        let silent = ConnectFailure::TimedOut { after: Duration::from_secs(10) };
        let late = Error::Connect { peer: "c:3".to_owned(), failure: silent };
        let attempts = vec![refused("a:1"), ("c:3".to_owned(), Arc::new(late)), refused("b:2"), refused("a:1")];
        let text = Error::NoBroker { attempts }.to_string();
        assert!(text.starts_with("no broker answered: a:1, b:2: connection refused; "), "{text}");
        assert!(text.contains("; c:3: no answer within 10000 ms"), "{text}");
        assert_eq!(text.matches("a:1").count(), 1, "{text}");
    }
}
