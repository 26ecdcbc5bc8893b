//! Shapes of the data path: Produce, Fetch, ListOffsets, DeleteRecords.
//!
//! Field names, order and versions are those of Kafka's message schemas (`common/message/*.json`,
//! 4.3); left out are versions that kafka-protocol doesn't know.

use kafka_protocol::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse,
    ProduceRequest, ProduceResponse,
};
use kafka_protocol::messages::{
    delete_records_request, delete_records_response, fetch_request, fetch_response, list_offsets_request,
    list_offsets_response, produce_request, produce_response,
};

use crate::wire::shape::*;

pub(super) static PRODUCE_REQUEST: Message = message::<ProduceRequest>(
    "ProduceRequest",
    3,
    13,
    9,
    &[
        since(3, "TransactionalId", STRING),
        since(0, "Acks", INT16),
        since(0, "TimeoutMs", INT32),
        since(
            0,
            "TopicData",
            array(&shape::<produce_request::TopicProduceData>(
                &[
                    between(0, 12, "Name", STRING),
                    since(13, "TopicId", UUID),
                    since(
                        0,
                        "PartitionData",
                        array(&shape::<produce_request::PartitionProduceData>(
                            &[since(0, "Index", INT32), since(0, "Records", BYTES)],
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

pub(super) static PRODUCE_RESPONSE: Message = message::<ProduceResponse>(
    "ProduceResponse",
    3,
    13,
    9,
    &[
        since(
            0,
            "Responses",
            array(&shape::<produce_response::TopicProduceResponse>(
                &[
                    between(0, 12, "Name", STRING),
                    since(13, "TopicId", UUID),
                    since(
                        0,
                        "PartitionResponses",
                        array(&shape::<produce_response::PartitionProduceResponse>(
                            &[
                                since(0, "Index", INT32),
                                since(0, "ErrorCode", INT16),
                                since(0, "BaseOffset", INT64),
                                since(2, "LogAppendTimeMs", INT64),
                                since(5, "LogStartOffset", INT64),
                                since(
                                    8,
                                    "RecordErrors",
                                    array(&shape::<produce_response::BatchIndexAndErrorMessage>(
                                        &[since(8, "BatchIndex", INT32), since(8, "BatchIndexErrorMessage", STRING)],
                                        &[],
                                    )),
                                ),
                                since(8, "ErrorMessage", STRING),
                            ],
                            &[tagged(
                                0,
                                10,
                                "CurrentLeader",
                                structure(&shape::<produce_response::LeaderIdAndEpoch>(
                                    &[since(10, "LeaderId", INT32), since(10, "LeaderEpoch", INT32)],
                                    &[],
                                )),
                            )],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        since(1, "ThrottleTimeMs", INT32),
    ],
    &[tagged(
        0,
        10,
        "NodeEndpoints",
        array(&shape::<produce_response::NodeEndpoint>(
            &[
                since(10, "NodeId", INT32),
                since(10, "Host", STRING),
                since(10, "Port", INT32),
                since(10, "Rack", STRING),
            ],
            &[],
        )),
    )],
);

pub(super) static FETCH_REQUEST: Message = message::<FetchRequest>(
    "FetchRequest",
    4,
    18,
    12,
    &[
        between(0, 14, "ReplicaId", INT32),
        since(0, "MaxWaitMs", INT32),
        since(0, "MinBytes", INT32),
        since(3, "MaxBytes", INT32),
        since(4, "IsolationLevel", INT8),
        since(7, "SessionId", INT32),
        since(7, "SessionEpoch", INT32),
        since(
            0,
            "Topics",
            array(&shape::<fetch_request::FetchTopic>(
                &[
                    between(0, 12, "Topic", STRING),
                    since(13, "TopicId", UUID),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<fetch_request::FetchPartition>(
                            &[
                                since(0, "Partition", INT32),
                                since(9, "CurrentLeaderEpoch", INT32),
                                since(0, "FetchOffset", INT64),
                                since(12, "LastFetchedEpoch", INT32),
                                since(5, "LogStartOffset", INT64),
                                since(0, "PartitionMaxBytes", INT32),
                            ],
                            &[tagged(0, 17, "ReplicaDirectoryId", UUID), tagged(1, 18, "HighWatermark", INT64)],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        since(
            7,
            "ForgottenTopicsData",
            array(&shape::<fetch_request::ForgottenTopic>(
                &[between(7, 12, "Topic", STRING), since(13, "TopicId", UUID), since(7, "Partitions", INT32S)],
                &[],
            )),
        ),
        since(11, "RackId", STRING),
    ],
    &[
        tagged(0, 12, "ClusterId", STRING),
        tagged(
            1,
            15,
            "ReplicaState",
            structure(&shape::<fetch_request::ReplicaState>(
                &[since(15, "ReplicaId", INT32), since(15, "ReplicaEpoch", INT64)],
                &[],
            )),
        ),
    ],
);

pub(super) static FETCH_RESPONSE: Message = message::<FetchResponse>(
    "FetchResponse",
    4,
    18,
    12,
    &[
        since(1, "ThrottleTimeMs", INT32),
        since(7, "ErrorCode", INT16),
        since(7, "SessionId", INT32),
        since(
            0,
            "Responses",
            array(&shape::<fetch_response::FetchableTopicResponse>(
                &[
                    between(0, 12, "Topic", STRING),
                    since(13, "TopicId", UUID),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<fetch_response::PartitionData>(
                            &[
                                since(0, "PartitionIndex", INT32),
                                since(0, "ErrorCode", INT16),
                                since(0, "HighWatermark", INT64),
                                since(4, "LastStableOffset", INT64),
                                since(5, "LogStartOffset", INT64),
                                since(
                                    4,
                                    "AbortedTransactions",
                                    array(&shape::<fetch_response::AbortedTransaction>(
                                        &[since(4, "ProducerId", INT64), since(4, "FirstOffset", INT64)],
                                        &[],
                                    )),
                                ),
                                since(11, "PreferredReadReplica", INT32),
                                since(0, "Records", BYTES),
                            ],
                            &[
                                tagged(
                                    0,
                                    12,
                                    "DivergingEpoch",
                                    structure(&shape::<fetch_response::EpochEndOffset>(
                                        &[since(12, "Epoch", INT32), since(12, "EndOffset", INT64)],
                                        &[],
                                    )),
                                ),
                                tagged(
                                    1,
                                    12,
                                    "CurrentLeader",
                                    structure(&shape::<fetch_response::LeaderIdAndEpoch>(
                                        &[since(12, "LeaderId", INT32), since(12, "LeaderEpoch", INT32)],
                                        &[],
                                    )),
                                ),
                                tagged(
                                    2,
                                    12,
                                    "SnapshotId",
                                    structure(&shape::<fetch_response::SnapshotId>(
                                        &[since(0, "EndOffset", INT64), since(0, "Epoch", INT32)],
                                        &[],
                                    )),
                                ),
                            ],
                        )),
                    ),
                ],
                &[],
            )),
        ),
    ],
    &[tagged(
        0,
        16,
        "NodeEndpoints",
        array(&shape::<fetch_response::NodeEndpoint>(
            &[
                since(16, "NodeId", INT32),
                since(16, "Host", STRING),
                since(16, "Port", INT32),
                since(16, "Rack", STRING),
            ],
            &[],
        )),
    )],
);

pub(super) static LIST_OFFSETS_REQUEST: Message = message::<ListOffsetsRequest>(
    "ListOffsetsRequest",
    1,
    10,
    6,
    &[
        since(0, "ReplicaId", INT32),
        since(2, "IsolationLevel", INT8),
        since(
            0,
            "Topics",
            array(&shape::<list_offsets_request::ListOffsetsTopic>(
                &[
                    since(0, "Name", STRING),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<list_offsets_request::ListOffsetsPartition>(
                            &[
                                since(0, "PartitionIndex", INT32),
                                since(4, "CurrentLeaderEpoch", INT32),
                                since(0, "Timestamp", INT64),
                            ],
                            &[],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        since(10, "TimeoutMs", INT32),
    ],
    &[],
);

pub(super) static LIST_OFFSETS_RESPONSE: Message = message::<ListOffsetsResponse>(
    "ListOffsetsResponse",
    1,
    10,
    6,
    &[
        since(2, "ThrottleTimeMs", INT32),
        since(
            0,
            "Topics",
            array(&shape::<list_offsets_response::ListOffsetsTopicResponse>(
                &[
                    since(0, "Name", STRING),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<list_offsets_response::ListOffsetsPartitionResponse>(
                            &[
                                since(0, "PartitionIndex", INT32),
                                since(0, "ErrorCode", INT16),
                                since(1, "Timestamp", INT64),
                                since(1, "Offset", INT64),
                                since(4, "LeaderEpoch", INT32),
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

pub(super) static DELETE_RECORDS_REQUEST: Message = message::<DeleteRecordsRequest>(
    "DeleteRecordsRequest",
    0,
    2,
    2,
    &[
        since(
            0,
            "Topics",
            array(&shape::<delete_records_request::DeleteRecordsTopic>(
                &[
                    since(0, "Name", STRING),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<delete_records_request::DeleteRecordsPartition>(
                            &[since(0, "PartitionIndex", INT32), since(0, "Offset", INT64)],
                            &[],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        since(0, "TimeoutMs", INT32),
    ],
    &[],
);

pub(super) static DELETE_RECORDS_RESPONSE: Message = message::<DeleteRecordsResponse>(
    "DeleteRecordsResponse",
    0,
    2,
    2,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(
            0,
            "Topics",
            array(&shape::<delete_records_response::DeleteRecordsTopicResult>(
                &[
                    since(0, "Name", STRING),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<delete_records_response::DeleteRecordsPartitionResult>(
                            &[
                                since(0, "PartitionIndex", INT32),
                                since(0, "LowWatermark", INT64),
                                since(0, "ErrorCode", INT16),
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
