//! StringConverter: text in, bytes out.
//!
//! Text goes through byte for byte, valid UTF-8 or not, as long as the encoding is UTF-8. Other values are written as Java's `toString`
//! does, except those for which it says nothing useful (bytes) or depends on the time zone of the machine (dates): these are refused.

use bytes::Bytes;
use oncewire_api::config_def::Width;
use oncewire_api::converter::{ConvertError, Converter, ConverterUse, Presence, SchemaAndValue};
use oncewire_api::{
    ConfigDef, ConfigKey, ConfigProblem, ConfigType, Importance, Properties, Schema, Struct, Text, Validator, Value,
};

use super::decimal::write_decimal;
use crate::json::write_i64;

/// The property that names the encoding.
const ENCODING: &str = "converter.encoding";

/// Text; other values as Java's `toString` gives them.
#[derive(Clone, Copy, Debug, Default)]
pub struct StringConverter {
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Encoding {
    #[default]
    Utf8,
    Latin1,
    Ascii,
}

impl Encoding {
    const NAMES: [(&'static str, Self); 7] = [
        ("UTF-8", Self::Utf8),
        ("UTF8", Self::Utf8),
        ("ISO-8859-1", Self::Latin1),
        ("ISO8859_1", Self::Latin1),
        ("latin1", Self::Latin1),
        ("US-ASCII", Self::Ascii),
        ("ASCII", Self::Ascii),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, encoding)| encoding)
    }

    /// The last code point that the encoding has.
    fn last(self) -> u32 {
        match self {
            Self::Utf8 => u32::MAX,
            Self::Latin1 => 0xff,
            Self::Ascii => 0x7f,
        }
    }
}

impl Converter for StringConverter {
    fn config_def(&self) -> ConfigDef {
        let doc = "The encoding of the bytes in Kafka.";
        ConfigDef::new().define(
            ConfigKey::with_default(ENCODING, ConfigType::String, "UTF-8", Importance::High, doc)
                .validator(Validator::one_of_ignoring_case(&Encoding::NAMES.map(|(name, _)| name)))
                .width(Width::Medium)
                .display_name("Encoding"),
        )
    }

    fn configure(&mut self, properties: &Properties, _converter_use: ConverterUse) -> Result<(), Vec<ConfigProblem>> {
        let config = self.config_def().parse(properties)?;
        let name = config.text(ENCODING).map_err(|problem| vec![problem])?;
        self.encoding = Encoding::named(name).unwrap_or_default();
        Ok(())
    }

    fn from_connect(
        &self,
        _topic: &str,
        _schema: Option<&Schema>,
        value: Option<&Value>,
        out: &mut Vec<u8>,
    ) -> Result<Presence, ConvertError> {
        let start = out.len();
        match value {
            None => return Ok(Presence::Null),
            Some(Value::Text(text)) => out.extend_from_slice(text.as_bytes()),
            Some(value) => write_value(value, out)?,
        }
        if self.encoding != Encoding::Utf8 {
            let text = String::from_utf8_lossy(&out[start..]).into_owned();
            out.truncate(start);
            let last = self.encoding.last();
            // What the encoding lacks becomes a question mark, as in Java.
            out.extend(
                text.chars().map(|character| {
                    u8::try_from(character).ok().filter(|byte| u32::from(*byte) <= last).unwrap_or(b'?')
                }),
            );
        }
        Ok(Presence::Bytes)
    }

