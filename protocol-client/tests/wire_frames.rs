//! Frames and headers, both directions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, EndTxnRequest, EndTxnResponse, FindCoordinatorRequest, ProducerId,
    RequestHeader, ResponseHeader, TransactionalId,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use oncewire_client::wire::frame::*;
use oncewire_client::wire::{Problem, WireError};

fn end_txn() -> EndTxnRequest {
    EndTxnRequest::default()
        .with_transactional_id(TransactionalId(StrBytes::from_static_str("worker-1")))
        .with_producer_id(ProducerId(4711))
        .with_producer_epoch(3)
        .with_committed(true)
}

fn without_prefix(frame: Bytes, limit: usize) -> Bytes {
    let prefix = *frame.first_chunk().unwrap();
    assert_eq!(frame_size(prefix, limit), Ok(frame.len() - LENGTH_PREFIX_BYTES));
    frame.slice(LENGTH_PREFIX_BYTES..)
}

#[test]
fn request_reads_back_with_its_header() {
    for version in 0..=5 {
        let frame = encode_request(ApiKey::EndTxn, version, 77, "oncewire", &end_txn()).unwrap();
        let mut rest = without_prefix(frame, REQUEST_BYTES_MAX);
        let head = decode_request_header(&mut rest).unwrap();
        let expected =
            RequestHead { api: ApiKey::EndTxn, version, correlation_id: 77, client_id: Some("oncewire".to_owned()) };
        assert_eq!(head, expected);
        let body: EndTxnRequest = decode_request(ApiKey::EndTxn, version, rest).unwrap();
        assert_eq!(body, end_txn());
    }
}

#[test]
fn request_header_has_kafka_protocols_bytes() {
    for version in 0..=5 {
        let ours = encode_request(ApiKey::EndTxn, version, 77, "oncewire", &end_txn()).unwrap();
        let header = RequestHeader::default()
            .with_request_api_key(ApiKey::EndTxn as i16)
            .with_request_api_version(version)
            .with_correlation_id(77)
            .with_client_id(Some(StrBytes::from_static_str("oncewire")));
        let mut theirs = BytesMut::new();
        header.encode(&mut theirs, ApiKey::EndTxn.request_header_version(version)).unwrap();
        end_txn().encode(&mut theirs, version).unwrap();
        assert_eq!(ours.slice(LENGTH_PREFIX_BYTES..), theirs);
    }
}

#[test]
fn response_reads_back_with_its_header() {
    for version in 0..=4 {
        let frame =
            encode_response(ApiKey::EndTxn, version, 9, &EndTxnResponse::default().with_error_code(51)).unwrap();
        let mut rest = without_prefix(frame, RESPONSE_BYTES_MAX);
        assert_eq!(correlation_id(&rest), Ok(9));
        assert_eq!(decode_response_header(ApiKey::EndTxn, version, &mut rest), Ok(9));
        let body: EndTxnResponse = decode_response(ApiKey::EndTxn, version, rest).unwrap();
        assert_eq!(body.error_code, 51);
    }
}

#[test]
fn api_versions_response_never_has_tags_in_its_header() {
    for version in 0..=4 {
        let frame = encode_response(ApiKey::ApiVersions, version, 5, &ApiVersionsResponse::default()).unwrap();
        let mut rest = frame.slice(LENGTH_PREFIX_BYTES..);
        ResponseHeader::decode(&mut rest, 0).unwrap();
        assert!(decode_response::<ApiVersionsResponse>(ApiKey::ApiVersions, version, rest).is_ok());
    }
}

#[test]
fn api_versions_request_of_a_later_version_still_has_a_readable_header() {
    let request = ApiVersionsRequest::default();
    let mut frame = encode_request(ApiKey::ApiVersions, 4, 5, "", &request).unwrap().to_vec();
    frame[6..8].copy_from_slice(&9_i16.to_be_bytes());
    let head = decode_request_header(&mut Bytes::from(frame).slice(LENGTH_PREFIX_BYTES..)).unwrap();
    assert_eq!((head.api, head.version, head.correlation_id), (ApiKey::ApiVersions, 9, 5));
}

