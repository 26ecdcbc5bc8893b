//! EndTxn (key 26), versions 0 to 5: the outcome is decided here; the markers follow.
//!
//! Version 5 is the implicit generation: it raises the epoch, serves an abort of nothing, and recognises its own
//! repetition, whatever level the feature `transaction.version` has, as on a real broker. Before version 2
//! PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{EndTxnRequest, EndTxnResponse, ProducerId};

use super::fenced_as_of;
use crate::broker::Broker;
use crate::time::Timestamp;
use crate::transactions::TxnClaim;
use crate::transactions::state::{Generation, Goal, NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity};

const FIRST_IMPLICIT_VERSION: i16 = 5;
const FIRST_FENCED_VERSION: i16 = 2;

pub(super) fn serve(broker: &mut Broker, now: Timestamp, version: i16, request: &EndTxnRequest) -> EndTxnResponse {
    let producer = ProducerIdentity { id: request.producer_id.0, epoch: request.producer_epoch };
    let claim = TxnClaim { transactional_id: &request.transactional_id, producer };
    let goal = if request.committed { Goal::Commit } else { Goal::Abort };
    let generation = if version >= FIRST_IMPLICIT_VERSION { Generation::Implicit } else { Generation::Explicit };
    let marker_delay = broker.settings.marker_delay;
    match broker.coordinator.end_txn(now, marker_delay, claim, goal, generation) {
        Err(code) => refuse(fenced_as_of(version, FIRST_FENCED_VERSION, code)),
        Ok(_) if generation == Generation::Explicit => no_identity(),
        Ok(next) => no_identity().with_producer_id(ProducerId(next.id)).with_producer_epoch(next.epoch),
    }
}

pub(super) fn refuse(code: ResponseError) -> EndTxnResponse {
    no_identity().with_error_code(code.code())
}

fn no_identity() -> EndTxnResponse {
    EndTxnResponse::default().with_producer_id(ProducerId(NO_PRODUCER_ID)).with_producer_epoch(NO_EPOCH)
}
