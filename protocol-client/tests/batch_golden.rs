//! Our batches against those of Java and of kafka-protocol: the same records give the same bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as independent;
use oncewire_client::batch::*;

const JAVA: &str = include_str!("batch_golden/java-4.3.1.txt");

fn java(name: &str) -> Bytes {
    let hex = JAVA
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(line, _)| *line == name)
        .unwrap_or_else(|| panic!("{name} is not in the file"))
        .1;
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn one(bytes: &Bytes) -> Batch {
    let mut batches = batches(bytes);
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    assert_eq!(batches.remaining_bytes(), 0);
    batch.check_crc().unwrap();
    batch
}

/// The records of `Golden.java`.
fn small_batch() -> SealedBatch {
    let headers = [
        Header { key: "a", value: Some(b"1") },
        Header { key: "a", value: None },
        Header { key: "", value: Some(b"") },
    ];
    let mut builder = BatchBuilder::new(BatchLimits::default());
    builder.append(1_700_000_000_000, Some(b"k1"), Some(b"v1"), &headers).unwrap();
    builder.append(1_699_999_999_000, None, Some(b""), &[]).unwrap();
    builder.append(1_700_003_600_000, Some(b""), None, &[]).unwrap();
    builder.seal()
}

fn small_records(base_offset: i64, timestamps: [i64; 3]) -> Vec<Record> {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    let record = |index: usize, key, value| Record {
        offset: base_offset + index as i64,
        timestamp_ms: timestamps[index],
        key,
        value,
        headers: Vec::new(),
    };
    let mut records = vec![
        record(0, Some(bytes("k1")), Some(bytes("v1"))),
        record(1, None, Some(Bytes::new())),
        record(2, Some(Bytes::new()), None),
    ];
    records[0].headers = vec![(bytes("a"), Some(bytes("1"))), (bytes("a"), None), (Bytes::new(), Some(Bytes::new()))];
    records
}

const CREATE_TIMES: [i64; 3] = [1_700_000_000_000, 1_699_999_999_000, 1_700_003_600_000];

#[test]
fn transactional_batch_has_javas_bytes() {
    let stamp =
        ProducerStamp { producer_id: 4711, producer_epoch: 3, base_sequence: 2_147_483_646, transactional: true };
    assert_eq!(small_batch().stamp(stamp), java("txn"));
}

#[test]
fn plain_batch_has_javas_bytes() {
    assert_eq!(small_batch().stamp(ProducerStamp::NONE), java("plain"));
}

#[test]
fn javas_transactional_batch_reads_back() {
    let batch = one(&java("txn"));
    assert_eq!((batch.producer_id, batch.producer_epoch, batch.base_sequence), (4711, 3, 2_147_483_646));
    assert_eq!(batch.last_sequence(), 0, "the third sequence wraps");
    assert!(batch.is_transactional() && !batch.is_control());
    assert_eq!((batch.base_offset, batch.last_offset, batch.next_offset()), (0, 2, 3));
    assert_eq!(batch.max_timestamp_ms, 1_700_003_600_000);
    let records: Vec<_> = batch.records().unwrap().map(Result::unwrap).collect();
    assert_eq!(records, small_records(0, CREATE_TIMES));
}

#[test]
fn javas_compressed_batches_read_back() {
    for codec in ["gzip", "snappy", "lz4", "zstd"] {
        let batch = one(&java(codec));
        assert_eq!(batch.compression().to_string(), codec);
        let records: Vec<_> = batch.records().unwrap().map(Result::unwrap).collect();
        assert_eq!(records, small_records(0, CREATE_TIMES), "{codec}");

        let batch = one(&java(&format!("{codec}big")));
        let mut count = 0;
        for record in batch.records().unwrap() {
            let record = record.unwrap();
            assert_eq!(record.key.unwrap(), format!("k{count}"));
            assert_eq!(record.value.unwrap(), "abcdefgh".repeat(625), "{codec}");
            count += 1;
        }
        assert_eq!(count, 40, "{codec}");
    }
}

