//! Offsets between REST's JSON and the form in which tasks know them. Both go through the bytes of the offsets topic, so that
//! what is altered is spelled as what a task commits.

use oncewire_api::{SourceOffset, SourcePartition};
use oncewire_plugins::json::{offset_key_bytes, offset_value_bytes, parse_offset_key, parse_offset_value};
use oncewire_rest::model::OffsetEntry;
use serde_json::{Map, Value};

/// A source partition from a request.
///
/// # Errors
/// What is wrong with it.
pub fn partition_from_json(partition: Option<&Map<String, Value>>) -> Result<SourcePartition, String> {
    let Some(partition) = partition else { return Err("The partition may not be null".to_owned()) };
    let key = serde_json::to_vec(&("", partition)).map_err(|error| error.to_string())?;
    match parse_offset_key(&key) {
        Ok((_, Some(partition))) => Ok(partition),
        Ok((_, None)) => Err("The partition may not be null".to_owned()),
        Err(problem) => Err(format!("The partition can't be stored: {problem}")),
    }
}

/// An offset from a request.
///
/// # Errors
/// What is wrong with it.
pub fn offset_from_json(offset: &Map<String, Value>) -> Result<SourceOffset, String> {
    let value = serde_json::to_vec(offset).map_err(|error| error.to_string())?;
    match parse_offset_value(&value) {
        Ok(Some(offset)) => Ok(offset),
        Ok(None) => Err("The offset may not be null here".to_owned()),
        Err(problem) => Err(format!("The offset can't be stored: {problem}")),
    }
}

/// For an answer.
///
/// # Errors
/// What can't be shown.
pub fn entry(partition: &SourcePartition, offset: Option<&SourceOffset>) -> Result<OffsetEntry, String> {
    let key = offset_key_bytes("", partition).map_err(|error| error.to_string())?;
    let (_, partition): (String, Option<Map<String, Value>>) =
        serde_json::from_slice(&key).map_err(|error| error.to_string())?;
    let offset = match offset {
        None => None,
        Some(offset) => {
            let value = offset_value_bytes(offset).map_err(|error| error.to_string())?;
            Some(serde_json::from_slice(&value).map_err(|error| error.to_string())?)
        }
    };
    Ok(OffsetEntry { partition, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_it_was() {
        let partition: Map<String, Value> = serde_json::from_str(r#"{"filename":"/tmp/é.txt"}"#).unwrap();
        let offset: Map<String, Value> = serde_json::from_str(r#"{"position":42}"#).unwrap();
        let (one, two) = (partition_from_json(Some(&partition)).unwrap(), offset_from_json(&offset).unwrap());
        let entry = entry(&one, Some(&two)).unwrap();
        assert_eq!((entry.partition, entry.offset), (Some(partition), Some(offset)));
    }

    #[test]
    fn what_cannot_be_stored_is_refused_with_a_reason() {
        let nested: Map<String, Value> = serde_json::from_str(r#"{"a":{"b":1}}"#).unwrap();
        assert!(partition_from_json(Some(&nested)).is_err());
        assert!(partition_from_json(None).is_err());
        assert!(offset_from_json(&nested).is_err());
    }
}
