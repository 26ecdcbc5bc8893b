//! A group's member, with its background task and its sockets, at the dev broker's coordinator.
//!
//! Times are short and none is waited out by sleeping: every step waits for an event with a deadline.

#![allow(missing_docs, reason = "a test binary has no public API")]
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::group::{GroupConfig, GroupEvent, GroupMember, Lost, Protocol};
use oncewire_dev_broker::{BrokerSettings, DevBroker, DevBrokerConfig, Fault};
use tokio::time::timeout;

/// What any step may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);
const HEARTBEAT: Duration = Duration::from_millis(100);
/// Longer than any test, where the session shall not end.
const LONG: Duration = Duration::from_secs(60);

struct Stage {
    broker: DevBroker,
    cluster: Cluster,
}

impl Stage {
    async fn set() -> Self {
        let settings = BrokerSettings { group_session_timeout_min: Duration::ZERO, ..BrokerSettings::default() };
        let config = DevBrokerConfig { broker: settings, ..DevBrokerConfig::default() };
        let broker = DevBroker::start(config).await.unwrap();
        let mut config = ClientConfig::new(&broker.bootstrap()).unwrap();
        config.retry_backoff = Duration::from_millis(5);
        config.retry_backoff_max = Duration::from_millis(20);
        Self { cluster: Cluster::connect(config).await.unwrap(), broker }
    }

    fn member(&self, session: Duration, rebalance: Duration) -> GroupMember {
        let config = GroupConfig {
            group_id: "g".to_owned(),
            protocol_type: "connect".to_owned(),
            session_timeout: session,
            rebalance_timeout: rebalance,
            heartbeat_interval: HEARTBEAT,
        };
        GroupMember::new(self.cluster.clone(), config)
    }

    async fn strike(self) {
        self.cluster.close().await;
        self.broker.shutdown().await;
    }
}

/// Answers the member's questions until it is told something else.
async fn news(member: &mut GroupMember) -> GroupEvent {
    let told = async {
        loop {
            match member.next().await {
                GroupEvent::Offer { .. } => {
                    member.offer(vec![Protocol { name: "p".to_owned(), metadata: Bytes::from_static(b"m") }]);
                }
                GroupEvent::Lead { members, .. } => {
                    let size = Bytes::from(members.len().to_string());
                    member.assign(members.into_iter().map(|(id, _)| (id, size.clone())).collect());
                }
                other => return other,
            }
        }
    };
    timeout(PATIENCE, told).await.expect("something happens")
}

