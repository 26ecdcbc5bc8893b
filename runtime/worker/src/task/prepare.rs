//! From what `poll` returned to sealed record batches: partitions chosen, keys and values converted, offsets gathered.
//!
//! This is the part that runs ahead: it may work on transaction N+1 while N commits, and nothing here reaches a socket but a
//! look-up of a topic's partitions. A poll's records become one or more [`Part`]s, cut where the connector asked to commit or
//! abort. A record that is left out has its dead letter in the same part, so both modes deliver it by the rules for any record.
//! The bound is the size of what one `poll` returns, twice (its records and their bytes).

use super::dead_letter::DeadLetterWriter;
use super::error_rules::{ErrorRules, FailedStage, RecordProblem};
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
    /// Records in `batches`, without dead letters.
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

/// The classes of a task's converters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConverterClasses {
    /// For keys.
    pub key: &'static str,
    /// For values.
    pub value: &'static str,
    /// For header values.
    pub header: &'static str,
}

/// The three converters of a task.
pub struct Converters {
    /// For keys.
    pub key: Box<dyn Converter>,
    /// For values.
    pub value: Box<dyn Converter>,
    /// For header values.
    pub header: Box<dyn Converter>,
    /// Their classes.
    pub classes: ConverterClasses,
}

/// Does the work of the module for one task.
pub struct Preparer {
    converters: Converters,
    topics: Topics,
    stage: Stage,
    errors: ErrorRules,
    /// Where records go that are left out.
    dead_letters: Option<DeadLetterWriter>,
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
            dead_letters: None,
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

    /// From now on a record that is left out has a dead letter. Their topic is made, if it is missing.
    ///
    /// # Errors
    /// When the topic can't be had.
    pub async fn write_dead_letters(&mut self, writer: DeadLetterWriter) -> Result<(), TaskFailure> {
        let topic = writer.topic().clone();
        self.dead_letters = Some(writer);
        self.dead_letter_topic(&topic, Instant::now()).await.map(|_| ())
    }

