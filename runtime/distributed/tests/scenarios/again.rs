//! Connectors that are configured or made again, and what the config topic claims of them.

use crate::exactly_once::running;
use crate::support::{CONFIGS, Group};
use serde_json::{Value, json};

const OWN_TOPIC: (&str, &str) = ("offsets.storage.topic.template", "${connector}-offsets");
const KEY: &str = "offsets.storage.topic";

/// A deployment script puts, again and again, the configuration that it knows.
#[tokio::test]
async fn who_puts_a_configuration_again_does_not_take_the_own_offsets_topic_away() {
    let group = Group::with(&[OWN_TOPIC]).await;
    let node = group.join().await;
    let config = group.scripted(&[("tasks", "1")]);
    let made = node.rest.settled("PUT", "/connectors/c/config", Some(&config)).await;
    assert_eq!((made.status, &made.body["config"][KEY]), (201, &json!("c-offsets")), "{made}");
    node.rest.until_states("c", "RUNNING", &["RUNNING"]).await;
    group.until_delivered(1, 3).await;

    let put = node.rest.settled("PUT", "/connectors/c/config", Some(&config)).await;
    assert_eq!((put.status, &put.body["config"][KEY]), (200, &json!("c-offsets")), "{put}");
    group.until_delivered(1, 3).await;
    let stored = group.newest("c-offsets").await;
    assert!(!stored.is_empty(), "the offsets are where they were");

    let elsewhere = group.scripted(&[("tasks", "1"), (KEY, "elsewhere")]);
    let put = node.rest.settled("PUT", "/connectors/c/config", Some(&elsewhere)).await;
    assert_eq!(put.body["config"][KEY], json!("elsewhere"), "who names a topic gets it: {put}");
    group.close([node]).await;
}

#[tokio::test]
async fn a_connector_that_shares_the_workers_offsets_topic_goes_on_sharing_it() {
    let group = Group::new().await;
    let node = group.join().await;
    let config = group.scripted(&[("tasks", "1")]);
    node.rest.create("c", &config).await;
    node.stop().await;
    let node = group.join_with(&[OWN_TOPIC]).await;
    let put = node.rest.settled("PUT", "/connectors/c/config", Some(&config)).await;
    assert_eq!((put.status, &put.body["config"][KEY]), (200, &Value::Null), "{put}");
    group.close([node]).await;
}

/// Brokers know the ids of a deleted connector for days. They are no proof of a rival.
#[tokio::test]
async fn a_connector_can_be_made_again_beside_a_group_that_might_have_a_rival() {
    let group = Group::new().await;
    let rival = group.join().await;
    let other = [
        ("group.id", "g-a"),
        ("config.storage.topic", "other-configs"),
        ("offset.storage.topic", "other-offsets"),
        ("status.storage.topic", "other-status"),
    ];
    let node = group.join_with(&other).await;
    running(&group, &node, &[], 1).await;
    node.rest.must(204, "DELETE", "/connectors/c", None).await;
    running(&group, &node, &[], 1).await;
    group.close([node, rival]).await;
}

/// Both records are plain numbers in a topic that anybody with the rights may write to.
#[tokio::test]
async fn a_number_of_tasks_that_nobody_ever_had_harms_no_leader() {
    let group = Group::new().await;
    let node = group.join().await;
    running(&group, &node, &[], 2).await;
    group.write(CONFIGS, "tasks-fencing-c", r#"{"task-count":2147483647}"#).await;
    running(&group, &node, &[], 3).await;
    group.write(CONFIGS, "commit-c", r#"{"tasks":2147483647}"#).await;
    node.rest.must(204, "DELETE", "/connectors/c", None).await;
    node.rest.create("d", &group.scripted(&[])).await;
    node.rest.until_states("d", "RUNNING", &["RUNNING"]).await;
    group.close([node]).await;
}
