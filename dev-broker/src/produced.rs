//! The checks that a broker makes on a record batch from a producer before it looks at any state.
//!
//! Left out on purpose: the records inside. A broker that only stores and returns batches need not decode them, and the
//! data path stays free of work per record. Kafka does read them: offset deltas, timestamps against the header, keys.
//!
//! Invariant: what passes both checks is exactly one whole batch of magic 2, base offset 0, with a right CRC. They
//! are two because Kafka looks at a transaction's partitions in between, and so answers its errors first. Source:
//! Kafka protocol guide, "Record Batch"; KIP-98 (one batch for each partition); KIP-110 (zstd).

use bytes::Bytes;
use kafka_protocol::ResponseError;
use oncewire_client::batch::{Batch, Compression, DecodeError, batches};

use crate::refusal::Refusal;

/// The base offset and the length field itself, which the length field does not count.
#[cfg(test)]
const LOG_OVERHEAD_BYTES: usize = 12;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;
const LOG_APPEND_TIME_BIT: u8 = 0x08;

/// Takes the batch that a producer sent for one partition: one, and of a known shape.
///
/// # Errors
/// INVALID_RECORD for none, several, or another format; CORRUPT_MESSAGE for bytes that are no batch.
pub(crate) fn open(records: &Bytes) -> Result<Batch, Refusal> {
    if records.is_empty() {
        return Err(invalid("a produce request must carry one record batch for each partition"));
    }
    if records.len() > MAGIC_AT && records[MAGIC_AT] != 2 {
        return Err(invalid("only record batches of magic 2 are accepted"));
    }
    let mut found = batches(records);
    let batch = found.next().ok_or_else(|| corrupt("the record batch is cut off"))?.map_err(refuse_undecodable)?;
    if found.remaining_bytes() > 0 {
        return Err(invalid("a produce request must carry exactly one record batch for each partition"));
    }
    Ok(batch)
}

/// Checks everything about a batch that its own bytes say.
///
/// # Errors
/// CORRUPT_MESSAGE for a wrong CRC, INVALID_RECORD for a batch that a producer may not send.
pub(crate) fn check(batch: &Batch) -> Result<(), Refusal> {
    batch.check_crc().map_err(refuse_undecodable)?;
    if batch.base_offset != 0 {
        return Err(invalid("the base offset of a produced batch must be 0"));
    }
    if batch.is_control() {
        return Err(invalid("clients may not write control batches"));
    }
    if matches!(batch.compression(), Compression::Unknown(_)) {
        return Err(Refusal::new(ResponseError::UnsupportedCompressionType, "unknown compression codec"));
    }
    if batch.record_count < 1 || i64::from(batch.record_count) != batch.last_offset + 1 {
        return Err(invalid("the record count does not match the last offset delta"));
    }
    if batch.producer_id >= 0 && (batch.base_sequence < 0 || batch.producer_epoch < 0) {
        return Err(invalid("a batch with a producer id must carry an epoch and a sequence number"));
    }
    if batch.is_transactional() && batch.producer_id < 0 {
        return Err(invalid("a transactional batch must carry a producer id"));
    }
    Ok(())
}

/// Compressed with zstd, which old versions of Produce may not carry?
pub(crate) fn is_zstd(batch: &Batch) -> bool {
    batch.compression() == Compression::Zstd
}

/// Compacted topics keep the last record of each key, so a record without one has no place there. The only check that
/// reads records, and for compressed batches decompresses them: compacted topics are small.
///
/// # Errors
/// INVALID_RECORD when a record has no key, CORRUPT_MESSAGE when one cannot be read.
pub(crate) fn check_keys(batch: &Batch) -> Result<(), Refusal> {
    for record in batch.records().map_err(refuse_undecodable)? {
        if record.map_err(refuse_undecodable)?.key.is_none() {
            return Err(invalid("compacted topic cannot accept a record without a key"));
        }
    }
    Ok(())
}

