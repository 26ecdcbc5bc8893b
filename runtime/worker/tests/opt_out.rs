//! A connector that writes without transactions in a worker that writes exactly once, and its way back.

mod support;

use kafka_protocol::messages::ApiKey;
use oncewire_client::admin::Admin;
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::{PlainConfig, PlainProducer, ProducerIdentity};
use oncewire_worker::worker::{OffsetChange, State, TargetState};
use support::{Event, Herd, Stand, Step, Told, map};

const INVALID_PRODUCER_EPOCH: i16 = 47;

async fn stand(choice: &str) -> (Stand, Herd) {
    let mut stand = Stand::new().await;
    stand.distribute("enabled");
    stand.connector.extend(map(&[("exactly.once.source", choice)]));
    let herd = stand.herd().await;
    (stand, herd)
}

async fn until_stored(stand: &Stand, number: i64) {
    let wanted = format!("{{\"n\":{number}}}");
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    while stand.read("w-offsets").await.last().and_then(|(_, value)| value.clone()).as_ref() != Some(&wanted) {
        assert!(tokio::time::Instant::now() < deadline, "offset {number} was not stored");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

async fn present_identity(cluster: &Cluster) -> ProducerIdentity {
    let told = Admin::new(cluster.clone()).describe_transaction("g-c-0").await.expect("the coordinator answers");
    let told = told.expect("the id is known");
    ProducerIdentity { id: told.producer_id, epoch: told.epoch }
}

#[tokio::test]
async fn an_opted_out_connector_writes_plainly_under_its_transactional_id_and_stores_offsets_where_it_would_else() {
    let (stand, herd) = stand("disabled").await;
    stand.script(vec![Step::records(1..=3)]);
    herd.start(&stand, TargetState::Started);
    until_stored(&stand, 3).await;
    herd.stop().await;
    assert_eq!(stand.visible("t").await, ["1", "2", "3"]);
    assert_eq!(stand.broker.requests(ApiKey::EndTxn), 0);
    assert_eq!(herd.log.told()[..2], [Told::Fence, Told::Verify]);
    stand.script(vec![]);
    herd.start(&stand, TargetState::Started);
    stand.until("the restart", |events| events.contains(&Event::Started(Some(3)))).await;
    herd.stop().await;
    assert_eq!(herd.worker.alter_offsets("c", &stand.connector, OffsetChange::Reset).await, Ok(false));
    assert_eq!(herd.worker.offsets("c", &stand.connector).await, Ok(vec![]));
}

#[tokio::test]
async fn turned_on_again_its_zombies_write_neither_records_nor_offsets() {
    let (mut stand, herd) = stand("disabled").await;
    stand.script(vec![Step::records(1..=3)]);
    herd.start(&stand, TargetState::Started);
    until_stored(&stand, 3).await;
    let cluster = stand.cluster().await;
    let identity = present_identity(&cluster).await;
    herd.stop().await;
    // What a worker that was cut off would still hold.
    let zombie = PlainProducer::fencible(cluster.clone(), PlainConfig::default(), identity);

    stand.connector.extend(map(&[("exactly.once.source", "enabled")]));
    stand.script(vec![Step::records(4..=5)]);
    herd.start(&stand, TargetState::Started);
    stand.until("the restart", |events| events.contains(&Event::Started(Some(3)))).await;
    stand.until_visible("t", |seen| seen.len() == 5).await;
    for (topic, partitions) in [("t", 1), ("w-offsets", 3)] {
        for partition in 0..partitions {
            let mut stage = zombie.stage();
            stage.append(&topic.into(), partition, 0, Some(b"k"), Some(b"zombie"), &[]).expect("it is small");
            let refused = zombie.send(stage.seal()).await.expect("room").wait().await.expect_err("it is a zombie");
            assert_eq!(refused.code(), Some(INVALID_PRODUCER_EPOCH), "{topic}-{partition}: {refused}");
        }
    }
    herd.stop().await;
    assert_eq!(stand.visible("t").await, ["1", "2", "3", "4", "5"]);
    assert!(stand.broker.requests(ApiKey::EndTxn) >= 2);
    cluster.close().await;
}

#[tokio::test]
async fn a_task_that_was_opted_out_steps_aside_for_its_successor() {
    let (mut stand, old) = stand("disabled").await;
    stand.script(vec![Step::records(1..=1)]);
    old.start(&stand, TargetState::Started);
    until_stored(&stand, 1).await;
    let id = stand.connector["script.id"].clone();
    // Another worker takes over; its task has a script of its own.
    let other = format!("{id}-other");
    stand.connector.extend(map(&[("exactly.once.source", "enabled"), ("script.id", other.as_str())]));
    let new = stand.herd().await;
    new.start(&stand, TargetState::Started);
    new.until_state(State::Running).await;
    support::register(&id, vec![Step::records(2..=2)].into());
    old.until_state(State::Failed).await;
    assert!(old.trace().starts_with("superseded"), "{}", old.trace());
    assert_eq!(old.task_states(), [State::Running, State::Failed]);
    assert_eq!(stand.visible("t").await, ["1"]);
    new.stop().await;
    support::forget(&id);
}

#[tokio::test]
async fn tasks_that_the_connector_no_longer_has_are_fenced_with_their_partitions() {
    let (stand, herd) = stand("enabled").await;
    stand.script(vec![Step::records(1..=1)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    herd.stop().await;
    let cluster = stand.cluster().await;
    let identity = present_identity(&cluster).await;
    let zombie = PlainProducer::fencible(cluster.clone(), PlainConfig::default(), identity);
    let (ids, topics) = (["g-c-0".to_owned()], ["t".to_owned(), "gone".to_owned()]);
    herd.worker.fence_out("c", &stand.connector, &ids, &topics).await.expect("they are fenced");
    let mut stage = zombie.stage();
    stage.append(&"t".into(), 0, 0, None, Some(b"zombie"), &[]).expect("it is small");
    let refused = zombie.send(stage.seal()).await.expect("room").wait().await.expect_err("it is a zombie");
    assert_eq!(refused.code(), Some(INVALID_PRODUCER_EPOCH), "{refused}");
    cluster.close().await;
}

#[tokio::test]
async fn required_and_disabled_contradict_each_other() {
    let (mut stand, herd) = stand("disabled").await;
    stand.connector.extend(map(&[("exactly.once.support", "required")]));
    herd.start(&stand, TargetState::Started);
    herd.until_state(State::Failed).await;
    assert!(herd.trace().contains("exactly.once.source") && herd.trace().contains("required"), "{}", herd.trace());
}
