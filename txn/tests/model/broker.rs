//! A small honest broker: one transactional id, its coordinator, and a few partition logs.
//!
//! It keeps the rules that matter to a producer: the checks of epochs and sequences, a window of five remembered batches,
//! the time between the answer to EndTxn and the markers, time-outs that bump the epoch, exhausted epochs. It leaves out
//! replication, bytes, topics and everything a reader needs. Sources: KIP-98, KIP-360, KIP-588, KIP-890.

use oncewire_txn::{BatchId, EndGoal, ErrorCode, PartitionIndex, ProducerIdentity, Protocol, Reply, Request};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Epochs from here on lead to a new producer id instead of the next epoch.
pub(crate) const EPOCH_EXHAUSTED: i16 = 32_766;
const REMEMBERED: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Empty,
    Ongoing,
    Prepare(EndGoal),
    Complete(EndGoal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Committed,
    Aborted,
}

/// One batch in a log.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) batch: BatchId,
    pub(crate) producer_id: i64,
    pub(crate) fate: Fate,
}

#[derive(Debug, Default)]
struct Producer {
    epoch: i16,
    next: i32,
    /// (base sequence, records, offset) of the last batches.
    remembered: VecDeque<(i32, u32, i64)>,
}

#[derive(Debug, Default)]
struct Log {
    entries: Vec<Entry>,
    producers: BTreeMap<i64, Producer>,
    end: i64,
}

#[derive(Debug)]
pub(crate) struct Broker {
    offered: Protocol,
    timeout: u64,
    id: i64,
    epoch: i16,
    last_epoch: i16,
    previous: Option<ProducerIdentity>,
    phase: Phase,
    marker_epoch: i16,
    marker_id: i64,
    partitions: BTreeSet<PartitionIndex>,
    started: u64,
    logs: BTreeMap<PartitionIndex, Log>,
    next_id: i64,
    exists: bool,
}

impl Broker {
    pub(crate) fn new(offered: Protocol, timeout: u64, first_epoch: i16) -> Broker {
        Broker {
            offered,
            timeout,
            id: 100,
            epoch: first_epoch,
            last_epoch: -1,
            previous: None,
            phase: Phase::Empty,
            marker_epoch: 0,
            marker_id: 100,
            partitions: BTreeSet::new(),
            started: 0,
            logs: BTreeMap::new(),
            next_id: 101,
            exists: false,
        }
    }

    /// The finalized feature was raised: new transactions may use the implicit protocol.
    pub(crate) fn upgrade(&mut self) {
        self.offered = Protocol::Implicit;
    }

    pub(crate) fn entries(&self, partition: PartitionIndex) -> &[Entry] {
        self.logs.get(&partition).map_or(&[], |log| &log.entries)
    }

    pub(crate) fn partitions(&self) -> Vec<PartitionIndex> {
        self.logs.keys().copied().collect()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        !matches!(self.phase, Phase::Ongoing | Phase::Prepare(_))
    }

    pub(crate) fn is_ongoing(&self) -> bool {
        self.phase == Phase::Ongoing
    }

    /// The coordinator's scan for old transactions.
    pub(crate) fn expire(&mut self, now: u64) {
        if self.phase == Phase::Ongoing && now.saturating_sub(self.started) >= self.timeout {
            self.fence();
        }
    }

    /// Abort what is open under a bumped epoch. The implicit protocol remembers the epoch before.
    fn fence(&mut self) {
        let old = self.epoch;
        self.epoch += 1;
        self.last_epoch = if self.offered == Protocol::Implicit { old } else { -1 };
        self.prepare(EndGoal::Abort, self.id, self.epoch);
    }

    fn prepare(&mut self, goal: EndGoal, marker_id: i64, marker_epoch: i16) {
        self.phase = Phase::Prepare(goal);
        self.marker_id = marker_id;
        self.marker_epoch = marker_epoch;
    }

    /// The markers land.
    pub(crate) fn write_markers(&mut self) {
        let Phase::Prepare(goal) = self.phase else { return };
        let fate = match goal {
            EndGoal::Commit => Fate::Committed,
            EndGoal::Abort => Fate::Aborted,
        };
        for partition in std::mem::take(&mut self.partitions) {
            let log = self.logs.entry(partition).or_default();
            for entry in &mut log.entries {
                if entry.producer_id == self.marker_id && entry.fate == Fate::Open {
                    entry.fate = fate;
                }
            }
            log.end += 1;
            let producer = log.producers.entry(self.marker_id).or_default();
            if self.marker_epoch > producer.epoch {
                *producer = Producer { epoch: self.marker_epoch, ..Producer::default() };
            }
        }
        self.phase = Phase::Complete(goal);
    }

