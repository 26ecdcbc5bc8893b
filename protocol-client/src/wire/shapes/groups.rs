//! Shapes of classic groups: membership (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) and those who look at them.
//!
//! Field names, order and versions are those of Kafka's message schemas (`common/message/*.json`,
//! 4.3). Left out: committed offsets and the consumer, share and streams groups of KIP-848 and after.

use kafka_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse, SyncGroupRequest,
    SyncGroupResponse,
};
use kafka_protocol::messages::{
    describe_groups_response, join_group_request, join_group_response, leave_group_request, leave_group_response,
    list_groups_response, sync_group_request,
};

use crate::wire::shape::*;

pub(super) static JOIN_GROUP_REQUEST: Message = message::<JoinGroupRequest>(
    "JoinGroupRequest",
    0,
    9,
    6,
    &[
        since(0, "GroupId", STRING),
        since(0, "SessionTimeoutMs", INT32),
        since(1, "RebalanceTimeoutMs", INT32),
        since(0, "MemberId", STRING),
        since(5, "GroupInstanceId", STRING),
        since(0, "ProtocolType", STRING),
        since(
            0,
            "Protocols",
            array(&shape::<join_group_request::JoinGroupRequestProtocol>(
                &[since(0, "Name", STRING), since(0, "Metadata", BYTES)],
                &[],
            )),
        ),
        since(8, "Reason", STRING),
    ],
    &[],
);

pub(super) static JOIN_GROUP_RESPONSE: Message = message::<JoinGroupResponse>(
    "JoinGroupResponse",
    0,
    9,
    6,
    &[
        since(2, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(0, "GenerationId", INT32),
        since(7, "ProtocolType", STRING),
        since(0, "ProtocolName", STRING),
        since(0, "Leader", STRING),
        since(9, "SkipAssignment", BOOL),
        since(0, "MemberId", STRING),
        since(
            0,
            "Members",
            array(&shape::<join_group_response::JoinGroupResponseMember>(
                &[since(0, "MemberId", STRING), since(5, "GroupInstanceId", STRING), since(0, "Metadata", BYTES)],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static SYNC_GROUP_REQUEST: Message = message::<SyncGroupRequest>(
    "SyncGroupRequest",
    0,
    5,
    4,
    &[
        since(0, "GroupId", STRING),
        since(0, "GenerationId", INT32),
        since(0, "MemberId", STRING),
        since(3, "GroupInstanceId", STRING),
        since(5, "ProtocolType", STRING),
        since(5, "ProtocolName", STRING),
        since(
            0,
            "Assignments",
            array(&shape::<sync_group_request::SyncGroupRequestAssignment>(
                &[since(0, "MemberId", STRING), since(0, "Assignment", BYTES)],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static SYNC_GROUP_RESPONSE: Message = message::<SyncGroupResponse>(
    "SyncGroupResponse",
    0,
    5,
    4,
    &[
        since(1, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(5, "ProtocolType", STRING),
        since(5, "ProtocolName", STRING),
        since(0, "Assignment", BYTES),
    ],
    &[],
);

pub(super) static HEARTBEAT_REQUEST: Message = message::<HeartbeatRequest>(
    "HeartbeatRequest",
    0,
    4,
    4,
    &[
        since(0, "GroupId", STRING),
        since(0, "GenerationId", INT32),
        since(0, "MemberId", STRING),
        since(3, "GroupInstanceId", STRING),
    ],
    &[],
);

pub(super) static HEARTBEAT_RESPONSE: Message = message::<HeartbeatResponse>(
    "HeartbeatResponse",
    0,
    4,
    4,
    &[since(1, "ThrottleTimeMs", INT32), since(0, "ErrorCode", INT16)],
    &[],
);

pub(super) static LEAVE_GROUP_REQUEST: Message = message::<LeaveGroupRequest>(
    "LeaveGroupRequest",
    0,
    5,
    4,
    &[
        since(0, "GroupId", STRING),
        between(0, 2, "MemberId", STRING),
        since(
            3,
            "Members",
            array(&shape::<leave_group_request::MemberIdentity>(
                &[since(3, "MemberId", STRING), since(3, "GroupInstanceId", STRING), since(5, "Reason", STRING)],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static LEAVE_GROUP_RESPONSE: Message = message::<LeaveGroupResponse>(
    "LeaveGroupResponse",
    0,
    5,
    4,
    &[
        since(1, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(
            3,
            "Members",
            array(&shape::<leave_group_response::MemberResponse>(
                &[since(3, "MemberId", STRING), since(3, "GroupInstanceId", STRING), since(3, "ErrorCode", INT16)],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static DESCRIBE_GROUPS_REQUEST: Message = message::<DescribeGroupsRequest>(
    "DescribeGroupsRequest",
    0,
    6,
    5,
    &[since(0, "Groups", STRINGS), since(3, "IncludeAuthorizedOperations", BOOL)],
    &[],
);

pub(super) static DESCRIBE_GROUPS_RESPONSE: Message = message::<DescribeGroupsResponse>(
    "DescribeGroupsResponse",
    0,
    6,
    5,
    &[
        since(1, "ThrottleTimeMs", INT32),
        since(
            0,
            "Groups",
            array(&shape::<describe_groups_response::DescribedGroup>(
                &[
                    since(0, "ErrorCode", INT16),
                    since(6, "ErrorMessage", STRING),
                    since(0, "GroupId", STRING),
                    since(0, "GroupState", STRING),
                    since(0, "ProtocolType", STRING),
                    since(0, "ProtocolData", STRING),
                    since(
                        0,
                        "Members",
                        array(&shape::<describe_groups_response::DescribedGroupMember>(
                            &[
                                since(0, "MemberId", STRING),
                                since(4, "GroupInstanceId", STRING),
                                since(0, "ClientId", STRING),
                                since(0, "ClientHost", STRING),
                                since(0, "MemberMetadata", BYTES),
                                since(0, "MemberAssignment", BYTES),
                            ],
                            &[],
                        )),
                    ),
                    since(3, "AuthorizedOperations", INT32),
                ],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static LIST_GROUPS_REQUEST: Message = message::<ListGroupsRequest>(
    "ListGroupsRequest",
    0,
    5,
    3,
    &[since(4, "StatesFilter", STRINGS), since(5, "TypesFilter", STRINGS)],
    &[],
);

pub(super) static LIST_GROUPS_RESPONSE: Message = message::<ListGroupsResponse>(
    "ListGroupsResponse",
    0,
    5,
    3,
    &[
        since(1, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(
            0,
            "Groups",
            array(&shape::<list_groups_response::ListedGroup>(
                &[
                    since(0, "GroupId", STRING),
                    since(0, "ProtocolType", STRING),
                    since(4, "GroupState", STRING),
                    since(5, "GroupType", STRING),
                ],
                &[],
            )),
        ),
    ],
    &[],
);
