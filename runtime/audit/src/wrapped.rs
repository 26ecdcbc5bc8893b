//! Values that JsonConverter wrote: the expected text as a JSON string, alone or in an envelope with its schema.
//!
//! Such a topic holds what it should in another form than the auditor compares. That is no reason to be content; it is the
//! likeliest reason for every value to be wrong, since JsonConverter is what many worker files begin with.

use serde_json::Value;

/// Longer values are not looked into: far more than any line that a broker takes by default.
const VALUE_BYTES_MAX: usize = 16 << 20;

/// What to tell about `count` such values.
pub(crate) fn hint(count: u64) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "{count} of the foreign values would be right without the JSON around them: they were written through JsonConverter. For \
             plain lines set value.converter=org.apache.kafka.connect.storage.StringConverter, and begin with a new topic"
        )
    })
}

/// The text that JsonConverter made this value of; `None` when it is nothing of the kind.
pub(crate) fn text(value: &[u8]) -> Option<String> {
    if !matches!(value.first(), Some(b'"' | b'{')) || value.len() > VALUE_BYTES_MAX {
        return None;
    }
    match serde_json::from_slice(value).ok()? {
        Value::String(text) => Some(text),
        Value::Object(mut members) if members.len() == 2 && members.contains_key("schema") => {
            match members.remove("payload") {
                Some(Value::String(text)) => Some(text),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_json_converter_are_known() {
        let text = |value: &str| text(value.as_bytes());
        assert_eq!(text(r#""a \"line\"""#).as_deref(), Some("a \"line\""));
        assert_eq!(text(r#"{"schema":{"type":"string","optional":false},"payload":"b"}"#).as_deref(), Some("b"));
        for other in ["a line", "7", r#"{"payload":"b"}"#, r#"{"schema":null,"payload":7}"#, "\"torn", ""] {
            assert_eq!(text(other), None, "{other}");
        }
    }
}
