//! Reading: isolation, aborted transactions, offsets, limits.

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::*;
use oncewire_client::batch::{ControlMarker, batches};
use uuid::Uuid;

use super::{Identity, Teller, batch, batch_at, text};
use crate::transcript::code_name;

pub(super) fn tell(teller: &mut Teller) {
    isolation(teller);
    limits(teller);
    errors(teller);
    timestamps(teller);
    deleting(teller);
}

fn fetch(teller: &mut Teller, topic: &str, offset: i64, isolation: i8, bytes_max: i32) -> PartitionData {
    let partition =
        FetchPartition::default().with_partition(0).with_fetch_offset(offset).with_partition_max_bytes(bytes_max);
    let topic = FetchTopic::default().with_topic(TopicName(text(topic))).with_partitions(vec![partition]);
    let request = FetchRequest::default()
        .with_max_wait_ms(50)
        .with_min_bytes(1)
        .with_max_bytes(bytes_max)
        .with_isolation_level(isolation)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    let answer: FetchResponse = teller.client.call(ApiKey::Fetch, 11, &request);
    answer.responses[0].partitions[0].clone()
}

fn note_fetch(teller: &mut Teller, step: &str, topic: &str, offset: i64, isolation: i8, bytes_max: i32) {
    let data = fetch(teller, topic, offset, isolation, bytes_max);
    if data.error_code != 0 {
        let told = format!(
            "{}, high watermark {}, stable {}, start {}",
            code_name(data.error_code),
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset
        );
        return teller.told.note(step, told);
    }
    let aborted = match &data.aborted_transactions {
        None => "no list".to_owned(),
        Some(list) => {
            let list: Vec<String> = list
                .iter()
                .map(|txn| format!("{} from {}", teller.told.letter(txn.producer_id.0), txn.first_offset))
                .collect();
            format!("aborted [{}]", list.join(", "))
        }
    };
    let (high, stable, start) = (data.high_watermark, data.last_stable_offset, data.log_start_offset);
    teller.told.note(step, format!("high watermark {high}, stable {stable}, start {start}, {aborted}"));
    for batch in batches(&data.records.unwrap_or_default()) {
        let batch = batch.expect("a batch");
        batch.check_crc().expect("a right CRC");
        let what = match batch.is_control() {
            true => format!("{:?} marker", ControlMarker::from_batch(&batch).expect("a marker")),
            false => format!("{} records", batch.record_count),
        };
        let who = teller.told.letter(batch.producer_id);
        let (first, last, epoch, leader) =
            (batch.base_offset, batch.last_offset, batch.producer_epoch, batch.leader_epoch);
        let sequence = batch.base_sequence;
        let told =
            format!("{first} to {last}: {what} of {who} epoch {epoch}, sequence {sequence}, leader epoch {leader}");
        teller.told.note("  batch", told);
    }
}

fn offset(teller: &mut Teller, topic: &str, timestamp: i64, isolation: i8) -> String {
    let asked = ListOffsetsPartition::default().with_partition_index(0).with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default().with_name(TopicName(text(topic))).with_partitions(vec![asked]);
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(isolation)
        .with_topics(vec![topic]);
    let answer: ListOffsetsResponse = teller.client.call(ApiKey::ListOffsets, 7, &request);
    let found = &answer.topics[0].partitions[0];
    match found.error_code {
        0 => format!("offset {}, timestamp {}, leader epoch {}", found.offset, found.timestamp, found.leader_epoch),
        code => code_name(code),
    }
}

fn note_offset(teller: &mut Teller, step: &str, topic: &str, timestamp: i64, isolation: i8) {
    let told = offset(teller, topic, timestamp, isolation);
    teller.told.note(step, told);
}

fn isolation(teller: &mut Teller) {
    teller.told.story("isolation");
    let topic = "isolated";
    teller.topic(topic, 1, &[]);
    let one = teller.producer("isolated-1");
    let two = teller.producer("isolated-2");
    let explicit = teller.producer("isolated-3");
    let bystander = Identity::NONE;
    teller.note_produced("plain", 9, None, topic, batch(bystander, -1, 2, false));
    teller.note_produced("one", 12, Some("isolated-1"), topic, batch(one, 0, 2, true));
    teller.note_produced("two", 12, Some("isolated-2"), topic, batch(two, 0, 2, true));
    teller.note_produced("plain", 9, None, topic, batch(bystander, -1, 1, false));
    note_fetch(teller, "uncommitted", topic, 0, 0, 1_000_000);
    note_fetch(teller, "committed", topic, 0, 1, 1_000_000);
    note_fetch(teller, "committed beyond the stable offset", topic, 5, 1, 1_000_000);
    note_offset(teller, "latest uncommitted", topic, -1, 0);
    note_offset(teller, "latest committed", topic, -1, 1);
    teller.end(5, "isolated-1", one, false);
    teller.settle_markers("isolated-1");
    note_fetch(teller, "one aborted", topic, 0, 1, 1_000_000);
    teller.end(5, "isolated-2", two, true);
    teller.settle_markers("isolated-2");
    teller.add(3, "isolated-3", explicit, topic);
    teller.note_produced("three", 11, Some("isolated-3"), topic, batch(explicit, 0, 2, true));
    teller.end(4, "isolated-3", explicit, false);
    teller.settle_markers("isolated-3");
    teller.add(3, "isolated-3", explicit, topic);
    teller.end(4, "isolated-3", explicit, false);
    teller.settle_markers("isolated-3");
    note_fetch(teller, "all is decided", topic, 0, 1, 1_000_000);
    for offset in 2..15 {
        note_fetch(teller, &format!("committed from {offset}"), topic, offset, 1, 200);
    }
    note_fetch(teller, "uncommitted from the first", topic, 2, 0, 1_000_000);
}

