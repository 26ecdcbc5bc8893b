//! What must hold, watched from outside the machine: every request and event passes through here.

use super::broker::{Broker, Fate, records_of};
use oncewire_txn::{
    BatchId, EndGoal, Event, Outcome, PartitionIndex, ProducerIdentity, Protocol, Reply, Request, RequestId,
};
use std::collections::{BTreeMap, BTreeSet};

const WINDOW_MAX: usize = 5;

/// One transaction of the caller's.
#[derive(Debug, Default)]
pub(crate) struct Deed {
    pub(crate) batches: Vec<(PartitionIndex, BatchId)>,
    pub(crate) outcome: Option<Outcome>,
    /// A commit of it left, and its answer was not a plain refusal.
    commit_may_have_arrived: bool,
}

/// The books.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    deeds: Vec<Deed>,
    open: Option<usize>,
    /// (identity, partition) → next sequence, and which batch has which base.
    next: BTreeMap<(ProducerIdentity, PartitionIndex), i32>,
    bases: BTreeMap<(ProducerIdentity, PartitionIndex, BatchId), i32>,
    in_flight: BTreeMap<RequestId, Request>,
    live: BTreeMap<BatchId, PartitionIndex>,
    added: BTreeSet<PartitionIndex>,
    /// EndTxn(commit) that nobody has answered for good, by identity.
    undecided: Option<ProducerIdentity>,
    stopped: bool,
}

impl Ledger {
    pub(crate) fn began(&mut self) {
        self.open = Some(self.deeds.len());
        self.deeds.push(Deed::default());
        self.added.clear();
    }

    pub(crate) fn appended(&mut self, partition: PartitionIndex, batch: BatchId) {
        let open = self.open.expect("an append was accepted without a transaction");
        self.deeds[open].batches.push((partition, batch));
        self.live.insert(batch, partition);
    }

