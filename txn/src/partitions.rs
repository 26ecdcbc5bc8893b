//! The partitions: which belong to the open transaction, and the lanes of all that were ever written to.
//!
//! ```text
//! explicit protocol:   new → adding → added → (Produce)      adding → new again on a retriable code or a lost answer
//! implicit protocol:   (Produce adds it)
//! ```
//!
//! A partition counts as added only after its own code 0; that another one of the same request failed does not take it
//! back (both were bugs of franz-go, see KAFKA-13782 for the same in Java).

use crate::ids::{BatchId, PartitionIndex, ProducerIdentity, Time};
use crate::sequence::{Dropped, Lane};
use crate::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};

/// How far a partition is in becoming part of the open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registration {
    New,
    Adding,
    Added,
}

/// The partitions of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    states: BTreeMap<PartitionIndex, Registration>,
    new: usize,
}

impl Registrations {
    /// The transaction has a batch for this partition.
    pub(crate) fn note(&mut self, partition: PartitionIndex) {
        let new = &mut self.new;
        self.states.entry(partition).or_insert_with(|| {
            *new += 1;
            Registration::New
        });
    }

    pub(crate) fn has_new(&self) -> bool {
        self.new > 0
    }

    pub(crate) fn is_added(&self, partition: PartitionIndex) -> bool {
        self.states.get(&partition) == Some(&Registration::Added)
    }

    /// All that must be added, for one request.
    pub(crate) fn take_new(&mut self) -> Vec<PartitionIndex> {
        self.new = 0;
        let new = self.states.iter_mut().filter(|(_, state)| **state == Registration::New);
        new.map(|(partition, state)| {
            *state = Registration::Adding;
            *partition
        })
        .collect()
    }

    /// The coordinator has added it.
    pub(crate) fn added(&mut self, partition: PartitionIndex) {
        if let Some(state @ Registration::Adding) = self.states.get_mut(&partition) {
            *state = Registration::Added;
        }
    }

    /// It must be asked for again.
    pub(crate) fn not_added(&mut self, partition: PartitionIndex) {
        if let Some(state @ Registration::Adding) = self.states.get_mut(&partition) {
            *state = Registration::New;
            self.new += 1;
        }
    }
}

/// The lanes of all partitions, bounded, over the life of the machine.
///
/// What every input needs to know (is anything in flight, what is due next, who is held) is kept beside the lanes, so that an
/// input costs the logarithm of the number of partitions and not the number itself.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<PartitionIndex, Lane>,
    /// Those with a batch that is neither acknowledged nor dropped.
    active: BTreeSet<PartitionIndex>,
    /// Every such batch, with its deadline.
    live: BTreeMap<BatchId, (PartitionIndex, Time)>,
    /// The same by deadline.
    deadlines: BTreeSet<(Time, BatchId)>,
    /// Lanes that wait for their back-off.
    held: BTreeSet<PartitionIndex>,
    /// Produce requests without a reply, those of transactions that are over left out.
    in_flight: usize,
    /// A number was spent on a batch that was given up, so nothing may follow it under this identity.
    spent: bool,
}

impl Lanes {
    pub(crate) fn get(&self, partition: PartitionIndex) -> Option<&Lane> {
        self.lanes.get(&partition)
    }

    pub(crate) fn get_mut(&mut self, partition: PartitionIndex) -> Option<&mut Lane> {
        self.lanes.get_mut(&partition)
    }

    /// The lanes with open batches.
    pub(crate) fn active(&self) -> impl Iterator<Item = (PartitionIndex, &Lane)> {
        self.active.iter().filter_map(|partition| Some((*partition, self.lanes.get(partition)?)))
    }

    /// Batches that are neither acknowledged nor dropped.
    pub(crate) fn live(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn is_live(&self, batch: BatchId) -> bool {
        self.live.contains_key(&batch)
    }

    /// The batch with the first deadline.
    pub(crate) fn next_deadline(&self) -> Option<(PartitionIndex, Time)> {
        let (_, batch) = self.deadlines.first()?;
        self.live.get(batch).copied()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// A Produce was sent.
    pub(crate) fn shipped(&mut self) {
        self.in_flight += 1;
    }

    /// A Produce came home.
    pub(crate) fn landed(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The lane may have to wait for its back-off.
    pub(crate) fn hold(&mut self, partition: PartitionIndex) {
        self.held.insert(partition);
    }

    /// The lanes that wait for their back-off, or have waited.
    pub(crate) fn held(&self) -> impl Iterator<Item = (PartitionIndex, &Lane)> {
        self.held.iter().filter_map(|partition| Some((*partition, self.lanes.get(partition)?)))
    }

    /// The back-off of these lanes has ended.
    pub(crate) fn release(&mut self, partitions: &[PartitionIndex]) {
        for partition in partitions {
            self.held.remove(partition);
        }
    }

    /// The lane of a partition, made if there is room. Numbers of an older identity are of no use and make room.
    pub(crate) fn lane(
        &mut self,
        partition: PartitionIndex,
        identity: ProducerIdentity,
        settings: &Settings,
    ) -> Option<&mut Lane> {
        if !self.lanes.contains_key(&partition) {
            if self.lanes.len() >= settings.partitions_max {
                self.lanes
                    .retain(|_, lane| !lane.is_empty() || lane.awaits_metadata() || lane.numbering() == Some(identity));
            }
            if self.lanes.len() >= settings.partitions_max {
                return None;
            }
            self.lanes.insert(partition, Lane::new(settings));
        }
        self.lanes.get_mut(&partition)
    }

    pub(crate) fn opened(&mut self, partition: PartitionIndex, batch: BatchId, deadline: Time) {
        self.active.insert(partition);
        self.live.insert(batch, (partition, deadline));
        self.deadlines.insert((deadline, batch));
    }

    fn forget(&mut self, batch: BatchId) {
        if let Some((_, deadline)) = self.live.remove(&batch) {
            self.deadlines.remove(&(deadline, batch));
        }
    }

    /// The batch was acknowledged.
    pub(crate) fn closed(&mut self, partition: PartitionIndex, batch: BatchId) {
        self.forget(batch);
        if self.lanes.get(&partition).is_none_or(Lane::is_empty) {
            self.active.remove(&partition);
        }
    }

    /// A batch with a number was given up.
    pub(crate) fn spend(&mut self) {
        self.spent = true;
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    /// A new identity: all lanes will start at 0.
    pub(crate) fn renew(&mut self) {
        self.spent = false;
    }

    /// Give up what is not in flight, and return it.
    pub(crate) fn drop_idle(&mut self) -> Vec<BatchId> {
        self.drop_with(Lane::drop_idle)
    }

    /// Give up everything, and return it.
    pub(crate) fn drop_all(&mut self) -> Vec<BatchId> {
        self.in_flight = 0;
        self.drop_with(Lane::drop_all)
    }

    fn drop_with(&mut self, drop: fn(&mut Lane, &mut Dropped)) -> Vec<BatchId> {
        let mut dropped = Dropped::default();
        for partition in &self.active {
            if let Some(lane) = self.lanes.get_mut(partition) {
                drop(lane, &mut dropped);
            }
        }
        self.active.retain(|partition| self.lanes.get(partition).is_some_and(|lane| !lane.is_empty()));
        self.held.clear();
        for batch in &dropped.batches {
            self.forget(*batch);
        }
        self.spent |= dropped.numbered > 0;
        dropped.batches
    }
}