fn limits(teller: &mut Teller) {
    teller.told.story("limits");
    let topic = "limited";
    teller.topic(topic, 1, &[]);
    for _ in 0..4 {
        teller.produce(9, None, topic, batch(Identity::NONE, -1, 5, false));
    }
    let one = i32::try_from(batch(Identity::NONE, -1, 5, false).len()).expect("small");
    for (step, bytes) in [("one byte", 1), ("one batch", one), ("almost two", 2 * one - 1), ("two", 2 * one)] {
        let data = fetch(teller, topic, 0, 0, bytes);
        let records = data.records.unwrap_or_default();
        let whole = batches(&records).count();
        teller.told.note(step, format!("{whole} whole batches"));
    }
    note_fetch(teller, "from the middle", topic, 7, 0, 1);
    note_fetch(teller, "at the end", topic, 20, 0, 1_000);
}

fn errors(teller: &mut Teller) {
    teller.told.story("errors of readers");
    let topic = "erring";
    let id = teller.topic(topic, 1, &[]);
    note_fetch(teller, "empty", topic, 0, 1, 1_000);
    note_fetch(teller, "beyond the end", topic, 1, 0, 1_000);
    note_fetch(teller, "before the start", topic, -1, 0, 1_000);
    note_fetch(teller, "unknown topic", "nowhere", 0, 0, 1_000);
    note_offset(teller, "offset of an unknown topic", "nowhere", -1, 0);
    note_offset(teller, "earliest of an empty log", topic, -2, 0);
    note_offset(teller, "latest of an empty log", topic, -1, 1);
    note_offset(teller, "newest of an empty log", topic, -3, 0);
    note_offset(teller, "by time in an empty log", topic, 5, 0);
    for (step, id, epoch, partition) in [
        ("by id", id, -1, 0),
        ("an unknown id", Uuid::from_u128(0x1234), -1, 0),
        ("an unknown partition", id, -1, 9),
        ("a newer leader", id, 5, 0),
    ] {
        let partition = FetchPartition::default()
            .with_partition(partition)
            .with_current_leader_epoch(epoch)
            .with_partition_max_bytes(1_000);
        let topic = FetchTopic::default().with_topic_id(id).with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_max_wait_ms(50)
            .with_min_bytes(1)
            .with_max_bytes(1_000)
            .with_session_epoch(-1)
            .with_topics(vec![topic]);
        let answer: FetchResponse = teller.client.call(ApiKey::Fetch, 13, &request);
        teller.told.code(&format!("{step}, request"), answer.error_code);
        teller.told.code(step, answer.responses[0].partitions[0].error_code);
    }
    let request = FetchRequest::default().with_max_wait_ms(50).with_session_id(77).with_session_epoch(3);
    let answer: FetchResponse = teller.client.call(ApiKey::Fetch, 12, &request);
    teller.told.code("an unknown session", answer.error_code);
}

fn timestamps(teller: &mut Teller) {
    teller.told.story("offsets by time");
    let topic = "timed";
    teller.topic(topic, 1, &[]);
    for start in [10_000, 30_000, 20_000] {
        teller.produce(9, None, topic, batch_at(start, Identity::NONE, -1, 4, false));
    }
    for timestamp in [0, 10_000, 10_002, 10_004, 20_000, 30_003, 30_004, -1, -2, -3] {
        note_offset(teller, &format!("at {timestamp}"), topic, timestamp, 0);
    }
}

fn deleting(teller: &mut Teller) {
    teller.told.story("records are deleted");
    let topic = "shortened";
    teller.topic(topic, 1, &[]);
    for _ in 0..3 {
        teller.produce(9, None, topic, batch(Identity::NONE, -1, 5, false));
    }
    for offset in [7, 3, 99, -1] {
        let partition =
            delete_records_request::DeleteRecordsPartition::default().with_partition_index(0).with_offset(offset);
        let one = delete_records_request::DeleteRecordsTopic::default()
            .with_name(TopicName(text(topic)))
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![one]).with_timeout_ms(10_000);
        let answer: DeleteRecordsResponse = teller.client.call(ApiKey::DeleteRecords, 2, &request);
        let result = &answer.topics[0].partitions[0];
        teller.told.note(
            &format!("before {offset}"),
            format!("{}, low {}", code_name(result.error_code), result.low_watermark),
        );
        note_offset(teller, "earliest", topic, -2, 0);
        note_fetch(teller, "from 0", topic, 0, 0, 1_000_000);
    }
}
