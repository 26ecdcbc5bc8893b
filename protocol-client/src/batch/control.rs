//! Control batches: the markers with which a transaction coordinator ends a transaction.
//!
//! A marker is a batch of its own with one record, written by the broker. Its key says commit or
//! abort; its value, the coordinator's epoch, matters to brokers only and is not read here.
//!
//! Source: KIP-98, "Control messages"; `EndTxnMarker.json` and `ControlRecordType` in Kafka.

use bytes::Bytes;

use super::decode::{Batch, DecodeError};
use super::encode::{BatchBuilder, BatchLimits, ProducerStamp, write_checksum};
use super::layout::{self, put_field};

const MARKER_KEY_VERSION: i16 = 0;
const MARKER_VALUE_VERSION: i16 = 0;
const ABORT: i16 = 0;
const COMMIT: i16 = 1;

/// What a control batch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlMarker {
    /// The producer's open transaction on this partition was aborted.
    Abort,
    /// It was committed.
    Commit,
    /// A control record for brokers (snapshots, leader changes), to be skipped.
    Other(i16),
}

impl ControlMarker {
    /// Reads the marker of a control batch.
    ///
    /// # Errors
    /// When the batch has no record (compaction never leaves such a batch under the last stable
    /// offset of a transaction that is still looked up), or its key is shorter than four bytes.
    pub fn from_batch(batch: &Batch) -> Result<Self, DecodeError> {
        let bad = |problem| DecodeError::BadRecord { base_offset: batch.base_offset, index: 0, problem };
        let mut records = batch.record_refs()?.ok_or_else(|| bad("compressed control batch"))?;
        let record = records.next().ok_or_else(|| bad("control batch without a record"))??;
        let key = record.key.ok_or_else(|| bad("control record without a key"))?;
        if key.len() < 4 {
            return Err(bad("control record with a short key"));
        }
        // Bytes 0 and 1 are the key's version: later versions keep the type where it is (KIP-98).
        Ok(match i16::from_be_bytes([key[2], key[3]]) {
            ABORT => Self::Abort,
            COMMIT => Self::Commit,
            other => Self::Other(other),
        })
    }

    fn number(self) -> i16 {
        match self {
            Self::Abort => ABORT,
            Self::Commit => COMMIT,
            Self::Other(number) => number,
        }
    }
}

/// Everything that a marker's batch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkerFields {
    /// Commit or abort.
    pub marker: ControlMarker,
    /// Where the marker stands in the partition.
    pub base_offset: i64,
    /// Epoch of the partition's leader.
    pub leader_epoch: i32,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Whose transaction ends.
    pub producer_id: i64,
    /// The producer's epoch: with transactions V2, already the next one.
    pub producer_epoch: i16,
    /// Epoch of the transaction coordinator.
    pub coordinator_epoch: i32,
}

/// Writes a marker's batch as a broker does.
#[must_use]
pub fn encode_marker(fields: MarkerFields) -> Bytes {
    let mut key = [0; 4];
    key[..2].copy_from_slice(&MARKER_KEY_VERSION.to_be_bytes());
    key[2..].copy_from_slice(&fields.marker.number().to_be_bytes());
    let mut value = [0; 6];
    value[..2].copy_from_slice(&MARKER_VALUE_VERSION.to_be_bytes());
    value[2..].copy_from_slice(&fields.coordinator_epoch.to_be_bytes());

    let mut builder = BatchBuilder::new(BatchLimits::default());
    builder
        .append(fields.timestamp_ms, Some(&key), Some(&value), &[])
        .expect("a marker of ten bytes fits an empty batch");
    let stamped = builder.seal().stamp(ProducerStamp {
        producer_id: fields.producer_id,
        producer_epoch: fields.producer_epoch,
        base_sequence: -1,
        transactional: true,
    });
    let mut batch = Vec::from(stamped);
    let attributes = layout::TRANSACTIONAL | layout::CONTROL;
    put_field(&mut batch, layout::ATTRIBUTES, attributes.to_be_bytes());
    put_field(&mut batch, layout::BASE_OFFSET, fields.base_offset.to_be_bytes());
    put_field(&mut batch, layout::LEADER_EPOCH, fields.leader_epoch.to_be_bytes());
    write_checksum(&mut batch);
    batch.into()
}