    /// Answer a request of the producer.
    pub(crate) fn handle(&mut self, now: u64, request: &Request) -> Reply {
        self.expire(now);
        match request {
            Request::FindCoordinator => Reply::Coordinator(ErrorCode::NONE),
            Request::RefreshMetadata { .. } => Reply::Metadata,
            Request::InitProducerId { current } => {
                let (code, identity) = match self.init(*current) {
                    Ok(identity) => (0, identity),
                    Err(code) => (code, ProducerIdentity { id: -1, epoch: -1 }),
                };
                Reply::Initialized { code: ErrorCode(code), identity, protocol: self.offered }
            }
            Request::AddPartitions { identity, partitions } => {
                let code = ErrorCode(self.add(now, *identity, partitions).err().unwrap_or(0));
                Reply::PartitionsAdded(partitions.iter().map(|partition| (*partition, code)).collect())
            }
            Request::Produce { identity, partition, batch, base_sequence, protocol, .. } => {
                // The records of a batch are known by its id alone in this model: see `records_of`.
                let records = records_of(*batch);
                let answer = self.produce(now, *identity, *partition, *batch, *base_sequence, records, *protocol);
                let (code, base_offset) = match answer {
                    Ok(offset) => (0, offset),
                    Err(code) => (code, -1),
                };
                Reply::Produced { code: ErrorCode(code), base_offset, log_start_offset: 0, leader_known: false }
            }
            Request::EndTxn { identity, goal, protocol } => {
                let answer = match protocol {
                    Protocol::Explicit => self.end_explicit(*identity, *goal).map(|()| None),
                    Protocol::Implicit => self.end_implicit(*identity, *goal).map(Some),
                };
                let (code, next) = match answer {
                    Ok(next) => (0, next),
                    Err(code) => (code, None),
                };
                Reply::Ended { code: ErrorCode(code), next, protocol: self.offered }
            }
        }
    }

    fn rotate(&mut self) {
        self.previous = Some(ProducerIdentity { id: self.id, epoch: self.epoch });
        self.id = self.next_id;
        self.next_id += 1;
        self.epoch = 0;
        self.last_epoch = -1;
    }

    pub(crate) fn init(&mut self, current: Option<ProducerIdentity>) -> Result<ProducerIdentity, i16> {
        if !self.exists {
            self.exists = true;
            return Ok(ProducerIdentity { id: self.id, epoch: self.epoch });
        }
        if matches!(self.phase, Phase::Prepare(_)) {
            return Err(51);
        }
        let known = |identity: ProducerIdentity| {
            let rotated = self.previous == Some(identity) && identity.epoch >= EPOCH_EXHAUSTED;
            identity.id == self.id || rotated
        };
        if !current.is_none_or(known) {
            return Err(90);
        }
        if self.phase == Phase::Ongoing {
            self.fence();
            return Err(51);
        }
        match current {
            Some(identity) if identity.id != self.id => {}
            Some(identity) if identity.epoch == self.epoch && self.epoch < EPOCH_EXHAUSTED => {
                self.last_epoch = self.epoch;
                self.epoch += 1;
            }
            Some(identity) if identity.epoch == self.epoch => self.rotate(),
            // KAFKA-20090: the largest epoch is never handed out.
            Some(identity) if self.last_epoch >= 0 && identity.epoch == self.last_epoch => {
                if self.epoch > EPOCH_EXHAUSTED {
                    self.rotate();
                }
            }
            Some(_) => return Err(90),
            None if self.epoch >= EPOCH_EXHAUSTED => {
                self.rotate();
                self.previous = None;
            }
            None => {
                self.epoch += 1;
                self.last_epoch = -1;
            }
        }
        self.phase = Phase::Empty;
        Ok(ProducerIdentity { id: self.id, epoch: self.epoch })
    }

