//! Requests that no honest client sends: the broker answers or closes, and serves the next client as before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use oncewire_client::batch::{BatchBuilder, BatchLimits, ProducerStamp};
use oncewire_client::wire::frame;
use oncewire_dev_broker::api::Call;
use oncewire_dev_broker::{Broker, BrokerSettings, ConnectionId, DevBroker, DevBrokerConfig, Handled, Timestamp};
use proptest::prelude::*;

const ANSWER_WAIT: Duration = Duration::from_secs(10);

fn name(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn batch() -> Bytes {
    let mut builder = BatchBuilder::new(BatchLimits::default());
    builder.append(1_000, Some(b"k"), Some(b"v"), &[]).expect("it fits");
    builder.seal().stamp(ProducerStamp { producer_id: 1_000, producer_epoch: 0, base_sequence: 0, transactional: true })
}

/// One sound request of each kind, as frames without their length.
fn sound_requests() -> Vec<Bytes> {
    let encode = |frame: Result<Bytes, _>| -> Bytes { frame.expect("encodes").slice(4..) };
    let topic = TopicName(name("t"));
    let id = TransactionalId(name("x"));
    let creatable = create_topics_request::CreatableTopic::default()
        .with_name(topic.clone())
        .with_num_partitions(2)
        .with_replication_factor(1);
    let data = produce_request::PartitionProduceData::default().with_records(Some(batch()));
    let produce = produce_request::TopicProduceData::default().with_name(topic.clone()).with_partition_data(vec![data]);
    let wanted = fetch_request::FetchPartition::default().with_partition_max_bytes(1 << 20);
    let fetch = fetch_request::FetchTopic::default().with_topic(topic.clone()).with_partitions(vec![wanted]);
    let offset = list_offsets_request::ListOffsetsPartition::default().with_timestamp(-1);
    let offsets =
        list_offsets_request::ListOffsetsTopic::default().with_name(topic.clone()).with_partitions(vec![offset]);
    let added = add_partitions_to_txn_request::AddPartitionsToTxnTopic::default()
        .with_name(topic.clone())
        .with_partitions(vec![0]);
    let producers =
        describe_producers_request::TopicRequest::default().with_name(topic.clone()).with_partition_indexes(vec![0]);
    let resource = describe_configs_request::DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(name("t"));
    let deleted = delete_records_request::DeleteRecordsPartition::default().with_offset(0);
    let records =
        delete_records_request::DeleteRecordsTopic::default().with_name(topic.clone()).with_partitions(vec![deleted]);
    vec![
        encode(frame::encode_request(
            ApiKey::CreateTopics,
            7,
            1,
            "h",
            &CreateTopicsRequest::default().with_topics(vec![creatable]),
        )),
        encode(frame::encode_request(ApiKey::ApiVersions, 4, 1, "h", &ApiVersionsRequest::default())),
        encode(frame::encode_request(ApiKey::Metadata, 12, 1, "h", &MetadataRequest::default().with_topics(None))),
        encode(frame::encode_request(
            ApiKey::InitProducerId,
            4,
            1,
            "h",
            &InitProducerIdRequest::default()
                .with_transactional_id(Some(id.clone()))
                .with_transaction_timeout_ms(1_000)
                .with_producer_id(ProducerId(-1))
                .with_producer_epoch(-1),
        )),
        encode(frame::encode_request(
            ApiKey::Produce,
            12,
            1,
            "h",
            &ProduceRequest::default()
                .with_transactional_id(Some(id.clone()))
                .with_acks(-1)
                .with_topic_data(vec![produce]),
        )),
        encode(frame::encode_request(
            ApiKey::Fetch,
            12,
            1,
            "h",
            &FetchRequest::default().with_isolation_level(1).with_topics(vec![fetch]),
        )),
        encode(frame::encode_request(
            ApiKey::ListOffsets,
            7,
            1,
            "h",
            &ListOffsetsRequest::default().with_topics(vec![offsets]),
        )),
        encode(frame::encode_request(
            ApiKey::AddPartitionsToTxn,
            3,
            1,
            "h",
            &AddPartitionsToTxnRequest::default()
                .with_v3_and_below_transactional_id(id.clone())
                .with_v3_and_below_producer_id(ProducerId(1_000))
                .with_v3_and_below_topics(vec![added]),
        )),
        encode(frame::encode_request(
            ApiKey::EndTxn,
            5,
            1,
            "h",
            &EndTxnRequest::default().with_transactional_id(id.clone()).with_producer_id(ProducerId(1_000)),
        )),
        encode(frame::encode_request(
            ApiKey::DescribeProducers,
            0,
            1,
            "h",
            &DescribeProducersRequest::default().with_topics(vec![producers]),
        )),
        encode(frame::encode_request(
            ApiKey::DescribeTransactions,
            0,
            1,
            "h",
            &DescribeTransactionsRequest::default().with_transactional_ids(vec![id]),
        )),
        encode(frame::encode_request(ApiKey::ListTransactions, 2, 1, "h", &ListTransactionsRequest::default())),
        encode(frame::encode_request(
            ApiKey::DescribeConfigs,
            4,
            1,
            "h",
            &DescribeConfigsRequest::default().with_resources(vec![resource]),
        )),
        encode(frame::encode_request(
            ApiKey::DeleteRecords,
            2,
            1,
            "h",
            &DeleteRecordsRequest::default().with_topics(vec![records]),
        )),
        encode(frame::encode_request(
            ApiKey::DeleteTopics,
            5,
            1,
            "h",
            &DeleteTopicsRequest::default().with_topic_names(vec![topic]),
        )),
    ]
}

/// Serves a frame as the server does; whatever it holds, nothing may panic, and every answer can be encoded.
fn serve(broker: &mut Broker, mut frame: Bytes) {
    let Ok(head) = frame::decode_request_header(&mut frame) else { return };
    let Ok(call) = Call::decode(&head, frame) else { return };
    let (api, version) = (call.api, call.version);
    if let Handled::Reply(response) = broker.handle(Timestamp::from_millis(10_000), ConnectionId(1), call) {
        response.encode(api, version, head.correlation_id).expect("every answer can be encoded");
    }
}

#[test]
fn the_sound_requests_are_served() {
    let mut broker = Broker::new(BrokerSettings::default());
    for mut request in sound_requests() {
        let head = frame::decode_request_header(&mut request).expect("a header");
        let call = Call::decode(&head, request).expect("a request");
        let handled = broker.handle(Timestamp::from_millis(10_000), ConnectionId(1), call);
        assert!(matches!(handled, Handled::Reply(_)), "{:?}: {handled:?}", head.api);
    }
}

proptest! {
    #[test]
    fn changed_requests_never_panic(changes in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 1..40)) {
        let mut broker = Broker::new(BrokerSettings { partitions_max: 1_000, ..BrokerSettings::default() });
        for request in sound_requests().into_iter().take(4) {
            serve(&mut broker, request);
        }
        let requests = sound_requests();
        for (which, place, value) in changes {
            let mut changed = requests[which % requests.len()].to_vec();
            let place = place % changed.len();
            changed[place] = value;
            serve(&mut broker, changed.into());
        }
    }

    #[test]
    fn cut_requests_never_panic(which in any::<usize>(), keep in any::<usize>()) {
        let requests = sound_requests();
        let request = &requests[which % requests.len()];
        serve(&mut Broker::new(BrokerSettings::default()), request.slice(..keep % request.len()));
    }

    #[test]
    fn noise_never_panics(api in 0_u8..70, version in 0_u8..20, noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let frame = [&[0, api, 0, version, 0, 0, 0, 1, 0xff, 0xff][..], &noise].concat();
        serve(&mut Broker::new(BrokerSettings::default()), frame.into());
    }
}

