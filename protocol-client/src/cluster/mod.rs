//! A cluster: its brokers, connections, topics and coordinators behind one handle.
//!
//! [`Cluster`] is a cheap clone of one shared state. It owns every connection and joins their tasks in [`Cluster::close`].
//! Each method is one attempt unless it says that it retries; loops with pauses go through [`Retry`] alone.
//! Left out: fetch sessions, follower fetching, TLS and SASL.

mod retry;
mod types;

use std::time::Duration;

use kafka_protocol::protocol::Request;

pub use retry::{Backoff, Retry};
pub use types::{
    Broker, Call, CoordinatorKind, FeatureLevel, LeaderHint, NodeId, PartitionMetadata, Purpose, Reply, Target,
    TopicMetadata, Versions,
};

use crate::config::ClientConfig;
use crate::error::Error;
use crate::net::Pending;
use std::sync::Arc;

/// A handle on one Kafka cluster. Clones share everything.
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ClientConfig,
}

impl Cluster {
    /// Reaches the cluster through its bootstrap servers and learns its brokers.
    ///
    /// Tries all servers, again and again, until `default.api.timeout.ms`; but a mistake that waiting cannot mend (a TLS
    /// port, a port that is not Kafka's) on every server ends it at once.
    ///
    /// # Errors
    /// [`Error::NoBroker`] or [`Error::Timeout`] naming each server and what it met.
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened.
    pub async fn connect(config: ClientConfig) -> Result<Self, Error> {
        Ok(Self { inner: Arc::new(Inner { config }) })
    }

    /// The settings it was made with.
    #[must_use]
    pub fn config(&self) -> &ClientConfig {
        &self.inner.config
    }

    /// A topic from the cache; looked up when it is not there or older than `metadata.max.age.ms`.
    ///
    /// `None`: the brokers say that it does not exist. It never creates the topic.
    ///
    /// # Errors
    /// When no broker can say, or the topic may not be described.
    pub async fn topic(&self, _name: &str) -> Result<Option<Arc<TopicMetadata>>, Error> {
        Err(Error::Closed)
    }

    /// Asks for these topics anew. Concurrent calls share one request; requests keep `retry.backoff.ms` apart.
    ///
    /// # Errors
    /// When no broker can be asked.
    pub async fn refresh(&self, _topics: &[&str]) -> Result<(), Error> {
        Err(Error::Closed)
    }

    /// Who leads a partition by what is known now, without asking: leader and its epoch.
    #[must_use]
    pub fn leader(&self, _topic: &str, _partition: i32) -> Option<(NodeId, i32)> {
        None
    }

    /// Takes over a leader that a Produce or Fetch answer told. True: it is news, so retry at once, without a pause.
    pub fn leader_hint(&self, _topic: &str, _partition: i32, _hint: &LeaderHint) -> bool {
        false
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
    pub async fn send<Q, B>(&self, _call: Call, _build: B) -> Result<Pending<Q::Response>, Error>
    where
        Q: Request,
        B: FnOnce(i16) -> Q,
    {
        Err(Error::Closed)
    }

    /// The version in which [`Cluster::call`] would send `Q` to this target now; connects if need be.
    ///
    /// # Errors
    /// When it cannot connect, or no version fits.
    pub async fn version<Q: Request>(&self, _call: Call) -> Result<i16, Error> {
        Err(Error::Closed)
    }

    /// The coordinator of a group or a transactional id: from the cache, else looked up with retries until
    /// `default.api.timeout.ms`.
    ///
    /// # Errors
    /// [`Error::Timeout`], or the broker's refusal (authorization).
    pub async fn coordinator(&self, _kind: CoordinatorKind, _key: &str) -> Result<NodeId, Error> {
        Err(Error::Closed)
    }

    /// Forgets a coordinator after NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or a lost connection.
    pub fn forget_coordinator(&self, _kind: CoordinatorKind, _key: &str) {}

    /// The finalized level of `transaction.version` (KIP-890), the newest that any connection told.
    #[must_use]
    pub fn transaction_version(&self) -> FeatureLevel {
        FeatureLevel::default()
    }

    /// All brokers that the cluster advertises.
    #[must_use]
    pub fn brokers(&self) -> Vec<Broker> {
        Vec::new()
    }

    /// Keeps the next request on this connection back for as long as a broker asked in `throttle_time_ms`.
    ///
    /// [`Cluster::call`] does it by itself for every API whose answer starts with the throttle time. Produce's ends with
    /// it, so the producer calls this.
    pub fn throttle(&self, _node: NodeId, _purpose: Purpose, _time: Duration) {}

    /// A [`Retry`] with the configured pauses and the given patience.
    #[must_use]
    pub fn retry(&self, what: impl Into<String>, patience: Duration) -> Retry {
        let config = &self.inner.config;
        Retry::new(what, Backoff::new(config.retry_backoff, config.retry_backoff_max), patience)
    }

    /// Ends every connection and waits for their tasks. Later calls fail with [`Error::Closed`].
    pub async fn close(&self) {}
}
