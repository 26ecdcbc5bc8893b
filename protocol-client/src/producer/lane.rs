//! The batches on their way to one leader, and how they are put into requests. Pure.
//!
//! A Produce request may carry one batch per partition (Produce version 3 and later), and the batches of a partition must
//! arrive in order; everything else that waits goes into one request. The connection keeps the order of requests.

use bytes::Bytes;
use oncewire_txn::{BatchId, Protocol, RequestId};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Bytes of batches in one request. A broker takes frames up to `socket.request.max.bytes`, 100 MiB by default; one request
/// of this size keeps it busy long enough for the next to arrive.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A stamped batch and where it goes.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) request: RequestId,
    pub(crate) batch: BatchId,
    pub(crate) topic: Arc<str>,
    pub(crate) partition: u32,
    /// Decides the version of the request: only batches of one generation share it.
    pub(crate) protocol: Protocol,
    pub(crate) records: Bytes,
}

/// What waits for one leader.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    waiting: VecDeque<Outgoing>,
    /// Requests that were given to the connection and not answered.
    in_flight: usize,
    /// True while a request is being given to the connection: the next one must not overtake it.
    sending: bool,
}

impl Lane {
    pub(crate) fn push(&mut self, order: Outgoing) {
        self.waiting.push_back(order);
    }

    /// True when a request may start now.
    pub(crate) fn may_start(&self, in_flight_max: usize) -> bool {
        !self.sending && !self.waiting.is_empty() && self.in_flight < in_flight_max
    }

    /// Takes out what is no longer wanted.
    pub(crate) fn remove(&mut self, unwanted: impl Fn(&Outgoing) -> bool) -> Vec<Outgoing> {
        if !self.waiting.iter().any(&unwanted) {
            return Vec::new();
        }
        let (removed, kept): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(unwanted);
        self.waiting = kept.into();
        removed
    }

    /// The batches of the next request, if one may start now. They count as being sent from then on.
    pub(crate) fn start(&mut self, in_flight_max: usize) -> Option<Vec<Outgoing>> {
        if !self.may_start(in_flight_max) {
            return None;
        }
        self.sending = true;
        self.in_flight += 1;
        Some(self.take_request())
    }

    /// True when a batch waits for a request.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The request is in the connection's queue.
    pub(crate) fn sent(&mut self) {
        self.sending = false;
    }

    /// The request was answered, or lost.
    pub(crate) fn answered(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn take_request(&mut self) -> Vec<Outgoing> {
        let protocol = self.waiting.front().map(|order| order.protocol);
        let mut taken: Vec<Outgoing> = Vec::new();
        let mut kept = VecDeque::new();
        let mut seen = HashSet::new();
        let mut bytes = 0;
        let mut full = false;
        for order in self.waiting.drain(..) {
            let fits = bytes == 0 || bytes + order.records.len() <= REQUEST_BYTES_MAX;
            let first_of_partition = seen.insert((order.topic.clone(), order.partition));
            if !full && fits && first_of_partition && Some(order.protocol) == protocol {
                bytes += order.records.len();
                taken.push(order);
            } else {
                // Once one does not fit, no later one may go ahead of it by being smaller.
                full |= !fits;
                kept.push_back(order);
            }
        }
        self.waiting = kept;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(request: u64, partition: u32, bytes: usize) -> Outgoing {
        Outgoing {
            request: RequestId(request),
            batch: BatchId(request),
            topic: "t".into(),
            partition,
            protocol: Protocol::Implicit,
            records: Bytes::from(vec![0; bytes]),
        }
    }

    fn ids(orders: &[Outgoing]) -> Vec<u64> {
        orders.iter().map(|order| order.request.0).collect()
    }

    #[test]
    fn one_request_takes_one_batch_of_each_partition_in_order() {
        let mut lane = Lane::default();
        for (request, partition) in [(0, 0), (1, 1), (2, 0), (3, 2), (4, 0)] {
            lane.push(order(request, partition, 10));
        }
        assert_eq!(ids(&lane.start(5).unwrap()), [0, 1, 3]);
        assert!(lane.start(5).is_none(), "the first is still being sent");
        lane.sent();
        assert_eq!(ids(&lane.start(5).unwrap()), [2]);
        lane.sent();
        assert_eq!(ids(&lane.start(5).unwrap()), [4]);
    }

    #[test]
    fn requests_in_flight_are_bounded() {
        let mut lane = Lane::default();
        lane.push(order(0, 0, 10));
        lane.push(order(1, 0, 10));
        assert!(lane.start(1).is_some());
        lane.sent();
        assert!(lane.start(1).is_none());
        lane.answered();
        assert!(lane.start(1).is_some());
    }

    #[test]
    fn request_bytes_are_bounded_and_an_oversized_batch_goes_alone() {
        let mut lane = Lane::default();
        lane.push(order(0, 0, REQUEST_BYTES_MAX + 1));
        lane.push(order(1, 1, 10));
        lane.push(order(2, 2, 10));
        assert_eq!(ids(&lane.start(5).unwrap()), [0]);
        lane.sent();
        assert_eq!(ids(&lane.start(5).unwrap()), [1, 2]);
    }
}
