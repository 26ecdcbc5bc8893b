//! One socket to one broker: requests are pipelined, answers come back in order.
//!
//! ```text
//! callers ──send──► queue ──► writing half ──► socket ──► reading half ──► each caller's Pending
//!                               └──────── in flight (oldest first) ────────┘
//! ```
//!
//! Both halves run in one task, so that whichever fails takes the other with it: a frame that is half written, an answer out
//! of turn, a frame above the limit or an answer that does not come in time ends the connection, and everybody who waits is
//! told why. It is never mended. The owner holds the task's handle and joins it.
//!
//! Where a login lasts for a limited time only, the writing half renews it in its place in line (KIP-368): requests before
//! it are answered before it, those after it wait. So no request fails for it, and none overtakes another, which a second
//! connection could not promise.
//!
//! A caller who drops its [`Pending`](super::Pending) detaches: the answer is read and thrown away, the socket lives on.
//! Cancelling by closing the socket would let a new connection overtake requests that the broker still holds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::Request;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::frames::{FrameQueue, FrameReader};
use super::in_flight::{InFlight, Waiting};
use super::pending::Pending;
use super::sasl::{self, Asker};
use super::session::Session;
use super::throttle;
use super::versions;
use super::{codec, handshake};
use crate::cluster::{NodeId, Versions};
use crate::error::Error;
use crate::wire::api::BrokerApis;
use crate::wire::frame;

/// Requests on one connection that are queued or unanswered; further callers wait for a place.
const IN_FLIGHT_MAX: usize = 64;
/// Frames and bytes that go into one write.
const WRITE_FRAMES_MAX: usize = 32;
const WRITE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Brokers answer REQUEST_TIMED_OUT when the time that a request names is up; their answer gets this long to arrive, but no
/// longer than the request itself had.
const ANSWER_GRACE_MAX: Duration = Duration::from_secs(2);

/// What a connection is told when it is made.
#[derive(Debug)]
pub(crate) struct Peer {
    /// As in errors: `node 1 at host:port`.
    pub(crate) name: String,
    pub(crate) node: Option<NodeId>,
    pub(crate) client_id: String,
    pub(crate) request_timeout: Duration,
    pub(crate) idle_max: Duration,
}

/// A handle on a running connection; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    peer: Peer,
    apis: BrokerApis,
    queue: mpsc::Sender<Outgoing>,
    places: Arc<Semaphore>,
    correlation_ids: AtomicI32,
    closing: Notify,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Why the connection ended, once it has.
    ended: Option<Error>,
    silent_until: Instant,
    last_used: Instant,
}

#[derive(Debug)]
struct Outgoing {
    frame: Bytes,
    timeout: Duration,
    correlation_id: i32,
    api: ApiKey,
    version: i16,
    answer: oneshot::Sender<Result<Bytes, Error>>,
    place: OwnedSemaphorePermit,
}

impl Connection {
    /// Takes over a stream on which the handshake is done. `session` is set where there was a login. The future is the connection's task; its owner spawns and joins it.
    pub(crate) fn new<S>(
        stream: S,
        peer: Peer,
        apis: BrokerApis,
        session: Option<Session>,
    ) -> (Self, impl Future<Output = ()> + Send + use<S>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (queue, requests) = mpsc::channel(IN_FLIGHT_MAX);
        let now = Instant::now();
        let shared = Arc::new(Shared {
            peer,
            apis,
            queue,
            places: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            correlation_ids: AtomicI32::new(handshake::HANDSHAKE_EXCHANGES_MAX),
            closing: Notify::new(),
            state: Mutex::new(State { ended: None, silent_until: now, last_used: now }),
        });
        let task = run(Arc::clone(&shared), stream, requests, session);
        (Self { shared }, task)
    }

