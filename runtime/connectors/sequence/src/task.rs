//! The task: batches of the sequence at its rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use oncewire_api::{
    Boundary, OffsetValue, Properties, Schema, SourceOffset, SourcePartition, SourceRecord, SourceTask, StopSignal,
    TaskContext, TaskError, Text, TransactionContext, Value,
};

use crate::config::{SequenceConfig, join};
use crate::pacer::Pacer;
use crate::pattern::{self, Item};

/// The only field of the source partition.
pub(crate) const TASK_FIELD: &str = "task";
/// The only field of the source offset: the number of the last record.
pub(crate) const N_FIELD: &str = "n";

/// A batch is not continued beyond so many bytes of values, so that large records do not fill the memory.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long `poll` waits at most for its rate before it says that there is nothing.
const RATE_WAIT_MAX: Duration = Duration::from_millis(500);
/// How long it waits when all is written. A stop ends the wait; longer ones cost less: each is a turn of the task's loop.
const DONE_WAIT: Duration = Duration::from_secs(2);

/// Writes one sequence.
#[derive(Debug, Default)]
pub(crate) struct SequenceSourceTask {
    running: Option<Running>,
}

#[async_trait]
impl SourceTask for SequenceSourceTask {
    async fn start(&mut self, context: TaskContext, properties: &Properties) -> Result<(), TaskError> {
        let config = SequenceConfig::parse(properties).map_err(|problems| TaskError::fatal(join(&problems)))?;
        let partition = SourcePartition::single(TASK_FIELD, OffsetValue::Int(config.task.into()));
        let next = match context.offset(&partition).await? {
            Some(offset) => next_of(&offset)?,
            None => 0,
        };
        tracing::info!(connector = context.connector(), task = config.task, next, "writing the sequence");
        self.running = Some(Running {
            stop: context.stop().clone(),
            transaction: context.transaction().cloned(),
            topic: config.topic.as_str().into(),
            partition,
            n_field: N_FIELD.into(),
            schema: Schema::string(),
            key: Text::from(config.task.to_string()),
            next,
            pacer: Pacer::new(config.rate),
            started: Instant::now(),
            config,
        });
        Ok(())
    }

    async fn poll(&mut self) -> Result<Option<Vec<SourceRecord>>, TaskError> {
        match &mut self.running {
            Some(running) => Ok(running.poll().await),
            None => Err(TaskError::fatal("the sequence task was polled before it was started")),
        }
    }

    async fn stop(&mut self) {
        self.running = None;
    }
}

fn next_of(offset: &SourceOffset) -> Result<u64, TaskError> {
    let last = offset.get(N_FIELD).and_then(OffsetValue::as_int).and_then(|last| u64::try_from(last).ok());
    let last = last.ok_or_else(|| {
        TaskError::fatal(format!(
            "stored offset {offset} has no '{N_FIELD}' that is a whole number from 0; correct or remove this connector's stored offset"
        ))
    })?;
    Ok(last.saturating_add(1))
}

/// A task that was started.
#[derive(Debug)]
struct Running {
    config: SequenceConfig,
    stop: StopSignal,
    /// Present when the connector defines the boundaries.
    transaction: Option<TransactionContext>,
    topic: Arc<str>,
    partition: SourcePartition,
    n_field: Arc<str>,
    schema: Schema,
    key: Text,
    next: u64,
    pacer: Pacer,
    started: Instant,
}

impl Running {
    async fn poll(&mut self) -> Option<Vec<SourceRecord>> {
        let left = self.left();
        if left == 0 {
            self.wait(DONE_WAIT).await;
            return None;
        }
        let wanted = (self.batch_records() as u64).min(left);
        let mut count = self.pacer.take(self.started.elapsed(), wanted);
        if count == 0 {
            let wait = self.pacer.wait(self.started.elapsed()).min(RATE_WAIT_MAX);
            self.wait(wait).await;
            if self.stop.is_stopped() {
                return None;
            }
            count = self.pacer.take(self.started.elapsed(), wanted);
        }
        (count > 0).then(|| self.batch(count))
    }

    /// How many records there are still to write.
    fn left(&self) -> u64 {
        self.config.boundaries.records_max.map_or(u64::MAX, |max| max.saturating_sub(self.next))
    }

    /// How many records a batch has at most, by count and by bytes.
    fn batch_records(&self) -> usize {
        let by_bytes = BATCH_BYTES_MAX.checked_div(self.config.record_bytes).unwrap_or(usize::MAX);
        self.config.batch_size.min(by_bytes.max(1))
    }

    async fn wait(&self, duration: Duration) {
        tokio::select! {
            () = self.stop.stopped() => {}
            () = tokio::time::sleep(duration) => {}
        }
    }

    /// One buffer holds the values of the whole batch; the records are slices of it.
    fn batch(&mut self, count: u64) -> Vec<SourceRecord> {
        let numbers = self.next..self.next.saturating_add(count);
        let mut values = Vec::with_capacity(self.batch_records().saturating_mul(self.config.record_bytes));
        let mut ends = Vec::with_capacity(self.batch_records());
        for n in numbers.clone() {
            pattern::write(Item { task: self.config.task, n }, self.config.record_bytes, &mut values);
            ends.push(values.len());
        }
        let values = Bytes::from(values);
        let mut start = 0;
        let mut batch = Vec::with_capacity(ends.len());
        for (n, end) in numbers.clone().zip(ends) {
            batch.push(self.record(n, values.slice(start..end)));
            start = end;
        }
        self.request_boundaries(numbers.clone());
        self.next = numbers.end;
        batch
    }

