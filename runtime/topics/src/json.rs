//! JSON as Connect's own topics hold it: no envelope (`schemas.enable=false`), and byte for byte what Java's writer makes.
//!
//! Java writes without spaces, leaves `/` and everything beyond ASCII as it is, and escapes control characters as `\b \t \n \f \r`
//! or `\u00XX` with upper-case digits; `serde_json` differs in the last point only. Member order is the writer's choice, readers
//! must not care.
//!
//! Reading keeps integers as 64-bit values, as Java's converter does; a number beyond that is none that these topics have.

use crate::Config;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use serde_json::{Map, Value};
use std::io;

/// Java's spelling of what may not stand in a string as it is.
struct JavaEscapes;

impl Formatter for JavaEscapes {
    fn write_char_escape<W>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        match escape {
            CharEscape::AsciiControl(byte) => write!(writer, "\\u{byte:04X}"),
            other => serde_json::ser::CompactFormatter.write_char_escape(writer, other),
        }
    }
}

/// The text of a value.
pub(crate) fn write(value: &Value) -> Vec<u8> {
    let mut text = Vec::with_capacity(128);
    let mut serializer = Serializer::with_formatter(&mut text, JavaEscapes);
    serde::Serialize::serialize(value, &mut serializer).expect("a Value has text keys, and a Vec takes every byte");
    text
}

/// An object out of its members, in this order.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A record's value: a tombstone, or an object.
pub(crate) enum Read {
    /// No value, or the text `null`, which Java's converter reads as none.
    Tombstone,
    /// What every record of these topics holds.
    Object(Map<String, Value>),
    /// JSON, but no object; its kind.
    Other(&'static str),
}

/// Reads a record's value. The reason of a failure quotes nothing of it.
pub(crate) fn read(value: Option<&[u8]>) -> Result<Read, String> {
    let Some(text) = value else { return Ok(Read::Tombstone) };
    // Like Java's reader, which stops behind the first value.
    let first = serde_json::Deserializer::from_slice(text).into_iter::<Value>().next();
    match first {
        None => Err("it is empty".to_owned()),
        Some(Err(error)) => {
            Err(format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column()))
        }
        Some(Ok(Value::Null)) => Ok(Read::Tombstone),
        Some(Ok(Value::Object(members))) => Ok(Read::Object(members)),
        Some(Ok(other)) => Ok(Read::Other(kind(&other))),
    }
}

/// The value of a connector's or task's `properties`.
///
/// Java keeps numbers and booleans and fails on them later; here they become their text.
pub(crate) fn config(members: &Map<String, Value>) -> Result<Config, String> {
    let mut config = Config::new();
    for (name, value) in members {
        let text = match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            other => return Err(format!("property {name:?} is {} and not text", kind(other))),
        };
        config.insert(name.clone(), text);
    }
    Ok(config)
}

/// The reverse of [`config`].
pub(crate) fn properties(config: &Config) -> Value {
    let member =
        |(name, value): (&String, &Option<String>)| (name.clone(), value.clone().map_or(Value::Null, Value::String));
    Value::Object(config.iter().map(member).collect())
}

/// What a value is, for a log line that must not show it.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The kind of a member that may be missing.
pub(crate) fn kind_of(value: Option<&Value>) -> &'static str {
    value.map_or("missing", kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &Value) -> String {
        String::from_utf8(write(value)).unwrap()
    }

    #[test]
    fn control_characters_are_written_as_java_writes_them() {
        let value = Value::String("é\"\u{1}\u{1f}\u{8}\u{c}\n\r\t/\\\u{7f}\u{2028}".to_owned());
        assert_eq!(text(&value), "\"é\\\"\\u0001\\u001F\\b\\f\\n\\r\\t/\\\\\u{7f}\u{2028}\"");
    }

    #[test]
    fn members_keep_their_order() {
        let value = object([("state", Value::from("a")), ("state.v2", Value::Null)]);
        assert_eq!(text(&value), r#"{"state":"a","state.v2":null}"#);
    }

    #[test]
    fn null_and_no_value_are_tombstones_and_an_empty_value_is_none() {
        assert!(matches!(read(None), Ok(Read::Tombstone)));
        assert!(matches!(read(Some(b" null ")), Ok(Read::Tombstone)));
        assert!(read(Some(b"")).is_err());
        assert!(matches!(read(Some(b"[1]")), Ok(Read::Other("a list"))));
    }

    #[test]
    fn a_failure_quotes_nothing_of_the_value() {
        let Err(reason) = read(Some(br#"{"properties":{"password":"secret"#)) else { panic!("it is cut") };
        assert!(!reason.contains("secret") && !reason.contains("password"), "{reason}");
        assert!(read(Some(b"{\"a\":\"\xff\"}")).is_err());
    }

    #[test]
    fn numbers_and_booleans_in_a_config_become_their_text() {
        let Ok(Read::Object(members)) = read(Some(br#"{"a":1,"b":true,"c":null,"d":1.5}"#)) else {
            panic!("an object")
        };
        let config = config(&members).unwrap();
        assert_eq!(config["a"].as_deref(), Some("1"));
        assert_eq!(config["b"].as_deref(), Some("true"));
        assert_eq!(config["c"], None);
        assert_eq!(config["d"].as_deref(), Some("1.5"));
    }
}