    async fn dead_letter_topic(&mut self, topic: &Arc<str>, now: Instant) -> Result<usize, TaskFailure> {
        match self.topics.place(topic, now) {
            Some(place) => Ok(place),
            None => self.look_up(topic, now).await.map_err(|failure| failure.of_dead_letters(topic)),
        }
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
            match self.encode(&record, topic, now_ms)? {
                Ok(partition) => {
                    part.records += 1;
                    self.take_record(&mut part, record, Some((topic, partition)), true);
                }
                Err(problem) => {
                    let to = self.leave_out(&record, &problem, (now, now_ms)).await?;
                    self.take_record(&mut part, record, to, false);
                }
            }
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

    /// Notes that a record is dealt with, and where it or its dead letter went: topic, by place, and partition.
    fn take_record(&mut self, part: &mut Part, record: SourceRecord, to: Option<(usize, u32)>, is_written: bool) {
        if !self.keep_records {
            self.note_offset(part, record.source_partition, record.source_offset, to);
            return;
        }
        self.note_offset(part, record.source_partition.clone(), record.source_offset.clone(), to);
        part.kept.push((record, is_written));
    }

    /// Leaves a record out, if that is tolerated; where its dead letter went, if there is one.
    async fn leave_out(
        &mut self,
        record: &SourceRecord,
        problem: &RecordProblem,
        (now, now_ms): (Instant, i64),
    ) -> Result<Option<(usize, u32)>, TaskFailure> {
        self.tell_failure(record, problem);
        if self.errors.tolerance == Tolerance::None {
            return Err(TaskFailure::failed(failed(record, problem)));
        }
        let topic = self.dead_letters.as_ref().map(|writer| writer.topic().clone());
        let to = match topic {
            None => None,
            Some(topic) => {
                let place = self.dead_letter_topic(&topic, now).await?;
                Some((place, self.append_dead_letter(record, problem, place, now_ms)?))
            }
        };
        self.metrics.skipped(now_ms);
        Ok(to)
    }

    /// The partition that the dead letter goes to. One that can't be written fails the task: nothing is left out without it.
    fn append_dead_letter(
        &mut self,
        record: &SourceRecord,
        problem: &RecordProblem,
        place: usize,
        now_ms: i64,
    ) -> Result<u32, TaskFailure> {
        let topic = self.topics.at(place);
        let name = topic.name().clone();
        let lost = |why: &dyn std::fmt::Display| {
            let failed = failed(record, problem);
            TaskFailure::failed(format!("{failed}; and no dead letter of it can be written to topic {name:?}: {why}"))
        };
        let Some(writer) = &self.dead_letters else { return Err(lost(&"there is no topic for them")) };
        let letter = writer.letter(record, problem).map_err(|why| lost(&why))?;
        let (key, value) = (letter.key.as_deref(), letter.value.as_deref());
        let headers: Vec<Header<'_>> =
            letter.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
        let partition = topic.choose(None, key, value.map_or(0, <[u8]>::len))?;
        let at = record.timestamp_ms.unwrap_or(now_ms);
        self.stage.append(&name, partition, at, key, value, &headers).map_err(|error| lost(&error))?;
        self.metrics.dead_letter();
        Ok(partition)
    }

    fn tell_failure(&mut self, record: &SourceRecord, problem: &RecordProblem) {
        if let Some(line) = self.errors.line(record, problem) {
            tracing::error!("{line}");
        } else if self.errors.tolerance == Tolerance::All && !std::mem::replace(&mut self.told, true) {
            let fate = match &self.dead_letters {
                None => "record skipped".to_owned(),
                Some(writer) => format!("record left out, it goes to the dead letter topic {:?}", writer.topic()),
            };
            tracing::warn!(
                topic = %record.topic, source_partition = %record.source_partition,
                "{fate}: {problem}; further ones are counted, and told with errors.log.enable=true"
            );
        }
    }

    fn note_offset(
        &mut self,
        part: &mut Part,
        partition: SourcePartition,
        offset: Option<SourceOffset>,
        to: Option<(usize, u32)>,
    ) {
        if self.delivery != Delivered::AtLeastOnce {
            part.offsets.put(partition, offset);
            return;
        }
        let to = to.map(|(topic, partition)| (self.topics.at(topic).name(), partition));
        match part.submitted.last_mut() {
            Some(run)
                if run.partition.same_instance(&partition)
                    && run.to.as_ref().map(|(topic, partition)| (topic, *partition)) == to =>
            {
                run.offset = offset;
            }
            _ => part.submitted.push(Run { partition, offset, to: to.map(|(name, to)| (name.clone(), to)) }),
        }
    }

    /// The partition that the record goes to. The outer error fails the task; the inner one is the record's own and may be
    /// tolerated.
    fn encode(
        &mut self,
        record: &SourceRecord,
        topic: usize,
        now_ms: i64,
    ) -> Result<Result<u32, RecordProblem>, TaskFailure> {
        let topic = self.topics.at(topic);
        let key_side = (record.key_schema.as_ref(), record.key.as_ref());
        let key = match convert(&*self.converters.key, &record.topic, key_side, &mut self.key) {
            Ok(presence) => present(presence, &self.key),
            Err(message) => return Ok(Err(RecordProblem { stage: FailedStage::Key, message })),
        };
        let value_side = (record.value_schema.as_ref(), record.value.as_ref());
        let value = match convert(&*self.converters.value, &record.topic, value_side, &mut self.value) {
            Ok(presence) => present(presence, &self.value),
            Err(message) => return Ok(Err(RecordProblem { stage: FailedStage::Value, message })),
        };
        let partition = topic.choose(record.kafka_partition, key, value.map_or(0, <[u8]>::len))?;
        let at = record.timestamp_ms.unwrap_or(now_ms);
        let name = topic.name();
        let tolerant = self.errors.tolerance == Tolerance::All
            && (self.delivery == Delivered::AtLeastOnce || self.dead_letters.is_some());
        if record.headers.is_empty() {
            return appended(self.stage.append(name, partition, at, key, value, &[]), partition, tolerant);
        }
        let headers = match encode_headers(&*self.converters.header, record) {
            Ok(headers) => headers,
            Err(message) => return Ok(Err(RecordProblem { stage: FailedStage::Header, message })),
        };
        let headers: Vec<Header<'_>> =
            headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
        appended(self.stage.append(name, partition, at, key, value, &headers), partition, tolerant)
    }
}

/// A record that is too large is a failure to produce it: in a transaction it may not be skipped (KAFKA-13348), but a dead letter of it
/// may be small enough.
fn appended(
    outcome: Result<(), StageError>,
    partition: u32,
    is_tolerant: bool,
) -> Result<Result<u32, RecordProblem>, TaskFailure> {
    match outcome {
        Ok(()) => Ok(Ok(partition)),
        Err(error) if is_tolerant => Ok(Err(RecordProblem { stage: FailedStage::Produce, message: error.to_string() })),
        Err(error) => Err(error.into()),
    }
}

fn failed(record: &SourceRecord, problem: &RecordProblem) -> String {
    let what = if problem.stage == FailedStage::Produce { "sent" } else { "converted" };
    format!("record for topic {:?} from {} can't be {what}: {problem}", record.topic, record.source_partition)
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
