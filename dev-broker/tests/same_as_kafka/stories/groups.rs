//! Classic groups: two members that join, sync, beat and leave, and the errors of each step.

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::*;

use super::{SETTLE_WAIT, Teller, text};
use crate::transcript::code_name;

const GROUP: &str = "told";
const JOIN: i16 = 9;
const SYNC: i16 = 5;
const HEARTBEAT: i16 = 4;
const LEAVE: i16 = 5;
/// Codes of a coordinator that has just started: 14, 15, 16.
const STARTING: std::ops::RangeInclusive<i16> = 14..=16;

pub(super) fn tell(teller: &mut Teller) {
    refusals(teller);
    let first = one_member(teller);
    let second = two_members(teller, &first);
    leaving(teller, &first, &second);
}

fn join(member_id: &str, protocols: &[&str]) -> JoinGroupRequest {
    let protocols = protocols.iter().map(|name| {
        JoinGroupRequestProtocol::default().with_name(text(name)).with_metadata(Bytes::copy_from_slice(name.as_bytes()))
    });
    JoinGroupRequest::default()
        .with_group_id(GroupId(text(GROUP)))
        .with_session_timeout_ms(30_000)
        .with_rebalance_timeout_ms(30_000)
        .with_member_id(text(member_id))
        .with_protocol_type(text("connect"))
        .with_protocols(protocols.collect())
}

fn sync(member_id: &str, generation: i32, assigned: &[&str]) -> SyncGroupRequest {
    let assignments = assigned.iter().enumerate().map(|(number, id)| {
        SyncGroupRequestAssignment::default()
            .with_member_id(text(id))
            .with_assignment(Bytes::from(format!("work {number}")))
    });
    SyncGroupRequest::default()
        .with_group_id(GroupId(text(GROUP)))
        .with_generation_id(generation)
        .with_member_id(text(member_id))
        .with_protocol_type(Some(text("connect")))
        .with_protocol_name(Some(text("new")))
        .with_assignments(assignments.collect())
}

fn synced(answer: &SyncGroupResponse) -> String {
    match answer.error_code {
        0 => {
            let protocol = answer.protocol_name.as_deref().unwrap_or("(null)");
            format!("'{}' in {protocol}", String::from_utf8_lossy(&answer.assignment))
        }
        code => code_name(code),
    }
}

/// A generation in words: member ids are random, so only who leads and how many there are.
fn joined(answer: &JoinGroupResponse) -> String {
    let id = if answer.member_id.is_empty() { "no id" } else { "an id" };
    if answer.error_code != 0 {
        let protocol = answer.protocol_name.as_deref().unwrap_or("(null)");
        return format!("{} with {id}, generation {}, {protocol}", code_name(answer.error_code), answer.generation_id);
    }
    let leads = if answer.leader == answer.member_id { "leads" } else { "follows" };
    let metadata: Vec<_> = answer.members.iter().map(|member| String::from_utf8_lossy(&member.metadata)).collect();
    let protocol = answer.protocol_name.as_deref().unwrap_or("(null)");
    let kind = answer.protocol_type.as_deref().unwrap_or("(null)");
    format!("{leads} generation {} of {kind} in {protocol}, members {metadata:?}", answer.generation_id)
}

