//! The stories, and the few requests that all of them use.

mod groups;
mod produce;
mod read;
mod topics;
mod transactions;

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use oncewire_client::batch::{BatchBuilder, BatchLimits, ProducerStamp};

use crate::raw::RawClient;
use crate::transcript::Transcript;

pub(crate) const CONCURRENT_TRANSACTIONS: i16 = 51;
const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
/// Markers take milliseconds, a new topic's leader some more.
const SETTLE_WAIT: Duration = Duration::from_secs(20);

/// Runs all stories against one broker.
pub(crate) fn tell_all(bootstrap: &str) -> String {
    let client = RawClient::connect(bootstrap);
    let mut teller = Teller { client, second: RawClient::connect(bootstrap), told: Transcript::default() };
    teller.find_coordinator("warm-up");
    topics::tell(&mut teller);
    produce::tell(&mut teller);
    transactions::tell(&mut teller);
    read::tell(&mut teller);
    groups::tell(&mut teller);
    teller.told.text()
}

/// A producer's id and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

impl Identity {
    pub(crate) const NONE: Self = Self { id: -1, epoch: -1 };

    pub(crate) fn plus(self, epochs: i16) -> Self {
        Self { epoch: self.epoch + epochs, ..self }
    }
}

pub(crate) struct Teller {
    pub(crate) client: RawClient,
    /// For those who wait for each other.
    pub(crate) second: RawClient,
    pub(crate) told: Transcript,
}

pub(crate) fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

/// One batch with these many records.
pub(crate) fn batch(producer: Identity, sequence: i32, records: i32, transactional: bool) -> Bytes {
    batch_at(now_ms(), producer, sequence, records, transactional)
}

pub(crate) fn batch_at(
    timestamp_ms: i64,
    producer: Identity,
    sequence: i32,
    records: i32,
    transactional: bool,
) -> Bytes {
    let mut builder = BatchBuilder::new(BatchLimits::default());
    for index in 0..records {
        let value = format!("value {index}");
        builder.append(timestamp_ms + i64::from(index), None, Some(value.as_bytes()), &[]).expect("it fits");
    }
    builder.seal().stamp(ProducerStamp {
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        base_sequence: sequence,
        transactional,
    })
}

pub(crate) fn now_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since_epoch.as_millis()).expect("before the year 292 million")
}

