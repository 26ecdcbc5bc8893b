//! The member's requests and answers on the wire. JoinGroup 1-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5.
//!
//! JoinGroup and SyncGroup are parked at the coordinator until all members are there, or the leader has assigned: they
//! get as long as the rebalance may take, and a connection of their own ([`Purpose::Join`]), so that heartbeats
//! ([`Purpose::Membership`]) pass.
//!
//! Left out: `group.instance.id` (static membership). Refused: `skip_assignment`, which only static leaders get.

use std::time::Duration;

use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    SyncGroupRequest, SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::state::{Answer, Joined, Request};
use super::{GroupConfig, Protocol};
use crate::cluster::{Call, Cluster, CoordinatorKind, NodeId, Purpose, Target};
use crate::error::Error;
use crate::wire::error_code::codes;

/// How much longer than a rebalance its requests may wait: members that come in the last moment are waited for.
const REBALANCE_GRACE: Duration = Duration::from_secs(5);
/// Since this version several members can leave at once, and each may say why.
const VERSION_LEAVE_MEMBERS: i16 = 3;
const COORDINATOR: &str = "the group coordinator";

/// Asks once; a missing permission is told with the user that misses it.
///
/// # Cancel safety
/// Dropping the future detaches, as with [`Cluster::call`].
pub(super) async fn ask(cluster: Cluster, config: GroupConfig, number: u32, request: Request) -> Result<Answer, Error> {
    try_ask(&cluster, &config, number, request).await.map_err(|error| cluster.with_user(error))
}

async fn try_ask(cluster: &Cluster, config: &GroupConfig, number: u32, request: Request) -> Result<Answer, Error> {
    match request {
        Request::FindCoordinator => find(cluster, config.group_id.clone()).await,
        Request::Join { node, member_id, protocols, reason } => {
            let call = rebalance_call(config, node, number);
            let build = |_| join_request(config, &member_id, &protocols, &reason);
            let reply = cluster.call(call, build).await?;
            read_join(config, &protocols, reply.body)
        }
        Request::Sync { node, member_id, generation, protocol, assignments } => {
            let call = rebalance_call(config, node, number);
            let assignments = assignments.into_iter().map(|(member_id, assignment)| {
                SyncGroupRequestAssignment::default().with_member_id(text(&member_id)).with_assignment(assignment)
            });
            let request = SyncGroupRequest::default()
                .with_group_id(group_id(config))
                .with_generation_id(generation)
                .with_member_id(text(&member_id))
                .with_protocol_type(Some(text(&config.protocol_type)))
                .with_protocol_name(Some(text(&protocol)))
                .with_assignments(assignments.collect());
            let reply = cluster.call(call, |_| request).await?;
            read_sync(config, &protocol, reply.body)
        }
        Request::Heartbeat { node, member_id, generation } => {
            let request = HeartbeatRequest::default()
                .with_group_id(group_id(config))
                .with_generation_id(generation)
                .with_member_id(text(&member_id));
            let reply = cluster.call(member_call(config, node, number), |_| request).await?;
            checked("Heartbeat", config, reply.body.error_code).map(|()| Answer::Alive)
        }
        Request::Leave { node, member_id, reason } => {
            let build = |version| leave_request(version, config, &member_id, &reason);
            let reply = cluster.call(member_call(config, node, number), build).await?;
            checked("LeaveGroup", config, leave_code(&reply.body)).map(|()| Answer::Left)
        }
    }
}

async fn find(cluster: &Cluster, group_id: String) -> Result<Answer, Error> {
    // Who asks has found the known one wanting.
    cluster.forget_coordinator(CoordinatorKind::Group, &group_id);
    let keys = [group_id];
    let found = cluster.coordinators(CoordinatorKind::Group, &keys).await.remove(&keys[0]);
    found.unwrap_or(Err(Error::Closed)).map(Answer::Found)
}

fn rebalance_call(config: &GroupConfig, node: NodeId, number: u32) -> Call {
    let timeout = Some(config.rebalance_timeout + REBALANCE_GRACE);
    Call { purpose: Purpose::Join(number), timeout, ..Call::to(Target::Node(node)) }
}

