//! Kafka's error codes: number, name, and what kind of retry each allows by itself.
//!
//! What to do about a code depends on the request that it answers; that is decided where requests
//! are made (for transactions in `txn`). Here stands only what Kafka says of the code alone.
//!
//! Source: "Error codes" of the protocol guide; the kinds are those of the exception classes in
//! `org.apache.kafka.common.protocol.Errors` 4.3.1 (`RetriableException`, `InvalidMetadataException`).

use std::fmt;

use Retry::{Final, None, Retriable, StaleMetadata};

/// What a code by itself says about asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No error.
    None,
    /// The same request can succeed later.
    Retriable,
    /// The same, once metadata was fetched anew: the leader or the topic has moved.
    StaleMetadata,
    /// Asking again gives the same answer.
    Final,
}

/// An error code as it stands in a response; displays as its name and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i16);

impl ErrorCode {
    /// No error.
    pub const NONE: Self = Self(0);

    /// Kafka's name of the code, `UNKNOWN` for a number that is not in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        row(self.0).map_or("UNKNOWN", |row| row.1)
    }

    /// What the code by itself says about asking again; an unknown one is final.
    #[must_use]
    pub fn retry(self) -> Retry {
        row(self.0).map_or(Final, |row| row.2)
    }

    /// Whether this is an error.
    #[must_use]
    pub fn is_error(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match row(self.0) {
            Some((number, name, _)) => write!(f, "{name} ({number})"),
            Option::None => write!(f, "UNKNOWN({})", self.0),
        }
    }
}

/// Kafka's name of a code, `UNKNOWN` for a number that is not in the table.
#[must_use]
pub fn name(code: i16) -> &'static str {
    ErrorCode(code).name()
}

/// What a code by itself says about asking again.
#[must_use]
pub fn retry(code: i16) -> Retry {
    ErrorCode(code).retry()
}

/// The table is without gaps from −1 on, so a code's place is its number plus one.
fn row(code: i16) -> Option<(i16, &'static str, Retry)> {
    let index = usize::try_from(i32::from(code) + 1).ok()?;
    CODES.get(index).copied()
}

