//! From what `poll` returned to sealed record batches: partitions chosen, keys and values converted, offsets gathered.
//!
//! This is the part that runs ahead: it may work on transaction N+1 while N commits, and nothing here reaches a socket but a
//! look-up of a topic's partitions. A poll's records become one or more [`Part`]s, cut where the connector asked to commit or
//! abort. The bound is the size of what one `poll` returns, twice (its records and their bytes).

use super::error_rules::ErrorRules;
use super::offset_buffer::OffsetBuffer;
use super::teller::Teller;
use super::topics::Topics;
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use bytes::Bytes;
use oncewire_api::{
    Boundary as Ask, BoundaryRequests, Converter, Presence, Schema, SourceOffset, SourcePartition, SourceRecord, Value,
};
use oncewire_client::batch::Header;
use oncewire_client::producer::{Stage, StageError, StagedBatch};
use std::sync::Arc;
use std::time::Instant;

/// A run of records that ends where a transaction may end.
#[derive(Debug)]
pub struct Part {
    /// The records, encoded.
    pub batches: Vec<StagedBatch>,
    /// Records in `batches`.
    pub records: u64,
    /// Bytes in `batches`.
    pub bytes: usize,
    /// Where the source stands after them; empty when `submitted` tells it.
    pub offsets: OffsetBuffer,
    /// Without transactions: each run of records of one source partition to one Kafka partition.
    pub submitted: Vec<Run>,
    /// The records themselves, when the task wants to hear of each; `false` for one that was dropped.
    pub kept: Vec<(SourceRecord, bool)>,
    /// What ends it.
    pub end: PartEnd,
}

/// Records of one source partition that go the same way, one after the other; only the last one's offset matters.
#[derive(Debug)]
pub struct Run {
    /// The source partition.
    pub partition: SourcePartition,
    /// Where the source stands after them.
    pub offset: Option<SourceOffset>,
    /// Topic and partition; `None`: they were dropped.
    pub to: Option<(Arc<str>, u32)>,
}

/// What ends a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartEnd {
    /// The connector asked for something after this record.
    Record(Ask),
    /// The poll's last record.
    Batch(Option<Ask>),
}

/// `errors.tolerance` (Kafka Connect's name, KIP-298): what a record that can't be converted means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// The task fails.
    None,
    /// The record is left out, and its offset stored.
    All,
}

/// The three converters of a task.
pub struct Converters {
    /// For keys.
    pub key: Box<dyn Converter>,
    /// For values.
    pub value: Box<dyn Converter>,
    /// For header values.
    pub header: Box<dyn Converter>,
}

/// Does the work of the module for one task.
pub struct Preparer {
    converters: Converters,
    topics: Topics,
    stage: Stage,
    errors: ErrorRules,
    /// Whether a skipped record was told.
    told: bool,
    delivery: Delivered,
    teller: Arc<Teller>,
    metrics: Arc<TaskMetrics>,
    keep_records: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// How the records will be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// In transactions, with the offsets in this topic.
    InTransactions {
        /// Records to it are refused.
        own_offsets_topic: Arc<str>,
    },
    /// Without: offsets follow what was acknowledged.
    AtLeastOnce,
}

/// What a converter made of one side of a record, in the caller's buffer.
fn present(presence: Presence, buffer: &[u8]) -> Option<&[u8]> {
    match presence {
        Presence::Null => None,
        Presence::Bytes => Some(buffer),
    }
}

fn convert(
    converter: &dyn Converter,
    topic: &str,
    (schema, value): (Option<&Schema>, Option<&Value>),
    buffer: &mut Vec<u8>,
) -> Result<Presence, String> {
    buffer.clear();
    converter.from_connect(topic, schema, value, buffer).map_err(|error| error.to_string())
}

