//! The delivery side of a task without transactions: records go out as they come, offsets follow them.
//!
//! `submitted.rs` decides which offsets may be stored. They are stored every `offset.flush.interval.ms`, beside the work, and
//! once more at the end, after a failure too; after a crash the records since then come again. With a dead letter topic nothing is
//! left out without a copy: what brokers refuse then fails the task, also where all is tolerated. A flush that fails or takes
//! longer than `offset.flush.timeout.ms` is tried again with the next, never fails the task, and newer offsets win. Under
//! way at most: [`UNITS_MAX`] units, and as many bytes as `buffer.memory`.

use super::ahead::{Polled, now_ms};
use super::notices::Notices;
use super::offset_buffer::OffsetBuffer;
use super::prepare::{Part, Tolerance};
use super::submitted::{Submitted, UnitId};
use crate::config::dead_letters;
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use crate::store::connector_offsets::ConnectorOffsets;
use crate::store::offset_sink::OffsetSink;
use oncewire_api::SourceRecord;
use oncewire_client::complaint::Complaint;
use oncewire_client::producer::{PlainProducer, ProducerError, StagedBatch};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Units (records of one poll to one partition) that may wait for their acknowledgement: 5,000.
pub const UNITS_MAX: usize = 5_000;

/// Topic and partition.
type Destination = (Arc<str>, u32);

/// What waits together for the acknowledgement of its last unit: the records of one part.
struct Waiting {
    units: usize,
    kept: Vec<(SourceRecord, bool)>,
    records: u64,
    at: Instant,
}

struct Sent {
    part: u64,
    topic: Arc<str>,
    partition: u32,
    records: u64,
}

/// A flush that is under way: how it ends, and what it stores.
struct Flush {
    outcome: Pin<Box<dyn Future<Output = Result<(), String>> + Send>>,
    offsets: OffsetBuffer,
    began: Instant,
}

/// What [`AtLeastOnce`] works with.
pub struct Parts {
    /// Sends the records.
    pub producer: Arc<PlainProducer>,
    /// The connector's offsets, as they were read.
    pub offsets: ConnectorOffsets,
    /// Where offsets go.
    pub sink: OffsetSink,
    /// To the task.
    pub notices: Notices,
    /// Counters.
    pub metrics: Arc<TaskMetrics>,
    /// What a record that can't be sent means.
    pub tolerance: Tolerance,
    /// The topic of dead letters, if there are any.
    pub dead_letters: Option<Arc<str>>,
    /// `offset.flush.interval.ms`.
    pub flush_interval: Duration,
    /// `offset.flush.timeout.ms`.
    pub flush_timeout: Duration,
}

/// See the module.
pub struct AtLeastOnce {
    with: Parts,
    submitted: Submitted,
    acks: JoinSet<(UnitId, Result<(), ProducerError>)>,
    sent: HashMap<UnitId, Sent>,
    waiting: BTreeMap<u64, Waiting>,
    next_unit: u64,
    next_part: u64,
    committable: OffsetBuffer,
    flush: Option<Flush>,
    /// What was told of flushes that failed.
    complaint: Complaint,
}

impl AtLeastOnce {
    /// For a task that has been started.
    pub fn new(with: Parts) -> Self {
        Self {
            with,
            submitted: Submitted::default(),
            acks: JoinSet::new(),
            sent: HashMap::new(),
            waiting: BTreeMap::new(),
            next_unit: 0,
            next_part: 0,
            committable: OffsetBuffer::default(),
            flush: None,
            complaint: Complaint::default(),
        }
    }

    /// Works until the polling side is gone.
    ///
    /// # Errors
    /// The first record that could not be delivered.
    pub async fn run(&mut self, polled: &mut mpsc::Receiver<Polled>) -> Result<(), TaskFailure> {
        let mut tick = tokio::time::interval(self.with.flush_interval);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick.reset();
        loop {
            let has_room = self.submitted.open() < UNITS_MAX;
            tokio::select! {
                Some(ack) = self.acks.join_next(), if !self.acks.is_empty() => self.acknowledged(ack)?,
                outcome = ended(&mut self.flush), if self.flush.is_some() => self.flushed(outcome),
                _ = tick.tick() => self.begin_flush(),
                message = polled.recv(), if has_room => match message {
                    Some(Polled::Parts(parts, _room)) => {
                        for part in parts {
                            self.send(part).await?;
                        }
                    }
                    Some(Polled::Nothing(_) | Polled::Pause(_)) => {}
                    None => return Ok(()),
                },
            }
        }
    }

