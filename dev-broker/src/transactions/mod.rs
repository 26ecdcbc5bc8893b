//! The transaction coordinator: every transactional id, and the moves between its states.
//!
//! Pure: it decides and remembers; the broker writes the markers that [`Coordinator::markers_due`] names and then
//! calls [`Coordinator::markers_written`]. The decisions are [`init::decide`] and [`end_txn::decide`]. One
//! coordinator serves all ids, with coordinator epoch 0; its log is memory, so an answer is durable for as long as
//! the process is. Sources: KIP-98, KIP-360, KIP-890, KIP-939's absence (no two-phase commit). Left out: see
//! LEFT_OUT.md.

pub(crate) mod end_txn;
pub(crate) mod init;
pub(crate) mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::TransactionalId;

use crate::settings::BrokerSettings;
use crate::time::Timestamp;
use end_txn::EndDecision;
use init::InitDecision;
use state::{Generation, Goal, NO_EPOCH, ProducerIdentity, TopicPartition, TxnEntry, TxnState};

/// Epoch of the only coordinator there is.
pub(crate) const COORDINATOR_EPOCH: i32 = 0;
/// The level of `transaction.version` from which a fenced producer's epoch is remembered.
const FIRST_REMEMBERING_FEATURE_LEVEL: i16 = 2;
/// Producer ids are counted from here, so that a forgotten 0 shows in a test.
const FIRST_PRODUCER_ID: i64 = 1_000;

/// Markers that are to be written now.
#[derive(Debug, Clone)]
pub(crate) struct MarkersDue {
    pub(crate) transactional_id: TransactionalId,
    pub(crate) producer: ProducerIdentity,
    pub(crate) goal: Goal,
    pub(crate) partitions: BTreeSet<TopicPartition>,
}

/// Whose transaction a request speaks of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TxnClaim<'a> {
    pub(crate) transactional_id: &'a TransactionalId,
    pub(crate) producer: ProducerIdentity,
}

/// All transactional ids.
#[derive(Debug)]
pub(crate) struct Coordinator {
    entries: BTreeMap<TransactionalId, TxnEntry>,
    next_producer_id: i64,
    /// Ids in Prepare, by when their markers are due: the only entries that time moves often.
    preparing: BTreeSet<(Timestamp, TransactionalId)>,
    next_scan: Option<Timestamp>,
}

