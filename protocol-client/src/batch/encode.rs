//! Builds one version 2 batch: records are written into the batch's buffer as they come.
//!
//! The header is filled in twice: [`BatchBuilder::seal`] knows counts and timestamps, and
//! [`SealedBatch::stamp`] adds what the transaction machine decides at the moment of sending. A
//! retry stamps the same bytes again; a renumbering after an epoch bump patches the same buffer, so
//! record bytes are written once however often the batch is sent.
//!
//! Compression happens once, between sealing and the first stamp ([`SealedBatch::compress`]): limits and room are counted
//! before it, as it can only make a batch smaller.
//!
//! Source: "Message Format" of the Kafka documentation; KIP-98 for the producer fields.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::compress::{Compression, compress};
use super::layout::{self, BATCH_OVERHEAD_BYTES, put_field};
use super::varint::{Writer, encoded_len, length_or_null};
use crate::config::CompressionConfig;

/// What a buffer starts with; it doubles up to the limit.
const INITIAL_BYTES: usize = 16 * 1024;

/// A batch's length is a positive `int32` on the wire.
const BATCH_BYTES_CEILING: usize = i32::MAX as usize;

/// How large one batch may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Bytes of the whole batch with its header. Default 1,000,000, which stays below the
    /// `message.max.bytes` that a broker has by default (1,048,588).
    pub bytes_max: usize,
    /// Records in the batch. Default 2^20: far beyond what the bytes allow for ordinary records.
    pub records_max: u32,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { bytes_max: 1_000_000, records_max: 1 << 20 }
    }
}

/// Why a record was not appended. Nothing was written in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendError {
    /// The batch has no room left: seal it and append the record to a new one.
    Full,
    /// The record alone is larger than a batch may be.
    TooLarge {
        /// Bytes of a batch that holds only this record.
        size: usize,
        /// The limit that it exceeds, [`BatchLimits::bytes_max`].
        limit: usize,
    },
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "the batch is full"),
            Self::TooLarge { size, limit } => {
                write!(f, "a record of {size} bytes (with its batch header) is larger than the limit of {limit}")
            }
        }
    }
}

impl std::error::Error for AppendError {}

/// One header of a record to write. Keys may repeat, and order is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The header's name, never null.
    pub key: &'a str,
    /// The header's value; `None` is null, which differs from empty.
    pub value: Option<&'a [u8]>,
}

/// One batch of one partition while it grows.
#[derive(Debug)]
pub struct BatchBuilder {
    limits: BatchLimits,
    buffer: Vec<u8>,
    record_count: u32,
    base_timestamp_ms: i64,
    max_timestamp_ms: i64,
}

impl BatchBuilder {
    /// Starts an empty batch with a small buffer that grows up to the limit.
    #[must_use]
    pub fn new(limits: BatchLimits) -> Self {
        Self::with_buffer(limits, Vec::with_capacity(INITIAL_BYTES.min(limits.bytes_max)))
    }

    /// Starts an empty batch in a buffer from [`SealedBatch::into_buffer`], whose pages are already
    /// there: on a busy partition that saves a page fault per 4 KiB.
    #[must_use]
    pub fn with_buffer(limits: BatchLimits, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(BATCH_OVERHEAD_BYTES, 0);
        Self {
            limits: BatchLimits {
                bytes_max: limits.bytes_max.min(BATCH_BYTES_CEILING),
                records_max: limits.records_max.min(i32::MAX as u32),
            },
            buffer,
            record_count: 0,
            base_timestamp_ms: 0,
            max_timestamp_ms: 0,
        }
    }

