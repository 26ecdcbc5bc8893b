//! Dead letters: what is written of a record that a tolerant connector leaves out, and the headers that say why. Pure.
//!
//! Who writes them, and in which transaction, is `prepare.rs`'s matter. The names of the headers about the error are Kafka's (KIP-298),
//! where they have a meaning for a source: a record that comes from a source has no partition and offset in Kafka, and our errors
//! have no stack trace. What a source has instead is under names of our own. A message is cut at [`MESSAGE_BYTES_MAX`].

mod rendering;

use super::error_rules::{FailedStage, RecordProblem};
use super::prepare::ConverterClasses;
use crate::config::dead_letters::DeadLetters;
use oncewire_api::SourceRecord;
use oncewire_plugins::JsonConverter;
use oncewire_plugins::json::{offset_key_bytes, offset_value_bytes};
use rendering::{Form, render};
use std::sync::Arc;

/// The longest `exception.message`: 8 KiB.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// What Connect's converters throw.
const DATA_EXCEPTION: &str = "org.apache.kafka.connect.errors.DataException";
/// What Kafka's producer throws.
const TOO_LARGE_EXCEPTION: &str = "org.apache.kafka.common.errors.RecordTooLargeException";

/// A record for the dead letter topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The key; `None` is null.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is null.
    pub value: Option<Vec<u8>>,
    /// The record's own headers, then those about the error.
    pub headers: Vec<(Arc<str>, Option<Vec<u8>>)>,
}

/// Makes the dead letters of one task.
#[derive(Debug)]
pub struct DeadLetterWriter {
    to: DeadLetters,
    connector: String,
    task: u32,
    classes: ConverterClasses,
    json: JsonConverter,
}

impl DeadLetterWriter {
    /// For a task with converters of these classes.
    pub fn new(to: DeadLetters, connector: &str, task: u32, classes: ConverterClasses) -> Self {
        Self { to, connector: connector.to_owned(), task, classes, json: JsonConverter::default() }
    }

    /// Where they go.
    pub fn topic(&self) -> &Arc<str> {
        &self.to.topic
    }

    /// The dead letter of a record.
    ///
    /// # Errors
    /// What of the record can't be written in any way.
    pub fn letter(&self, record: &SourceRecord, problem: &RecordProblem) -> Result<DeadLetter, String> {
        let key = render(&self.json, record.key_schema.as_ref(), record.key.as_ref())
            .map_err(|error| format!("key: {error}"))?;
        let value = render(&self.json, record.value_schema.as_ref(), record.value.as_ref())
            .map_err(|error| format!("value: {error}"))?;
        let mut headers = Vec::with_capacity(record.headers.len());
        for header in &record.headers {
            let rendered = render(&self.json, header.schema.as_ref(), header.value.as_ref())
                .map_err(|error| format!("header {:?}: {error}", header.key))?;
            headers.push((header.key.clone(), rendered.bytes));
        }
        if self.to.context_headers {
            headers.extend(self.context(record, problem, (key.form, value.form)));
        }
        Ok(DeadLetter { key: key.bytes, value: value.bytes, headers })
    }

    fn context(
        &self,
        record: &SourceRecord,
        problem: &RecordProblem,
        (key, value): (Form, Form),
    ) -> impl Iterator<Item = (Arc<str>, Option<Vec<u8>>)> {
        let (stage, class, exception) = match problem.stage {
            FailedStage::Key => ("KEY_CONVERTER", Some(self.classes.key), DATA_EXCEPTION),
            FailedStage::Value => ("VALUE_CONVERTER", Some(self.classes.value), DATA_EXCEPTION),
            FailedStage::Header => ("HEADER_CONVERTER", Some(self.classes.header), DATA_EXCEPTION),
            FailedStage::Produce => ("KAFKA_PRODUCE", None, TOO_LARGE_EXCEPTION),
        };
        let text = |text: &str| Some(text.as_bytes().to_vec());
        // An offset that has no JSON can't be stored either, and fails the task by itself.
        let partition = offset_key_bytes(&self.connector, &record.source_partition).ok();
        let offset = record.source_offset.as_ref().and_then(|offset| offset_value_bytes(offset).ok());
        let entries = [
            ("__connect.errors.topic", text(&record.topic)),
            ("__connect.errors.connector.name", text(&self.connector)),
            ("__connect.errors.task.id", text(&self.task.to_string())),
            ("__connect.errors.stage", text(stage)),
            ("__connect.errors.class.name", class.and_then(text)),
            ("__connect.errors.exception.class.name", text(exception)),
            ("__connect.errors.exception.message", text(cut(&problem.message))),
            ("__oncewire.errors.source.partition", partition),
            ("__oncewire.errors.source.offset", offset),
            ("__oncewire.errors.key.form", text(key.name())),
            ("__oncewire.errors.value.form", text(value.name())),
        ];
        entries.into_iter().filter(|(_, value)| value.is_some()).map(|(name, value)| (name.into(), value))
    }
}

