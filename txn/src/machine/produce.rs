//! Batches of the open transaction.

use super::{LaneRequest, Machine};
use crate::ids::{ErrorCode, PartitionIndex, RequestId};
use crate::outcome::{Cause, RequestKind};
use crate::output::{Event, Protocol, Request};
use crate::reply::Reply;
use crate::sequence::Pause;
use crate::state::Known;
use crate::verdict::{Verdict, verdict};

/// How often a batch may be called corrupt before we believe it.
const CORRUPTIONS_MAX: u32 = 1;

impl Machine {
    /// Send what the lanes may send whose back-off has ended.
    pub(super) fn pump_held_lanes(&mut self) {
        let now = self.now;
        let due = self.lanes.held().filter(|(_, lane)| lane.is_due(now));
        let due: Vec<PartitionIndex> = due.map(|(partition, _)| partition).collect();
        self.lanes.release(&due);
        for partition in due {
            self.pump_lane(partition);
        }
    }

    /// Send what all lanes may send: partitions were added, or there is a new identity.
    pub(super) fn pump_all_lanes(&mut self) {
        if self.state.producing().is_none() {
            return;
        }
        let active: Vec<PartitionIndex> = self.lanes.active().map(|(partition, _)| partition).collect();
        for partition in active {
            self.pump_lane(partition);
        }
    }

    /// Send what this lane may send.
    pub(super) fn pump_lane(&mut self, partition: PartitionIndex) {
        if !self.state.admits(partition) {
            return;
        }
        while self.lanes.get(partition).is_some_and(|lane| lane.can_ship(self.now)) {
            let id = self.next_id();
            let now = self.now;
            let Some(open) = self.state.open_mut() else { return };
            let (identity, protocol) = (open.session.identity, open.session.protocol);
            let Some(shipment) = self.lanes.get_mut(partition).and_then(|lane| lane.ship(now, identity, id)) else {
                return;
            };
            open.transaction.sent(now);
            self.lanes.shipped();
            self.requests.insert(id, LaneRequest::Produce(partition));
            let (batch, base_sequence, retry) = (shipment.batch, shipment.base_sequence, shipment.retry);
            self.send(id, Request::Produce { identity, partition, batch, base_sequence, retry, protocol });
        }
    }

    pub(super) fn produce_replied(&mut self, partition: PartitionIndex, request: RequestId, reply: Reply) {
        self.lanes.landed();
        match reply {
            Reply::Produced { code, base_offset, leader_known, .. } => {
                self.learn_from_leader(code);
                let hint = if leader_known { Hint::LeaderNamed } else { Hint::None };
                self.produce_answered(partition, request, code, base_offset, hint);
            }
            Reply::Lost { sent: false } => {
                if let Some(lane) = self.lanes.get_mut(partition) {
                    lane.never_left(request);
                }
                self.produce_again(partition, request, Pause::Ordinary, LookUp::Yes);
            }
            // A reply of the wrong kind is a fault of the driver; the request was sent, and nobody knows its fate.
            _ => {
                if let Some(open) = self.state.open_mut() {
                    open.transaction.late_copy = true;
                    if open.session.protocol == Protocol::Implicit {
                        open.transaction.learn(Known::Maybe);
                    }
                }
                self.produce_again(partition, request, Pause::Ordinary, LookUp::Yes);
            }
        }
    }

    /// In the implicit protocol the leader opens the transaction at the coordinator before it looks at the batch, so even a
    /// refused Produce may have opened it (franz-go once left such a one open for the next transaction to join).
    fn learn_from_leader(&mut self, code: ErrorCode) {
        let Some(open) = self.state.open_mut() else { return };
        if open.session.protocol == Protocol::Implicit {
            let known = if matches!(code.0, 0 | 46) { Known::Yes } else { Known::Maybe };
            open.transaction.learn(known);
        }
    }

    fn produce_answered(
        &mut self,
        partition: PartitionIndex,
        request: RequestId,
        code: ErrorCode,
        base_offset: i64,
        hint: Hint,
    ) {
        let cause = Cause::Code { request: RequestKind::Produce, code, partition: Some(partition) };
        match verdict(RequestKind::Produce, code) {
            Verdict::Done => self.produce_acked(partition, request, (base_offset >= 0).then_some(base_offset)),
            Verdict::DoneBefore => self.produce_acked(partition, request, None),
            Verdict::Retry | Verdict::RetryUnsure => {
                self.produce_again(partition, request, Pause::Ordinary, LookUp::No);
            }
            Verdict::RetryConcurrent => self.produce_again(partition, request, Pause::Concurrent, LookUp::No),
            Verdict::RetryElsewhere => match hint {
                Hint::LeaderNamed => self.produce_again(partition, request, Pause::LeaderNamed, LookUp::No),
                Hint::None => self.produce_again(partition, request, Pause::Ordinary, LookUp::Yes),
            },
            Verdict::RetryOnce => {
                let corruptions = self.lanes.get_mut(partition).map_or(u32::MAX, |lane| lane.corrupted(request));
                if corruptions <= CORRUPTIONS_MAX {
                    self.produce_again(partition, request, Pause::Ordinary, LookUp::No);
                } else {
                    self.produce_refused(partition, request, cause);
                }
            }
            Verdict::OutOfOrder => {
                let lowest = self.lanes.get(partition).is_none_or(|lane| lane.is_lowest(request));
                if lowest {
                    self.produce_refused(partition, request, cause);
                } else {
                    self.produce_again(partition, request, Pause::None, LookUp::No);
                }
            }
            Verdict::Fenced => self.fenced(cause),
            Verdict::Fatal => self.fatal(cause),
            _ => self.produce_refused(partition, request, cause),
        }
    }

    fn produce_acked(&mut self, partition: PartitionIndex, request: RequestId, base_offset: Option<i64>) {
        let Some(batch) = self.lanes.get_mut(partition).and_then(|lane| lane.acked(request)) else { return };
        self.lanes.closed(partition, batch);
        self.tell(Event::Acked { batch, base_offset });
    }

    /// Try again later, unless the transaction is only waiting for its requests to come home.
    fn produce_again(&mut self, partition: PartitionIndex, request: RequestId, pause: Pause, look_up: LookUp) {
        if self.state.producing().is_none() {
            self.give_up(partition, request);
            return;
        }
        let now = self.now;
        let Some(lane) = self.lanes.get_mut(partition) else { return };
        lane.again(request, now, pause, &mut self.jitter);
        self.lanes.hold(partition);
        let Some(lane) = self.lanes.get_mut(partition) else { return };
        if look_up == LookUp::Yes && !lane.awaits_metadata() {
            let id = self.next_id();
            if let Some(lane) = self.lanes.get_mut(partition) {
                lane.await_metadata(id);
            }
            self.requests.insert(id, LaneRequest::Metadata(partition));
            self.send(id, Request::RefreshMetadata { partition });
        }
    }

    /// This batch failed for good, and with it the transaction.
    fn produce_refused(&mut self, partition: PartitionIndex, request: RequestId, cause: Cause) {
        self.give_up(partition, request);
        self.abort_only(cause);
    }

    fn give_up(&mut self, partition: PartitionIndex, request: RequestId) {
        let Some(batch) = self.lanes.get_mut(partition).and_then(|lane| lane.give_up(request)) else { return };
        self.lanes.closed(partition, batch);
        self.lanes.spend();
        self.tell(Event::Dropped { batch });
    }
}

/// Whether the leader must be looked up before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookUp {
    Yes,
    No,
}

/// What the answer said about the leader (KIP-951).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hint {
    LeaderNamed,
    None,
}
