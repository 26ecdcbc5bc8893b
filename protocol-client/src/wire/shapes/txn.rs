//! Shapes of transactions and those who look at them.
//!
//! Field names, order and versions are those of Kafka's message schemas (`common/message/*.json`,
//! 4.3); left out are versions that kafka-protocol doesn't know.

use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, DescribeProducersRequest, DescribeProducersResponse,
    DescribeTransactionsRequest, DescribeTransactionsResponse, EndTxnRequest, EndTxnResponse, InitProducerIdRequest,
    InitProducerIdResponse, ListTransactionsRequest, ListTransactionsResponse,
};
use kafka_protocol::messages::{
    add_partitions_to_txn_request, add_partitions_to_txn_response, describe_producers_request,
    describe_producers_response, describe_transactions_response, list_transactions_response,
};

use crate::wire::shape::*;

pub(super) static INIT_PRODUCER_ID_REQUEST: Message = message::<InitProducerIdRequest>(
    "InitProducerIdRequest",
    0,
    5,
    2,
    &[
        since(0, "TransactionalId", STRING),
        since(0, "TransactionTimeoutMs", INT32),
        since(3, "ProducerId", INT64),
        since(3, "ProducerEpoch", INT16),
        since(6, "Enable2Pc", BOOL),
        since(6, "KeepPreparedTxn", BOOL),
    ],
    &[],
);

pub(super) static INIT_PRODUCER_ID_RESPONSE: Message = message::<InitProducerIdResponse>(
    "InitProducerIdResponse",
    0,
    5,
    2,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(0, "ProducerId", INT64),
        since(0, "ProducerEpoch", INT16),
        since(6, "OngoingTxnProducerId", INT64),
        since(6, "OngoingTxnProducerEpoch", INT16),
    ],
    &[],
);

