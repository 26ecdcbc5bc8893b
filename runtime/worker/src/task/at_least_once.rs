//! The delivery side of a task in at-least-once mode: records go out as they come, offsets follow them into the file.
//!
//! The offset that is stored belongs to the longest run of polls whose records are all acknowledged (KAFKA-12226 tells of
//! the reverse). It is stored every `offset.flush.interval.ms` and at the end; after a crash the records since then come
//! again. Polls under way: [`UNACKNOWLEDGED_MAX`], and as many bytes as `buffer.memory`.

use super::ahead::{Polled, now_ms};
use super::notices::Notices;
use super::offset_buffer::OffsetBuffer;
use super::prepare::Part;
use crate::error::TaskFailure;
use crate::metrics::TaskMetrics;
use crate::store::connector_offsets::{ConnectorOffsets, write_value};
use crate::store::offset_file::OffsetFile;
use bytes::Bytes;
use oncewire_api::SourceRecord;
use oncewire_client::producer::{PlainProducer, ProducerError};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Polls that may wait for their acknowledgements: 1,000.
const UNACKNOWLEDGED_MAX: usize = 1_000;

type Outcome = Pin<Box<dyn Future<Output = Result<(), ProducerError>> + Send>>;

struct Sent {
    outcome: Outcome,
    offsets: OffsetBuffer,
    kept: Vec<(SourceRecord, bool)>,
    records: u64,
    at: Instant,
}

/// See the module.
pub struct AtLeastOnce {
    producer: Option<PlainProducer>,
    offsets: ConnectorOffsets,
    file: Arc<OffsetFile>,
    notices: Notices,
    metrics: Arc<TaskMetrics>,
    flush_interval: Duration,
    flush_timeout: Duration,
    sent: VecDeque<Sent>,
    committable: OffsetBuffer,
}

impl AtLeastOnce {
    /// For a task that has been started.
    pub fn new(
        producer: PlainProducer,
        offsets: ConnectorOffsets,
        file: Arc<OffsetFile>,
        notices: Notices,
        metrics: Arc<TaskMetrics>,
        (flush_interval, flush_timeout): (Duration, Duration),
    ) -> Self {
        Self {
            producer: Some(producer),
            offsets,
            file,
            notices,
            metrics,
            flush_interval,
            flush_timeout,
            sent: VecDeque::new(),
            committable: OffsetBuffer::default(),
        }
    }

    /// Works until the polling side is gone.
    ///
    /// # Errors
    /// The first record that could not be delivered.
    pub async fn run(&mut self, polled: &mut mpsc::Receiver<Polled>) -> Result<(), TaskFailure> {
        let mut flush = tokio::time::interval(self.flush_interval);
        flush.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        flush.reset();
        loop {
            let room = self.sent.len() < UNACKNOWLEDGED_MAX;
            tokio::select! {
                outcome = next(&mut self.sent), if !self.sent.is_empty() => self.acknowledged(outcome)?,
                _ = flush.tick() => self.flush().await,
                message = polled.recv(), if room => match message {
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
        let deadline = tokio::time::Instant::now() + self.flush_timeout;
        let mut result = Ok(());
        while !self.sent.is_empty() && result.is_ok() {
            match tokio::time::timeout_at(deadline, next(&mut self.sent)).await {
                Ok(outcome) => result = self.acknowledged(outcome),
                Err(_) => {
                    let left = self.sent.len();
                    result = Err(TaskFailure::lost(format!(
                        "{left} polls were not acknowledged within offset.flush.timeout.ms; their records come again"
                    )));
                }
            }
        }
        self.flush().await;
        result
    }

    /// Ends the producer.
    pub async fn close(&mut self, timeout: Duration) {
        if let Some(producer) = self.producer.take()
            && let Err(error) = producer.close(timeout).await
        {
            tracing::warn!("closing the producer: {error}");
        }
    }

    async fn send(&mut self, part: Part) -> Result<(), TaskFailure> {
        self.metrics.polled(part.records);
        let Some(producer) = &self.producer else { return Err(TaskFailure::lost("the producer is closed")) };
        let outcome: Outcome = if part.batches.is_empty() {
            Box::pin(std::future::ready(Ok(())))
        } else {
            let delivery = producer.send(part.batches).await?;
            Box::pin(delivery.wait())
        };
        let at = Instant::now();
        self.sent.push_back(Sent { outcome, offsets: part.offsets, kept: part.kept, records: part.records, at });
        Ok(())
    }

    fn acknowledged(&mut self, outcome: Result<(), ProducerError>) -> Result<(), TaskFailure> {
        outcome?;
        if let Some(sent) = self.sent.pop_front() {
            self.metrics.committed(sent.records, sent.at.elapsed());
            self.committable.absorb(sent.offsets);
            self.notices.acknowledged(sent.kept);
        }
        Ok(())
    }

    /// Stores what is committable. A failure is logged and tried again with the next flush, as Java does.
    async fn flush(&mut self) {
        if self.committable.is_empty() {
            self.notices.committed(Vec::new());
            return;
        }
        match self.encode() {
            Ok(changes) => {
                let file = self.file.clone();
                let stored = tokio::task::spawn_blocking(move || file.store(changes)).await;
                match stored {
                    Ok(Ok(())) => {
                        self.offsets.committed(&self.committable, now_ms());
                        self.committable.clear();
                        self.notices.committed(Vec::new());
                    }
                    Ok(Err(problem)) => {
                        tracing::error!("offsets are not stored, next try at the next flush: {problem}")
                    }
                    Err(error) => tracing::error!("offsets are not stored: {error}"),
                }
            }
            Err(failure) => tracing::error!("offsets are not stored: {failure}"),
        }
    }

    fn encode(&mut self) -> Result<Vec<(Bytes, Option<Bytes>)>, TaskFailure> {
        let mut changes = Vec::with_capacity(self.committable.entries().len());
        for (partition, offset) in self.committable.entries() {
            let key = self.offsets.key(partition)?;
            let value = match offset {
                None => None,
                Some(offset) => {
                    let mut value = Vec::new();
                    write_value(partition, offset, &mut value)?;
                    Some(Bytes::from(value))
                }
            };
            changes.push((key, value));
        }
        Ok(changes)
    }
}

/// The outcome of the oldest send. Dropping it changes nothing: the outcome stays in the queue.
async fn next(sent: &mut VecDeque<Sent>) -> Result<(), ProducerError> {
    match sent.front_mut() {
        Some(sent) => sent.outcome.as_mut().await,
        None => std::future::pending().await,
    }
}
