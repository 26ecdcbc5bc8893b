//! What is written of a record that failed: bytes that need neither the connector's converters nor its schemas to be right.
//!
//! ```text
//! null            Kafka's null
//! text, bytes     themselves
//! anything else   JSON with its schema, as JsonConverter writes it by default; where it refuses (a value that is not what its
//!                 schema says), JSON of the value alone
//! ```
//!
//! Which of these it is can be told ([`Form`]). Text within JSON that is not UTF-8 has U+FFFD in its place. There is one limit: what is
//! nested deeper than [`DEPTH_MAX`] has no rendering. See `docs/decisions/0012`.

use oncewire_api::{Converter, Presence, Schema, Struct, Value};
use oncewire_plugins::JsonConverter;
use oncewire_plugins::json::{write_base64, write_f32, write_f64, write_i64, write_text, write_text_bytes};
use std::fmt;

/// How deep a value may be nested, as for JsonConverter's readers.
pub(super) const DEPTH_MAX: usize = oncewire_plugins::json::DEPTH_MAX;

/// What a rendering is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Kafka's null.
    Null,
    /// The text itself.
    Text,
    /// The bytes themselves.
    Bytes,
    /// JSON with its schema: `{"schema":…,"payload":…}`.
    Json,
    /// JSON without.
    PlainJson,
}

impl Form {
    /// Its name in a header.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Json => "json",
            Self::PlainJson => "json-without-schema",
        }
    }
}

/// The value is nested deeper than [`DEPTH_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is nested deeper than {DEPTH_MAX}")
    }
}

/// A key, a value or a header's value, rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    /// `None`: null.
    pub bytes: Option<Vec<u8>>,
    /// What the bytes are.
    pub form: Form,
}

/// Renders one side of a record.
pub(super) fn render(
    json: &JsonConverter,
    schema: Option<&Schema>,
    value: Option<&Value>,
) -> Result<Rendered, TooDeep> {
    let (bytes, form) = match value {
        None => return Ok(Rendered { bytes: None, form: Form::Null }),
        Some(Value::Text(text)) => (text.as_bytes().to_vec(), Form::Text),
        Some(Value::Bytes(bytes)) => (bytes.to_vec(), Form::Bytes),
        Some(value) => {
            let mut out = Vec::new();
            match json.from_connect("", schema, Some(value), &mut out) {
                Ok(Presence::Bytes) => (out, Form::Json),
                Ok(Presence::Null) | Err(_) => {
                    out.clear();
                    write_plain(Some(value), 0, &mut out)?;
                    (out, Form::PlainJson)
                }
            }
        }
    };
    Ok(Rendered { bytes: Some(bytes), form })
}

/// JSON of any value, right by its schema or not.
fn write_plain(value: Option<&Value>, depth: usize, out: &mut Vec<u8>) -> Result<(), TooDeep> {
    if depth > DEPTH_MAX {
        return Err(TooDeep);
    }
    match value {
        None => out.extend_from_slice(b"null"),
        Some(Value::Boolean(value)) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Some(Value::Int8(number)) => write_i64(i64::from(*number), out),
        Some(Value::Int16(number)) => write_i64(i64::from(*number), out),
        Some(Value::Int32(number) | Value::Date(number) | Value::Time(number)) => write_i64(i64::from(*number), out),
        Some(Value::Int64(number) | Value::Timestamp(number)) => write_i64(*number, out),
        Some(Value::Float32(number)) => write_f32(*number, out),
        Some(Value::Float64(number)) => write_f64(*number, out),
        Some(Value::Text(text)) => write_text_bytes(text.as_bytes(), out),
        Some(Value::Bytes(bytes)) => write_base64(bytes, out),
        Some(Value::Decimal(decimal)) => {
            out.extend_from_slice(b"{\"unscaled\":");
            write_base64(decimal.unscaled_bytes(), out);
            out.extend_from_slice(b",\"scale\":");
            write_i64(decimal.scale.into(), out);
            out.push(b'}');
        }
        Some(Value::Array(items)) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                comma(index, out);
                write_plain(item.as_ref(), depth + 1, out)?;
            }
            out.push(b']');
        }
        Some(Value::Map(entries)) => write_entries(entries, depth, out)?,
        Some(Value::Struct(value)) => write_fields(value, depth, out)?,
    }
    Ok(())
}

