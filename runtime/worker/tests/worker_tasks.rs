//! Tasks under a distributed herder: the order in which they start, what is told of them, how they end.

mod support;

use kafka_protocol::messages::ApiKey;
use oncewire_client::config::ProducerConfig;
use oncewire_client::producer::TransactionalProducer;
use oncewire_worker::worker::{GateRefusal, State, TargetState};
use std::time::{Duration, Instant};
use support::{Event, Herd, Stand, Step, Told, map};

async fn stand() -> (Stand, Herd) {
    let mut stand = Stand::new().await;
    stand.distribute("enabled");
    let herd = stand.herd().await;
    (stand, herd)
}

#[tokio::test]
async fn a_task_starts_in_the_order_of_kip_618_and_tells_its_states_and_topics() {
    let (stand, herd) = stand().await;
    stand.script(vec![Step::records(1..=3)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    assert_eq!(stand.visible("t").await, ["1", "2", "3"]);
    herd.stop().await;
    let told = herd.log.told();
    let state = |state| Told::Task("c".into(), 0, state, None);
    assert_eq!(
        told,
        [
            Told::Fence,
            Told::Verify,
            state(State::Running),
            Told::Topic("c".into(), 0, "t".into()),
            state(State::Unassigned)
        ]
    );
    let stored = stand.read("w-offsets").await;
    assert_eq!(stored, [(r#"["c",{"p":"p"}]"#.to_owned(), Some(r#"{"n":3}"#.to_owned()))]);
    assert!(herd.worker.running_tasks().is_empty());
}

#[tokio::test]
async fn scenario_62_a_stop_before_init_sends_no_init_producer_id() {
    let (stand, herd) = stand().await;
    herd.gate.send_replace(false);
    herd.start(&stand, TargetState::Started);
    herd.until("the fencing", |herd| herd.log.told().contains(&Told::Fence)).await;
    let before = stand.broker.requests(ApiKey::InitProducerId);
    herd.stop().await;
    herd.gate.send_replace(true);
    assert_eq!(stand.broker.requests(ApiKey::InitProducerId), before);
    assert_eq!(herd.task_states(), [State::Unassigned]);
    assert!(!herd.log.told().contains(&Told::Verify));
}

#[tokio::test]
async fn scenario_61_a_generation_that_moved_fails_the_task_before_it_reads() {
    let (stand, herd) = stand().await;
    let moved = "the connector has already generated a new set of task configs";
    let mut gate = herd.gate();
    gate.verify = Err(GateRefusal::Final(moved.to_owned()));
    herd.start_with(&stand, TargetState::Started, gate);
    herd.until_state(State::Failed).await;
    assert!(herd.trace().contains(moved), "{}", herd.trace());
    assert!(stand.events().is_empty(), "the connector's task was never started");
    herd.stop().await;
    assert_eq!(herd.task_states(), [State::Failed], "nothing is told of a failed task that is taken away");
}

#[tokio::test]
async fn a_fencing_that_fails_is_told_as_such_and_not_tried_again() {
    let (stand, herd) = stand().await;
    let mut gate = herd.gate();
    gate.fence = Err(GateRefusal::Final("TRANSACTIONAL_ID_AUTHORIZATION_FAILED".to_owned()));
    herd.start_with(&stand, TargetState::Started, gate);
    herd.until_state(State::Failed).await;
    assert!(herd.trace().contains("zombie fencing") && herd.trace().contains("AUTHORIZATION"), "{}", herd.trace());
    assert_eq!(herd.log.told().iter().filter(|told| **told == Told::Fence).count(), 1);
}

#[tokio::test]
async fn a_leader_that_can_not_fence_now_is_asked_again_by_a_new_start() {
    let (mut stand, _) = stand().await;
    stand.worker.extend(map(&[("task.restart.backoff.ms", "1")]));
    let herd = stand.herd().await;
    let mut gate = herd.gate();
    gate.fence = Err(GateRefusal::Passing("the config topic was not read in time".to_owned()));
    let before = stand.broker.requests(ApiKey::InitProducerId);
    herd.start_with(&stand, TargetState::Started, gate);
    // Ten starts in a row are allowed; then a person is needed.
    herd.until_state(State::Failed).await;
    assert_eq!(herd.log.told().iter().filter(|told| **told == Told::Fence).count(), 11);
    assert_eq!(stand.broker.requests(ApiKey::InitProducerId), before, "nobody was fenced meanwhile");
    herd.stop().await;
}

#[tokio::test]
async fn paused_at_start_it_waits_before_it_fences_anybody_and_a_later_pause_commits() {
    let (mut stand, herd) = stand().await;
    stand
        .connector
        .extend(map(&[("transaction.boundary", "interval"), ("transaction.boundary.interval.ms", "600000")]));
    stand.script(vec![Step::records(1..=2)]);
    herd.start(&stand, TargetState::Paused);
    herd.until_state(State::Paused).await;
    assert_eq!(herd.log.told().len(), 1, "neither fenced nor started");
    assert!(herd.worker.set_target("c", TargetState::Started).is_none(), "the instance is not here");
    herd.until_state(State::Running).await;
    let polls = |events: &[Event]| events.iter().filter(|event| **event == Event::Poll).count();
    stand.until("two polls", |events| polls(events) >= 2).await;
    let _none = herd.worker.set_target("c", TargetState::Paused);
    herd.until_state(State::Paused).await;
    stand.until_visible("t", |seen| seen.len() == 2).await;
    herd.stop().await;
    assert_eq!(herd.task_states(), [State::Paused, State::Running, State::Paused, State::Unassigned]);
}

#[tokio::test]
async fn scenario_81_a_poll_that_hangs_is_abandoned_and_nothing_is_told_of_it_any_more() {
    let (mut stand, _) = stand().await;
    stand.worker.extend(map(&[("task.shutdown.graceful.timeout.ms", "300")]));
    let herd = stand.herd().await;
    stand.script(vec![Step::records(1..=2), Step::Hang]);
    herd.start(&stand, TargetState::Started);
    stand.until_visible("t", |seen| seen.len() == 2).await;
    stand.until("the hang", |events| events.iter().filter(|event| **event == Event::Poll).count() == 2).await;
    let began = Instant::now();
    herd.stop().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(herd.task_states(), [State::Running]);
    stand.script(vec![Step::records(3..=3)]);
    herd.start(&stand, TargetState::Started);
    stand.until_visible("t", |seen| seen.len() == 3).await;
    assert_eq!(stand.events().iter().filter(|event| **event == Event::Started(Some(2))).count(), 1);
    herd.stop().await;
}

#[tokio::test]
async fn a_panic_in_poll_or_start_fails_that_task_alone_and_the_trace_says_so() {
    let (mut stand, herd) = stand().await;
    stand.script(vec![Step::Panic]);
    herd.start(&stand, TargetState::Started);
    herd.until_state(State::Failed).await;
    assert!(herd.trace().contains("panicked") && herd.trace().contains("a bug in the connector"), "{}", herd.trace());
    herd.stop().await;
    stand.connector.extend(map(&[("on.task.start", "panic")]));
    herd.start(&stand, TargetState::Started);
    herd.until("the second failure", |herd| herd.task_states().len() == 3).await;
    assert!(herd.trace().contains("a bug in the task's start"), "{}", herd.trace());
    herd.stop().await;
    assert_eq!(herd.task_states(), [State::Running, State::Failed, State::Failed]);
}

#[tokio::test]
async fn a_superseded_task_is_failed_with_a_trace_that_says_so_and_is_not_started_again() {
    let (stand, herd) = stand().await;
    stand.script(vec![Step::records(1..=1)]);
    herd.start(&stand, TargetState::Started);
    stand.until_commits(1).await;
    let cluster = stand.cluster().await;
    let config = ProducerConfig::new("g-c-0").expect("an id");
    let newer = TransactionalProducer::new(cluster.clone(), config);
    newer.init().await.expect("it takes the id");
    stand.script(vec![Step::records(2..=2)]);
    herd.until_state(State::Failed).await;
    assert!(herd.trace().starts_with("superseded"), "{}", herd.trace());
    assert_eq!(herd.worker.superseded_tasks().into_iter().collect::<Vec<_>>(), [("c".to_owned(), 0)]);
    assert_eq!(herd.task_states(), [State::Running, State::Failed]);
    assert_eq!(stand.visible("t").await, ["1"]);
    newer.close(Duration::from_secs(1)).await.expect("it closes");
}

#[tokio::test]
async fn c13_a_topic_that_may_not_be_written_is_named_with_what_to_grant_and_to_whom() {
    let (stand, herd) = stand().await;
    stand.script(vec![Step::records(1..=1)]);
    let refusal = kafka_protocol::ResponseError::TopicAuthorizationFailed;
    stand.broker.faults().inject(ApiKey::Produce, 1, oncewire_dev_broker::Fault::Answer(refusal));
    herd.start(&stand, TargetState::Started);
    herd.until_state(State::Failed).await;
    let trace = herd.trace();
    assert!(
        trace.contains("grant Write and Describe") && trace.contains("on Topic \"") && trace.contains("User:ANONYMOUS"),
        "{trace}"
    );
}

#[tokio::test]
async fn what_a_restart_can_mend_is_told_as_restarting_and_then_running() {
    let (stand, herd) = stand().await;
    stand.script(vec![Step::records(1..=1)]);
    let fault = oncewire_dev_broker::Fault::Answer(kafka_protocol::ResponseError::TransactionAbortable);
    stand.broker.faults().inject(ApiKey::Produce, 1, fault);
    herd.start(&stand, TargetState::Started);
    herd.until("the restart", |herd| herd.task_states().contains(&State::Restarting)).await;
    assert!(herd.trace().contains("TRANSACTION_ABORTABLE"), "{}", herd.trace());
    stand.script(vec![Step::records(1..=1)]);
    stand.until_visible("t", |seen| seen == ["1"]).await;
    herd.stop().await;
    assert_eq!(herd.task_states(), [State::Running, State::Restarting, State::Running, State::Unassigned]);
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_and_too_many_tasks_fail_the_task() {
    let (mut stand, herd) = stand().await;
    stand.connector.extend(map(&[("tasks.max", "none")]));
    herd.start(&stand, TargetState::Started);
    herd.until_state(State::Failed).await;
    assert!(herd.trace().contains("tasks.max"), "{}", herd.trace());
    herd.stop().await;
    stand.connector.extend(map(&[("tasks.max", "1")]));
    let start = oncewire_worker::worker::TaskStart {
        connector: "c".into(),
        task: 0,
        task_count: 2,
        connector_config: stand.connector.clone(),
        task_config: stand.connector.clone(),
        target: TargetState::Started,
        gate: std::sync::Arc::new(herd.gate()),
    };
    herd.worker.start_task(start).expect("the id is free");
    herd.until("the second failure", |herd| herd.task_states().len() == 2).await;
    assert!(herd.trace().contains("tasks.max=1"), "{}", herd.trace());
    herd.worker.close().await;
}
