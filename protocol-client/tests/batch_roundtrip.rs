//! What is appended is read back, whatever it is; and the builder keeps its limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use oncewire_client::batch::*;
use proptest::prelude::*;

type Headers = Vec<(String, Option<Vec<u8>>)>;
type Input = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Headers);

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![proptest::collection::vec(any::<u8>(), 0..9), proptest::collection::vec(any::<u8>(), 0..300)]
}

fn input() -> impl Strategy<Value = Input> {
    let timestamp = prop_oneof![any::<i64>(), 1_700_000_000_000..1_800_000_000_000_i64];
    let headers = proptest::collection::vec(("[a-cé]{0,3}", proptest::option::of(bytes())), 0..5);
    (timestamp, proptest::option::of(bytes()), proptest::option::of(bytes()), headers)
}

fn append(builder: &mut BatchBuilder, record: &Input) -> Result<(), AppendError> {
    let (timestamp_ms, key, value, headers) = record;
    let headers: Vec<_> = headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
    builder.append(*timestamp_ms, key.as_deref(), value.as_deref(), &headers)
}

fn expected(offset: i64, record: &Input) -> Record {
    let (timestamp_ms, key, value, headers) = record.clone();
    Record {
        offset,
        timestamp_ms,
        key: key.map(Bytes::from),
        value: value.map(Bytes::from),
        headers: headers.into_iter().map(|(key, value)| (Bytes::from(key), value.map(Bytes::from))).collect(),
    }
}

fn one(bytes: &Bytes) -> Batch {
    batches(bytes).next().unwrap().unwrap()
}

proptest! {
    #[test]
    fn records_read_back_in_order(inputs in proptest::collection::vec(input(), 1..40), base_sequence in 0..i32::MAX) {
        let mut builder = BatchBuilder::new(BatchLimits::default());
        for input in &inputs {
            append(&mut builder, input).unwrap();
        }
        let size = builder.size_bytes();
        let mut sealed = builder.seal();
        prop_assert_eq!(sealed.size_bytes(), size);
        let bytes = sealed.stamp(ProducerStamp { producer_id: 9, producer_epoch: 1, base_sequence, transactional: true });
        prop_assert_eq!(bytes.len(), size);
        let batch = one(&bytes);
        prop_assert!(batch.check_crc().is_ok());
        prop_assert_eq!(batch.max_timestamp_ms, inputs.iter().map(|input| input.0).max().unwrap());
        prop_assert_eq!(batch.last_sequence(), sequence_after(base_sequence, inputs.len() as u32 - 1));
        let records: Vec<_> = batch.records().unwrap().map(Result::unwrap).collect();
        let wanted: Vec<_> = inputs.iter().enumerate().map(|(at, input)| expected(at as i64, input)).collect();
        prop_assert_eq!(&records, &wanted);
        for (record, borrowed) in records.iter().zip(batch.record_refs().unwrap().unwrap()) {
            let borrowed = borrowed.unwrap();
            prop_assert_eq!(record.key.as_deref(), borrowed.key);
            prop_assert_eq!(record.value.as_deref(), borrowed.value);
            prop_assert_eq!(record.headers.len(), borrowed.headers.len());
        }
    }

    #[test]
    fn builder_never_exceeds_its_limits(
        inputs in proptest::collection::vec(input(), 1..40),
        bytes_max in 61_usize..2_000,
        records_max in 1_u32..10,
    ) {
        let limits = BatchLimits { bytes_max, records_max };
        let mut builder = BatchBuilder::new(limits);
        for input in &inputs {
            let (size, count) = (builder.size_bytes(), builder.record_count());
            match append(&mut builder, input) {
                Ok(()) => prop_assert_eq!(builder.record_count(), count + 1),
                Err(AppendError::TooLarge { size, limit }) => {
                    prop_assert!(size > limit && limit == bytes_max);
                    prop_assert!(append(&mut BatchBuilder::new(limits), input).is_err());
                }
                Err(AppendError::Full) => {
                    prop_assert_eq!((builder.size_bytes(), builder.record_count()), (size, count));
                    builder = BatchBuilder::new(limits);
                    append(&mut builder, input).unwrap();
                }
            }
            prop_assert!(builder.size_bytes() <= bytes_max.max(61) && builder.record_count() <= records_max);
        }
    }

    #[test]
    fn several_batches_split_where_they_meet_and_a_cut_one_is_left(
        counts in proptest::collection::vec(1_usize..5, 1..5),
        cut in 0_usize..60,
    ) {
        let mut log = Vec::new();
        let mut next = 0;
        for count in &counts {
            let mut builder = BatchBuilder::new(BatchLimits::default());
            for _ in 0..*count {
                builder.append(1, None, Some(b"value"), &[]).unwrap();
            }
            let batch = builder.seal().stamp(ProducerStamp::NONE);
            log.extend_from_slice(&one(&batch).placed_at(next, 0));
            next += *count as i64;
        }
        log.extend_from_slice(&log.clone()[..cut]);
        let mut batches = batches(&Bytes::from(log));
        let offsets: Vec<_> = batches
            .by_ref()
            .flat_map(|batch| batch.unwrap().records().unwrap())
            .map(|record| record.unwrap().offset)
            .collect();
        prop_assert_eq!(offsets, (0..next).collect::<Vec<_>>());
        prop_assert_eq!(batches.remaining_bytes(), cut);
    }
}

