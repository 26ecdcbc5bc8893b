//! The records of the offsets topic: key `["<connector>",{<partition>}]`, value `{<offset>}`, as Connect writes them with
//! `schemas.enable=false` (KIP-618 keeps that form).
//!
//! The bytes of the key are what the topic compacts on. They follow the order in which the partition's entries were given, so a worker
//! that finds the partition in the topic already, whatever the order, is to write the bytes that it found there.

use std::fmt;

use oncewire_api::{OffsetValue, SourceOffset, SourcePartition};

use super::{Json, JsonError, parse, write_base64, write_f64, write_i64, write_text};

/// Why an offset cannot be written or read.
#[derive(Clone, Debug, PartialEq)]
pub enum OffsetJsonError {
    /// A number that JSON cannot hold: it would come back as text, that is as another offset.
    NotFinite {
        /// The entry.
        key: String,
        /// The number.
        value: f64,
    },
    /// The bytes in the topic are no JSON.
    Syntax(JsonError),
    /// The bytes in the topic are JSON of another shape.
    Shape {
        /// What was expected and what was found.
        message: String,
    },
}

impl fmt::Display for OffsetJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite { key, value } => {
                write!(
                    f,
                    "source offset entry '{key}' is {value}, which JSON cannot hold; the connector must give a finite number"
                )
            }
            Self::Syntax(error) => write!(f, "offset record is {error}"),
            Self::Shape { message } => write!(f, "offset record has another shape: {message}"),
        }
    }
}

impl std::error::Error for OffsetJsonError {}

/// The key under which a partition's offset is stored.
///
/// # Errors
/// [`OffsetJsonError::NotFinite`].
pub fn offset_key_bytes(connector: &str, partition: &SourcePartition) -> Result<Vec<u8>, OffsetJsonError> {
    let mut out = Vec::new();
    write_offset_key(connector, partition, &mut out)?;
    Ok(out)
}

/// The stored form of an offset.
///
/// # Errors
/// [`OffsetJsonError::NotFinite`].
pub fn offset_value_bytes(offset: &SourceOffset) -> Result<Vec<u8>, OffsetJsonError> {
    let mut out = Vec::new();
    write_offset_value(offset, &mut out)?;
    Ok(out)
}

/// Appends what [`offset_key_bytes`] returns.
///
/// # Errors
/// [`OffsetJsonError::NotFinite`]; what was appended is then meaningless.
pub fn write_offset_key(
    connector: &str,
    partition: &SourcePartition,
    out: &mut Vec<u8>,
) -> Result<(), OffsetJsonError> {
    out.push(b'[');
    write_text(connector, out);
    out.push(b',');
    write_entries(partition.iter(), out)?;
    out.push(b']');
    Ok(())
}

/// Appends what [`offset_value_bytes`] returns.
///
/// # Errors
/// [`OffsetJsonError::NotFinite`]; what was appended is then meaningless.
pub fn write_offset_value(offset: &SourceOffset, out: &mut Vec<u8>) -> Result<(), OffsetJsonError> {
    write_entries(offset.iter(), out)
}

fn write_entries<'a>(
    entries: impl Iterator<Item = (&'a str, &'a OffsetValue)>,
    out: &mut Vec<u8>,
) -> Result<(), OffsetJsonError> {
    out.push(b'{');
    for (index, (key, value)) in entries.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(key, out);
        out.push(b':');
        match value {
            OffsetValue::Null => out.extend_from_slice(b"null"),
            OffsetValue::Bool(true) => out.extend_from_slice(b"true"),
            OffsetValue::Bool(false) => out.extend_from_slice(b"false"),
            OffsetValue::Int(number) => write_i64(*number, out),
            OffsetValue::Float(number) if number.is_finite() => write_f64(*number, out),
            OffsetValue::Float(number) => return Err(OffsetJsonError::NotFinite { key: key.into(), value: *number }),
            OffsetValue::Text(text) => write_text(text, out),
            OffsetValue::Bytes(bytes) => write_base64(bytes, out),
        }
    }
    out.push(b'}');
    Ok(())
}

/// Reads the key of an offset record: the connector and the partition; `None` for a null partition, which Connect skips in silence.
///
/// # Errors
/// [`OffsetJsonError`] when the bytes are not such a key; the record is to be logged and skipped.
pub fn parse_offset_key(bytes: &[u8]) -> Result<(String, Option<SourcePartition>), OffsetJsonError> {
    let json = parse(bytes).map_err(OffsetJsonError::Syntax)?;
    let Json::Array(items) = json else {
        return Err(shape(format!("the key is {}, not a list of connector and partition", json.kind())));
    };
    match <[Json<'_>; 2]>::try_from(items) {
        Ok([Json::Text(connector), Json::Null]) => Ok((connector.into_owned(), None)),
        Ok([Json::Text(connector), Json::Object(members)]) => {
            Ok((connector.into_owned(), Some(SourcePartition::new(read_entries(members)?))))
        }
        Ok([first, second]) => {
            Err(shape(format!("the key holds {} and {}, not text and an object", first.kind(), second.kind())))
        }
        Err(items) => Err(shape(format!("the key has {} items, not two", items.len()))),
    }
}

/// Reads the value of an offset record; `None` for JSON's null (Kafka's null is for the caller).
///
/// # Errors
/// [`OffsetJsonError`] when the bytes are not such a value.
pub fn parse_offset_value(bytes: &[u8]) -> Result<Option<SourceOffset>, OffsetJsonError> {
    match parse(bytes).map_err(OffsetJsonError::Syntax)? {
        Json::Null => Ok(None),
        Json::Object(members) => Ok(Some(SourceOffset::new(read_entries(members)?))),
        other => Err(shape(format!("the value is {}, not an object", other.kind()))),
    }
}

