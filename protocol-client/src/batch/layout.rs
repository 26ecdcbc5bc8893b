//! Where each field of a version 2 batch header stands, in bytes from the start of the batch.
//!
//! The checksum covers everything after itself: base offset and leader epoch stand outside, so that
//! a broker places a batch in its log without computing the checksum again.
//!
//! Source: `RecordBatch` in the "Message Format" chapter of the Kafka documentation.

/// Bytes of a batch before its first record.
pub const BATCH_OVERHEAD_BYTES: usize = 61;

/// The least bytes that one record takes: its length, attributes, timestamp delta, offset delta, and
/// key length, value length and header count, one byte each.
pub const RECORD_BYTES_MIN: usize = 7;

/// The least bytes that one header of a record takes: two lengths.
pub(super) const HEADER_BYTES_MIN: usize = 2;

/// Bytes before the part that the batch length counts: base offset and the length itself.
pub(super) const LENGTH_PREFIX_BYTES: usize = 12;

pub(super) const BASE_OFFSET: usize = 0;
pub(super) const BATCH_LENGTH: usize = 8;
pub(super) const LEADER_EPOCH: usize = 12;
pub(super) const MAGIC: usize = 16;
pub(super) const CRC: usize = 17;
pub(super) const ATTRIBUTES: usize = 21;
pub(super) const LAST_OFFSET_DELTA: usize = 23;
pub(super) const BASE_TIMESTAMP: usize = 27;
pub(super) const MAX_TIMESTAMP: usize = 35;
pub(super) const PRODUCER_ID: usize = 43;
pub(super) const PRODUCER_EPOCH: usize = 51;
pub(super) const BASE_SEQUENCE: usize = 53;
pub(super) const RECORD_COUNT: usize = 57;

pub(super) const MAGIC_V2: i8 = 2;

pub(super) const COMPRESSION_MASK: i16 = 0b0000_0111;
pub(super) const LOG_APPEND_TIME: i16 = 0b0000_1000;
pub(super) const TRANSACTIONAL: i16 = 0b0001_0000;
pub(super) const CONTROL: i16 = 0b0010_0000;

/// Reads a big-endian field of a header; the caller has checked that the header is whole.
pub(super) fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&header[at..at + N]);
    value
}

/// Overwrites a field of a header; the caller owns a buffer of at least the header's size.
pub(super) fn put_field<const N: usize>(header: &mut [u8], at: usize, value: [u8; N]) {
    header[at..at + N].copy_from_slice(&value);
}