    /// Whether it can still be used.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.lock().ended.is_none()
    }

    pub(crate) fn apis(&self) -> &BrokerApis {
        &self.shared.apis
    }

    /// Ends the connection; what waits fails with [`Error::Closed`].
    pub(crate) fn close(&self) {
        self.shared.closing.notify_one();
    }

    /// Sends nothing before this much time has passed.
    pub(crate) fn throttle(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.shared.lock();
        state.silent_until = state.silent_until.max(until);
    }

    /// The version in which a request would be sent.
    pub(crate) fn version<Q: Request>(&self, wanted: Versions) -> Result<i16, Error> {
        self.shared.version::<Q>(wanted)
    }

    /// Waits for a place among the requests in flight, and for the end of a throttling.
    ///
    /// An error means that the connection has ended; nothing was queued. Cancel safe: a place is given back.
    pub(crate) async fn place(&self) -> Result<Place, Error> {
        let silent_until = self.shared.lock().silent_until;
        if silent_until > Instant::now() {
            tracing::debug!(peer = %self.shared.peer.name, "throttled by the broker");
            sleep_until(silent_until).await;
        }
        match Arc::clone(&self.shared.places).acquire_owned().await {
            Ok(permit) => Ok(Place { shared: Arc::clone(&self.shared), permit }),
            Err(_) => Err(self.shared.ended()),
        }
    }
}

/// The right to queue one request.
#[derive(Debug)]
pub(crate) struct Place {
    shared: Arc<Shared>,
    permit: OwnedSemaphorePermit,
}

impl Place {
    /// Queues one request. Requests are written in the order of these calls.
    pub(crate) fn send<Q, B>(
        self,
        wanted: Versions,
        timeout: Option<Duration>,
        build: B,
    ) -> Result<Pending<Q::Response>, Error>
    where
        Q: Request,
        B: FnOnce(i16) -> Q,
    {
        let shared = self.shared;
        let api = codec::api_of::<Q>()?;
        let version = shared.version::<Q>(wanted)?;
        let correlation_id = shared.correlation_ids.fetch_add(1, Ordering::Relaxed);
        let frame = codec::encode_request(api, version, correlation_id, &shared.peer.client_id, &build(version))?;
        let (answer, receiver) = oneshot::channel();
        let outgoing = Outgoing {
            frame,
            timeout: timeout.unwrap_or(shared.peer.request_timeout),
            correlation_id,
            api,
            version,
            answer,
            place: self.permit,
        };
        // A place is held for each queued request, so the queue is never full: it can only be closed.
        match shared.queue.try_send(outgoing) {
            Ok(()) => Ok(Pending::new(receiver, api, version, shared.peer.node, shared.peer.name.clone())),
            Err(_) => Err(shared.ended()),
        }
    }
}

