//! The two-hop rule: a request that this worker cannot serve goes to the one that can, and at most once more from there. Pure.
//!
//! ```text
//! client ──(no forward)──▶ first ──forward=true──▶ second ──forward=false──▶ third ──▶ 409
//! ```

use crate::path::with_forward;

/// What to do with a request for another worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Send it there.
    To(String),
    /// It has been forwarded twice: 409.
    TooMany,
}

/// Decides by the request's own `forward`; the path goes on as it came, still encoded.
pub(crate) fn next_hop(worker_url: &str, path: &str, query: Option<&str>, forward: Option<bool>) -> Hop {
    let next = match forward {
        None => true,
        Some(true) => false,
        Some(false) => return Hop::TooMany,
    };
    Hop::To(format!("{}{path}?{}", worker_url.trim_end_matches('/'), with_forward(query, next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_hops_twice_at_most() {
        let to = |forward| next_hop("http://a:1/", "/connectors/x%2Fy/restart", Some("includeTasks=true"), forward);
        assert_eq!(to(None), Hop::To("http://a:1/connectors/x%2Fy/restart?includeTasks=true&forward=true".to_owned()));
        assert_eq!(
            to(Some(true)),
            Hop::To("http://a:1/connectors/x%2Fy/restart?includeTasks=true&forward=false".to_owned())
        );
        assert_eq!(to(Some(false)), Hop::TooMany);
    }
}
