//! Callers, machine and a hand-played driver, without sockets.

use super::super::lane::Outgoing;
use super::super::stage::Stage;
use super::exchange::Drained;
use super::*;
use crate::batch::BatchLimits;
use oncewire_txn::{ErrorCode, Protocol, Reply, RequestId};

const IDENTITY: ProducerIdentity = ProducerIdentity { id: 4000, epoch: 2 };

fn shared_with(change: impl FnOnce(&mut ProducerConfig)) -> Shared {
    let mut config = ProducerConfig::new("orders-0").unwrap();
    change(&mut config);
    Shared::new(&config, Settings { batches_max: 1000, ..Settings::default() })
}

fn batches(partition: u32, records: u32) -> Vec<StagedBatch> {
    let mut stage = Stage::new(BatchLimits::default());
    for _ in 0..records {
        stage.append(&"orders".into(), partition, 1, None, Some(b"value"), &[]).unwrap();
    }
    stage.seal()
}

fn step(shared: &Shared, replies: Vec<(RequestId, Reply)>) -> Vec<Order> {
    let Drained { orders, .. } = shared.step(replies);
    orders
}

fn coordinator(orders: &[Order]) -> (RequestId, CoordinatorRequest) {
    match orders {
        [Order::Coordinator(request, what)] => (*request, what.clone()),
        _ => panic!("one request to the coordinator was expected"),
    }
}

fn produced(orders: Vec<Order>) -> Outgoing {
    match <[Order; 1]>::try_from(orders) {
        Ok([Order::Produce(order)]) => order,
        _ => panic!("one batch was expected"),
    }
}

/// Plays the coordinator until `init` is done.
fn initialize(shared: &Shared) {
    let _ticket = shared.init().unwrap();
    let (request, what) = coordinator(&step(shared, vec![]));
    assert_eq!(what, CoordinatorRequest::Find);
    let (request, what) = coordinator(&step(shared, vec![(request, Reply::Coordinator(ErrorCode(0)))]));
    assert_eq!(what, CoordinatorRequest::Init { current: None });
    let reply = Reply::Initialized { code: ErrorCode(0), identity: IDENTITY, protocol: Protocol::Implicit };
    assert!(step(shared, vec![(request, reply)]).is_empty());
    assert_eq!(shared.identity(), Some(IDENTITY));
}

fn acked() -> Reply {
    Reply::Produced { code: ErrorCode(0), base_offset: 7, log_start_offset: 0, leader_known: false }
}

fn ended(epoch: i16) -> Reply {
    let next = Some(ProducerIdentity { epoch, ..IDENTITY });
    Reply::Ended { code: ErrorCode(0), next, protocol: Protocol::Implicit }
}

fn waiting(ticket: EndTicket) -> oneshot::Receiver<Result<Committed, ProducerError>> {
    match ticket {
        EndTicket::Waiting(receiver) => receiver,
        EndTicket::Done(result) => panic!("it was done already: {result:?}"),
    }
}

#[test]
fn second_init_attaches_to_the_first() {
    let shared = shared_with(|_| {});
    let mut first = shared.init().unwrap().unwrap_err();
    let (request, _) = coordinator(&step(&shared, vec![]));
    let mut second = shared.init().unwrap().unwrap_err();
    let (request, _) = coordinator(&step(&shared, vec![(request, Reply::Coordinator(ErrorCode(0)))]));
    assert!(step(&shared, vec![]).is_empty(), "InitProducerId goes out once");
    let reply = Reply::Initialized { code: ErrorCode(0), identity: IDENTITY, protocol: Protocol::Implicit };
    step(&shared, vec![(request, reply)]);
    assert_eq!(first.try_recv().unwrap(), Ok(IDENTITY));
    assert_eq!(second.try_recv().unwrap(), Ok(IDENTITY));
    assert_eq!(shared.init().unwrap().unwrap(), IDENTITY, "a third asks nobody");
}

