//! A worker that is not let into its group, or loses it because nobody coordinates it: what it says, and whether it goes on.

use crate::support::{CONFIGS, Group, Node, PATIENCE, eventually};
use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use oncewire_client::group::{GroupConfig, GroupEvent, GroupMember, Protocol};
use oncewire_dev_broker::Fault;
use oncewire_distributed::herder::Rivals;
use serde_json::json;
use std::time::Duration;

/// A member of the workers' group that is none of Connect's; it stays for 30 s, though nobody polls it.
async fn consumer(group: &Group) -> GroupMember {
    let config = GroupConfig {
        group_id: "g".to_owned(),
        protocol_type: "consumer".to_owned(),
        session_timeout: PATIENCE,
        rebalance_timeout: PATIENCE,
        heartbeat_interval: Duration::from_millis(100),
    };
    let mut member = GroupMember::new(group.cluster().await, config);
    loop {
        match tokio::time::timeout(PATIENCE, member.next()).await.expect("the broker answers") {
            GroupEvent::Offer { .. } => {
                member.offer(vec![Protocol { name: "range".to_owned(), metadata: Bytes::new() }]);
            }
            GroupEvent::Lead { members, .. } => {
                member.assign(members.into_iter().map(|(id, _)| (id, Bytes::from_static(b"x"))).collect());
            }
            GroupEvent::Assigned { .. } => return member,
            GroupEvent::Failed(_) | GroupEvent::Lost { .. } => {}
        }
    }
}

fn refuse_joins(group: &Group, codes: &[ResponseError]) {
    for (nth, code) in (1..).zip(codes) {
        group.broker.faults().inject(ApiKey::JoinGroup, nth, Fault::Answer(*code));
    }
}

async fn health(node: &Node, status: u16) -> serde_json::Value {
    let mut body = serde_json::Value::Null;
    eventually("the health", async || {
        let answer = node.rest.get("/health").await;
        body = answer.body.clone();
        if answer.status == status { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    body
}

#[tokio::test]
async fn a_group_id_of_another_application_ends_the_start_with_what_to_change() {
    let group = Group::new().await;
    let _member = consumer(&group).await;
    let told = group.start(&[]).await.expect("REST is there before the group").refused().await;
    for word in ["\"g\"", "INCONSISTENT_GROUP_PROTOCOL", "group.id"] {
        assert!(told.contains(word), "{word} is not in: {told}");
    }
    group.close([]).await;
}

#[tokio::test]
async fn a_session_timeout_that_brokers_refuse_ends_the_start_with_what_to_change() {
    let group = Group::new().await;
    refuse_joins(&group, &[ResponseError::InvalidSessionTimeout]);
    let told = group.start(&[]).await.expect("REST is there before the group").refused().await;
    for word in ["session.timeout.ms", "group.min.session.timeout.ms", "group.max.session.timeout.ms"] {
        assert!(told.contains(word), "{word} is not in: {told}");
    }
    group.close([]).await;
}

#[tokio::test]
async fn what_an_operator_may_grant_is_waited_for_and_a_worker_that_was_a_member_never_ends() {
    let group = Group::new().await;
    refuse_joins(&group, &[ResponseError::GroupAuthorizationFailed, ResponseError::GroupMaxSizeReached]);
    let node = group.join().await;
    let codes = [
        ResponseError::InconsistentGroupProtocol,
        ResponseError::InvalidSessionTimeout,
        ResponseError::InvalidGroupId,
        ResponseError::GroupAuthorizationFailed,
    ];
    refuse_joins(&group, &codes);
    // The round that its tasks come with.
    node.rest.create("c", &group.scripted(&[])).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    assert_eq!(node.rest.get("/health").await.status, 200);
    group.close([node]).await;
}

/// G99: a worker without a coordinator runs nothing, and says so to probes; a rebalance is none of their business.
#[tokio::test]
async fn a_worker_that_lost_its_coordinator_is_not_healthy_until_it_is_a_member_again() {
    let group = Group::new().await;
    let node = group.join().await;
    let rebalanced = async {
        for _ in 0..100 {
            let answer = node.rest.get("/health").await;
            assert_eq!(answer.status, 200, "{answer}");
        }
    };
    let (other, ()) = tokio::join!(group.join(), rebalanced);
    other.stop().await;

    let faults = group.broker.faults();
    for nth in 1..=1_000 {
        faults.inject(ApiKey::Heartbeat, nth, Fault::Answer(ResponseError::NotCoordinator));
        faults.inject(ApiKey::FindCoordinator, nth, Fault::Answer(ResponseError::CoordinatorNotAvailable));
    }
    let body = health(&node, 500).await;
    assert_eq!(body["status"], json!("unhealthy"));
    let message = body["message"].as_str().unwrap_or_default();
    assert!(message.contains("no member of group \"g\"") && message.contains("oordinator"), "{message}");
    faults.clear();
    assert_eq!(health(&node, 200).await["status"], json!("healthy"));
    group.close([node]).await;
}

/// A copied properties file with another `group.id` and the same topics.
#[tokio::test]
async fn a_group_that_uses_the_config_topic_of_another_is_found() {
    let group = Group::new().await;
    let node = group.join().await;
    let cluster = group.cluster().await;
    let (ours, theirs) = (Rivals::new(cluster.clone(), "g"), Rivals::new(cluster.clone(), "h"));
    assert_eq!(ours.sharing(CONFIGS).await.unwrap(), Vec::<String>::new());
    let other_topics = [("group.id", "i"), ("config.storage.topic", "i-configs"), ("status.storage.topic", "i-status")];
    let sound = group.join_with(&other_topics).await;
    let sharing = group.join_with(&[("group.id", "h")]).await;
    sharing.rest.create("c", &group.scripted(&[("records", "0")])).await;
    assert_eq!(ours.sharing(CONFIGS).await.unwrap(), ["h"]);
    eventually("the key of g's leader", async || match theirs.sharing(CONFIGS).await.unwrap().as_slice() {
        [one] if one == "g" => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    cluster.close().await;
    group.close([node, sound, sharing]).await;
}
