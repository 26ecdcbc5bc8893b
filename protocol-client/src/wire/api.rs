//! Which version of each API to speak with a broker.
//!
//! A version is usable only when kafka-protocol encodes it, the guard has its table, and its meaning
//! is what our callers expect. Two pins follow from that:
//!
//! * AddPartitionsToTxn stays at 3: from 4 on it is a broker's request (KIP-890, it asks for
//!   CLUSTER_ACTION), though brokers offer it to everybody.
//! * Produce stays at 11 and EndTxn at 4 under transactions V1: with Produce 12 a broker adds the
//!   partition to the transaction by itself, and EndTxn 5 raises the epoch. Version 2 of
//!   `transaction.version` must be finalized in the cluster before a client may use them.
//!
//! Source: KIP-35, KIP-511, KIP-890, and the comments on versions in Kafka's message schemas.

use std::collections::BTreeMap;

use bytes::Bytes;
pub use kafka_protocol::messages::ApiKey;
use kafka_protocol::messages::ApiVersionsResponse;
pub use kafka_protocol::protocol::VersionRange;

use super::error::WireError;
use super::error_code::codes;
use super::frame;

/// The latest version of ApiVersions that this client speaks, and the first that it tries.
pub const API_VERSIONS_LATEST: i16 = 4;

/// The feature whose finalized level says which transaction protocol a cluster speaks (KIP-890).
const TRANSACTION_VERSION_FEATURE: &str = "transaction.version";

/// Which protocol a transactional producer and its cluster speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionProtocol {
    /// Partitions are added explicitly; the epoch stays over commits.
    #[default]
    V1,
    /// Produce adds partitions; EndTxn raises the epoch (KIP-890, `transaction.version` 2).
    V2,
}

/// The versions of an API that this client can use, or `None` for one that it never asks for.
#[must_use]
pub fn usable_versions(api: ApiKey, protocol: TransactionProtocol) -> Option<VersionRange> {
    use TransactionProtocol::{V1, V2};
    let (min, max) = match (api, protocol) {
        (ApiKey::Produce, V1) => (3, 11),       // 3: record batches of version 2
        (ApiKey::Produce, V2) => (3, 12),       // 13 names topics by id only
        (ApiKey::Fetch, _) => (4, 18),          // 4: isolation level and aborted transactions
        (ApiKey::ListOffsets, _) => (2, 10),    // 2: isolation level
        (ApiKey::Metadata, _) => (4, 13),       // 4: asking without creating topics
        (ApiKey::FindCoordinator, _) => (1, 6), // 1: transactional ids
        (ApiKey::InitProducerId, _) => (0, 5),  // 6: two-phase commit (KIP-939), unstable
        (ApiKey::AddPartitionsToTxn, _) => (0, 3),
        (ApiKey::EndTxn, V1) => (0, 4),
        (ApiKey::EndTxn, V2) => (0, 5),
        (ApiKey::ApiVersions, _) => (0, API_VERSIONS_LATEST),
        (ApiKey::SaslHandshake, _) => (1, 1), // 1: tokens travel in SaslAuthenticate
        (ApiKey::SaslAuthenticate, _) => (0, 2),
        (ApiKey::CreateTopics, _) => (2, 7),
        (ApiKey::DeleteTopics, _) => (1, 6),
        (ApiKey::DeleteRecords, _) => (0, 2),
        (ApiKey::DescribeConfigs, _) => (1, 4),
        (ApiKey::IncrementalAlterConfigs, _) => (0, 1),
        (ApiKey::DescribeCluster, _) => (0, 2),
        (ApiKey::DescribeProducers, _) => (0, 0),
        (ApiKey::DescribeTransactions, _) => (0, 0),
        (ApiKey::ListTransactions, _) => (0, 2),
        (ApiKey::JoinGroup, _) => (1, 9), // 1: a rebalance timeout of its own
        (ApiKey::SyncGroup, _) => (0, 5),
        (ApiKey::Heartbeat, _) => (0, 4),
        (ApiKey::LeaveGroup, _) => (0, 5),
        (ApiKey::DescribeGroups, _) => (0, 6),
        (ApiKey::ListGroups, _) => (0, 5),
        _ => return None,
    };
    Some(VersionRange { min, max })
}

/// The latest version that both sides speak, under transactions V1.
///
/// # Errors
/// When they share none.
pub fn negotiate(api: ApiKey, broker: VersionRange) -> Result<i16, WireError> {
    negotiate_for(TransactionProtocol::V1, api, broker)
}

