//! Messages that lie about their counts: each is refused by the guard, before a decoder could ask
//! for memory on their word. The first ones end a process that decodes them unguarded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::ApiKey::{self, *};
use oncewire_client::wire::guard::{MEMORY_ALLOWANCE_BYTES, MEMORY_PER_BYTE, check_request, check_response};
use oncewire_client::wire::{Problem, WireError};

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(digit).collect()
}

fn problem(result: Result<(), WireError>) -> (&'static str, Problem) {
    match result {
        Err(WireError::Malformed { field, problem, .. }) => (field, problem),
        other => panic!("{other:?}"),
    }
}

fn response(api: ApiKey, version: i16, text: &str) -> (&'static str, Problem) {
    problem(check_response(api, version, &hex(text)))
}

fn request(api: ApiKey, version: i16, text: &str) -> (&'static str, Problem) {
    problem(check_request(api, version, &hex(text)))
}

/// The count behind the varint `ffffffff0f`, which is one more than it.
const COMPACT_MAX: usize = u32::MAX as usize - 1;

fn too_many(declared: usize) -> Problem {
    Problem::TooManyElements { declared, left: 0 }
}

#[test]
fn array_of_two_thousand_million_brokers_in_four_bytes() {
    assert_eq!(response(Metadata, 1, "7fffffff"), ("Brokers", too_many(i32::MAX as usize)));
}

#[test]
fn compact_array_of_four_thousand_million_brokers() {
    assert_eq!(response(Metadata, 12, "00000000 ffffffff0f"), ("Brokers", too_many(COMPACT_MAX)));
}

#[test]
fn count_that_never_ends() {
    let never_ending = format!("00000000 {}", "ff".repeat(32));
    assert_eq!(response(Metadata, 12, &never_ending), ("Brokers", Problem::OverlongVarint));
}

#[test]
fn count_of_33_bits() {
    assert_eq!(response(Metadata, 12, "00000000 ffffffff1f"), ("Brokers", Problem::OverlongVarint));
}

#[test]
fn fetch_response_of_four_thousand_million_topics() {
    let text = "00000000 0000 00000000 ffffffff0f";
    assert_eq!(response(Fetch, 12, text), ("Responses", too_many(COMPACT_MAX)));
}

#[test]
fn fetch_request_of_four_thousand_million_topics() {
    let text = "00000000 00000000 00000000 00 00000000 00000000 ffffffff0f";
    assert_eq!(request(Fetch, 17, text), ("Topics", too_many(COMPACT_MAX)));
}

#[test]
fn api_versions_response_of_four_thousand_million_apis() {
    assert_eq!(response(ApiVersions, 3, "0000 ffffffff0f"), ("ApiKeys", too_many(COMPACT_MAX)));
}

#[test]
fn find_coordinator_response_of_four_thousand_million_coordinators() {
    assert_eq!(response(FindCoordinator, 4, "00000000 ffffffff0f"), ("Coordinators", too_many(COMPACT_MAX)));
}

#[test]
fn array_of_a_hundred_million_elements() {
    assert_eq!(response(Metadata, 1, "05f5e100"), ("Brokers", too_many(100_000_000)));
    assert_eq!(request(Produce, 3, "ffff 0001 00000000 05f5e100"), ("TopicData", too_many(100_000_000)));
}

#[test]
fn arrays_of_plain_numbers_and_strings() {
    let partition = "00000000 00000000 0001 0000 0001 61 00 00000001 0000 00000000 00000001";
    let (field, problem) = response(Metadata, 1, &format!("{partition} 7fffffff"));
    assert!(matches!(problem, Problem::TooManyElements { .. }), "{field}: {problem}");
    assert_eq!(request(DescribeTransactions, 0, "ffffffff0f"), ("TransactionalIds", too_many(COMPACT_MAX)));
    assert_eq!(response(SaslHandshake, 1, "0000 7fffffff"), ("Mechanisms", too_many(i32::MAX as usize)));
    assert_eq!(request(ListTransactions, 0, "01 ffffffff0f"), ("ProducerIdFilters", too_many(COMPACT_MAX)));
}

#[test]
fn count_of_numbers_that_fits_only_as_bytes() {
    // Three numbers of eight bytes in three bytes.
    assert_eq!(request(ListTransactions, 0, "01 04 000000"), ("ProducerIdFilters", Problem::Truncated));
}

#[test]
fn negative_lengths_other_than_null() {
    let negative = |declared| Problem::NegativeLength { declared };
    assert_eq!(response(Metadata, 1, "fffffffe"), ("Brokers", negative(-2)));
    assert_eq!(response(Metadata, 1, "80000000"), ("Brokers", negative(i32::MIN)));
    assert_eq!(request(FindCoordinator, 0, "8000"), ("Key", negative(-32768)));
    assert_eq!(request(SaslAuthenticate, 0, "fffffffe"), ("AuthBytes", negative(-2)));
}

