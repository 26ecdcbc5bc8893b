//! SimpleHeaderConverter: header values as text, Connect's default for headers.
//!
//! Left out: guessing types back from text, which a source has no need of; a value is read as text.

use bytes::Bytes;
use oncewire_api::converter::{ConvertError, Converter, ConverterUse, Presence, SchemaAndValue};
use oncewire_api::{ConfigDef, ConfigProblem, Properties, Schema, Text, Value};

use super::decimal::write_decimal;
use crate::json::{write_base64, write_i64};

/// Text as it is, numbers in digits, bytes in base64, lists and maps in brackets with their texts in quotes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimpleHeaderConverter;

impl Converter for SimpleHeaderConverter {
    fn config_def(&self) -> ConfigDef {
        ConfigDef::new()
    }

    fn configure(&mut self, _properties: &Properties, _converter_use: ConverterUse) -> Result<(), Vec<ConfigProblem>> {
        Ok(())
    }

    fn from_connect(
        &self,
        _topic: &str,
        _schema: Option<&Schema>,
        value: Option<&Value>,
        out: &mut Vec<u8>,
    ) -> Result<Presence, ConvertError> {
        match value {
            None => Ok(Presence::Null),
            Some(value) => write_value(value, Place::Top, out).map(|()| Presence::Bytes),
        }
    }

    fn to_connect(&self, _topic: &str, data: Option<&Bytes>) -> Result<SchemaAndValue, ConvertError> {
        Ok(match data {
            None => SchemaAndValue::default(),
            Some(bytes) => SchemaAndValue {
                schema: Some(Schema::string()),
                value: Some(Value::Text(Text::from_bytes(bytes.clone()))),
            },
        })
    }
}

/// Where a value stands: text inside of something has quotes.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Top,
    Inside,
}

fn write_value(value: &Value, place: Place, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    match value {
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int8(number) => write_i64(i64::from(*number), out),
        Value::Int16(number) => write_i64(i64::from(*number), out),
        Value::Int32(number) => write_i64(i64::from(*number), out),
        Value::Int64(number) => write_i64(*number, out),
        Value::Float32(number) => crate::json::write_f32_bare(*number, out),
        Value::Float64(number) => crate::json::write_f64_bare(*number, out),
        Value::Text(text) => write_text(text.as_bytes(), place, out),
        Value::Bytes(bytes) => {
            let mut quoted = Vec::new();
            write_base64(bytes, &mut quoted);
            let inner = &quoted[1..quoted.len() - 1];
            out.extend_from_slice(if place == Place::Top { inner } else { &quoted });
        }
        Value::Decimal(decimal) => write_decimal(decimal, out)?,
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                comma(index, out);
                write_optional(item.as_ref(), out)?;
            }
            out.push(b']');
        }
        Value::Map(entries) => {
            out.push(b'{');
            for (index, (key, value)) in entries.iter().enumerate() {
                comma(index, out);
                write_optional(key.as_ref(), out)?;
                out.push(b':');
                write_optional(value.as_ref(), out)?;
            }
            out.push(b'}');
        }
        Value::Struct(value) => {
            out.push(b'{');
            for (index, (field, value)) in value.schema().fields().iter().zip(value.values()).enumerate() {
                comma(index, out);
                write_text(field.name.as_bytes(), Place::Inside, out);
                out.push(b':');
                write_optional(value.as_ref(), out)?;
            }
            out.push(b'}');
        }
        Value::Date(_) | Value::Time(_) | Value::Timestamp(_) => {
            return Err(ConvertError::Value(format!(
                "SimpleHeaderConverter writes no {} here; use JsonConverter for headers",
                value.kind()
            )));
        }
    }
    Ok(())
}

fn comma(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

fn write_optional(value: Option<&Value>, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    match value {
        Some(value) => write_value(value, Place::Inside, out),
        None => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

fn write_text(text: &[u8], place: Place, out: &mut Vec<u8>) {
    if place == Place::Top {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value) -> String {
        let mut out = Vec::new();
        assert_eq!(SimpleHeaderConverter.from_connect("t", None, Some(&value), &mut out), Ok(Presence::Bytes));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn header_values_are_text() {
        assert_eq!(text(Value::from("a\"b")), "a\"b");
        assert_eq!(text(Value::Int16(-7)), "-7");
        assert_eq!(text(Value::Bytes(Bytes::from_static(&[1, 2]))), "AQI=");
        let list = Value::Array(vec![Some(Value::from("a\"b")), None, Some(Value::Float64(0.5))]);
        assert_eq!(text(list), r#"["a\"b",null,0.5]"#);
        assert_eq!(text(Value::Map(vec![(Some(Value::from("k")), Some(Value::Boolean(true)))])), r#"{"k":true}"#);
    }
}
