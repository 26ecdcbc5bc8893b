//! A connection against a scripted peer on the other end of an in-memory pipe.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiKey, ApiVersionsResponse, EndTxnRequest, EndTxnResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::connection::{Connection, Peer};
use super::pending::Pending;
use crate::cluster::{NodeId, Versions};
use crate::error::Error;
use crate::wire::api::BrokerApis;
use crate::wire::frame;

const VERSION: i16 = 1;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_MAX: Duration = Duration::from_secs(540);

/// The broker's end, which the test plays by hand.
struct Broker {
    pipe: DuplexStream,
}

impl Broker {
    /// The correlation id of the next request.
    async fn request(&mut self) -> i32 {
        let mut length = [0; 4];
        self.pipe.read_exact(&mut length).await.unwrap();
        let mut body = BytesMut::zeroed(usize::try_from(i32::from_be_bytes(length)).unwrap());
        self.pipe.read_exact(&mut body).await.unwrap();
        frame::decode_request_header(&mut body.freeze()).unwrap().correlation_id
    }

    async fn answer(&mut self, correlation_id: i32, response: &EndTxnResponse) {
        let frame = frame::encode_response(ApiKey::EndTxn, VERSION, correlation_id, response).unwrap();
        self.pipe.write_all(&frame).await.unwrap();
    }
}

fn connected(pipe_bytes: usize) -> (Connection, Broker, JoinHandle<()>) {
    let (ours, theirs) = duplex(pipe_bytes);
    let offered = ApiVersion::default().with_api_key(ApiKey::EndTxn as i16).with_max_version(VERSION);
    let apis = BrokerApis::from_response(&ApiVersionsResponse::default().with_api_keys(vec![offered]));
    let peer = Peer {
        name: "node 1 at test:1".to_owned(),
        node: Some(NodeId(1)),
        client_id: "c".to_owned(),
        request_timeout: REQUEST_TIMEOUT,
        idle_max: IDLE_MAX,
    };
    let (connection, task) = Connection::new(ours, peer, apis, None);
    (connection, Broker { pipe: theirs }, tokio::spawn(task))
}

async fn send(connection: &Connection) -> Pending<EndTxnResponse> {
    let place = connection.place().await.unwrap();
    place.send::<EndTxnRequest, _>(Versions::ANY, None, |_| EndTxnRequest::default()).unwrap()
}

fn coded(code: i16) -> EndTxnResponse {
    EndTxnResponse::default().with_error_code(code)
}

#[tokio::test]
async fn answers_reach_their_requests_when_many_are_in_flight() {
    let (connection, mut broker, _task) = connected(64 * 1024);
    let first = send(&connection).await;
    let second = send(&connection).await;
    let (one, two) = (broker.request().await, broker.request().await);
    broker.answer(one, &coded(51)).await;
    broker.answer(two, &coded(0)).await;
    assert_eq!(second.await.unwrap().body.error_code, 0);
    assert_eq!(first.await.unwrap().body.error_code, 51);
}

#[tokio::test]
async fn dropping_a_pending_answer_keeps_the_socket() {
    let (connection, mut broker, _task) = connected(64 * 1024);
    drop(send(&connection).await);
    let kept = send(&connection).await;
    let (one, two) = (broker.request().await, broker.request().await);
    broker.answer(one, &coded(1)).await;
    broker.answer(two, &coded(2)).await;
    assert_eq!(kept.await.unwrap().body.error_code, 2);
    assert!(connection.is_open());
}

