//! The APIs that this broker serves, one file each: versions, behaviour, simplifications.
//!
//! This file is the table: which key is read by which file, in which versions, and how a fault is answered. An API
//! that is not here is not announced, and a request for it closes the connection, as on a real broker.

mod add_partitions_to_txn;
mod api_versions;
mod create_topics;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_producers;
mod describe_transactions;
mod end_txn;
pub(crate) mod fetch;
mod find_coordinator;
mod heartbeat;
mod init_producer_id;
pub(crate) mod join_group;
mod leave_group;
mod list_groups;
mod list_offsets;
mod list_transactions;
mod metadata;
pub(crate) mod produce;
pub(crate) mod sync_group;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages as kafka;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{StrBytes, VersionRange};
use oncewire_client::wire::WireError;
use oncewire_client::wire::frame::{self, RequestHead};

use crate::broker::Broker;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Every API with the versions that are served.
pub(crate) const SERVED: &[(ApiKey, VersionRange)] = &[
    (ApiKey::Produce, VersionRange { min: 3, max: 13 }),
    (ApiKey::Fetch, VersionRange { min: 4, max: 18 }),
    (ApiKey::ListOffsets, VersionRange { min: 1, max: 10 }),
    (ApiKey::Metadata, VersionRange { min: 0, max: 13 }),
    (ApiKey::FindCoordinator, VersionRange { min: 0, max: 6 }),
    (ApiKey::ApiVersions, VersionRange { min: 0, max: 4 }),
    (ApiKey::CreateTopics, VersionRange { min: 2, max: 7 }),
    (ApiKey::DeleteTopics, VersionRange { min: 1, max: 6 }),
    (ApiKey::DeleteRecords, VersionRange { min: 0, max: 2 }),
    (ApiKey::InitProducerId, VersionRange { min: 0, max: 5 }),
    (ApiKey::AddPartitionsToTxn, VersionRange { min: 0, max: 5 }),
    (ApiKey::EndTxn, VersionRange { min: 0, max: 5 }),
    (ApiKey::DescribeConfigs, VersionRange { min: 1, max: 4 }),
    (ApiKey::DescribeCluster, VersionRange { min: 0, max: 2 }),
    (ApiKey::DescribeProducers, VersionRange { min: 0, max: 0 }),
    (ApiKey::DescribeTransactions, VersionRange { min: 0, max: 0 }),
    (ApiKey::ListTransactions, VersionRange { min: 0, max: 2 }),
    (ApiKey::JoinGroup, VersionRange { min: 2, max: 9 }),
    (ApiKey::SyncGroup, VersionRange { min: 0, max: 5 }),
    (ApiKey::Heartbeat, VersionRange { min: 0, max: 4 }),
    (ApiKey::LeaveGroup, VersionRange { min: 0, max: 5 }),
    (ApiKey::ListGroups, VersionRange { min: 0, max: 5 }),
];

/// A decoded request.
#[derive(Debug, Clone)]
pub enum Request {
    #[allow(missing_docs, reason = "each variant is named as Kafka names the request")]
    Produce(kafka::ProduceRequest),
    #[allow(missing_docs, reason = "as above")]
    Fetch(Box<kafka::FetchRequest>),
    #[allow(missing_docs, reason = "as above")]
    ListOffsets(kafka::ListOffsetsRequest),
    #[allow(missing_docs, reason = "as above")]
    Metadata(kafka::MetadataRequest),
    #[allow(missing_docs, reason = "as above")]
    FindCoordinator(kafka::FindCoordinatorRequest),
    /// `None` in a version that is not served: the answer says which are.
    ApiVersions(Option<kafka::ApiVersionsRequest>),
    #[allow(missing_docs, reason = "as above")]
    CreateTopics(kafka::CreateTopicsRequest),
    #[allow(missing_docs, reason = "as above")]
    DeleteTopics(kafka::DeleteTopicsRequest),
    #[allow(missing_docs, reason = "as above")]
    DeleteRecords(kafka::DeleteRecordsRequest),
    #[allow(missing_docs, reason = "as above")]
    InitProducerId(kafka::InitProducerIdRequest),
    #[allow(missing_docs, reason = "as above")]
    AddPartitionsToTxn(kafka::AddPartitionsToTxnRequest),
    #[allow(missing_docs, reason = "as above")]
    EndTxn(kafka::EndTxnRequest),
    #[allow(missing_docs, reason = "as above")]
    DescribeConfigs(kafka::DescribeConfigsRequest),
    #[allow(missing_docs, reason = "as above")]
    DescribeCluster(kafka::DescribeClusterRequest),
    #[allow(missing_docs, reason = "as above")]
    DescribeProducers(kafka::DescribeProducersRequest),
    #[allow(missing_docs, reason = "as above")]
    DescribeTransactions(kafka::DescribeTransactionsRequest),
    #[allow(missing_docs, reason = "as above")]
    ListTransactions(kafka::ListTransactionsRequest),
    #[allow(missing_docs, reason = "as above")]
    JoinGroup(kafka::JoinGroupRequest),
    #[allow(missing_docs, reason = "as above")]
    SyncGroup(kafka::SyncGroupRequest),
    #[allow(missing_docs, reason = "as above")]
    Heartbeat(kafka::HeartbeatRequest),
    #[allow(missing_docs, reason = "as above")]
    LeaveGroup(kafka::LeaveGroupRequest),
    #[allow(missing_docs, reason = "as above")]
    ListGroups(kafka::ListGroupsRequest),
}