#[test]
fn strings_and_bytes_longer_than_the_message() {
    assert_eq!(request(FindCoordinator, 0, "7fff 61"), ("Key", Problem::Truncated));
    assert_eq!(request(FindCoordinator, 3, "ffffffff0f 61"), ("Key", Problem::Truncated));
    assert_eq!(request(SaslAuthenticate, 0, "7fffffff 61"), ("AuthBytes", Problem::Truncated));
    assert_eq!(request(SaslAuthenticate, 2, "ffffffff0f 61"), ("AuthBytes", Problem::Truncated));
}

#[test]
fn records_longer_than_the_message() {
    let head = "ffff 0001 00000000 00000001 0001 61 00000001 00000000";
    assert_eq!(request(Produce, 3, &format!("{head} 7fffffff")), ("Records", Problem::Truncated));
}

#[test]
fn tagged_field_longer_than_the_message() {
    // EndTxn version 3: id "a", producer, epoch, committed, then the tags.
    let head = "02 61 0000000000000001 0001 01";
    let (_, problem) = request(EndTxn, 3, &format!("{head} 01 00 ffffffff0f"));
    assert_eq!(problem, Problem::Truncated);
}

#[test]
fn four_thousand_million_tags() {
    let head = "02 61 0000000000000001 0001 01";
    let (_, problem) = request(EndTxn, 3, &format!("{head} ffffffff0f"));
    assert_eq!(problem, Problem::Truncated);
}

#[test]
fn many_empty_tags() {
    let head = hex("02 61 0000000000000001 0001 01");
    let mut bytes = BytesMut::from(&head[..]);
    put_unsigned_varint(&mut bytes, 100_000);
    for tag in 0..100_000 {
        put_unsigned_varint(&mut bytes, tag);
        put_unsigned_varint(&mut bytes, 0);
    }
    let (_, problem) = problem(check_request(EndTxn, 3, &bytes));
    assert!(matches!(problem, Problem::TooManyTags { .. } | Problem::TooMuchMemory), "{problem}");
}

#[test]
fn tags_out_of_order_or_twice() {
    let head = "02 61 0000000000000001 0001 01";
    for tags in ["02 05 00 04 00", "02 05 00 05 00"] {
        let (_, problem) = request(EndTxn, 3, &format!("{head} {tags}"));
        assert!(matches!(problem, Problem::TagOutOfOrder { .. }), "{problem}");
    }
}

#[test]
fn known_tag_of_another_length_than_its_content() {
    // ApiVersions response version 3, no APIs, then tag 1 (an int64) in seven and in nine bytes.
    for (size, content) in [(7, "00000000000000"), (9, "000000000000000000")] {
        let (field, problem) = response(ApiVersions, 3, &format!("0000 01 00000000 01 01 0{size} {content}"));
        assert!(matches!(problem, Problem::TagSize { tag: 1 } | Problem::Truncated), "{field}: {problem}");
    }
}

fn put_unsigned_varint(bytes: &mut BytesMut, mut value: u32) {
    while value >= 0x80 {
        bytes.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.put_u8(value as u8);
}

/// Elements of one byte that each become a string handle of 32: within the allowance they pass, and
/// beyond it they are refused, however honest their count.
#[test]
fn tiny_elements_are_refused_where_they_would_swell() {
    let message = |count: u32| {
        let mut bytes = BytesMut::new();
        put_unsigned_varint(&mut bytes, count + 1);
        bytes.put_bytes(1, count as usize); // empty strings
        bytes.put_u8(0); // no tags
        bytes.freeze()
    };
    assert_eq!(check_request(DescribeTransactions, 0, &message(1_000)), Ok(()));
    let count = 2 * MEMORY_ALLOWANCE_BYTES / MEMORY_PER_BYTE;
    let (field, problem) = problem(check_request(DescribeTransactions, 0, &message(count as u32)));
    assert_eq!((field, problem), ("TransactionalIds", Problem::TooMuchMemory));
}

/// Metadata of ten thousand topics with one partition each, as short as honest names are.
#[test]
fn honest_large_metadata_passes() {
    let mut bytes = BytesMut::new();
    bytes.put_slice(&hex("00000000 02 00000001 0a 6c6f63616c686f7374 00002384 00 00 17"));
    bytes.put_bytes(b'c', 22);
    bytes.put_i32(1);
    put_unsigned_varint(&mut bytes, 10_001);
    for index in 0..10_000 {
        let name = format!("t-{index}");
        bytes.put_i16(0);
        put_unsigned_varint(&mut bytes, name.len() as u32 + 1);
        bytes.put_slice(name.as_bytes());
        bytes.put_bytes(1, 16);
        bytes.put_slice(&hex("00 02 0000 00000000 00000001 00000000 02 00000001 02 00000001 01 00"));
        bytes.put_slice(&hex("80000000 00"));
    }
    bytes.put_u8(0);
    assert_eq!(check_response(Metadata, 12, &bytes), Ok(()));
}
