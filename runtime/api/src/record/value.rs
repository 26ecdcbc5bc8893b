//! Values: what a record's key, value and headers hold.

use std::fmt;

use bytes::Bytes;

use super::{Schema, SchemaType};

/// A value of Connect's data model. Null is `None` around it.
///
/// The last four are what Java's logical types carry (`BigDecimal`, `java.util.Date`); their schema has the logical type's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// true or false.
    Boolean(bool),
    /// 8-bit signed.
    Int8(i8),
    /// 16-bit signed.
    Int16(i16),
    /// 32-bit signed.
    Int32(i32),
    /// 64-bit signed.
    Int64(i64),
    /// 32-bit floating point.
    Float32(f32),
    /// 64-bit floating point.
    Float64(f64),
    /// Text.
    Text(Text),
    /// Bytes.
    Bytes(Bytes),
    /// A list.
    Array(Vec<Option<Value>>),
    /// Entries in their order; keys may be of any type.
    Map(Vec<(Option<Value>, Option<Value>)>),
    /// Named fields.
    Struct(Box<Struct>),
    /// A decimal number.
    Decimal(Box<Decimal>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Milliseconds since midnight.
    Time(i32),
    /// Milliseconds since 1970-01-01 UTC.
    Timestamp(i64),
}

impl Value {
    /// The type that a value of this kind has in a schema.
    pub fn schema_type(&self) -> SchemaType {
        match self {
            Self::Boolean(_) => SchemaType::Boolean,
            Self::Int8(_) => SchemaType::Int8,
            Self::Int16(_) => SchemaType::Int16,
            Self::Int32(_) | Self::Date(_) | Self::Time(_) => SchemaType::Int32,
            Self::Int64(_) | Self::Timestamp(_) => SchemaType::Int64,
            Self::Float32(_) => SchemaType::Float32,
            Self::Float64(_) => SchemaType::Float64,
            Self::Text(_) => SchemaType::String,
            Self::Bytes(_) | Self::Decimal(_) => SchemaType::Bytes,
            Self::Array(_) => SchemaType::Array,
            Self::Map(_) => SchemaType::Map,
            Self::Struct(_) => SchemaType::Struct,
        }
    }

    /// The kind of value in a word, for messages: that of the schema type, or the logical type.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Decimal(_) => "decimal",
            Self::Date(_) => "date",
            Self::Time(_) => "time",
            Self::Timestamp(_) => "timestamp",
            other => other.schema_type().name(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Text::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Text::from(text))
    }
}

/// Text as a slice of a shared buffer: a clone copies no characters.
///
/// It is normally UTF-8. A source that reads lines of unknown origin may hand over bytes that are not, and they are kept: the string
/// converter writes them unchanged, a converter that must produce valid text replaces what is not UTF-8 by U+FFFD.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Text(Bytes);

impl Text {
    /// Text from bytes that need not be UTF-8; nothing is copied or checked.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Text from a literal, without allocation.
    pub fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// The bytes, valid UTF-8 or not.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The bytes, valid UTF-8 or not.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The text, if it is valid UTF-8; checks the whole of it on each call.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text, with U+FFFD for what is not UTF-8.
    pub fn to_str_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str_lossy())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_str_lossy())
    }
}

/// A decimal number: `unscaled × 10^-scale`, as Java's `BigDecimal`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits as a whole number: two's complement, big-endian, at least one byte, as `BigInteger.toByteArray` gives it.
    unscaled: Vec<u8>,
    /// Digits after the point; negative for multiples of a power of ten.
    pub scale: i32,
}

impl Decimal {
    /// From the unscaled number.
    pub fn new(unscaled: i128, scale: i32) -> Self {
        Self::from_unscaled_bytes(&unscaled.to_be_bytes(), scale)
    }

    /// From the unscaled number as two's complement, big-endian; no bytes are zero. Redundant sign bytes are taken off.
    pub fn from_unscaled_bytes(bytes: &[u8], scale: i32) -> Self {
        let mut bytes = if bytes.is_empty() { &[0][..] } else { bytes };
        while let [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..] = bytes {
            bytes = &bytes[1..];
        }
        Self { unscaled: bytes.to_vec(), scale }
    }