/// The batch with the broker's time as its only timestamp, as `message.timestamp.type=LogAppendTime` asks. Copies the
/// batch, because the CRC covers these fields.
pub(crate) fn with_log_append_time(batch: &Bytes, append_ms: i64) -> Bytes {
    let mut bytes = batch.to_vec();
    bytes[ATTRIBUTES_AT + 1] |= LOG_APPEND_TIME_BIT;
    bytes[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&append_ms.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[ATTRIBUTES_AT..]);
    bytes[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(bytes)
}

fn refuse_undecodable(error: DecodeError) -> Refusal {
    corrupt(&error.to_string())
}

fn corrupt(what: &str) -> Refusal {
    Refusal::new(ResponseError::CorruptMessage, what)
}

fn invalid(what: &str) -> Refusal {
    Refusal::new(ResponseError::InvalidRecord, what)
}

#[cfg(test)]
mod tests {
    use super::{ATTRIBUTES_AT, LOG_OVERHEAD_BYTES, MAGIC_AT, check_keys, open, with_log_append_time};
    use super::{Batch, Bytes, Refusal, ResponseError};
    use crate::sample::SampleBatch;

    fn check(records: &Bytes) -> Result<Batch, Refusal> {
        let batch = open(records)?;
        super::check(&batch)?;
        Ok(batch)
    }

    fn refused(records: impl Into<Bytes>) -> ResponseError {
        check(&records.into()).unwrap_err().code
    }

    #[test]
    fn a_sound_batch_passes() {
        let batch = check(&SampleBatch::plain(3).bytes()).unwrap();
        assert_eq!((batch.record_count, batch.producer_id, batch.is_transactional()), (3, -1, false));
    }

    #[test]
    fn a_flipped_byte_after_the_crc_is_corrupt() {
        let whole = SampleBatch::plain(3).bytes();
        for at in ATTRIBUTES_AT..whole.len() {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1;
            assert_eq!(refused(bytes), ResponseError::CorruptMessage);
        }
    }

    #[test]
    fn the_leader_epoch_is_outside_the_crc() {
        let mut bytes = SampleBatch::plain(3).bytes().to_vec();
        bytes[12..MAGIC_AT].copy_from_slice(&7_i32.to_be_bytes());
        assert!(check(&bytes.into()).is_ok());
    }

    #[test]
    fn two_batches_for_one_partition_are_refused() {
        let one = SampleBatch::plain(1).bytes();
        assert_eq!(refused([one.clone(), one].concat()), ResponseError::InvalidRecord);
    }

    #[test]
    fn control_batches_and_foreign_base_offsets_and_wrong_counts_are_refused() {
        let control = SampleBatch { control: true, ..SampleBatch::plain(1) };
        let offset = SampleBatch { base_offset: 5, ..SampleBatch::plain(1) };
        let count = SampleBatch { last_offset_delta: Some(4), ..SampleBatch::plain(3) };
        for batch in [control, offset, count] {
            assert_eq!(refused(batch.bytes()), ResponseError::InvalidRecord);
        }
    }

    #[test]
    fn a_hostile_length_is_corrupt_at_every_cut() {
        let whole = SampleBatch::plain(2).bytes();
        for cut in 1..whole.len() {
            assert_eq!(refused(whole.slice(..cut)), ResponseError::CorruptMessage, "cut at {cut}");
        }
        for length in [i32::MIN, -1, 0, 48, i32::MAX] {
            let mut bytes = whole.to_vec();
            bytes[8..LOG_OVERHEAD_BYTES].copy_from_slice(&length.to_be_bytes());
            assert_eq!(refused(bytes), ResponseError::CorruptMessage, "length {length}");
        }
    }

    #[test]
    fn a_record_without_key_has_no_place_in_a_compacted_topic() {
        let keyed = SampleBatch { keyed: true, ..SampleBatch::plain(2) };
        assert!(check_keys(&check(&keyed.bytes()).unwrap()).is_ok());
        let unkeyed = check(&SampleBatch::plain(2).bytes()).unwrap();
        assert_eq!(check_keys(&unkeyed).unwrap_err().code, ResponseError::InvalidRecord);
    }

    #[test]
    fn log_append_time_stands_in_the_header_under_a_right_crc() {
        let stamped = with_log_append_time(&SampleBatch::plain(2).bytes(), 77);
        let batch = check(&stamped).unwrap();
        assert_eq!(batch.max_timestamp_ms, 77);
        assert_eq!(batch.records().unwrap().next().unwrap().unwrap().timestamp_ms, 77);
    }
}