pub(super) static ADD_PARTITIONS_TO_TXN_REQUEST: Message = message::<AddPartitionsToTxnRequest>(
    "AddPartitionsToTxnRequest",
    0,
    5,
    3,
    &[
        since(
            4,
            "Transactions",
            array(&shape::<add_partitions_to_txn_request::AddPartitionsToTxnTransaction>(
                &[
                    since(4, "TransactionalId", STRING),
                    since(4, "ProducerId", INT64),
                    since(4, "ProducerEpoch", INT16),
                    since(4, "VerifyOnly", BOOL),
                    since(
                        4,
                        "Topics",
                        array(&shape::<add_partitions_to_txn_request::AddPartitionsToTxnTopic>(
                            &[since(0, "Name", STRING), since(0, "Partitions", INT32S)],
                            &[],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        between(0, 3, "V3AndBelowTransactionalId", STRING),
        between(0, 3, "V3AndBelowProducerId", INT64),
        between(0, 3, "V3AndBelowProducerEpoch", INT16),
        between(
            0,
            3,
            "V3AndBelowTopics",
            array(&shape::<add_partitions_to_txn_request::AddPartitionsToTxnTopic>(
                &[since(0, "Name", STRING), since(0, "Partitions", INT32S)],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static ADD_PARTITIONS_TO_TXN_RESPONSE: Message = message::<AddPartitionsToTxnResponse>(
    "AddPartitionsToTxnResponse",
    0,
    5,
    3,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(4, "ErrorCode", INT16),
        since(
            4,
            "ResultsByTransaction",
            array(&shape::<add_partitions_to_txn_response::AddPartitionsToTxnResult>(
                &[
                    since(4, "TransactionalId", STRING),
                    since(
                        4,
                        "TopicResults",
                        array(&shape::<add_partitions_to_txn_response::AddPartitionsToTxnTopicResult>(
                            &[
                                since(0, "Name", STRING),
                                since(
                                    0,
                                    "ResultsByPartition",
                                    array(&shape::<add_partitions_to_txn_response::AddPartitionsToTxnPartitionResult>(
                                        &[since(0, "PartitionIndex", INT32), since(0, "PartitionErrorCode", INT16)],
                                        &[],
                                    )),
                                ),
                            ],
                            &[],
                        )),
                    ),
                ],
                &[],
            )),
        ),
        between(
            0,
            3,
            "ResultsByTopicV3AndBelow",
            array(&shape::<add_partitions_to_txn_response::AddPartitionsToTxnTopicResult>(
                &[
                    since(0, "Name", STRING),
                    since(
                        0,
                        "ResultsByPartition",
                        array(&shape::<add_partitions_to_txn_response::AddPartitionsToTxnPartitionResult>(
                            &[since(0, "PartitionIndex", INT32), since(0, "PartitionErrorCode", INT16)],
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

pub(super) static END_TXN_REQUEST: Message = message::<EndTxnRequest>(
    "EndTxnRequest",
    0,
    5,
    3,
    &[
        since(0, "TransactionalId", STRING),
        since(0, "ProducerId", INT64),
        since(0, "ProducerEpoch", INT16),
        since(0, "Committed", BOOL),
    ],
    &[],
);

pub(super) static END_TXN_RESPONSE: Message = message::<EndTxnResponse>(
    "EndTxnResponse",
    0,
    5,
    3,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(5, "ProducerId", INT64),
        since(5, "ProducerEpoch", INT16),
    ],
    &[],
);

pub(super) static DESCRIBE_TRANSACTIONS_REQUEST: Message = message::<DescribeTransactionsRequest>(
    "DescribeTransactionsRequest",
    0,
    0,
    0,
    &[since(0, "TransactionalIds", STRINGS)],
    &[],
);

pub(super) static DESCRIBE_TRANSACTIONS_RESPONSE: Message = message::<DescribeTransactionsResponse>(
    "DescribeTransactionsResponse",
    0,
    0,
    0,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(
            0,
            "TransactionStates",
            array(&shape::<describe_transactions_response::TransactionState>(
                &[
                    since(0, "ErrorCode", INT16),
                    since(0, "TransactionalId", STRING),
                    since(0, "TransactionState", STRING),
                    since(0, "TransactionTimeoutMs", INT32),
                    since(0, "TransactionStartTimeMs", INT64),
                    since(0, "ProducerId", INT64),
                    since(0, "ProducerEpoch", INT16),
                    since(
                        0,
                        "Topics",
                        array(&shape::<describe_transactions_response::TopicData>(
                            &[since(0, "Topic", STRING), since(0, "Partitions", INT32S)],
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

pub(super) static LIST_TRANSACTIONS_REQUEST: Message = message::<ListTransactionsRequest>(
    "ListTransactionsRequest",
    0,
    2,
    0,
    &[
        since(0, "StateFilters", STRINGS),
        since(0, "ProducerIdFilters", INT64S),
        since(1, "DurationFilter", INT64),
        since(2, "TransactionalIdPattern", STRING),
    ],
    &[],
);

pub(super) static LIST_TRANSACTIONS_RESPONSE: Message = message::<ListTransactionsResponse>(
    "ListTransactionsResponse",
    0,
    2,
    0,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(0, "ErrorCode", INT16),
        since(0, "UnknownStateFilters", STRINGS),
        since(
            0,
            "TransactionStates",
            array(&shape::<list_transactions_response::TransactionState>(
                &[
                    since(0, "TransactionalId", STRING),
                    since(0, "ProducerId", INT64),
                    since(0, "TransactionState", STRING),
                ],
                &[],
            )),
        ),
    ],
    &[],
);

pub(super) static DESCRIBE_PRODUCERS_REQUEST: Message = message::<DescribeProducersRequest>(
    "DescribeProducersRequest",
    0,
    0,
    0,
    &[since(
        0,
        "Topics",
        array(&shape::<describe_producers_request::TopicRequest>(
            &[since(0, "Name", STRING), since(0, "PartitionIndexes", INT32S)],
            &[],
        )),
    )],
    &[],
);

pub(super) static DESCRIBE_PRODUCERS_RESPONSE: Message = message::<DescribeProducersResponse>(
    "DescribeProducersResponse",
    0,
    0,
    0,
    &[
        since(0, "ThrottleTimeMs", INT32),
        since(
            0,
            "Topics",
            array(&shape::<describe_producers_response::TopicResponse>(
                &[
                    since(0, "Name", STRING),
                    since(
                        0,
                        "Partitions",
                        array(&shape::<describe_producers_response::PartitionResponse>(
                            &[
                                since(0, "PartitionIndex", INT32),
                                since(0, "ErrorCode", INT16),
                                since(0, "ErrorMessage", STRING),
                                since(
                                    0,
                                    "ActiveProducers",
                                    array(&shape::<describe_producers_response::ProducerState>(
                                        &[
                                            since(0, "ProducerId", INT64),
                                            since(0, "ProducerEpoch", INT32),
                                            since(0, "LastSequence", INT32),
                                            since(0, "LastTimestamp", INT64),
                                            since(0, "CoordinatorEpoch", INT32),
                                            since(0, "CurrentTxnStartOffset", INT64),
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
            )),
        ),
    ],
    &[],
);
