//! The task: batches of lines, and waiting for more.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use oncewire_api::{
    OffsetValue, Properties, Schema, SourceOffset, SourcePartition, SourceRecord, SourceTask, StopSignal, TaskContext,
    TaskError, Text, Value,
};

use crate::config::{FileConfig, join};
use crate::error::FileError;
use crate::follow::FollowedFile;
use crate::lines::Lines;

/// Java's name of the only field of the source partition.
pub(crate) const FILENAME_FIELD: &str = "filename";
/// Java's name of the only field of the source offset.
pub(crate) const POSITION_FIELD: &str = "position";

/// How much is read at once.
const CHUNK_BYTES: usize = 512 * 1024;
/// A batch is not continued beyond so many bytes of lines, so that long lines do not fill the memory.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long to wait for a file that is not there (as Java does).
const MISSING_WAIT: Duration = Duration::from_secs(1);
/// The first and the longest wait between two looks at a file that does not grow.
const IDLE_WAIT_MIN: Duration = Duration::from_millis(5);
const IDLE_WAIT_MAX: Duration = Duration::from_millis(100);
/// How often `poll` looks before it says that there is nothing.
const IDLE_LOOKS: u32 = 8;

/// Reads the lines of one file.
#[derive(Debug, Default)]
pub(crate) struct FileStreamSourceTask {
    running: Option<Running>,
}

#[async_trait]
impl SourceTask for FileStreamSourceTask {
    async fn start(&mut self, context: TaskContext, properties: &Properties) -> Result<(), TaskError> {
        let config = FileConfig::parse(properties).map_err(|problems| TaskError::fatal(join(&problems)))?;
        let partition = SourcePartition::single(FILENAME_FIELD, config.file.as_str());
        let position = match context.offset(&partition).await? {
            Some(offset) => position_of(&config.file, &offset)?,
            None => 0,
        };
        tracing::info!(connector = context.connector(), file = config.file, position, "following the file");
        self.running = Some(Running {
            stop: context.stop().clone(),
            topic: config.topic.as_str().into(),
            partition,
            position_field: POSITION_FIELD.into(),
            value_schema: Schema::string(),
            lines: Lines::new(position),
            file: None,
            missing_logged: false,
            error: None,
            idle_wait: IDLE_WAIT_MIN,
            config,
        });
        Ok(())
    }

    async fn poll(&mut self) -> Result<Option<Vec<SourceRecord>>, TaskError> {
        match &mut self.running {
            Some(running) => running.poll().await,
            None => Err(TaskError::fatal("the file task was polled before it was started")),
        }
    }

    async fn stop(&mut self) {
        self.running = None;
    }
}

fn position_of(file: &str, offset: &SourceOffset) -> Result<u64, TaskError> {
    let position =
        offset.get(POSITION_FIELD).and_then(OffsetValue::as_int).and_then(|position| u64::try_from(position).ok());
    position.ok_or_else(|| {
        TaskError::fatal(format!(
            "stored offset {offset} of file '{file}' has no '{POSITION_FIELD}' that is a whole number from 0; correct or remove this \
             connector's stored offset"
        ))
    })
}

/// A task that was started.
#[derive(Debug)]
struct Running {
    config: FileConfig,
    stop: StopSignal,
    topic: Arc<str>,
    partition: SourcePartition,
    position_field: Arc<str>,
    value_schema: Schema,
    lines: Lines,
    file: Option<FollowedFile>,
    missing_logged: bool,
    /// What the next `poll` has to report, after the lines before it.
    error: Option<TaskError>,
    idle_wait: Duration,
}

impl Running {
    async fn poll(&mut self) -> Result<Option<Vec<SourceRecord>>, TaskError> {
        if self.file.is_none() && !self.open().await? {
            self.wait(MISSING_WAIT).await;
            return Ok(None);
        }
        for _ in 0..IDLE_LOOKS {
            let batch = self.batch().await?;
            if !batch.is_empty() {
                self.idle_wait = IDLE_WAIT_MIN;
                return Ok(Some(batch));
            }
            self.wait(self.idle_wait).await;
            if self.stop.is_stopped() {
                break;
            }
            self.idle_wait = (self.idle_wait * 2).min(IDLE_WAIT_MAX);
        }
        Ok(None)
    }

