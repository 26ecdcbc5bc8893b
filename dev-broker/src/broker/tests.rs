//! The core as a driver sees it: waits, wakes, faults, limits. What single answers say is compared with Kafka's in
//! `tests/`.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, CreateTopicsRequest, EndTxnRequest, InitProducerIdRequest, MetadataRequest,
    ProducerId, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;
use oncewire_client::batch::batches;

use super::*;
use crate::sample::SampleBatch;
use crate::transactions::state::ProducerIdentity;

const ONE: ConnectionId = ConnectionId(1);
const TWO: ConnectionId = ConnectionId(2);
const MARKERS: Duration = Duration::from_millis(5);

struct Story {
    broker: Broker,
    now: Timestamp,
}

impl Story {
    fn new(settings: BrokerSettings) -> Self {
        let mut story = Self { broker: Broker::new(settings), now: Timestamp::from_millis(10_000) };
        let topic = CreatableTopic::default().with_name(topic()).with_num_partitions(2).with_replication_factor(1);
        let request = CreateTopicsRequest::default().with_topics(vec![topic]);
        story.ask(ONE, ApiKey::CreateTopics, 7, Request::CreateTopics(request));
        story
    }

    fn with_slow_markers() -> Self {
        Self::new(BrokerSettings { marker_delay: MARKERS, ..BrokerSettings::default() })
    }

    fn ask(&mut self, connection: ConnectionId, api: ApiKey, version: i16, request: Request) -> Handled {
        self.broker.handle(self.now, connection, Call { api, version, request })
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.broker.tick(self.now);
    }

    fn init(&mut self) -> ProducerIdentity {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(id()))
            .with_transaction_timeout_ms(60_000)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1);
        match self.ask(ONE, ApiKey::InitProducerId, 4, Request::InitProducerId(request)) {
            Handled::Reply(Response::InitProducerId(answer)) if answer.error_code == 0 => {
                ProducerIdentity { id: answer.producer_id.0, epoch: answer.producer_epoch }
            }
            other => panic!("{other:?}"),
        }
    }

    fn produce(&mut self, connection: ConnectionId, version: i16, acks: i16, batch: &SampleBatch) -> Handled {
        let data = PartitionProduceData::default().with_index(0).with_records(Some(batch.bytes()));
        let topic = TopicProduceData::default().with_name(topic()).with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_transactional_id(batch.transactional.then(id))
            .with_acks(acks)
            .with_topic_data(vec![topic]);
        self.ask(connection, ApiKey::Produce, version, Request::Produce(request))
    }

    fn produce_in_txn(&mut self, connection: ConnectionId, producer: ProducerIdentity, sequence: i32) -> Handled {
        let batch = SampleBatch::transactional(producer.id, producer.epoch, sequence, 1);
        self.produce(connection, 12, -1, &batch)
    }

    fn end(&mut self, connection: ConnectionId, producer: ProducerIdentity, commit: bool) -> Handled {
        let request = EndTxnRequest::default()
            .with_transactional_id(id())
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch)
            .with_committed(commit);
        self.ask(connection, ApiKey::EndTxn, 5, Request::EndTxn(request))
    }

    fn fetch(&mut self, connection: ConnectionId, offset: i64, isolation: i8, wait_ms: i32) -> Handled {
        let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
        let topic = FetchTopic::default().with_topic(topic()).with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_wait_ms(wait_ms)
            .with_min_bytes(1)
            .with_isolation_level(isolation)
            .with_topics(vec![topic]);
        self.ask(connection, ApiKey::Fetch, 11, Request::Fetch(Box::new(request)))
    }

    fn answered(&mut self) -> Vec<(ConnectionId, Handled)> {
        std::iter::from_fn(|| self.broker.poll_ready()).collect()
    }

    fn end_offset(&self) -> i64 {
        self.broker.topics.partition(&topic(), 0).unwrap().log.end_offset()
    }
}

fn topic() -> TopicName {
    TopicName(StrBytes::from_static_str("t"))
}

fn id() -> TransactionalId {
    TransactionalId(StrBytes::from_static_str("x"))
}

fn produced(handled: &Handled) -> (i16, i64) {
    match handled {
        Handled::Reply(Response::Produce(answer)) => {
            let partition = &answer.responses[0].partition_responses[0];
            (partition.error_code, partition.base_offset)
        }
        other => panic!("{other:?}"),
    }
}

fn ended(handled: &Handled) -> i16 {
    match handled {
        Handled::Reply(Response::EndTxn(answer)) => answer.error_code,
        other => panic!("{other:?}"),
    }
}