    fn to_connect(&self, _topic: &str, data: Option<&Bytes>) -> Result<SchemaAndValue, ConvertError> {
        let text = |bytes: &Bytes| match self.encoding {
            Encoding::Utf8 | Encoding::Ascii => Text::from_bytes(bytes.clone()),
            Encoding::Latin1 => Text::from(bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
        };
        Ok(SchemaAndValue {
            schema: Some(Schema::optional_string()),
            value: data.map(|bytes| Value::Text(text(bytes))),
        })
    }
}

fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    match value {
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int8(number) => write_i64(i64::from(*number), out),
        Value::Int16(number) => write_i64(i64::from(*number), out),
        Value::Int32(number) => write_i64(i64::from(*number), out),
        Value::Int64(number) => write_i64(*number, out),
        Value::Float32(number) => crate::json::write_f32_bare(*number, out),
        Value::Float64(number) => crate::json::write_f64_bare(*number, out),
        Value::Decimal(decimal) => write_decimal(decimal, out)?,
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                separator(index, ", ", out);
                write_optional(item.as_ref(), out)?;
            }
            out.push(b']');
        }
        Value::Map(entries) => {
            out.push(b'{');
            for (index, (key, value)) in entries.iter().enumerate() {
                separator(index, ", ", out);
                write_optional(key.as_ref(), out)?;
                out.push(b'=');
                write_optional(value.as_ref(), out)?;
            }
            out.push(b'}');
        }
        Value::Struct(value) => write_struct(value, out)?,
        Value::Bytes(_) | Value::Date(_) | Value::Time(_) | Value::Timestamp(_) => {
            let kind = value.kind();
            return Err(ConvertError::Value(format!(
                "StringConverter has no text for {kind}; use JsonConverter, or ByteArrayConverter for bytes"
            )));
        }
    }
    Ok(())
}

/// As Java's `Struct.toString`: the fields that are not null.
fn write_struct(value: &Struct, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    out.extend_from_slice(b"Struct{");
    let fields = value.schema().fields().iter().zip(value.values());
    let present = fields.filter_map(|(field, value)| Some((&field.name, value.as_ref()?)));
    for (index, (name, value)) in present.enumerate() {
        separator(index, ",", out);
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        write_value(value, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn separator(index: usize, text: &str, out: &mut Vec<u8>) {
    if index > 0 {
        out.extend_from_slice(text.as_bytes());
    }
}

fn write_optional(value: Option<&Value>, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    match value {
        Some(value) => write_value(value, out),
        None => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(converter: &StringConverter, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(converter.from_connect("t", None, Some(value), &mut out), Ok(Presence::Bytes));
        out
    }

    fn with_encoding(name: &str) -> Result<StringConverter, Vec<ConfigProblem>> {
        let mut converter = StringConverter::default();
        converter.configure(&Properties::from([(ENCODING.into(), name.into())]), ConverterUse::Value)?;
        Ok(converter)
    }

    #[test]
    fn text_that_is_not_utf_8_passes_unchanged() {
        let text = Value::Text(Text::from_bytes(Bytes::from_static(b"a\xff\x00b")));
        assert_eq!(write(&StringConverter::default(), &text), b"a\xff\x00b");
    }

    #[test]
    fn null_is_kafkas_null() {
        let mut out = Vec::new();
        assert_eq!(
            StringConverter::default().from_connect("t", Some(&Schema::string()), None, &mut out),
            Ok(Presence::Null)
        );
        assert_eq!(StringConverter::default().to_connect("t", None).unwrap().value, None);
    }

    #[test]
    fn other_values_look_as_javas_to_string() {
        let schema =
            Schema::structure().field("id", Schema::int32()).field("s", Schema::optional_string()).build().unwrap();
        let mut value = Struct::new(schema).unwrap();
        value.put("id", Some(Value::Int32(1))).unwrap();
        let list = Value::Array(vec![Some(Value::Float64(1.0)), None, Some(Value::Struct(Box::new(value)))]);
        assert_eq!(write(&StringConverter::default(), &list), b"[1.0, null, Struct{id=1}]");
        let map =
            Value::Map(vec![(Some(Value::from("a")), Some(Value::Boolean(true))), (Some(Value::from("b")), None)]);
        assert_eq!(write(&StringConverter::default(), &map), b"{a=true, b=null}");
    }

    #[test]
    fn bytes_and_dates_are_refused_with_a_way_out() {
        let error = StringConverter::default()
            .from_connect("t", None, Some(&Value::Timestamp(1)), &mut Vec::new())
            .unwrap_err();
        assert!(error.to_string().contains("use JsonConverter"), "{error}");
    }

    #[test]
    fn an_encoding_replaces_what_it_lacks() {
        assert_eq!(write(&with_encoding("iso-8859-1").unwrap(), &Value::from("é€")), b"\xe9?");
        assert_eq!(write(&with_encoding("US-ASCII").unwrap(), &Value::from("aé")), b"a?");
        let problems = with_encoding("EBCDIC").unwrap_err();
        assert!(problems[0].to_string().contains("UTF-8"), "{}", problems[0]);
    }
}
