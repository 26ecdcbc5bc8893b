//! The cluster's connections: at most one for each peer and purpose, made when first used, owned and joined here.
//!
//! A slot remembers failures: the next attempt waits out the back-off, and each address gets more time (KIP-601). One caller
//! at a time connects for a slot; a caller that is dropped meanwhile hands its turn to the next one, so nobody inherits a
//! cancellation.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::retry::{Backoff, random};
use super::types::{NodeId, Purpose};
use crate::config::{BrokerAddress, ClientConfig};
use crate::error::{Error, peer_name};
use crate::net::{Connection, Established, Peer, Security, establish};

/// Doublings of the set-up timeout; its configured maximum is reached long before.
const SETUP_DOUBLINGS_MAX: u32 = 16;

/// A slot that failed and was not tried again for this long is not tried any more, and says nothing about its peer: 60 s.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(60);

/// Whom a slot leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum PeerKey {
    /// The n-th of `bootstrap.servers`, whose id is not known.
    Bootstrap(usize),
    Node(NodeId),
}

impl PeerKey {
    fn node(self) -> Option<NodeId> {
        match self {
            Self::Bootstrap(_) => None,
            Self::Node(node) => Some(node),
        }
    }
}

/// How promising a slot is for a request that any broker may answer; lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Readiness {
    Connected,
    Untried,
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    security: Security,
    slots: Mutex<HashMap<(PeerKey, Purpose), Arc<Slot>>>,
    tasks: Mutex<JoinSet<()>>,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Slot {
    /// One permit: who holds it may connect.
    turn: Semaphore,
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
struct SlotState {
    live: Option<(BrokerAddress, Connection)>,
    failures: u32,
    retry_at: Option<Instant>,
    /// Whether this peer was ever reached: only then its loss is news for an operator.
    reached: bool,
    /// Whether its loss was told, so that its return is too.
    told: bool,
}

impl Connections {
    /// None yet; all of them will be protected in this way.
    pub(super) fn new(security: Security) -> Self {
        Self { security, ..Self::default() }
    }

    /// A live connection to the peer, made if need be.
    pub(super) async fn connect(
        &self,
        peer: PeerKey,
        purpose: Purpose,
        address: &BrokerAddress,
        config: &ClientConfig,
    ) -> Result<Connection, Error> {
        let slot = self.slot(peer, purpose);
        if let Some(live) = slot.live(address) {
            return Ok(live);
        }
        // The semaphore is never closed; if it were, the client would be.
        let _turn = slot.turn.acquire().await.map_err(|_| Error::Closed)?;
        if let Some(live) = slot.live(address) {
            return Ok(live);
        }
        let (failures, retry_at) = slot.history();
        if let Some(retry_at) = retry_at {
            sleep_until(retry_at).await;
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        match self.open(peer, purpose, address, config, failures).await {
            Ok(connection) => {
                let mut state = slot.lock();
                if state.told {
                    tracing::info!(%address, ?purpose, failures, "broker is reachable again");
                }
                let live = Some((address.clone(), connection.clone()));
                *state = SlotState { live, reached: true, ..SlotState::default() };
                Ok(connection)
            }
            Err(error) => {
                let backoff = Backoff::new(config.reconnect_backoff, config.reconnect_backoff_max);
                let is_news = failures == 0 && !self.is_told(peer, Instant::now());
                let mut state = slot.lock();
                state.live = None;
                state.failures = failures.saturating_add(1);
                state.retry_at = Some(Instant::now() + backoff.delay(state.failures, random()));
                if is_news && (state.reached || error.hints_at_configuration()) {
                    state.told = true;
                    tracing::warn!(?purpose, "broker is away, trying on: {error}");
                } else {
                    tracing::debug!(?purpose, failures = state.failures, %error, "connecting failed");
                }
                Err(error)
            }
        }
    }

    async fn open(
        &self,
        key: PeerKey,
        purpose: Purpose,
        address: &BrokerAddress,
        config: &ClientConfig,
        failures: u32,
    ) -> Result<Connection, Error> {
        let name = peer_name(key.node().map(|node| node.0), address);
        let patience = setup_timeout(config, failures);
        let established = establish(address, config, &self.security, patience, &name).await?;
        let Established { stream, apis, session } = established;
        tracing::debug!(peer = %name, ?purpose, "connected");
        let peer = Peer {
            name,
            node: key.node(),
            client_id: config.client_id.clone(),
            request_timeout: config.request_timeout,
            idle_max: config.connections_max_idle,
        };
        let (connection, task) = Connection::new(stream, peer, apis, session);
        let mut tasks = self.lock_tasks();
        // Tasks that ended are joined here, so that they do not pile up over a long life.
        while tasks.try_join_next().is_some() {}
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        tasks.spawn(task);
        Ok(connection)
    }

    /// Keeps the next request on a connection back.
    pub(super) fn throttle(&self, peer: PeerKey, purpose: Purpose, time: Duration) {
        let slot = self.slot(peer, purpose);
        if let Some((_, connection)) = &slot.lock().live {
            connection.throttle(time);
        }
    }

    /// How promising a peer is.
    pub(super) fn readiness(&self, peer: PeerKey, purpose: Purpose) -> Readiness {
        let slots = self.lock_slots();
        let Some(slot) = slots.get(&(peer, purpose)) else {
            return Readiness::Untried;
        };
        let state = slot.lock();
        match &state.live {
            Some((_, connection)) if connection.is_open() => Readiness::Connected,
            // It broke, or its broker did not answer: others first.
            Some(_) => Readiness::Failed,
            None if state.failures > 0 => Readiness::Failed,
            None => Readiness::Untried,
        }
    }

    /// Whether it was told that the peer is away, by a connection of whatever purpose that is still tried: a broker that goes is
    /// told once, and not by each of the connections to it.
    fn is_told(&self, peer: PeerKey, now: Instant) -> bool {
        let slots = self.lock_slots();
        slots.iter().filter(|((other, _), _)| *other == peer).any(|(_, slot)| {
            let state = slot.lock();
            state.told && state.retry_at.is_some_and(|retry_at| retry_at + GIVEN_UP_AFTER > now)
        })
    }

    /// Ends the connections of one purpose; their tasks are joined later.
    pub(super) fn release(&self, purpose: Purpose) {
        self.lock_slots().retain(|&(_, of), slot| {
            if of == purpose {
                slot.end();
            }
            of != purpose
        });
    }

    /// Ends all connections and waits for their tasks.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.lock_slots().drain().for_each(|(_, slot)| slot.end());
        let mut tasks = std::mem::take(&mut *self.lock_tasks());
        while let Some(joined) = tasks.join_next().await {
            if let Err(error) = joined {
                tracing::error!(%error, "a connection's task failed");
            }
        }
    }

    fn slot(&self, peer: PeerKey, purpose: Purpose) -> Arc<Slot> {
        let mut slots = self.lock_slots();
        let slot = slots
            .entry((peer, purpose))
            .or_insert_with(|| Arc::new(Slot { turn: Semaphore::new(1), state: Mutex::default() }));
        Arc::clone(slot)
    }

    fn lock_slots(&self) -> MutexGuard<'_, HashMap<(PeerKey, Purpose), Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The connection, if it is open and leads to this address. One that leads elsewhere is ended.
    fn live(&self, address: &BrokerAddress) -> Option<Connection> {
        let mut state = self.lock();
        match &state.live {
            Some((to, connection)) if to == address && connection.is_open() => Some(connection.clone()),
            Some((_, connection)) => {
                connection.close();
                state.live = None;
                None
            }
            None => None,
        }
    }

    fn end(&self) {
        if let Some((_, connection)) = &self.lock().live {
            connection.close();
        }
    }

    fn history(&self) -> (u32, Option<Instant>) {
        let state = self.lock();
        (state.failures, state.retry_at)
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn setup_timeout(config: &ClientConfig, failures: u32) -> Duration {
    let doubled = config.connection_setup_timeout.saturating_mul(1 << failures.min(SETUP_DOUBLINGS_MAX));
    let max = config.connection_setup_timeout_max.max(config.connection_setup_timeout);
    // Who gives a whole operation less than that does not want to wait longer for one address.
    doubled.min(max).min(config.default_api_timeout)
}
