//! Administration: one file for each family of requests.
//!
//! [`Admin`] adds to [`Cluster`] only the requests; every method retries what is retriable until `default.api.timeout.ms`.

mod configs;
mod epoch;
mod fencing;
mod groups;
mod offsets;
mod producers;
mod topics;
mod transactions;

pub use configs::{ConfigChange, ConfigEntry};
pub use fencing::FencedProducer;
pub use groups::{GroupDescription, GroupMemberDescription, ListedGroup};
pub(crate) use offsets::Question;
pub use offsets::{ListedOffset, OffsetSpec};
pub use producers::ActiveProducer;
pub use topics::{NewTopic, TopicOutcome};
pub use transactions::{ListedTransaction, TransactionDescription, TransactionState};

use crate::cluster::Cluster;

/// Administrative requests over a [`Cluster`].
#[derive(Debug, Clone)]
pub struct Admin {
    cluster: Cluster,
}

impl Admin {
    /// Uses the cluster's connections.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster }
    }
}
