//! A cluster: its brokers, connections, topics and coordinators behind one handle.
//!
//! [`Cluster`] is a cheap clone of one shared state. It owns every connection and joins their tasks in [`Cluster::close`].
//! Each method is one attempt unless it says that it retries; loops with pauses go through [`Retry`] alone.
//!
//! ```text
//! call / send ─► reach (which node, in what order) ─► connections (one per node and purpose) ─► net
//!                   ▲
//!       refresh ─► metadata      coordinator ─► its cache
//! ```
//!
//! Left out: fetch sessions, follower fetching.

mod connections;
mod contact;
mod coordinator;
mod metadata;
mod reach;
mod refresh;
mod retry;
mod types;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_protocol::protocol::Request;
use tokio::time::Instant;

pub(crate) use retry::random;
pub use retry::{Backoff, Retry};
pub use types::{
    Broker, Call, CoordinatorKind, FeatureLevel, LeaderHint, NodeId, PartitionMetadata, Purpose, Reply, Target,
    TopicMetadata, Versions,
};

use crate::config::ClientConfig;
use crate::error::Error;
use crate::net::{Pending, Security};
use connections::{Connections, PeerKey};
use coordinator::Coordinators;
use metadata::Metadata;
use refresh::Refresh;

/// A handle on one Kafka cluster. Clones share everything.
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ClientConfig,
    connections: Connections,
    metadata: Mutex<Metadata>,
    coordinators: Mutex<Coordinators>,
    features: Mutex<FeatureLevel>,
    refresh: Refresh,
    readers: AtomicU32,
    members: AtomicU32,
}