    /// Writes one record. `None` for key or value is null, which differs from empty.
    ///
    /// # Errors
    /// [`AppendError::Full`] when this batch has no room, [`AppendError::TooLarge`] when no batch
    /// within the limits has.
    pub fn append(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<(), AppendError> {
        let base_timestamp_ms = match self.record_count {
            0 => timestamp_ms,
            _ => self.base_timestamp_ms,
        };
        // Two's complement, as in Java: the reader's addition undoes it for every pair of times.
        let timestamp_delta = timestamp_ms.wrapping_sub(base_timestamp_ms);
        let offset_delta = i64::from(self.record_count);
        let content_len = 1 + bytes_len(key) + bytes_len(value) + headers_len(headers);
        let body_len = content_len + encoded_len(timestamp_delta) + encoded_len(offset_delta);
        self.check_room(record_len(body_len), content_len)?;

        let start = self.buffer.len();
        self.buffer.resize(start + record_len(body_len), 0);
        let mut writer = Writer { bytes: &mut self.buffer[start..], at: 0 };
        writer.varint(body_len as i64);
        writer.byte(0); // record attributes: none are defined
        writer.varint(timestamp_delta);
        writer.varint(offset_delta);
        writer.nullable_bytes(key);
        writer.nullable_bytes(value);
        writer.varint(headers.len() as i64);
        for header in headers {
            writer.nullable_bytes(Some(header.key.as_bytes()));
            writer.nullable_bytes(header.value);
        }
        debug_assert_eq!(writer.at, writer.bytes.len(), "the length computed is the length written");

        self.max_timestamp_ms = match self.record_count {
            0 => timestamp_ms,
            _ => self.max_timestamp_ms.max(timestamp_ms),
        };
        self.base_timestamp_ms = base_timestamp_ms;
        self.record_count += 1;
        Ok(())
    }

    /// `content_len` is the record without its two deltas, which are one byte each in an empty batch:
    /// what doesn't fit here because of a wide delta may well fit there.
    fn check_room(&self, record_len_here: usize, content_len: usize) -> Result<(), AppendError> {
        let limit = self.limits.bytes_max;
        if self.buffer.len() + record_len_here <= limit && self.record_count < self.limits.records_max {
            return Ok(());
        }
        let size = BATCH_OVERHEAD_BYTES + record_len(content_len + 2);
        match size > limit {
            true => Err(AppendError::TooLarge { size, limit }),
            false => Err(AppendError::Full),
        }
    }

    /// Records written so far.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.record_count
    }

    /// Bytes of the batch as it would be sealed now, header included.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Whether no record was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// Bytes that the batch's buffer holds in memory, written or not.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Ends the batch: the header is complete but for the producer's fields and the checksum.
    ///
    /// A batch without records is legal bytes, but a broker refuses it; callers seal what has records.
    #[must_use]
    pub fn seal(mut self) -> SealedBatch {
        let header = &mut self.buffer[..];
        let batch_length = (header.len() - layout::LENGTH_PREFIX_BYTES) as i32;
        let record_count = self.record_count as i32;
        put_field(header, layout::BASE_OFFSET, 0_i64.to_be_bytes());
        put_field(header, layout::BATCH_LENGTH, batch_length.to_be_bytes());
        // The broker fills in its own epoch; −1 says that the producer knows none.
        put_field(header, layout::LEADER_EPOCH, (-1_i32).to_be_bytes());
        put_field(header, layout::MAGIC, layout::MAGIC_V2.to_be_bytes());
        put_field(header, layout::ATTRIBUTES, 0_i16.to_be_bytes());
        let last_offset_delta = (record_count - 1).max(0);
        put_field(header, layout::LAST_OFFSET_DELTA, last_offset_delta.to_be_bytes());
        put_field(header, layout::BASE_TIMESTAMP, self.base_timestamp_ms.to_be_bytes());
        put_field(header, layout::MAX_TIMESTAMP, self.max_timestamp_ms.to_be_bytes());
        put_field(header, layout::RECORD_COUNT, record_count.to_be_bytes());
        SealedBatch {
            record_count: self.record_count,
            max_timestamp_ms: self.max_timestamp_ms,
            compression: Compression::None,
            state: State::Unstamped(self.buffer),
        }
    }
}

/// A record's bytes with the length in front of it.
#[inline]
fn record_len(body_len: usize) -> usize {
    encoded_len(body_len as i64) + body_len
}

#[inline]
fn bytes_len(bytes: Option<&[u8]>) -> usize {
    encoded_len(length_or_null(bytes)) + bytes.map_or(0, <[u8]>::len)
}

#[inline]
fn headers_len(headers: &[Header<'_>]) -> usize {
    let mut len = encoded_len(headers.len() as i64);
    for header in headers {
        len += bytes_len(Some(header.key.as_bytes())) + bytes_len(header.value);
    }
    len
}

/// Who sends the batch and with which sequence number: decided when it is sent, not when it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerStamp {
    /// From InitProducerId, or −1.
    pub producer_id: i64,
    /// From InitProducerId or EndTxn, or −1.
    pub producer_epoch: i16,
    /// Sequence number of the batch's first record, or −1.
    pub base_sequence: i32,
    /// Whether the batch belongs to the producer's open transaction.
    pub transactional: bool,
}

