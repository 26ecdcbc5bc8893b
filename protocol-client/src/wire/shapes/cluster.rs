//! Shapes of what a client asks first: versions, cluster, coordinator, SASL.
//!
//! Field names, order and versions are those of Kafka's message schemas (`common/message/*.json`,
//! 4.3); left out are versions that kafka-protocol doesn't know.

use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest, DescribeClusterResponse, FindCoordinatorRequest,
    FindCoordinatorResponse, MetadataRequest, MetadataResponse, SaslAuthenticateRequest, SaslAuthenticateResponse,
    SaslHandshakeRequest, SaslHandshakeResponse,
};
use kafka_protocol::messages::{
    api_versions_response, describe_cluster_response, find_coordinator_response, metadata_request, metadata_response,
};

use crate::wire::shape::*;

pub(super) static API_VERSIONS_REQUEST: Message = message::<ApiVersionsRequest>(
    "ApiVersionsRequest",
    0,
    4,
    3,
    &[since(3, "ClientSoftwareName", STRING), since(3, "ClientSoftwareVersion", STRING)],
    &[],
);

pub(super) static API_VERSIONS_RESPONSE: Message = message::<ApiVersionsResponse>(
    "ApiVersionsResponse",
    0,
    4,
    3,
    &[
        since(0, "ErrorCode", INT16),
        since(
            0,
            "ApiKeys",
            array(&shape::<api_versions_response::ApiVersion>(
                &[since(0, "ApiKey", INT16), since(0, "MinVersion", INT16), since(0, "MaxVersion", INT16)],
                &[],
            )),
        ),
        since(1, "ThrottleTimeMs", INT32),
    ],
    &[
        tagged(
            0,
            3,
            "SupportedFeatures",
            array(&shape::<api_versions_response::SupportedFeatureKey>(
                &[since(3, "Name", STRING), since(3, "MinVersion", INT16), since(3, "MaxVersion", INT16)],
                &[],
            )),
        ),
        tagged(1, 3, "FinalizedFeaturesEpoch", INT64),
        tagged(
            2,
            3,
            "FinalizedFeatures",
            array(&shape::<api_versions_response::FinalizedFeatureKey>(
                &[since(3, "Name", STRING), since(3, "MaxVersionLevel", INT16), since(3, "MinVersionLevel", INT16)],
                &[],
            )),
        ),
        tagged(3, 3, "ZkMigrationReady", BOOL),
    ],
);

pub(super) static METADATA_REQUEST: Message = message::<MetadataRequest>(
    "MetadataRequest",
    0,
    13,
    9,
    &[
        since(
            0,
            "Topics",
            array(&shape::<metadata_request::MetadataRequestTopic>(
                &[since(10, "TopicId", UUID), since(0, "Name", STRING)],
                &[],
            )),
        ),
        since(4, "AllowAutoTopicCreation", BOOL),
        between(8, 10, "IncludeClusterAuthorizedOperations", BOOL),
        since(8, "IncludeTopicAuthorizedOperations", BOOL),
    ],
    &[],
);

pub(super) static METADATA_RESPONSE: Message = message::<MetadataResponse>(
    "MetadataResponse",
    0,
    13,
    9,
    &[
        since(3, "ThrottleTimeMs", INT32),
        since(
            0,
            "Brokers",
            array(&shape::<metadata_response::MetadataResponseBroker>(
                &[
                    since(0, "NodeId", INT32),
                    since(0, "Host", STRING),
                    since(0, "Port", INT32),
                    since(1, "Rack", STRING),
                ],
                &[],
            )),
        ),
        since(2, "ClusterId", STRING),
        since(1, "ControllerId", INT32),
        since(
            0,
            "Topics",
            array(&shape::<metadata_response::MetadataResponseTopic>(
                &[
                    since(0, "ErrorCode", INT16),
                    since(0, "Name", STRING),
                    since(10, "TopicId", UUID),
                    since(1, "IsInternal", BOOL),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<metadata_response::MetadataResponsePartition>(
                            &[
                                since(0, "ErrorCode", INT16),
                                since(0, "PartitionIndex", INT32),
                                since(0, "LeaderId", INT32),
                                since(7, "LeaderEpoch", INT32),
                                since(0, "ReplicaNodes", INT32S),
                                since(0, "IsrNodes", INT32S),
                                since(5, "OfflineReplicas", INT32S),
                            ],
                            &[],
                        )),
                    ),
                    since(8, "TopicAuthorizedOperations", INT32),
                ],
                &[],
            )),
        ),
        between(8, 10, "ClusterAuthorizedOperations", INT32),
        since(13, "ErrorCode", INT16),
    ],
    &[],
);