#[tokio::test]
async fn commit_whose_future_was_dropped_goes_on_and_keeps_its_result() {
    let shared = shared_with(|_| {});
    initialize(&shared);
    shared.begin().unwrap();
    shared.send(batches(0, 3)).await.unwrap();
    drop(waiting(shared.end(EndGoal::Commit).unwrap()));
    let order = produced(step(&shared, vec![]));
    let (request, what) = coordinator(&step(&shared, vec![(order.request, acked())]));
    let expected = CoordinatorRequest::End { identity: IDENTITY, goal: EndGoal::Commit, protocol: Protocol::Implicit };
    assert_eq!(what, expected);
    step(&shared, vec![(request, ended(3))]);
    match shared.end(EndGoal::Commit).unwrap() {
        EndTicket::Done(Ok(committed)) => assert_eq!(committed.records, 3),
        _ => panic!("the result was lost"),
    }
    assert!(matches!(shared.end(EndGoal::Commit), Err(ProducerError::Misuse { .. })), "it is given once");
}

#[tokio::test]
async fn pending_commit_is_attached_to_and_never_overtaken_by_an_abort() {
    let shared = shared_with(|_| {});
    initialize(&shared);
    shared.begin().unwrap();
    shared.send(batches(0, 1)).await.unwrap();
    let mut first = waiting(shared.end(EndGoal::Commit).unwrap());
    assert!(matches!(shared.end(EndGoal::Abort), Err(ProducerError::Misuse { .. })));
    let mut second = waiting(shared.end(EndGoal::Commit).unwrap());
    let order = produced(step(&shared, vec![]));
    let (request, _) = coordinator(&step(&shared, vec![(order.request, acked())]));
    step(&shared, vec![(request, ended(3))]);
    assert_eq!(first.try_recv().unwrap().unwrap().records, 1);
    assert_eq!(second.try_recv().unwrap().unwrap().records, 1);
}

#[tokio::test]
async fn transaction_without_a_record_asks_nobody() {
    let shared = shared_with(|_| {});
    initialize(&shared);
    for goal in [EndGoal::Abort, EndGoal::Commit, EndGoal::Abort, EndGoal::Commit] {
        shared.begin().unwrap();
        let mut end = waiting(shared.end(goal).unwrap());
        assert!(step(&shared, vec![]).is_empty());
        assert_eq!(end.try_recv().unwrap().unwrap().records, 0);
    }
}

#[tokio::test]
async fn retried_batch_has_the_same_bytes() {
    let shared = shared_with(|_| {});
    initialize(&shared);
    shared.begin().unwrap();
    shared.send(batches(0, 5)).await.unwrap();
    let first = produced(step(&shared, vec![]));
    let mut replies = vec![(first.request, Reply::Lost { sent: true })];
    // The machine waits before it tries again; its clock is real, its first wait a fraction of a second.
    let deadline = Instant::now() + Duration::from_secs(10);
    let again = loop {
        assert!(Instant::now() < deadline, "no retry came");
        let mut found = None;
        for order in step(&shared, std::mem::take(&mut replies)) {
            match order {
                Order::Refresh(request, _) => replies.push((request, Reply::Metadata)),
                Order::Produce(order) => found = Some(order),
                _ => panic!("unexpected order"),
            }
        }
        if let Some(order) = found {
            break order;
        }
    };
    assert_eq!(again.records, first.records);
    assert_eq!(again.batch, first.batch);
    assert_eq!(shared.metrics().batch_retries, 1);
}

#[tokio::test(start_paused = true)]
async fn full_buffer_fails_the_send_and_the_transaction() {
    let shared = shared_with(|config| config.buffer_memory_bytes = 400);
    initialize(&shared);
    shared.begin().unwrap();
    shared.send(batches(0, 20)).await.unwrap();
    let error = shared.send(batches(0, 20)).await.unwrap_err();
    assert!(matches!(error, ProducerError::BufferFull { limit_bytes: 400, .. }), "{error}");
    step(&shared, vec![]);
    assert!(matches!(shared.send(batches(0, 1)).await, Err(ProducerError::AbortRequired { .. })));
}

