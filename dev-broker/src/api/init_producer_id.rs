//! InitProducerId (key 22), versions 0 to 5: a producer id and epoch, and the fencing of predecessors.
//!
//! Without a transactional id always a new producer id with epoch 0. Before version 4 PRODUCER_FENCED is
//! INVALID_PRODUCER_EPOCH (KIP-588). Left out: version 6, the unstable two-phase commit of KIP-939.

use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use super::fenced_as_of;
use crate::broker::Broker;
use crate::time::Timestamp;
use crate::transactions::state::{NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity};

pub(super) fn serve(
    broker: &mut Broker,
    now: Timestamp,
    version: i16,
    request: &InitProducerIdRequest,
) -> InitProducerIdResponse {
    match init(broker, now, request) {
        Ok(producer) => InitProducerIdResponse::default()
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch),
        Err(code) => refuse(fenced_as_of(version, 4, code)),
    }
}

pub(super) fn refuse(code: ResponseError) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(code.code())
        .with_producer_id(ProducerId(NO_PRODUCER_ID))
        .with_producer_epoch(NO_EPOCH)
}

fn init(
    broker: &mut Broker,
    now: Timestamp,
    request: &InitProducerIdRequest,
) -> Result<ProducerIdentity, ResponseError> {
    let brought = match (request.producer_id.0, request.producer_epoch) {
        (NO_PRODUCER_ID, NO_EPOCH) => None,
        // One without the other says nothing.
        (NO_PRODUCER_ID, _) | (_, NO_EPOCH) => return Err(ResponseError::InvalidRequest),
        (id, epoch) => Some(ProducerIdentity { id, epoch }),
    };
    let Some(transactional_id) = &request.transactional_id else {
        return Ok(ProducerIdentity { id: broker.coordinator.allocate_producer_id(), epoch: 0 });
    };
    if transactional_id.is_empty() {
        return Err(ResponseError::InvalidRequest);
    }
    let timeout_ms = u64::try_from(request.transaction_timeout_ms).unwrap_or(0);
    let timeout = Duration::from_millis(timeout_ms);
    broker.coordinator.init_producer_id(now, &broker.settings, transactional_id, timeout, brought)
}
