//! The lane of one partition: its sequence numbers and its window of five batches.
//!
//! ```text
//! append → [waiting …] → number → [window: at most five, in sequence order] → acked
//!                                     ↑ in flight ↔ to be sent again
//! ```
//!
//! - A batch gets its sequence when it is first sent and keeps it for ever: it is sent again under the same number or not
//!   at all (KIP-98; a batch that was rebuilt for its retry broke librdkafka, and one whose number was given to new data
//!   after a time-out lost records in franz-go).
//! - When a batch fails in a way that can be retried, the lane sends nothing until everything in flight has been answered,
//!   then sends the lowest alone, and opens the window again when that one is acknowledged. So the log keeps the order of
//!   appends even when the leader moves between two batches.
//! - The numbers belong to (producer id, epoch). Under another identity the lane starts at 0, when it is next used, so a
//!   partition that was idle during a bump cannot keep its old numbers (KAFKA-12152). They live here and not with the
//!   metadata, so a topic that seems to vanish for a moment does not restart them (librdkafka 1.9.0).
//!
//! A window of five is what brokers remember per producer and partition for telling duplicates from gaps.

use crate::backoff::{Backoff, Jitter};
use crate::ids::{BatchId, ProducerIdentity, RequestId, Sequence, Span, Time};
use crate::settings::Settings;
use std::collections::VecDeque;

/// Batches per partition that have a sequence and no acknowledgement.
pub(crate) const WINDOW_MAX: usize = 5;

/// A batch that was appended and has no number yet.
#[derive(Debug, Clone)]
struct Waiting {
    batch: BatchId,
    records: u32,
}

/// A batch with a number.
#[derive(Debug, Clone)]
struct Numbered {
    batch: BatchId,
    base: Sequence,
    in_flight: Option<RequestId>,
    /// How often bytes of it may have left.
    sends: u32,
    /// How often a broker called its bytes corrupt.
    corruptions: u32,
}

/// One Produce to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shipment {
    pub(crate) batch: BatchId,
    pub(crate) base_sequence: i32,
    pub(crate) retry: bool,
}

/// Why a batch is sent again, which decides how long the lane waits first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The ordinary back-off.
    Ordinary,
    /// The short one, while the markers of the previous transaction are being written.
    Concurrent,
    /// The answer named the new leader: none the first time, then the ordinary one, lest two brokers name each other.
    LeaderNamed,
    /// None: only an earlier batch of the lane holds this one back.
    None,
}

#[derive(Debug)]
pub(crate) struct Lane {
    numbering: Option<ProducerIdentity>,
    next: Sequence,
    window: VecDeque<Numbered>,
    waiting: VecDeque<Waiting>,
    /// Set from a retriable failure until the lowest batch is acknowledged: one at a time.
    recovering: bool,
    not_before: Time,
    metadata: Option<RequestId>,
    retry: Backoff,
    concurrent: Backoff,
}

impl Lane {
    pub(crate) fn new(settings: &Settings) -> Lane {
        Lane {
            numbering: None,
            next: Sequence::default(),
            window: VecDeque::new(),
            waiting: VecDeque::new(),
            recovering: false,
            not_before: Time::default(),
            metadata: None,
            retry: Backoff::new(settings.retry_backoff, settings.retry_backoff_max),
            concurrent: Backoff::new(settings.concurrent_backoff, settings.concurrent_backoff_max),
        }
    }

    pub(crate) fn append(&mut self, batch: BatchId, records: u32) {
        self.waiting.push_back(Waiting { batch, records });
    }

    /// Whether every batch was acknowledged or dropped.
    pub(crate) fn is_empty(&self) -> bool {
        self.window.is_empty() && self.waiting.is_empty()
    }

    /// Whose numbers these are.
    pub(crate) fn numbering(&self) -> Option<ProducerIdentity> {
        self.numbering
    }

    fn in_flight(&self) -> usize {
        self.window.iter().filter(|numbered| numbered.in_flight.is_some()).count()
    }

    /// When the lane may send again, if time alone holds it back.
    pub(crate) fn held_until(&self, now: Time) -> Option<Time> {
        (self.not_before > now && self.metadata.is_none() && self.candidate().is_some()).then_some(self.not_before)
    }

