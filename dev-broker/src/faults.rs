//! Faults on demand: what a test can make the n-th request of an API suffer.
//!
//! The script is part of the core, so that a simulation repeats it exactly. Left out: faults of the network (a cut in
//! the middle of a frame is a proxy's business) and of a log that cannot be written.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;

/// Faults that one API may have waiting.
const FAULTS_PER_API_MAX: usize = 10_000;

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not processed; every part of it is answered with this code.
    Answer(ResponseError),
    /// It is not processed, and the connection is closed.
    CloseBefore,
    /// It is processed, and the connection is closed in place of an answer.
    CloseAfter,
    /// It is processed and never answered; the connection stays open.
    Swallow,
    /// It is processed this much later, even if the connection is gone by then: a request left in some socket's buffer.
    DelayRequest(Duration),
    /// It is processed now and answered this much later.
    DelayAnswer(Duration),
}

/// The waiting faults and the counts of requests, by API.
#[derive(Debug, Default)]
pub(crate) struct FaultScript {
    apis: BTreeMap<i16, ApiScript>,
}

#[derive(Debug, Default)]
struct ApiScript {
    requests: u64,
    /// By the number of the request that suffers it.
    faults: BTreeMap<u64, Fault>,
}

impl FaultScript {
    /// Lets the `nth` request of this API from now on (1 is the next) suffer a fault; a second fault for the same
    /// request replaces it.
    pub(crate) fn inject(&mut self, api: ApiKey, nth: u64, fault: Fault) {
        let script = self.apis.entry(api as i16).or_default();
        if script.faults.len() < FAULTS_PER_API_MAX {
            script.faults.insert(script.requests.saturating_add(nth.max(1)), fault);
        }
    }

    /// Drops the faults that have not come about.
    pub(crate) fn clear(&mut self) {
        for script in self.apis.values_mut() {
            script.faults.clear();
        }
    }

    /// Counts a request and says what it suffers.
    pub(crate) fn next(&mut self, api: ApiKey) -> Option<Fault> {
        let script = self.apis.entry(api as i16).or_default();
        script.requests += 1;
        script.faults.remove(&script.requests)
    }

    /// Requests of this API so far, those that suffered faults included.
    pub(crate) fn requests(&self, api: ApiKey) -> u64 {
        self.apis.get(&(api as i16)).map_or(0, |script| script.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_request_suffers_and_no_other() {
        let mut script = FaultScript::default();
        assert_eq!(script.next(ApiKey::EndTxn), None);
        script.inject(ApiKey::EndTxn, 2, Fault::CloseAfter);
        assert_eq!(script.next(ApiKey::Produce), None);
        assert_eq!([script.next(ApiKey::EndTxn), script.next(ApiKey::EndTxn)], [None, Some(Fault::CloseAfter)]);
        assert_eq!(script.next(ApiKey::EndTxn), None);
        assert_eq!((script.requests(ApiKey::EndTxn), script.requests(ApiKey::Produce)), (4, 1));
    }
}