#[tokio::test(start_paused = true)]
async fn send_dropped_half_way_leaves_the_transaction_abort_only() {
    let shared = shared_with(|config| config.buffer_memory_bytes = 400);
    initialize(&shared);
    shared.begin().unwrap();
    let mut both = batches(0, 20);
    both.extend(batches(1, 20));
    let sending = shared.send(both);
    assert!(tokio::time::timeout(Duration::from_millis(10), sending).await.is_err());
    let mut end = waiting(shared.end(EndGoal::Commit).unwrap());
    let mut replies = Vec::new();
    for _ in 0..10 {
        for order in step(&shared, std::mem::take(&mut replies)) {
            match order {
                Order::Produce(order) => replies.push((order.request, acked())),
                Order::Coordinator(request, CoordinatorRequest::End { goal, .. }) => {
                    assert_eq!(goal, EndGoal::Abort, "a commit must not pass over the hole");
                    replies.push((request, ended(3)));
                }
                _ => panic!("unexpected order"),
            }
        }
    }
    let error = end.try_recv().unwrap().unwrap_err();
    assert!(matches!(error, ProducerError::NotCommitted { recoverable: true, .. }), "{error}");
    assert!(matches!(shared.end(EndGoal::Abort).unwrap(), EndTicket::Done(Ok(_))), "nothing is left to abort");
    shared.begin().unwrap();
}

#[tokio::test]
async fn refused_batch_names_topic_partition_and_code() {
    let shared = shared_with(|_| {});
    initialize(&shared);
    shared.begin().unwrap();
    shared.send(batches(3, 1)).await.unwrap();
    let order = produced(step(&shared, vec![]));
    shared.broker_said(&order.topic, 3, "record 0 of the batch: no key on a compacted topic".to_owned());
    let reply = Reply::Produced { code: ErrorCode(87), base_offset: -1, log_start_offset: -1, leader_known: false };
    step(&shared, vec![(order.request, reply)]);
    let text = shared.send(batches(3, 1)).await.unwrap_err().to_string();
    for part in ["orders-0", "orders-3", "INVALID_RECORD (87)", "no key on a compacted topic"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[tokio::test]
async fn memory_is_given_back_when_batches_are_acknowledged_or_dropped() {
    let shared = shared_with(|_| {});
    initialize(&shared);
    let all = shared.room.available_permits();
    for goal in [EndGoal::Commit, EndGoal::Abort] {
        shared.begin().unwrap();
        shared.send(batches(0, 100)).await.unwrap();
        assert!(shared.room.available_permits() < all && shared.metrics().buffered_bytes > 0);
        let _end = shared.end(goal).unwrap();
        let mut replies = Vec::new();
        for _ in 0..4 {
            for order in step(&shared, std::mem::take(&mut replies)) {
                match order {
                    Order::Produce(order) => replies.push((order.request, acked())),
                    Order::Coordinator(request, _) => replies.push((request, ended(3))),
                    _ => panic!("unexpected order"),
                }
            }
        }
        assert_eq!(shared.room.available_permits(), all);
        assert_eq!(shared.metrics().buffered_bytes, 0);
    }
}

#[tokio::test]
async fn calls_in_the_wrong_order_are_refused_and_change_nothing() {
    let shared = shared_with(|_| {});
    assert!(matches!(shared.begin(), Err(ProducerError::Misuse { .. })));
    assert!(matches!(shared.send(batches(0, 1)).await, Err(ProducerError::Misuse { .. })));
    assert!(matches!(shared.end(EndGoal::Commit), Err(ProducerError::Misuse { .. })));
    initialize(&shared);
    shared.begin().unwrap();
    assert!(matches!(shared.begin(), Err(ProducerError::Misuse { .. })));
    assert_eq!(shared.state(), ProducerState::InTransaction);
}

#[tokio::test]
async fn closed_producer_tells_everybody_who_waits() {
    let shared = shared_with(|_| {});
    let mut init = shared.init().unwrap().unwrap_err();
    shared.close();
    let drained = shared.step(vec![]);
    assert!(drained.closed);
    assert!(init.try_recv().unwrap().is_err());
    assert!(matches!(shared.init(), Err(ProducerError::Closed { .. })));
    assert_eq!(shared.state(), ProducerState::Closed);
}
