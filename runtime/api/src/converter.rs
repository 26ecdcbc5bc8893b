//! Converters: between values and the bytes in a topic.

use std::fmt;

use bytes::Bytes;

use crate::{ConfigDef, ConfigProblem, Properties, Schema, Value};

/// What a converter made of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Kafka's null; nothing was written.
    Null,
    /// The bytes were appended to the buffer.
    Bytes,
}

/// For which part of a record a converter works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConverterUse {
    /// Keys.
    Key,
    /// Values.
    Value,
    /// The values of headers.
    Header,
}

/// Why a value could not be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The value cannot be written by this converter, or does not agree with its schema.
    Value(String),
    /// The bytes are not what this converter writes.
    Data(String),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(message) | Self::Data(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ConvertError {}

/// A value with its schema, as a converter reads it; both `None` for Kafka's null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaAndValue {
    /// The schema; `None` when the bytes carry none.
    pub schema: Option<Schema>,
    /// The value; `None` is null.
    pub value: Option<Value>,
}

/// Between values and bytes. One instance serves one task, for keys or for values.
pub trait Converter: Send + Sync {
    /// The properties that it knows, without the prefix `key.converter.` or `value.converter.`.
    fn config_def(&self) -> ConfigDef;

    /// Takes its properties, without the prefix; those that it does not know are not an error here.
    ///
    /// # Errors
    /// Every [`ConfigProblem`] that was found.
    fn configure(&mut self, properties: &Properties, converter_use: ConverterUse) -> Result<(), Vec<ConfigProblem>>;

    /// Appends the bytes of a value to `out`, without an allocation of its own. On an error, what was appended is meaningless; the caller
    /// cuts the buffer back.
    ///
    /// # Errors
    /// [`ConvertError::Value`].
    #[expect(
        clippy::wrong_self_convention,
        reason = "Kafka Connect's own name; the `self` is the converter, not the value"
    )]
    fn from_connect(
        &self,
        topic: &str,
        schema: Option<&Schema>,
        value: Option<&Value>,
        out: &mut Vec<u8>,
    ) -> Result<Presence, ConvertError>;

    /// Reads what [`Converter::from_connect`] wrote; `None` is Kafka's null.
    ///
    /// # Errors
    /// [`ConvertError::Data`].
    fn to_connect(&self, topic: &str, data: Option<&Bytes>) -> Result<SchemaAndValue, ConvertError>;
}