fn member_call(config: &GroupConfig, node: NodeId, number: u32) -> Call {
    // An answer that comes after the session ended is of no use.
    let timeout = Some(config.session_timeout);
    Call { purpose: Purpose::Membership(number), timeout, ..Call::to(Target::Node(node)) }
}

fn join_request(config: &GroupConfig, member_id: &str, protocols: &[Protocol], reason: &str) -> JoinGroupRequest {
    let protocols = protocols.iter().map(|protocol| {
        JoinGroupRequestProtocol::default().with_name(text(&protocol.name)).with_metadata(protocol.metadata.clone())
    });
    JoinGroupRequest::default()
        .with_group_id(group_id(config))
        .with_session_timeout_ms(millis(config.session_timeout))
        .with_rebalance_timeout_ms(millis(config.rebalance_timeout))
        .with_member_id(text(member_id))
        .with_protocol_type(text(&config.protocol_type))
        .with_protocols(protocols.collect())
        .with_reason(Some(text(reason)))
}

fn read_join(config: &GroupConfig, offered: &[Protocol], response: JoinGroupResponse) -> Result<Answer, Error> {
    let member_id = response.member_id.to_string();
    if response.error_code == codes::MEMBER_ID_REQUIRED && !member_id.is_empty() {
        return Ok(Answer::Named(member_id));
    }
    checked("JoinGroup", config, response.error_code)?;
    let protocol = response.protocol_name.map(|name| name.to_string()).unwrap_or_default();
    let what = if response.protocol_type.is_some_and(|told| told.as_str() != config.protocol_type) {
        "JoinGroup answers for another protocol type"
    } else if !offered.iter().any(|one| one.name == protocol) {
        "JoinGroup chose a protocol that was not offered"
    } else if member_id.is_empty() || response.generation_id < 0 {
        "JoinGroup gave no member id or no generation"
    } else if response.skip_assignment {
        "JoinGroup lets the leader skip the assignment, which only a static member may be told"
    } else {
        let members = response.members.into_iter().map(|one| (one.member_id.to_string(), one.metadata));
        return Ok(Answer::Joined(Joined {
            generation: response.generation_id,
            protocol,
            member_id,
            leader_id: response.leader.to_string(),
            members: members.collect(),
        }));
    };
    Err(malformed(what))
}

fn read_sync(config: &GroupConfig, protocol: &str, response: SyncGroupResponse) -> Result<Answer, Error> {
    checked("SyncGroup", config, response.error_code)?;
    let is_other = |told: Option<StrBytes>, ours: &str| told.is_some_and(|told| told.as_str() != ours);
    if is_other(response.protocol_type, &config.protocol_type) || is_other(response.protocol_name, protocol) {
        return Err(malformed("SyncGroup answers for another protocol than JoinGroup did"));
    }
    Ok(Answer::Synced(response.assignment))
}

fn leave_request(version: i16, config: &GroupConfig, member_id: &str, reason: &str) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(group_id(config));
    if version < VERSION_LEAVE_MEMBERS {
        return request.with_member_id(text(member_id));
    }
    let member = MemberIdentity::default().with_member_id(text(member_id)).with_reason(Some(text(reason)));
    request.with_members(vec![member])
}

fn leave_code(response: &LeaveGroupResponse) -> i16 {
    match (response.error_code, response.members.first()) {
        (codes::NONE, Some(member)) => member.error_code,
        (code, _) => code,
    }
}

fn checked(api: &'static str, config: &GroupConfig, code: i16) -> Result<(), Error> {
    match code {
        codes::NONE => Ok(()),
        code => Err(Error::broker(api, code, format!("group '{}'", config.group_id))),
    }
}

fn malformed(what: &str) -> Error {
    Error::Malformed { peer: COORDINATOR.to_owned(), what: what.to_owned() }
}

