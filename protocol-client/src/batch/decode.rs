//! Reads version 2 batches: a header at a time, then records as slices of the same bytes.
//!
//! Nothing is copied (but what comes out of a compressed batch) and nothing is allocated by a declared number. The one allocation per record is
//! the list of its headers, made after they were walked: 64 bytes for a header that takes at least 2
//! on the wire, and one record at a time.
//!
//! The header is kept whole, because a batch whose records were all compacted away still says which
//! offset comes next; a reader that looked only at records would stand still there.
//!
//! Source: "Message Format" of the Kafka documentation; KIP-32 for log append time.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::compress::{Compression, DECOMPRESSED_BYTES_MAX, DecompressError, decompress};
use super::layout::{self, BATCH_OVERHEAD_BYTES, HEADER_BYTES_MIN, RECORD_BYTES_MIN, field};
use super::sequence::sequence_after;
use super::varint::Cursor;

/// What is wrong with a batch. All of it is the peer's fault, or the disk's or network's behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// A batch of another format version.
    UnsupportedMagic {
        /// The batch's base offset as far as it can be trusted.
        base_offset: i64,
        /// The format version; this client reads 2.
        magic: i8,
    },
    /// A header field that no broker writes.
    BadHeader {
        /// The batch's base offset.
        base_offset: i64,
        /// Which field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// The bytes are not those that the checksum was made of.
    BadChecksum {
        /// The batch's base offset.
        base_offset: i64,
        /// The checksum in the header.
        declared: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A record that ends before its fields do, or whose fields contradict the batch.
    BadRecord {
        /// The batch's base offset.
        base_offset: i64,
        /// Which record of the batch, from 0.
        index: i32,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A compressed batch whose records don't come out.
    Compressed {
        /// The batch's base offset.
        base_offset: i64,
        /// The codec.
        compression: Compression,
        /// Why.
        problem: DecompressError,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedMagic { base_offset, magic } => {
                write!(f, "batch at offset {base_offset} has format version {magic}, only 2 is read")
            }
            Self::BadHeader { base_offset, field, value } => {
                write!(f, "batch at offset {base_offset} has {field} {value}")
            }
            Self::BadChecksum { base_offset, declared, computed } => write!(
                f,
                "batch at offset {base_offset} is corrupt: checksum {computed:08x}, header says {declared:08x}"
            ),
            Self::BadRecord { base_offset, index, problem } => {
                write!(f, "record {index} of the batch at offset {base_offset}: {problem}")
            }
            Self::Compressed { base_offset, compression, problem } => {
                write!(f, "batch at offset {base_offset}, compressed with {compression}: {problem}")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// Who set the timestamps of a batch's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer, for each record.
    CreateTime,
    /// The broker, one for the whole batch (`message.timestamp.type=LogAppendTime`).
    LogAppendTime,
}

/// Splits what a Fetch response holds for one partition into batches.
///
/// A broker may cut the last batch off at the response's size limit: it is left out, without error.
#[must_use]
pub fn batches(records: &Bytes) -> Batches {
    Batches { rest: records.clone() }
}

/// The iterator of [`batches`]; after an error it ends.
#[derive(Debug, Clone)]
pub struct Batches {
    rest: Bytes,
}

impl Batches {
    /// Bytes not yet read: after the last item, those of a batch that was cut off.
    #[must_use]
    pub fn remaining_bytes(&self) -> usize {
        self.rest.len()
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.len() <= layout::MAGIC {
            return None;
        }
        match Batch::split_from(&mut self.rest) {
            Ok(batch) => batch.map(Ok),
            Err(error) => {
                self.rest.clear();
                Some(Err(error))
            }
        }
    }
}

/// One batch: its header as fields, its records still as bytes.
#[derive(Debug, Clone)]
pub struct Batch {
    bytes: Bytes,
    attributes: i16,
    base_timestamp_ms: i64,
    last_offset_delta: i32,
    /// Offset of the first record when the batch was written; compaction may have removed it.
    pub base_offset: i64,
    /// Offset of the last record when the batch was written.
    pub last_offset: i64,
    /// Epoch of the partition's leader that appended the batch, −1 from a producer.
    pub leader_epoch: i32,
    /// −1 without idempotence.
    pub producer_id: i64,
    /// −1 without idempotence.
    pub producer_epoch: i16,
    /// Sequence number of the first record, −1 without idempotence and in control batches.
    pub base_sequence: i32,
    /// Records that are there now, which compaction may have made fewer than the offsets.
    pub record_count: i32,
    /// Who set the timestamps.
    pub timestamp_type: TimestampType,
    /// The greatest timestamp in milliseconds since 1970, −1 for none.
    pub max_timestamp_ms: i64,
}

impl Batch {
    /// Takes one batch off the front; `None` when it isn't whole.
    fn split_from(rest: &mut Bytes) -> Result<Option<Self>, DecodeError> {
        let base_offset = i64::from_be_bytes(field(rest, layout::BASE_OFFSET));
        let magic = i8::from_be_bytes(field(rest, layout::MAGIC));
        if magic != layout::MAGIC_V2 {
            return Err(DecodeError::UnsupportedMagic { base_offset, magic });
        }
        let length = i32::from_be_bytes(field(rest, layout::BATCH_LENGTH));
        let size = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(layout::LENGTH_PREFIX_BYTES))
            .filter(|size| *size >= BATCH_OVERHEAD_BYTES)
            .ok_or(DecodeError::BadHeader { base_offset, field: "batch length", value: i64::from(length) })?;
        if rest.len() < size {
            return Ok(None);
        }
        Self::from_whole(rest.split_to(size)).map(Some)
    }

    /// `bytes` is exactly one batch with a whole header.
    fn from_whole(bytes: Bytes) -> Result<Self, DecodeError> {
        let base_offset = i64::from_be_bytes(field(&bytes, layout::BASE_OFFSET));
        let attributes = i16::from_be_bytes(field(&bytes, layout::ATTRIBUTES));
        let last_offset_delta = i32::from_be_bytes(field(&bytes, layout::LAST_OFFSET_DELTA));
        let record_count = i32::from_be_bytes(field(&bytes, layout::RECORD_COUNT));
        let bad = |field, value| DecodeError::BadHeader { base_offset, field, value };
        if base_offset < 0 {
            return Err(bad("base offset", base_offset));
        }
        // One offset must remain after the batch, else the reader has nowhere to go on.
        let last_offset = base_offset
            .checked_add(i64::from(last_offset_delta))
            .filter(|last| last_offset_delta >= 0 && *last < i64::MAX)
            .ok_or(bad("last offset delta", i64::from(last_offset_delta)))?;
        if record_count < 0 || i64::from(record_count) > i64::from(last_offset_delta) + 1 {
            return Err(bad("record count", i64::from(record_count)));
        }
        Ok(Self {
            attributes,
            base_timestamp_ms: i64::from_be_bytes(field(&bytes, layout::BASE_TIMESTAMP)),
            last_offset_delta,
            base_offset,
            last_offset,
            leader_epoch: i32::from_be_bytes(field(&bytes, layout::LEADER_EPOCH)),
            producer_id: i64::from_be_bytes(field(&bytes, layout::PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(field(&bytes, layout::PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(field(&bytes, layout::BASE_SEQUENCE)),
            record_count,
            timestamp_type: match attributes & layout::LOG_APPEND_TIME {
                0 => TimestampType::CreateTime,
                _ => TimestampType::LogAppendTime,
            },
            max_timestamp_ms: i64::from_be_bytes(field(&bytes, layout::MAX_TIMESTAMP)),
            bytes,
        })
    }

    /// The offset at which reading goes on after this batch, whether records are left in it or not.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset + 1
    }

    /// Sequence number of the batch's last record as it was produced; after `i32::MAX` comes 0.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        sequence_after(self.base_sequence, self.last_offset_delta.unsigned_abs())
    }

    /// Whether the batch was written in a transaction (control batches are, too).
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes & layout::TRANSACTIONAL != 0
    }

    /// Whether the batch holds a marker of the transaction coordinator instead of records.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes & layout::CONTROL != 0
    }

    /// How the records are compressed.
    #[must_use]
    pub fn compression(&self) -> Compression {
        Compression::from_attributes(self.attributes)
    }

    /// The timestamp that record deltas count from, in milliseconds since 1970.
    #[must_use]
    pub fn base_timestamp_ms(&self) -> i64 {
        self.base_timestamp_ms
    }

    /// The whole batch as it came.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// A copy of the batch as a broker stores it: base offset and leader epoch stand outside the
    /// checksum, so everything else stays as the producer wrote it.
    #[must_use]
    pub fn placed_at(&self, base_offset: i64, leader_epoch: i32) -> Bytes {
        let mut placed = BytesMut::from(&self.bytes[..]);
        layout::put_field(&mut placed, layout::BASE_OFFSET, base_offset.to_be_bytes());
        layout::put_field(&mut placed, layout::LEADER_EPOCH, leader_epoch.to_be_bytes());
        placed.freeze()
    }

    /// Compares the checksum in the header with the one of the bytes.
    ///
    /// # Errors
    /// [`DecodeError::BadChecksum`] when they differ.
    pub fn check_crc(&self) -> Result<(), DecodeError> {
        let declared = u32::from_be_bytes(field(&self.bytes, layout::CRC));
        let computed = crc32c::crc32c(&self.bytes[layout::ATTRIBUTES..]);
        if declared == computed {
            return Ok(());
        }
        Err(DecodeError::BadChecksum { base_offset: self.base_offset, declared, computed })
    }

    /// The records as slices: of the batch's bytes, or of what came out of a compressed one, at most
    /// [`DECOMPRESSED_BYTES_MAX`]. The checksum is checked apart, by [`check_crc`](Self::check_crc).
    ///
    /// # Errors
    /// When more records are declared than the bytes can hold, or nothing comes out of the codec.
    pub fn records(&self) -> Result<Records, DecodeError> {
        let body = self.bytes.slice(BATCH_OVERHEAD_BYTES..);
        let body = match self.compression() {
            Compression::None => body,
            compression => {
                Bytes::from(decompress(compression, &body, DECOMPRESSED_BYTES_MAX).map_err(|problem| {
                    DecodeError::Compressed { base_offset: self.base_offset, compression, problem }
                })?)
            }
        };
        let walk = Walk::new(self, body.len())?;
        Ok(Records { body, walk })
    }

    /// The records borrowed from this batch, so that no reference count is touched for each; `None` for a
    /// compressed batch, whose records stand nowhere yet: read those with [`records`](Self::records).
    ///
    /// # Errors
    /// When more records are declared than the bytes can hold.
    pub fn record_refs(&self) -> Result<Option<RecordRefs<'_>>, DecodeError> {
        if self.compression() != Compression::None {
            return Ok(None);
        }
        let body = &self.bytes[BATCH_OVERHEAD_BYTES..];
        let walk = Walk::new(self, body.len())?;
        Ok(Some(RecordRefs { body, walk }))
    }
}

/// One record with its own handles on the batch's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Place in the partition.
    pub offset: i64,
    /// Milliseconds since 1970; in a batch with log append time, the batch's.
    pub timestamp_ms: i64,
    /// `None` is null.
    pub key: Option<Bytes>,
    /// `None` is null, a tombstone on a compacted topic.
    pub value: Option<Bytes>,
    /// Keys in their order, repeated ones too; any bytes, though other clients may insist on UTF-8.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

/// One record borrowed from its batch.
#[derive(Debug, Clone)]
pub struct RecordRef<'a> {
    /// Place in the partition.
    pub offset: i64,
    /// Milliseconds since 1970; in a batch with log append time, the batch's.
    pub timestamp_ms: i64,
    /// `None` is null.
    pub key: Option<&'a [u8]>,
    /// `None` is null, a tombstone on a compacted topic.
    pub value: Option<&'a [u8]>,
    /// The headers, already checked.
    pub headers: HeaderRefs<'a>,
}

/// The iterator of [`Batch::records`]; after an error it ends.
#[derive(Debug, Clone)]
pub struct Records {
    body: Bytes,
    walk: Walk,
}

impl Iterator for Records {
    type Item = Result<Record, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = match self.walk.next(&self.body)? {
            Ok(record) => record,
            Err(error) => return Some(Err(error)),
        };
        let own = |slice: &[u8]| self.body.slice_ref(slice);
        let mut headers = Vec::new();
        if record.headers.len() > 0 {
            headers.reserve_exact(record.headers.len());
            headers.extend(record.headers.map(|(key, value)| (own(key), value.map(own))));
        }
        Some(Ok(Record {
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            key: record.key.map(own),
            value: record.value.map(own),
            headers,
        }))
    }
}