    /// Waits for what is under way, then stores the last offsets.
    ///
    /// # Errors
    /// A record that could not be delivered; offsets before it are stored.
    pub async fn finish(&mut self) -> Result<(), TaskFailure> {
        let deadline = tokio::time::Instant::now() + self.with.flush_timeout;
        let mut result = Ok(());
        while !self.acks.is_empty() {
            match tokio::time::timeout_at(deadline, self.acks.join_next()).await {
                Ok(Some(ack)) => result = result.and(self.acknowledged(ack)),
                Ok(None) => break,
                Err(_) => {
                    let left = self.acks.len();
                    result = result.and(Err(TaskFailure::lost(format!(
                        "{left} batches were not acknowledged within offset.flush.timeout.ms; their records come again"
                    ))));
                    break;
                }
            }
        }
        if self.flush.is_some() {
            let outcome = ended(&mut self.flush).await;
            self.flushed(outcome);
        }
        self.begin_flush();
        if self.flush.is_some() {
            let outcome = ended(&mut self.flush).await;
            self.flushed(outcome);
        }
        result
    }

    /// Ends the producer.
    pub async fn close(self, timeout: Duration) {
        let Self { with: Parts { producer, sink, .. }, flush, mut acks, .. } = self;
        acks.abort_all();
        while acks.join_next().await.is_some() {}
        drop((flush, sink));
        // Somebody else still holds it only by a mistake; then it ends when that one lets go.
        if let Some(producer) = Arc::into_inner(producer)
            && let Err(error) = producer.close(timeout).await
        {
            tracing::warn!("closing the producer: {error}");
        }
    }

    async fn send(&mut self, part: Part) -> Result<(), TaskFailure> {
        self.with.metrics.polled(part.records);
        let part_id = self.next_part;
        self.next_part += 1;
        let mut by_target: Vec<(Destination, Vec<StagedBatch>)> = Vec::new();
        for batch in part.batches {
            let target = (batch.topic().clone(), batch.partition());
            match by_target.iter_mut().find(|(known, _)| *known == target) {
                Some((_, batches)) => batches.push(batch),
                None => by_target.push((target, vec![batch])),
            }
        }
        let first = self.next_unit;
        self.next_unit += by_target.len() as u64;
        let unit = |target: &Destination| {
            let place = by_target.iter().position(|(known, _)| known == target)?;
            Some(UnitId(first + place as u64))
        };
        for run in part.submitted {
            self.submitted.submit(run.partition, run.offset, run.to.as_ref().and_then(unit));
        }
        let waiting = Waiting { units: by_target.len(), kept: part.kept, records: part.records, at: Instant::now() };
        if waiting.units == 0 {
            self.with.notices.acknowledged(waiting.kept);
            return Ok(());
        }
        self.waiting.insert(part_id, waiting);
        for (place, ((topic, partition), batches)) in by_target.into_iter().enumerate() {
            let unit = UnitId(first + place as u64);
            let records = batches.iter().map(|batch| u64::from(batch.records())).sum();
            let delivery = self.with.producer.send(batches).await.map_err(|error| self.failure(error))?;
            self.sent.insert(unit, Sent { part: part_id, topic, partition, records });
            self.acks.spawn(async move { (unit, delivery.wait().await) });
        }
        Ok(())
    }

    fn failure(&self, error: ProducerError) -> TaskFailure {
        TaskFailure::of_producer(error, self.with.dead_letters.as_deref())
    }

