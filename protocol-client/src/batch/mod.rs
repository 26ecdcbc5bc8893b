//! Record batches, version 2 (magic 2): a streaming builder and a borrowing reader of our own.
//!
//! Our own, because this is the path that every byte takes: the builder writes each record straight
//! into the batch's buffer, and the reader hands out slices of the frame it was given. Neither makes
//! an object per record, and neither allocates by a count that came from outside.
//!
//! ```text
//! append* ──► BatchBuilder ──seal──► SealedBatch ──stamp(producer id, epoch, sequence)──► Bytes
//! Bytes ──batches──► Batch (the 61-byte header) ──records──► Record (slices)
//! ```
//!
//! Left out: message sets of magic 0 and 1, which Kafka 4 no longer serves; they are refused by name.
//!
//! Invariant: what the builder writes is what a Java producer could have written (base timestamp of
//! the first record, true maximum, offset deltas 0..n), so a broker appends it without rewriting it.
//!
//! Source: the record batch chapter of the Kafka documentation ("Message Format"), KIP-98, KIP-32.

mod compress;
mod control;
mod decode;
mod encode;
mod layout;
mod sequence;
mod varint;

pub use compress::{Compression, DECOMPRESSED_BYTES_MAX, DecompressError};
pub use control::{ControlMarker, MarkerFields, encode_marker};
pub use decode::{Batch, Batches, DecodeError, Record, RecordRef, Records, TimestampType, batches};
pub use decode::{HeaderRefs, RecordRefs};
pub use encode::{AppendError, BatchBuilder, BatchLimits, Header, ProducerStamp, SealedBatch};
pub use layout::{BATCH_OVERHEAD_BYTES, RECORD_BYTES_MIN};
pub use sequence::sequence_after;
