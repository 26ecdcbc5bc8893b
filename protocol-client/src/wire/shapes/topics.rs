//! Shapes of topics and their settings.
//!
//! Field names, order and versions are those of Kafka's message schemas (`common/message/*.json`,
//! 4.3); left out are versions that kafka-protocol doesn't know.

use kafka_protocol::messages::{
    CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse, DescribeConfigsRequest,
    DescribeConfigsResponse, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};
use kafka_protocol::messages::{
    create_topics_request, create_topics_response, delete_topics_request, delete_topics_response,
    describe_configs_request, describe_configs_response, incremental_alter_configs_request,
    incremental_alter_configs_response,
};

use crate::wire::shape::*;

pub(super) static CREATE_TOPICS_REQUEST: Message = message::<CreateTopicsRequest>(
    "CreateTopicsRequest",
    2,
    7,
    5,
    &[
        since(
            0,
            "Topics",
            array(&shape::<create_topics_request::CreatableTopic>(
                &[
                    since(0, "Name", STRING),
                    since(0, "NumPartitions", INT32),
                    since(0, "ReplicationFactor", INT16),
                    since(
                        0,
                        "Assignments",
                        array(&shape::<create_topics_request::CreatableReplicaAssignment>(
                            &[since(0, "PartitionIndex", INT32), since(0, "BrokerIds", INT32S)],
                            &[],
                        )),
                    ),
                    since(
                        0,
                        "Configs",
                        array(&shape::<create_topics_request::CreatableTopicConfig>(
                            &[since(0, "Name", STRING), since(0, "Value", STRING)],
                            &[],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        since(0, "TimeoutMs", INT32),
        since(1, "ValidateOnly", BOOL),
    ],
    &[],
);

pub(super) static CREATE_TOPICS_RESPONSE: Message = message::<CreateTopicsResponse>(
    "CreateTopicsResponse",
    2,
    7,
    5,
    &[
        since(2, "ThrottleTimeMs", INT32),
        since(
            0,
            "Topics",
            array(&shape::<create_topics_response::CreatableTopicResult>(
                &[
                    since(0, "Name", STRING),
                    since(7, "TopicId", UUID),
                    since(0, "ErrorCode", INT16),
                    since(1, "ErrorMessage", STRING),
                    since(5, "NumPartitions", INT32),
                    since(5, "ReplicationFactor", INT16),
                    since(
                        5,
                        "Configs",
                        array(&shape::<create_topics_response::CreatableTopicConfigs>(
                            &[
                                since(5, "Name", STRING),
                                since(5, "Value", STRING),
                                since(5, "ReadOnly", BOOL),
                                since(5, "ConfigSource", INT8),
                                since(5, "IsSensitive", BOOL),
                            ],
                            &[],
                        )),
                    ),
                ],
                &[tagged(0, 5, "TopicConfigErrorCode", INT16)],
            )),
        ),
    ],
    &[],
);

pub(super) static DELETE_TOPICS_REQUEST: Message = message::<DeleteTopicsRequest>(
    "DeleteTopicsRequest",
    1,
    6,
    4,
    &[
        since(
            6,
            "Topics",
            array(&shape::<delete_topics_request::DeleteTopicState>(
                &[since(6, "Name", STRING), since(6, "TopicId", UUID)],
                &[],
            )),
        ),
        between(0, 5, "TopicNames", STRINGS),
        since(0, "TimeoutMs", INT32),
    ],
    &[],
);

pub(super) static DELETE_TOPICS_RESPONSE: Message = message::<DeleteTopicsResponse>(
    "DeleteTopicsResponse",
    1,
    6,
    4,
    &[
        since(1, "ThrottleTimeMs", INT32),
        since(
            0,
            "Responses",
            array(&shape::<delete_topics_response::DeletableTopicResult>(
                &[
                    since(0, "Name", STRING),
                    since(6, "TopicId", UUID),
                    since(0, "ErrorCode", INT16),
                    since(5, "ErrorMessage", STRING),
                ],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static DESCRIBE_CONFIGS_REQUEST: Message = message::<DescribeConfigsRequest>(
    "DescribeConfigsRequest",
    1,
    4,
    4,
    &[
        since(
            0,
            "Resources",
            array(&shape::<describe_configs_request::DescribeConfigsResource>(
                &[
                    since(0, "ResourceType", INT8),
                    since(0, "ResourceName", STRING),
                    since(0, "ConfigurationKeys", STRINGS),
                ],
                &[],
            )),
        ),
        since(1, "IncludeSynonyms", BOOL),
        since(3, "IncludeDocumentation", BOOL),
    ],
    &[],
);

pub(super) static DESCRIBE_CONFIGS_RESPONSE: Message = message::<DescribeConfigsResponse>(
    "DescribeConfigsResponse",
    1,
    4,
    4,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(
            0,
            "Results",
            array(&shape::<describe_configs_response::DescribeConfigsResult>(
                &[
                    since(0, "ErrorCode", INT16),
                    since(0, "ErrorMessage", STRING),
                    since(0, "ResourceType", INT8),
                    since(0, "ResourceName", STRING),
                    since(
                        0,
                        "Configs",
                        array(&shape::<describe_configs_response::DescribeConfigsResourceResult>(
                            &[
                                since(0, "Name", STRING),
                                since(0, "Value", STRING),
                                since(0, "ReadOnly", BOOL),
                                since(1, "ConfigSource", INT8),
                                since(0, "IsSensitive", BOOL),
                                since(
                                    1,
                                    "Synonyms",
                                    array(&shape::<describe_configs_response::DescribeConfigsSynonym>(
                                        &[
                                            since(1, "Name", STRING),
                                            since(1, "Value", STRING),
                                            since(1, "Source", INT8),
                                        ],
                                        &[],
                                    )),
                                ),
                                since(3, "ConfigType", INT8),
                                since(3, "Documentation", STRING),
                            ],
                            &[],
                        )),
                    ),
                ],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static INCREMENTAL_ALTER_CONFIGS_REQUEST: Message = message::<IncrementalAlterConfigsRequest>(
    "IncrementalAlterConfigsRequest",
    0,
    1,
    1,
    &[
        since(
            0,
            "Resources",
            array(&shape::<incremental_alter_configs_request::AlterConfigsResource>(
                &[
                    since(0, "ResourceType", INT8),
                    since(0, "ResourceName", STRING),
                    since(
                        0,
                        "Configs",
                        array(&shape::<incremental_alter_configs_request::AlterableConfig>(
                            &[since(0, "Name", STRING), since(0, "ConfigOperation", INT8), since(0, "Value", STRING)],
                            &[],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        since(0, "ValidateOnly", BOOL),
    ],
    &[],
);

pub(super) static INCREMENTAL_ALTER_CONFIGS_RESPONSE: Message = message::<IncrementalAlterConfigsResponse>(
    "IncrementalAlterConfigsResponse",
    0,
    1,
    1,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(
            0,
            "Responses",
            array(&shape::<incremental_alter_configs_response::AlterConfigsResourceResponse>(
                &[
                    since(0, "ErrorCode", INT16),
                    since(0, "ErrorMessage", STRING),
                    since(0, "ResourceType", INT8),
                    since(0, "ResourceName", STRING),
                ],
                &[],
            )),
        ),
    ],
    &[],
);
