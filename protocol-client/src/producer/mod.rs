//! Producers: records in, transactions out.
//!
//! ```text
//! caller ── Stage (records → sealed batches, no I/O)
//!    │
//!    └─ TransactionalProducer ── Shared (machine + batches, one short lock) ◄──► driver task ◄──► Cluster
//! ```
//!
//! ```no_run
//! use oncewire_client::cluster::Cluster;
//! use oncewire_client::config::{ClientConfig, ProducerConfig};
//! use oncewire_client::producer::{ProducerRecord, TransactionalProducer};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = Cluster::connect(ClientConfig::new("localhost:9092")?).await?;
//! let producer = TransactionalProducer::new(cluster, ProducerConfig::new("orders-writer")?);
//! producer.init().await?;
//! let mut transaction = producer.transaction().await?;
//! transaction.send(ProducerRecord { topic: "orders", value: Some(b"one"), ..Default::default() }).await?;
//! transaction.send(ProducerRecord { topic: "audit", value: Some(b"one"), ..Default::default() }).await?;
//! transaction.commit().await?; // both are visible, or neither
//! # Ok(())
//! # }
//! ```
//!
//! All decisions about a transaction are those of the state machine in `oncewire-txn`. [`TransactionalProducer`] hands it
//! commands, the driver is the only place where it meets sockets. Left out: consume-process-produce (AddOffsetsToTxn,
//! TxnOffsetCommit), which a source connector does not need.
//!
//! Invariant: a batch's bytes are stamped with producer id, epoch and sequence once, and every retry sends the same bytes.
//! Sources: KIP-98, KIP-360, KIP-588, KIP-890, KIP-951.

mod coordinator;
mod counters;
mod driver;
mod error;
mod lane;
mod outbound;
mod partitioner;
mod partitions;
mod plain;
mod requests;
mod settle;
mod shared;
mod stage;
mod transaction;
mod transactional;

pub use counters::ProducerMetrics;
pub use error::{Failure, ProducerError};
pub use partitioner::{Partitioner, murmur2, partition_for_key};
pub use plain::{Delivery, PlainConfig, PlainProducer};
pub use stage::{Stage, StageError, StagedBatch};
pub use transaction::{ProducerRecord, Transaction};
pub use transactional::{Committed, ProducerState, TransactionalProducer};

pub use crate::batch::Header;
pub use oncewire_txn::ProducerIdentity;

use std::hash::BuildHasher;
use std::time::{SystemTime, UNIX_EPOCH};

/// `NAME (number)` of a Kafka error code.
fn code_name(code: i16) -> String {
    match kafka_protocol::error::ResponseError::try_from_code(code) {
        Some(kafka_protocol::error::ResponseError::Unknown(_)) => format!("unknown error code {code}"),
        Some(known) => format!("{} ({code})", constant_case(&format!("{known:?}"))),
        None => format!("NONE ({code})"),
    }
}

/// `NotLeaderOrFollower` → `NOT_LEADER_OR_FOLLOWER`, as Kafka's documentation writes it.
fn constant_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for (at, letter) in name.chars().enumerate() {
        if at > 0 && letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

/// A seed for choices that only have to differ between producers.
fn seed() -> u64 {
    std::hash::RandomState::new().hash_one(0_u8)
}

/// Milliseconds since 1970; 0 on a clock that stands before.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_as_kafka_writes_them() {
        assert_eq!(code_name(6), "NOT_LEADER_OR_FOLLOWER (6)");
        assert_eq!(code_name(-1), "UNKNOWN_SERVER_ERROR (-1)");
        assert_eq!(code_name(999), "unknown error code 999");
    }
}
