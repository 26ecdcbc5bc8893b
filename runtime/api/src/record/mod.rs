//! The data model of Kafka Connect: schemas, values, headers, and the record that a source returns.
//!
//! Null is `None` everywhere (a key, a value, an element, a field), never a variant of [`Value`]: there is one way to say it.
//!
//! The model is made for a hot path: to build, clone or drop a [`SourceRecord`] allocates nothing beyond what the source made. Text and
//! bytes are slices of one buffer, schemas, topics and source partitions are shared, an offset of one entry is stored in place, and no
//! headers cost no list.

mod header;
mod offset;
mod schema;
mod source_record;
mod value;

pub use header::{Header, Headers};
pub use offset::{OffsetValue, SourceOffset, SourcePartition};
pub use schema::{Field, Schema, SchemaBuilder, SchemaError, SchemaType, logical};
pub use source_record::SourceRecord;
pub use value::{Decimal, Struct, StructError, Text, Value};
