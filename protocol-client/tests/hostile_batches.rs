//! Batches that lie: each ends in an error, before any memory is asked for on their word.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use oncewire_client::batch::*;
use proptest::prelude::*;

const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const RECORD_COUNT: usize = 57;

/// A batch around these record bytes, with a right checksum whatever the fields say.
fn batch_of(record_count: i32, last_offset_delta: i32, body: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchLimits::default());
    builder.append(1_700_000_000_000, None, None, &[]).unwrap();
    let mut bytes = builder.seal().stamp(ProducerStamp::NONE)[..BATCH_OVERHEAD_BYTES].to_vec();
    bytes.extend_from_slice(body);
    let length = bytes.len() as i32 - 12;
    put(&mut bytes, 8, length);
    put(&mut bytes, LAST_OFFSET_DELTA, last_offset_delta);
    put(&mut bytes, RECORD_COUNT, record_count);
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: i32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    sign(bytes);
}

fn sign(bytes: &mut [u8]) {
    let crc = crc32c::crc32c(&bytes[ATTRIBUTES..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// The first error on the way from bytes to records.
fn error_of(bytes: Vec<u8>) -> DecodeError {
    match read_all(&Bytes::from(bytes)) {
        Ok(count) => panic!("{count} records were read"),
        Err(error) => error,
    }
}

fn read_all(bytes: &Bytes) -> Result<usize, DecodeError> {
    let mut count = 0;
    for batch in batches(bytes) {
        let batch = batch?;
        batch.check_crc()?;
        for record in batch.records()? {
            record?;
            count += 1;
        }
    }
    Ok(count)
}

fn bad_record(bytes: Vec<u8>) -> &'static str {
    match error_of(bytes) {
        DecodeError::BadRecord { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

fn bad_header(bytes: Vec<u8>) -> &'static str {
    match error_of(bytes) {
        DecodeError::BadHeader { field, .. } => field,
        other => panic!("{other}"),
    }
}

/// Length 6 (zigzag 12), attributes, deltas 0, null key, null value, no headers.
const LEAST_RECORD: [u8; 7] = [12, 0, 0, 0, 1, 1, 0];

#[test]
fn least_record_is_read() {
    assert_eq!(read_all(&Bytes::from(batch_of(1, 0, &LEAST_RECORD))), Ok(1));
}

#[test]
fn record_count_of_two_thousand_million_is_refused() {
    assert_eq!(bad_header(batch_of(i32::MAX, i32::MAX - 1, &LEAST_RECORD)), "record count");
}

#[test]
fn record_count_of_twenty_million_is_refused() {
    assert_eq!(bad_header(batch_of(20_000_000, 19_999_999, &[0; 1_000])), "record count");
}

#[test]
fn negative_record_count_is_refused() {
    assert_eq!(bad_header(batch_of(-1, 0, &LEAST_RECORD)), "record count");
}

#[test]
fn more_records_than_offsets_are_refused() {
    assert_eq!(bad_header(batch_of(2, 0, &[LEAST_RECORD; 2].concat())), "record count");
}

#[test]
fn header_count_of_two_thousand_million_is_refused() {
    let body = [20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(bad_record(batch_of(1, 0, &body)), "more headers than its bytes can hold");
}

#[test]
fn header_count_of_a_hundred_million_is_refused() {
    let body = [18, 0, 0, 0, 1, 1, 0x80, 0x84, 0xaf, 0x5f];
    assert_eq!(bad_record(batch_of(1, 0, &body)), "more headers than its bytes can hold");
}

#[test]
fn negative_header_count_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[12, 0, 0, 0, 1, 1, 1])), "negative header count");
}

#[test]
fn null_header_key_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[16, 0, 0, 0, 1, 1, 2, 1, 1])), "bad header");
}

#[test]
fn record_longer_than_the_batch_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[200, 1, 0, 0, 1, 1, 0])), "longer than the batch");
}

#[test]
fn negative_record_length_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[1, 0, 0, 0, 1, 1, 0])), "negative length");
}

#[test]
fn key_longer_than_its_record_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[12, 0, 0, 0, 126, 1, 0])), "bad key length");
}

#[test]
fn value_length_below_null_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[12, 0, 0, 0, 1, 3, 0])), "bad value length");
}

#[test]
fn varint_without_end_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[0xff; 32])), "bad length");
}

#[test]
fn bytes_after_the_last_field_are_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[14, 0, 0, 0, 1, 1, 0, 9])), "bytes after the last field");
}

#[test]
fn bytes_after_the_last_record_are_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[&LEAST_RECORD[..], &[7]].concat())), "bytes after the last record");
}

#[test]
fn offset_delta_beyond_the_last_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[12, 0, 0, 2, 1, 1, 0])), "offset delta out of order");
}

#[test]
fn repeated_offset_is_refused() {
    assert_eq!(bad_record(batch_of(2, 1, &[LEAST_RECORD; 2].concat())), "offset delta out of order");
}

#[test]
fn negative_offset_delta_is_refused() {
    assert_eq!(bad_record(batch_of(1, 0, &[12, 0, 0, 1, 1, 1, 0])), "offset delta out of order");
}

#[test]
fn offsets_past_the_end_of_time_are_refused() {
    let mut bytes = batch_of(1, 5, &LEAST_RECORD);
    bytes[..8].copy_from_slice(&(i64::MAX - 4).to_be_bytes());
    assert_eq!(bad_header(bytes), "last offset delta");
    let mut bytes = batch_of(1, 0, &LEAST_RECORD);
    bytes[..8].copy_from_slice(&i64::MAX.to_be_bytes());
    assert_eq!(bad_header(bytes), "last offset delta");
}

