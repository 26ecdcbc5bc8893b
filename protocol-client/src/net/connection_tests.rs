//! A connection against a scripted peer on the other end of an in-memory pipe.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, EndTxnRequest, EndTxnResponse, SaslAuthenticateResponse, SaslHandshakeResponse,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::connection::{Connection, Peer};
use super::pending::Pending;
use crate::cluster::{NodeId, Versions};
use crate::config::{SaslConfig, SaslMechanism, Secret};
use crate::error::Error;
use crate::net::session::Session;
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
        self.request_of().await.1
    }

    /// The next request's API and correlation id.
    async fn request_of(&mut self) -> (ApiKey, i32) {
        let mut length = [0; 4];
        self.pipe.read_exact(&mut length).await.unwrap();
        let mut body = BytesMut::zeroed(usize::try_from(i32::from_be_bytes(length)).unwrap());
        self.pipe.read_exact(&mut body).await.unwrap();
        let api = ApiKey::try_from(i16::from_be_bytes([body[0], body[1]])).unwrap();
        (api, frame::decode_request_header(&mut body.freeze()).unwrap().correlation_id)
    }

    async fn answer(&mut self, correlation_id: i32, response: &EndTxnResponse) {
        self.answer_as(ApiKey::EndTxn, correlation_id, response).await;
    }

    async fn answer_as(
        &mut self,
        api: ApiKey,
        correlation_id: i32,
        response: &impl kafka_protocol::protocol::Encodable,
    ) {
        let frame = frame::encode_response(api, VERSION, correlation_id, response).unwrap();
        self.pipe.write_all(&frame).await.unwrap();
    }

    /// Plays one login by PLAIN; the session is to last this long, the answer to the token is this code.
    async fn log_in(&mut self, lifetime: Duration, error_code: i16) {
        let (api, id) = self.request_of().await;
        assert_eq!(api, ApiKey::SaslHandshake);
        self.answer_as(api, id, &SaslHandshakeResponse::default()).await;
        let (api, id) = self.request_of().await;
        assert_eq!(api, ApiKey::SaslAuthenticate);
        let lifetime = i64::try_from(lifetime.as_millis()).unwrap();
        let welcome =
            SaslAuthenticateResponse::default().with_session_lifetime_ms(lifetime).with_error_code(error_code);
        self.answer_as(api, id, &welcome).await;
    }
}

fn connected(pipe_bytes: usize) -> (Connection, Broker, JoinHandle<()>) {
    connected_in(pipe_bytes, None)
}

fn connected_in(pipe_bytes: usize, session: Option<Session>) -> (Connection, Broker, JoinHandle<()>) {
    let (ours, theirs) = duplex(pipe_bytes);
    let offered = [(ApiKey::EndTxn, VERSION), (ApiKey::SaslHandshake, 1), (ApiKey::SaslAuthenticate, 1)]
        .map(|(api, max)| ApiVersion::default().with_api_key(api as i16).with_max_version(max));
    let apis = BrokerApis::from_response(&ApiVersionsResponse::default().with_api_keys(offered.to_vec()));
    let peer = Peer {
        name: "node 1 at test:1".to_owned(),
        node: Some(NodeId(1)),
        client_id: "c".to_owned(),
        request_timeout: REQUEST_TIMEOUT,
        idle_max: IDLE_MAX,
    };
    let (connection, task) = Connection::new(ours, peer, apis, session);
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

fn session(lifetime: Duration) -> Option<Session> {
    let login =
        SaslConfig { mechanism: SaslMechanism::Plain, username: "user".to_owned(), password: Secret::new("hunter2") };
    Some(Session::new(login, Some(lifetime)))
}

#[tokio::test(start_paused = true)]
async fn a_login_is_renewed_in_line_between_requests_and_again_after_that() {
    let lifetime = Duration::from_secs(10);
    let (connection, mut broker, _task) = connected_in(4096, session(lifetime));
    let before = send(&connection).await;
    let (api, id) = broker.request_of().await;
    assert_eq!(api, ApiKey::EndTxn, "it is not due yet");
    tokio::time::advance(lifetime * 9 / 10).await;
    // Still unanswered when the renewal is due: the answers come in the order of the requests.
    let behind = send(&connection).await;
    tokio::task::yield_now().await;
    broker.answer(id, &EndTxnResponse::default()).await;
    before.await.unwrap();
    broker.log_in(lifetime, 0).await;
    let (_, id) = broker.request_of().await;
    broker.answer(id, &EndTxnResponse::default()).await;
    behind.await.unwrap();
    for _ in 0..2 {
        tokio::time::advance(lifetime * 9 / 10).await;
        let after = send(&connection).await;
        broker.log_in(lifetime, 0).await;
        let (api, id) = broker.request_of().await;
        assert_eq!(api, ApiKey::EndTxn);
        broker.answer(id, &EndTxnResponse::default()).await;
        after.await.unwrap();
    }
    assert!(connection.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_not_renewed_ends_the_connection_and_says_so() {
    let (connection, mut broker, task) = connected_in(4096, session(Duration::from_secs(10)));
    tokio::time::advance(Duration::from_secs(20)).await;
    let pending = send(&connection).await;
    broker.log_in(Duration::ZERO, 58).await;
    let error = pending.await.unwrap_err();
    assert!(matches!(error, Error::Authentication { .. }) && !error.to_string().contains("hunter2"), "{error}");
    task.await.unwrap();
    assert!(!connection.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_connection_lost_in_a_renewal_tells_the_request_that_waits_for_it() {
    let (connection, mut broker, task) = connected_in(4096, session(Duration::from_secs(10)));
    tokio::time::advance(Duration::from_secs(20)).await;
    let pending = send(&connection).await;
    assert_eq!(broker.request_of().await.0, ApiKey::SaslHandshake);
    drop(broker);
    let error = pending.await.unwrap_err();
    assert!(matches!(error, Error::Disconnected { .. }) && error.retriable(), "{error}");
    task.await.unwrap();
}
