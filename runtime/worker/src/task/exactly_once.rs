//! The transaction side of a task: takes prepared polls, opens, fills and ends transactions, with the source offsets inside.
//!
//! Rules (KIP-618): a transaction begins with its first record; offsets are encoded before the commit, and without them there
//! is none (KAFKA-14339); an abort that the connector asked for is followed by a transaction with the offsets alone, so that
//! the records are not read again; where nothing is open and nothing is to be stored, no broker is asked (KAFKA-14727). A
//! failure of any kind goes one way, out: the producer's close aborts what is open.

use super::ahead::{Polled, now_ms};
use super::boundary::{BoundaryState, Step};
use super::notices::Notices;
use super::offset_buffer::OffsetBuffer;
use super::prepare::{Part, PartEnd};
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use crate::store::task_offsets::TaskOffsets;
use oncewire_api::{Boundary as Ask, SourceRecord};
use oncewire_client::producer::{ProducerError, Stage, StagedBatch, TransactionalProducer};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

/// See the module.
pub struct ExactlyOnce {
    producer: Arc<TransactionalProducer>,
    offsets_out: TaskOffsets,
    offsets_stage: Stage,
    boundary: BoundaryState,
    notices: Notices,
    metrics: Arc<TaskMetrics>,
    /// The topic of dead letters, if there are any: an error that is about it says so.
    dead_letters: Option<Arc<str>>,
    open: bool,
    offsets: OffsetBuffer,
    kept: Vec<(SourceRecord, bool)>,
    records: u64,
}

impl ExactlyOnce {
    /// The producer must be initialized, and `offsets_out` read after that.
    pub fn new(
        producer: Arc<TransactionalProducer>,
        offsets_out: TaskOffsets,
        boundary: BoundaryState,
        notices: Notices,
        metrics: Arc<TaskMetrics>,
    ) -> Self {
        let offsets_stage = producer.stage();
        Self {
            producer,
            offsets_out,
            offsets_stage,
            boundary,
            notices,
            metrics,
            dead_letters: None,
            open: false,
            offsets: OffsetBuffer::default(),
            kept: Vec::new(),
            records: 0,
        }
    }

    /// Some batches go to this topic of dead letters.
    #[must_use]
    pub fn with_dead_letters(mut self, topic: Option<Arc<str>>) -> Self {
        self.dead_letters = topic;
        self
    }

    fn failure(&self, error: ProducerError) -> TaskFailure {
        TaskFailure::of_producer(error, self.dead_letters.as_deref())
    }

    /// Works until the polling side is gone, then ends what the boundary says may end.
    ///
    /// # Errors
    /// The first thing that failed. What was open then is not committed.
    pub async fn run(&mut self, polled: &mut mpsc::Receiver<Polled>) -> Result<(), TaskFailure> {
        let mut last_ask = None;
        loop {
            let deadline = self.has_something().then(|| self.boundary.deadline()).flatten();
            let message = tokio::select! {
                biased;
                message = polled.recv() => message,
                () = until(deadline), if deadline.is_some() => {
                    if self.boundary.on_timer(Instant::now()) == Step::Commit {
                        self.commit(Vec::new()).await?;
                    }
                    continue;
                }
            };
            match message {
                Some(Polled::Parts(parts, _room)) => {
                    for part in parts {
                        last_ask = self.take(part).await?;
                    }
                }
                Some(Polled::Nothing(ask)) => {
                    last_ask = ask;
                    let step = self.boundary.after_batch(Instant::now(), ask);
                    self.end(step, Vec::new()).await?;
                    last_ask = last_ask.filter(|_| step == Step::Continue);
                }
                Some(Polled::Pause(ask)) => {
                    let step = self.boundary.at_end(ask.or(last_ask.take()));
                    self.end(step, Vec::new()).await?;
                }
                None => break,
            }
        }
        Ok(())
    }

    /// The last commit of a task that stops in good order.
    ///
    /// # Errors
    /// As [`ExactlyOnce::run`].
    pub async fn finish(&mut self) -> Result<(), TaskFailure> {
        let step = self.boundary.at_end(None);
        self.end(step, Vec::new()).await
    }

    fn has_something(&self) -> bool {
        self.open || !self.offsets.is_empty()
    }

    async fn take(&mut self, part: Part) -> Result<Option<Ask>, TaskFailure> {
        self.offsets.absorb(part.offsets);
        self.kept.extend(part.kept);
        self.records += part.records;
        self.metrics.polled(part.records);
        let now = Instant::now();
        let (step, ask) = match part.end {
            PartEnd::Record(ask) => (self.boundary.after_record(Some(ask)), Some(ask)),
            PartEnd::Batch(ask) => (self.boundary.after_batch(now, ask), ask),
        };
        self.end(step, part.batches).await?;
        Ok(ask.filter(|_| step == Step::Continue))
    }

    /// Sends what is left of the part, and ends the transaction or not.
    async fn end(&mut self, step: Step, batches: Vec<StagedBatch>) -> Result<(), TaskFailure> {
        match step {
            Step::Continue => self.send(batches).await,
            Step::Commit => self.commit(batches).await,
            Step::Abort => {
                self.send(batches).await?;
                self.abort().await?;
                self.commit(Vec::new()).await
            }
        }
    }

    async fn send(&mut self, batches: Vec<StagedBatch>) -> Result<(), TaskFailure> {
        if batches.is_empty() {
            return Ok(());
        }
        if !self.open {
            self.producer.begin().await?;
            self.open = true;
            self.boundary.opened(Instant::now());
        }
        self.producer.send(batches).await.map_err(|error| self.failure(error))
    }

    async fn commit(&mut self, mut batches: Vec<StagedBatch>) -> Result<(), TaskFailure> {
        let began = Instant::now();
        if !self.offsets.is_empty() {
            self.offsets_out.remove_behind(&self.offsets).await?;
            self.offsets_out.stage(&self.offsets, &mut self.offsets_stage, now_ms())?;
            batches.extend(self.offsets_stage.seal());
        }
        self.send(batches).await?;
        if self.open {
            if let Err(error) = self.producer.commit().await {
                self.metrics.commit_failed();
                return Err(self.failure(error));
            }
            self.open = false;
            self.offsets_out.committed(&self.offsets, now_ms());
            self.metrics.committed(self.records, began.elapsed());
        }
        self.offsets.clear();
        self.records = 0;
        self.boundary.ended(Instant::now());
        self.notices.committed(std::mem::take(&mut self.kept));
        Ok(())
    }

    async fn abort(&mut self) -> Result<(), TaskFailure> {
        if self.open {
            self.producer.abort().await?;
            self.open = false;
            self.metrics.aborted(self.records);
        } else {
            tracing::warn!("the connector asked to abort a transaction in which nothing was sent; ignored");
        }
        self.records = 0;
        Ok(())
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
