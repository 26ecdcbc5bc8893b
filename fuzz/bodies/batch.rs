//! Record batches from a stranger: any bytes give records or an error.
//!
//! What must hold: nothing panics; both readers give the same records; offsets rise and stay within
//! what the header says; and there are no more records than the header declares.

use bytes::Bytes;
use oncewire_client::batch::{Batch, Compression, ControlMarker, batches};

pub(crate) fn decode_batch(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    for batch in batches(&bytes) {
        let Ok(batch) = batch else { return };
        assert!(batch.next_offset() > batch.base_offset);
        let _ = batch.check_crc(); // most inputs fail it, and their records are to be read all the same
        let _ = ControlMarker::from_batch(&batch);
        read(&batch);
        let placed = batch.placed_at(7, 3);
        assert_eq!(placed.len(), batch.bytes().len());
    }
}

fn read(batch: &Batch) {
    let Ok(records) = batch.records() else { return };
    let mut least = batch.base_offset;
    let mut count = 0;
    let mut owned = Vec::new();
    for record in records {
        let Ok(record) = record else { break };
        assert!(record.offset >= least && record.offset <= batch.last_offset);
        least = record.offset + 1;
        count += 1;
        owned.push(record);
    }
    assert!(count <= batch.record_count);
    let Some(borrowed) = batch.record_refs().expect("the other reader accepted the header") else {
        assert_ne!(batch.compression(), Compression::None);
        return;
    };
    let mut borrowed = borrowed.take_while(Result::is_ok).map(|record| record.expect("taken while ok"));
    for record in &owned {
        let other = borrowed.next().expect("both readers read alike");
        assert_eq!((record.offset, record.timestamp_ms), (other.offset, other.timestamp_ms));
        assert_eq!((record.key.as_deref(), record.value.as_deref()), (other.key, other.value));
        assert!(record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).eq(other.headers));
    }
    assert!(borrowed.next().is_none());
}