    fn record(&self, n: u64, value: Bytes) -> SourceRecord {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let offset = SourceOffset::single(Arc::clone(&self.n_field), OffsetValue::Int(n));
        let mut record = SourceRecord::new(self.partition.clone(), Some(offset), Arc::clone(&self.topic));
        record.kafka_partition = self.config.kafka_partition;
        record.key_schema = Some(self.schema.clone());
        record.key = Some(Value::Text(self.key.clone()));
        record.value_schema = Some(self.schema.clone());
        record.value = Some(Value::Text(Text::from_bytes(value)));
        record
    }

    fn request_boundaries(&self, numbers: std::ops::Range<u64>) {
        let Some(transaction) = &self.transaction else { return };
        if self.config.boundaries.commit_every == 0 {
            transaction.commit_transaction();
            return;
        }
        for (place, n) in numbers.enumerate() {
            match self.config.boundaries.after(n) {
                Some(Boundary::Commit) => transaction.commit_transaction_after(place),
                Some(Boundary::Abort) => transaction.abort_transaction_after(place),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oncewire_api::{OffsetReader, StopTrigger, stop_signal};

    use super::*;

    struct Stored(Option<SourceOffset>);

    #[async_trait]
    impl OffsetReader for Stored {
        async fn offsets(&self, partitions: &[SourcePartition]) -> Result<Vec<Option<SourceOffset>>, TaskError> {
            Ok(vec![self.0.clone(); partitions.len()])
        }
    }

    async fn start(
        entries: &[(&str, &str)],
        last: Option<i64>,
        transaction: Option<&TransactionContext>,
    ) -> (SequenceSourceTask, StopTrigger) {
        let mut properties: Properties =
            entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        properties.insert("topic".into(), "t".into());
        let (trigger, signal) = stop_signal();
        let stored = Arc::new(Stored(last.map(|n| SourceOffset::single("n", n))));
        let mut task = SequenceSourceTask::default();
        task.start(TaskContext::new("c", 0, stored, signal, transaction.cloned()), &properties).await.unwrap();
        (task, trigger)
    }

    async fn numbers(task: &mut SequenceSourceTask) -> Vec<u64> {
        let batch = task.poll().await.unwrap().unwrap_or_default();
        let number = |record: &SourceRecord| {
            let Some(Value::Text(text)) = &record.value else { panic!("{record:?}") };
            let item = pattern::parse(text.as_bytes()).unwrap();
            let offset = record.source_offset.as_ref().and_then(|offset| offset.get("n")).and_then(OffsetValue::as_int);
            assert_eq!(offset.map(i64::cast_unsigned), Some(item.n));
            item.n
        };
        batch.iter().map(number).collect()
    }

    #[tokio::test]
    async fn numbers_go_up_in_batches_to_the_end() {
        let (mut task, trigger) =
            start(&[("batch.size", "2"), ("records.max", "5"), ("record.bytes", "0")], None, None).await;
        assert_eq!(numbers(&mut task).await, [0, 1]);
        assert_eq!(numbers(&mut task).await, [2, 3]);
        assert_eq!(numbers(&mut task).await, [4]);
        trigger.stop();
        assert!(task.poll().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn it_resumes_after_the_stored_number() {
        let (mut task, _trigger) = start(&[("batch.size", "2")], Some(41), None).await;
        assert_eq!(numbers(&mut task).await, [42, 43]);
    }

    #[tokio::test]
    async fn a_record_has_its_task_as_key_and_the_asked_size() {
        let (mut task, _trigger) =
            start(&[("task.id", "7"), ("record.bytes", "1000"), ("partitions", "4")], None, None).await;
        let record = task.poll().await.unwrap().unwrap().remove(0);
        assert_eq!(record.key, Some(Value::from("7")));
        assert_eq!(record.kafka_partition, Some(3));
        assert_eq!(record.source_partition, SourcePartition::single("task", OffsetValue::Int(7)));
        let Some(Value::Text(text)) = record.value else { panic!("no text") };
        assert_eq!(text.as_bytes().len(), 1000);
    }

    #[tokio::test]
    async fn large_records_make_small_batches() {
        let (mut task, _trigger) = start(&[("record.bytes", "3000000")], None, None).await;
        assert_eq!(numbers(&mut task).await, [0, 1]);
    }

    #[tokio::test]
    async fn boundaries_follow_the_numbers_across_batches() {
        let context = TransactionContext::new();
        let rules = [("batch.size", "4"), ("commit.every", "3"), ("abort.every", "2"), ("records.max", "7")];
        let (mut task, _trigger) = start(&rules, None, Some(&context)).await;
        task.poll().await.unwrap();
        let mut first = context.take();
        assert_eq!(first.after_record(2), Ok(Some(Boundary::Commit)));
        assert!(first.is_empty());
        task.poll().await.unwrap();
        let mut second = context.take();
        assert_eq!(second.after_record(1), Ok(Some(Boundary::Abort)));
        assert_eq!(second.after_record(2), Ok(Some(Boundary::Commit)), "the last record ends the last transaction");
        assert!(second.is_empty());
    }

    #[tokio::test]
    async fn without_a_length_each_batch_is_a_transaction() {
        let context = TransactionContext::new();
        let (mut task, _trigger) = start(&[("batch.size", "4")], None, Some(&context)).await;
        task.poll().await.unwrap();
        assert_eq!(context.take().after_batch(), Ok(Some(Boundary::Commit)));
    }

    #[tokio::test]
    async fn a_stop_ends_the_wait_for_the_next_record() {
        let (mut task, trigger) = start(&[("rate.per.second", "1")], None, None).await;
        assert_eq!(numbers(&mut task).await, [0]);
        trigger.stop();
        assert!(task.poll().await.unwrap().is_none());
    }
}