/// Base offsets of the fetched batches.
fn fetched(handled: &Handled) -> Vec<i64> {
    match handled {
        Handled::Reply(Response::Fetch(answer)) => {
            let records = answer.responses[0].partitions[0].records.clone().unwrap();
            batches(&records).map(|batch| batch.unwrap().base_offset).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn plain() -> SampleBatch {
    SampleBatch::plain(3)
}

#[test]
fn a_fetch_with_data_is_answered_at_once_and_one_without_waits_for_it() {
    let mut story = Story::new(BrokerSettings::default());
    assert_eq!(story.fetch(TWO, 0, 0, 500), Handled::Park);
    assert_eq!(story.answered(), []);
    story.produce(ONE, 9, -1, &plain());
    let answered = story.answered();
    assert_eq!((answered.len(), answered[0].0, fetched(&answered[0].1)), (1, TWO, vec![0]));
    assert_eq!(fetched(&story.fetch(TWO, 0, 0, 500)), [0]);
}

#[test]
fn a_fetch_that_waited_long_enough_is_answered_empty() {
    let mut story = Story::new(BrokerSettings::default());
    assert_eq!(story.fetch(TWO, 0, 0, 500), Handled::Park);
    assert_eq!(story.broker.next_deadline(), Some(story.now + Duration::from_millis(500)));
    story.pass(Duration::from_millis(499));
    assert_eq!(story.answered(), []);
    story.pass(Duration::from_millis(1));
    assert_eq!(fetched(&story.answered()[0].1), [0; 0]);
}

#[test]
fn undecided_data_does_not_wake_a_reader_of_committed_data() {
    let mut story = Story::with_slow_markers();
    let producer = story.init();
    assert_eq!(story.fetch(TWO, 0, 1, 500), Handled::Park);
    story.produce_in_txn(ONE, producer, 0);
    assert_eq!(story.answered(), []);
    assert_eq!(ended(&story.end(ONE, producer, true)), 0);
    assert_eq!(story.answered(), [], "decided, but the marker is not written");
    story.pass(MARKERS);
    assert_eq!(fetched(&story.answered()[0].1), [0, 1]);
}

#[test]
fn deleting_the_topic_wakes_its_readers_with_an_error() {
    let mut story = Story::new(BrokerSettings::default());
    assert_eq!(story.fetch(TWO, 0, 0, 60_000), Handled::Park);
    let request = kafka_protocol::messages::DeleteTopicsRequest::default().with_topic_names(vec![topic()]);
    story.ask(ONE, ApiKey::DeleteTopics, 5, Request::DeleteTopics(request));
    let answered = story.answered();
    let Handled::Reply(Response::Fetch(answer)) = &answered[0].1 else { panic!("{answered:?}") };
    let code = answer.responses[0].partitions[0].error_code;
    assert_eq!(code, ResponseError::UnknownTopicOrPartition.code());
    assert_eq!(story.broker.log_bytes(), 0);
}

#[test]
fn a_reader_that_left_is_not_answered() {
    let mut story = Story::new(BrokerSettings::default());
    assert_eq!(story.fetch(TWO, 0, 0, 500), Handled::Park);
    story.broker.disconnect(TWO);
    story.produce(ONE, 9, -1, &plain());
    assert_eq!(story.answered(), []);
}

#[test]
fn an_implicit_produce_waits_for_the_markers_in_steps_of_the_retry_backoff() {
    let mut story = Story::with_slow_markers();
    let first = story.init();
    story.produce_in_txn(ONE, first, 0);
    story.end(ONE, first, true);
    let next = ProducerIdentity { epoch: first.epoch + 1, ..first };
    assert_eq!(story.produce_in_txn(ONE, next, 0), Handled::Park);
    story.pass(MARKERS);
    assert_eq!(story.answered(), [], "the markers are there, but the broker looks only after 20 ms");
    story.pass(Duration::from_millis(15));
    assert_eq!(produced(&story.answered()[0].1), (0, 2));
}

#[test]
fn an_implicit_produce_gives_up_on_markers_that_do_not_come() {
    let markers = Duration::from_secs(10);
    let mut story = Story::new(BrokerSettings { marker_delay: markers, ..BrokerSettings::default() });
    let first = story.init();
    story.produce_in_txn(ONE, first, 0);
    story.end(ONE, first, true);
    let next = ProducerIdentity { epoch: first.epoch + 1, ..first };
    assert_eq!(story.produce_in_txn(ONE, next, 0), Handled::Park);
    for _ in 0..4 {
        story.pass(Duration::from_millis(20));
        assert_eq!(story.answered(), []);
    }
    story.pass(Duration::from_millis(20));
    assert_eq!(produced(&story.answered()[0].1).0, ResponseError::ConcurrentTransactions.code());
}

#[test]
fn markers_that_are_due_are_written_before_a_request_even_if_nobody_ticked() {
    let mut story = Story::with_slow_markers();
    let first = story.init();
    story.produce_in_txn(ONE, first, 0);
    story.end(ONE, first, true);
    story.now = story.now + MARKERS;
    let next = ProducerIdentity { epoch: first.epoch + 1, ..first };
    assert_eq!(produced(&story.produce_in_txn(ONE, next, 0)), (0, 2));
}

#[test]
fn without_marker_delay_the_next_transaction_never_waits() {
    let mut story = Story::new(BrokerSettings::default());
    let mut producer = story.init();
    for transaction in 0..3 {
        assert_eq!(produced(&story.produce_in_txn(ONE, producer, 0)), (0, transaction * 2));
        assert_eq!(ended(&story.end(ONE, producer, true)), 0);
        producer.epoch += 1;
    }
}

#[test]
fn acks_0_gets_no_answer_and_a_failure_closes() {
    let mut story = Story::new(BrokerSettings::default());
    assert_eq!(story.produce(ONE, 9, 0, &plain()), Handled::NoReply);
    let broken = SampleBatch { last_offset_delta: Some(9), ..plain() };
    assert_eq!(story.produce(ONE, 9, 0, &broken), Handled::Close);
    assert_eq!(story.end_offset(), 3);
}

#[test]
fn a_full_memory_is_told_by_its_limits_name() {
    let log_bytes_max = 250;
    let mut story = Story::new(BrokerSettings { log_bytes_max, ..BrokerSettings::default() });
    while produced(&story.produce(ONE, 9, -1, &plain())).0 == 0 {}
    let handled = story.produce(ONE, 9, -1, &plain());
    let Handled::Reply(Response::Produce(answer)) = handled else { panic!("{handled:?}") };
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, ResponseError::KafkaStorageError.code());
    assert!(partition.error_message.as_ref().unwrap().contains("log_bytes_max=250"));
    assert!(story.broker.log_bytes() <= log_bytes_max);
}

#[test]
fn a_request_answered_by_a_fault_is_not_processed() {
    let mut story = Story::new(BrokerSettings::default());
    story.broker.inject_fault(ApiKey::Produce, 2, Fault::Answer(ResponseError::NotLeaderOrFollower));
    assert_eq!(produced(&story.produce(ONE, 9, -1, &plain())).0, 0);
    assert_eq!(produced(&story.produce(ONE, 9, -1, &plain())).0, ResponseError::NotLeaderOrFollower.code());
    assert_eq!(produced(&story.produce(ONE, 9, -1, &plain())), (0, 3));
    assert_eq!(story.broker.requests(ApiKey::Produce), 3);
}

#[test]
fn closing_before_loses_the_request_and_closing_after_only_its_answer() {
    let mut story = Story::new(BrokerSettings::default());
    story.broker.inject_fault(ApiKey::Produce, 1, Fault::CloseBefore);
    assert_eq!(story.produce(ONE, 9, -1, &plain()), Handled::Close);
    assert_eq!(story.end_offset(), 0);
    story.broker.inject_fault(ApiKey::Produce, 1, Fault::CloseAfter);
    assert_eq!(story.produce(ONE, 9, -1, &plain()), Handled::Close);
    assert_eq!(story.end_offset(), 3);
    story.broker.inject_fault(ApiKey::Produce, 1, Fault::Swallow);
    assert_eq!(story.produce(ONE, 9, -1, &plain()), Handled::Park);
    assert_eq!(story.end_offset(), 6);
    assert_eq!(story.answered(), []);
}

#[test]
fn a_lost_commit_answer_is_found_out_by_the_same_commit() {
    let mut story = Story::new(BrokerSettings::default());
    let producer = story.init();
    story.produce_in_txn(ONE, producer, 0);
    story.broker.inject_fault(ApiKey::EndTxn, 1, Fault::CloseAfter);
    assert_eq!(story.end(ONE, producer, true), Handled::Close);
    assert_eq!(ended(&story.end(TWO, producer, true)), 0);
    assert_eq!(ended(&story.end(TWO, producer, false)), ResponseError::InvalidTxnState.code());
    assert_eq!(story.end_offset(), 2, "one marker");
}

#[test]
fn a_delayed_answer_is_processed_now_and_told_later() {
    let mut story = Story::new(BrokerSettings::default());
    story.broker.inject_fault(ApiKey::Produce, 1, Fault::DelayAnswer(Duration::from_secs(1)));
    assert_eq!(story.produce(ONE, 9, -1, &plain()), Handled::Park);
    assert_eq!(story.end_offset(), 3);
    story.pass(Duration::from_secs(1));
    assert_eq!(produced(&story.answered()[0].1), (0, 0));
}

#[test]
fn a_delayed_implicit_produce_does_not_reach_the_next_transaction() {
    let mut story = Story::new(BrokerSettings::default());
    let producer = story.init();
    story.produce_in_txn(ONE, producer, 0);
    story.broker.inject_fault(ApiKey::Produce, 1, Fault::DelayRequest(Duration::from_secs(1)));
    assert_eq!(story.produce_in_txn(ONE, producer, 1), Handled::Park);
    story.broker.disconnect(ONE);
    assert_eq!(ended(&story.end(TWO, producer, false)), 0);
    let next = ProducerIdentity { epoch: producer.epoch + 1, ..producer };
    story.produce_in_txn(TWO, next, 0);
    let before = story.end_offset();
    story.pass(Duration::from_secs(1));
    assert_eq!(produced(&story.answered()[0].1).0, ResponseError::InvalidProducerEpoch.code());
    assert_eq!(story.end_offset(), before);
}

#[test]
fn a_delayed_commit_does_not_end_the_next_transaction() {
    let mut story = Story::new(BrokerSettings::default());
    let producer = story.init();
    story.produce_in_txn(ONE, producer, 0);
    story.broker.inject_fault(ApiKey::EndTxn, 1, Fault::DelayRequest(Duration::from_secs(1)));
    assert_eq!(story.end(ONE, producer, true), Handled::Park);
    assert_eq!(ended(&story.end(TWO, producer, false)), 0);
    let next = ProducerIdentity { epoch: producer.epoch + 1, ..producer };
    story.produce_in_txn(TWO, next, 0);
    story.pass(Duration::from_secs(1));
    assert_eq!(ended(&story.answered()[0].1), ResponseError::ProducerFenced.code());
    assert_eq!(ended(&story.end(TWO, next, true)), 0);
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let head = oncewire_client::wire::frame::RequestHead {
        api: ApiKey::ApiVersions,
        version: 77,
        correlation_id: 5,
        client_id: None,
    };
    let call = Call::decode(&head, bytes::Bytes::from_static(b"anything")).unwrap();
    assert_eq!(call.version, 0);
    let handled = Broker::new(BrokerSettings::default()).handle(Timestamp::default(), ONE, call);
    let Handled::Reply(Response::ApiVersions(answer)) = handled else { panic!("{handled:?}") };
    assert_eq!(answer.error_code, ResponseError::UnsupportedVersion.code());
    assert!(answer.api_keys.iter().any(|api| api.api_key == ApiKey::Produce as i16));
}

#[test]
fn the_feature_level_is_announced_unless_it_is_0() {
    for level in 0..=2 {
        let mut broker = Broker::new(BrokerSettings { transaction_version: level, ..BrokerSettings::default() });
        let request = Request::ApiVersions(Some(ApiVersionsRequest::default()));
        let call = Call { api: ApiKey::ApiVersions, version: 4, request };
        let handled = broker.handle(Timestamp::default(), ONE, call);
        let Handled::Reply(Response::ApiVersions(answer)) = handled else { panic!("{handled:?}") };
        let levels: Vec<i16> = answer.finalized_features.iter().map(|feature| feature.max_version_level).collect();
        assert_eq!(levels, if level == 0 { vec![] } else { vec![level] });
    }
}

#[test]
fn a_missing_topic_is_made_only_if_both_sides_want_it() {
    for (setting, wish, made) in [(false, true, false), (true, false, false), (true, true, true)] {
        let mut story = Story::new(BrokerSettings { auto_create_topics: setting, ..BrokerSettings::default() });
        let name = Some(TopicName(StrBytes::from_static_str("missing")));
        let asked = kafka_protocol::messages::metadata_request::MetadataRequestTopic::default().with_name(name);
        let request = MetadataRequest::default().with_topics(Some(vec![asked])).with_allow_auto_topic_creation(wish);
        let handled = story.ask(ONE, ApiKey::Metadata, 12, Request::Metadata(request));
        let Handled::Reply(Response::Metadata(answer)) = handled else { panic!("{handled:?}") };
        assert_eq!(answer.topics[0].error_code == 0, made);
    }
}

#[test]
fn the_same_requests_at_the_same_times_give_the_same_answers() {
    let run = || {
        let mut story = Story::with_slow_markers();
        let producer = story.init();
        let mut answers = vec![story.fetch(TWO, 0, 1, 100)];
        answers.push(story.produce_in_txn(ONE, producer, 0));
        answers.push(story.end(ONE, producer, false));
        story.pass(MARKERS);
        answers.extend(story.answered().into_iter().map(|(_, handled)| handled));
        answers
    };
    assert_eq!(run(), run());
}
