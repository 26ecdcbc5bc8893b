//! The tables of the APIs that the client and the dev broker read: one file per family.
//!
//! An API that is missing here is not decoded at all, so a new one starts with its table.

mod cluster;
mod data;
mod groups;
mod topics;
mod txn;

use kafka_protocol::messages::ApiKey;

use super::shape::Message;

/// The shape of an API's request.
pub(super) fn request(api: ApiKey) -> Option<&'static Message> {
    Some(match api {
        ApiKey::ApiVersions => &cluster::API_VERSIONS_REQUEST,
        ApiKey::Metadata => &cluster::METADATA_REQUEST,
        ApiKey::FindCoordinator => &cluster::FIND_COORDINATOR_REQUEST,
        ApiKey::DescribeCluster => &cluster::DESCRIBE_CLUSTER_REQUEST,
        ApiKey::SaslHandshake => &cluster::SASL_HANDSHAKE_REQUEST,
        ApiKey::SaslAuthenticate => &cluster::SASL_AUTHENTICATE_REQUEST,
        ApiKey::Produce => &data::PRODUCE_REQUEST,
        ApiKey::Fetch => &data::FETCH_REQUEST,
        ApiKey::ListOffsets => &data::LIST_OFFSETS_REQUEST,
        ApiKey::DeleteRecords => &data::DELETE_RECORDS_REQUEST,
        ApiKey::InitProducerId => &txn::INIT_PRODUCER_ID_REQUEST,
        ApiKey::AddPartitionsToTxn => &txn::ADD_PARTITIONS_TO_TXN_REQUEST,
        ApiKey::EndTxn => &txn::END_TXN_REQUEST,
        ApiKey::DescribeTransactions => &txn::DESCRIBE_TRANSACTIONS_REQUEST,
        ApiKey::ListTransactions => &txn::LIST_TRANSACTIONS_REQUEST,
        ApiKey::DescribeProducers => &txn::DESCRIBE_PRODUCERS_REQUEST,
        ApiKey::CreateTopics => &topics::CREATE_TOPICS_REQUEST,
        ApiKey::DeleteTopics => &topics::DELETE_TOPICS_REQUEST,
        ApiKey::DescribeConfigs => &topics::DESCRIBE_CONFIGS_REQUEST,
        ApiKey::IncrementalAlterConfigs => &topics::INCREMENTAL_ALTER_CONFIGS_REQUEST,
        ApiKey::JoinGroup => &groups::JOIN_GROUP_REQUEST,
        ApiKey::SyncGroup => &groups::SYNC_GROUP_REQUEST,
        ApiKey::Heartbeat => &groups::HEARTBEAT_REQUEST,
        ApiKey::LeaveGroup => &groups::LEAVE_GROUP_REQUEST,
        ApiKey::DescribeGroups => &groups::DESCRIBE_GROUPS_REQUEST,
        ApiKey::ListGroups => &groups::LIST_GROUPS_REQUEST,
        _ => return None,
    })
}

/// The shape of an API's response.
pub(super) fn response(api: ApiKey) -> Option<&'static Message> {
    Some(match api {
        ApiKey::ApiVersions => &cluster::API_VERSIONS_RESPONSE,
        ApiKey::Metadata => &cluster::METADATA_RESPONSE,
        ApiKey::FindCoordinator => &cluster::FIND_COORDINATOR_RESPONSE,
        ApiKey::DescribeCluster => &cluster::DESCRIBE_CLUSTER_RESPONSE,
        ApiKey::SaslHandshake => &cluster::SASL_HANDSHAKE_RESPONSE,
        ApiKey::SaslAuthenticate => &cluster::SASL_AUTHENTICATE_RESPONSE,
        ApiKey::Produce => &data::PRODUCE_RESPONSE,
        ApiKey::Fetch => &data::FETCH_RESPONSE,
        ApiKey::ListOffsets => &data::LIST_OFFSETS_RESPONSE,
        ApiKey::DeleteRecords => &data::DELETE_RECORDS_RESPONSE,
        ApiKey::InitProducerId => &txn::INIT_PRODUCER_ID_RESPONSE,
        ApiKey::AddPartitionsToTxn => &txn::ADD_PARTITIONS_TO_TXN_RESPONSE,
        ApiKey::EndTxn => &txn::END_TXN_RESPONSE,
        ApiKey::DescribeTransactions => &txn::DESCRIBE_TRANSACTIONS_RESPONSE,
        ApiKey::ListTransactions => &txn::LIST_TRANSACTIONS_RESPONSE,
        ApiKey::DescribeProducers => &txn::DESCRIBE_PRODUCERS_RESPONSE,
        ApiKey::CreateTopics => &topics::CREATE_TOPICS_RESPONSE,
        ApiKey::DeleteTopics => &topics::DELETE_TOPICS_RESPONSE,
        ApiKey::DescribeConfigs => &topics::DESCRIBE_CONFIGS_RESPONSE,
        ApiKey::IncrementalAlterConfigs => &topics::INCREMENTAL_ALTER_CONFIGS_RESPONSE,
        ApiKey::JoinGroup => &groups::JOIN_GROUP_RESPONSE,
        ApiKey::SyncGroup => &groups::SYNC_GROUP_RESPONSE,
        ApiKey::Heartbeat => &groups::HEARTBEAT_RESPONSE,
        ApiKey::LeaveGroup => &groups::LEAVE_GROUP_RESPONSE,
        ApiKey::DescribeGroups => &groups::DESCRIBE_GROUPS_RESPONSE,
        ApiKey::ListGroups => &groups::LIST_GROUPS_RESPONSE,
        _ => return None,
    })
}

/// The APIs that have tables.
#[cfg(test)]
pub(super) const APIS: &[ApiKey] = &[
    ApiKey::ApiVersions,
    ApiKey::Metadata,
    ApiKey::FindCoordinator,
    ApiKey::DescribeCluster,
    ApiKey::SaslHandshake,
    ApiKey::SaslAuthenticate,
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::AddPartitionsToTxn,
    ApiKey::EndTxn,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::DescribeProducers,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DescribeConfigs,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::JoinGroup,
    ApiKey::SyncGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
];