/// A response, not yet encoded: that happens outside the broker's lock.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    #[allow(missing_docs, reason = "each variant is named as Kafka names the response")]
    Produce(kafka::ProduceResponse),
    #[allow(missing_docs, reason = "as above")]
    Fetch(kafka::FetchResponse),
    #[allow(missing_docs, reason = "as above")]
    ListOffsets(kafka::ListOffsetsResponse),
    #[allow(missing_docs, reason = "as above")]
    Metadata(kafka::MetadataResponse),
    #[allow(missing_docs, reason = "as above")]
    FindCoordinator(kafka::FindCoordinatorResponse),
    #[allow(missing_docs, reason = "as above")]
    ApiVersions(kafka::ApiVersionsResponse),
    #[allow(missing_docs, reason = "as above")]
    CreateTopics(kafka::CreateTopicsResponse),
    #[allow(missing_docs, reason = "as above")]
    DeleteTopics(kafka::DeleteTopicsResponse),
    #[allow(missing_docs, reason = "as above")]
    DeleteRecords(kafka::DeleteRecordsResponse),
    #[allow(missing_docs, reason = "as above")]
    InitProducerId(kafka::InitProducerIdResponse),
    #[allow(missing_docs, reason = "as above")]
    AddPartitionsToTxn(kafka::AddPartitionsToTxnResponse),
    #[allow(missing_docs, reason = "as above")]
    EndTxn(kafka::EndTxnResponse),
    #[allow(missing_docs, reason = "as above")]
    DescribeConfigs(kafka::DescribeConfigsResponse),
    #[allow(missing_docs, reason = "as above")]
    DescribeCluster(kafka::DescribeClusterResponse),
    #[allow(missing_docs, reason = "as above")]
    DescribeProducers(kafka::DescribeProducersResponse),
    #[allow(missing_docs, reason = "as above")]
    DescribeTransactions(kafka::DescribeTransactionsResponse),
    #[allow(missing_docs, reason = "as above")]
    ListTransactions(kafka::ListTransactionsResponse),
    #[allow(missing_docs, reason = "as above")]
    JoinGroup(kafka::JoinGroupResponse),
    #[allow(missing_docs, reason = "as above")]
    SyncGroup(kafka::SyncGroupResponse),
    #[allow(missing_docs, reason = "as above")]
    Heartbeat(kafka::HeartbeatResponse),
    #[allow(missing_docs, reason = "as above")]
    LeaveGroup(kafka::LeaveGroupResponse),
    #[allow(missing_docs, reason = "as above")]
    ListGroups(kafka::ListGroupsResponse),
}

/// A request with the API and the version that it came in, which decide what it means.
#[derive(Debug, Clone)]
pub struct Call {
    /// The API.
    pub api: ApiKey,
    /// The version that is answered in.
    pub version: i16,
    /// The body.
    pub request: Request,
}