impl Shared {
    fn version<Q: Request>(&self, wanted: Versions) -> Result<i16, Error> {
        let api = codec::api_of::<Q>()?;
        versions::choose(&self.apis, api, Q::VERSIONS, wanted).map_err(|what| Error::Unsupported {
            api: format!("{api:?}"),
            peer: self.peer.name.clone(),
            what,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds this lock; if it did, the state would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> Error {
        self.lock().ended.clone().unwrap_or(Error::Closed)
    }

    fn disconnected(&self, reason: impl Into<String>) -> Error {
        Error::Disconnected { peer: self.peer.name.clone(), reason: reason.into() }
    }

    fn malformed(&self, what: impl Into<String>) -> Error {
        Error::Malformed { peer: self.peer.name.clone(), what: what.into() }
    }
}

/// The connection's task: runs both halves until one ends, then tells everybody who waits.
async fn run<S>(shared: Arc<Shared>, stream: S, mut requests: mpsc::Receiver<Outgoing>, session: Option<Session>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let in_flight = InFlight::default();
    let silence = match session {
        // A listener that wants SASL answers ApiVersions, and closes the connection at the first request after it.
        None => {
            "the broker closed it before it answered anything; if its listener wants SASL, set security.protocol and sasl.mechanism"
        }
        Some(_) => "the broker closed it before it answered anything",
    };
    let mut login = Login { session, delayed: None };
    let (reading, writing) = tokio::io::split(stream);
    let reason = tokio::select! {
        error = read_answers(&shared, reading, &in_flight, silence) => error,
        error = write_requests(&shared, writing, &mut requests, &in_flight, &mut login) => error,
        () = shared.closing.notified() => Error::Closed,
    };
    tracing::debug!(peer = %shared.peer.name, %reason, "connection ended");
    shared.lock().ended = Some(reason.clone());
    shared.places.close();
    requests.close();
    let mut waiting: VecDeque<oneshot::Sender<_>> = in_flight.drain().into_iter().map(|one| one.answer).collect();
    waiting.extend(login.delayed.map(|delayed| delayed.answer));
    while let Some(outgoing) = requests.recv().await {
        waiting.push_back(outgoing.answer);
    }
    for answer in waiting {
        // A caller who dropped its Pending has nobody to be told.
        let _ = answer.send(Err(reason.clone()));
    }
}

async fn write_requests<W: AsyncWrite + Unpin + Send>(
    shared: &Shared,
    mut socket: W,
    requests: &mut mpsc::Receiver<Outgoing>,
    in_flight: &InFlight,
    login: &mut Login,
) -> Error {
    loop {
        let Some(first) = requests.recv().await else { return Error::Closed };
        let first = match login.is_due() {
            false => first,
            true => match renew(shared, &mut socket, in_flight, login, first).await {
                Ok(first) => first,
                Err(error) => return error,
            },
        };
        let mut frames = FrameQueue::default();
        admit(first, &mut frames, in_flight);
        for _ in 1..WRITE_FRAMES_MAX {
            if frames.remaining() >= WRITE_BYTES_MAX {
                break;
            }
            match requests.try_recv() {
                Ok(next) => admit(next, &mut frames, in_flight),
                Err(_) => break,
            }
        }
        let written = async {
            socket.write_all_buf(&mut frames).await?;
            socket.flush().await
        };
        if let Err(error) = written.await {
            return shared.disconnected(format!("writing failed: {error}"));
        }
        shared.lock().last_used = Instant::now();
    }
}

/// Logs in again. It happens when there is something to send, however late that is: a broker takes a new login even after
/// the old one has ended, and nothing else.
async fn renew<W: AsyncWrite + Unpin + Send>(
    shared: &Shared,
    socket: &mut W,
    in_flight: &InFlight,
    login: &mut Login,
    first: Outgoing,
) -> Result<Outgoing, Error> {
    // If the connection ends meanwhile, its task finds the request there and tells its caller why.
    login.delayed = Some(first);
    tracing::debug!(peer = %shared.peer.name, "logging in again");
    if let Some(Session { login: config, .. }) = login.session.take() {
        let mut line = Line { shared, socket, in_flight };
        let lifetime = sasl::log_in(&mut line, &config, &shared.peer.name).await?;
        login.session = Some(Session::new(config, lifetime));
    }
    login.delayed.take().ok_or(Error::Closed)
}

/// The login, and the request that waits for that.
#[derive(Debug)]
struct Login {
    session: Option<Session>,
    delayed: Option<Outgoing>,
}

impl Login {
    fn is_due(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_due)
    }
}

/// The connection's own questions, asked in line with its callers' requests.
struct Line<'a, W> {
    shared: &'a Shared,
    socket: &'a mut W,
    in_flight: &'a InFlight,
}

impl<W: AsyncWrite + Unpin + Send> Asker for Line<'_, W> {
    async fn ask<Q: Request + Send + Sync>(&mut self, request: Q) -> Result<Q::Response, Error> {
        let shared = self.shared;
        let api = codec::api_of::<Q>()?;
        let version = shared.version::<Q>(Versions::ANY)?;
        let correlation_id = shared.correlation_ids.fetch_add(1, Ordering::Relaxed);
        let frame = codec::encode_request(api, version, correlation_id, &shared.peer.client_id, &request)?;
        let (answer, receiver) = oneshot::channel();
        let deadline = Instant::now() + shared.peer.request_timeout;
        self.in_flight.push(Waiting { correlation_id, api, version, deadline, answer, _place: None });
        let written = async {
            self.socket.write_all(&frame).await?;
            self.socket.flush().await
        };
        written.await.map_err(|error| shared.disconnected(format!("writing failed: {error}")))?;
        let frame = receiver.await.map_err(|_| Error::Closed)??;
        codec::decode_response(api, version, frame).map_err(|error| shared.malformed(error.to_string()))
    }
}

