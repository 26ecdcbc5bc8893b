//! The tables against kafka-protocol: messages are written from a table, field by field, and must
//! decode to the last byte, in every version of every API. A table that misses a field, has it in a
//! wrong version or forgets a tag fails here, and so does a guard that refuses what is honest.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{self as m, ApiKey};

use super::WireError;
use super::frame::{decode_request, decode_response};
use super::guard::{check_request, check_response};
use super::shape::{Field, Kind, Message, Shape};
use super::shapes;

const SEEDS: u64 = 40;

/// Writes a message as its table says, with random content.
struct Writer {
    bytes: BytesMut,
    version: i16,
    flexible: bool,
    seed: u64,
    elements_max: usize,
    nulls: bool,
}

impl Writer {
    /// SplitMix64: enough chance for content, and the seed repeats it.
    fn below(&mut self, limit: usize) -> usize {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn structure(&mut self, shape: &Shape) {
        for field in shape.fields {
            if (field.since..=field.until).contains(&self.version) {
                self.field(field);
            }
        }
        if self.flexible {
            self.tags(shape);
        }
    }

    fn tags(&mut self, shape: &Shape) {
        let mut tags = Vec::new();
        for known in shape.tagged {
            if self.version >= known.field.since && self.below(2) == 0 {
                let outer = std::mem::take(&mut self.bytes);
                self.field(&known.field);
                tags.push((known.tag, std::mem::replace(&mut self.bytes, outer)));
            }
        }
        for tag in 0..self.below(3) {
            tags.push((1_000 + tag as u32, BytesMut::from(&[7; 5][..])));
        }
        self.unsigned_varint(tags.len() as u32);
        for (tag, content) in tags {
            self.unsigned_varint(tag);
            self.unsigned_varint(content.len() as u32);
            self.bytes.extend_from_slice(&content);
        }
    }

    fn field(&mut self, field: &Field) {
        match field.kind {
            Kind::Fixed(width) => self.fill(width),
            Kind::String => self.string(),
            Kind::Bytes => {
                let len = self.below(20);
                self.count(len, 4);
                self.fill(len);
            }
            Kind::Fixeds(width) => {
                let count = self.elements();
                self.fill(count * width);
            }
            Kind::Strings => (0..self.elements()).for_each(|_| self.string()),
            Kind::Array(element) => (0..self.elements()).for_each(|_| self.structure(element)),
            Kind::Struct(shape) => self.structure(shape),
        }
    }

    fn elements(&mut self) -> usize {
        let count = self.below(self.elements_max + 1);
        self.count(count, 4)
    }

    fn string(&mut self) {
        let len = self.below(12);
        let len = self.count(len, 2);
        self.fill(len);
    }

    /// Writes a length, or a null instead of an empty one where nulls are wanted.
    fn count(&mut self, count: usize, width: usize) -> usize {
        let null = self.nulls && count == 0;
        match (self.flexible, width) {
            (true, _) => self.unsigned_varint(if null { 0 } else { count as u32 + 1 }),
            (false, 2) => self.bytes.put_i16(if null { -1 } else { count as i16 }),
            (false, _) => self.bytes.put_i32(if null { -1 } else { count as i32 }),
        }
        count
    }

    fn fill(&mut self, len: usize) {
        for _ in 0..len {
            let byte = b'a' + self.below(26) as u8; // letters: they are UTF-8 wherever a string stands
            self.bytes.put_u8(byte);
        }
    }

    fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.put_u8(value as u8);
    }
}

fn sample(message: &Message, version: i16, seed: u64, nulls: bool) -> Bytes {
    let flexible = version >= message.flexible_since;
    let mut writer = Writer { bytes: BytesMut::new(), version, flexible, seed, elements_max: 3, nulls };
    writer.structure(&message.body);
    writer.bytes.freeze()
}