#[rustfmt::skip] // one row per code
const CODES: &[(i16, &str, Retry)] = &[
    (-1, "UNKNOWN_SERVER_ERROR", Final),
    (0, "NONE", None),
    (1, "OFFSET_OUT_OF_RANGE", Final),
    (2, "CORRUPT_MESSAGE", Retriable),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", StaleMetadata),
    (4, "INVALID_FETCH_SIZE", Final),
    (5, "LEADER_NOT_AVAILABLE", StaleMetadata),
    (6, "NOT_LEADER_OR_FOLLOWER", StaleMetadata),
    (7, "REQUEST_TIMED_OUT", Retriable),
    (8, "BROKER_NOT_AVAILABLE", Final),
    (9, "REPLICA_NOT_AVAILABLE", StaleMetadata),
    (10, "MESSAGE_TOO_LARGE", Final),
    (11, "STALE_CONTROLLER_EPOCH", Final),
    (12, "OFFSET_METADATA_TOO_LARGE", Final),
    (13, "NETWORK_EXCEPTION", StaleMetadata),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", Retriable),
    (15, "COORDINATOR_NOT_AVAILABLE", Retriable),
    (16, "NOT_COORDINATOR", Retriable),
    (17, "INVALID_TOPIC_EXCEPTION", Final),
    (18, "RECORD_LIST_TOO_LARGE", Final),
    (19, "NOT_ENOUGH_REPLICAS", Retriable),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", Retriable),
    (21, "INVALID_REQUIRED_ACKS", Final),
    (22, "ILLEGAL_GENERATION", Final),
    (23, "INCONSISTENT_GROUP_PROTOCOL", Final),
    (24, "INVALID_GROUP_ID", Final),
    (25, "UNKNOWN_MEMBER_ID", Final),
    (26, "INVALID_SESSION_TIMEOUT", Final),
    (27, "REBALANCE_IN_PROGRESS", Final),
    (28, "INVALID_COMMIT_OFFSET_SIZE", Final),
    (29, "TOPIC_AUTHORIZATION_FAILED", Final),
    (30, "GROUP_AUTHORIZATION_FAILED", Final),
    (31, "CLUSTER_AUTHORIZATION_FAILED", Final),
    (32, "INVALID_TIMESTAMP", Final),
    (33, "UNSUPPORTED_SASL_MECHANISM", Final),
    (34, "ILLEGAL_SASL_STATE", Final),
    (35, "UNSUPPORTED_VERSION", Final),
    (36, "TOPIC_ALREADY_EXISTS", Final),
    (37, "INVALID_PARTITIONS", Final),
    (38, "INVALID_REPLICATION_FACTOR", Final),
    (39, "INVALID_REPLICA_ASSIGNMENT", Final),
    (40, "INVALID_CONFIG", Final),
    (41, "NOT_CONTROLLER", Retriable),
    (42, "INVALID_REQUEST", Final),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", Final),
    (44, "POLICY_VIOLATION", Final),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", Final),
    (46, "DUPLICATE_SEQUENCE_NUMBER", Final),
    (47, "INVALID_PRODUCER_EPOCH", Final),
    (48, "INVALID_TXN_STATE", Final),
    (49, "INVALID_PRODUCER_ID_MAPPING", Final),
    (50, "INVALID_TRANSACTION_TIMEOUT", Final),
    (51, "CONCURRENT_TRANSACTIONS", Retriable),
    (52, "TRANSACTION_COORDINATOR_FENCED", Final),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Final),
    (54, "SECURITY_DISABLED", Final),
    (55, "OPERATION_NOT_ATTEMPTED", Final),
    (56, "KAFKA_STORAGE_ERROR", StaleMetadata),
    (57, "LOG_DIR_NOT_FOUND", Final),
    (58, "SASL_AUTHENTICATION_FAILED", Final),
    (59, "UNKNOWN_PRODUCER_ID", Final),
    (60, "REASSIGNMENT_IN_PROGRESS", Final),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", Final),
    (62, "DELEGATION_TOKEN_NOT_FOUND", Final),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", Final),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", Final),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", Final),
    (66, "DELEGATION_TOKEN_EXPIRED", Final),
    (67, "INVALID_PRINCIPAL_TYPE", Final),
    (68, "NON_EMPTY_GROUP", Final),
    (69, "GROUP_ID_NOT_FOUND", Final),
    (70, "FETCH_SESSION_ID_NOT_FOUND", Retriable),
    (71, "INVALID_FETCH_SESSION_EPOCH", Retriable),
    (72, "LISTENER_NOT_FOUND", StaleMetadata),
    (73, "TOPIC_DELETION_DISABLED", Final),
    (74, "FENCED_LEADER_EPOCH", StaleMetadata),
    (75, "UNKNOWN_LEADER_EPOCH", Retriable),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", Final),
    (77, "STALE_BROKER_EPOCH", Final),
    (78, "OFFSET_NOT_AVAILABLE", Retriable),
    (79, "MEMBER_ID_REQUIRED", Final),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", StaleMetadata),
    (81, "GROUP_MAX_SIZE_REACHED", Final),
    (82, "FENCED_INSTANCE_ID", Final),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", StaleMetadata),
    (84, "ELECTION_NOT_NEEDED", StaleMetadata),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", Final),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", Final),
    (87, "INVALID_RECORD", Final),
    (88, "UNSTABLE_OFFSET_COMMIT", Retriable),
    (89, "THROTTLING_QUOTA_EXCEEDED", Retriable),
    (90, "PRODUCER_FENCED", Final),
    (91, "RESOURCE_NOT_FOUND", Final),
    (92, "DUPLICATE_RESOURCE", Final),
    (93, "UNACCEPTABLE_CREDENTIAL", Final),
    (94, "INCONSISTENT_VOTER_SET", Final),
    (95, "INVALID_UPDATE_VERSION", Final),
    (96, "FEATURE_UPDATE_FAILED", Final),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", Final),
    (98, "SNAPSHOT_NOT_FOUND", Final),
    (99, "POSITION_OUT_OF_RANGE", Final),
    (100, "UNKNOWN_TOPIC_ID", StaleMetadata),
    (101, "DUPLICATE_BROKER_REGISTRATION", Final),
    (102, "BROKER_ID_NOT_REGISTERED", Final),
    (103, "INCONSISTENT_TOPIC_ID", StaleMetadata),
    (104, "INCONSISTENT_CLUSTER_ID", Final),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", Final),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", Retriable),
    (107, "INELIGIBLE_REPLICA", Final),
    (108, "NEW_LEADER_ELECTED", Final),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", Final),
    (110, "FENCED_MEMBER_EPOCH", Final),
    (111, "UNRELEASED_INSTANCE_ID", Final),
    (112, "UNSUPPORTED_ASSIGNOR", Final),
    (113, "STALE_MEMBER_EPOCH", Final),
    (114, "MISMATCHED_ENDPOINT_TYPE", Final),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", Final),
    (116, "UNKNOWN_CONTROLLER_ID", Final),
    (117, "UNKNOWN_SUBSCRIPTION_ID", Final),
    (118, "TELEMETRY_TOO_LARGE", Final),
    (119, "INVALID_REGISTRATION", Final),
    (120, "TRANSACTION_ABORTABLE", Final),
    (121, "INVALID_RECORD_STATE", Final),
    (122, "SHARE_SESSION_NOT_FOUND", Retriable),
    (123, "INVALID_SHARE_SESSION_EPOCH", Retriable),
    (124, "FENCED_STATE_EPOCH", Final),
    (125, "INVALID_VOTER_KEY", Final),
    (126, "DUPLICATE_VOTER", Final),
    (127, "VOTER_NOT_FOUND", Final),
    (128, "INVALID_REGULAR_EXPRESSION", Final),
    (129, "REBOOTSTRAP_REQUIRED", Final),
    (130, "STREAMS_INVALID_TOPOLOGY", Final),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", Final),
    (132, "STREAMS_TOPOLOGY_FENCED", Final),
    (133, "SHARE_SESSION_LIMIT_REACHED", Retriable),
];

