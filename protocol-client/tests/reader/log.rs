//! A partition's log as a leader would serve it.

use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::{
    ApiKey, FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, ProducerId,
};
use oncewire_client::batch::{
    BatchBuilder, BatchLimits, ControlMarker, MarkerFields, ProducerStamp, batches, encode_marker,
};
use oncewire_client::wire::frame::{self, RequestHead};

use crate::fake::respond;

const OFFSET_OUT_OF_RANGE: i16 = 1;
const LATEST: i64 = -1;
const COMMITTED: i8 = 1;

#[derive(Default)]
pub struct Log {
    start: i64,
    end: i64,
    /// First offset of an open transaction.
    first_open: Option<i64>,
    /// Batches with the offset behind each.
    batches: Vec<(i64, Bytes)>,
    /// What a committed fetch tells of aborted transactions.
    pub aborted: Vec<(i64, i64)>,
    /// Codes with which the next fetches are refused.
    pub refusals: Vec<i16>,
    /// Batches in one answer; 0 is no limit.
    pub batches_max: usize,
    /// Obeys the partition's share even when it cuts the first batch (brokers before Fetch 3 did).
    pub cuts_batches: bool,
}

impl Log {
    pub fn starting_at(offset: i64) -> Self {
        Self { start: offset, end: offset, ..Self::default() }
    }

    /// A batch, transactional if the producer id is not negative.
    pub fn data(mut self, producer_id: i64, count: usize) -> Self {
        self.append(producer_id, count);
        self
    }

    pub fn open(mut self, producer_id: i64, count: usize) -> Self {
        self.first_open = Some(self.end);
        self.data(producer_id, count)
    }

    pub fn marker(mut self, producer_id: i64, marker: ControlMarker) -> Self {
        self.close(producer_id, marker);
        self
    }

    /// Offsets at which nothing is left.
    pub fn gap(mut self, offsets: i64) -> Self {
        self.end += offsets;
        self
    }

    pub fn append(&mut self, producer_id: i64, count: usize) {
        let mut builder = BatchBuilder::new(BatchLimits::default());
        for _ in 0..count {
            builder.append(0, None, Some(b"value"), &[]).unwrap();
        }
        let stamp = ProducerStamp { producer_id, producer_epoch: 0, base_sequence: 0, transactional: producer_id >= 0 };
        let stamped = builder.seal().stamp(stamp);
        let batch = batches(&stamped).next().unwrap().unwrap();
        let placed = batch.placed_at(self.end, 0);
        self.end += i64::try_from(count).unwrap();
        self.batches.push((self.end, placed));
    }

    pub fn close(&mut self, producer_id: i64, marker: ControlMarker) {
        let bytes = encode_marker(MarkerFields {
            marker,
            base_offset: self.end,
            leader_epoch: 0,
            timestamp_ms: 0,
            producer_id,
            producer_epoch: 0,
            coordinator_epoch: 0,
        });
        self.end += 1;
        self.batches.push((self.end, bytes));
        self.first_open = None;
    }

    pub fn answer(&mut self, head: &RequestHead, body: Bytes) -> Option<Bytes> {
        match head.api {
            ApiKey::ListOffsets => Some(self.list_offsets(head, body)),
            ApiKey::Fetch => Some(self.fetch(head, body)),
            _ => None,
        }
    }

    fn stable_end(&self) -> i64 {
        self.first_open.unwrap_or(self.end)
    }

    fn list_offsets(&self, head: &RequestHead, body: Bytes) -> Bytes {
        let request: ListOffsetsRequest = frame::decode_request(head.api, head.version, body).unwrap();
        let end = if request.isolation_level == COMMITTED { self.stable_end() } else { self.end };
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                let offset = if partition.timestamp == LATEST { end } else { self.start };
                ListOffsetsPartitionResponse::default()
                    .with_partition_index(partition.partition_index)
                    .with_offset(offset)
            });
            ListOffsetsTopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions.collect())
        });
        respond(head, &ListOffsetsResponse::default().with_topics(topics.collect()))
    }

    fn fetch(&mut self, head: &RequestHead, body: Bytes) -> Bytes {
        let request: FetchRequest = frame::decode_request(head.api, head.version, body).unwrap();
        let topic = request.topics[0].topic.clone();
        let asked = &request.topics[0].partitions[0];
        let mut data = PartitionData::default()
            .with_high_watermark(self.end)
            .with_last_stable_offset(self.stable_end())
            .with_log_start_offset(self.start);
        if !self.refusals.is_empty() {
            data = data.with_error_code(self.refusals.remove(0));
        } else if asked.fetch_offset < self.start || asked.fetch_offset > self.end {
            data = data.with_error_code(OFFSET_OUT_OF_RANGE);
        } else {
            let visible_end = if request.isolation_level == COMMITTED { self.stable_end() } else { self.end };
            let share = usize::try_from(asked.partition_max_bytes).unwrap();
            data = data.with_records(Some(self.read(asked.fetch_offset, visible_end, share)));
            if request.isolation_level == COMMITTED {
                let aborted = self.aborted.iter().map(|&(producer_id, first_offset)| {
                    AbortedTransaction::default()
                        .with_producer_id(ProducerId(producer_id))
                        .with_first_offset(first_offset)
                });
                data = data.with_aborted_transactions(Some(aborted.collect()));
            }
        }
        let answer = FetchableTopicResponse::default().with_topic(topic).with_partitions(vec![data]);
        respond(head, &FetchResponse::default().with_responses(vec![answer]))
    }

    fn read(&self, from: i64, visible_end: i64, share: usize) -> Bytes {
        let limit = if self.batches_max == 0 { usize::MAX } else { self.batches_max };
        let visible = self.batches.iter().filter(|(behind, _)| *behind > from && *behind <= visible_end);
        let mut bytes: Vec<u8> = visible.take(limit).flat_map(|(_, batch)| batch.to_vec()).collect();
        if self.cuts_batches {
            bytes.truncate(share);
        }
        bytes.into()
    }
}
