//! LeaveGroup (key 13), versions 0 to 5: since version 3 several members at once, each with a code of its own.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use crate::broker::Broker;
use crate::time::Timestamp;

const FIRST_VERSION_WITH_MEMBERS: i16 = 3;

pub(super) fn serve(
    broker: &mut Broker,
    now: Timestamp,
    version: i16,
    request: &LeaveGroupRequest,
) -> LeaveGroupResponse {
    let mut leave = |member_id: &str| match broker.groups.leave(now, &request.group_id, member_id) {
        Ok(()) => 0,
        Err(code) => code.code(),
    };
    if version < FIRST_VERSION_WITH_MEMBERS {
        return LeaveGroupResponse::default().with_error_code(leave(&request.member_id));
    }
    let members = request.members.iter().map(|member| {
        MemberResponse::default()
            .with_member_id(member.member_id.clone())
            .with_group_instance_id(member.group_instance_id.clone())
            .with_error_code(leave(&member.member_id))
    });
    LeaveGroupResponse::default().with_members(members.collect())
}

pub(super) fn refuse(code: ResponseError) -> LeaveGroupResponse {
    LeaveGroupResponse::default().with_error_code(code.code())
}