    pub(crate) fn live(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn sent(&mut self, id: RequestId, request: &Request) {
        assert!(!self.stopped, "a request after the end: {request:?}");
        let coordinator =
            |request: &Request| !matches!(request, Request::Produce { .. } | Request::RefreshMetadata { .. });
        if coordinator(request) {
            let busy = self.in_flight.values().any(coordinator);
            assert!(!busy, "two requests to the coordinator at once: {request:?}");
        }
        match request {
            Request::Produce { identity, partition, batch, base_sequence, retry, protocol } => {
                let explicit = *protocol == Protocol::Explicit;
                assert!(!explicit || self.added.contains(partition), "{partition:?} was not added");
                self.produce_sent(*identity, *partition, *batch, *base_sequence, *retry);
            }
            Request::EndTxn { identity, goal, .. } => {
                let busy = self.in_flight.values().any(|other| matches!(other, Request::Produce { .. }));
                assert!(!busy, "EndTxn beside a Produce");
                if let Some(undecided) = self.undecided.filter(|undecided| undecided == identity) {
                    assert_eq!(*goal, EndGoal::Commit, "the opposite of an undecided commit of {undecided:?}");
                }
                if *goal == EndGoal::Commit {
                    assert_eq!(self.live.len(), 0, "a commit beside open batches");
                    if let Some(open) = self.open {
                        self.deeds[open].commit_may_have_arrived = true;
                    }
                }
            }
            _ => {}
        }
        self.in_flight.insert(id, request.clone());
    }

    fn produce_sent(
        &mut self,
        identity: ProducerIdentity,
        partition: PartitionIndex,
        batch: BatchId,
        base: i32,
        retry: bool,
    ) {
        assert_eq!(self.live.get(&batch), Some(&partition), "{batch:?} is not open");
        let key = (identity, partition, batch);
        if let Some(before) = self.bases.get(&key) {
            assert_eq!(*before, base, "{batch:?} changed its sequence");
        } else {
            assert!(!retry, "{batch:?} is no retry under this identity");
            let next = self.next.entry((identity, partition)).or_insert(0);
            assert_eq!(*next, base, "gap or reuse of sequences in {partition:?} under {identity:?}");
            let sum = (i64::from(base) + i64::from(records_of(batch))) & i64::from(i32::MAX);
            *next = i32::try_from(sum).expect("31 bits");
            self.bases.insert(key, base);
        }
        let flying = self.in_flight.values().filter(|request| match request {
            Request::Produce { partition: other, batch: other_batch, .. } => {
                assert_ne!(*other_batch, batch, "{batch:?} is in flight already");
                *other == partition
            }
            _ => false,
        });
        assert!(flying.count() < WINDOW_MAX, "more than five in flight");
    }

    pub(crate) fn replied(&mut self, id: RequestId, reply: &Reply) {
        let Some(request) = self.in_flight.remove(&id) else { return };
        match (&request, reply) {
            (Request::AddPartitions { .. }, Reply::PartitionsAdded(codes)) => {
                self.added.extend(codes.iter().filter(|(_, code)| code.is_none()).map(|(partition, _)| *partition));
            }
            (Request::EndTxn { .. }, Reply::Ended { code, .. }) if matches!(code.0, 0 | 48) => self.undecided = None,
            // These say that this copy did nothing; earlier copies stay what they were.
            (Request::EndTxn { .. }, Reply::Ended { code, .. }) if matches!(code.0, 51 | 120) => {}
            (Request::EndTxn { .. }, Reply::Lost { sent: false }) => {}
            (Request::EndTxn { goal: EndGoal::Commit, identity, .. }, _) => self.undecided = Some(*identity),
            (Request::InitProducerId { .. }, Reply::Initialized { code, .. }) if code.is_none() => {
                self.undecided = None;
            }
            _ => {}
        }
    }

    pub(crate) fn told(&mut self, broker: &Broker, event: &Event) {
        match event {
            Event::Acked { batch, .. } => {
                let partition = self.live.remove(batch).unwrap_or_else(|| panic!("{batch:?} acknowledged twice"));
                let there = broker.entries(partition).iter().any(|entry| entry.batch == *batch);
                assert!(there, "{batch:?} acknowledged, and not in the log");
            }
            Event::Dropped { batch } => {
                assert!(self.live.remove(batch).is_some(), "{batch:?} dropped twice");
            }
            Event::Ended(outcome) => {
                let open = self.open.take().expect("an end without a transaction");
                assert_eq!(self.live.len(), 0, "a transaction ended with open batches");
                assert!(
                    !matches!(outcome, Outcome::Unknown(_)) || self.deeds[open].commit_may_have_arrived,
                    "unknown, though no commit ever left"
                );
                self.deeds[open].outcome = Some(outcome.clone());
            }
            Event::Fenced(_) | Event::Fatal(_) | Event::Closed => {
                assert_eq!(self.live.len(), 0, "stopped with open batches");
                self.stopped = true;
            }
            _ => {}
        }
    }

    /// Compare the books with the logs. `broker` has written all markers.
    pub(crate) fn audit(&self, broker: &Broker) {
        let mut fates: BTreeMap<BatchId, Vec<Fate>> = BTreeMap::new();
        for partition in broker.partitions() {
            let mut last = None;
            for entry in broker.entries(partition) {
                fates.entry(entry.batch).or_default().push(entry.fate);
                if entry.fate == Fate::Committed {
                    assert!(last < Some(entry.batch), "{partition:?} shows {:?} after {last:?}", entry.batch);
                    last = Some(entry.batch);
                }
            }
        }
        for deed in &self.deeds {
            let visible = |batch: &BatchId| {
                let fates = fates.get(batch).map_or(&[][..], Vec::as_slice);
                fates.iter().filter(|fate| **fate == Fate::Committed).count()
            };
            let counts: Vec<usize> = deed.batches.iter().map(|(_, batch)| visible(batch)).collect();
            match &deed.outcome {
                Some(Outcome::Committed) => {
                    assert!(
                        counts.iter().all(|count| *count == 1),
                        "committed, but visible {counts:?} times: {deed:?}"
                    );
                }
                Some(Outcome::Aborted | Outcome::NotCommitted(_)) => {
                    assert!(counts.iter().all(|count| *count == 0), "aborted, but visible {counts:?} times: {deed:?}");
                }
                Some(Outcome::Unknown(_)) => {
                    let all = counts.iter().all(|count| *count == 1);
                    let none = counts.iter().all(|count| *count == 0);
                    assert!(all || none, "torn: visible {counts:?} times: {deed:?}");
                }
                // Fenced or failed before anybody asked for its end.
                None => assert!(counts.iter().all(|count| *count == 0), "never ended, but visible: {deed:?}"),
            }
        }
    }

    pub(crate) fn committed(&self) -> usize {
        self.deeds.iter().filter(|deed| deed.outcome == Some(Outcome::Committed)).count()
    }
}