/// Decodes and throws away, with the type that belongs to the API.
macro_rules! decode_any {
    ($decode:ident, $api:expr, $version:expr, $bytes:expr, $($key:ident => $message:ident),+ $(,)?) => {
        match $api {
            $(ApiKey::$key => $decode::<m::$message>($api, $version, $bytes).map(drop),)+
            api => panic!("{api:?} has a table and no test"),
        }
    };
}

fn decode_any_request(api: ApiKey, version: i16, bytes: Bytes) -> Result<(), WireError> {
    decode_any!(decode_request, api, version, bytes,
        Produce => ProduceRequest, Fetch => FetchRequest, ListOffsets => ListOffsetsRequest,
        DeleteRecords => DeleteRecordsRequest, ApiVersions => ApiVersionsRequest,
        Metadata => MetadataRequest, FindCoordinator => FindCoordinatorRequest,
        DescribeCluster => DescribeClusterRequest, SaslHandshake => SaslHandshakeRequest,
        SaslAuthenticate => SaslAuthenticateRequest, InitProducerId => InitProducerIdRequest,
        AddPartitionsToTxn => AddPartitionsToTxnRequest, EndTxn => EndTxnRequest,
        DescribeTransactions => DescribeTransactionsRequest,
        ListTransactions => ListTransactionsRequest, DescribeProducers => DescribeProducersRequest,
        CreateTopics => CreateTopicsRequest, DeleteTopics => DeleteTopicsRequest,
        DescribeConfigs => DescribeConfigsRequest,
        IncrementalAlterConfigs => IncrementalAlterConfigsRequest,
        JoinGroup => JoinGroupRequest,
        SyncGroup => SyncGroupRequest,
        Heartbeat => HeartbeatRequest,
        LeaveGroup => LeaveGroupRequest,
        DescribeGroups => DescribeGroupsRequest,
        ListGroups => ListGroupsRequest)
}

fn decode_any_response(api: ApiKey, version: i16, bytes: Bytes) -> Result<(), WireError> {
    decode_any!(decode_response, api, version, bytes,
        Produce => ProduceResponse, Fetch => FetchResponse, ListOffsets => ListOffsetsResponse,
        DeleteRecords => DeleteRecordsResponse, ApiVersions => ApiVersionsResponse,
        Metadata => MetadataResponse, FindCoordinator => FindCoordinatorResponse,
        DescribeCluster => DescribeClusterResponse, SaslHandshake => SaslHandshakeResponse,
        SaslAuthenticate => SaslAuthenticateResponse, InitProducerId => InitProducerIdResponse,
        AddPartitionsToTxn => AddPartitionsToTxnResponse, EndTxn => EndTxnResponse,
        DescribeTransactions => DescribeTransactionsResponse,
        ListTransactions => ListTransactionsResponse,
        DescribeProducers => DescribeProducersResponse, CreateTopics => CreateTopicsResponse,
        DeleteTopics => DeleteTopicsResponse, DescribeConfigs => DescribeConfigsResponse,
        IncrementalAlterConfigs => IncrementalAlterConfigsResponse,
        JoinGroup => JoinGroupResponse,
        SyncGroup => SyncGroupResponse,
        Heartbeat => HeartbeatResponse,
        LeaveGroup => LeaveGroupResponse,
        DescribeGroups => DescribeGroupsResponse,
        ListGroups => ListGroupsResponse)
}

type Check = fn(ApiKey, i16, &[u8]) -> Result<(), WireError>;
type Decode = fn(ApiKey, i16, Bytes) -> Result<(), WireError>;

