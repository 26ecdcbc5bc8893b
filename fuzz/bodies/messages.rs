//! Messages from a stranger: any bytes give a message or an error.
//!
//! An input is one byte for the API, one for its version, and a frame without its length prefix. What
//! must hold: nothing panics; what the guard lets pass, the decoder reads to the last byte, unless it
//! dislikes a value; and a message that encodes again decodes to itself.

#![allow(dead_code, reason = "each fuzz target uses one function, the replay in `cargo test` all")]

use std::fmt::Debug;

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Decodable, Encodable};
use oncewire_client::wire::WireError;
use oncewire_client::wire::api::ApiKey;
use oncewire_client::wire::frame;

/// The APIs with their types, in the order in which an input's first byte counts them.
macro_rules! apis {
    ($visit:ident!) => {
        $visit! {
            Produce: ProduceRequest, ProduceResponse;
            Fetch: FetchRequest, FetchResponse;
            ListOffsets: ListOffsetsRequest, ListOffsetsResponse;
            Metadata: MetadataRequest, MetadataResponse;
            ApiVersions: ApiVersionsRequest, ApiVersionsResponse;
            FindCoordinator: FindCoordinatorRequest, FindCoordinatorResponse;
            InitProducerId: InitProducerIdRequest, InitProducerIdResponse;
            AddPartitionsToTxn: AddPartitionsToTxnRequest, AddPartitionsToTxnResponse;
            EndTxn: EndTxnRequest, EndTxnResponse;
            CreateTopics: CreateTopicsRequest, CreateTopicsResponse;
            DeleteTopics: DeleteTopicsRequest, DeleteTopicsResponse;
            DeleteRecords: DeleteRecordsRequest, DeleteRecordsResponse;
            DescribeConfigs: DescribeConfigsRequest, DescribeConfigsResponse;
            DescribeCluster: DescribeClusterRequest, DescribeClusterResponse;
            DescribeProducers: DescribeProducersRequest, DescribeProducersResponse;
            DescribeTransactions: DescribeTransactionsRequest, DescribeTransactionsResponse;
            ListTransactions: ListTransactionsRequest, ListTransactionsResponse;
            SaslHandshake: SaslHandshakeRequest, SaslHandshakeResponse;
            SaslAuthenticate: SaslAuthenticateRequest, SaslAuthenticateResponse;
            JoinGroup: JoinGroupRequest, JoinGroupResponse;
            SyncGroup: SyncGroupRequest, SyncGroupResponse;
            Heartbeat: HeartbeatRequest, HeartbeatResponse;
            LeaveGroup: LeaveGroupRequest, LeaveGroupResponse;
            DescribeGroups: DescribeGroupsRequest, DescribeGroupsResponse;
            ListGroups: ListGroupsRequest, ListGroupsResponse;
            IncrementalAlterConfigs: IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
        }
    };
}

macro_rules! list {
    ($($key:ident: $request:ident, $response:ident;)+) => { &[$(ApiKey::$key),+] };
}

/// In the order of an input's first byte.
pub(crate) const APIS: &[ApiKey] = apis!(list!);

/// The bytes of an input: the seeds are written with it.
pub(crate) fn input(api: ApiKey, version: i16, frame: &[u8]) -> Vec<u8> {
    let index = APIS.iter().position(|listed| *listed == api).expect("an API with tables");
    let mut input = vec![index as u8, version as u8];
    input.extend_from_slice(frame);
    input
}

fn parse(data: &[u8]) -> Option<(ApiKey, i16, Bytes)> {
    let [api, version, frame @ ..] = data else { return None };
    let api = APIS[usize::from(*api) % APIS.len()];
    Some((api, i16::from(*version % 20), Bytes::copy_from_slice(frame)))
}

pub(crate) fn decode_response(data: &[u8]) {
    let Some((api, version, mut body)) = parse(data) else { return };
    if frame::decode_response_header(api, version, &mut body).is_err() {
        return;
    }
    macro_rules! visit {
        ($($key:ident: $request:ident, $response:ident;)+) => {
            match api {
                $(ApiKey::$key => check::<m::$response>(
                    |bytes| frame::decode_response(api, version, bytes),
                    |message| {
                        let frame = frame::encode_response(api, version, 1, message).ok()?;
                        let mut rest = frame.slice(frame::LENGTH_PREFIX_BYTES..);
                        frame::decode_response_header(api, version, &mut rest).expect("our own header");
                        Some(rest)
                    },
                    body,
                ),)+
                _ => unreachable!("parse takes APIs from the list"),
            }
        };
    }
    apis!(visit!);
}

pub(crate) fn decode_request(data: &[u8]) {
    let Some((api, version, mut body)) = parse(data) else { return };
    // The header on its own, with whatever API it names.
    let _ = frame::decode_request_header(&mut body.clone());
    // And the body of the API that the input names, behind a header that is skipped by its length.
    if body.len() < 11 {
        return;
    }
    let tags = usize::from(api.request_header_version(version) >= 2);
    let mut rest = body.split_off(10 + tags);
    std::mem::swap(&mut rest, &mut body);
    macro_rules! visit {
        ($($key:ident: $request:ident, $response:ident;)+) => {
            match api {
                $(ApiKey::$key => check::<m::$request>(
                    |bytes| frame::decode_request(api, version, bytes),
                    |message| {
                        let frame = frame::encode_request(api, version, 1, "", message).ok()?;
                        let mut rest = frame.slice(frame::LENGTH_PREFIX_BYTES..);
                        let head = frame::decode_request_header(&mut rest).expect("our own header");
                        assert_eq!((head.api, head.version), (api, version));
                        Some(rest)
                    },
                    body,
                ),)+
                _ => unreachable!("parse takes APIs from the list"),
            }
        };
    }
    apis!(visit!);
}

fn check<T: Decodable + Encodable + PartialEq + Debug>(
    decode: impl Fn(Bytes) -> Result<T, WireError>,
    encode: impl Fn(&T) -> Option<Bytes>,
    body: Bytes,
) {
    let message = match decode(body) {
        Ok(message) => message,
        Err(WireError::Undecodable { reason, .. }) => {
            // These two say that the guard and the decoder read the bytes differently.
            assert!(!reason.contains("after the message"), "{reason}");
            assert!(!reason.contains("Not enough bytes"), "{reason}");
            return;
        }
        Err(_) => return,
    };
    if let Some(bytes) = encode(&message) {
        match decode(bytes) {
            Ok(again) => assert_eq!(again, message),
            // Without the original's padding, tiny elements may pass the memory limit.
            Err(WireError::Malformed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