#[test]
fn log_append_time_replaces_the_records_times() {
    let batch = one(&java("logappend"));
    assert_eq!(batch.timestamp_type, TimestampType::LogAppendTime);
    let records: Vec<_> = batch.records().unwrap().map(Result::unwrap).collect();
    assert_eq!(records, small_records(100, [1_800_000_000_000; 3]));
}

#[test]
fn batch_emptied_by_compaction_says_what_comes_next() {
    let batch = one(&java("empty"));
    assert_eq!((batch.record_count, batch.base_offset, batch.next_offset()), (0, 100, 110));
    assert_eq!(batch.base_sequence, 10);
    assert_eq!(batch.last_sequence(), 19);
    assert_eq!(batch.records().unwrap().count(), 0);
}

#[test]
fn javas_markers_read_and_write_alike() {
    for (name, base_offset, timestamp_ms, marker) in [
        ("commit", 42, 1_700_000_000_123, ControlMarker::Commit),
        ("abort", 43, 1_700_000_000_124, ControlMarker::Abort),
    ] {
        let batch = one(&java(name));
        assert!(batch.is_control() && batch.is_transactional());
        assert_eq!(ControlMarker::from_batch(&batch).unwrap(), marker);
        let ours = encode_marker(MarkerFields {
            marker,
            base_offset,
            leader_epoch: 7,
            timestamp_ms,
            producer_id: 4711,
            producer_epoch: 4,
            coordinator_epoch: 9,
        });
        assert_eq!(ours, java(name), "{name}");
    }
}

#[test]
fn placing_a_batch_keeps_its_checksum() {
    let placed = one(&java("txn")).placed_at(1 << 40, 17);
    let batch = one(&placed);
    assert_eq!((batch.base_offset, batch.leader_epoch, batch.next_offset()), (1 << 40, 17, (1 << 40) + 3));
    assert_eq!(batch.records().unwrap().last().unwrap().unwrap().offset, (1 << 40) + 2);
}

/// kafka-protocol starts from the least timestamp and numbers offsets and sequences per record, so the
/// bytes agree for ascending times and sequences that don't wrap.
#[test]
fn ascending_records_have_kafka_protocols_bytes() {
    let mut builder = BatchBuilder::new(BatchLimits::default());
    let mut records = Vec::new();
    for index in 0..300_i32 {
        let (key, value) = (format!("key-{index}"), "v".repeat(index as usize));
        let timestamp = 1_700_000_000_000 + i64::from(index) * 977;
        let key = (index % 3 != 0).then_some(key);
        let headers = [Header { key: "trace", value: Some(b"x") }, Header { key: "none", value: None }];
        let headers = &headers[..index as usize % 3];
        builder.append(timestamp, key.as_deref().map(str::as_bytes), Some(value.as_bytes()), headers).unwrap();
        let mut record = independent::Record {
            transactional: true,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: -1,
            producer_id: 77,
            producer_epoch: 5,
            timestamp_type: independent::TimestampType::Creation,
            offset: i64::from(index),
            sequence: 1_000 + index,
            timestamp,
            key: key.map(Bytes::from),
            value: Some(Bytes::from(value)),
            headers: Default::default(),
        };
        for header in headers {
            let key = StrBytes::from_string(header.key.to_owned());
            record.headers.insert(key, header.value.map(Bytes::from_static));
        }
        records.push(record);
    }
    let mut theirs = bytes::BytesMut::new();
    let options = independent::RecordEncodeOptions { version: 2, compression: independent::Compression::None };
    independent::RecordBatchEncoder::encode(&mut theirs, &records, &options).unwrap();
    let stamp = ProducerStamp { producer_id: 77, producer_epoch: 5, base_sequence: 1_000, transactional: true };
    assert_eq!(builder.seal().stamp(stamp), theirs.freeze());
}