impl Teller {
    fn join(&mut self, step: &str, request: &JoinGroupRequest) -> JoinGroupResponse {
        let deadline = Instant::now() + SETTLE_WAIT;
        let answer = loop {
            let answer: JoinGroupResponse = self.client.call(ApiKey::JoinGroup, JOIN, request);
            if !STARTING.contains(&answer.error_code) || Instant::now() > deadline {
                break answer;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        self.told.note(step, joined(&answer));
        answer
    }

    fn sync(&mut self, step: &str, request: &SyncGroupRequest) {
        let answer: SyncGroupResponse = self.client.call(ApiKey::SyncGroup, SYNC, request);
        self.told.note(step, synced(&answer));
    }

    fn heartbeat(&mut self, step: &str, member_id: &str, generation: i32) {
        let code = self.beat(member_id, generation);
        self.told.code(step, code);
    }

    fn beat(&mut self, member_id: &str, generation: i32) -> i16 {
        let request = HeartbeatRequest::default()
            .with_group_id(GroupId(text(GROUP)))
            .with_generation_id(generation)
            .with_member_id(text(member_id));
        let answer: HeartbeatResponse = self.client.call(ApiKey::Heartbeat, HEARTBEAT, &request);
        answer.error_code
    }

    /// The other connection's request has reached the group when the members are asked to join again.
    fn wait_for_rebalance(&mut self, member_id: &str, generation: i32) {
        let deadline = Instant::now() + SETTLE_WAIT;
        while self.beat(member_id, generation) == 0 {
            assert!(Instant::now() < deadline, "the rebalance begins");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn refusals(teller: &mut Teller) {
    // A real broker makes the topic of its groups when the first one is looked up.
    let deadline = Instant::now() + SETTLE_WAIT;
    let request = FindCoordinatorRequest::default().with_key_type(0).with_coordinator_keys(vec![text(GROUP)]);
    loop {
        let found: FindCoordinatorResponse = teller.client.call(ApiKey::FindCoordinator, 4, &request);
        if found.coordinators[0].error_code == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "no group coordinator");
        std::thread::sleep(Duration::from_millis(50));
    }
    teller.told.story("joins that are refused");
    teller.join("unknown member of no group", &join("nobody", &["new"]));
    teller.join("no group id", &join("", &["new"]).with_group_id(GroupId(text(""))));
    teller.join("short session", &join("", &["new"]).with_session_timeout_ms(1));
    teller.join("long session", &join("", &["new"]).with_session_timeout_ms(i32::MAX));
    teller.join("no protocol", &join("", &[]));
    teller.join("no protocol type", &join("", &["new"]).with_protocol_type(text("")));
    teller.heartbeat("heartbeat of no group", "nobody", 1);
    teller.sync("sync of no group", &sync("nobody", 1, &[]));
    leave(teller, "leave of no group", &["nobody"]);
}

fn leave(teller: &mut Teller, step: &str, members: &[&str]) {
    let members = members.iter().map(|id| MemberIdentity::default().with_member_id(text(id)));
    let request = LeaveGroupRequest::default().with_group_id(GroupId(text(GROUP))).with_members(members.collect());
    let answer: LeaveGroupResponse = teller.client.call(ApiKey::LeaveGroup, LEAVE, &request);
    let codes: Vec<String> = answer.members.iter().map(|member| code_name(member.error_code)).collect();
    teller.told.note(step, format!("{}, members {codes:?}", code_name(answer.error_code)));
}

fn one_member(teller: &mut Teller) -> String {
    teller.told.story("one member");
    let id = teller.join("a new member", &join("", &["new", "old"])).member_id.to_string();
    teller.join("another unknown member", &join("nobody", &["new"]));
    teller.join("with its id", &join(&id, &["new", "old"]));
    teller.heartbeat("before it synced", &id, 1);
    teller.heartbeat("older generation", &id, 0);
    teller.heartbeat("unknown member", "nobody", 1);
    teller.sync("older generation", &sync(&id, 0, &[]));
    teller.sync("unknown member", &sync("nobody", 1, &[]));
    teller.sync("another protocol", &sync(&id, 1, &[]).with_protocol_name(Some(text("old"))));
    teller.sync("another kind", &sync(&id, 1, &[]).with_protocol_type(Some(text("consumer"))));
    teller.sync("as leader", &sync(&id, 1, &[&id]));
    teller.heartbeat("after it synced", &id, 1);
    teller.sync("asked again", &sync(&id, 1, &[]));
    teller.join("the leader joins again", &join(&id, &["new", "old"]));
    teller.join("and again before it synced", &join(&id, &["new", "old"]));
    teller.sync("as leader", &sync(&id, 2, &[&id]));
    id
}

fn two_members(teller: &mut Teller, first: &str) -> String {
    teller.told.story("two members");
    teller.join("no common protocol", &join("", &["strange"]));
    teller.join("another kind", &join("", &["new"]).with_protocol_type(text("consumer")));
    let second = teller.join("a new member", &join("", &["new"])).member_id.to_string();
    teller.heartbeat("an id alone does not rebalance", first, 2);
    teller.second.send(ApiKey::JoinGroup, JOIN, &join(&second, &["new"]));
    teller.wait_for_rebalance(first, 2);
    teller.heartbeat("the first one is asked to join", first, 2);
    teller.sync("nothing is assigned meanwhile", &sync(first, 2, &[]));
    teller.join("the first one joins", &join(first, &["new", "old"]));
    let answer: JoinGroupResponse = teller.second.receive(ApiKey::JoinGroup, JOIN);
    teller.told.note("the second one", joined(&answer));
    teller.second.send(ApiKey::SyncGroup, SYNC, &sync(&second, 3, &[]));
    teller.sync("the leader assigns", &sync(first, 3, &[first, &second]));
    let answer: SyncGroupResponse = teller.second.receive(ApiKey::SyncGroup, SYNC);
    teller.told.note("the follower", synced(&answer));
    teller.join("the follower joins again with the same", &join(&second, &["new"]));
    teller.heartbeat("that was no rebalance", first, 3);
    second
}

fn leaving(teller: &mut Teller, first: &str, second: &str) {
    teller.told.story("leaving a group");
    leave(teller, "an unknown one and the second", &["nobody", second]);
    teller.heartbeat("who left", second, 3);
    teller.heartbeat("who stays", first, 3);
    teller.join("who left joins", &join(second, &["new"]));
    teller.join("who stays joins", &join(first, &["new", "old"]));
    teller.sync("and is alone", &sync(first, 4, &[first]));
    let request = LeaveGroupRequest::default().with_group_id(GroupId(text(GROUP))).with_member_id(text(first));
    let answer: LeaveGroupResponse = teller.client.call(ApiKey::LeaveGroup, 2, &request);
    teller.told.code("the old way", answer.error_code);
    teller.heartbeat("in an empty group", first, 4);
    leave(teller, "twice", &[first]);
    let id = teller.join("a new member", &join("", &["other"])).member_id.to_string();
    teller.join("finds the generation gone on", &join(&id, &["other"]));
    leave(teller, "the last one", &[&id]);
}
