//! The list of REST requests that Java's answers were recorded for, once through the worker that leads and once through one that
//! does not: the same codes, headers and bodies.

use crate::support::Group;
use oncewire_dev_broker::BrokerSettings;
use oncewire_rest_requests::answer::{Answer, Place};
use oncewire_rest_requests::compare::compare;
use oncewire_rest_requests::{list, run};
use std::path::Path;
use std::time::Duration;

/// For each condition of the list.
const PATIENCE: Duration = Duration::from_secs(15);

/// Requests of the list that only the leader, or the owner, can serve, and that say that they must not be sent on.
const STAY_HERE: [&str; 4] = [
    "c-running-restart-forward-false",
    "c-running-restart-forward-word",
    "c-put-same-forward-false",
    "c-stopped-patch-forward-false",
];

/// Which of two workers is asked.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Leader,
    Follower,
}

async fn answers(asked: Asked, dir: &Path) -> Vec<Answer> {
    // The list's connectors leave their topic to the brokers.
    let broker = BrokerSettings { auto_create_topics: true, ..BrokerSettings::default() };
    let group = Group::on(broker, &[]).await;
    let (leader, follower) = (group.join().await, group.join().await);
    std::fs::write(dir.join("input.txt"), "one\ntwo\n").unwrap();
    let (here, other) = match asked {
        Asked::Leader => (leader.id().to_owned(), follower.id().to_owned()),
        Asked::Follower => (follower.id().to_owned(), leader.id().to_owned()),
    };
    let dir = dir.to_str().unwrap().to_owned();
    let sent = tokio::task::spawn_blocking(move || {
        let place = Place { address: &here, others: &[&other], dir: &dir };
        run::run(&list::requests(), &place, PATIENCE)
    });
    let answers = sent.await.unwrap();
    group.close([follower, leader]).await;
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_answers_the_whole_list_as_the_leader_does() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (by_leader, by_follower) =
        tokio::join!(answers(Asked::Leader, one.path()), answers(Asked::Follower, other.path()));
    let unmet: Vec<&Answer> = by_leader.iter().chain(&by_follower).filter(|answer| answer.code == 0).collect();
    assert!(unmet.is_empty(), "{unmet:#?}");
    // A request that may not be sent on is refused where it can't be done; what `forward` says is read as Java reads it.
    let stays = |id: &str| id.ends_with("-forward-false") || id.ends_with("-forward-word");
    let (refused, by_follower): (Vec<Answer>, Vec<Answer>) =
        by_follower.into_iter().partition(|answer| stays(&answer.id) && answer.code == 409);
    let ids: Vec<&str> = refused.iter().map(|answer| answer.id.as_str()).collect();
    assert_eq!(ids, STAY_HERE);
    let by_leader: Vec<Answer> = by_leader.into_iter().filter(|answer| !ids.contains(&answer.id.as_str())).collect();
    let outcome = compare(&by_leader, &by_follower, &[]);
    let (count, text) = (outcome.differences.len(), outcome.differences.join("\n"));
    assert!(outcome.differences.is_empty(), "{count} answers differ, first the leader's:\n{text}");
}
