//! SyncGroup (key 14), versions 0 to 5: the leader hands the assignments in, the others wait for theirs.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::text;
use crate::broker::Broker;
use crate::groups::{Claim, Step, Synced};
use crate::time::Timestamp;

pub(crate) fn attempt(broker: &mut Broker, now: Timestamp, request: &SyncGroupRequest) -> Step {
    let assignments =
        request.assignments.iter().map(|one| (one.member_id.to_string(), one.assignment.clone())).collect();
    let claim = Claim { member_id: &request.member_id, generation: request.generation_id };
    let protocol = (request.protocol_type.as_deref(), request.protocol_name.as_deref());
    broker.groups.sync(now, &request.group_id, claim, protocol, assignments)
}

pub(crate) fn answer(decided: Result<Synced, ResponseError>) -> SyncGroupResponse {
    match decided {
        Err(code) => refuse(code),
        Ok(synced) => SyncGroupResponse::default()
            .with_protocol_type(Some(text(&synced.protocol_type)))
            .with_protocol_name(Some(text(&synced.protocol)))
            .with_assignment(synced.assignment),
    }
}

pub(super) fn refuse(code: ResponseError) -> SyncGroupResponse {
    SyncGroupResponse::default().with_error_code(code.code())
}