impl Teller {
    pub(crate) fn find_coordinator(&mut self, id: &str) {
        let deadline = Instant::now() + SETTLE_WAIT;
        loop {
            let request = FindCoordinatorRequest::default().with_key_type(1).with_coordinator_keys(vec![text(id)]);
            let found: FindCoordinatorResponse = self.client.call(ApiKey::FindCoordinator, 4, &request);
            if found.coordinators[0].error_code == 0 {
                return;
            }
            assert!(Instant::now() < deadline, "no transaction coordinator");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Makes a topic and waits until it has a leader.
    pub(crate) fn topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> uuid::Uuid {
        let configs = configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value))))
            .collect();
        let topic = CreatableTopic::default()
            .with_name(TopicName(text(name)))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
            .with_configs(configs);
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let made: CreateTopicsResponse = self.client.call(ApiKey::CreateTopics, 7, &request);
        assert_eq!(made.topics[0].error_code, 0, "topic {name}");
        let deadline = Instant::now() + SETTLE_WAIT;
        for partition in 0..partitions {
            loop {
                let asked = list_offsets_request::ListOffsetsPartition::default()
                    .with_partition_index(partition)
                    .with_timestamp(-1);
                let topic = list_offsets_request::ListOffsetsTopic::default()
                    .with_name(TopicName(text(name)))
                    .with_partitions(vec![asked]);
                let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
                let found: ListOffsetsResponse = self.client.call(ApiKey::ListOffsets, 7, &request);
                if found.topics[0].partitions[0].error_code == 0 {
                    break;
                }
                assert!(Instant::now() < deadline, "topic {name} has no leader");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        made.topics[0].topic_id
    }

    pub(crate) fn init_once(&mut self, version: i16, id: Option<&str>, brought: Identity) -> InitProducerIdResponse {
        self.init_for(60_000, version, id, brought)
    }

    pub(crate) fn init_for(
        &mut self,
        timeout_ms: i32,
        version: i16,
        id: Option<&str>,
        brought: Identity,
    ) -> InitProducerIdResponse {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(id.map(|id| TransactionalId(text(id))))
            .with_transaction_timeout_ms(timeout_ms)
            .with_producer_id(ProducerId(brought.id))
            .with_producer_epoch(brought.epoch);
        // A real broker fetches its first block of producer ids meanwhile.
        let deadline = Instant::now() + SETTLE_WAIT;
        loop {
            let answer: InitProducerIdResponse = self.client.call(ApiKey::InitProducerId, version, &request);
            if answer.error_code != COORDINATOR_LOAD_IN_PROGRESS || Instant::now() > deadline {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks until the answer is another than CONCURRENT_TRANSACTIONS.
    pub(crate) fn init(&mut self, id: &str, brought: Identity) -> InitProducerIdResponse {
        self.settled(|teller| {
            let answer = teller.init_once(4, Some(id), brought);
            (answer.error_code, answer)
        })
    }

    /// A producer for a transactional id, which must succeed.
    pub(crate) fn producer(&mut self, id: &str) -> Identity {
        let answer = self.init(id, Identity::NONE);
        assert_eq!(answer.error_code, 0, "InitProducerId of {id}");
        Identity { id: answer.producer_id.0, epoch: answer.producer_epoch }
    }

    pub(crate) fn add_once(&mut self, version: i16, id: &str, producer: Identity, topics: &[&str]) -> Vec<i16> {
        let asked = topics
            .iter()
            .map(|name| {
                add_partitions_to_txn_request::AddPartitionsToTxnTopic::default()
                    .with_name(TopicName(text(name)))
                    .with_partitions(vec![0])
            })
            .collect();
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(TransactionalId(text(id)))
            .with_v3_and_below_producer_id(ProducerId(producer.id))
            .with_v3_and_below_producer_epoch(producer.epoch)
            .with_v3_and_below_topics(asked);
        let answer: AddPartitionsToTxnResponse = self.client.call(ApiKey::AddPartitionsToTxn, version, &request);
        // A broker answers in an order of its own.
        let code_of = |name: &&str| {
            let mut results = answer.results_by_topic_v3_and_below.iter();
            let result = results.find(|topic| topic.name.as_str() == *name).expect("every topic is answered");
            result.results_by_partition[0].partition_error_code
        };
        topics.iter().map(code_of).collect()
    }

    pub(crate) fn add(&mut self, version: i16, id: &str, producer: Identity, topic: &str) -> i16 {
        self.settled(|teller| {
            let code = teller.add_once(version, id, producer, &[topic])[0];
            (code, code)
        })
    }

    pub(crate) fn end(&mut self, version: i16, id: &str, producer: Identity, commit: bool) -> EndTxnResponse {
        let request = EndTxnRequest::default()
            .with_transactional_id(TransactionalId(text(id)))
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch)
            .with_committed(commit);
        self.settled(|teller| {
            let answer: EndTxnResponse = teller.client.call(ApiKey::EndTxn, version, &request);
            (answer.error_code, answer)
        })
    }

    pub(crate) fn produce_request(id: Option<&str>, acks: i16, topic: &str, records: Bytes) -> ProduceRequest {
        let data = PartitionProduceData::default().with_index(0).with_records(Some(records));
        let topic = TopicProduceData::default().with_name(TopicName(text(topic))).with_partition_data(vec![data]);
        ProduceRequest::default()
            .with_transactional_id(id.map(|id| TransactionalId(text(id))))
            .with_acks(acks)
            .with_timeout_ms(10_000)
            .with_topic_data(vec![topic])
    }

    pub(crate) fn produce(
        &mut self,
        version: i16,
        id: Option<&str>,
        topic: &str,
        records: Bytes,
    ) -> PartitionProduceResponse {
        let request = Self::produce_request(id, -1, topic, records);
        self.settled(|teller| {
            let answer: ProduceResponse = teller.client.call(ApiKey::Produce, version, &request);
            let partition = answer.responses[0].partition_responses[0].clone();
            (partition.error_code, partition)
        })
    }

    /// Notes a produced batch: its offset, or the error.
    pub(crate) fn note_produced(&mut self, step: &str, version: i16, id: Option<&str>, topic: &str, records: Bytes) {
        let answer = self.produce(version, id, topic, records);
        match answer.error_code {
            0 => self.told.note(step, format!("at offset {}", answer.base_offset)),
            code => self.told.code(step, code),
        }
    }

    /// Repeats while the markers of the last transaction are being written.
    pub(crate) fn settled<A>(&mut self, mut ask: impl FnMut(&mut Self) -> (i16, A)) -> A {
        let deadline = Instant::now() + SETTLE_WAIT;
        loop {
            let (code, answer) = ask(self);
            if code != CONCURRENT_TRANSACTIONS || Instant::now() > deadline {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