#[test]
fn frame_sizes_have_limits() {
    let size = |size: i32| frame_size(size.to_be_bytes(), 1_000);
    assert_eq!(size(1_000), Ok(1_000));
    assert_eq!(size(1_001), Err(WireError::FrameTooLarge { size: 1_001, limit: 1_000 }));
    assert_eq!(size(i32::MAX), Err(WireError::FrameTooLarge { size: i32::MAX as u32, limit: 1_000 }));
    assert_eq!(size(-1), Err(WireError::FrameTooShort { size: -1 }));
    assert_eq!(size(3), Err(WireError::FrameTooShort { size: 3 }));
}

#[test]
fn another_protocol_is_named_instead_of_a_huge_frame() {
    let alert = frame_size([0x15, 0x03, 0x03, 0x00], RESPONSE_BYTES_MAX).unwrap_err();
    assert_eq!(alert, WireError::NotKafka { looks_like: "TLS" });
    assert!(alert.to_string().contains("security.protocol"), "says what to change: {alert}");
    let http = frame_size(*b"HTTP", RESPONSE_BYTES_MAX).unwrap_err();
    assert_eq!(http, WireError::NotKafka { looks_like: "HTTP" });
}

#[test]
fn headers_cut_at_any_byte_are_refused() {
    let frame = encode_request(ApiKey::EndTxn, 3, 77, "oncewire", &end_txn()).unwrap();
    let header_len = LENGTH_PREFIX_BYTES + 10 + "oncewire".len() + 1;
    for len in LENGTH_PREFIX_BYTES..header_len {
        assert!(decode_request_header(&mut frame.slice(LENGTH_PREFIX_BYTES..len)).is_err(), "{len}");
    }
    let frame = encode_response(ApiKey::EndTxn, 3, 9, &EndTxnResponse::default()).unwrap();
    for len in 0..5 {
        let mut cut = frame.slice(LENGTH_PREFIX_BYTES..LENGTH_PREFIX_BYTES + len);
        assert!(decode_response_header(ApiKey::EndTxn, 3, &mut cut).is_err(), "{len}");
    }
}

#[test]
fn tags_in_a_header_are_skipped_and_their_bombs_refused() {
    let header = |tags: &[u8]| {
        let frame = [&[0, 0, 0, 9][..], tags, &[0xaa]].concat();
        let mut frame = Bytes::from(frame);
        decode_response_header(ApiKey::EndTxn, 3, &mut frame).map(|id| (id, frame))
    };
    assert_eq!(header(&[1, 5, 2, 1, 1]), Ok((9, Bytes::from_static(&[0xaa]))));
    for bomb in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f], &[0xff; 9]] {
        assert!(matches!(header(bomb), Err(WireError::Malformed { message: "ResponseHeader", .. })));
    }
}

#[test]
fn client_ids_odd_and_absent_are_read() {
    let head = |client_id: &[u8]| {
        let frame = [&[0, 18, 0, 0, 0, 0, 0, 1][..], client_id].concat();
        decode_request_header(&mut Bytes::from(frame))
    };
    assert_eq!(head(&[0xff, 0xff]).unwrap().client_id, None);
    assert_eq!(head(&[0, 1, 0xff]).unwrap().client_id.as_deref(), Some("\u{fffd}"));
    let negative = head(&[0x80, 0]).unwrap_err();
    assert!(matches!(negative, WireError::Malformed { problem: Problem::NegativeLength { .. }, .. }));
    let long = head(&[0x7f, 0xff]).unwrap_err();
    assert!(matches!(long, WireError::Malformed { problem: Problem::Truncated, .. }));
}

#[test]
fn unknown_api_is_named_by_its_number() {
    let frame = vec![0x03, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
    assert_eq!(decode_request_header(&mut Bytes::from(frame)), Err(WireError::UnknownApi { key: 999 }));
}

#[test]
fn field_that_a_version_does_not_have_is_our_bug() {
    let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![StrBytes::from_static_str("worker-1")]);
    let error = encode_request(ApiKey::FindCoordinator, 3, 1, "", &request).unwrap_err();
    assert!(matches!(error, WireError::Unencodable { api: ApiKey::FindCoordinator, version: 3, .. }));
}

#[test]
fn body_that_is_not_utf8_is_undecodable() {
    // FindCoordinator version 0: a key of one byte that starts no character.
    let body = Bytes::from_static(&[0, 1, 0xff]);
    let error = decode_request::<FindCoordinatorRequest>(ApiKey::FindCoordinator, 0, body);
    assert!(matches!(error, Err(WireError::Undecodable { .. })));
}
