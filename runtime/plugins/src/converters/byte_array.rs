//! ByteArrayConverter: bytes pass through unchanged.

use bytes::Bytes;
use oncewire_api::converter::{ConvertError, Converter, ConverterUse, Presence, SchemaAndValue};
use oncewire_api::{ConfigDef, ConfigProblem, Properties, Schema, SchemaType, Value};

/// Bytes as they are; no other type is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteArrayConverter;

impl Converter for ByteArrayConverter {
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
        if let Some(schema) = schema
            && schema.schema_type() != SchemaType::Bytes
        {
            let message = format!("ByteArrayConverter takes a schema of type bytes, not {}", schema.schema_type());
            return Err(ConvertError::Value(message));
        }
        match value {
            None => Ok(Presence::Null),
            Some(Value::Bytes(bytes)) => {
                out.extend_from_slice(bytes);
                Ok(Presence::Bytes)
            }
            Some(other) => Err(ConvertError::Value(format!("ByteArrayConverter takes bytes, not {}", other.kind()))),
        }
    }

    fn to_connect(&self, _topic: &str, data: Option<&Bytes>) -> Result<SchemaAndValue, ConvertError> {
        Ok(SchemaAndValue { schema: Some(Schema::optional_bytes()), value: data.cloned().map(Value::Bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_through_and_null_is_null() {
        let mut out = b"before".to_vec();
        let value = Value::Bytes(Bytes::from_static(b"\x00\xff"));
        assert_eq!(
            ByteArrayConverter.from_connect("t", Some(&Schema::bytes()), Some(&value), &mut out),
            Ok(Presence::Bytes)
        );
        assert_eq!(out, b"before\x00\xff");
        assert_eq!(ByteArrayConverter.from_connect("t", None, None, &mut out), Ok(Presence::Null));
        let read = ByteArrayConverter.to_connect("t", Some(&Bytes::from_static(b"x"))).unwrap();
        assert_eq!(read.value, Some(Value::Bytes(Bytes::from_static(b"x"))));
    }

    #[test]
    fn other_types_are_refused() {
        let text = Value::from("x");
        assert!(ByteArrayConverter.from_connect("t", None, Some(&text), &mut Vec::new()).is_err());
        assert!(ByteArrayConverter.from_connect("t", Some(&Schema::string()), None, &mut Vec::new()).is_err());
    }
}
