//! The task against real files in a directory of its own.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use oncewire_api::{OffsetReader, StopTrigger, stop_signal};
use tempfile::TempDir;

use super::*;

/// Stored offsets, as a worker would read them.
struct Stored(Option<SourceOffset>);

#[async_trait]
impl OffsetReader for Stored {
    async fn offsets(&self, partitions: &[SourcePartition]) -> Result<Vec<Option<SourceOffset>>, TaskError> {
        Ok(vec![self.0.clone(); partitions.len()])
    }
}

struct Bench {
    directory: TempDir,
    trigger: StopTrigger,
    task: FileStreamSourceTask,
}

impl Bench {
    async fn start(text: Option<&[u8]>, position: Option<i64>, more: &[(&str, &str)]) -> Result<Self, TaskError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.txt");
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        let mut properties =
            Properties::from([("topic".into(), "t".into()), ("file".into(), path.to_str().unwrap().into())]);
        properties.extend(more.iter().map(|(key, value)| (key.to_string(), value.to_string())));
        let (trigger, signal) = stop_signal();
        let stored = Stored(position.map(|position| SourceOffset::single(POSITION_FIELD, position)));
        let mut task = FileStreamSourceTask::default();
        task.start(TaskContext::new("c", 0, Arc::new(stored), signal, None), &properties).await?;
        Ok(Self { directory, trigger, task })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("in.txt")
    }

    fn append(&self, text: &[u8]) {
        File::options().append(true).create(true).open(self.path()).unwrap().write_all(text).unwrap();
    }

    /// The lines of one batch with the positions after them.
    async fn batch(&mut self) -> Vec<(Vec<u8>, i64)> {
        self.task.poll().await.unwrap().unwrap_or_default().iter().map(line_of).collect()
    }

    async fn error(&mut self) -> String {
        self.task.poll().await.unwrap_err().to_string()
    }
}

fn line_of(record: &SourceRecord) -> (Vec<u8>, i64) {
    let Some(Value::Text(text)) = &record.value else { panic!("{record:?}") };
    let position =
        record.source_offset.as_ref().and_then(|offset| offset.get("position")).and_then(OffsetValue::as_int).unwrap();
    (text.as_bytes().to_vec(), position)
}

fn line(text: &str, position: i64) -> (Vec<u8>, i64) {
    (text.into(), position)
}

#[tokio::test]
async fn lines_come_as_records_of_java_s_shape() {
    let mut bench = Bench::start(Some("é\nb\r\nc".as_bytes()), None, &[]).await.unwrap();
    let batch = bench.task.poll().await.unwrap().unwrap();
    assert_eq!(batch.iter().map(line_of).collect::<Vec<_>>(), [line("é", 3), line("b", 6)]);
    let first = &batch[0];
    assert_eq!(first.source_partition, SourcePartition::single("filename", bench.path().to_str().unwrap()));
    assert_eq!((&*first.topic, &first.value_schema, &first.key), ("t", &Some(Schema::string()), &None));
    assert!(first.timestamp_ms.is_some_and(|time| time > 1_600_000_000_000));
}

#[tokio::test]
async fn a_line_that_is_not_utf_8_arrives_as_its_bytes() {
    let mut bench = Bench::start(Some(b"a\xff\xfe\x00b\n"), None, &[]).await.unwrap();
    assert_eq!(bench.batch().await, [(b"a\xff\xfe\x00b".to_vec(), 6)]);
}

#[tokio::test]
async fn a_batch_has_at_most_its_size_and_the_next_goes_on() {
    let mut bench = Bench::start(Some(b"1\n2\n3\n4\n5\n"), None, &[("batch.size", "2")]).await.unwrap();
    assert_eq!(bench.batch().await, [line("1", 2), line("2", 4)]);
    assert_eq!(bench.batch().await, [line("3", 6), line("4", 8)]);
    assert_eq!(bench.batch().await, [line("5", 10)]);
}

#[tokio::test]
async fn batches_are_full_across_chunks_and_no_byte_is_lost() {
    let text: String = (0..60_000).map(|number| format!("line {number} {}\n", "x".repeat(number % 40))).collect();
    assert!(text.len() > 3 * CHUNK_BYTES);
    let mut bench = Bench::start(Some(text.as_bytes()), None, &[("batch.size", "7000")]).await.unwrap();
    let mut lines = Vec::new();
    for round in 0..9 {
        let batch = bench.batch().await;
        assert_eq!(batch.len(), if round < 8 { 7000 } else { 4000 });
        lines.extend(batch);
    }
    let joined: Vec<u8> = lines.iter().flat_map(|(line, _)| [line.as_slice(), b"\n"].concat()).collect();
    assert!(joined == text.as_bytes());
    assert_eq!(lines.last().unwrap().1, i64::try_from(text.len()).unwrap());
}

#[tokio::test]
async fn it_resumes_at_the_stored_position() {
    let mut bench = Bench::start(Some(b"1\n2\n3\n"), Some(4), &[]).await.unwrap();
    assert_eq!(bench.batch().await, [line("3", 6)]);
}

