//! The producer's requests to its transaction coordinator, one attempt each. What an answer means is the machine's to say.

use super::requests::{self, UNSUPPORTED_VERSION};
use crate::cluster::{Call, Cluster, CoordinatorKind, NodeId, Purpose, Target, Versions};
use crate::error::Error;
use kafka_protocol::messages::{AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest};
use kafka_protocol::protocol::Request;
use oncewire_txn::{EndGoal, ErrorCode, PartitionIndex, ProducerIdentity, Protocol, Reply};
use std::sync::Arc;
use std::time::Duration;

/// Finalized level of `transaction.version` from which transactions V2 are in force.
const TRANSACTIONS_V2: i16 = 2;

/// Where and for whom to ask.
#[derive(Debug, Clone)]
pub(crate) struct Coordinator {
    pub(crate) cluster: Cluster,
    pub(crate) node: NodeId,
    pub(crate) transactional_id: Arc<str>,
    /// The epoch of the finalized features at which the protocol in force was chosen.
    pub(crate) features_epoch: i64,
}

/// Looks the coordinator up anew.
pub(crate) async fn find(cluster: &Cluster, transactional_id: &str) -> (Reply, Option<NodeId>) {
    cluster.forget_coordinator(CoordinatorKind::Transaction, transactional_id);
    match cluster.coordinator(CoordinatorKind::Transaction, transactional_id).await {
        Ok(node) => (Reply::Coordinator(ErrorCode(0)), Some(node)),
        Err(error) => {
            tracing::debug!(%error, "the transaction coordinator was not found");
            let reply = match error.code() {
                Some(code) => Reply::Coordinator(ErrorCode(code)),
                None => Reply::Lost { sent: false },
            };
            (reply, None)
        }
    }
}

/// A call on the connection that is kept for the coordinator: behind a Produce it would wait for replicas.
pub(crate) fn call_to(node: NodeId, versions: Versions) -> Call {
    Call { target: Target::Node(node), purpose: Purpose::Coordinator, versions, timeout: None }
}

impl Coordinator {
    pub(crate) async fn init(&self, timeout: Duration, current: Option<ProducerIdentity>) -> Reply {
        let request = requests::init(&self.transactional_id, timeout, current);
        let (code, identity) = match self.ask::<InitProducerIdRequest>(requests::INIT_VERSIONS, request).await {
            Ok((response, _)) => (
                ErrorCode(response.error_code),
                ProducerIdentity { id: response.producer_id.0, epoch: response.producer_epoch },
            ),
            Err(Unanswered::Unsupported) => (UNSUPPORTED_VERSION, ProducerIdentity { id: -1, epoch: -1 }),
            Err(Unanswered::Lost { sent }) => return Reply::Lost { sent },
        };
        match self.negotiated().await {
            Some(protocol) => Reply::Initialized { code, identity, protocol },
            // The connection went away between the answer and this question. Asking again only raises the epoch once more.
            None => Reply::Lost { sent: true },
        }
    }

    pub(crate) async fn add_partitions(
        &self,
        identity: ProducerIdentity,
        partitions: &[(PartitionIndex, Arc<str>, u32)],
    ) -> Reply {
        let request = requests::add_partitions(&self.transactional_id, identity, partitions);
        match self.ask::<AddPartitionsToTxnRequest>(requests::ADD_PARTITIONS_VERSIONS, request).await {
            Ok((response, _)) => {
                requests::partitions_added(&response, partitions).unwrap_or(Reply::Lost { sent: true })
            }
            Err(Unanswered::Unsupported) => {
                Reply::PartitionsAdded(partitions.iter().map(|(index, _, _)| (*index, UNSUPPORTED_VERSION)).collect())
            }
            Err(Unanswered::Lost { sent }) => Reply::Lost { sent },
        }
    }

    pub(crate) async fn end(&self, identity: ProducerIdentity, goal: EndGoal, protocol: Protocol) -> Reply {
        let request = requests::end(&self.transactional_id, identity, goal);
        match self.ask::<EndTxnRequest>(requests::end_versions(protocol), request).await {
            Ok((response, version)) => Reply::Ended {
                code: ErrorCode(response.error_code),
                next: requests::next_identity(&response, version),
                protocol: self.renegotiated(protocol).await,
            },
            Err(Unanswered::Unsupported) => Reply::Ended { code: UNSUPPORTED_VERSION, next: None, protocol },
            Err(Unanswered::Lost { sent }) => Reply::Lost { sent },
        }
    }

    /// The protocol for the next transaction: looked at anew only when the features have changed, so that the end of a
    /// transaction never waits for a connection.
    async fn renegotiated(&self, current: Protocol) -> Protocol {
        if self.cluster.transaction_version().epoch == self.features_epoch {
            return current;
        }
        self.negotiated().await.unwrap_or(current)
    }

    /// Which generation of the protocol to use: V2 only when the cluster has finalized it and the versions are there.
    async fn negotiated(&self) -> Option<Protocol> {
        if self.cluster.transaction_version().level < TRANSACTIONS_V2 {
            return Some(Protocol::Explicit);
        }
        // Only who asks for these versions by name gets them.
        let implicit = Protocol::Implicit;
        let end = self.cluster.version::<EndTxnRequest>(call_to(self.node, requests::end_versions(implicit))).await;
        let produce =
            self.cluster.version::<ProduceRequest>(call_to(self.node, requests::produce_versions(implicit))).await;
        match end.and(produce) {
            Ok(_) => Some(Protocol::Implicit),
            Err(Error::Unsupported { .. }) => Some(Protocol::Explicit),
            Err(_) => None,
        }
    }

    async fn ask<Q: Request>(&self, versions: Versions, request: Q) -> Result<(Q::Response, i16), Unanswered> {
        let call = call_to(self.node, versions);
        let pending = match self.cluster.send::<Q, _>(call, |_version| request).await {
            Ok(pending) => pending,
            Err(error) => {
                tracing::debug!(%error, "a request to the coordinator was not sent");
                return Err(match error {
                    Error::Unsupported { .. } => Unanswered::Unsupported,
                    _ => Unanswered::Lost { sent: false },
                });
            }
        };
        match pending.await {
            Ok(reply) => Ok((reply.body, reply.version)),
            Err(error) => {
                tracing::debug!(%error, "the coordinator's answer was lost");
                Err(Unanswered::Lost { sent: true })
            }
        }
    }
}

/// Why there is no answer.
enum Unanswered {
    /// Client and broker share no version of the request.
    Unsupported,
    /// It did not come; see [`Reply::Lost`].
    Lost { sent: bool },
}
