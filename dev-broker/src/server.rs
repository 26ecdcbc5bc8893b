//! The broker behind a TCP listener: frames in, frames out, and the clock.
//!
//! ```text
//!   accept ──► one task per connection ──► lock { handle, drain } ──► encode ──► write
//!   ticker ──► lock { tick, drain } ──► wakes the connections that wait
//! ```
//!
//! A connection's requests are served one at a time and in order, as a real broker serves them. The core is held only
//! while a request is decided; decoding and encoding happen outside. Left out: TLS and SASL. Every task belongs to
//! one owner: connections to the listener's task, which with the ticker belongs to [`DevBroker`].

mod connection;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kafka_protocol::messages::ApiKey;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::broker::{Broker, ConnectionId, Handled};
use crate::faults::Fault;
use crate::settings::BrokerSettings;
use crate::time::Timestamp;

/// With nothing due the ticker still looks after this long.
const IDLE_TICK: Duration = Duration::from_secs(60);
/// How long `accept` rests after an error, which is most often "too many open files".
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How to start a dev broker.
#[derive(Debug, Clone)]
pub struct DevBrokerConfig {
    /// Where to listen; port 0 takes a free one. Default 127.0.0.1:0.
    pub listen: SocketAddr,
    /// The host that clients are told to connect to. Default: the address that was bound, and 127.0.0.1 for "any".
    pub advertised_host: Option<String>,
    /// Connections at a time; more wait to be accepted. Default 1,000.
    pub connections_max: usize,
    /// `socket.request.max.bytes`. Default 100 MiB.
    pub request_bytes_max: usize,
    /// `connections.max.idle.ms`. Default 10 minutes.
    pub connection_idle_max: Duration,
    /// The core's settings; the advertised address in them is overwritten.
    pub broker: BrokerSettings,
}

impl Default for DevBrokerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertised_host: None,
            connections_max: 1_000,
            request_bytes_max: oncewire_client::wire::frame::REQUEST_BYTES_MAX,
            connection_idle_max: Duration::from_secs(600),
            broker: BrokerSettings::default(),
        }
    }
}

/// Why a dev broker did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The address could not be bound.
    Bind {
        /// The address.
        listen: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// `transaction_version` is not one that Kafka has.
    TransactionVersion {
        /// What was given.
        given: i16,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Bind { listen, .. } => {
                write!(f, "cannot listen on {listen}: stop what listens there, or give another address or port 0")
            }
            StartError::TransactionVersion { given } => {
                write!(f, "transaction version {given} does not exist: give 0, 1 or 2")
            }
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Bind { source, .. } => Some(source),
            StartError::TransactionVersion { .. } => None,
        }
    }
}

/// A running dev broker. Dropping it without [`DevBroker::shutdown`] lets its tasks end by themselves.
#[derive(Debug)]
pub struct DevBroker {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl DevBroker {
    /// Binds, and serves from then on.
    ///
    /// # Errors
    /// When the address cannot be bound or the settings are not Kafka's.
    ///
    /// # Cancel safety
    /// Dropped before it is done, nothing listens.
    pub async fn start(config: DevBrokerConfig) -> Result<Self, StartError> {
        let given = config.broker.transaction_version;
        if !(0..=2).contains(&given) {
            return Err(StartError::TransactionVersion { given });
        }
        let bind_error = |source| StartError::Bind { listen: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let mut settings = config.broker.clone();
        settings.advertised_port = address.port();
        settings.advertised_host = match &config.advertised_host {
            Some(host) => host.clone(),
            None if address.ip().is_unspecified() => "127.0.0.1".to_owned(),
            None => address.ip().to_string(),
        };
        let shared = Arc::new(Shared::new(settings, &config));
        let (stop, stopped) = watch::channel(false);
        let listening = tokio::spawn(accept(listener, Arc::clone(&shared), stopped.clone()));
        let ticking = tokio::spawn(tick(Arc::clone(&shared), stopped));
        Ok(Self { shared, address, stop, tasks: vec![listening, ticking] })
    }

    /// `host:port`, as `bootstrap.servers` takes it.
    pub fn bootstrap(&self) -> String {
        let core = self.shared.lock();
        let settings = &core.broker.settings;
        format!("{}:{}", settings.advertised_host, settings.advertised_port)
    }

    /// The address that was bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle to make requests suffer.
    pub fn faults(&self) -> FaultHandle {
        FaultHandle { shared: Arc::clone(&self.shared) }
    }

    /// Requests of this API so far.
    pub fn requests(&self, api: ApiKey) -> u64 {
        self.shared.lock().broker.requests(api)
    }

    /// What the members of a group said of themselves, in the protocol that was chosen, when they joined last.
    pub fn member_metadata(&self, group_id: &str) -> Vec<bytes::Bytes> {
        self.shared.lock().broker.member_metadata(group_id)
    }

    /// Bytes of record batches kept in memory.
    pub fn log_bytes(&self) -> u64 {
        self.shared.lock().broker.log_bytes()
    }

    /// Stops listening, closes every connection, and waits for all tasks. The data is gone
    /// with it.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the tasks end all the same; nobody waits for them.
    pub async fn shutdown(mut self) {
        // Nobody listening means that all tasks ended already.
        let _ = self.stop.send(true);
        for task in self.tasks.drain(..) {
            if let Err(error) = task.await {
                tracing::error!(%error, "a task of the dev broker did not end in order");
            }
        }
    }
}

/// Injects faults into a running dev broker; see [`Fault`].
#[derive(Debug, Clone)]
pub struct FaultHandle {
    shared: Arc<Shared>,
}

impl FaultHandle {
    /// Lets the `nth` request of this API from now on (1 is the next) suffer a fault.
    pub fn inject(&self, api: ApiKey, nth: u64, fault: Fault) {
        self.shared.lock().broker.inject_fault(api, nth, fault);
    }