fn sealed() -> SealedBatch {
    let mut builder = BatchBuilder::new(BatchLimits::default());
    builder.append(5, Some(b"key"), Some(b"value"), &[]).unwrap();
    builder.seal()
}

const STAMP: ProducerStamp = ProducerStamp { producer_id: 1, producer_epoch: 0, base_sequence: 0, transactional: true };

#[test]
fn same_stamp_gives_the_same_bytes_without_a_copy() {
    let mut sealed = sealed();
    let first = sealed.stamp(STAMP);
    let second = sealed.stamp(STAMP);
    assert_eq!(first, second);
    assert_eq!(first.as_ptr(), second.as_ptr());
}

#[test]
fn another_stamp_leaves_bytes_in_flight_alone() {
    let mut sealed = sealed();
    let in_flight = sealed.stamp(STAMP);
    let before = in_flight.to_vec();
    let renumbered = sealed.stamp(ProducerStamp { producer_epoch: 1, base_sequence: 7, ..STAMP });
    assert_eq!(in_flight, before);
    let batch = one(&renumbered);
    batch.check_crc().unwrap();
    assert_eq!((batch.producer_epoch, batch.base_sequence), (1, 7));
}

#[test]
fn another_stamp_patches_a_buffer_that_nobody_else_holds() {
    let mut sealed = sealed();
    let place = sealed.stamp(STAMP).as_ptr();
    assert_eq!(sealed.stamp(ProducerStamp { base_sequence: 7, ..STAMP }).as_ptr(), place);
}

#[test]
fn buffer_is_used_again_only_when_nobody_reads_it() {
    let mut sealed = sealed();
    let in_flight = sealed.stamp(STAMP);
    assert!(sealed.into_buffer().is_none());
    drop(in_flight);

    let mut sealed = self::sealed();
    drop(sealed.stamp(STAMP));
    let buffer = sealed.into_buffer().unwrap();
    let mut builder = BatchBuilder::with_buffer(BatchLimits::default(), buffer);
    assert!(builder.is_empty());
    builder.append(5, Some(b"key"), Some(b"value"), &[]).unwrap();
    assert_eq!(builder.seal().stamp(STAMP), self::sealed().stamp(STAMP));
}

/// A delta of many bytes takes the room that an empty batch, where deltas are 0, would have.
#[test]
fn record_that_only_an_empty_batch_can_hold_is_not_too_large() {
    let mut builder = BatchBuilder::new(BatchLimits { bytes_max: 170, records_max: 9 });
    builder.append(0, None, None, &[]).unwrap();
    assert_eq!(builder.append(i64::MAX, None, Some(&[0; 98]), &[]), Err(AppendError::Full));
    let mut builder = BatchBuilder::new(BatchLimits { bytes_max: 170, records_max: 9 });
    builder.append(i64::MAX, None, Some(&[0; 98]), &[]).unwrap();
    let larger = builder.append(0, None, Some(&[0; 103]), &[]);
    assert_eq!(larger, Err(AppendError::TooLarge { size: 173, limit: 170 }));
}

/// A span of more than 2^31 milliseconds (24.8 days) in one batch takes a delta of 64 bits.
#[test]
fn timestamps_of_one_batch_may_lie_years_apart() {
    let mut builder = BatchBuilder::new(BatchLimits::default());
    let times = [1_700_000_000_000, 0, 1_900_000_000_000, -1];
    for time in times {
        builder.append(time, None, None, &[]).unwrap();
    }
    let batch = one(&builder.seal().stamp(ProducerStamp::NONE));
    let read: Vec<_> = batch.records().unwrap().map(|record| record.unwrap().timestamp_ms).collect();
    assert_eq!(read, times);
}
