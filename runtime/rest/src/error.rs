//! The one map from what went wrong to a status and a body.

use crate::herder::HerderError;
use crate::model::Stage;

/// 409 of a request that has been to two workers.
pub(crate) const TOO_MANY_HOPS: &str =
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)";
/// 409 without a leader.
pub(crate) const NO_LEADER: &str =
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway.";
/// 409 before a rebalance.
pub(crate) const STALE: &str =
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)";
/// 500 before a rebalance, where requests are not forwarded.
pub(crate) const REBALANCE: &str = "Request cannot be completed because a rebalance is expected";

/// A failed request: the status, and the message of its error body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The status.
    pub(crate) code: u16,
    /// The message.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with that code.
    pub(crate) fn new(code: u16, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    /// What JAX-RS says of a code by itself.
    pub(crate) fn plain(code: u16) -> Self {
        let reason = match code {
            401 => "Unauthorized",
            404 => "Not Found",
            405 => "Method Not Allowed",
            406 => "Not Acceptable",
            413 => "Request Entity Too Large",
            415 => "Unsupported Media Type",
            503 => "Service Unavailable",
            _ => "Error",
        };
        Failure::new(code, format!("HTTP {code} {reason}"))
    }

    /// A request that ran into its time limit.
    pub(crate) fn timed_out(stage: Option<&Stage>) -> Self {
        match stage {
            Some(stage) => Failure::new(500, format!("Request timed out. {}", stage.summary())),
            None => Failure::new(500, "Request timed out"),
        }
    }
}

/// What is to be done about a herder's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Another worker is to be asked.
    Forward(String),
    /// The request has failed.
    Failed(Failure),
}

/// Whether a resource sends requests on to other workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forwards {
    /// Changes.
    Yes,
    /// Reads, and what any worker can do.
    No,
}

/// The map.
pub(crate) fn blame(error: HerderError, forwards: Forwards) -> Blame {
    let (code, message) = match error {
        HerderError::NotLeader { leader_url: Some(url) } | HerderError::Elsewhere { url }
            if forwards == Forwards::Yes =>
        {
            // A worker that knows no leader may say so with an empty URL.
            return if url.trim().is_empty() {
                Blame::Failed(Failure::new(409, NO_LEADER))
            } else {
                Blame::Forward(url)
            };
        }
        HerderError::NotLeader { leader_url: None } if forwards == Forwards::Yes => (409, NO_LEADER.to_owned()),
        HerderError::NotLeader { .. } => (500, "Only the leader can do this".to_owned()),
        HerderError::Elsewhere { url } => (500, format!("Only the worker at {url} can do this")),
        HerderError::RebalanceExpected if forwards == Forwards::Yes => (409, STALE.to_owned()),
        HerderError::RebalanceExpected => (500, REBALANCE.to_owned()),
        HerderError::NotFound(message) => (404, message),
        HerderError::AlreadyExists(message) | HerderError::Conflict(message) => (409, message),
        HerderError::BadRequest(message) => (400, message),
        HerderError::Forbidden(message) => (403, message),
        HerderError::Unavailable(message) => (503, message),
        HerderError::Timeout { stage } => (500, format!("Request timed out. {stage}")),
        HerderError::Status { code, message } => (code, message),
        HerderError::Internal(message) => (500, message),
    };
    Blame::Failed(Failure { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(error: HerderError, forwards: Forwards) -> (u16, String) {
        match blame(error, forwards) {
            Blame::Failed(failure) => (failure.code, failure.message),
            Blame::Forward(url) => panic!("forwarded to {url}"),
        }
    }

    #[test]
    fn a_leader_elsewhere_is_asked_only_for_changes() {
        let error = HerderError::NotLeader { leader_url: Some("http://a/".to_owned()) };
        assert_eq!(blame(error.clone(), Forwards::Yes), Blame::Forward("http://a/".to_owned()));
        assert_eq!(failed(error, Forwards::No).0, 500);
    }

    #[test]
    fn no_leader_is_a_conflict() {
        for leader_url in [None, Some(String::new()), Some(" ".to_owned())] {
            assert_eq!(failed(HerderError::NotLeader { leader_url }, Forwards::Yes), (409, NO_LEADER.to_owned()));
        }
    }

    #[test]
    fn a_rebalance_is_a_conflict_for_changes_and_an_error_for_reads() {
        assert_eq!(failed(HerderError::RebalanceExpected, Forwards::Yes).0, 409);
        assert_eq!(failed(HerderError::RebalanceExpected, Forwards::No).0, 500);
    }
}
