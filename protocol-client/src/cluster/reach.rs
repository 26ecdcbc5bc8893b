//! From "who shall answer" to a live connection: which node, in what order, and what is learnt from failing.

use std::sync::Arc;

use super::Cluster;
use super::connections::PeerKey;
use super::types::{NodeId, Purpose, Target};
use crate::config::{BrokerAddress, MetadataRecovery};
use crate::error::{ConnectFailure, Error};
use crate::net::Connection;

impl Cluster {
    pub(super) async fn reach(&self, target: Target, purpose: Purpose) -> Result<Connection, Error> {
        let controller = self.inner.lock_metadata().controller();
        let connection = match (target, controller) {
            (Target::Node(node), _) | (Target::Controller, Some(node)) => self.reach_node(node, purpose).await?,
            (Target::Any, _) | (Target::Controller, None) => self.reach_any(purpose).await?,
        };
        self.note_features(&connection);
        Ok(connection)
    }

    async fn reach_node(&self, node: NodeId, purpose: Purpose) -> Result<Connection, Error> {
        let mut address = self.address(node);
        if address.is_none() {
            // A leader or coordinator that we have never heard of: the metadata is older than whoever named it. Boxed,
            // because asking goes through this module again (to any node, so it ends there).
            Box::pin(self.refresh(&[])).await?;
            address = self.address(node);
        }
        let Some(address) = address else {
            return Err(Error::Connect { peer: node.to_string(), failure: ConnectFailure::UnknownNode });
        };
        let connected = self.connect_to(PeerKey::Node(node), purpose, &address).await;
        if connected.is_err() {
            // Coordinators move when their broker dies; asking the dead one again and again would never end.
            self.inner.lock_coordinators().forget_node(node);
        }
        connected
    }

    /// The first peer that can be reached, the promising ones first. No peer blocks another for longer than its set-up timeout.
    async fn reach_any(&self, purpose: Purpose) -> Result<Connection, Error> {
        let mut attempts = Vec::new();
        for (peer, address) in self.candidates(purpose) {
            match self.connect_to(peer, purpose, &address).await {
                Ok(connection) => return Ok(connection),
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => attempts.push((address.to_string(), Arc::new(error))),
            }
        }
        Err(Error::NoBroker { attempts })
    }

    /// Known brokers and bootstrap servers, those that are connected first, those that failed last; among equals the
    /// bootstrap servers come after the brokers. By `metadata.recovery.strategy=none` they are for the first look-up alone.
    fn candidates(&self, purpose: Purpose) -> Vec<(PeerKey, BrokerAddress)> {
        let mut peers: Vec<(PeerKey, BrokerAddress)> = {
            let metadata = self.inner.lock_metadata();
            metadata.brokers().map(|broker| (PeerKey::Node(broker.id), broker.address.clone())).collect()
        };
        if peers.is_empty() || self.inner.config.metadata_recovery == MetadataRecovery::Rebootstrap {
            let bootstrap = self.inner.config.bootstrap_servers.iter().cloned().enumerate();
            peers.extend(bootstrap.map(|(index, address)| (PeerKey::Bootstrap(index), address)));
        }
        // A stable sort: equals keep their order.
        peers.sort_by_cached_key(|(peer, _)| self.inner.connections.readiness(*peer, purpose));
        peers
    }

    async fn connect_to(&self, peer: PeerKey, purpose: Purpose, address: &BrokerAddress) -> Result<Connection, Error> {
        self.inner.connections.connect(peer, purpose, address, &self.inner.config).await
    }

    fn address(&self, node: NodeId) -> Option<BrokerAddress> {
        self.inner.lock_metadata().broker(node).map(|broker| broker.address.clone())
    }

    /// Brokers learn of a finalized feature one after the other: the answer with the highest epoch counts (KIP-584).
    fn note_features(&self, connection: &Connection) {
        let apis = connection.apis();
        let mut known = self.inner.lock_features();
        if apis.features_epoch() > known.epoch {
            known.epoch = apis.features_epoch();
            known.level = apis.transaction_version();
        }
    }
}
