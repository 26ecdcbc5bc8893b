//! Heartbeat (key 12), versions 0 to 4: a member's sign of life, and how it learns of a rebalance.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use crate::broker::Broker;
use crate::groups::Claim;
use crate::time::Timestamp;

pub(super) fn serve(broker: &mut Broker, now: Timestamp, request: &HeartbeatRequest) -> HeartbeatResponse {
    let claim = Claim { member_id: &request.member_id, generation: request.generation_id };
    match broker.groups.heartbeat(now, &request.group_id, claim) {
        Ok(()) => HeartbeatResponse::default(),
        Err(code) => refuse(code),
    }
}

pub(super) fn refuse(code: ResponseError) -> HeartbeatResponse {
    HeartbeatResponse::default().with_error_code(code.code())
}