fn group_id(config: &GroupConfig) -> GroupId {
    GroupId(text(&config.group_id))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
    use kafka_protocol::messages::leave_group_response::MemberResponse;

    fn config() -> GroupConfig {
        GroupConfig {
            group_id: "g".into(),
            protocol_type: "connect".into(),
            session_timeout: Duration::from_secs(10),
            rebalance_timeout: Duration::from_secs(60),
            heartbeat_interval: Duration::from_secs(3),
        }
    }

    fn offered() -> Vec<Protocol> {
        ["sessioned", "compatible"].map(|name| Protocol { name: name.into(), metadata: Bytes::new() }).into()
    }

    fn joined() -> JoinGroupResponse {
        let member =
            JoinGroupResponseMember::default().with_member_id(text("m")).with_metadata(Bytes::from_static(b"x"));
        JoinGroupResponse::default()
            .with_generation_id(3)
            .with_protocol_type(Some(text("connect")))
            .with_protocol_name(Some(text("compatible")))
            .with_leader(text("m"))
            .with_member_id(text("m"))
            .with_members(vec![member])
    }

    fn what(result: Result<Answer, Error>) -> String {
        result.expect_err("refused").to_string()
    }

    #[test]
    fn a_join_is_read_with_its_members() {
        let Ok(Answer::Joined(read)) = read_join(&config(), &offered(), joined()) else { panic!("joined") };
        assert_eq!((read.generation, read.protocol.as_str(), read.leader_id.as_str()), (3, "compatible", "m"));
        assert_eq!(read.members, [("m".to_owned(), Bytes::from_static(b"x"))]);
    }

    #[test]
    fn the_id_that_the_coordinator_requires_is_taken_and_an_empty_one_is_not() {
        let required = |id| JoinGroupResponse::default().with_error_code(79).with_member_id(text(id));
        assert_eq!(read_join(&config(), &offered(), required("m")).ok(), Some(Answer::Named("m".into())));
        assert!(what(read_join(&config(), &offered(), required(""))).contains("MEMBER_ID_REQUIRED"));
    }

    #[test]
    fn answers_that_do_not_fit_the_question_are_malformed() {
        let read = |response| what(read_join(&config(), &offered(), response));
        assert!(read(joined().with_protocol_type(Some(text("consumer")))).contains("protocol type"));
        assert!(read(joined().with_protocol_name(Some(text("default")))).contains("not offered"));
        assert!(read(joined().with_protocol_name(None)).contains("not offered"));
        assert!(read(joined().with_member_id(text(""))).contains("member id"));
        assert!(read(joined().with_generation_id(-1)).contains("generation"));
        assert!(read(joined().with_skip_assignment(true)).contains("skip"));
        let synced = SyncGroupResponse::default().with_protocol_name(Some(text("default")));
        assert!(what(read_sync(&config(), "compatible", synced)).contains("another protocol"));
    }

    #[test]
    fn leaving_names_the_member_in_either_form_and_reads_its_own_code() {
        let old = leave_request(2, &config(), "m", "why");
        assert_eq!((old.member_id.as_str(), old.members.len()), ("m", 0));
        let new = leave_request(5, &config(), "m", "why");
        assert_eq!((new.member_id.as_str(), new.members[0].reason.as_deref()), ("", Some("why")));
        let response = LeaveGroupResponse::default().with_members(vec![MemberResponse::default().with_error_code(25)]);
        assert_eq!(leave_code(&response), 25);
        assert_eq!(leave_code(&LeaveGroupResponse::default().with_error_code(16)), 16);
    }

    #[test]
    fn every_request_encodes_in_every_version_that_may_be_spoken() {
        use crate::wire::api::{ApiKey, TransactionProtocol, usable_versions};
        use crate::wire::frame::encode_request;
        let versions = |api| usable_versions(api, TransactionProtocol::V1).expect("usable");
        let join = join_request(&config(), "m", &offered(), "why");
        let range = versions(ApiKey::JoinGroup);
        for version in range.min..=range.max {
            encode_request(ApiKey::JoinGroup, version, 1, "c", &join).expect("encodes");
        }
        let range = versions(ApiKey::LeaveGroup);
        for version in range.min..=range.max {
            let leave = leave_request(version, &config(), "m", "why");
            encode_request(ApiKey::LeaveGroup, version, 1, "c", &leave).expect("encodes");
        }
        let range = versions(ApiKey::SyncGroup);
        let sync = SyncGroupRequest::default()
            .with_protocol_type(Some(text("connect")))
            .with_protocol_name(Some(text("compatible")));
        for version in range.min..=range.max {
            encode_request(ApiKey::SyncGroup, version, 1, "c", &sync).expect("encodes");
        }
    }
}