pub(super) static FIND_COORDINATOR_REQUEST: Message = message::<FindCoordinatorRequest>(
    "FindCoordinatorRequest",
    0,
    6,
    3,
    &[between(0, 3, "Key", STRING), since(1, "KeyType", INT8), since(4, "CoordinatorKeys", STRINGS)],
    &[],
);

pub(super) static FIND_COORDINATOR_RESPONSE: Message = message::<FindCoordinatorResponse>(
    "FindCoordinatorResponse",
    0,
    6,
    3,
    &[
        since(1, "ThrottleTimeMs", INT32),
        between(0, 3, "ErrorCode", INT16),
        between(1, 3, "ErrorMessage", STRING),
        between(0, 3, "NodeId", INT32),
        between(0, 3, "Host", STRING),
        between(0, 3, "Port", INT32),
        since(
            4,
            "Coordinators",
            array(&shape::<find_coordinator_response::Coordinator>(
                &[
                    since(4, "Key", STRING),
                    since(4, "NodeId", INT32),
                    since(4, "Host", STRING),
                    since(4, "Port", INT32),
                    since(4, "ErrorCode", INT16),
                    since(4, "ErrorMessage", STRING),
                ],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static DESCRIBE_CLUSTER_REQUEST: Message = message::<DescribeClusterRequest>(
    "DescribeClusterRequest",
    0,
    2,
    0,
    &[
        since(0, "IncludeClusterAuthorizedOperations", BOOL),
        since(1, "EndpointType", INT8),
        since(2, "IncludeFencedBrokers", BOOL),
    ],
    &[],
);

pub(super) static DESCRIBE_CLUSTER_RESPONSE: Message = message::<DescribeClusterResponse>(
    "DescribeClusterResponse",
    0,
    2,
    0,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(0, "ErrorMessage", STRING),
        since(1, "EndpointType", INT8),
        since(0, "ClusterId", STRING),
        since(0, "ControllerId", INT32),
        since(
            0,
            "Brokers",
            array(&shape::<describe_cluster_response::DescribeClusterBroker>(
                &[
                    since(0, "BrokerId", INT32),
                    since(0, "Host", STRING),
                    since(0, "Port", INT32),
                    since(0, "Rack", STRING),
                    since(2, "IsFenced", BOOL),
                ],
                &[],
            )),
        ),
        since(0, "ClusterAuthorizedOperations", INT32),
    ],
    &[],
);

pub(super) static SASL_HANDSHAKE_REQUEST: Message =
    message::<SaslHandshakeRequest>("SaslHandshakeRequest", 0, 1, NEVER, &[since(0, "Mechanism", STRING)], &[]);

pub(super) static SASL_HANDSHAKE_RESPONSE: Message = message::<SaslHandshakeResponse>(
    "SaslHandshakeResponse",
    0,
    1,
    NEVER,
    &[since(0, "ErrorCode", INT16), since(0, "Mechanisms", STRINGS)],
    &[],
);

pub(super) static SASL_AUTHENTICATE_REQUEST: Message =
    message::<SaslAuthenticateRequest>("SaslAuthenticateRequest", 0, 2, 2, &[since(0, "AuthBytes", BYTES)], &[]);

pub(super) static SASL_AUTHENTICATE_RESPONSE: Message = message::<SaslAuthenticateResponse>(
    "SaslAuthenticateResponse",
    0,
    2,
    2,
    &[
        since(0, "ErrorCode", INT16),
        since(0, "ErrorMessage", STRING),
        since(0, "AuthBytes", BYTES),
        since(1, "SessionLifetimeMs", INT64),
    ],
    &[],
);