/// The iterator of [`Batch::record_refs`]; after an error it ends.
#[derive(Debug, Clone)]
pub struct RecordRefs<'a> {
    body: &'a [u8],
    walk: Walk,
}

impl<'a> Iterator for RecordRefs<'a> {
    type Item = Result<RecordRef<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.walk.next(self.body)
    }
}

/// Where a walk over records stands, and what of the batch's header a record needs.
#[derive(Debug, Clone)]
struct Walk {
    at: usize,
    index: i32,
    record_count: i32,
    base_offset: i64,
    last_offset_delta: i32,
    /// The least offset delta that the next record may have.
    next_delta: i32,
    base_timestamp_ms: i64,
    append_timestamp_ms: Option<i64>,
}

impl Walk {
    fn new(batch: &Batch, body_len: usize) -> Result<Self, DecodeError> {
        let bytes_min = batch.record_count as usize * RECORD_BYTES_MIN;
        if bytes_min > body_len {
            return Err(DecodeError::BadHeader {
                base_offset: batch.base_offset,
                field: "record count",
                value: i64::from(batch.record_count),
            });
        }
        Ok(Self {
            at: 0,
            index: 0,
            record_count: batch.record_count,
            base_offset: batch.base_offset,
            last_offset_delta: batch.last_offset_delta,
            next_delta: 0,
            base_timestamp_ms: batch.base_timestamp_ms,
            append_timestamp_ms: match batch.timestamp_type {
                TimestampType::CreateTime => None,
                TimestampType::LogAppendTime => Some(batch.max_timestamp_ms),
            },
        })
    }

