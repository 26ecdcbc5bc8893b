//! Record batches for this crate's tests, built by hand from the layout so that no encoder is trusted to test itself.

use bytes::{BufMut, Bytes, BytesMut};

/// A batch to encode; change fields with struct update syntax.
#[derive(Debug, Clone)]
pub(crate) struct SampleBatch {
    pub(crate) base_offset: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) transactional: bool,
    pub(crate) control: bool,
    pub(crate) codec: i16,
    pub(crate) timestamp: i64,
    pub(crate) records: i32,
    pub(crate) last_offset_delta: Option<i32>,
    pub(crate) keyed: bool,
}

impl SampleBatch {
    /// So many records of no producer.
    pub(crate) fn plain(records: i32) -> Self {
        Self {
            base_offset: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            transactional: false,
            control: false,
            codec: 0,
            timestamp: 1_000,
            records,
            last_offset_delta: None,
            keyed: false,
        }
    }

    /// So many records of an idempotent producer.
    pub(crate) fn idempotent(producer_id: i64, producer_epoch: i16, base_sequence: i32, records: i32) -> Self {
        Self { producer_id, producer_epoch, base_sequence, ..Self::plain(records) }
    }

    /// So many records inside a transaction.
    pub(crate) fn transactional(producer_id: i64, producer_epoch: i16, base_sequence: i32, records: i32) -> Self {
        Self { transactional: true, ..Self::idempotent(producer_id, producer_epoch, base_sequence, records) }
    }

    /// The encoded batch.
    pub(crate) fn bytes(&self) -> Bytes {
        let mut records = BytesMut::new();
        for delta in 0..self.records {
            let mut record = BytesMut::new();
            record.put_u8(0);
            put_varint(&mut record, i64::from(delta)); // one millisecond apart
            put_varint(&mut record, i64::from(delta));
            if self.keyed {
                put_varint(&mut record, 1);
                record.put_u8(b'k');
            } else {
                put_varint(&mut record, -1);
            }
            put_varint(&mut record, 1);
            record.put_u8(b'v');
            put_varint(&mut record, 0);
            put_varint(&mut records, i64::try_from(record.len()).unwrap());
            records.put(record);
        }
        let attributes = self.codec | if self.transactional { 0x10 } else { 0 } | if self.control { 0x20 } else { 0 };
        let mut tail = BytesMut::new();
        tail.put_i16(attributes);
        tail.put_i32(self.last_offset_delta.unwrap_or(self.records - 1));
        tail.put_i64(self.timestamp);
        tail.put_i64(self.timestamp + i64::from(self.records - 1));
        tail.put_i64(self.producer_id);
        tail.put_i16(self.producer_epoch);
        tail.put_i32(self.base_sequence);
        tail.put_i32(self.records);
        tail.put(records);
        let mut batch = BytesMut::new();
        batch.put_i64(self.base_offset);
        batch.put_i32(i32::try_from(tail.len() + 9).unwrap());
        batch.put_i32(-1);
        batch.put_u8(2);
        batch.put_u32(crc32c::crc32c(&tail));
        batch.put(tail);
        batch.freeze()
    }
}

fn put_varint(buffer: &mut BytesMut, value: i64) {
    let mut zigzag = u64::from_ne_bytes(((value << 1) ^ (value >> 63)).to_ne_bytes());
    while zigzag >= 0x80 {
        buffer.put_u8(u8::try_from(zigzag & 0x7f).unwrap() | 0x80);
        zigzag >>= 7;
    }
    buffer.put_u8(u8::try_from(zigzag).unwrap());
}