#[test]
fn a_hostile_frame_ends_its_connection_and_no_other() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let broker = runtime.block_on(DevBroker::start(DevBrokerConfig::default())).expect("a free port is there");
    let hostile: [&[u8]; 7] = [
        &(-5_i32).to_be_bytes(),
        &i32::MAX.to_be_bytes(),
        &[0x16, 0x03, 0x01, 0x02, 0x00],
        b"GET / HTTP/1.1\r\n\r\n",
        // An API that does not exist.
        &[0, 0, 0, 10, 0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff],
        // A version that does not exist.
        &[0, 0, 0, 10, 0, 0, 0x7f, 0xff, 0, 0, 0, 1, 0xff, 0xff],
        // Metadata of 2^31-1 topics.
        &[0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff],
    ];
    for bytes in hostile {
        let mut stream = TcpStream::connect(broker.address()).expect("the broker accepts");
        stream.set_read_timeout(Some(ANSWER_WAIT)).expect("a timeout can be set");
        stream.write_all(bytes).expect("the bytes go out");
        let mut answer = Vec::new();
        // A reset is as good as an end.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{bytes:?} was answered");
    }
    let request =
        frame::encode_request(ApiKey::ApiVersions, 0, 9, "h", &ApiVersionsRequest::default()).expect("encodes");
    let mut stream = TcpStream::connect(broker.address()).expect("the broker accepts");
    stream.set_read_timeout(Some(ANSWER_WAIT)).expect("a timeout can be set");
    // One byte at a time: a frame may arrive in any pieces.
    for byte in &request {
        stream.write_all(&[*byte]).expect("the byte goes out");
    }
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).expect("an answer");
    runtime.block_on(broker.shutdown());
}
