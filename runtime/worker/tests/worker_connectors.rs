//! Connector instances under a distributed herder: states, panics, abandonment, task configurations.

mod support;

use oncewire_api::ConnectorRequest;
use oncewire_worker::worker::{ReconfigureError, State, TargetState};
use std::sync::Arc;
use support::{Event, Herd, Stand, Told, map};

async fn stand(pairs: &[(&str, &str)]) -> (Stand, Herd) {
    let mut stand = Stand::new().await;
    stand.distribute("enabled");
    stand.connector.extend(map(pairs));
    let herd = stand.herd().await;
    (stand, herd)
}

fn stops(stand: &Stand) -> usize {
    stand.events().iter().filter(|event| **event == Event::ConnectorStopped).count()
}

async fn go(herd: &Herd, target: TargetState) -> Result<TargetState, String> {
    herd.worker.set_target("c", target).expect("the instance is here").done().await
}

#[tokio::test]
async fn an_instance_goes_through_its_states_and_tells_each() {
    let (stand, herd) = stand(&[("tasks", "2"), ("tasks.max", "2"), ("on.stop", "note")]).await;
    herd.connect(&stand.connector, TargetState::Started).await.expect("it starts");
    assert!(herd.worker.is_connector_running("c"));
    assert_eq!(herd.worker.task_configs("c").await.expect("they are made").len(), 2);
    go(&herd, TargetState::Paused).await.expect("it pauses");
    assert_eq!(stops(&stand), 1);
    assert_eq!(herd.worker.task_configs("c").await, Err(ReconfigureError::NotRunning));
    go(&herd, TargetState::Started).await.expect("it resumes");
    go(&herd, TargetState::Started).await.expect("it is there already");
    go(&herd, TargetState::Stopped).await.expect("it stops");
    assert_eq!(stops(&stand), 2);
    herd.worker.stop_connectors(&["c".into(), "unknown".into()]).await;
    assert_eq!(stops(&stand), 2, "a stopped one is not stopped again");
    let states = [State::Running, State::Paused, State::Running, State::Stopped, State::Unassigned];
    assert_eq!(herd.connector_states(), states);
    assert!(herd.worker.running_connectors().is_empty() && herd.worker.set_target("c", TargetState::Started).is_none());
}

#[tokio::test]
async fn a_panic_or_an_error_at_the_start_fails_it_until_it_is_stopped() {
    for (how, says) in [("panic", "a bug in the connector's start"), ("fail", "the source says no")] {
        let (stand, herd) = stand(&[("on.start", how)]).await;
        herd.connect(&stand.connector, TargetState::Started).await.expect_err("it can't start");
        herd.until("the failure", |herd| herd.connector_states() == [State::Failed]).await;
        assert!(herd.trace().contains(says), "{}", herd.trace());
        go(&herd, TargetState::Started).await.expect_err("a failed one must be restarted");
        go(&herd, TargetState::Stopped).await.expect("it can be stopped");
        assert_eq!(herd.connector_states(), [State::Failed, State::Stopped]);
        assert!(herd.worker.running_connectors().contains("c"));
        herd.worker.close().await;
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_fails_it_by_name() {
    let (stand, herd) = stand(&[("connector.class", "Nonesuch")]).await;
    herd.connect(&stand.connector, TargetState::Started).await.expect_err("there is no such class");
    herd.until("the failure", |herd| herd.connector_states() == [State::Failed]).await;
    assert!(herd.trace().contains("Nonesuch"), "{}", herd.trace());
}

#[tokio::test]
async fn scenario_103_a_newer_wish_takes_the_place_of_one_that_waits() {
    let (stand, herd) = stand(&[("on.start", "hang")]).await;
    let first = herd.worker.start_connector("c", stand.connector.clone(), TargetState::Started, Arc::new(|_| {}));
    tokio::task::yield_now().await;
    // The start hangs, so both of these wait.
    herd.until("the start", |herd| herd.worker.running_connectors().contains("c")).await;
    let second = herd.worker.set_target("c", TargetState::Paused).expect("it is here");
    let third = herd.worker.set_target("c", TargetState::Stopped).expect("it is here");
    let replaced = second.done().await.expect_err("the third took its place");
    assert!(replaced.contains("newer"), "{replaced}");
    drop((first, third));
}

#[tokio::test]
async fn an_instance_that_does_not_stop_is_abandoned_after_5_s_with_unassigned_told_once() {
    let mut stand = Stand::new().await;
    stand.distribute("enabled");
    stand.connector.extend(map(&[("on.stop", "hang")]));
    let herd = stand.herd().await;
    herd.connect(&stand.connector, TargetState::Started).await.expect("it starts");
    let began = tokio::time::Instant::now();
    herd.worker.stop_connectors(&["c".into()]).await;
    assert!((5..8).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(herd.connector_states(), [State::Running, State::Unassigned]);
}

#[tokio::test]
async fn what_a_connector_asks_reaches_the_herder_and_its_own_failure_fails_it() {
    let (stand, herd) = stand(&[("on.start", "complain")]).await;
    herd.connect(&stand.connector, TargetState::Started).await.expect("it starts");
    herd.until("the failure", |herd| herd.connector_states() == [State::Running, State::Failed]).await;
    assert!(herd.trace().contains("the source went away"), "{}", herd.trace());
    assert!(herd.log.told().contains(&Told::Request(ConnectorRequest::ReconfigureTasks)));
    herd.worker.close().await;
}

#[tokio::test]
async fn scenario_104_too_many_tasks_fail_the_connector_unless_that_is_not_enforced() {
    let (mut stand, herd) = stand(&[("tasks", "3"), ("tasks.max", "2")]).await;
    herd.connect(&stand.connector, TargetState::Started).await.expect("it starts");
    let refused = herd.worker.task_configs("c").await;
    assert!(
        matches!(&refused, Err(ReconfigureError::TooManyTasks(problem)) if problem.contains("tasks.max=2")),
        "{refused:?}"
    );
    herd.until("the failure", |herd| herd.connector_states().last() == Some(&State::Failed)).await;
    herd.worker.stop_connectors(&["c".into()]).await;
    stand.connector.extend(map(&[("tasks.max.enforce", "false")]));
    herd.connect(&stand.connector, TargetState::Started).await.expect("it starts");
    assert_eq!(herd.worker.task_configs("c").await.expect("they are let").len(), 3);
    herd.worker.close().await;
}