impl Call {
    /// Decodes a request's body.
    ///
    /// # Errors
    /// An API or version that is not served, and bytes that are no such message: a broker closes the connection.
    pub fn decode(head: &RequestHead, body: Bytes) -> Result<Self, WireError> {
        let (api, version) = (head.api, head.version);
        let served = SERVED.iter().find(|(served, _)| *served == api).map(|(_, versions)| versions);
        if !served.is_some_and(|versions| (versions.min..=versions.max).contains(&version)) {
            if api == ApiKey::ApiVersions {
                // The body is of a shape not known here; the answer in version 0 is what the client can always read
                // (KIP-511).
                return Ok(Self { api, version: 0, request: Request::ApiVersions(None) });
            }
            return Err(WireError::UnsupportedVersion { api, version });
        }
        let request = match api {
            ApiKey::Produce => Request::Produce(frame::decode_request(api, version, body)?),
            ApiKey::Fetch => Request::Fetch(Box::new(frame::decode_request(api, version, body)?)),
            ApiKey::ListOffsets => Request::ListOffsets(frame::decode_request(api, version, body)?),
            ApiKey::Metadata => Request::Metadata(frame::decode_request(api, version, body)?),
            ApiKey::FindCoordinator => Request::FindCoordinator(frame::decode_request(api, version, body)?),
            ApiKey::ApiVersions => Request::ApiVersions(Some(frame::decode_request(api, version, body)?)),
            ApiKey::CreateTopics => Request::CreateTopics(frame::decode_request(api, version, body)?),
            ApiKey::DeleteTopics => Request::DeleteTopics(frame::decode_request(api, version, body)?),
            ApiKey::DeleteRecords => Request::DeleteRecords(frame::decode_request(api, version, body)?),
            ApiKey::InitProducerId => Request::InitProducerId(frame::decode_request(api, version, body)?),
            ApiKey::AddPartitionsToTxn => Request::AddPartitionsToTxn(frame::decode_request(api, version, body)?),
            ApiKey::EndTxn => Request::EndTxn(frame::decode_request(api, version, body)?),
            ApiKey::DescribeConfigs => Request::DescribeConfigs(frame::decode_request(api, version, body)?),
            ApiKey::DescribeCluster => Request::DescribeCluster(frame::decode_request(api, version, body)?),
            ApiKey::DescribeProducers => Request::DescribeProducers(frame::decode_request(api, version, body)?),
            ApiKey::DescribeTransactions => Request::DescribeTransactions(frame::decode_request(api, version, body)?),
            ApiKey::ListTransactions => Request::ListTransactions(frame::decode_request(api, version, body)?),
            ApiKey::JoinGroup => Request::JoinGroup(frame::decode_request(api, version, body)?),
            ApiKey::SyncGroup => Request::SyncGroup(frame::decode_request(api, version, body)?),
            ApiKey::Heartbeat => Request::Heartbeat(frame::decode_request(api, version, body)?),
            ApiKey::LeaveGroup => Request::LeaveGroup(frame::decode_request(api, version, body)?),
            ApiKey::ListGroups => Request::ListGroups(frame::decode_request(api, version, body)?),
            _ => return Err(WireError::UnsupportedVersion { api, version }),
        };
        Ok(Self { api, version, request })
    }

    /// The answer that gives every part of the request this error.
    pub(crate) fn refuse(&self, code: ResponseError) -> Response {
        match &self.request {
            Request::Produce(request) => Response::Produce(produce::refuse(request, &code.into())),
            Request::Fetch(_) => Response::Fetch(fetch::refuse(code)),
            Request::ListOffsets(request) => Response::ListOffsets(list_offsets::refuse(request, code)),
            Request::Metadata(request) => Response::Metadata(metadata::refuse(self.version, request, code)),
            Request::FindCoordinator(request) => Response::FindCoordinator(find_coordinator::refuse(request, code)),
            Request::ApiVersions(_) => Response::ApiVersions(api_versions::refuse(code)),
            Request::CreateTopics(request) => Response::CreateTopics(create_topics::refuse(request, code)),
            Request::DeleteTopics(request) => {
                Response::DeleteTopics(delete_topics::refuse(self.version, request, code))
            }
            Request::DeleteRecords(request) => Response::DeleteRecords(delete_records::refuse(request, code)),
            Request::InitProducerId(_) => Response::InitProducerId(init_producer_id::refuse(code)),
            Request::AddPartitionsToTxn(request) => {
                Response::AddPartitionsToTxn(add_partitions_to_txn::refuse(self.version, request, code))
            }
            Request::EndTxn(_) => Response::EndTxn(end_txn::refuse(code)),
            Request::DescribeConfigs(request) => Response::DescribeConfigs(describe_configs::refuse(request, code)),
            Request::DescribeCluster(_) => Response::DescribeCluster(describe_cluster::refuse(code)),
            Request::DescribeProducers(request) => {
                Response::DescribeProducers(describe_producers::refuse(request, code))
            }
            Request::DescribeTransactions(request) => {
                Response::DescribeTransactions(describe_transactions::refuse(request, code))
            }
            Request::ListTransactions(_) => Response::ListTransactions(list_transactions::refuse(code)),
            Request::JoinGroup(_) => Response::JoinGroup(join_group::refuse(self.version, code)),
            Request::SyncGroup(_) => Response::SyncGroup(sync_group::refuse(code)),
            Request::Heartbeat(_) => Response::Heartbeat(heartbeat::refuse(code)),
            Request::LeaveGroup(_) => Response::LeaveGroup(leave_group::refuse(code)),
            Request::ListGroups(_) => Response::ListGroups(list_groups::refuse(code)),
        }
    }
}

