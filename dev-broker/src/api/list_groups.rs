//! ListGroups (key 16), versions 0 to 5: all groups, since version 4 by state (KIP-518), since version 5 by type (KIP-848).
//!
//! All groups here are classic ones.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::text;
use crate::broker::Broker;

const FIRST_VERSION_WITH_STATES: i16 = 4;
const FIRST_VERSION_WITH_TYPES: i16 = 5;
const CLASSIC: &str = "classic";

pub(super) fn serve(broker: &Broker, version: i16, request: &ListGroupsRequest) -> ListGroupsResponse {
    let is_asked_for = |filter: &[StrBytes], value: &str| {
        filter.is_empty() || filter.iter().any(|one| one.as_str().eq_ignore_ascii_case(value))
    };
    let mut groups = Vec::new();
    for listed in broker.groups.list() {
        if !is_asked_for(&request.states_filter, listed.state) || !is_asked_for(&request.types_filter, CLASSIC) {
            continue;
        }
        let mut group = ListedGroup::default()
            .with_group_id(GroupId(text(listed.group_id)))
            .with_protocol_type(text(listed.protocol_type));
        if version >= FIRST_VERSION_WITH_STATES {
            group = group.with_group_state(StrBytes::from_static_str(listed.state));
        }
        if version >= FIRST_VERSION_WITH_TYPES {
            group = group.with_group_type(StrBytes::from_static_str(CLASSIC));
        }
        groups.push(group);
    }
    ListGroupsResponse::default().with_groups(groups)
}

pub(super) fn refuse(code: ResponseError) -> ListGroupsResponse {
    ListGroupsResponse::default().with_error_code(code.code())
}
