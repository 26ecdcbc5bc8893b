//! The coordinator's moves, each named as a fact.

use super::state::EPOCH_EXHAUSTED;
use super::*;
use kafka_protocol::protocol::StrBytes;

const MINUTE: Duration = Duration::from_secs(60);

struct Story {
    coordinator: Coordinator,
    settings: BrokerSettings,
    now: Timestamp,
    id: TransactionalId,
}

impl Story {
    fn new() -> Self {
        let settings = BrokerSettings { marker_delay: Duration::from_millis(5), ..BrokerSettings::default() };
        let mut coordinator = Coordinator::new();
        let now = Timestamp::from_millis(1_000);
        coordinator.expect_scan(now, settings.transaction_scan_interval);
        Self { coordinator, settings, now, id: TransactionalId(StrBytes::from_static_str("x")) }
    }

    fn init(&mut self, brought: Option<ProducerIdentity>) -> Result<ProducerIdentity, ResponseError> {
        self.coordinator.init_producer_id(self.now, &self.settings, &self.id, MINUTE, brought)
    }

    fn claim(&self, producer: ProducerIdentity) -> TxnClaim<'_> {
        TxnClaim { transactional_id: &self.id, producer }
    }

    fn add(&mut self, producer: ProducerIdentity, partition: i32) -> Result<(), ResponseError> {
        let claim = TxnClaim { transactional_id: &self.id, producer };
        self.coordinator.add_partitions(self.now, claim, [topic_partition(partition)])
    }

    fn end(
        &mut self,
        producer: ProducerIdentity,
        goal: Goal,
        generation: Generation,
    ) -> Result<ProducerIdentity, ResponseError> {
        let claim = TxnClaim { transactional_id: &self.id, producer };
        self.coordinator.end_txn(self.now, self.settings.marker_delay, claim, goal, generation)
    }

    fn pass(&mut self, time: Duration) -> Vec<MarkersDue> {
        self.now = self.now + time;
        self.coordinator.scan(self.now, &self.settings);
        let due = self.coordinator.markers_due(self.now);
        for markers in &due {
            self.coordinator.markers_written(self.now, &markers.transactional_id);
        }
        due
    }

    fn state(&self) -> &'static str {
        self.coordinator.entry(&self.id).unwrap().state.name()
    }

    fn set_epoch(&mut self, epoch: i16) -> ProducerIdentity {
        let entry = self.coordinator.entry_mut(&self.id).unwrap();
        entry.producer.epoch = epoch;
        entry.producer
    }
}

fn topic_partition(partition: i32) -> TopicPartition {
    TopicPartition { topic: kafka_protocol::messages::TopicName(StrBytes::from_static_str("t")), partition }
}

fn next_epoch(producer: ProducerIdentity) -> ProducerIdentity {
    ProducerIdentity { epoch: producer.epoch + 1, ..producer }
}

#[test]
fn a_new_transactional_id_gets_epoch_zero_and_is_empty() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    assert_eq!((producer.epoch, story.state()), (0, "Empty"));
    assert!(producer.id >= 0);
}

#[test]
fn a_timeout_of_zero_or_over_the_cap_is_refused() {
    let mut story = Story::new();
    let id = story.id.clone();
    for timeout in [Duration::ZERO, Duration::from_secs(15 * 60 + 1)] {
        let answer = story.coordinator.init_producer_id(story.now, &story.settings, &id, timeout, None);
        assert_eq!(answer, Err(ResponseError::InvalidTransactionTimeout));
    }
}

#[test]
fn explicit_commit_keeps_the_epoch_and_ends_complete() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    story.add(producer, 0).unwrap();
    assert_eq!(story.state(), "Ongoing");
    assert_eq!(story.end(producer, Goal::Commit, Generation::Explicit), Ok(producer));
    assert_eq!(story.state(), "PrepareCommit");
    let due = story.pass(Duration::from_millis(5));
    assert_eq!((due.len(), due[0].producer, due[0].goal), (1, producer, Goal::Commit));
    assert_eq!(story.state(), "CompleteCommit");
    assert_eq!(story.end(producer, Goal::Commit, Generation::Explicit), Ok(producer));
    assert_eq!(story.end(producer, Goal::Abort, Generation::Explicit), Err(ResponseError::InvalidTxnState));
    assert!(story.pass(MINUTE).is_empty(), "a repetition writes no second marker");
}

#[test]
fn the_next_transaction_waits_for_the_markers_of_the_last() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    story.add(producer, 0).unwrap();
    story.end(producer, Goal::Commit, Generation::Explicit).unwrap();
    assert_eq!(story.add(producer, 0), Err(ResponseError::ConcurrentTransactions));
    assert_eq!(story.init(Some(producer)), Err(ResponseError::ConcurrentTransactions));
    story.pass(Duration::from_millis(5));
    assert_eq!(story.add(producer, 0), Ok(()));
}