/// Every request and response in every version: its table, its check and its decoder.
fn for_each_version(mut visit: impl FnMut(ApiKey, &'static Message, i16, Check, Decode)) {
    for api in shapes::APIS {
        let request = shapes::request(*api).expect("listed");
        let response = shapes::response(*api).expect("listed");
        for version in request.versions.0..=request.versions.1 {
            visit(*api, request, version, check_request, decode_any_request);
        }
        for version in response.versions.0..=response.versions.1 {
            visit(*api, response, version, check_response, decode_any_response);
        }
    }
}

#[test]
fn every_version_of_every_message_decodes_as_its_table_says() {
    for_each_version(|api, message, version, _, decode| {
        for seed in 0..SEEDS {
            let bytes = sample(message, version, seed, false);
            let result = decode(api, version, bytes);
            assert_eq!(result, Ok(()), "{} version {version} seed {seed}", message.name);
        }
    });
}

#[test]
fn tables_have_exactly_the_versions_of_kafka_protocol() {
    for api in shapes::APIS {
        let mut theirs = api.valid_versions();
        if *api == ApiKey::InitProducerId {
            theirs.max = 5; // it lists 6, which its request doesn't encode
        }
        for message in [shapes::request(*api), shapes::response(*api)] {
            let message = message.expect("listed");
            assert_eq!(message.versions, (theirs.min, theirs.max), "{}", message.name);
        }
    }
}

#[test]
fn flexible_versions_are_those_of_kafka_protocols_headers() {
    for_each_version(|api, message, version, _, _| {
        let flexible = version >= message.flexible_since;
        assert_eq!(api.request_header_version(version) >= 2, flexible, "{} {version}", message.name);
        let response = api.response_header_version(version) >= 1;
        assert_eq!(response, flexible && api != ApiKey::ApiVersions, "{} {version}", message.name);
    });
}

#[test]
fn nulls_pass_the_guard_and_are_the_decoders_to_judge() {
    for_each_version(|api, message, version, check, decode| {
        for seed in 0..SEEDS {
            let bytes = sample(message, version, seed, true);
            assert_eq!(check(api, version, &bytes), Ok(()), "{} {version} {seed}", message.name);
            if let Err(error) = decode(api, version, bytes) {
                assert!(matches!(error, WireError::Undecodable { .. }), "{error}");
            }
        }
    });
}

#[test]
fn message_cut_at_any_byte_is_refused_before_it_is_decoded() {
    for_each_version(|api, message, version, check, _| {
        for seed in 0..4 {
            let bytes = sample(message, version, seed, false);
            for len in 0..bytes.len() {
                let error = check(api, version, &bytes[..len]).expect_err("cut off");
                let WireError::Malformed { message: name, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!(name, message.name);
            }
        }
    });
}

#[test]
fn byte_after_the_message_is_refused() {
    for_each_version(|api, message, version, check, _| {
        let mut bytes = sample(message, version, 1, false).to_vec();
        bytes.push(0);
        assert!(check(api, version, &bytes).is_err(), "{} {version}", message.name);
    });
}

/// What the guard lets pass, kafka-protocol reads to the same byte or refuses for a value.
#[test]
fn changed_bytes_are_refused_or_decoded_without_panic() {
    for_each_version(|api, message, version, _, decode| {
        for seed in 0..3 {
            let bytes = sample(message, version, seed, seed == 2);
            for at in 0..bytes.len() {
                for change in [0x01, 0x80, 0xff, 0x7f] {
                    let mut changed = bytes.to_vec();
                    changed[at] ^= change;
                    if let Err(WireError::Undecodable { reason, .. }) = decode(api, version, changed.into()) {
                        assert!(!reason.contains("after the message"), "{}: {reason}", message.name);
                        assert!(!reason.contains("Not enough bytes"), "{}: {reason}", message.name);
                    }
                }
            }
        }
    });
}

#[test]
fn version_without_a_table_is_refused() {
    for (api, version) in [(ApiKey::Produce, 2), (ApiKey::Fetch, 19), (ApiKey::Metadata, -1), (ApiKey::Vote, 0)] {
        let unsupported = Err(WireError::UnsupportedVersion { api, version });
        assert_eq!(check_request(api, version, &[]), unsupported);
        assert_eq!(check_response(api, version, &[]), unsupported);
    }
}
