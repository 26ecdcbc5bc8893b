//! What a connector author implements: records, schemas, ConfigDef, source traits.
//!
//! The words are Kafka Connect's own (`SourceTask`, `ConfigDef`, `Converter`), so that what is written about Connect holds here. This
//! crate knows no Kafka client, no network and no file; of tokio it uses one watch channel, for the stop signal.
//!
//! A connector is two things: a [`SourceConnector`] that turns one configuration into task configurations, and a [`SourceTask`] that
//! returns batches of [`SourceRecord`] from `poll`. Every record says where in the source it came from ([`SourcePartition`]) and where
//! to go on after it ([`SourceOffset`]); the worker stores the latter in the same transaction as the records.

pub mod config_def;
mod context;
pub mod converter;
pub mod plugin;
pub mod record;
mod source;
mod transaction;

pub use config_def::{
    CheckedValue, Config, ConfigDef, ConfigKey, ConfigProblem, ConfigType, ConfigValue, Importance, NullableProperties,
    Properties, Validator,
};
pub use context::{
    ConnectorContext, ConnectorRequest, OffsetReader, StopSignal, StopTrigger, TaskContext, stop_signal,
};
pub use converter::{ConvertError, Converter, ConverterUse, Presence, SchemaAndValue};
pub use record::{
    Decimal, Field, Header, Headers, OffsetValue, Schema, SchemaBuilder, SchemaError, SchemaType, SourceOffset,
    SourcePartition, SourceRecord, Struct, Text, Value,
};
pub use source::{
    ConnectorError, ConnectorTransactionBoundaries, ExactlyOnceSupport, RecordMetadata, SourceConnector, SourceTask,
    TaskError,
};
pub use transaction::{Boundary, BoundaryContradiction, BoundaryRequests, TransactionContext};
