//! Where transactions end, and what is visible then (KIP-618's transaction boundaries).

mod support;

use kafka_protocol::messages::ApiKey;
use oncewire_api::Boundary::{Abort, Commit};
use oncewire_worker::herder::supervisor::TaskState;
use support::{Event, Stand, Step, map, record};

fn numbers(range: std::ops::RangeInclusive<i64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

async fn connector_stand() -> Stand {
    let mut stand = Stand::new().await;
    stand.connector.extend(map(&[("transaction.boundary", "connector")]));
    stand
}

#[tokio::test]
async fn poll_boundary_makes_each_poll_one_transaction_with_its_offset() {
    let stand = Stand::new().await;
    let worker = stand.run(vec![Step::records(1..=3), Step::records(4..=5)]);
    stand.until_commits(2).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, numbers(1..=5));
    let offsets = stand.stored_offsets().await;
    let key = r#"["c",{"p":"p"}]"#.to_owned();
    assert_eq!(offsets, [(key.clone(), Some(r#"{"n":3}"#.into())), (key, Some(r#"{"n":5}"#.into()))]);
}

#[tokio::test]
async fn interval_boundary_commits_although_poll_brings_nothing_more() {
    let mut stand = Stand::new().await;
    stand.connector.extend(map(&[("transaction.boundary", "interval"), ("transaction.boundary.interval.ms", "50")]));
    let worker = stand.run(vec![Step::records(1..=2), Step::Hang]);
    stand.until_visible("t", |seen| seen == numbers(1..=2)).await;
    worker.kill();
    assert_eq!(stand.stored_offsets().await.len(), 1, "the timer committed while poll was stuck");
}

/// E64: many polls within an interval are one transaction, and what is open at the stop is committed then.
#[tokio::test]
async fn interval_boundary_commits_once_an_interval_and_at_the_stop() {
    let mut stand = Stand::new().await;
    let hour = ("transaction.boundary.interval.ms", "3600000");
    stand.connector.extend(map(&[("transaction.boundary", "interval"), hour]));
    let worker = stand.run((1..=20).map(|number| Step::records(number..=number)).collect::<Vec<_>>());
    let polls = |events: &[Event]| events.iter().filter(|event| **event == Event::Poll).count();
    stand.until("every record is polled, and nothing more", |events| polls(events) > 22).await;
    assert_eq!(stand.broker.requests(ApiKey::EndTxn), 0, "the interval is not over");
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.broker.requests(ApiKey::EndTxn), 1, "the stop commits once");
    assert_eq!(stand.visible("t").await, numbers(1..=20));
    let offsets: Vec<_> = stand.stored_offsets().await.into_iter().map(|(_, value)| value).collect();
    assert_eq!(offsets, [Some(r#"{"n":20}"#.to_owned())], "with the last offset alone");

    let mut stand = Stand::new().await;
    stand.connector.extend(map(&[("transaction.boundary", "interval"), ("transaction.boundary.interval.ms", "300")]));
    let began = std::time::Instant::now();
    let worker = stand.run((1..=400).map(|number| Step::records(number..=number)).collect::<Vec<_>>());
    stand.until_visible("t", |seen| seen.len() == 400).await;
    let intervals = began.elapsed().as_millis() / 300;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    let commits = u128::from(stand.broker.requests(ApiKey::EndTxn));
    assert!(commits <= intervals + 1, "{commits} commits in {intervals} intervals");
}

#[tokio::test]
async fn a_connector_that_commits_every_ten_shows_ten_of_fifteen_and_resumes_at_ten() {
    let stand = connector_stand().await;
    let worker = stand.run(vec![Step::Batch((1..=15).map(record).collect(), Some((9, Commit)), None)]);
    stand.until_commits(1).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, numbers(1..=10), "records 11 to 15 are never committed by force");

    let again = stand.run(vec![Step::Batch((11..=20).map(record).collect(), None, Some(Commit))]);
    stand.until("the restart", |events| events.contains(&Event::Started(Some(10)))).await;
    stand.until_commits(2).await;
    assert_eq!(again.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, numbers(1..=20));
}

/// E67 abort-commits-offsets
#[tokio::test]
async fn an_abort_hides_the_records_and_stores_their_offset() {
    let stand = connector_stand().await;
    let worker = stand.run(vec![
        Step::Batch((1..=3).map(record).collect(), None, Some(Abort)),
        Step::Batch((4..=5).map(record).collect(), None, Some(Commit)),
    ]);
    stand.until_visible("t", |seen| !seen.is_empty()).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, numbers(4..=5));
    let offsets: Vec<_> = stand.stored_offsets().await.into_iter().map(|(_, value)| value).collect();
    assert_eq!(offsets, [Some(r#"{"n":3}"#.to_owned()), Some(r#"{"n":5}"#.to_owned())]);
}

#[tokio::test]
async fn an_ask_at_the_last_record_comes_before_that_of_the_batch() {
    // Asked at the last record and for the batch; what is visible after a following commit of 3.
    let cases = [
        (Some((1, Commit)), Some(Abort), numbers(1..=3)),
        (Some((1, Abort)), Some(Commit), numbers(3..=3)),
        (Some((1, Commit)), Some(Commit), numbers(1..=3)),
        (Some((1, Abort)), Some(Abort), numbers(3..=3)),
    ];
    for (after, batch, visible) in cases {
        let stand = connector_stand().await;
        let worker = stand.run(vec![
            Step::Batch((1..=2).map(record).collect(), after, batch),
            Step::Batch(vec![record(3)], None, Some(Commit)),
        ]);
        stand.until("the last commit", |events| events.ends_with(&[Event::Commit, Event::Poll])).await;
        stand.until_visible("t", |seen| seen.last().is_some_and(|last| last == "3")).await;
        assert_eq!(worker.stop().await, TaskState::Stopped);
        assert_eq!(stand.visible("t").await, visible, "{after:?} {batch:?}");
    }
}

/// E66 abort-empty
#[tokio::test]
async fn asking_to_abort_where_nothing_was_sent_is_ignored() {
    let stand = connector_stand().await;
    let worker = stand.run(vec![Step::Nothing(Some(Abort)), Step::Batch(vec![record(1)], None, Some(Commit))]);
    stand.until_visible("t", |seen| !seen.is_empty()).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, numbers(1..=1));
}

#[tokio::test]
async fn a_contradiction_fails_the_task_and_shows_nothing() {
    let stand = connector_stand().await;
    let worker = stand.run(vec![Step::Batch(vec![record(1)], Some((5, Commit)), None)]);
    let TaskState::Failed { cause } = worker.ended().await else { panic!("it failed") };
    assert!(cause.contains("after record 5 of a batch of 1"), "{cause}");
    assert!(stand.visible("t").await.is_empty());
}

#[tokio::test]
async fn the_task_hears_of_records_in_order_and_only_after_their_commit() {
    let mut stand = Stand::new().await;
    stand.connector.extend(map(&[("records", "keep")]));
    let worker = stand.run(vec![Step::records(1..=2), Step::records(3..=3)]);
    stand.until("record 3", |events| events.contains(&Event::CommitRecord(3))).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    let heard: Vec<Event> =
        stand.events().into_iter().filter(|event| matches!(event, Event::CommitRecord(_))).collect();
    assert_eq!(heard, [1, 2, 3].map(Event::CommitRecord));
}
