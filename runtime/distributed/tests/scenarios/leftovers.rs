//! What killed tasks leave open when their connector is deleted or stopped: the leader fences it, and nobody waits for its time-out,
//! which is a minute and longer than any test's patience.

use crate::exactly_once::{epoch, running, suffer, until_open};
use crate::support::{Group, Node, OFFSETS, eventually};
use kafka_protocol::ResponseError;
use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::TransactionalProducer;
use oncewire_dev_broker::Fault;
use std::time::Duration;

/// A transaction with a record in the offsets topic, under a task's id, whose owner does nothing any more.
async fn leave_open(group: &Group, id: &str) -> TransactionalProducer {
    let producer = TransactionalProducer::new(group.cluster().await, ProducerConfig::new(id).unwrap());
    producer.init().await.unwrap();
    producer.begin().await.unwrap();
    let mut records = producer.stage();
    records.append(&OFFSETS.into(), 0, 1_700_000_000_000, Some(b"[]"), Some(b"{}"), &[]).unwrap();
    producer.send(records.seal()).await.unwrap();
    until_open(group, id).await;
    producer
}

async fn gone(node: &Node) {
    node.rest.must(204, "DELETE", "/connectors/c", None).await;
}

#[tokio::test]
async fn what_a_deleted_connector_left_open_holds_up_nobody() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[("records", "0")], 2).await;
    let _dead = leave_open(&group, "g-c-1").await;
    gone(&node).await;
    node.rest.create("d", &group.scripted(&[])).await;
    node.rest.until_states("d", "RUNNING", &["RUNNING"]).await;
    group.until_delivered(1, 3).await;
    group.close([node]).await;
}

#[tokio::test]
async fn what_a_stopped_connector_left_open_holds_up_nobody() {
    let group = Group::new().await;
    let nodes = [group.join().await, group.join().await];
    running(&group, &nodes[0], &[("records", "0")], 2).await;
    let _dead = leave_open(&group, "g-c-1").await;
    nodes[1].rest.must(204, "PUT", "/connectors/c/stop", None).await;
    nodes[0].rest.create("d", &group.scripted(&[])).await;
    nodes[0].rest.until_states("d", "RUNNING", &["RUNNING"]).await;
    nodes[1].rest.must(202, "PUT", "/connectors/c/resume", None).await;
    nodes[1].rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    group.close(nodes).await;
}

/// The fencing of the old tasks takes its time: those of a connector that is made again under the name wait for it, and live.
#[tokio::test]
async fn tasks_of_a_connector_that_is_made_again_are_not_fenced_by_its_deletion() {
    let group = Group::new().await;
    let nodes = [group.join().await, group.join().await];
    for round in 0_u64..4 {
        running(&group, &nodes[0], &[], 2).await;
        group.until_delivered(2, 3).await;
        // The requests of the fencing are slow in every other round, and those of the new tasks are not.
        if round % 2 == 0 {
            group.broker.faults().clear();
            suffer_once(&group);
        }
        gone(&nodes[1]).await;
    }
    running(&group, &nodes[0], &[], 2).await;
    group.until_delivered(2, 3).await;
    nodes[0].rest.until_states("c", "RUNNING", &["RUNNING"; 2]).await;
    group.close(nodes).await;
}

/// The next two requests for a producer id are carried out late.
fn suffer_once(group: &Group) {
    for nth in 1..=2 {
        let late = Fault::DelayRequest(Duration::from_millis(400));
        group.broker.faults().inject(kafka_protocol::messages::ApiKey::InitProducerId, nth, late);
    }
}

#[tokio::test]
async fn a_deletion_whose_fencing_is_refused_succeeds_and_its_name_can_be_used() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[], 2).await;
    suffer(&group, Fault::Answer(ResponseError::TransactionalIdAuthorizationFailed));
    gone(&node).await;
    let before = epoch(&group, 0).await;
    node.rest.create("c", &group.scripted(&[])).await;
    group.broker.faults().clear();
    eventually("it is there", async || {
        let status = node.rest.get("/connectors/c/status").await;
        if status.status == 200 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    node.rest.must(202, "POST", "/connectors/c/restart?includeTasks=true", None).await;
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    assert!(epoch(&group, 0).await > before);
    group.close([node]).await;
}