impl ProducerStamp {
    /// A producer without idempotence: no id, no epoch, no sequence.
    pub const NONE: Self = Self { producer_id: -1, producer_epoch: -1, base_sequence: -1, transactional: false };
}

/// A finished batch that owns its bytes; [`stamp`](Self::stamp) makes them fit to send.
#[derive(Debug)]
pub struct SealedBatch {
    record_count: u32,
    max_timestamp_ms: i64,
    compression: Compression,
    state: State,
}

#[derive(Debug)]
enum State {
    Unstamped(Vec<u8>),
    Stamped { stamp: ProducerStamp, bytes: Bytes },
}

impl SealedBatch {
    /// Records in the batch.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.record_count
    }

    /// Bytes of the batch, header included.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match &self.state {
            State::Unstamped(buffer) => buffer.len(),
            State::Stamped { bytes, .. } => bytes.len(),
        }
    }

    /// How its records are compressed.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Compresses the records. A batch that would not become smaller stays as it is (each batch says for itself how it is
    /// compressed), and so does one that is stamped or compressed already.
    pub fn compress(&mut self, config: CompressionConfig) {
        let State::Unstamped(buffer) = &mut self.state else { return };
        if config == CompressionConfig::None || self.compression != Compression::None {
            return;
        }
        let (header, records) = buffer.split_at(BATCH_OVERHEAD_BYTES);
        let mut smaller = Vec::with_capacity(BATCH_OVERHEAD_BYTES + records.len() / 2);
        smaller.extend_from_slice(header);
        if let Err(error) = compress(config, records, &mut smaller) {
            tracing::warn!(%error, "a batch could not be compressed and is sent as it is");
            return;
        }
        if smaller.len() >= buffer.len() {
            return;
        }
        let batch_length = (smaller.len() - layout::LENGTH_PREFIX_BYTES) as i32;
        put_field(&mut smaller, layout::BATCH_LENGTH, batch_length.to_be_bytes());
        // The codecs leave the room that they might have needed; a batch may wait for long.
        smaller.shrink_to_fit();
        *buffer = smaller;
        self.compression = Compression::of(config);
    }

    /// The greatest timestamp among the records, in milliseconds since 1970.
    #[must_use]
    pub fn max_timestamp_ms(&self) -> i64 {
        self.max_timestamp_ms
    }

    /// Writes the producer's fields and the checksum, and gives the bytes to send.
    ///
    /// The same stamp again gives the same bytes without any work, so a retry repeats exactly what
    /// went out first. Another stamp patches the buffer in place; only when a request still holds
    /// the former bytes are they copied.
    pub fn stamp(&mut self, stamp: ProducerStamp) -> Bytes {
        if let State::Stamped { stamp: before, bytes } = &self.state
            && *before == stamp
        {
            return bytes.clone();
        }
        let mut buffer = self.take_buffer();
        write_stamp(&mut buffer, stamp, self.compression);
        let bytes = Bytes::from(buffer);
        self.state = State::Stamped { stamp, bytes: bytes.clone() };
        bytes
    }

    /// The batch's buffer for another [`BatchBuilder`], or `None` while a request still holds it.
    #[must_use]
    pub fn into_buffer(self) -> Option<Vec<u8>> {
        match self.state {
            State::Unstamped(buffer) => Some(buffer),
            State::Stamped { bytes, .. } => bytes.try_into_mut().ok().map(Vec::from),
        }
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.state, State::Unstamped(Vec::new())) {
            State::Unstamped(buffer) => buffer,
            State::Stamped { bytes, .. } => {
                Vec::from(bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..])))
            }
        }
    }
}

fn write_stamp(batch: &mut [u8], stamp: ProducerStamp, compression: Compression) {
    let transactional = match stamp.transactional {
        true => layout::TRANSACTIONAL,
        false => 0,
    };
    let attributes = transactional | compression.attributes();
    put_field(batch, layout::ATTRIBUTES, attributes.to_be_bytes());
    put_field(batch, layout::PRODUCER_ID, stamp.producer_id.to_be_bytes());
    put_field(batch, layout::PRODUCER_EPOCH, stamp.producer_epoch.to_be_bytes());
    put_field(batch, layout::BASE_SEQUENCE, stamp.base_sequence.to_be_bytes());
    write_checksum(batch);
}

/// Computes the checksum of a whole batch and writes it into its header.
pub(super) fn write_checksum(batch: &mut [u8]) {
    let checksum = crc32c::crc32c(&batch[layout::ATTRIBUTES..]);
    put_field(batch, layout::CRC, checksum.to_be_bytes());
}