/// The latest version that both sides speak under a transaction protocol.
///
/// # Errors
/// When they share none.
pub fn negotiate_for(protocol: TransactionProtocol, api: ApiKey, broker: VersionRange) -> Result<i16, WireError> {
    let ours = usable_versions(api, protocol).ok_or(WireError::ApiNotOffered { api })?;
    let common = ours.intersect(&broker);
    if common.is_empty() {
        return Err(WireError::NoCommonVersion { api, ours: (ours.min, ours.max), theirs: (broker.min, broker.max) });
    }
    Ok(common.max)
}

/// What a broker said that it speaks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BrokerApis {
    ranges: BTreeMap<i16, VersionRange>,
    transaction_version: i16,
    features_epoch: i64,
}

impl BrokerApis {
    /// Keeps what an ApiVersions response without error says; keys that we don't know included.
    #[must_use]
    pub fn from_response(response: &ApiVersionsResponse) -> Self {
        let ranges = response.api_keys.iter().map(|api| {
            let range = VersionRange { min: api.min_version, max: api.max_version };
            (api.api_key, range)
        });
        // The list is void while its epoch is −1 (KIP-584).
        let transaction_version = response
            .finalized_features
            .iter()
            .filter(|_| response.finalized_features_epoch >= 0)
            .find(|feature| &*feature.name == TRANSACTION_VERSION_FEATURE)
            .map_or(0, |feature| feature.max_version_level);
        let features_epoch = response.finalized_features_epoch;
        Self { ranges: ranges.collect(), transaction_version, features_epoch }
    }

    /// The versions of an API that the broker offers.
    #[must_use]
    pub fn range(&self, api: ApiKey) -> Option<VersionRange> {
        self.ranges.get(&(api as i16)).copied()
    }

    /// The finalized level of `transaction.version`, 0 where the broker names none.
    #[must_use]
    pub fn transaction_version(&self) -> i16 {
        self.transaction_version
    }

    /// The epoch of the finalized features, which grows with each change; −1 where the broker names none.
    #[must_use]
    pub fn features_epoch(&self) -> i64 {
        self.features_epoch
    }

    /// V2 when the cluster has it finalized and this broker offers the versions that carry it.
    #[must_use]
    pub fn transaction_protocol(&self) -> TransactionProtocol {
        let offers = |api, version| self.range(api).is_some_and(|range| range.max >= version);
        match self.transaction_version >= 2 && offers(ApiKey::Produce, 12) && offers(ApiKey::EndTxn, 5) {
            true => TransactionProtocol::V2,
            false => TransactionProtocol::V1,
        }
    }

    /// The latest version of an API that both sides speak, under transactions V1.
    ///
    /// # Errors
    /// When the broker doesn't offer the API or shares no version of it.
    pub fn negotiate(&self, api: ApiKey) -> Result<i16, WireError> {
        self.negotiate_for(TransactionProtocol::V1, api)
    }

    /// The latest version of an API that both sides speak under a transaction protocol.
    ///
    /// # Errors
    /// As [`negotiate`](Self::negotiate).
    pub fn negotiate_for(&self, protocol: TransactionProtocol, api: ApiKey) -> Result<i16, WireError> {
        let broker = self.range(api).ok_or(WireError::ApiNotOffered { api })?;
        negotiate_for(protocol, api, broker)
    }
}

/// What a broker's first answer means for the handshake.
#[derive(Debug, Clone, PartialEq)]
pub enum Handshake {
    /// The broker's APIs are known.
    Done(BrokerApis),
    /// The broker doesn't know the version that was asked: ask again with this one.
    AskAgain(i16),
    /// The broker refused with this error code.
    Refused(i16),
}

/// Reads the answer to an ApiVersions request that was sent in `version`.
///
/// A broker that doesn't know the version answers in version 0 with UNSUPPORTED_VERSION, and lists
/// only ApiVersions itself (KIP-511); before that rule it listed nothing.
///
/// # Errors
/// When the answer is malformed in either version, or no version is left to ask with.
pub fn read_handshake(version: i16, body: Bytes) -> Result<Handshake, WireError> {
    let api = ApiKey::ApiVersions;
    let error_code = body.first_chunk().map_or(0, |code| i16::from_be_bytes(*code));
    if error_code != codes::UNSUPPORTED_VERSION {
        let response: ApiVersionsResponse = frame::decode_response(api, version, body)?;
        return Ok(match response.error_code {
            codes::NONE => Handshake::Done(BrokerApis::from_response(&response)),
            code => Handshake::Refused(code),
        });
    }
    let response: ApiVersionsResponse = frame::decode_response(api, 0, body)?;
    let listed = BrokerApis::from_response(&response).range(api);
    let theirs = listed.unwrap_or(VersionRange { min: 0, max: 0 });
    let next = negotiate(api, theirs)?;
    if next >= version {
        // Asking again with the same version would never end.
        return Err(WireError::NoCommonVersion { api, ours: (0, version), theirs: (theirs.min, theirs.max) });
    }
    Ok(Handshake::AskAgain(next))
}