    /// Whether its back-off has ended.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.not_before <= now
    }

    /// Whether [`Lane::ship`] has something to send now.
    pub(crate) fn can_ship(&self, now: Time) -> bool {
        self.not_before <= now && self.metadata.is_none() && self.candidate().is_some()
    }

    fn candidate(&self) -> Option<Candidate> {
        if self.recovering && self.in_flight() > 0 {
            return None;
        }
        if let Some(index) = self.window.iter().position(|numbered| numbered.in_flight.is_none()) {
            return Some(Candidate::Again(index));
        }
        let room = self.window.len() < WINDOW_MAX && (!self.recovering || self.window.is_empty());
        (room && !self.waiting.is_empty()).then_some(Candidate::First)
    }

    /// Take the next batch to send, numbering it under `identity` if it is new. `None` when nothing may be sent.
    pub(crate) fn ship(&mut self, now: Time, identity: ProducerIdentity, request: RequestId) -> Option<Shipment> {
        if !self.can_ship(now) {
            return None;
        }
        let index = match self.candidate()? {
            Candidate::Again(index) => index,
            Candidate::First => {
                let waiting = self.waiting.pop_front()?;
                self.adopt(identity);
                let base = self.next;
                self.next = base.advance(waiting.records);
                self.window.push_back(Numbered {
                    batch: waiting.batch,
                    base,
                    in_flight: None,
                    sends: 0,
                    corruptions: 0,
                });
                self.window.len() - 1
            }
        };
        let numbered = self.window.get_mut(index)?;
        numbered.in_flight = Some(request);
        numbered.sends = numbered.sends.saturating_add(1);
        Some(Shipment { batch: numbered.batch, base_sequence: numbered.base.on_wire(), retry: numbered.sends > 1 })
    }

    /// Under a new identity the numbers start at 0. The window is empty then: a bump comes only between transactions.
    fn adopt(&mut self, identity: ProducerIdentity) {
        if self.numbering != Some(identity) {
            self.numbering = Some(identity);
            self.next = Sequence::default();
            self.recovering = false;
        }
    }

    fn position(&self, request: RequestId) -> Option<usize> {
        self.window.iter().position(|numbered| numbered.in_flight == Some(request))
    }

    /// The batch of this request is in the log.
    pub(crate) fn acked(&mut self, request: RequestId) -> Option<BatchId> {
        let index = self.position(request)?;
        let numbered = self.window.remove(index)?;
        if index == 0 {
            // Only the lowest proves that the leader expects what we send next.
            self.recovering = false;
            self.retry.reset();
            self.concurrent.reset();
        }
        Some(numbered.batch)
    }

    /// The batch of this request is to be sent again, under the same sequence.
    pub(crate) fn again(&mut self, request: RequestId, now: Time, pause: Pause, jitter: &mut Jitter) {
        let Some(index) = self.position(request) else { return };
        if let Some(numbered) = self.window.get_mut(index) {
            numbered.in_flight = None;
        }
        self.recovering = true;
        let wait = match pause {
            Pause::Ordinary => self.retry.next(jitter),
            Pause::Concurrent => self.concurrent.next(jitter),
            Pause::LeaderNamed if self.retry.is_fresh() => {
                self.retry.next(jitter);
                Span(0)
            }
            Pause::LeaderNamed => self.retry.next(jitter),
            Pause::None => Span(0),
        };
        self.not_before = self.not_before.max(now.after(wait));
    }

    /// Not one byte of this request left: the batch is as it was before.
    pub(crate) fn never_left(&mut self, request: RequestId) {
        let index = self.position(request);
        if let Some(numbered) = index.and_then(|index| self.window.get_mut(index)) {
            numbered.sends = numbered.sends.saturating_sub(1);
        }
    }

    /// Count a reply that called the bytes corrupt, and return how many there were.
    pub(crate) fn corrupted(&mut self, request: RequestId) -> u32 {
        let index = self.position(request);
        index.and_then(|index| self.window.get_mut(index)).map_or(u32::MAX, |numbered| {
            numbered.corruptions = numbered.corruptions.saturating_add(1);
            numbered.corruptions
        })
    }

    /// Whether no batch with a lower sequence is open: then the broker must have expected this one.
    pub(crate) fn is_lowest(&self, request: RequestId) -> bool {
        self.position(request) == Some(0)
    }

    /// Give up the batch of this request. Its number is spent.
    pub(crate) fn give_up(&mut self, request: RequestId) -> Option<BatchId> {
        let index = self.position(request)?;
        self.window.remove(index).map(|numbered| numbered.batch)
    }

    /// Give up everything that is not in flight.
    pub(crate) fn drop_idle(&mut self, dropped: &mut Dropped) {
        let (in_flight, idle): (VecDeque<_>, VecDeque<_>) =
            self.window.drain(..).partition(|numbered| numbered.in_flight.is_some());
        self.window = in_flight;
        dropped.numbered += idle.len();
        dropped.batches.extend(idle.into_iter().map(|numbered| numbered.batch));
        dropped.batches.extend(self.waiting.drain(..).map(|waiting| waiting.batch));
    }

    /// Give up everything; answers that come later belong to nobody.
    pub(crate) fn drop_all(&mut self, dropped: &mut Dropped) {
        for numbered in &mut self.window {
            numbered.in_flight = None;
        }
        self.drop_idle(dropped);
        self.recovering = false;
        self.not_before = Time::default();
        self.retry.reset();
        self.concurrent.reset();
    }

    /// The lane waits for this look-up of its leader.
    pub(crate) fn await_metadata(&mut self, request: RequestId) {
        self.metadata = Some(request);
    }

    pub(crate) fn awaits_metadata(&self) -> bool {
        self.metadata.is_some()
    }

    /// A look-up is done, or failed: either way the lane may try its leader again.
    pub(crate) fn metadata_arrived(&mut self, request: RequestId) {
        if self.metadata == Some(request) {
            self.metadata = None;
        }
    }

    #[cfg(test)]
    pub(crate) fn start_at(&mut self, identity: ProducerIdentity, value: i32) {
        self.adopt(identity);
        self.next = Sequence::at(value);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Candidate {
    /// The numbered batch at this place of the window.
    Again(usize),
    /// The first that waits for its number.
    First,
}

/// What lanes gave up.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) batches: Vec<BatchId>,
    /// How many of them had a number: those numbers are spent, so the identity is too.
    pub(crate) numbered: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: ProducerIdentity = ProducerIdentity { id: 1, epoch: 0 };

    fn lane_with(batches: u64, records: u32) -> Lane {
        let mut lane = Lane::new(&Settings::default());
        for batch in 0..batches {
            lane.append(BatchId(batch), records);
        }
        lane
    }

    fn ship_all(lane: &mut Lane, now: Time, identity: ProducerIdentity, first: u64) -> Vec<(u64, i32, bool)> {
        let requests = first..;
        requests
            .map_while(|request| lane.ship(now, identity, RequestId(request)))
            .map(|shipment| (shipment.batch.0, shipment.base_sequence, shipment.retry))
            .collect()
    }

    #[test]
    fn twenty_records_from_just_below_the_largest_sequence_go_on_at_zero() {
        let mut lane = lane_with(3, 20);
        lane.start_at(OURS, 2_147_483_640);
        assert_eq!(ship_all(&mut lane, Time(0), OURS, 0), [(0, 2_147_483_640, false), (1, 12, false), (2, 32, false)]);
    }

    #[test]
    fn failed_batch_waits_for_the_others_goes_alone_and_then_the_rest_follow_in_order() {
        let mut lane = lane_with(7, 1);
        let mut jitter = Jitter::new(1);
        assert_eq!(ship_all(&mut lane, Time(0), OURS, 0).len(), WINDOW_MAX);
        lane.again(RequestId(1), Time(0), Pause::None, &mut jitter);
        assert!(!lane.can_ship(Time(0)), "others are in flight");
        assert_eq!(lane.acked(RequestId(0)), Some(BatchId(0)));
        for request in [2, 3, 4] {
            lane.again(RequestId(request), Time(0), Pause::None, &mut jitter);
        }
        assert_eq!(ship_all(&mut lane, Time(0), OURS, 10), [(1, 1, true)], "the lowest, alone");
        assert_eq!(lane.acked(RequestId(10)), Some(BatchId(1)));
        assert_eq!(
            ship_all(&mut lane, Time(0), OURS, 20),
            [(2, 2, true), (3, 3, true), (4, 4, true), (5, 5, false), (6, 6, false)]
        );
    }

    #[test]
    fn new_identity_starts_at_zero_even_on_a_lane_that_was_idle_during_the_bump() {
        let mut lane = lane_with(1, 9);
        ship_all(&mut lane, Time(0), OURS, 0);
        lane.acked(RequestId(0));
        lane.append(BatchId(1), 1);
        let bumped = ProducerIdentity { id: 1, epoch: 1 };
        assert_eq!(ship_all(&mut lane, Time(0), bumped, 1), [(1, 0, false)]);
    }

    #[test]
    fn batch_that_never_left_is_no_retry() {
        let mut lane = lane_with(1, 1);
        ship_all(&mut lane, Time(0), OURS, 0);
        lane.never_left(RequestId(0));
        lane.again(RequestId(0), Time(0), Pause::None, &mut Jitter::new(1));
        assert_eq!(ship_all(&mut lane, Time(0), OURS, 1), [(0, 0, false)]);
    }

    #[test]
    fn named_leader_is_tried_at_once_the_first_time_only() {
        let mut lane = lane_with(1, 1);
        let mut jitter = Jitter::new(1);
        ship_all(&mut lane, Time(0), OURS, 0);
        lane.again(RequestId(0), Time(0), Pause::LeaderNamed, &mut jitter);
        assert_eq!(ship_all(&mut lane, Time(0), OURS, 1).len(), 1);
        lane.again(RequestId(1), Time(0), Pause::LeaderNamed, &mut jitter);
        assert!(!lane.can_ship(Time(0)));
    }
}