impl Response {
    /// The response as one frame.
    ///
    /// # Errors
    /// When a field is set that the version does not have: our bug.
    pub fn encode(&self, api: ApiKey, version: i16, correlation_id: i32) -> Result<Bytes, WireError> {
        match self {
            Response::Produce(body) => frame::encode_response(api, version, correlation_id, body),
            Response::Fetch(body) => frame::encode_response(api, version, correlation_id, body),
            Response::ListOffsets(body) => frame::encode_response(api, version, correlation_id, body),
            Response::Metadata(body) => frame::encode_response(api, version, correlation_id, body),
            Response::FindCoordinator(body) => frame::encode_response(api, version, correlation_id, body),
            Response::ApiVersions(body) => frame::encode_response(api, version, correlation_id, body),
            Response::CreateTopics(body) => frame::encode_response(api, version, correlation_id, body),
            Response::DeleteTopics(body) => frame::encode_response(api, version, correlation_id, body),
            Response::DeleteRecords(body) => frame::encode_response(api, version, correlation_id, body),
            Response::InitProducerId(body) => frame::encode_response(api, version, correlation_id, body),
            Response::AddPartitionsToTxn(body) => frame::encode_response(api, version, correlation_id, body),
            Response::EndTxn(body) => frame::encode_response(api, version, correlation_id, body),
            Response::DescribeConfigs(body) => frame::encode_response(api, version, correlation_id, body),
            Response::DescribeCluster(body) => frame::encode_response(api, version, correlation_id, body),
            Response::DescribeProducers(body) => frame::encode_response(api, version, correlation_id, body),
            Response::DescribeTransactions(body) => frame::encode_response(api, version, correlation_id, body),
            Response::ListTransactions(body) => frame::encode_response(api, version, correlation_id, body),
            Response::JoinGroup(body) => frame::encode_response(api, version, correlation_id, body),
            Response::SyncGroup(body) => frame::encode_response(api, version, correlation_id, body),
            Response::Heartbeat(body) => frame::encode_response(api, version, correlation_id, body),
            Response::LeaveGroup(body) => frame::encode_response(api, version, correlation_id, body),
            Response::ListGroups(body) => frame::encode_response(api, version, correlation_id, body),
        }
    }
}

/// Serves a request that is answered at once: all but those that the broker may park.
pub(crate) fn serve(broker: &mut Broker, now: Timestamp, version: i16, request: &Request) -> Option<Response> {
    Some(match request {
        Request::Produce(_) | Request::Fetch(_) | Request::JoinGroup(_) | Request::SyncGroup(_) => return None,
        Request::Heartbeat(request) => Response::Heartbeat(heartbeat::serve(broker, now, request)),
        Request::LeaveGroup(request) => Response::LeaveGroup(leave_group::serve(broker, now, version, request)),
        Request::ListGroups(request) => Response::ListGroups(list_groups::serve(broker, version, request)),
        Request::ListOffsets(request) => Response::ListOffsets(list_offsets::serve(broker, request)),
        Request::Metadata(request) => Response::Metadata(metadata::serve(broker, version, request)),
        Request::FindCoordinator(request) => {
            Response::FindCoordinator(find_coordinator::serve(broker, version, request))
        }
        Request::ApiVersions(request) => Response::ApiVersions(api_versions::serve(broker, request.as_ref())),
        Request::CreateTopics(request) => Response::CreateTopics(create_topics::serve(broker, request)),
        Request::DeleteTopics(request) => Response::DeleteTopics(delete_topics::serve(broker, version, request)),
        Request::DeleteRecords(request) => Response::DeleteRecords(delete_records::serve(broker, request)),
        Request::InitProducerId(request) => {
            Response::InitProducerId(init_producer_id::serve(broker, now, version, request))
        }
        Request::AddPartitionsToTxn(request) => {
            Response::AddPartitionsToTxn(add_partitions_to_txn::serve(broker, now, version, request))
        }
        Request::EndTxn(request) => Response::EndTxn(end_txn::serve(broker, now, version, request)),
        Request::DescribeConfigs(request) => Response::DescribeConfigs(describe_configs::serve(broker, request)),
        Request::DescribeCluster(request) => Response::DescribeCluster(describe_cluster::serve(broker, request)),
        Request::DescribeProducers(request) => Response::DescribeProducers(describe_producers::serve(broker, request)),
        Request::DescribeTransactions(request) => {
            Response::DescribeTransactions(describe_transactions::serve(broker, request))
        }
        Request::ListTransactions(request) => {
            Response::ListTransactions(list_transactions::serve(broker, now, request))
        }
    })
}

/// A string for a response.
fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

/// A refusal's sentence for a response.
fn message_of(refusal: &Refusal) -> Option<StrBytes> {
    Some(text(&refusal.message))
}

/// Before KIP-588 a fenced producer was told that its epoch is invalid.
fn fenced_as_of(version: i16, first_version_with_fenced: i16, code: ResponseError) -> ResponseError {
    match code {
        ResponseError::ProducerFenced if version < first_version_with_fenced => ResponseError::InvalidProducerEpoch,
        other => other,
    }
}
