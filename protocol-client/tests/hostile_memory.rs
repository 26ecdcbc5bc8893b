//! What the guard lets pass is measured: the worst messages within its limits really decode into no
//! more memory than it reckons. One test and one process, as the kernel counts per process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsResponse, DescribeTransactionsRequest, MetadataResponse};
use kafka_protocol::protocol::Decodable;
use oncewire_client::wire::WireError;
use oncewire_client::wire::frame::{decode_request, decode_response};
use oncewire_client::wire::guard::{MEMORY_ALLOWANCE_BYTES, MEMORY_PER_BYTE};

/// What the allocator and the test itself may take beside the message.
const SLACK_BYTES: usize = 2 << 20;

/// The greatest resident size since the last reset.
fn peak_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

fn peak_growth<T>(work: impl FnOnce() -> T) -> (usize, T) {
    fs::write("/proc/self/clear_refs", "5").unwrap(); // 5: the peak starts anew from what is resident
    let before = peak_bytes();
    let result = work();
    (peak_bytes().saturating_sub(before), result)
}

fn put_unsigned_varint(bytes: &mut BytesMut, mut value: usize) {
    while value >= 0x80 {
        bytes.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.put_u8(value as u8);
}

/// One unknown tag of this many bytes: it costs nothing decoded and makes room in the guard's reckoning.
fn put_padding(bytes: &mut BytesMut, len: usize) {
    put_unsigned_varint(bytes, 1);
    put_unsigned_varint(bytes, 1_000);
    put_unsigned_varint(bytes, len);
    bytes.put_bytes(0, len);
}

/// Empty strings, one byte each, 32 decoded.
fn strings(count: usize) -> Bytes {
    let mut bytes = BytesMut::new();
    put_unsigned_varint(&mut bytes, count + 1);
    bytes.put_bytes(1, count);
    put_padding(&mut bytes, count);
    bytes.freeze()
}

/// APIs with an unknown tag each: ten bytes, and a struct and a map node decoded.
fn tagged_structs(count: usize) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    put_unsigned_varint(&mut bytes, count + 1);
    for _ in 0..count {
        bytes.put_slice(&[0, 1, 0, 0, 0, 1, 1, 99, 0]);
    }
    bytes.put_i32(0);
    put_padding(&mut bytes, count * 22);
    bytes.freeze()
}

/// Topics without partitions, as short as a topic can be.
fn topics(count: usize) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_bytes(0, 4);
    bytes.put_slice(&[1, 0]);
    bytes.put_i32(0);
    put_unsigned_varint(&mut bytes, count + 1);
    for _ in 0..count {
        bytes.put_slice(&[0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
    }
    bytes.put_i32(0);
    bytes.put_u8(0);
    bytes.freeze()
}

fn within_the_limit<T: Decodable>(
    name: &str,
    body: Bytes,
    decode: impl FnOnce(ApiKey, i16, Bytes) -> Result<T, WireError>,
    api: ApiKey,
    version: i16,
) {
    let limit = body.len() * MEMORY_PER_BYTE + MEMORY_ALLOWANCE_BYTES + SLACK_BYTES;
    let size = body.len();
    let (grown, message) = peak_growth(|| decode(api, version, body));
    assert!(message.is_ok(), "{name}: {:?}", message.err());
    println!("{name}: {size} bytes became {grown}, the limit is {limit}");
    assert!(grown <= limit, "{name}: {size} bytes became {grown}, the limit is {limit}");
}

#[test]
fn worst_messages_that_pass_stay_within_the_guards_reckoning() {
    let (api, version) = (ApiKey::DescribeTransactions, 0);
    within_the_limit("strings", strings(1 << 20), decode_request::<DescribeTransactionsRequest>, api, version);
    let (api, version) = (ApiKey::ApiVersions, 3);
    within_the_limit("tagged structs", tagged_structs(100_000), decode_response::<ApiVersionsResponse>, api, version);
    let (api, version) = (ApiKey::Metadata, 9);
    within_the_limit("topics", topics(200_000), decode_response::<MetadataResponse>, api, version);
}