fn shape(message: String) -> OffsetJsonError {
    OffsetJsonError::Shape { message }
}

type Members<'a> = Vec<(std::borrow::Cow<'a, str>, Json<'a>)>;

fn read_entries(members: Members<'_>) -> Result<Vec<(String, OffsetValue)>, OffsetJsonError> {
    members
        .into_iter()
        .map(|(key, value)| match value {
            Json::Null => Ok((key.into_owned(), OffsetValue::Null)),
            Json::Bool(value) => Ok((key.into_owned(), OffsetValue::Bool(value))),
            Json::Text(text) => Ok((key.into_owned(), OffsetValue::from(text.into_owned()))),
            Json::Number(text) => {
                let number = read_number(text)
                    .ok_or_else(|| shape(format!("entry '{key}' is a number out of range: {text}")))?;
                Ok((key.into_owned(), number))
            }
            Json::Array(_) | Json::Object(_) => {
                let kind = value.kind();
                Err(shape(format!("entry '{key}' is {kind}, but only null, booleans, numbers and text are legal")))
            }
        })
        .collect()
}

/// Whole numbers are 64-bit integers, everything with a point or an exponent is a double, as in Java.
fn read_number(text: &str) -> Option<OffsetValue> {
    if text.contains(['.', 'e', 'E']) {
        text.parse::<f64>().ok().filter(|number| number.is_finite()).map(OffsetValue::Float)
    } else {
        text.parse::<i64>().ok().map(OffsetValue::Int)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(connector: &str, partition: &SourcePartition) -> String {
        String::from_utf8(offset_key_bytes(connector, partition).unwrap()).unwrap()
    }

    /// D42 offset-key-bytes
    #[test]
    fn keys_and_values_are_those_of_kafka_connect() {
        let file = SourcePartition::single("filename", "/tmp/é.txt");
        assert_eq!(key("local-file", &file), r#"["local-file",{"filename":"/tmp/é.txt"}]"#);
        let mirror = SourcePartition::new([
            ("cluster", "src".into()),
            ("partition", OffsetValue::Int(0)),
            ("topic", "t".into()),
        ]);
        assert_eq!(key("mm", &mirror), r#"["mm",{"cluster":"src","partition":0,"topic":"t"}]"#);
        assert_eq!(offset_value_bytes(&SourceOffset::single("offset", 42)).unwrap(), br#"{"offset":42}"#);
    }

    #[test]
    fn every_legal_value_is_written_and_read_back() {
        let offset = SourceOffset::new([
            ("n", OffsetValue::Null),
            ("t", OffsetValue::Bool(true)),
            ("i", OffsetValue::Int(i64::MIN)),
            ("f", OffsetValue::Float(0.1)),
            ("g", OffsetValue::Float(1e300)),
            ("s", OffsetValue::from("a\"\u{1F600}")),
        ]);
        let bytes = offset_value_bytes(&offset).unwrap();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            r#"{"n":null,"t":true,"i":-9223372036854775808,"f":0.1,"g":1.0E300,"s":"a\"\uD83D\uDE00"}"#
        );
        assert_eq!(parse_offset_value(&bytes).unwrap(), Some(offset));
    }

    #[test]
    fn bytes_are_base64_and_come_back_as_text() {
        let offset = SourceOffset::single("b", OffsetValue::Bytes([1, 2, 3].into()));
        let bytes = offset_value_bytes(&offset).unwrap();
        assert_eq!(bytes, br#"{"b":"AQID"}"#);
        assert_eq!(parse_offset_value(&bytes).unwrap(), Some(SourceOffset::single("b", "AQID")));
    }

    #[test]
    fn a_number_that_json_cannot_hold_is_refused() {
        let offset = SourceOffset::single("x", OffsetValue::Float(f64::NAN));
        let error = offset_value_bytes(&offset).unwrap_err();
        assert!(error.to_string().contains("'x' is NaN"), "{error}");
    }

    #[test]
    fn both_spellings_of_a_key_are_the_same_partition() {
        let one = parse_offset_key(br#"["c",{"bucket":"b","key":"k"}]"#).unwrap();
        let other = parse_offset_key(br#"["c", {"key":"k","bucket":"b"}]"#).unwrap();
        assert_eq!(one, other);
        let int = parse_offset_key(br#"["c",{"n":1}]"#).unwrap();
        assert_ne!(int, parse_offset_key(br#"["c",{"n":1.0}]"#).unwrap());
    }

    #[test]
    fn a_null_partition_is_told_apart() {
        assert_eq!(parse_offset_key(br#"["c",null]"#).unwrap(), ("c".to_string(), None));
        assert_eq!(parse_offset_value(b"null").unwrap(), None);
    }

    #[test]
    fn illegal_records_are_refused_with_the_reason() {
        let cases: [(&[u8], &str); 5] = [
            (br#"{"a":1}"#, "the key is an object"),
            (br#"["c"]"#, "has 1 items"),
            (br#"["c",{},3]"#, "has 3 items"),
            (br#"[1,{}]"#, "a number and an object"),
            (br#"["c",{"a":[1]}]"#, "entry 'a' is a list"),
        ];
        for (bytes, reason) in cases {
            let error = parse_offset_key(bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(
            parse_offset_value(br#"{"pos":{"a":1}}"#).unwrap_err().to_string().contains("entry 'pos' is an object")
        );
        assert!(parse_offset_value(br#"{"pos":9223372036854775808}"#).is_err());
        assert!(parse_offset_value(b"{").is_err());
    }
}