impl Preparer {
    /// With records that are not kept.
    pub fn new(
        converters: Converters,
        topics: Topics,
        stage: Stage,
        errors: ErrorRules,
        delivery: Delivered,
        (teller, metrics): (Arc<Teller>, Arc<TaskMetrics>),
    ) -> Self {
        Self {
            converters,
            topics,
            stage,
            errors,
            told: false,
            delivery,
            teller,
            metrics,
            keep_records: false,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// From now on records are kept for `commit_record`.
    pub fn keep_records(&mut self) {
        self.keep_records = true;
    }

    /// Turns one poll's records into parts; the last part ends the batch, also when there was no record.
    ///
    /// # Errors
    /// When a record can't be converted (and that is not tolerated), is too large, its topic can't be had, or the connector
    /// asked for a contradiction. Nothing of the batch may be committed then.
    pub async fn prepare(
        &mut self,
        records: Vec<SourceRecord>,
        mut asks: BoundaryRequests,
        now_ms: i64,
    ) -> Result<Vec<Part>, TaskFailure> {
        let count = records.len();
        // Once a poll: a clock for each record would be a tenth of the work.
        let now = Instant::now();
        let mut parts = Vec::with_capacity(1);
        let mut part = Part::empty();
        for (place, record) in records.into_iter().enumerate() {
            let topic = match self.topics.place(&record.topic, now) {
                Some(topic) => topic,
                None => self.look_up(&record.topic, now).await?,
            };
            self.take_record(&mut part, record, topic, now_ms)?;
            let ask = asks.after_record(place).map_err(|error| TaskFailure::failed(error.to_string()))?;
            if let Some(ask) = ask {
                parts.push(self.finish(std::mem::replace(&mut part, Part::empty()), PartEnd::Record(ask)));
            }
        }
        if let Some(place) = asks.last_place() {
            return Err(TaskFailure::failed(format!(
                "the connector asked for a transaction boundary after record {place} of a batch of {count}"
            )));
        }
        let ask = asks.after_batch().map_err(|error| TaskFailure::failed(error.to_string()))?;
        parts.push(self.finish(part, PartEnd::Batch(ask)));
        Ok(parts)
    }

    fn finish(&mut self, mut part: Part, end: PartEnd) -> Part {
        part.bytes = self.stage.bytes();
        part.batches = self.stage.seal();
        part.end = end;
        for batch in &part.batches {
            self.teller.topic(batch.topic());
        }
        part
    }

    async fn look_up(&mut self, topic: &Arc<str>, now: Instant) -> Result<usize, TaskFailure> {
        if matches!(&self.delivery, Delivered::InTransactions { own_offsets_topic } if topic == own_offsets_topic) {
            return Err(TaskFailure::failed(format!(
                "a source task must not write to its own offsets topic {topic:?}: reading that topic to its end would wait for itself"
            )));
        }
        self.topics.look_up(topic, now).await
    }

    fn take_record(
        &mut self,
        part: &mut Part,
        record: SourceRecord,
        topic: usize,
        now_ms: i64,
    ) -> Result<(), TaskFailure> {
        let to = match self.encode(&record, topic, now_ms)? {
            Ok(partition) => Some(partition),
            Err(problem) => {
                self.tell_failure(&record, &problem);
                if self.errors.tolerance == Tolerance::All {
                    self.metrics.skipped(now_ms);
                    None
                } else {
                    return Err(TaskFailure::failed(format!(
                        "record for topic {:?} from {} can't be converted: {problem}",
                        record.topic, record.source_partition
                    )));
                }
            }
        };
        part.records += u64::from(to.is_some());
        if !self.keep_records {
            self.note_offset(part, record.source_partition, record.source_offset, topic, to);
            return Ok(());
        }
        self.note_offset(part, record.source_partition.clone(), record.source_offset.clone(), topic, to);
        part.kept.push((record, to.is_some()));
        Ok(())
    }

    fn tell_failure(&mut self, record: &SourceRecord, problem: &str) {
        if let Some(line) = self.errors.line(record, problem) {
            tracing::error!("{line}");
        } else if self.errors.tolerance == Tolerance::All && !std::mem::replace(&mut self.told, true) {
            tracing::warn!(
                topic = %record.topic, source_partition = %record.source_partition,
                "record skipped: {problem}; further ones are counted, and told with errors.log.enable=true"
            );
        }
    }

    fn note_offset(
        &mut self,
        part: &mut Part,
        partition: SourcePartition,
        offset: Option<SourceOffset>,
        topic: usize,
        to: Option<u32>,
    ) {
        if self.delivery != Delivered::AtLeastOnce {
            part.offsets.put(partition, offset);
            return;
        }
        let name = self.topics.at(topic).name();
        match part.submitted.last_mut() {
            Some(run)
                if run.partition.same_instance(&partition)
                    && run.to.as_ref().map(|(topic, partition)| (topic, *partition)) == to.map(|to| (name, to)) =>
            {
                run.offset = offset;
            }
            _ => part.submitted.push(Run { partition, offset, to: to.map(|to| (name.clone(), to)) }),
        }
    }

    /// The partition that the record goes to. The outer error fails the task; the inner one is the record's own and may be
    /// tolerated.
    fn encode(&mut self, record: &SourceRecord, topic: usize, now_ms: i64) -> Result<Result<u32, String>, TaskFailure> {
        let topic = self.topics.at(topic);
        let key_side = (record.key_schema.as_ref(), record.key.as_ref());
        let key = match convert(&*self.converters.key, &record.topic, key_side, &mut self.key) {
            Ok(presence) => present(presence, &self.key),
            Err(problem) => return Ok(Err(format!("key: {problem}"))),
        };
        let value_side = (record.value_schema.as_ref(), record.value.as_ref());
        let value = match convert(&*self.converters.value, &record.topic, value_side, &mut self.value) {
            Ok(presence) => present(presence, &self.value),
            Err(problem) => return Ok(Err(format!("value: {problem}"))),
        };
        let partition = topic.choose(record.kafka_partition, key, value.map_or(0, <[u8]>::len))?;
        let at = record.timestamp_ms.unwrap_or(now_ms);
        let name = topic.name();
        let tolerant = self.errors.tolerance == Tolerance::All && self.delivery == Delivered::AtLeastOnce;
        if record.headers.is_empty() {
            return appended(self.stage.append(name, partition, at, key, value, &[]), partition, tolerant);
        }
        let headers = match encode_headers(&*self.converters.header, record) {
            Ok(headers) => headers,
            Err(problem) => return Ok(Err(problem)),
        };
        let headers: Vec<Header<'_>> =
            headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
        appended(self.stage.append(name, partition, at, key, value, &headers), partition, tolerant)
    }
}

/// A record that is too large is a failure to produce it: in a transaction never tolerated (KAFKA-13348).
fn appended(
    outcome: Result<(), StageError>,
    partition: u32,
    is_tolerant: bool,
) -> Result<Result<u32, String>, TaskFailure> {
    match outcome {
        Ok(()) => Ok(Ok(partition)),
        Err(error) if is_tolerant => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

type EncodedHeader<'a> = (&'a str, Option<Bytes>);

fn encode_headers<'a>(converter: &dyn Converter, record: &'a SourceRecord) -> Result<Vec<EncodedHeader<'a>>, String> {
    let mut encoded = Vec::with_capacity(record.headers.len());
    for header in &record.headers {
        let mut buffer = Vec::new();
        let side = (header.schema.as_ref(), header.value.as_ref());
        let presence = convert(converter, &record.topic, side, &mut buffer)
            .map_err(|problem| format!("header {:?}: {problem}", header.key))?;
        encoded.push((&*header.key, present(presence, &buffer).map(Bytes::copy_from_slice)));
    }
    Ok(encoded)
}

impl Part {
    fn empty() -> Self {
        Self {
            batches: Vec::new(),
            records: 0,
            bytes: 0,
            offsets: OffsetBuffer::default(),
            submitted: Vec::new(),
            kept: Vec::new(),
            end: PartEnd::Batch(None),
        }
    }
}