#[tokio::test]
async fn an_unfinished_line_waits_and_a_growing_file_is_followed() {
    let mut bench = Bench::start(Some(b"1\nun"), None, &[]).await.unwrap();
    assert_eq!(bench.batch().await, [line("1", 2)]);
    assert_eq!(bench.batch().await, []);
    bench.append(b"finished\n");
    assert_eq!(bench.batch().await, [line("unfinished", 13)]);
}

#[tokio::test]
async fn an_empty_file_gives_nothing_and_no_error() {
    let mut bench = Bench::start(Some(b""), None, &[]).await.unwrap();
    bench.trigger.stop();
    assert!(bench.task.poll().await.unwrap().is_none());
}

#[tokio::test]
async fn a_missing_file_is_waited_for() {
    let mut bench = Bench::start(None, None, &[]).await.unwrap();
    bench.trigger.stop();
    assert!(bench.task.poll().await.unwrap().is_none());
    bench.append(b"there\n");
    assert_eq!(bench.batch().await, [line("there", 6)]);
}

#[tokio::test]
async fn a_line_of_2_mb_passes() {
    let long = "x".repeat(2_000_000);
    let mut bench = Bench::start(Some(format!("a\n{long}\nb\n").as_bytes()), None, &[]).await.unwrap();
    assert_eq!(bench.batch().await, [line("a", 2), line(&long, 2_000_003), line("b", 2_000_005)]);
}

#[tokio::test]
async fn long_lines_end_a_batch_early() {
    let long = "x".repeat(5_000_000) + "\n";
    let mut bench = Bench::start(Some(long.repeat(3).as_bytes()), None, &[]).await.unwrap();
    assert_eq!(bench.batch().await.len(), 2);
    assert_eq!(bench.batch().await.len(), 1);
}

#[tokio::test]
async fn a_line_over_the_limit_fails_after_the_lines_before_it() {
    let text = format!("ok\n{}\nnever\n", "x".repeat(11));
    let mut bench = Bench::start(Some(text.as_bytes()), None, &[("line.bytes.max", "10")]).await.unwrap();
    assert_eq!(bench.batch().await, [line("ok", 3)]);
    let error = bench.error().await;
    assert!(error.contains("more than 10 bytes at position 3; raise 'line.bytes.max'"), "{error}");
}

#[tokio::test]
async fn a_line_over_the_limit_fails_before_its_end_is_there() {
    let mut bench = Bench::start(Some("x".repeat(12).as_bytes()), None, &[("line.bytes.max", "10")]).await.unwrap();
    assert!(bench.error().await.contains("more than 10 bytes at position 0"));
    let mut fits = Bench::start(Some(b"0123456789\r\n"), None, &[("line.bytes.max", "10")]).await.unwrap();
    assert_eq!(fits.batch().await, [line("0123456789", 12)]);
}

#[tokio::test]
async fn a_file_truncated_below_the_stored_position_fails_the_task() {
    let mut bench = Bench::start(Some(b"1\n"), Some(100), &[]).await.unwrap();
    let error = bench.error().await;
    assert!(error.contains("was truncated: it has 2 bytes, but 100 were read"), "{error}");
}

#[tokio::test]
async fn the_last_lines_of_a_replaced_file_are_handed_over_before_the_error() {
    let mut bench = Bench::start(Some(b"1\n"), None, &[]).await.unwrap();
    assert_eq!(bench.batch().await, [line("1", 2)]);
    bench.append(b"2\n");
    fs::rename(bench.path(), bench.directory.path().join("in.txt.1")).unwrap();
    bench.append(b"new\n");
    assert_eq!(bench.batch().await, [line("2", 4)]);
    let error = bench.error().await;
    assert!(error.contains("was replaced by another of the same name after 4 bytes"), "{error}");
}

#[tokio::test]
async fn a_directory_in_place_of_the_file_fails_the_task() {
    let mut bench = Bench::start(None, None, &[]).await.unwrap();
    fs::create_dir(bench.path()).unwrap();
    assert!(bench.error().await.contains("is a directory"));
}

#[tokio::test]
async fn a_stored_offset_without_a_position_is_refused_at_the_start() {
    let refused = Bench::start(Some(b""), Some(-1), &[]).await;
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("has no 'position' that is a whole number from 0"), "{error}");
}

#[tokio::test]
async fn wrong_properties_are_named_at_the_start() {
    let refused = Bench::start(Some(b""), None, &[("batch.size", "many")]).await;
    assert!(refused.err().unwrap().to_string().contains("property 'batch.size' is 'many'"));
}

#[test]
fn permission_errors_say_what_to_give() {
    let error = FileError::Permission { file: "/in".into(), source: std::io::ErrorKind::PermissionDenied.into() };
    let task_error = TaskError::from(error);
    assert!(task_error.to_string().contains("give the worker's user read permission"));
    assert!(std::error::Error::source(&task_error).is_some());
}