/// The same codes as constants, to compare with.
#[allow(missing_docs, reason = "the names are Kafka's and say it all")]
pub mod codes {
    pub const UNKNOWN_SERVER_ERROR: i16 = -1;
    pub const NONE: i16 = 0;
    pub const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub const CORRUPT_MESSAGE: i16 = 2;
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub const INVALID_FETCH_SIZE: i16 = 4;
    pub const LEADER_NOT_AVAILABLE: i16 = 5;
    pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
    pub const REQUEST_TIMED_OUT: i16 = 7;
    pub const BROKER_NOT_AVAILABLE: i16 = 8;
    pub const REPLICA_NOT_AVAILABLE: i16 = 9;
    pub const MESSAGE_TOO_LARGE: i16 = 10;
    pub const STALE_CONTROLLER_EPOCH: i16 = 11;
    pub const OFFSET_METADATA_TOO_LARGE: i16 = 12;
    pub const NETWORK_EXCEPTION: i16 = 13;
    pub const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
    pub const COORDINATOR_NOT_AVAILABLE: i16 = 15;
    pub const NOT_COORDINATOR: i16 = 16;
    pub const INVALID_TOPIC_EXCEPTION: i16 = 17;
    pub const RECORD_LIST_TOO_LARGE: i16 = 18;
    pub const NOT_ENOUGH_REPLICAS: i16 = 19;
    pub const NOT_ENOUGH_REPLICAS_AFTER_APPEND: i16 = 20;
    pub const INVALID_REQUIRED_ACKS: i16 = 21;
    pub const ILLEGAL_GENERATION: i16 = 22;
    pub const INCONSISTENT_GROUP_PROTOCOL: i16 = 23;
    pub const INVALID_GROUP_ID: i16 = 24;
    pub const UNKNOWN_MEMBER_ID: i16 = 25;
    pub const INVALID_SESSION_TIMEOUT: i16 = 26;
    pub const REBALANCE_IN_PROGRESS: i16 = 27;
    pub const INVALID_COMMIT_OFFSET_SIZE: i16 = 28;
    pub const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
    pub const GROUP_AUTHORIZATION_FAILED: i16 = 30;
    pub const CLUSTER_AUTHORIZATION_FAILED: i16 = 31;
    pub const INVALID_TIMESTAMP: i16 = 32;
    pub const UNSUPPORTED_SASL_MECHANISM: i16 = 33;
    pub const ILLEGAL_SASL_STATE: i16 = 34;
    pub const UNSUPPORTED_VERSION: i16 = 35;
    pub const TOPIC_ALREADY_EXISTS: i16 = 36;
    pub const INVALID_PARTITIONS: i16 = 37;
    pub const INVALID_REPLICATION_FACTOR: i16 = 38;
    pub const INVALID_REPLICA_ASSIGNMENT: i16 = 39;
    pub const INVALID_CONFIG: i16 = 40;
    pub const NOT_CONTROLLER: i16 = 41;
    pub const INVALID_REQUEST: i16 = 42;
    pub const UNSUPPORTED_FOR_MESSAGE_FORMAT: i16 = 43;
    pub const POLICY_VIOLATION: i16 = 44;
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    pub const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;
    pub const INVALID_PRODUCER_EPOCH: i16 = 47;
    pub const INVALID_TXN_STATE: i16 = 48;
    pub const INVALID_PRODUCER_ID_MAPPING: i16 = 49;
    pub const INVALID_TRANSACTION_TIMEOUT: i16 = 50;
    pub const CONCURRENT_TRANSACTIONS: i16 = 51;
    pub const TRANSACTION_COORDINATOR_FENCED: i16 = 52;
    pub const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i16 = 53;
    pub const SECURITY_DISABLED: i16 = 54;
    pub const OPERATION_NOT_ATTEMPTED: i16 = 55;
    pub const KAFKA_STORAGE_ERROR: i16 = 56;
    pub const LOG_DIR_NOT_FOUND: i16 = 57;
    pub const SASL_AUTHENTICATION_FAILED: i16 = 58;
    pub const UNKNOWN_PRODUCER_ID: i16 = 59;
    pub const REASSIGNMENT_IN_PROGRESS: i16 = 60;
    pub const DELEGATION_TOKEN_AUTH_DISABLED: i16 = 61;
    pub const DELEGATION_TOKEN_NOT_FOUND: i16 = 62;
    pub const DELEGATION_TOKEN_OWNER_MISMATCH: i16 = 63;
    pub const DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: i16 = 64;
    pub const DELEGATION_TOKEN_AUTHORIZATION_FAILED: i16 = 65;
    pub const DELEGATION_TOKEN_EXPIRED: i16 = 66;
    pub const INVALID_PRINCIPAL_TYPE: i16 = 67;
    pub const NON_EMPTY_GROUP: i16 = 68;
    pub const GROUP_ID_NOT_FOUND: i16 = 69;
    pub const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
    pub const INVALID_FETCH_SESSION_EPOCH: i16 = 71;
    pub const LISTENER_NOT_FOUND: i16 = 72;
    pub const TOPIC_DELETION_DISABLED: i16 = 73;
    pub const FENCED_LEADER_EPOCH: i16 = 74;
    pub const UNKNOWN_LEADER_EPOCH: i16 = 75;
    pub const UNSUPPORTED_COMPRESSION_TYPE: i16 = 76;
    pub const STALE_BROKER_EPOCH: i16 = 77;
    pub const OFFSET_NOT_AVAILABLE: i16 = 78;
    pub const MEMBER_ID_REQUIRED: i16 = 79;
    pub const PREFERRED_LEADER_NOT_AVAILABLE: i16 = 80;
    pub const GROUP_MAX_SIZE_REACHED: i16 = 81;
    pub const FENCED_INSTANCE_ID: i16 = 82;
    pub const ELIGIBLE_LEADERS_NOT_AVAILABLE: i16 = 83;
    pub const ELECTION_NOT_NEEDED: i16 = 84;
    pub const NO_REASSIGNMENT_IN_PROGRESS: i16 = 85;
    pub const GROUP_SUBSCRIBED_TO_TOPIC: i16 = 86;
    pub const INVALID_RECORD: i16 = 87;
    pub const UNSTABLE_OFFSET_COMMIT: i16 = 88;
    pub const THROTTLING_QUOTA_EXCEEDED: i16 = 89;
    pub const PRODUCER_FENCED: i16 = 90;
    pub const RESOURCE_NOT_FOUND: i16 = 91;
    pub const DUPLICATE_RESOURCE: i16 = 92;
    pub const UNACCEPTABLE_CREDENTIAL: i16 = 93;
    pub const INCONSISTENT_VOTER_SET: i16 = 94;
    pub const INVALID_UPDATE_VERSION: i16 = 95;
    pub const FEATURE_UPDATE_FAILED: i16 = 96;
    pub const PRINCIPAL_DESERIALIZATION_FAILURE: i16 = 97;
    pub const SNAPSHOT_NOT_FOUND: i16 = 98;
    pub const POSITION_OUT_OF_RANGE: i16 = 99;
    pub const UNKNOWN_TOPIC_ID: i16 = 100;
    pub const DUPLICATE_BROKER_REGISTRATION: i16 = 101;
    pub const BROKER_ID_NOT_REGISTERED: i16 = 102;
    pub const INCONSISTENT_TOPIC_ID: i16 = 103;
    pub const INCONSISTENT_CLUSTER_ID: i16 = 104;
    pub const TRANSACTIONAL_ID_NOT_FOUND: i16 = 105;
    pub const FETCH_SESSION_TOPIC_ID_ERROR: i16 = 106;
    pub const INELIGIBLE_REPLICA: i16 = 107;
    pub const NEW_LEADER_ELECTED: i16 = 108;
    pub const OFFSET_MOVED_TO_TIERED_STORAGE: i16 = 109;
    pub const FENCED_MEMBER_EPOCH: i16 = 110;
    pub const UNRELEASED_INSTANCE_ID: i16 = 111;
    pub const UNSUPPORTED_ASSIGNOR: i16 = 112;
    pub const STALE_MEMBER_EPOCH: i16 = 113;
    pub const MISMATCHED_ENDPOINT_TYPE: i16 = 114;
    pub const UNSUPPORTED_ENDPOINT_TYPE: i16 = 115;
    pub const UNKNOWN_CONTROLLER_ID: i16 = 116;
    pub const UNKNOWN_SUBSCRIPTION_ID: i16 = 117;
    pub const TELEMETRY_TOO_LARGE: i16 = 118;
    pub const INVALID_REGISTRATION: i16 = 119;
    pub const TRANSACTION_ABORTABLE: i16 = 120;
    pub const INVALID_RECORD_STATE: i16 = 121;
    pub const SHARE_SESSION_NOT_FOUND: i16 = 122;
    pub const INVALID_SHARE_SESSION_EPOCH: i16 = 123;
    pub const FENCED_STATE_EPOCH: i16 = 124;
    pub const INVALID_VOTER_KEY: i16 = 125;
    pub const DUPLICATE_VOTER: i16 = 126;
    pub const VOTER_NOT_FOUND: i16 = 127;
    pub const INVALID_REGULAR_EXPRESSION: i16 = 128;
    pub const REBOOTSTRAP_REQUIRED: i16 = 129;
    pub const STREAMS_INVALID_TOPOLOGY: i16 = 130;
    pub const STREAMS_INVALID_TOPOLOGY_EPOCH: i16 = 131;
    pub const STREAMS_TOPOLOGY_FENCED: i16 = 132;
    pub const SHARE_SESSION_LIMIT_REACHED: i16 = 133;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_stands_at_its_place() {
        for (index, (number, name, _)) in CODES.iter().enumerate() {
            assert_eq!(usize::try_from(number + 1), Ok(index), "{name}");
        }
    }

    #[test]
    fn unknown_number_shows_itself() {
        assert_eq!(ErrorCode(999).to_string(), "UNKNOWN(999)");
        assert_eq!(ErrorCode(i16::MIN).to_string(), "UNKNOWN(-32768)");
        assert_eq!(ErrorCode(i16::MAX).name(), "UNKNOWN");
        assert_eq!(ErrorCode(999).retry(), Final);
    }

    #[test]
    fn kinds_as_kafka_has_them() {
        assert_eq!(retry(codes::NOT_LEADER_OR_FOLLOWER), StaleMetadata);
        assert_eq!(retry(codes::CONCURRENT_TRANSACTIONS), Retriable);
        assert_eq!(retry(codes::PRODUCER_FENCED), Final);
        assert_eq!(retry(0), None);
        assert_eq!(name(-1), "UNKNOWN_SERVER_ERROR");
        assert_eq!(ErrorCode(48).to_string(), "INVALID_TXN_STATE (48)");
    }
}