/// With text as keys an object, else a list of pairs.
fn write_entries(entries: &[(Option<Value>, Option<Value>)], depth: usize, out: &mut Vec<u8>) -> Result<(), TooDeep> {
    let is_object = entries.iter().all(|(key, _)| matches!(key, Some(Value::Text(_))));
    out.push(if is_object { b'{' } else { b'[' });
    for (index, (key, value)) in entries.iter().enumerate() {
        comma(index, out);
        if !is_object {
            out.push(b'[');
        }
        write_plain(key.as_ref(), depth + 1, out)?;
        out.push(if is_object { b':' } else { b',' });
        write_plain(value.as_ref(), depth + 1, out)?;
        if !is_object {
            out.push(b']');
        }
    }
    out.push(if is_object { b'}' } else { b']' });
    Ok(())
}

fn write_fields(value: &Struct, depth: usize, out: &mut Vec<u8>) -> Result<(), TooDeep> {
    out.push(b'{');
    for (index, (field, value)) in value.schema().fields().iter().zip(value.values()).enumerate() {
        comma(index, out);
        write_text(&field.name, out);
        out.push(b':');
        write_plain(value.as_ref(), depth + 1, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn comma(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use oncewire_api::{Decimal, Text};

    fn rendered(schema: Option<&Schema>, value: Option<&Value>) -> (Form, Option<String>) {
        let rendered = render(&JsonConverter::default(), schema, value).unwrap();
        (rendered.form, rendered.bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    fn one(form: Form, text: &str) -> (Form, Option<String>) {
        (form, Some(text.to_owned()))
    }

    #[test]
    fn null_text_and_bytes_are_themselves_whatever_the_schema_says() {
        let json = JsonConverter::default();
        assert_eq!(rendered(Some(&Schema::int32()), None), (Form::Null, None));
        assert_eq!(rendered(Some(&Schema::int32()), Some(&Value::from("seven"))), one(Form::Text, "seven"));
        for value in [
            Value::Bytes(Bytes::from_static(b"\xff\x00")),
            Value::Text(Text::from_bytes(Bytes::from_static(b"\xff\x00"))),
        ] {
            assert_eq!(render(&json, None, Some(&value)).unwrap().bytes.unwrap(), b"\xff\x00");
        }
    }

    #[test]
    fn what_agrees_with_its_schema_is_json_with_it() {
        let seven = one(Form::Json, r#"{"schema":{"type":"int32","optional":false},"payload":7}"#);
        assert_eq!(rendered(Some(&Schema::int32()), Some(&Value::Int32(7))), seven);
        let map = Value::Map(vec![(Some(Value::from("a")), Some(Value::Boolean(true)))]);
        assert_eq!(rendered(None, Some(&map)), one(Form::Json, r#"{"schema":null,"payload":{"a":true}}"#));
    }

    #[test]
    fn what_does_not_is_json_alone() {
        assert_eq!(rendered(Some(&Schema::int64()), Some(&Value::Int32(7))), one(Form::PlainJson, "7"));
        let schema = Schema::structure().field("id", Schema::int32()).build().unwrap();
        let mut value = Struct::new(schema).unwrap();
        assert_eq!(
            rendered(Some(value.schema()), Some(&Value::Struct(Box::new(value.clone())))),
            one(Form::PlainJson, r#"{"id":null}"#),
            "a field that may not be null"
        );
        value.put("id", Some(Value::Int32(1))).unwrap();
        let list = Value::Array(vec![
            Some(Value::Struct(Box::new(value))),
            Some(Value::Timestamp(5)),
            Some(Value::Decimal(Box::new(Decimal::new(1, 2)))),
            Some(Value::Map(vec![(Some(Value::Int8(1)), None)])),
            Some(Value::Float64(f64::NAN)),
            Some(Value::Text(Text::from_bytes(Bytes::from_static(b"\xff")))),
        ]);
        let text = "[{\"id\":1},5,{\"unscaled\":\"AQ==\",\"scale\":2},[[1,null]],\"NaN\",\"\u{fffd}\"]";
        assert_eq!(rendered(None, Some(&list)), one(Form::PlainJson, text));
    }

    #[test]
    fn what_is_nested_beyond_all_measure_has_no_rendering_and_overflows_nothing() {
        let nested = |depth| (0..depth).fold(Value::Int8(1), |inner, _| Value::Array(vec![Some(inner)]));
        assert!(render(&JsonConverter::default(), None, Some(&nested(DEPTH_MAX))).is_ok());
        let refused = render(&JsonConverter::default(), None, Some(&nested(DEPTH_MAX + 1)));
        assert_eq!(refused, Err(TooDeep));
    }
}