#[tokio::test]
async fn an_answer_out_of_turn_ends_the_connection_for_everybody() {
    let (connection, mut broker, task) = connected(64 * 1024);
    let (first, second) = (send(&connection).await, send(&connection).await);
    let (_, two) = (broker.request().await, broker.request().await);
    broker.answer(two, &coded(0)).await;
    assert!(matches!(first.await, Err(Error::Malformed { .. })));
    assert!(matches!(second.await, Err(Error::Malformed { .. })));
    task.await.unwrap();
    assert!(!connection.is_open());
    assert!(matches!(connection.place().await, Err(Error::Malformed { .. })));
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_ends_the_connection() {
    let (connection, mut broker, task) = connected(64 * 1024);
    broker.answer(7, &coded(0)).await;
    task.await.unwrap();
    assert!(!connection.is_open());
}

#[tokio::test]
async fn a_frame_above_the_limit_ends_the_connection() {
    let (connection, mut broker, task) = connected(64 * 1024);
    let pending = send(&connection).await;
    broker.pipe.write_all(&i32::MAX.to_be_bytes()).await.unwrap();
    assert!(matches!(pending.await, Err(Error::Malformed { .. })));
    task.await.unwrap();
}

#[tokio::test]
async fn a_lost_connection_is_told_to_all_who_wait() {
    let (connection, mut broker, task) = connected(64 * 1024);
    let pending = send(&connection).await;
    broker.request().await;
    drop(broker);
    assert!(matches!(pending.await, Err(Error::Disconnected { .. })));
    task.await.unwrap();
}

#[tokio::test]
async fn closing_fails_what_waits_and_ends_the_task() {
    let (connection, _broker, task) = connected(64 * 1024);
    let pending = send(&connection).await;
    connection.close();
    assert!(matches!(pending.await, Err(Error::Closed)));
    task.await.unwrap();
    assert!(matches!(connection.place().await, Err(Error::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_silent_broker_costs_the_connection_after_timeout_and_grace() {
    let (connection, mut broker, task) = connected(64 * 1024);
    let started = Instant::now();
    let pending = send(&connection).await;
    broker.request().await;
    assert!(matches!(pending.await, Err(Error::Disconnected { .. })));
    let waited = started.elapsed();
    assert!(waited >= REQUEST_TIMEOUT && waited < REQUEST_TIMEOUT + Duration::from_secs(5), "{waited:?}");
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answered_request_does_not_time_the_connection_out() {
    let (connection, mut broker, _task) = connected(64 * 1024);
    let pending = send(&connection).await;
    let id = broker.request().await;
    broker.answer(id, &coded(0)).await;
    pending.await.unwrap();
    tokio::time::advance(REQUEST_TIMEOUT * 3).await;
    tokio::task::yield_now().await;
    assert!(connection.is_open());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_by_itself() {
    let (connection, _broker, task) = connected(64 * 1024);
    timeout(IDLE_MAX + Duration::from_secs(1), task).await.unwrap().unwrap();
    assert!(!connection.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_times_the_request_out() {
    // The pipe is smaller than a request, so the write hangs half-way.
    let (connection, _broker, task) = connected(8);
    let pending = send(&connection).await;
    assert!(matches!(pending.await, Err(Error::Disconnected { .. })));
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_next_request_waits_out_the_throttle_time() {
    let (connection, mut broker, _task) = connected(64 * 1024);
    let pending = send(&connection).await;
    let id = broker.request().await;
    broker.answer(id, &coded(0).with_throttle_time_ms(700)).await;
    pending.await.unwrap();
    let started = Instant::now();
    drop(send(&connection).await);
    assert!(started.elapsed() >= Duration::from_millis(700));
}

#[tokio::test]
async fn a_full_connection_makes_callers_wait_and_a_dropped_waiter_costs_nothing() {
    let (connection, mut broker, _task) = connected(64 * 1024);
    let mut pendings = Vec::new();
    while let Ok(place) = timeout(Duration::from_millis(20), connection.place()).await {
        let sent = place.unwrap().send::<EndTxnRequest, _>(Versions::ANY, None, |_| EndTxnRequest::default());
        pendings.push(sent.unwrap());
        assert!(pendings.len() <= 1000, "no limit on requests in flight");
    }
    let id = broker.request().await;
    broker.answer(id, &coded(0)).await;
    pendings.remove(0).await.unwrap();
    assert!(timeout(Duration::from_secs(5), connection.place()).await.is_ok());
}

#[tokio::test]
async fn an_undecodable_answer_is_its_requests_error_only() {
    let (connection, mut broker, _task) = connected(64 * 1024);
    let pending = send(&connection).await;
    let id = broker.request().await;
    let mut bytes = BytesMut::from(&[0, 0, 0, 5][..]);
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(&[1]);
    broker.pipe.write_all(&Bytes::from(bytes)).await.unwrap();
    assert!(matches!(pending.await, Err(Error::Malformed { .. })));
    assert!(connection.is_open(), "frames still line up, so the connection is sound");
}
