//! The worker's offsets topic, read once for all tasks of the process, and from there on only what is new.
//!
//! ```text
//! tasks ── read(connector) ──bounded──► one task that owns the reader: mark the end, read up to it, answer all who wait
//! ```
//!
//! A read sees everything that was committed before it was asked for: the end (at READ_UNCOMMITTED) is taken after the
//! question. Those who ask while a read is under way wait for the next. Nothing is fetched while nobody asks. What is
//! remembered is bounded by the source partitions of all connectors, as in any Connect worker.

use super::offset_fold::OffsetFold;
use super::offset_topic::read_to_end;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use oncewire_plugins::json::{parse_offset_key, parse_offset_value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Questions that may wait for the next read; further ones wait to be asked.
const QUESTIONS_MAX: usize = 256;

struct Question {
    connector: String,
    answer: oneshot::Sender<Result<OffsetFold, Error>>,
}

/// A handle; clones ask the same reader.
#[derive(Debug, Clone)]
pub struct TopicReader {
    questions: mpsc::Sender<Question>,
    topic: Arc<str>,
    /// What it reads with, but for the name; `None` when it sees what is not committed.
    config: Option<Arc<ClientConfig>>,
    /// Taken and joined by `close`.
    reading: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl TopicReader {
    /// Starts the reading task, which asks no broker before somebody asks it. The topic must exist by then.
    pub fn start(cluster: Cluster, topic: &str, isolation: Isolation) -> Self {
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        let config = (isolation == Isolation::Committed).then(|| Arc::new(cluster.config().clone()));
        let reader = Reading { cluster, topic: topic.to_owned(), isolation, log: None, folds: HashMap::new() };
        let reading = Arc::new(Mutex::new(Some(tokio::spawn(reader.run(asked)))));
        Self { questions, topic: topic.into(), config, reading }
    }

    /// What it reads.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Whether a read with these settings would see the same: a task that connects as the worker does may ask here.
    pub fn reads_as(&self, other: &ClientConfig) -> bool {
        let Some(config) = &self.config else { return false };
        *other == ClientConfig { client_id: other.client_id.clone(), ..ClientConfig::clone(config) }
    }

    /// The offsets of a connector as of now.
    ///
    /// # Errors
    /// When the topic is not there, or can't be read in [`READ_TO_END_MAX`](super::offset_topic::READ_TO_END_MAX).
    ///
    /// # Cancel safety
    /// Safe; the read goes on for others.
    pub async fn read(&self, connector: &str) -> Result<OffsetFold, Error> {
        let (answer, answered) = oneshot::channel();
        let question = Question { connector: connector.to_owned(), answer };
        self.questions.send(question).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Ends the reading task; those who wait are told so.
    pub async fn close(&self) {
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reading) = reading {
            reading.abort();
            // Only to see it gone: that it was aborted is what was asked for.
            let _ = reading.await;
        }
    }
}

struct Reading {
    cluster: Cluster,
    topic: String,
    isolation: Isolation,
    log: Option<LogReader>,
    folds: HashMap<String, OffsetFold>,
}

impl Reading {
    async fn run(mut self, mut asked: mpsc::Receiver<Question>) {
        while let Some(first) = asked.recv().await {
            let mut waiting = vec![first];
            while let Ok(more) = asked.try_recv() {
                waiting.push(more);
            }
            let read = self.read_to_end().await;
            if let Err(error) = &read
                && !matches!(error, Error::Timeout { .. })
            {
                // A topic that was made anew, a permission that is gone: begin from the beginning next time.
                self.log = None;
                self.folds.clear();
            }
            for question in waiting {
                let answer = read.clone().map(|()| {
                    let known = self.folds.get(&question.connector).cloned();
                    known.unwrap_or_else(|| OffsetFold::new(&question.connector))
                });
                // Whoever asked may have been stopped meanwhile.
                let _ = question.answer.send(answer);
            }
        }
    }

    async fn read_to_end(&mut self) -> Result<(), Error> {
        let log = match &mut self.log {
            Some(log) => {
                log.mark_end().await?;
                log
            }
            none => {
                let options = ReaderOptions { isolation: self.isolation, ..ReaderOptions::default() };
                none.insert(LogReader::open(&self.cluster, &self.topic, options).await?)
            }
        };
        let folds = &mut self.folds;
        read_to_end(log, |record| take(folds, record.key.as_ref(), record.value.as_ref(), record.timestamp_ms)).await
    }
}

fn take(
    folds: &mut HashMap<String, OffsetFold>,
    key: Option<&bytes::Bytes>,
    value: Option<&bytes::Bytes>,
    timestamp_ms: i64,
) {
    let Some(key) = key else { return };
    let (connector, partition) = match parse_offset_key(key) {
        Ok((connector, Some(partition))) => (connector, partition),
        Ok((_, None)) => return,
        Err(problem) => {
            tracing::debug!("an offsets topic holds a key that is not one: {problem}");
            return;
        }
    };
    match value.map(|value| parse_offset_value(value)).transpose() {
        Ok(offset) => {
            let fold = folds.entry(connector).or_insert_with_key(|connector| OffsetFold::new(connector));
            fold.take(partition, key, offset.flatten(), timestamp_ms);
        }
        Err(problem) => {
            tracing::warn!(connector, %partition, "stored offset can't be read, passed over: {problem}");
        }
    }
}