impl Inner {
    // No code panics while it holds one of these locks, and none is held over an await.
    fn lock_metadata(&self) -> MutexGuard<'_, Metadata> {
        self.metadata.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_coordinators(&self) -> MutexGuard<'_, Coordinators> {
        self.coordinators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_features(&self) -> MutexGuard<'_, FeatureLevel> {
        self.features.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// A handle that has asked nobody yet.
    async fn unconnected(config: ClientConfig) -> Result<Self, Error> {
        let features = FeatureLevel { level: 0, epoch: -1 };
        let security = Security::load(&config).await?;
        let inner = Inner {
            config,
            connections: Connections::new(security),
            metadata: Mutex::default(),
            coordinators: Mutex::default(),
            features: Mutex::new(features),
            refresh: Refresh::default(),
            readers: AtomicU32::new(0),
            members: AtomicU32::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The settings it was made with.
    #[must_use]
    pub fn config(&self) -> &ClientConfig {
        &self.inner.config
    }

    /// Who leads a partition by what is known now, without asking: leader and its epoch.
    #[must_use]
    pub fn leader(&self, topic: &str, partition: i32) -> Option<(NodeId, i32)> {
        self.inner.lock_metadata().leader(topic, partition)
    }

    /// Takes over a leader that a Produce or Fetch answer told. True: it is news, so retry at once, without a pause.
    pub fn leader_hint(&self, topic: &str, partition: i32, hint: &LeaderHint) -> bool {
        self.inner.lock_metadata().hint(topic, partition, hint)
    }

    /// One attempt of one request: connects if need be, picks the version, sends, waits for the answer.
    ///
    /// With [`Target::Any`] brokers that cannot be reached are passed over; once sent, it is not sent again.
    ///
    /// # Errors
    /// By cause; [`Error::retriable`] says what may be tried again. Error codes inside the response are the caller's.
    ///
    /// # Cancel safety
    /// Dropping the future detaches: a request that was sent stays sent, and the connection lives on.
    pub async fn call<Q, B>(&self, call: Call, build: B) -> Result<Reply<Q::Response>, Error>
    where
        Q: Request,
        B: FnOnce(i16) -> Q,
    {
        self.send(call, build).await?.await
    }

    /// The first half of [`Cluster::call`]: returns when the request is queued on its connection.
    ///
    /// Requests to one node and purpose reach the wire in the order in which their `send` returned: a producer that awaits
    /// `send` by `send` may have several in flight and still knows their order. (While a connection lives: after an error
    /// the next `send` opens a new one.)
    ///
    /// # Errors
    /// As [`Cluster::call`], for the part until the request is queued.
    pub async fn send<Q, B>(&self, call: Call, build: B) -> Result<Pending<Q::Response>, Error>
    where
        Q: Request,
        B: FnOnce(i16) -> Q,
    {
        let place = match self.reach(call.target, call.purpose).await?.place().await {
            Ok(place) => place,
            // It ended between our looking and our asking; nothing was queued, so a new one may take its place.
            Err(_) => self.reach(call.target, call.purpose).await?.place().await?,
        };
        place.send(call.versions, call.timeout, build)
    }

    /// The version in which [`Cluster::call`] would send `Q` to this target now; connects if need be.
    ///
    /// # Errors
    /// When it cannot connect, or no version fits.
    pub async fn version<Q: Request>(&self, call: Call) -> Result<i16, Error> {
        self.reach(call.target, call.purpose).await?.version::<Q>(call.versions)
    }

    /// The finalized level of `transaction.version` (KIP-890), the newest that any connection told.
    #[must_use]
    pub fn transaction_version(&self) -> FeatureLevel {
        *self.inner.lock_features()
    }

    /// All brokers that the cluster advertises.
    #[must_use]
    pub fn brokers(&self) -> Vec<Broker> {
        self.inner.lock_metadata().brokers().cloned().collect()
    }

    /// The id that the cluster gave itself; `None` where its brokers tell none (before KIP-78).
    #[must_use]
    pub fn cluster_id(&self) -> Option<String> {
        self.inner.lock_metadata().cluster_id().map(str::to_owned)
    }

    /// Keeps the next request on this connection back for as long as a broker asked in `throttle_time_ms`.
    ///
    /// It happens by itself for every API whose answer starts with the throttle time. Produce's ends with it, so the
    /// producer calls this.
    pub fn throttle(&self, node: NodeId, purpose: Purpose, throttle_time_ms: i32) {
        let time = crate::net::throttle_from_millis(throttle_time_ms);
        self.inner.connections.throttle(PeerKey::Node(node), purpose, time);
    }

    /// A [`Retry`] with the configured pauses and the given patience.
    #[must_use]
    pub fn retry(&self, what: impl Into<String>, patience: Duration) -> Retry {
        let config = &self.inner.config;
        Retry::new(what, Backoff::new(config.retry_backoff, config.retry_backoff_max), patience)
    }

    /// Ends every connection and waits for their tasks. Later calls fail with [`Error::Closed`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves the connections ending; their tasks are then not waited for.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }

    /// The error, with the user that a missing permission is about.
    pub(crate) fn with_user(&self, error: Error) -> Error {
        error.for_user(self.inner.config.security.sasl.as_ref().map(|sasl| sasl.username.as_str()))
    }

    /// `default.api.timeout.ms`.
    pub(crate) fn patience(&self) -> Duration {
        self.inner.config.default_api_timeout
    }

    /// A purpose of its own for one reader; [`Cluster::release`] gives its connections back.
    pub(crate) fn fetch_purpose(&self) -> Purpose {
        Purpose::Fetch(self.inner.readers.fetch_add(1, Ordering::Relaxed))
    }

    /// A number of its own for one group member, for its two purposes; [`Cluster::release`] gives their connections back.
    pub(crate) fn member_number(&self) -> u32 {
        self.inner.members.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends the connections of one purpose.
    pub(crate) fn release(&self, purpose: Purpose) {
        self.inner.connections.release(purpose);
    }

    /// A topic from the cache, however old.
    pub(crate) fn known_topic(&self, name: &str) -> Option<Arc<TopicMetadata>> {
        self.inner.lock_metadata().topic(name, Instant::now()).map(|(topic, _)| topic)
    }

    pub(crate) fn forget_topic(&self, name: &str) {
        self.inner.lock_metadata().forget_topic(name);
    }
}