    /// The unscaled number: two's complement, big-endian, the shortest form.
    pub fn unscaled_bytes(&self) -> &[u8] {
        &self.unscaled
    }
}

/// Named fields with their schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    schema: Schema,
    values: Vec<Option<Value>>,
}

/// A mistake in filling a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StructError {
    /// The schema is not of a struct.
    NoStruct {
        /// What it is.
        schema_type: SchemaType,
    },
    /// The schema has no such field.
    UnknownField {
        /// The name that was asked for.
        name: String,
    },
    /// The field holds another type.
    WrongType {
        /// The field.
        name: String,
        /// What the schema says.
        expected: SchemaType,
        /// What was given.
        found: SchemaType,
    },
}

impl fmt::Display for StructError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStruct { schema_type } => write!(f, "a struct needs a schema of type struct, not {schema_type}"),
            Self::UnknownField { name } => write!(f, "the struct has no field '{name}'"),
            Self::WrongType { name, expected, found } => write!(f, "field '{name}' holds {expected}, not {found}"),
        }
    }
}

impl std::error::Error for StructError {}

impl Struct {
    /// A struct in which every field is null.
    ///
    /// # Errors
    /// [`StructError::NoStruct`] when the schema is of another type.
    pub fn new(schema: Schema) -> Result<Self, StructError> {
        if schema.schema_type() != SchemaType::Struct {
            return Err(StructError::NoStruct { schema_type: schema.schema_type() });
        }
        let values = vec![None; schema.fields().len()];
        Ok(Self { schema, values })
    }

    /// Sets a field.
    ///
    /// # Errors
    /// [`StructError`] when there is no such field or it holds another type.
    pub fn put(&mut self, name: &str, value: Option<Value>) -> Result<&mut Self, StructError> {
        let Some((place, field)) = self.schema.field(name) else {
            return Err(StructError::UnknownField { name: name.into() });
        };
        if let Some(value) = &value
            && value.schema_type() != field.schema.schema_type()
        {
            let (expected, found) = (field.schema.schema_type(), value.schema_type());
            return Err(StructError::WrongType { name: name.into(), expected, found });
        }
        self.values[place] = value;
        Ok(self)
    }

    /// The value of a field; `None` when it is null or there is no such field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let (place, _) = self.schema.field(name)?;
        self.values[place].as_ref()
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The values, in the order of the schema's fields.
    pub fn values(&self) -> &[Option<Value>] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_bytes_that_are_not_utf_8() {
        let text = Text::from_bytes(Bytes::from_static(b"a\xffb"));
        assert_eq!(text.as_str(), None);
        assert_eq!(text.to_string(), "a\u{fffd}b");
        assert_eq!(&text.as_bytes()[..], b"a\xffb");
    }

    #[test]
    fn a_decimal_has_one_shortest_form() {
        assert_eq!(Decimal::new(0, 0).unscaled_bytes(), [0]);
        assert_eq!(Decimal::new(127, 0).unscaled_bytes(), [0x7f]);
        assert_eq!(Decimal::new(128, 0).unscaled_bytes(), [0, 0x80]);
        assert_eq!(Decimal::new(-1, 0).unscaled_bytes(), [0xff]);
        assert_eq!(Decimal::new(-129, 0).unscaled_bytes(), [0xff, 0x7f]);
        assert_eq!(Decimal::from_unscaled_bytes(&[], 3), Decimal::new(0, 3));
    }

    #[test]
    fn a_struct_refuses_unknown_fields_and_wrong_types() {
        let schema = Schema::structure().field("id", Schema::int32()).build().unwrap();
        let mut value = Struct::new(schema).unwrap();
        value.put("id", Some(Value::Int32(1))).unwrap();
        assert_eq!(value.get("id"), Some(&Value::Int32(1)));
        assert!(matches!(value.put("x", None), Err(StructError::UnknownField { .. })));
        assert!(matches!(value.put("id", Some(Value::Int64(1))), Err(StructError::WrongType { .. })));
    }

    #[test]
    fn a_value_fits_in_40_bytes() {
        assert!(size_of::<Option<Value>>() <= 40, "{} bytes", size_of::<Option<Value>>());
    }
}