    #[inline]
    fn next<'a>(&mut self, body: &'a [u8]) -> Option<Result<RecordRef<'a>, DecodeError>> {
        let result = if self.index < self.record_count {
            self.read(body)
        } else if self.at < body.len() {
            Err("bytes after the last record")
        } else {
            return None;
        };
        let index = self.index;
        self.index = self.index.saturating_add(1);
        Some(result.map_err(|problem| {
            // The places of further records are unknown: end here.
            self.index = self.record_count;
            self.at = body.len();
            DecodeError::BadRecord { base_offset: self.base_offset, index, problem }
        }))
    }

    #[inline]
    fn read<'a>(&mut self, body: &'a [u8]) -> Result<RecordRef<'a>, &'static str> {
        let mut outer = Cursor { bytes: body, at: self.at };
        let length = outer.varint().ok_or("bad length")?;
        let length = usize::try_from(length).map_err(|_| "negative length")?;
        let bytes = outer.take(length).ok_or("longer than the batch")?;
        self.at = outer.at;

        let mut cursor = Cursor { bytes, at: 0 };
        cursor.byte().ok_or("no attributes")?; // none are defined, readers ignore them
        let timestamp_delta = cursor.varlong().ok_or("bad timestamp delta")?;
        let offset_delta = cursor.varint().ok_or("bad offset delta")?;
        if offset_delta < self.next_delta || offset_delta > self.last_offset_delta {
            return Err("offset delta out of order");
        }
        let key = cursor.nullable_bytes().ok_or("bad key length")?;
        let value = cursor.nullable_bytes().ok_or("bad value length")?;
        let headers = HeaderRefs::read(&mut cursor)?;
        if cursor.remaining() > 0 {
            return Err("bytes after the last field");
        }
        self.next_delta = offset_delta.saturating_add(1);
        Ok(RecordRef {
            // No overflow: the delta is at most the last one, whose sum the batch's header passed.
            offset: self.base_offset + i64::from(offset_delta),
            // Two's complement, as in Java: a timestamp is data, and an odd one is no corrupt batch.
            timestamp_ms: self
                .append_timestamp_ms
                .unwrap_or_else(|| self.base_timestamp_ms.wrapping_add(timestamp_delta)),
            key,
            value,
            headers,
        })
    }
}

/// The headers of one record, in order; all were checked when the record was read.
#[derive(Debug, Clone)]
pub struct HeaderRefs<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a> HeaderRefs<'a> {
    /// Walks the headers once without allocating, so that a later count can be trusted.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, &'static str> {
        let count = cursor.varint().ok_or("bad header count")?;
        let count = usize::try_from(count).map_err(|_| "negative header count")?;
        if count > cursor.remaining() / HEADER_BYTES_MIN {
            return Err("more headers than its bytes can hold");
        }
        let headers = Self { bytes: cursor.bytes, at: cursor.at, left: count };
        for _ in 0..count {
            read_header(cursor).ok_or("bad header")?;
        }
        Ok(headers)
    }
}

impl<'a> Iterator for HeaderRefs<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut cursor = Cursor { bytes: self.bytes, at: self.at };
        let header = read_header(&mut cursor)?;
        self.at = cursor.at;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for HeaderRefs<'_> {}

/// A key, which may not be null, and a value, which may.
fn read_header<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let key = cursor.nullable_bytes()??;
    let value = cursor.nullable_bytes()?;
    Some((key, value))
}
