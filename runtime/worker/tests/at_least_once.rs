//! At-least-once mode: Java's standalone worker, with its offsets file.

mod support;

use oncewire_worker::herder::supervisor::TaskState;
use support::{Event, Stand, Step, map};

async fn file_stand(folder: &tempfile::TempDir) -> Stand {
    let mut stand = Stand::new().await;
    let path = folder.path().join("offsets");
    stand.worker.extend(map(&[
        ("offset.storage.file.filename", path.to_str().expect("a plain path")),
        ("offset.flush.interval.ms", "50"),
    ]));
    stand
}

#[tokio::test]
async fn records_go_out_and_the_offset_follows_into_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let stand = file_stand(&folder).await;
    let worker = stand.run(vec![Step::records(1..=3), Step::records(4..=5)]);
    stand.until_commits(1).await;
    assert_eq!(worker.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1", "2", "3", "4", "5"]);
    assert!(stand.stored_offsets().await.is_empty(), "no offsets topic in this mode");
    let again = stand.run(vec![]);
    stand.until("the restart", |events| events.contains(&Event::Started(Some(5)))).await;
    assert_eq!(again.stop().await, TaskState::Stopped);
}

#[tokio::test]
async fn a_worker_that_dies_before_the_flush_sends_again_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stand = file_stand(&folder).await;
    stand.worker.extend(map(&[("offset.flush.interval.ms", "600000")]));
    let worker = stand.run(vec![Step::records(1..=2)]);
    stand.until_visible("t", |seen| seen.len() >= 2).await;
    worker.kill();
    let again = stand.run(vec![Step::records(1..=3)]);
    stand.until("the restart", |events| events.iter().filter(|e| **e == Event::Started(None)).count() == 2).await;
    stand.until_visible("t", |seen| seen.len() >= 5).await;
    assert_eq!(again.stop().await, TaskState::Stopped);
    assert_eq!(stand.visible("t").await, ["1", "2", "1", "2", "3"]);
}