#[test]
fn implicit_commit_raises_the_epoch_and_its_repetition_answers_the_same() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    story.add(producer, 0).unwrap();
    let raised = next_epoch(producer);
    assert_eq!(story.end(producer, Goal::Commit, Generation::Implicit), Ok(raised));
    assert_eq!(story.end(producer, Goal::Commit, Generation::Implicit), Err(ResponseError::ConcurrentTransactions));
    let due = story.pass(Duration::from_millis(5));
    assert_eq!(due[0].producer, raised, "the marker carries the raised epoch");
    assert_eq!(story.end(producer, Goal::Commit, Generation::Implicit), Ok(raised));
    assert_eq!(story.end(producer, Goal::Abort, Generation::Implicit), Err(ResponseError::InvalidTxnState));
    assert_eq!(story.add(producer, 0), Err(ResponseError::ProducerFenced));
}

#[test]
fn implicit_abort_of_nothing_is_served_and_raises_the_epoch() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    assert_eq!(story.end(producer, Goal::Commit, Generation::Implicit), Err(ResponseError::InvalidTxnState));
    assert_eq!(story.end(producer, Goal::Abort, Generation::Implicit), Ok(next_epoch(producer)));
    story.pass(Duration::from_millis(5));
    assert_eq!(story.state(), "CompleteAbort");
}

#[test]
fn the_last_epoch_is_followed_by_a_new_producer_id() {
    let mut story = Story::new();
    story.init(None).unwrap();
    let last = story.set_epoch(EPOCH_EXHAUSTED);
    story.add(last, 0).unwrap();
    let rotated = story.end(last, Goal::Commit, Generation::Implicit).unwrap();
    assert!(rotated.id != last.id && rotated.epoch == 0);
    let due = story.pass(Duration::from_millis(5));
    assert_eq!(due[0].producer, next_epoch(last), "the marker still speaks of the old id");
    assert_eq!(story.end(last, Goal::Commit, Generation::Implicit), Ok(rotated));
    assert_eq!(story.init(Some(last)), Ok(rotated));
    assert_eq!(story.add(rotated, 0), Ok(()));
}

#[test]
fn a_rotated_client_is_told_to_wait_before_it_is_told_that_its_id_is_foreign() {
    let mut story = Story::new();
    story.init(None).unwrap();
    let last = story.set_epoch(EPOCH_EXHAUSTED);
    story.add(last, 0).unwrap();
    let rotated = story.end(last, Goal::Commit, Generation::Implicit).unwrap();
    assert_eq!(story.init(Some(rotated)), Err(ResponseError::ConcurrentTransactions));
    assert_eq!(story.end(rotated, Goal::Abort, Generation::Implicit), Err(ResponseError::ConcurrentTransactions));
}

#[test]
fn a_successor_fences_the_open_transaction_and_must_ask_again() {
    for generation in [Generation::Explicit, Generation::Implicit] {
        let mut story = Story::new();
        let zombie = story.init(None).unwrap();
        story.add(zombie, 0).unwrap();
        assert_eq!(story.init(None), Err(ResponseError::ConcurrentTransactions));
        assert_eq!(story.init(None), Err(ResponseError::ConcurrentTransactions));
        let due = story.pass(Duration::from_millis(5));
        assert_eq!((due[0].goal, due[0].producer), (Goal::Abort, next_epoch(zombie)));
        let successor = story.init(None).unwrap();
        assert_eq!(successor, next_epoch(next_epoch(zombie)));
        assert_eq!(story.add(zombie, 0), Err(ResponseError::ProducerFenced));
        assert_eq!(story.end(zombie, Goal::Commit, generation), Err(ResponseError::ProducerFenced));
        assert_eq!(story.init(Some(zombie)), Err(ResponseError::ProducerFenced));
    }
}

#[test]
fn a_lost_init_answer_is_given_again_without_a_second_raise() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    let raised = story.init(Some(producer)).unwrap();
    assert_eq!(raised, next_epoch(producer));
    assert_eq!(story.init(Some(producer)), Ok(raised));
}

#[test]
fn below_level_2_a_producer_whose_transaction_timed_out_is_fenced() {
    let mut story = Story::new();
    story.settings.transaction_version = 1;
    let producer = story.init(None).unwrap();
    story.add(producer, 0).unwrap();
    assert!(story.pass(MINUTE).is_empty(), "not before the timeout is over");
    story.pass(Duration::from_secs(10));
    assert_eq!(story.state(), "PrepareAbort");
    story.pass(Duration::from_millis(5));
    assert_eq!(story.state(), "CompleteAbort");
    assert_eq!(story.end(producer, Goal::Commit, Generation::Explicit), Err(ResponseError::ProducerFenced));
    assert_eq!(story.init(Some(producer)), Err(ResponseError::ProducerFenced));
}