impl Coordinator {
    pub(crate) fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            next_producer_id: FIRST_PRODUCER_ID,
            preparing: BTreeSet::new(),
            next_scan: None,
        }
    }

    /// A producer id that was never given out.
    pub(crate) fn allocate_producer_id(&mut self) -> i64 {
        self.next_producer_id += 1;
        self.next_producer_id - 1
    }

    /// InitProducerId with a transactional id.
    ///
    /// # Errors
    /// INVALID_TRANSACTION_TIMEOUT, COORDINATOR_NOT_AVAILABLE (too many ids), and those of [`init::decide`].
    pub(crate) fn init_producer_id(
        &mut self,
        now: Timestamp,
        settings: &BrokerSettings,
        transactional_id: &TransactionalId,
        timeout: Duration,
        brought: Option<ProducerIdentity>,
    ) -> Result<ProducerIdentity, ResponseError> {
        if timeout.is_zero() || timeout > settings.transaction_timeout_max {
            return Err(ResponseError::InvalidTransactionTimeout);
        }
        if !self.entries.contains_key(transactional_id) {
            if self.entries.len() >= settings.transactional_ids_max {
                return Err(ResponseError::CoordinatorNotAvailable);
            }
            let producer_id = self.allocate_producer_id();
            self.entries.insert(transactional_id.clone(), TxnEntry::new(now, producer_id, timeout));
        }
        let entry = self.entries.get_mut(transactional_id).ok_or(ResponseError::CoordinatorNotAvailable)?;
        let decision = init::decide(entry, brought)?;
        if decision == InitDecision::Fence {
            self.fence(now, settings, transactional_id);
            return Err(ResponseError::ConcurrentTransactions);
        }
        let last = entry.producer;
        entry.updated = now;
        entry.timeout = timeout;
        entry.state = TxnState::Empty;
        match decision {
            InitDecision::AlreadyDone | InitDecision::Fence => {}
            InitDecision::Raise { remember_last } => {
                entry.producer.epoch += 1;
                entry.last_epoch = if remember_last { last.epoch } else { NO_EPOCH };
            }
            InitDecision::Rotate { remember_last } => {
                entry.previous_producer_id = last.id;
                entry.last_epoch = if remember_last { last.epoch } else { NO_EPOCH };
                entry.producer = ProducerIdentity { id: self.next_producer_id, epoch: 0 };
                self.next_producer_id += 1;
            }
        }
        Ok(entry.producer)
    }

    /// AddPartitionsToTxn, or what Produce 12 does in its place.
    ///
    /// # Errors
    /// INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED or CONCURRENT_TRANSACTIONS.
    pub(crate) fn add_partitions(
        &mut self,
        now: Timestamp,
        claim: TxnClaim<'_>,
        added: impl IntoIterator<Item = TopicPartition>,
    ) -> Result<(), ResponseError> {
        let entry = self.claimed_entry(claim)?;
        match &mut entry.state {
            TxnState::Prepare { .. } => return Err(ResponseError::ConcurrentTransactions),
            TxnState::Ongoing { partitions, .. } => partitions.extend(added),
            TxnState::Empty | TxnState::Complete { .. } => {
                entry.state = TxnState::Ongoing { started: now, partitions: added.into_iter().collect() };
            }
        }
        entry.updated = now;
        Ok(())
    }

    /// Is this partition in the open transaction (KIP-890 part 1)?
    ///
    /// # Errors
    /// TRANSACTION_ABORTABLE when it is not, and those of [`Self::add_partitions`].
    pub(crate) fn verify_partition(
        &mut self,
        claim: TxnClaim<'_>,
        partition: &TopicPartition,
    ) -> Result<(), ResponseError> {
        match &self.claimed_entry(claim)?.state {
            TxnState::Prepare { .. } => Err(ResponseError::ConcurrentTransactions),
            TxnState::Ongoing { partitions, .. } if partitions.contains(partition) => Ok(()),
            TxnState::Empty | TxnState::Ongoing { .. } | TxnState::Complete { .. } => {
                Err(ResponseError::TransactionAbortable)
            }
        }
    }

    /// EndTxn of a client. The answer is the identity to go on with, which differs from the request's in the implicit
    /// generation.
    ///
    /// # Errors
    /// Those of [`end_txn::decide`]; INVALID_PRODUCER_ID_MAPPING for an unknown id.
    pub(crate) fn end_txn(
        &mut self,
        now: Timestamp,
        marker_delay: Duration,
        claim: TxnClaim<'_>,
        goal: Goal,
        generation: Generation,
    ) -> Result<ProducerIdentity, ResponseError> {
        let entry = self.entries.get_mut(claim.transactional_id).ok_or(ResponseError::InvalidProducerIdMapping)?;
        match end_txn::decide(entry, claim.producer, goal, generation)? {
            EndDecision::AlreadyDone => Ok(entry.producer),
            EndDecision::Prepare => {
                let raise = generation == Generation::Implicit;
                Ok(self.prepare(now, marker_delay, claim.transactional_id, goal, raise))
            }
        }
    }

    /// Takes the transactions whose markers are due by now out of the waiting set.
    pub(crate) fn markers_due(&mut self, now: Timestamp) -> Vec<MarkersDue> {
        let mut due = Vec::new();
        while self.preparing.first().is_some_and(|(when, _)| *when <= now) {
            let Some((_, transactional_id)) = self.preparing.pop_first() else { break };
            let Some(entry) = self.entries.get(&transactional_id) else { continue };
            if let TxnState::Prepare { goal, partitions, .. } = &entry.state {
                due.push(MarkersDue {
                    producer: entry.producer,
                    goal: *goal,
                    partitions: partitions.clone(),
                    transactional_id,
                });
            }
        }
        due
    }

    /// The markers are in the logs: Prepare → Complete, and with used-up epochs on to the next producer id.
    pub(crate) fn markers_written(&mut self, now: Timestamp, transactional_id: &TransactionalId) {
        let Some(entry) = self.entries.get_mut(transactional_id) else { return };
        let TxnState::Prepare { goal, next_producer_id, .. } = &entry.state else { return };
        if let Some(next) = *next_producer_id {
            entry.previous_producer_id = entry.producer.id;
            entry.producer = ProducerIdentity { id: next, epoch: 0 };
        }
        entry.state = TxnState::Complete { goal: *goal };
        entry.updated = now;
    }

    /// Aborts what has been open for too long and forgets ids that nobody used; at most once in each scan interval.
    /// Says whether it was time to.
    pub(crate) fn scan(&mut self, now: Timestamp, settings: &BrokerSettings) -> bool {
        let next = *self.next_scan.get_or_insert(now + settings.transaction_scan_interval);
        if now < next {
            return false;
        }
        self.next_scan = Some(now + settings.transaction_scan_interval);
        let timed_out: Vec<TransactionalId> = self
            .entries
            .iter()
            .filter(|(_, entry)| match &entry.state {
                TxnState::Ongoing { started, .. } => now.since(*started) > entry.timeout,
                _ => false,
            })
            .map(|(transactional_id, _)| transactional_id.clone())
            .collect();
        for transactional_id in timed_out {
            self.fence(now, settings, &transactional_id);
        }
        self.entries.retain(|_, entry| match &entry.state {
            TxnState::Ongoing { .. } | TxnState::Prepare { .. } => true,
            TxnState::Empty | TxnState::Complete { .. } => {
                now.since(entry.updated) < settings.transactional_id_expiration
            }
        });
        true
    }

    /// When time alone changes something next.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let markers = self.preparing.first().map(|(when, _)| *when);
        [markers, self.next_scan].into_iter().flatten().min()
    }

    /// Makes sure that a scan will come, from the first request on.
    pub(crate) fn expect_scan(&mut self, now: Timestamp, interval: Duration) {
        self.next_scan.get_or_insert(now + interval);
    }

    pub(crate) fn entry(&self, transactional_id: &TransactionalId) -> Option<&TxnEntry> {
        self.entries.get(transactional_id)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&TransactionalId, &TxnEntry)> {
        self.entries.iter()
    }

    /// For tests that need an epoch nobody can wait for.
    #[cfg(test)]
    pub(crate) fn entry_mut(&mut self, transactional_id: &TransactionalId) -> Option<&mut TxnEntry> {
        self.entries.get_mut(transactional_id)
    }

    /// A topic is gone: no markers go to it.
    pub(crate) fn forget_topic(&mut self, topic: &kafka_protocol::messages::TopicName) {
        for entry in self.entries.values_mut() {
            if let TxnState::Ongoing { partitions, .. } | TxnState::Prepare { partitions, .. } = &mut entry.state {
                partitions.retain(|partition| partition.topic != *topic);
            }
        }
    }

    fn claimed_entry(&mut self, claim: TxnClaim<'_>) -> Result<&mut TxnEntry, ResponseError> {
        let entry = self.entries.get_mut(claim.transactional_id).ok_or(ResponseError::InvalidProducerIdMapping)?;
        if entry.producer.id != claim.producer.id {
            return Err(ResponseError::InvalidProducerIdMapping);
        }
        if entry.producer.epoch != claim.producer.epoch {
            return Err(ResponseError::ProducerFenced);
        }
        Ok(entry)
    }

    /// Aborts an open transaction over its producer's head: the epoch is raised first, once (KAFKA-19367).
    ///
    /// At feature level 2 the old epoch is remembered, whichever generation the transaction is of: the producer's own
    /// abort, and its InitProducerId, are then taken for repetitions, as long as no successor has come. Below, the
    /// producer is fenced.
    fn fence(&mut self, now: Timestamp, settings: &BrokerSettings, transactional_id: &TransactionalId) {
        self.prepare(now, settings.marker_delay, transactional_id, Goal::Abort, true);
        if let Some(entry) = self.entries.get_mut(transactional_id)
            && settings.transaction_version < FIRST_REMEMBERING_FEATURE_LEVEL
        {
            entry.last_epoch = NO_EPOCH;
        }
    }

    /// Decides the outcome; returns the identity that the client goes on with.
    fn prepare(
        &mut self,
        now: Timestamp,
        marker_delay: Duration,
        transactional_id: &TransactionalId,
        goal: Goal,
        raise_epoch: bool,
    ) -> ProducerIdentity {
        let spare_producer_id = self.next_producer_id;
        let Some(entry) = self.entries.get_mut(transactional_id) else {
            return ProducerIdentity { id: state::NO_PRODUCER_ID, epoch: NO_EPOCH };
        };
        let mut next_producer_id = None;
        if raise_epoch {
            // Past the last epoch there is one more number, for the marker alone; then comes the next id
            // (KAFKA-18660, KAFKA-20090).
            if entry.is_epoch_exhausted() {
                next_producer_id = Some(spare_producer_id);
                self.next_producer_id += 1;
            }
            entry.last_epoch = entry.producer.epoch;
            entry.producer.epoch = entry.producer.epoch.saturating_add(1);
        }
        let (started, partitions) = match std::mem::replace(&mut entry.state, TxnState::Empty) {
            TxnState::Ongoing { started, partitions } => (started, partitions),
            _ => (now, BTreeSet::new()),
        };
        let markers_due = now + marker_delay;
        entry.state = TxnState::Prepare { goal, started, partitions, markers_due, next_producer_id };
        entry.updated = now;
        self.preparing.insert((markers_due, transactional_id.clone()));
        match next_producer_id {
            Some(id) => ProducerIdentity { id, epoch: 0 },
            None => entry.producer,
        }
    }
}

#[cfg(test)]
mod tests;