    /// What a batch that could not be sent ends the task with; `None` when it may be passed over.
    fn refusal(&self, error: ProducerError, topic: &str) -> Option<TaskFailure> {
        let dead_letters = self.with.dead_letters.as_deref();
        if self.with.tolerance == Tolerance::None || dead_letters == Some(topic) {
            return Some(self.failure(error));
        }
        dead_letters?;
        let failure = self.failure(error);
        let message = format!(
            "{}; records that brokers refuse have no dead letters, and with {} nothing is left out without one",
            failure.message(),
            dead_letters::TOPIC
        );
        Some(failure.with_message(message))
    }

    fn acknowledged(
        &mut self,
        ack: Result<(UnitId, Result<(), ProducerError>), tokio::task::JoinError>,
    ) -> Result<(), TaskFailure> {
        let Ok((unit, outcome)) = ack else { return Ok(()) };
        let Some(sent) = self.sent.remove(&unit) else { return Ok(()) };
        let is_written = outcome.is_ok();
        if let Err(error) = outcome {
            if let Some(refusal) = self.refusal(error.clone(), &sent.topic) {
                return Err(refusal);
            }
            tracing::error!(topic = %sent.topic, partition = sent.partition, records = sent.records, "records skipped: {error}");
            self.with.metrics.given_up(sent.records, now_ms());
        }
        self.submitted.acknowledged(unit);
        let Some(waiting) = self.waiting.get_mut(&sent.part) else { return Ok(()) };
        waiting.units -= 1;
        if !is_written {
            waiting.records = waiting.records.saturating_sub(sent.records);
            for (record, written) in &mut waiting.kept {
                *written &= record.topic != sent.topic;
            }
        }
        if waiting.units == 0
            && let Some(done) = self.waiting.remove(&sent.part)
        {
            self.with.metrics.committed(done.records, done.at.elapsed());
            self.with.notices.acknowledged(done.kept);
        }
        Ok(())
    }

    /// Begins to store what may be stored, unless that is under way.
    fn begin_flush(&mut self) {
        if self.flush.is_some() {
            return;
        }
        self.committable.absorb(self.submitted.take_committable());
        if self.committable.is_empty() {
            self.with.notices.committed(Vec::new());
            return;
        }
        let records = match self.with.offsets.encode(self.committable.entries().iter()) {
            Ok(records) => records,
            Err(failure) => {
                if let Some(told) = self.complaint.failed(Instant::now(), &failure.to_string()) {
                    tracing::error!("offsets are not stored{told}: {failure}");
                }
                self.with.metrics.commit_failed();
                return;
            }
        };
        let (sink, timeout) = (self.with.sink.clone(), self.with.flush_timeout);
        let outcome = Box::pin(async move {
            let stored = tokio::time::timeout(timeout, sink.store(records)).await;
            stored.unwrap_or_else(|_| Err(format!("not within offset.flush.timeout.ms ({timeout:?})")))
        });
        self.flush = Some(Flush { outcome, offsets: std::mem::take(&mut self.committable), began: Instant::now() });
    }

    fn flushed(&mut self, outcome: Result<(), String>) {
        let Some(flush) = self.flush.take() else { return };
        match outcome {
            Ok(()) => {
                tracing::debug!(took = ?flush.began.elapsed(), "offsets are stored");
                if let Some(after) = self.complaint.over(Instant::now()) {
                    tracing::info!("offsets are stored again after {:.1} s", after.as_secs_f32());
                }
                self.with.offsets.committed(&flush.offsets, now_ms());
                self.with.notices.committed(Vec::new());
            }
            Err(problem) => {
                if let Some(told) = self.complaint.failed(Instant::now(), &problem) {
                    tracing::error!("offsets are not stored{told}, next try at the next flush: {problem}");
                }
                self.with.metrics.commit_failed();
                let newer = std::mem::replace(&mut self.committable, flush.offsets);
                self.committable.absorb(newer);
            }
        }
    }
}

/// How the flush ends. Dropping this changes nothing: it stays where it is.
async fn ended(flush: &mut Option<Flush>) -> Result<(), String> {
    match flush {
        Some(flush) => flush.outcome.as_mut().await,
        None => std::future::pending().await,
    }
}