#[test]
fn at_level_2_a_producer_whose_transaction_timed_out_may_go_on_until_a_successor_comes() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    story.add(producer, 0).unwrap();
    story.pass(MINUTE + Duration::from_secs(10));
    story.pass(Duration::from_millis(5));
    assert_eq!(story.end(producer, Goal::Commit, Generation::Explicit), Err(ResponseError::ProducerFenced));
    assert_eq!(story.init(Some(producer)), Ok(next_epoch(producer)));
    story.init(None).unwrap();
    assert_eq!(story.init(Some(producer)), Err(ResponseError::ProducerFenced));
}

#[test]
fn after_a_timeout_an_implicit_commit_never_succeeds_but_the_producer_may_go_on() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    story.add(producer, 0).unwrap();
    story.pass(MINUTE + Duration::from_secs(10));
    story.pass(Duration::from_millis(5));
    assert_eq!(story.end(producer, Goal::Commit, Generation::Implicit), Err(ResponseError::InvalidTxnState));
    assert_eq!(story.end(producer, Goal::Abort, Generation::Implicit), Ok(next_epoch(producer)));
    assert_eq!(story.init(Some(producer)), Ok(next_epoch(producer)));
}

#[test]
fn a_timeout_at_the_last_epoch_rotates_the_id() {
    let mut story = Story::new();
    story.init(None).unwrap();
    let last = story.set_epoch(EPOCH_EXHAUSTED);
    story.add(last, 0).unwrap();
    story.pass(MINUTE + Duration::from_secs(10));
    story.pass(Duration::from_millis(5));
    let rotated = story.end(last, Goal::Abort, Generation::Implicit).unwrap();
    assert!(rotated.id != last.id && rotated.epoch == 0);
}

#[test]
fn an_unknown_or_foreign_producer_has_no_mapping() {
    let mut story = Story::new();
    let nobody = ProducerIdentity { id: 5, epoch: 0 };
    assert_eq!(story.add(nobody, 0), Err(ResponseError::InvalidProducerIdMapping));
    assert_eq!(story.end(nobody, Goal::Commit, Generation::Explicit), Err(ResponseError::InvalidProducerIdMapping));
    story.init(None).unwrap();
    assert_eq!(story.add(nobody, 0), Err(ResponseError::InvalidProducerIdMapping));
}

#[test]
fn only_partitions_of_the_open_transaction_verify() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    let id = story.id.clone();
    let claim = TxnClaim { transactional_id: &id, producer };
    let verify = |story: &mut Story, partition| story.coordinator.verify_partition(claim, &topic_partition(partition));
    assert_eq!(verify(&mut story, 0), Err(ResponseError::TransactionAbortable));
    story.add(producer, 0).unwrap();
    assert_eq!(verify(&mut story, 0), Ok(()));
    assert_eq!(verify(&mut story, 1), Err(ResponseError::TransactionAbortable));
    story.end(producer, Goal::Commit, Generation::Explicit).unwrap();
    assert_eq!(verify(&mut story, 0), Err(ResponseError::ConcurrentTransactions));
    let stale = story.claim(ProducerIdentity { epoch: -1, ..producer }).producer;
    let claim = TxnClaim { transactional_id: &id, producer: stale };
    let answer = story.coordinator.verify_partition(claim, &topic_partition(0));
    assert_eq!(answer, Err(ResponseError::ProducerFenced));
}

#[test]
fn an_unused_transactional_id_is_forgotten_and_its_producer_has_no_mapping() {
    let mut story = Story::new();
    let producer = story.init(None).unwrap();
    story.pass(Duration::from_secs(7 * 24 * 3600));
    assert_eq!(story.add(producer, 0), Err(ResponseError::InvalidProducerIdMapping));
    let fresh = story.init(None).unwrap();
    assert!(fresh.id != producer.id && fresh.epoch == 0);
}

#[test]
fn two_owners_that_fence_each_other_never_share_an_epoch() {
    let mut story = Story::new();
    let mut last = story.init(None).unwrap();
    for _ in 0..100 {
        story.add(last, 0).unwrap();
        assert_eq!(story.init(None), Err(ResponseError::ConcurrentTransactions));
        story.pass(Duration::from_millis(5));
        let next = story.init(None).unwrap();
        assert!(next.epoch > last.epoch);
        last = next;
    }
}