#[test]
fn negative_base_offset_is_refused() {
    let mut bytes = batch_of(1, 0, &LEAST_RECORD);
    bytes[..8].copy_from_slice(&(-5_i64).to_be_bytes());
    assert_eq!(bad_header(bytes), "base offset");
}

#[test]
fn timestamp_past_the_end_of_time_wraps_as_in_java() {
    let body = [14, 0, 2, 0, 1, 1, 0]; // a delta of 1 ms
    let mut bytes = batch_of(1, 0, &[&[12_u8][..], &body[1..]].concat());
    bytes[27..35].copy_from_slice(&i64::MAX.to_be_bytes());
    sign(&mut bytes);
    let batch = batches(&Bytes::from(bytes)).next().unwrap().unwrap();
    assert_eq!(batch.records().unwrap().next().unwrap().unwrap().timestamp_ms, i64::MIN);
}

#[test]
fn changed_bytes_fail_the_checksum() {
    let mut bytes = batch_of(1, 0, &LEAST_RECORD);
    *bytes.last_mut().unwrap() ^= 1;
    assert!(matches!(error_of(bytes), DecodeError::BadChecksum { .. }));
}

#[test]
fn old_formats_are_named() {
    for magic in [0_u8, 1, 3, 0xff] {
        let mut bytes = batch_of(1, 0, &LEAST_RECORD);
        bytes[16] = magic;
        let error = error_of(bytes);
        assert_eq!(error, DecodeError::UnsupportedMagic { base_offset: 0, magic: magic as i8 });
    }
}

#[test]
fn batch_length_that_no_header_fits_is_refused() {
    for length in [-1, 0, 48, i32::MIN] {
        let mut bytes = batch_of(1, 0, &LEAST_RECORD);
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        assert_eq!(bad_header(bytes), "batch length");
    }
}

#[test]
fn batch_that_claims_two_gigabytes_is_a_cut_off_one() {
    let mut bytes = batch_of(1, 0, &LEAST_RECORD);
    bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    assert_eq!(batches(&Bytes::from(bytes)).count(), 0);
}

#[test]
fn unknown_codec_is_named() {
    for codec in 5..8 {
        let mut bytes = batch_of(1, 0, &LEAST_RECORD);
        bytes[ATTRIBUTES + 1] = codec;
        sign(&mut bytes);
        assert!(matches!(error_of(bytes), DecodeError::Compressed { problem: DecompressError::Unknown, .. }));
    }
}

#[test]
fn bytes_that_no_codec_wrote_are_refused() {
    for codec in 1..5 {
        let mut bytes = batch_of(1, 0, &LEAST_RECORD);
        bytes[ATTRIBUTES + 1] = codec;
        sign(&mut bytes);
        let error = error_of(bytes);
        assert!(matches!(error, DecodeError::Compressed { problem: DecompressError::Corrupt(_), .. }), "{error}");
    }
}

#[test]
fn control_batch_without_a_usable_key_is_refused() {
    for body in [&LEAST_RECORD[..], &[16, 0, 0, 0, 4, 0, 0, 1, 0], &[]] {
        let bytes = Bytes::from(batch_of(i32::from(!body.is_empty()), 0, body));
        let batch = batches(&bytes).next().unwrap().unwrap();
        assert!(ControlMarker::from_batch(&batch).is_err());
    }
}

fn honest() -> Vec<u8> {
    let mut log = Vec::new();
    for _ in 0..2 {
        let mut builder = BatchBuilder::new(BatchLimits::default());
        let headers = [Header { key: "h", value: Some(b"1") }, Header { key: "h", value: None }];
        for index in 0..5 {
            builder.append(index * 1_000, Some(b"key"), Some(&[7; 90]), &headers).unwrap();
        }
        log.extend_from_slice(&builder.seal().stamp(ProducerStamp::NONE));
    }
    log
}

#[test]
fn log_cut_at_any_byte_gives_only_whole_batches() {
    let log = Bytes::from(honest());
    for len in 0..log.len() {
        assert_eq!(read_all(&log.slice(..len)), Ok(len / (log.len() / 2) * 5), "cut at {len}");
    }
}

/// Reads without looking at the checksum, so that the change reaches the records.
fn read_unchecked(bytes: &Bytes) {
    for batch in batches(bytes).flatten() {
        let walked = batch.records().map(|records| records.take_while(Result::is_ok).count());
        match batch.record_refs().transpose() {
            Some(refs) => assert_eq!(walked, refs.map(|records| records.take_while(Result::is_ok).count())),
            None => assert_ne!(batch.compression(), Compression::None),
        }
        let _ = ControlMarker::from_batch(&batch); // any answer is right, but no panic
    }
}

#[test]
fn single_bit_flips_never_panic_and_never_pass_the_checksum() {
    let log = honest();
    for at in 0..log.len() {
        for bit in 0..8 {
            let mut changed = log.clone();
            changed[at] ^= 1 << bit;
            let changed = Bytes::from(changed);
            read_unchecked(&changed);
            let place = at % (log.len() / 2);
            // Base offset, length and leader epoch stand outside the checksum.
            assert!(place < 16 || read_all(&changed).is_err(), "bit {bit} of byte {at}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(body in proptest::collection::vec(any::<u8>(), 0..400), count in 0..60_i32) {
        read_unchecked(&Bytes::from(batch_of(count, count, &body)));
        read_unchecked(&Bytes::from(body));
    }
}
