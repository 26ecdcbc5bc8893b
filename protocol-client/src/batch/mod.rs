//! Record batches, version 2 (magic 2): a streaming builder and a borrowing reader of our own.
//!
//! Signatures others build on (the files are being written):
//! ```text
//! encode.rs
//!   pub struct BatchBuilder                      // one partition, one batch; writes straight into its buffer
//!   BatchBuilder::new(BatchLimits) ; BatchLimits { bytes_max: usize (default 1_000_000), records_max: u32 }
//!   builder.append(&mut self, timestamp_ms: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'_>]) -> Result<(), AppendError>
//!       AppendError::Full (seal and start a new one; nothing was written) | TooLarge { size, limit } (one record alone exceeds the limit)
//!   builder.record_count() -> u32 ; builder.size_bytes() -> usize ; builder.is_empty()
//!   builder.seal(self) -> SealedBatch            // header complete except producer fields and CRC
//!   pub struct Header<'a> { pub key: &'a str, pub value: Option<&'a [u8]> }
//!   pub struct SealedBatch                       // owns its bytes
//!   sealed.record_count() -> u32 ; sealed.size_bytes() -> usize
//!   sealed.stamp(&mut self, ProducerStamp { producer_id: i64, producer_epoch: i16, base_sequence: i32, transactional: bool }) -> Bytes
//!       // patches the header, computes the CRC once, returns a cheap clone of the frozen bytes; the same stamp again gives the same bytes
//! decode.rs
//!   pub fn batches(records: &Bytes) -> Batches   // iterator of Result<Batch, DecodeError>; a cut-off last batch ends it
//!   Batch: base_offset, last_offset, next_offset(), leader_epoch, producer_id, producer_epoch, base_sequence, record_count,
//!          is_transactional(), is_control(), compression(), timestamp_type, max_timestamp_ms, check_crc() -> Result<(), DecodeError>
//!          records(&self) -> Result<Records, DecodeError>   // iterator of Result<Record, DecodeError>, borrowing or Bytes slices
//!   Record { offset: i64, timestamp_ms: i64, key: Option<Bytes>, value: Option<Bytes>, headers: Vec<(Bytes, Option<Bytes>)> }
//! control.rs
//!   pub enum ControlMarker { Abort, Commit, Other(i16) } ; ControlMarker::from_batch(&Batch) -> Result<..>
//!   pub fn encode_marker(...) -> Bytes           // for the dev broker
//! ```