    /// Drops the faults that have not come about.
    pub fn clear(&self) {
        self.shared.lock().broker.clear_faults();
    }
}

/// What all tasks of one broker share.
#[derive(Debug)]
struct Shared {
    core: Mutex<Core>,
    /// The next deadline may have come nearer.
    retime: Notify,
    started: Instant,
    started_at: Duration,
    connections: Arc<Semaphore>,
    connections_max: u32,
    request_bytes_max: usize,
    idle_max: Duration,
}

/// The broker and who waits for it.
#[derive(Debug)]
struct Core {
    broker: Broker,
    waiting: HashMap<ConnectionId, oneshot::Sender<Handled>>,
}

impl Shared {
    fn new(settings: BrokerSettings, config: &DevBrokerConfig) -> Self {
        let connections_max = config.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            core: Mutex::new(Core { broker: Broker::new(settings), waiting: HashMap::new() }),
            retime: Notify::new(),
            started: Instant::now(),
            started_at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            connections: Arc::new(Semaphore::new(connections_max)),
            connections_max: u32::try_from(connections_max).unwrap_or(u32::MAX),
            request_bytes_max: config.request_bytes_max,
            idle_max: config.connection_idle_max,
        }
    }

    /// The wall clock as of the start, moved on by a clock that never goes back.
    fn now(&self) -> Timestamp {
        Timestamp::from_epoch(self.started_at + self.started.elapsed())
    }

    /// A panic in the core is a bug, but what it left behind is still the best that the other connections can have.
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Hands decided answers to the connections that wait for them.
    fn deliver(&mut self) {
        while let Some((connection, handled)) = self.broker.poll_ready() {
            if let Some(waiting) = self.waiting.remove(&connection) {
                // The connection may have gone in the meantime; its answer goes with it.
                let _ = waiting.send(handled);
            }
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let mut next_id = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                report_panic(ended);
                continue;
            }
            accepted = accept_one(&listener, &shared) => accepted,
        };
        match accepted {
            Ok((stream, permit)) => {
                next_id += 1;
                let serving = connection::serve(stream, ConnectionId(next_id), Arc::clone(&shared), stopped.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        report_panic(ended);
    }
}

async fn accept_one(
    listener: &TcpListener,
    shared: &Shared,
) -> std::io::Result<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    if shared.connections.available_permits() == 0 {
        tracing::warn!(limit = shared.connections_max, "connections_max is reached: new connections wait");
    }
    let permit = Arc::clone(&shared.connections).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection of the dev broker ended in a panic");
    }
}

async fn tick(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    loop {
        let wait = {
            let mut core = shared.lock();
            let now = shared.now();
            core.broker.tick(now);
            core.deliver();
            core.broker.next_deadline().map_or(IDLE_TICK, |deadline| deadline.since(now))
        };
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            () = shared.retime.notified() => {}
            () = tokio::time::sleep(wait.min(IDLE_TICK)) => {}
        }
    }
}