    async fn wait(&self, duration: Duration) {
        tokio::select! {
            () = self.stop.stopped() => {}
            () = tokio::time::sleep(duration) => {}
        }
    }

    /// Returns whether there is a file.
    async fn open(&mut self) -> Result<bool, TaskError> {
        let (name, path, position) = (self.config.file.clone(), self.config.path(), self.lines.position());
        self.file = blocking(move || FollowedFile::open(&name, path, position)).await??;
        if self.file.is_none() && !self.missing_logged {
            tracing::warn!(file = self.config.file, "there is no such file yet; waiting for it");
            self.missing_logged = true;
        }
        Ok(self.file.is_some())
    }

    /// As many lines as there are, up to the size of a batch. An error waits until the lines before it were handed over.
    async fn batch(&mut self) -> Result<Vec<SourceRecord>, TaskError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut batch = Vec::new();
        match self.fill(&mut batch).await {
            Err(error) if batch.is_empty() => return Err(error),
            Err(error) => self.error = Some(error),
            Ok(()) => {}
        }
        Ok(batch)
    }

    async fn fill(&mut self, batch: &mut Vec<SourceRecord>) -> Result<(), TaskError> {
        let mut bytes_left = BATCH_BYTES_MAX;
        let timestamp_ms = now_ms();
        loop {
            if batch.is_empty() {
                batch.reserve(self.lines_expected());
            }
            while batch.len() < self.config.batch_size && bytes_left > 0 {
                let position = self.lines.position();
                let Some(line) = self.lines.next_line() else { break };
                self.check_length(line.text.len(), position)?;
                bytes_left = bytes_left.saturating_sub(line.text.len());
                batch.push(self.record(line.text, line.position_after, timestamp_ms));
            }
            let full = batch.len() >= self.config.batch_size || bytes_left == 0;
            if full || !self.read_chunk().await? {
                return Ok(());
            }
        }
    }

    /// A guess that spares the batch from growing step by step: what the tail can hold if lines are short.
    fn lines_expected(&self) -> usize {
        const SHORT_LINE_BYTES: usize = 32;
        self.config.batch_size.min(self.lines.tail().len() / SHORT_LINE_BYTES + 1)
    }

    fn check_length(&self, bytes: usize, position: u64) -> Result<(), FileError> {
        if bytes > self.config.line_bytes_max {
            return Err(FileError::LineTooLong {
                file: self.config.file.clone(),
                position,
                limit: self.config.line_bytes_max,
            });
        }
        Ok(())
    }

    /// Returns whether there was more to read.
    async fn read_chunk(&mut self) -> Result<bool, TaskError> {
        let tail = self.lines.tail();
        // The tail may end with the first half of a line end.
        self.check_length(tail.len().saturating_sub(1), self.lines.position())?;
        let Some(mut file) = self.file.take() else { return Ok(false) };
        // As much again as a long line has already, so that its tail is not copied again and again.
        let bytes_max = CHUNK_BYTES.max(tail.len());
        let mut buffer = Vec::with_capacity(tail.len() + bytes_max);
        buffer.extend_from_slice(tail);
        let (file, buffer, read) = blocking(move || {
            let read = file.read(&mut buffer, bytes_max);
            (file, buffer, read)
        })
        .await?;
        self.file = Some(file);
        let more = read? > 0;
        if more {
            self.lines.replace(Bytes::from(buffer));
        }
        Ok(more)
    }

    fn record(&self, text: Bytes, position_after: u64, timestamp_ms: i64) -> SourceRecord {
        // A file of 2^63 bytes does not exist.
        let position = i64::try_from(position_after).unwrap_or(i64::MAX);
        let offset = SourceOffset::single(Arc::clone(&self.position_field), OffsetValue::Int(position));
        let mut record = SourceRecord::new(self.partition.clone(), Some(offset), Arc::clone(&self.topic));
        record.value_schema = Some(self.value_schema.clone());
        record.value = Some(Value::Text(Text::from_bytes(text)));
        record.timestamp_ms = Some(timestamp_ms);
        record
    }
}

/// Runs something that blocks on a thread made for it.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, TaskError> {
    let handle = tokio::task::spawn_blocking(work);
    handle.await.map_err(|error| TaskError::fatal("the thread that reads the file has ended early").caused_by(error))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