/// The request counts as in flight before its first byte is written: if the write hangs, its deadline ends the connection.
fn admit(outgoing: Outgoing, frames: &mut FrameQueue, in_flight: &InFlight) {
    frames.push(outgoing.frame);
    in_flight.push(Waiting {
        correlation_id: outgoing.correlation_id,
        api: outgoing.api,
        version: outgoing.version,
        deadline: Instant::now() + outgoing.timeout + ANSWER_GRACE_MAX.min(outgoing.timeout),
        answer: outgoing.answer,
        _place: Some(outgoing.place),
    });
}

/// `silence` is what it means when the other side closes without a word.
async fn read_answers<R: AsyncRead + Unpin>(
    shared: &Shared,
    mut socket: R,
    in_flight: &InFlight,
    silence: &'static str,
) -> Error {
    let mut frames = FrameReader::default();
    let mut ending = silence;
    let alarm = sleep_until(Instant::now() + shared.peer.idle_max);
    tokio::pin!(alarm);
    loop {
        tokio::select! {
            read = socket.read_buf(frames.buffer()) => match read {
                Ok(0) => return shared.disconnected(ending),
                Ok(_) => {
                    ending = "the broker closed it";
                    if let Err(error) = hand_out(shared, &mut frames, in_flight) {
                        return error;
                    }
                }
                Err(error) => return shared.disconnected(format!("reading failed: {error}")),
            },
            () = in_flight.started.notified() => {
                if let Some(deadline) = in_flight.oldest_deadline() {
                    alarm.as_mut().reset(deadline);
                }
            }
            () = &mut alarm => match next_alarm(shared, in_flight) {
                Ok(next) => alarm.as_mut().reset(next),
                Err(error) => return error,
            },
        }
    }
}

/// The alarm rang: either something is overdue, or it was set for a request that is answered by now.
fn next_alarm(shared: &Shared, in_flight: &InFlight) -> Result<Instant, Error> {
    let now = Instant::now();
    match in_flight.oldest_deadline() {
        Some(deadline) if deadline <= now => {
            Err(shared.disconnected("the broker did not answer its oldest request in time"))
        }
        Some(deadline) => Ok(deadline),
        None => {
            let idle_until = shared.lock().last_used + shared.peer.idle_max;
            if idle_until <= now { Err(shared.disconnected("it was idle")) } else { Ok(idle_until) }
        }
    }
}

fn hand_out(shared: &Shared, frames: &mut FrameReader, in_flight: &InFlight) -> Result<(), Error> {
    loop {
        let frame = match frames.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(error) => return Err(shared.malformed(error.to_string())),
        };
        let correlation_id = frame::correlation_id(&frame).map_err(|error| shared.malformed(error.to_string()))?;
        let Some(waiting) = in_flight.pop() else {
            return Err(shared.malformed(format!("an answer ({correlation_id}) that nobody asked for")));
        };
        if waiting.correlation_id != correlation_id {
            let what = format!("answer {correlation_id} where {} was due", waiting.correlation_id);
            let error = shared.malformed(what);
            // Nobody to tell if the caller dropped its Pending.
            let _ = waiting.answer.send(Err(error.clone()));
            return Err(error);
        }
        let pause = throttle::throttle_time(waiting.api, waiting.version, &frame);
        let now = Instant::now();
        let mut state = shared.lock();
        state.last_used = now;
        state.silent_until = state.silent_until.max(now + pause);
        drop(state);
        // Nobody to tell if the caller dropped its Pending.
        let _ = waiting.answer.send(Ok(frame));
    }
}
