//! JoinGroup (key 11), versions 1 to 9: the answer comes when the group has its next generation.
//!
//! Since version 4 a new member is given an id first (KIP-394). A `group.instance.id` is refused: there are no static
//! members here.

use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};

use super::text;
use crate::broker::Broker;
use crate::groups::{Decision, JoinAsked, JoinRefusal, Joined, Step};
use crate::time::Timestamp;

const FIRST_VERSION_WITH_REQUIRED_ID: i16 = 4;
/// From here on there may be no protocol in the answer.
const FIRST_VERSION_WITHOUT_PROTOCOL: i16 = 7;
/// Real ids begin with the client's own; that stands in the header, which the core does not see.
const CLIENT: &str = "member";

pub(crate) fn attempt(broker: &mut Broker, now: Timestamp, version: i16, request: &JoinGroupRequest) -> Step {
    let refuse = |code| Step::Now(Decision::Join(Err((code, request.member_id.to_string()))));
    if request.group_instance_id.is_some() {
        return refuse(ResponseError::UnsupportedVersion);
    }
    let session = millis(request.session_timeout_ms);
    let range = broker.settings.group_session_timeout_min..=broker.settings.group_session_timeout_max;
    if !range.contains(&session) {
        return refuse(ResponseError::InvalidSessionTimeout);
    }
    let protocols = request.protocols.iter().map(|protocol| (protocol.name.to_string(), protocol.metadata.clone()));
    let asked = JoinAsked {
        member_id: request.member_id.to_string(),
        client_id: CLIENT.to_owned(),
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols.collect(),
        session,
        rebalance: millis(request.rebalance_timeout_ms),
        requires_id: version >= FIRST_VERSION_WITH_REQUIRED_ID,
    };
    broker.groups.join(now, broker.settings.group_initial_rebalance_delay, &request.group_id, asked)
}

pub(crate) fn answer(version: i16, decided: Result<Joined, JoinRefusal>) -> JoinGroupResponse {
    let joined = match decided {
        Ok(joined) => joined,
        Err((code, member_id)) => return refuse(version, code).with_member_id(text(&member_id)),
    };
    let members = joined.members.into_iter().map(|(member_id, metadata)| {
        JoinGroupResponseMember::default().with_member_id(text(&member_id)).with_metadata(metadata)
    });
    JoinGroupResponse::default()
        .with_generation_id(joined.generation)
        .with_protocol_type(Some(text(&joined.protocol_type)))
        .with_protocol_name(Some(text(&joined.protocol)))
        .with_leader(text(&joined.leader))
        .with_member_id(text(&joined.member_id))
        .with_members(members.collect())
}

pub(super) fn refuse(version: i16, code: ResponseError) -> JoinGroupResponse {
    let protocol = (version < FIRST_VERSION_WITHOUT_PROTOCOL).then(|| text(""));
    JoinGroupResponse::default().with_error_code(code.code()).with_generation_id(-1).with_protocol_name(protocol)
}

fn millis(millis: i32) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
