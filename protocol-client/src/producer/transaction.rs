//! A transaction as a value, for programs that send single records.

use super::error::ProducerError;
use super::partitioner::Partitioner;
use super::stage::Stage;
use super::transactional::{Committed, TransactionalProducer};
use crate::batch::Header;
use std::collections::HashMap;
use std::sync::Arc;

/// One record to send.
#[derive(Debug, Clone, Default)]
pub struct ProducerRecord<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition; `None` lets the partitioner choose by key.
    pub partition: Option<u32>,
    /// Milliseconds since 1970; `None` is now.
    pub timestamp_ms: Option<i64>,
    /// The key. `None` is null, which is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// The value. `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Headers, in order; names may repeat.
    pub headers: Vec<Header<'a>>,
}

/// An open transaction. Dropped without a commit or an abort, it can only be aborted: the next call to make on the producer
/// is [`TransactionalProducer::abort`].
pub struct Transaction<'a> {
    producer: &'a TransactionalProducer,
    stage: Stage,
    partitioner: Partitioner,
    counts: HashMap<Arc<str>, u32>,
    done: bool,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(producer: &'a TransactionalProducer) -> Self {
        Self {
            producer,
            stage: producer.stage(),
            partitioner: Partitioner::new(STICKY_BYTES, super::seed()),
            counts: HashMap::new(),
            done: false,
        }
    }

    /// Adds a record. Full batches go out at once; the rest goes with the commit.
    ///
    /// # Errors
    /// [`ProducerError::Stage`] and [`ProducerError::Metadata`] make the transaction abort-only, as does everything that
    /// [`TransactionalProducer::send`] says.
    ///
    /// # Cancel safety
    /// As [`TransactionalProducer::send`].
    pub async fn send(&mut self, record: ProducerRecord<'_>) -> Result<(), ProducerError> {
        let added = self.add(record).await;
        if let Err(error) = &added {
            self.producer.fail_open_transaction(&error.to_string());
        }
        added?;
        let full = self.stage.take_full();
        if full.is_empty() { Ok(()) } else { self.producer.send(full).await }
    }

    /// Sends what is left and commits.
    ///
    /// # Errors
    /// As [`TransactionalProducer::commit`]. The transaction has been aborted when the error leaves the producer usable.
    ///
    /// # Cancel safety
    /// As [`TransactionalProducer::commit`].
    pub async fn commit(mut self) -> Result<Committed, ProducerError> {
        let rest = self.stage.seal();
        if !rest.is_empty() {
            // A failure is remembered by the machine and comes back from the commit.
            let _ = self.producer.send(rest).await;
        }
        let committed = self.producer.commit().await;
        self.done = true;
        if let Err(error) = &committed
            && error.is_recoverable()
        {
            self.producer.abort().await?;
        }
        committed
    }

    /// Throws everything away.
    ///
    /// # Errors
    /// As [`TransactionalProducer::abort`].
    ///
    /// # Cancel safety
    /// As [`TransactionalProducer::abort`].
    pub async fn abort(mut self) -> Result<(), ProducerError> {
        self.done = true;
        self.producer.abort().await
    }

    async fn add(&mut self, record: ProducerRecord<'_>) -> Result<(), ProducerError> {
        let topic = match self.counts.get_key_value(record.topic) {
            Some((topic, _)) => topic.clone(),
            None => {
                let topic: Arc<str> = record.topic.into();
                let count = self.producer.partitions(record.topic).await?;
                self.counts.insert(topic.clone(), count);
                topic
            }
        };
        let count = self.counts.get(&topic).copied().unwrap_or(1);
        let size = record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
        let partition = match record.partition {
            Some(partition) => partition,
            None => self.partitioner.partition(&topic, count, record.key, size),
        };
        let timestamp_ms = record.timestamp_ms.unwrap_or_else(super::now_ms);
        self.stage.append(&topic, partition, timestamp_ms, record.key, record.value, &record.headers)?;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.producer.fail_open_transaction("the transaction was dropped without a commit");
        }
    }
}

/// After how many bytes a record without a key goes to another partition.
const STICKY_BYTES: usize = 16 * 1024;
