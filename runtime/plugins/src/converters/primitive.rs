//! The converters of one primitive type: a boolean, or a number in big-endian bytes, as Kafka's serializers of these types write them.

use bytes::Bytes;
use oncewire_api::converter::{ConvertError, Converter, ConverterUse, Presence, SchemaAndValue};
use oncewire_api::{ConfigDef, ConfigProblem, Properties, Schema, Value};

/// The type that a [`PrimitiveConverter`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimitiveType {
    /// One byte, 0 or 1.
    Boolean,
    /// Two bytes.
    Short,
    /// Four bytes.
    Integer,
    /// Eight bytes.
    Long,
    /// Four bytes, IEEE 754.
    Float,
    /// Eight bytes, IEEE 754.
    Double,
}

/// Takes values of one primitive type and no other.
#[derive(Clone, Copy, Debug)]
pub struct PrimitiveConverter(PrimitiveType);

impl PrimitiveConverter {
    /// For this type.
    pub fn new(primitive_type: PrimitiveType) -> Self {
        Self(primitive_type)
    }

    fn schema(self) -> Schema {
        match self.0 {
            PrimitiveType::Boolean => Schema::optional_boolean(),
            PrimitiveType::Short => Schema::optional_int16(),
            PrimitiveType::Integer => Schema::optional_int32(),
            PrimitiveType::Long => Schema::optional_int64(),
            PrimitiveType::Float => Schema::optional_float32(),
            PrimitiveType::Double => Schema::optional_float64(),
        }
    }

    fn read(self, bytes: &[u8]) -> Option<Value> {
        match self.0 {
            PrimitiveType::Boolean => match bytes {
                [0] => Some(Value::Boolean(false)),
                [1] => Some(Value::Boolean(true)),
                _ => None,
            },
            PrimitiveType::Short => bytes.try_into().ok().map(|bytes| Value::Int16(i16::from_be_bytes(bytes))),
            PrimitiveType::Integer => bytes.try_into().ok().map(|bytes| Value::Int32(i32::from_be_bytes(bytes))),
            PrimitiveType::Long => bytes.try_into().ok().map(|bytes| Value::Int64(i64::from_be_bytes(bytes))),
            PrimitiveType::Float => bytes.try_into().ok().map(|bytes| Value::Float32(f32::from_be_bytes(bytes))),
            PrimitiveType::Double => bytes.try_into().ok().map(|bytes| Value::Float64(f64::from_be_bytes(bytes))),
        }
    }
}

impl Converter for PrimitiveConverter {
    fn config_def(&self) -> ConfigDef {
        ConfigDef::new()
    }

    fn configure(&mut self, _properties: &Properties, _converter_use: ConverterUse) -> Result<(), Vec<ConfigProblem>> {
        Ok(())
    }

    fn from_connect(
        &self,
        _topic: &str,
        schema: Option<&Schema>,
        value: Option<&Value>,
        out: &mut Vec<u8>,
    ) -> Result<Presence, ConvertError> {
        // Only Java's BooleanConverter looks at the schema; the others at the value alone.
        if let (PrimitiveType::Boolean, Some(schema)) = (self.0, schema)
            && schema.schema_type() != self.schema().schema_type()
        {
            let message = format!("BooleanConverter takes a schema of type boolean, not {}", schema.schema_type());
            return Err(ConvertError::Value(message));
        }
        match (self.0, value) {
            (_, None) => return Ok(Presence::Null),
            (PrimitiveType::Boolean, Some(Value::Boolean(value))) => out.push(u8::from(*value)),
            (PrimitiveType::Short, Some(Value::Int16(number))) => out.extend_from_slice(&number.to_be_bytes()),
            (PrimitiveType::Integer, Some(Value::Int32(number))) => out.extend_from_slice(&number.to_be_bytes()),
            (PrimitiveType::Long, Some(Value::Int64(number))) => out.extend_from_slice(&number.to_be_bytes()),
            (PrimitiveType::Float, Some(Value::Float32(number))) => out.extend_from_slice(&number.to_be_bytes()),
            (PrimitiveType::Double, Some(Value::Float64(number))) => out.extend_from_slice(&number.to_be_bytes()),
            (wanted, Some(other)) => {
                return Err(ConvertError::Value(format!("{wanted:?}Converter takes no {}", other.kind())));
            }
        }
        Ok(Presence::Bytes)
    }

    fn to_connect(&self, _topic: &str, data: Option<&Bytes>) -> Result<SchemaAndValue, ConvertError> {
        let value = match data {
            None => None,
            Some(bytes) => Some(self.read(bytes).ok_or_else(|| {
                ConvertError::Data(format!("{} bytes are no {:?} of Kafka's serializer", bytes.len(), self.0))
            })?),
        };
        Ok(SchemaAndValue { schema: Some(self.schema()), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_big_endian_and_come_back() {
        let cases: [(PrimitiveType, Value, &[u8]); 6] = [
            (PrimitiveType::Boolean, Value::Boolean(true), &[1]),
            (PrimitiveType::Short, Value::Int16(-2), &[0xff, 0xfe]),
            (PrimitiveType::Integer, Value::Int32(258), &[0, 0, 1, 2]),
            (PrimitiveType::Long, Value::Int64(1), &[0, 0, 0, 0, 0, 0, 0, 1]),
            (PrimitiveType::Float, Value::Float32(1.5), &[0x3f, 0xc0, 0, 0]),
            (PrimitiveType::Double, Value::Float64(1.0), &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
        ];
        for (primitive_type, value, bytes) in cases {
            let converter = PrimitiveConverter::new(primitive_type);
            let mut out = Vec::new();
            assert_eq!(converter.from_connect("t", None, Some(&value), &mut out), Ok(Presence::Bytes));
            assert_eq!(out, bytes);
            assert_eq!(converter.to_connect("t", Some(&Bytes::from(out))).unwrap().value, Some(value));
        }
    }

    #[test]
    fn another_type_or_length_is_refused() {
        let converter = PrimitiveConverter::new(PrimitiveType::Long);
        assert!(converter.from_connect("t", None, Some(&Value::Int32(1)), &mut Vec::new()).is_err());
        assert!(converter.to_connect("t", Some(&Bytes::from_static(b"123"))).is_err());
    }
}