    fn add(&mut self, now: u64, identity: ProducerIdentity, partitions: &[PartitionIndex]) -> Result<(), i16> {
        if identity.id != self.id {
            return Err(49);
        }
        if identity.epoch != self.epoch {
            return Err(90);
        }
        if matches!(self.phase, Phase::Prepare(_)) {
            return Err(51);
        }
        if self.phase != Phase::Ongoing {
            self.phase = Phase::Ongoing;
            self.started = now;
        }
        self.partitions.extend(partitions.iter().copied());
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "one wire request, taken apart")]
    fn produce(
        &mut self,
        now: u64,
        identity: ProducerIdentity,
        partition: PartitionIndex,
        batch: BatchId,
        base: i32,
        records: u32,
        protocol: Protocol,
    ) -> Result<i64, i16> {
        match protocol {
            Protocol::Implicit => match self.add(now, identity, &[partition]) {
                Err(code @ (49 | 51)) => return Err(code),
                Err(_) => return Err(47),
                Ok(()) => {}
            },
            Protocol::Explicit => {
                if identity.id != self.id || identity.epoch != self.epoch {
                    return Err(47);
                }
                if self.phase != Phase::Ongoing || !self.partitions.contains(&partition) {
                    return Err(48);
                }
            }
        }
        let log = self.logs.entry(partition).or_default();
        let fresh = !log.producers.contains_key(&identity.id);
        let producer = log.producers.entry(identity.id).or_default();
        if fresh {
            producer.epoch = identity.epoch;
        }
        if identity.epoch < producer.epoch {
            return Err(47);
        }
        if identity.epoch > producer.epoch {
            if base != 0 {
                return Err(45);
            }
            *producer = Producer { epoch: identity.epoch, ..Producer::default() };
        }
        let same = producer.remembered.iter().find(|(first, count, _)| *first == base && *count == records);
        if let Some((_, _, offset)) = same {
            return Ok(*offset);
        }
        if base != producer.next {
            return Err(45);
        }
        let offset = log.end;
        let next = (i64::from(base) + i64::from(records)) & i64::from(i32::MAX);
        producer.next = i32::try_from(next).expect("31 bits");
        producer.remembered.push_back((base, records, offset));
        if producer.remembered.len() > REMEMBERED {
            producer.remembered.pop_front();
        }
        log.end += i64::from(records);
        log.entries.push(Entry { batch, producer_id: identity.id, fate: Fate::Open });
        Ok(offset)
    }

    fn end_explicit(&mut self, identity: ProducerIdentity, goal: EndGoal) -> Result<(), i16> {
        if identity.id != self.id {
            return Err(49);
        }
        if identity.epoch != self.epoch {
            return Err(90);
        }
        match self.phase {
            Phase::Ongoing => {
                self.prepare(goal, identity.id, identity.epoch);
                Ok(())
            }
            Phase::Complete(done) if done == goal => Ok(()),
            Phase::Prepare(doing) if doing == goal => Err(51),
            _ => Err(48),
        }
    }

    fn end_implicit(&mut self, identity: ProducerIdentity, goal: EndGoal) -> Result<ProducerIdentity, i16> {
        let rotated = self.previous == Some(identity) && self.epoch == 0;
        let retry = (identity.id == self.id && identity.epoch + 1 == self.epoch) || rotated;
        if identity.id != self.id && !rotated {
            return Err(49);
        }
        let now = ProducerIdentity { id: self.id, epoch: self.epoch };
        if !retry && identity.epoch != self.epoch {
            return Err(90);
        }
        match (self.phase, retry) {
            (Phase::Ongoing, false) => {
                self.bump_after_end(goal, identity);
                Ok(ProducerIdentity { id: self.id, epoch: self.epoch })
            }
            (Phase::Ongoing, true) => Err(90),
            (Phase::Empty, true) => Err(90),
            (Phase::Complete(done), true) if done == goal => Ok(now),
            (Phase::Complete(_), true) => Err(48),
            (Phase::Empty | Phase::Complete(_), false) if goal == EndGoal::Abort => {
                self.bump_after_end(goal, identity);
                Ok(ProducerIdentity { id: self.id, epoch: self.epoch })
            }
            (Phase::Empty | Phase::Complete(_), false) => Err(48),
            (Phase::Prepare(doing), true) if doing == goal => Err(51),
            (Phase::Prepare(_), true) => Err(48),
            (Phase::Prepare(_), false) => Err(90),
        }
    }

    fn bump_after_end(&mut self, goal: EndGoal, identity: ProducerIdentity) {
        let marker_epoch = identity.epoch + 1;
        if self.epoch >= EPOCH_EXHAUSTED {
            self.rotate();
        } else {
            self.last_epoch = self.epoch;
            self.epoch += 1;
        }
        self.prepare(goal, identity.id, marker_epoch);
    }
}

/// How many records a batch has: a fact of its id, so that a batch that is sent again cannot differ.
pub(crate) fn records_of(batch: BatchId) -> u32 {
    u32::try_from(batch.0 % 7).expect("small") + 1
}
