//! Replays the fuzz corpora: what a fuzzer once found stays found.
//!
//! The seeds are written by `write_seeds`; everything else in `fuzz/corpus/` came from a run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::{self as m, ApiKey};
use kafka_protocol::protocol::{Encodable, StrBytes};

#[path = "../../fuzz/bodies/batch.rs"]
mod batch;
#[path = "../../fuzz/bodies/messages.rs"]
mod messages;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target)
}

fn replay(target: &str, body: fn(&[u8])) {
    let mut inputs = 0;
    for entry in fs::read_dir(corpus(target)).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the input fails
        body(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 5, "the corpus of {target} has its seeds");
}

#[test]
fn decode_response_corpus_replays() {
    replay("decode_response", messages::decode_response);
}

#[test]
fn decode_request_corpus_replays() {
    replay("decode_request", messages::decode_request);
}

#[test]
fn decode_batch_corpus_replays() {
    replay("decode_batch", batch::decode_batch);
}

fn write(target: &str, name: &str, input: &[u8]) {
    let path = corpus(target).join(name);
    if fs::read(&path).is_ok_and(|written| written == input) {
        return; // a replay may be reading it
    }
    fs::write(path, input).unwrap();
}

fn response(name: &str, api: ApiKey, version: i16, body: &impl Encodable) {
    let mut frame = BytesMut::new();
    frame.put_i32(1);
    frame.put_bytes(0, usize::from(api.response_header_version(version) >= 1));
    body.encode(&mut frame, version).unwrap();
    write("decode_response", name, &messages::input(api, version, &frame));
}

fn request(name: &str, api: ApiKey, version: i16, body: &impl Encodable) {
    let mut frame = BytesMut::new();
    frame.put_i16(api as i16);
    frame.put_i16(version);
    frame.put_i32(1);
    frame.put_i16(0);
    frame.put_bytes(0, usize::from(api.request_header_version(version) >= 2));
    body.encode(&mut frame, version).unwrap();
    write("decode_request", name, &messages::input(api, version, &frame));
}

fn raw_response(name: &str, api: ApiKey, version: i16, body: &[u8]) {
    let mut frame = vec![0, 0, 0, 1];
    frame.extend_from_slice(&vec![0; usize::from(api.response_header_version(version) >= 1)]);
    frame.extend_from_slice(body);
    write("decode_response", name, &messages::input(api, version, &frame));
}

#[test]
#[ignore = "writes the seeds of the fuzz corpora"]
fn write_seeds() {
    let text = StrBytes::from_static_str;
    let topic = || m::TopicName(text("topic"));
    let metadata_partition = m::metadata_response::MetadataResponsePartition::default()
        .with_replica_nodes(vec![m::BrokerId(1)])
        .with_isr_nodes(vec![m::BrokerId(1)]);
    let metadata_topic = m::metadata_response::MetadataResponseTopic::default()
        .with_name(Some(topic()))
        .with_partitions(vec![metadata_partition]);
    let broker = m::metadata_response::MetadataResponseBroker::default().with_host(text("localhost"));
    let metadata = m::MetadataResponse::default().with_brokers(vec![broker]).with_topics(vec![metadata_topic]);
    for version in [1, 4, 9, 12] {
        response(&format!("metadata_{version}"), ApiKey::Metadata, version, &metadata);
    }
    let api = m::api_versions_response::ApiVersion::default().with_api_key(18).with_max_version(4);
    let feature = m::api_versions_response::FinalizedFeatureKey::default().with_name(text("transaction.version"));
    let api_versions = m::ApiVersionsResponse::default()
        .with_api_keys(vec![api])
        .with_finalized_features_epoch(1)
        .with_finalized_features(vec![feature]);
    for version in [0, 3, 4] {
        response(&format!("api_versions_{version}"), ApiKey::ApiVersions, version, &api_versions);
    }
    let aborted = m::fetch_response::AbortedTransaction::default();
    let partition = m::fetch_response::PartitionData::default()
        .with_aborted_transactions(Some(vec![aborted]))
        .with_records(Some(batch_seed()));
    let fetched = |topic: m::fetch_response::FetchableTopicResponse| {
        m::FetchResponse::default().with_responses(vec![topic.with_partitions(vec![partition.clone()])])
    };
    let by_name = m::fetch_response::FetchableTopicResponse::default().with_topic(topic());
    for version in [4, 11, 12] {
        response(&format!("fetch_{version}"), ApiKey::Fetch, version, &fetched(by_name.clone()));
    }
    response("fetch_17", ApiKey::Fetch, 17, &fetched(Default::default()));
    response("end_txn_5", ApiKey::EndTxn, 5, &m::EndTxnResponse::default());

    let data = m::produce_request::PartitionProduceData::default().with_records(Some(batch_seed()));
    let data = m::produce_request::TopicProduceData::default().with_name(topic()).with_partition_data(vec![data]);
    let produce = m::ProduceRequest::default().with_topic_data(vec![data]);
    for version in [3, 8, 9, 12] {
        request(&format!("produce_{version}"), ApiKey::Produce, version, &produce);
    }
    let creatable = m::create_topics_request::CreatableTopic::default().with_name(topic());
    let create = m::CreateTopicsRequest::default().with_topics(vec![creatable]);
    request("create_topics_4", ApiKey::CreateTopics, 4, &create);
    request("create_topics_7", ApiKey::CreateTopics, 7, &create);
    request("end_txn_3", ApiKey::EndTxn, 3, &m::EndTxnRequest::default());
    request("api_versions_3", ApiKey::ApiVersions, 3, &m::ApiVersionsRequest::default());

    raw_response("hostile_metadata_count", ApiKey::Metadata, 1, &[0x7f, 0xff, 0xff, 0xff]);
    raw_response("hostile_metadata_compact", ApiKey::Metadata, 12, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    raw_response("hostile_metadata_varint", ApiKey::Metadata, 12, &[&[0; 4][..], &[0xff; 32]].concat());
    raw_response("hostile_api_versions_count", ApiKey::ApiVersions, 3, &[0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]);

    let honest = batch_seed();
    write("decode_batch", "honest", &honest);
    write("decode_batch", "two", &[&honest[..], &honest[..]].concat());
    write("decode_batch", "cut", &honest[..honest.len() - 3]);
    for (name, at, value) in
        [("hostile_record_count", 57, i32::MAX), ("hostile_last_offset_delta", 23, -1), ("hostile_length", 8, i32::MAX)]
    {
        let mut bytes = honest.to_vec();
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        write("decode_batch", name, &bytes);
    }
    for line in include_str!("batch_golden/java-4.3.1.txt").lines() {
        let (name, hex) = line.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<_> = (0..hex.len()).step_by(2).map(byte).collect();
        if bytes.len() < 2_000 {
            write("decode_batch", &format!("java_{name}"), &bytes);
        }
    }
}

fn batch_seed() -> bytes::Bytes {
    use oncewire_client::batch::*;
    let mut builder = BatchBuilder::new(BatchLimits::default());
    let headers = [Header { key: "h", value: Some(b"1") }, Header { key: "h", value: None }];
    builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &headers).unwrap();
    builder.append(1_700_000_000_500, None, None, &[]).unwrap();
    let stamp = ProducerStamp { producer_id: 1, producer_epoch: 0, base_sequence: 0, transactional: true };
    builder.seal().stamp(stamp)
}