fn cut(message: &str) -> &str {
    let end = message.len().min(MESSAGE_BYTES_MAX);
    let end = (0..=end).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
    &message[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncewire_api::{Header, OffsetValue, Schema, SourceOffset, SourcePartition, Value};

    fn writer(context_headers: bool) -> DeadLetterWriter {
        let to = DeadLetters { topic: "dead".into(), replication_factor: None, context_headers };
        DeadLetterWriter::new(to, "c", 3, ConverterClasses { key: "a.Key", value: "a.Value", header: "a.Header" })
    }

    fn record() -> SourceRecord {
        let offset = SourceOffset::single("n", OffsetValue::Int(7));
        let mut record = SourceRecord::new(SourcePartition::single("file", "f"), Some(offset), "t");
        record.key = Some(Value::from("k"));
        record.value_schema = Some(Schema::int32());
        record.value = Some(Value::Int32(1));
        record.headers.push(Header { key: "h".into(), schema: None, value: Some(Value::from("x")) });
        record.headers.push(Header { key: "h".into(), schema: None, value: None });
        record
    }

    fn problem(stage: FailedStage) -> RecordProblem {
        RecordProblem { stage, message: "no".into() }
    }

    fn texts(letter: &DeadLetter) -> Vec<(&str, Option<&str>)> {
        letter
            .headers
            .iter()
            .map(|(name, value)| (&**name, value.as_deref().map(|value| std::str::from_utf8(value).unwrap())))
            .collect()
    }

    #[test]
    fn without_context_a_dead_letter_has_the_records_own_headers_alone() {
        let letter = writer(false).letter(&record(), &problem(FailedStage::Value)).unwrap();
        assert_eq!(letter.key.as_deref(), Some(&b"k"[..]));
        assert!(letter.value.as_ref().is_some_and(|value| value.ends_with(br#""payload":1}"#)));
        assert_eq!(texts(&letter), [("h", Some("x")), ("h", None)]);
    }

    #[test]
    fn with_context_it_says_what_failed_and_where_by_kafkas_names() {
        let letter = writer(true).letter(&record(), &problem(FailedStage::Value)).unwrap();
        let expected = [
            ("h", Some("x")),
            ("h", None),
            ("__connect.errors.topic", Some("t")),
            ("__connect.errors.connector.name", Some("c")),
            ("__connect.errors.task.id", Some("3")),
            ("__connect.errors.stage", Some("VALUE_CONVERTER")),
            ("__connect.errors.class.name", Some("a.Value")),
            ("__connect.errors.exception.class.name", Some(DATA_EXCEPTION)),
            ("__connect.errors.exception.message", Some("no")),
            ("__oncewire.errors.source.partition", Some(r#"["c",{"file":"f"}]"#)),
            ("__oncewire.errors.source.offset", Some(r#"{"n":7}"#)),
            ("__oncewire.errors.key.form", Some("string")),
            ("__oncewire.errors.value.form", Some("json")),
        ];
        assert_eq!(texts(&letter), expected);
    }

    #[test]
    fn what_has_no_meaning_is_left_out_and_messages_are_cut() {
        let mut record = record();
        record.source_offset = None;
        let long = RecordProblem { stage: FailedStage::Produce, message: "ä".repeat(MESSAGE_BYTES_MAX) };
        let letter = writer(true).letter(&record, &long).unwrap();
        let texts = texts(&letter);
        let value = |name: &str| texts.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value);
        assert_eq!(value("__connect.errors.class.name"), None);
        assert_eq!(value("__oncewire.errors.source.offset"), None);
        assert_eq!(value("__connect.errors.exception.class.name"), Some(TOO_LARGE_EXCEPTION));
        assert_eq!(value("__connect.errors.exception.message").map(str::len), Some(MESSAGE_BYTES_MAX));
    }
}
