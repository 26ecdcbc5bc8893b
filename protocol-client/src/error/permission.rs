//! Which permission a broker missed when it answered with an authorization error. Pure.
//!
//! The answer names the kind of resource only; the operation follows from the request. Left out: what Kafka's own
//! programs ask for (replication, tokens, quotas).
//!
//! Source: "Operations and resources on protocols" of Kafka's security documentation.

use crate::wire::error_code::codes;

/// An operation on a kind of resource, in the words of Kafka's ACLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// `Topic`, `Group`, `TransactionalId` or `Cluster`.
    pub resource: &'static str,
    /// Such as `Read`; one that another one implies (`Describe` by `Read`) is the lesser one.
    pub operation: &'static str,
}

/// The permission that a request needs on the kind of resource that an error code is about; `None` for other codes.
#[must_use]
pub fn needed(api: &str, code: i16) -> Option<Permission> {
    let resource = match code {
        codes::TOPIC_AUTHORIZATION_FAILED => "Topic",
        codes::GROUP_AUTHORIZATION_FAILED => "Group",
        codes::TRANSACTIONAL_ID_AUTHORIZATION_FAILED => "TransactionalId",
        codes::CLUSTER_AUTHORIZATION_FAILED => "Cluster",
        _ => return None,
    };
    let operation = match (api, resource) {
        ("Produce" | "InitProducerId", "Cluster") => "IdempotentWrite",
        ("Produce" | "AddPartitionsToTxn" | "InitProducerId" | "EndTxn", _) => "Write",
        ("Fetch" | "DescribeProducers" | "JoinGroup" | "SyncGroup" | "Heartbeat" | "LeaveGroup", _) => "Read",
        ("CreateTopics", _) => "Create",
        ("DeleteTopics" | "DeleteRecords", _) => "Delete",
        ("DescribeConfigs", _) => "DescribeConfigs",
        ("IncrementalAlterConfigs", _) => "AlterConfigs",
        ("CreateAcls" | "DeleteAcls", _) => "Alter",
        _ => "Describe",
    };
    Some(Permission { resource, operation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_operation_follows_from_the_request_and_the_resource_from_the_code() {
        let of = |api, code| needed(api, code).map(|needed| (needed.resource, needed.operation));
        assert_eq!(of("JoinGroup", 30), Some(("Group", "Read")));
        assert_eq!(of("FindCoordinator", 30), Some(("Group", "Describe")));
        assert_eq!(of("FindCoordinator", 53), Some(("TransactionalId", "Describe")));
        assert_eq!(of("InitProducerId", 53), Some(("TransactionalId", "Write")));
        assert_eq!(of("InitProducerId", 31), Some(("Cluster", "IdempotentWrite")));
        assert_eq!(of("CreateTopics", 29), Some(("Topic", "Create")));
        assert_eq!(of("Metadata", 29), Some(("Topic", "Describe")));
        assert_eq!(of("JoinGroup", 25), None);
    }

    #[test]
    fn the_error_names_user_resource_and_operation() {
        let denied = || Error::broker("JoinGroup", 30, "group 'g'");
        let text = denied().for_user(Some("alice")).to_string();
        assert!(text.contains("group 'g'") && text.contains("user 'alice' the operation Read on this Group"), "{text}");
        assert!(denied().to_string().contains("the principal of this client"));
        assert_eq!(denied().missing_permission().map(|missing| missing.operation), Some("Read"));
        let other = Error::broker("JoinGroup", 25, "group 'g'").for_user(Some("alice"));
        assert!(other.missing_permission().is_none() && !other.to_string().contains("alice"));
    }

    #[test]
    fn a_groups_mistakes_come_with_what_to_change() {
        let text = |code| Error::broker("JoinGroup", code, "group 'g'").to_string();
        assert!(text(23).contains("group.id") && text(26).contains("session.timeout.ms"), "{} {}", text(23), text(26));
    }
}
