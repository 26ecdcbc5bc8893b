//! One record on its way from a source to a topic.

use std::sync::Arc;

use super::{Headers, Schema, SourceOffset, SourcePartition, Value};

/// One record that [`SourceTask::poll`](crate::SourceTask::poll) returns.
///
/// Built with [`SourceRecord::new`] and plain field assignment:
///
/// ```
/// use oncewire_api::{OffsetValue, Schema, SourceOffset, SourcePartition, SourceRecord, Value};
/// let partition = SourcePartition::single("filename", "/tmp/in.txt");
/// let offset = SourceOffset::single("position", OffsetValue::Int(6));
/// let mut record = SourceRecord::new(partition, Some(offset), "lines");
/// record.value_schema = Some(Schema::string());
/// record.value = Some(Value::from("hello"));
/// assert!(record.key.is_none());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRecord {
    /// Where in the source the record came from; the key under which the offset is stored.
    pub source_partition: SourcePartition,
    /// Where to go on after this record; `None` removes what is stored for the partition.
    pub source_offset: Option<SourceOffset>,
    /// The topic to write to.
    pub topic: Arc<str>,
    /// The partition of the topic; `None` leaves the choice to the producer's partitioner.
    pub kafka_partition: Option<u32>,
    /// The schema of the key; `None` for a key without one.
    pub key_schema: Option<Schema>,
    /// The key; `None` is null.
    pub key: Option<Value>,
    /// The schema of the value; `None` for a value without one.
    pub value_schema: Option<Schema>,
    /// The value; `None` is null, which is a tombstone when the topic is compacted.
    pub value: Option<Value>,
    /// Milliseconds since 1970; `None` lets the producer stamp the time of sending.
    pub timestamp_ms: Option<i64>,
    /// The headers, in order; the same key may appear more than once.
    pub headers: Headers,
}

impl SourceRecord {
    /// A record with neither key, value, timestamp nor headers yet.
    pub fn new(
        source_partition: SourcePartition,
        source_offset: Option<SourceOffset>,
        topic: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            source_partition,
            source_offset,
            topic: topic.into(),
            kafka_partition: None,
            key_schema: None,
            key: None,
            value_schema: None,
            value: None,
            timestamp_ms: None,
            headers: Headers::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_fits_in_200_bytes() {
        assert!(size_of::<SourceRecord>() <= 200, "{} bytes", size_of::<SourceRecord>());
    }
}