/// The size of the member's group, once it is assigned.
async fn size(member: &mut GroupMember) -> Bytes {
    loop {
        match news(member).await {
            GroupEvent::Assigned { assignment, .. } => return assignment,
            // On a busy machine the coordinator may take longer than these heartbeats.
            GroupEvent::Failed(error) if error.code().is_none() => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Both members take their turns until both are in a group of two.
async fn together(one: &mut GroupMember, two: &mut GroupMember) {
    let (mut first, mut second) = (Bytes::new(), Bytes::new());
    let agree = async {
        while first != "2" || second != "2" {
            tokio::select! {
                size = size(one) => first = size,
                size = size(two) => second = size,
            }
        }
    };
    timeout(PATIENCE, agree).await.expect("both are in the group");
}

async fn lost(member: &mut GroupMember) -> Lost {
    loop {
        match news(member).await {
            GroupEvent::Lost { cause } => return cause,
            GroupEvent::Failed(_) | GroupEvent::Assigned { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn two_members_of_one_process_join_and_one_leaves() {
    let stage = Stage::set().await;
    let (mut one, mut two) = (stage.member(LONG, LONG), stage.member(LONG, LONG));
    assert_eq!(size(&mut one).await, "1");
    together(&mut one, &mut two).await;
    assert_eq!(one.generation(), two.generation());
    two.leave("done", PATIENCE).await;
    assert_eq!((two.member_id(), two.generation()), ("", -1));
    assert_eq!(size(&mut one).await, "1");
    // And it can come back.
    together(&mut one, &mut two).await;
    one.leave("done", PATIENCE).await;
    two.leave("done", PATIENCE).await;
    stage.strike().await;
}

#[tokio::test]
async fn dropping_next_at_every_moment_loses_nothing() {
    let stage = Stage::set().await;
    let (mut one, mut two) = (stage.member(LONG, LONG), stage.member(LONG, LONG));
    let mut sizes = (Bytes::new(), Bytes::new());
    let impatient = async {
        while sizes.0 != "2" || sizes.1 != "2" {
            for (member, size) in [(&mut one, &mut sizes.0), (&mut two, &mut sizes.1)] {
                // Polled once, then dropped.
                let event = tokio::select! {
                    biased;
                    event = member.next() => event,
                    () = tokio::task::yield_now() => continue,
                };
                match event {
                    GroupEvent::Offer { .. } => {
                        member.offer(vec![Protocol { name: "p".to_owned(), metadata: Bytes::new() }]);
                    }
                    GroupEvent::Lead { members, .. } => {
                        let count = Bytes::from(members.len().to_string());
                        member.assign(members.into_iter().map(|(id, _)| (id, count.clone())).collect());
                    }
                    GroupEvent::Assigned { assignment, .. } => *size = assignment,
                    other => panic!("{other:?}"),
                }
            }
        }
    };
    timeout(PATIENCE, impatient).await.expect("both are in the group");
    one.leave("done", PATIENCE).await;
    two.leave("done", PATIENCE).await;
    stage.strike().await;
}

#[tokio::test]
async fn heartbeats_pass_while_another_member_is_parked() {
    let stage = Stage::set().await;
    let (mut one, mut two) = (stage.member(LONG, LONG), stage.member(LONG, LONG));
    assert_eq!(size(&mut one).await, "1");
    // The second one is parked until the first one, which is not asked, joins again.
    let parked = async {
        loop {
            tokio::select! {
                event = news(&mut two) => panic!("{event:?}"),
                () = tokio::time::sleep(HEARTBEAT) => {}
            }
            if stage.broker.requests(ApiKey::JoinGroup) >= 4 {
                return;
            }
        }
    };
    timeout(PATIENCE, parked).await.expect("both ids of the second one's join were asked for");
    let before = stage.broker.requests(ApiKey::Heartbeat);
    let beats = async {
        while stage.broker.requests(ApiKey::Heartbeat) < before + 3 {
            tokio::time::sleep(HEARTBEAT).await;
        }
    };
    timeout(PATIENCE, beats).await.expect("the first one's heartbeats go on");
    together(&mut one, &mut two).await;
    one.leave("done", PATIENCE).await;
    two.leave("done", PATIENCE).await;
    stage.strike().await;
}

#[tokio::test]
async fn an_answer_lost_on_the_way_is_asked_for_again() {
    for api in [ApiKey::JoinGroup, ApiKey::SyncGroup] {
        for fault in [Fault::CloseBefore, Fault::CloseAfter, Fault::Answer(ResponseError::NotCoordinator)] {
            let stage = Stage::set().await;
            let mut member = stage.member(LONG, LONG);
            stage.broker.faults().inject(api, 1, fault);
            assert_eq!(size(&mut member).await, "1", "{api:?} {fault:?}");
            member.leave("done", PATIENCE).await;
            stage.strike().await;
        }
    }
}

#[tokio::test]
async fn a_coordinator_that_falls_silent_ends_the_session_at_the_members_side_too() {
    let stage = Stage::set().await;
    let mut member = stage.member(HEARTBEAT * 8, LONG);
    assert_eq!(size(&mut member).await, "1");
    for nth in 1..100 {
        stage.broker.faults().inject(ApiKey::Heartbeat, nth, Fault::Swallow);
    }
    assert_eq!(lost(&mut member).await, Lost::SessionExpired);
    stage.broker.faults().clear();
    assert_eq!(size(&mut member).await, "1");
    member.leave("done", PATIENCE).await;
    stage.strike().await;
}

#[tokio::test]
async fn what_a_heartbeat_says_becomes_the_event() {
    let answers = [
        (ResponseError::UnknownMemberId, Lost::UnknownMember),
        (ResponseError::IllegalGeneration, Lost::IllegalGeneration),
    ];
    for (code, cause) in answers {
        let stage = Stage::set().await;
        let mut member = stage.member(LONG, LONG);
        assert_eq!(size(&mut member).await, "1");
        let id = member.member_id().to_owned();
        stage.broker.faults().inject(ApiKey::Heartbeat, 1, Fault::Answer(code));
        assert_eq!(lost(&mut member).await, cause);
        if cause == Lost::UnknownMember {
            // The coordinator knows the old id in truth, and would wait for it.
            drop(member);
        } else {
            assert_eq!(size(&mut member).await, "1");
            assert_eq!(member.member_id(), id);
            member.leave("done", PATIENCE).await;
        }
        stage.strike().await;
    }
}

#[tokio::test]
async fn an_owner_that_does_not_ask_is_taken_out_of_the_group() {
    let stage = Stage::set().await;
    let (mut one, mut two) = (stage.member(LONG, LONG), stage.member(LONG, HEARTBEAT * 10));
    together(&mut one, &mut two).await;
    assert_eq!(size(&mut one).await, "1", "nobody polls the other one");
    assert_eq!(stage.broker.requests(ApiKey::LeaveGroup), 1);
    assert_eq!(lost(&mut two).await, Lost::PollTimeout);
    together(&mut one, &mut two).await;
    one.leave("done", PATIENCE).await;
    two.leave("done", PATIENCE).await;
    stage.strike().await;
}

#[tokio::test]
async fn a_refusal_is_told_each_time_until_it_passes() {
    let stage = Stage::set().await;
    let mut member = stage.member(LONG, LONG);
    for nth in 1..=2 {
        stage.broker.faults().inject(
            ApiKey::FindCoordinator,
            nth,
            Fault::Answer(ResponseError::GroupAuthorizationFailed),
        );
    }
    let mut told = 0;
    while told < 2 {
        match news(&mut member).await {
            GroupEvent::Failed(error) if error.code().is_none() => {}
            GroupEvent::Failed(error) => {
                assert_eq!(error.code(), Some(30), "{error}");
                told += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(size(&mut member).await, "1");
    member.leave("done", PATIENCE).await;
    stage.strike().await;
}

#[tokio::test]
async fn leaving_a_coordinator_that_does_not_answer_ends_with_the_patience() {
    let stage = Stage::set().await;
    let mut member = stage.member(LONG, LONG);
    assert_eq!(size(&mut member).await, "1");
    stage.broker.faults().inject(ApiKey::LeaveGroup, 1, Fault::Swallow);
    timeout(PATIENCE, member.leave("done", HEARTBEAT)).await.expect("it does not wait for the answer");
    // Dropped before its end, a leave goes on; the next event joins afresh.
    let mut other = stage.member(LONG, LONG);
    tokio::select! {
        biased;
        () = other.leave("never there", PATIENCE) => {}
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(size(&mut other).await, "1");
    tokio::select! {
        biased;
        () = other.leave("dropped", PATIENCE) => {}
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(size(&mut other).await, "1");
    other.leave("done", PATIENCE).await;
    stage.strike().await;
}
