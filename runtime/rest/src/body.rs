//! Request bodies: JSON read as Java's worker reads it. Pure.
//!
//! Java's JSON library turns numbers and booleans into text where text is asked for (as they are written, so `1e3` stays `1e3`), lets the last of
//! two equal members win, skips a byte order mark, and refuses unknown members and anything after the value. What it refuses is answered with 500,
//! since Java's worker does not know a parse error from any other; the texts are ours.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Failure;
use crate::model::{ConfigMap, InitialState, OffsetEntry};

/// What `POST /connectors` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreateRequest {
    /// Trimmed; empty when it was absent.
    pub(crate) name: String,
    /// With `name`.
    pub(crate) config: ConfigMap,
    /// KIP-980.
    pub(crate) initial_state: Option<InitialState>,
}

fn unreadable(text: impl std::fmt::Display) -> Failure {
    Failure::new(500, format!("the request's body cannot be read: {text}"))
}

fn missing(what: &str) -> Failure {
    Failure::new(500, format!("the request has no {what}"))
}

/// The body's text without a byte order mark; `None` when there is nothing or `null` in it.
fn text(body: &[u8]) -> Result<Option<&str>, Failure> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(unreadable)?.trim_matches([' ', '\t', '\r', '\n']);
    Ok(Some(text).filter(|text| !text.is_empty() && *text != "null"))
}

/// Whether there is nothing in it, or `null`.
pub(crate) fn is_absent(body: &[u8]) -> bool {
    matches!(text(body), Ok(None))
}

type RawMembers<'a> = BTreeMap<String, &'a RawValue>;

fn members(text: &str) -> Result<RawMembers<'_>, Failure> {
    serde_json::from_str(text).map_err(unreadable)
}

/// A member as text, in the way of Java's JSON library.
fn string(name: &str, raw: &RawValue) -> Result<Option<String>, Failure> {
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw).map(Some).map_err(unreadable),
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') => Err(unreadable(format_args!("`{name}` is no text"))),
        _ => Ok(Some(raw.to_owned())),
    }
}

fn config(raw: RawMembers<'_>) -> Result<ConfigMap, Failure> {
    raw.into_iter().map(|(name, raw)| string(&name, raw).map(|value| (name, value))).collect()
}

/// A connector's configuration.
///
/// # Errors
/// 500, as in Java.
pub(crate) fn config_map(body: &[u8]) -> Result<ConfigMap, Failure> {
    config(members(text(body)?.ok_or_else(|| missing("configuration"))?)?)
}

/// Task configurations.
///
/// # Errors
/// 500, as in Java.
pub(crate) fn config_maps(body: &[u8]) -> Result<Vec<ConfigMap>, Failure> {
    // Java reads this body itself, so that an empty one is an error of its own; `null` is let through and fails later, at the signature.
    let Some(text) = text(body)? else {
        return if body.is_empty() { Err(missing("task configurations")) } else { Ok(Vec::new()) };
    };
    let list: Vec<RawMembers<'_>> = serde_json::from_str(text).map_err(unreadable)?;
    list.into_iter().map(config).collect()
}

/// The body of `POST /connectors`. The configuration's `name` is filled in.
///
/// # Errors
/// 500 as in Java; 400 when `config.name` is another name.
pub(crate) fn create_request(body: &[u8]) -> Result<CreateRequest, Failure> {
    let mut members = members(text(body)?.ok_or_else(|| missing("body"))?)?;
    let name = members.remove("name").map(|raw| string("name", raw)).transpose()?.flatten();
    let state = members.remove("initial_state").map(|raw| string("initial_state", raw)).transpose()?.flatten();
    let initial_state = match state {
        Some(state) => Some(InitialState::from_name(&state).ok_or_else(|| {
            unreadable(format_args!("initial_state is '{state}'; it can be RUNNING, PAUSED or STOPPED"))
        })?),
        None => None,
    };
    let raw_config = members.remove("config");
    if let Some(unknown) = members.keys().next() {
        return Err(unreadable(format_args!(
            "`{unknown}` is no member of it; there are name, config and initial_state"
        )));
    }
    let config = config_map(raw_config.map_or("", RawValue::get).as_bytes())?;
    let name = trim(&name.unwrap_or_default()).to_owned();
    let config = named(config, &name)?;
    Ok(CreateRequest { name, config, initial_state })
}

/// Java's `String.trim`: everything up to the blank.
fn trim(name: &str) -> &str {
    name.trim_matches(|character: char| character <= ' ')
}

/// Fills the name into a configuration.
///
/// # Errors
/// 400 when it holds another one.
pub(crate) fn named(mut config: ConfigMap, name: &str) -> Result<ConfigMap, Failure> {
    match config.get("name") {
        Some(Some(other)) if other != name => Err(Failure::new(
            400,
            format!("Connector name configuration ({other}) doesn't match connector name in the URL ({name})"),
        )),
        _ => {
            config.insert("name".to_owned(), Some(name.to_owned()));
            Ok(config)
        }
    }
}

/// The body of `PATCH …/config`. Java lets it change the configuration's name, which leaves a connector that contradicts itself.
///
/// # Errors
/// 400 when it changes or removes the name; else 500, as in Java.
pub(crate) fn patch(body: &[u8], name: &str) -> Result<ConfigMap, Failure> {
    let patch = config_map(body)?;
    match patch.get("name") {
        Some(None) => Err(Failure::new(400, format!("The name of connector {name} cannot be removed"))),
        Some(Some(_)) => named(patch, name),
        None => Ok(patch),
    }
}

/// The body of `PATCH …/offsets`.
///
/// # Errors
/// 400 when it holds no offsets; else 500, as in Java.
pub(crate) fn offsets(body: &[u8]) -> Result<Vec<OffsetEntry>, Failure> {
    let nothing = || Failure::new(400, "Partitions / offsets need to be provided for an alter offsets request");
    let value: Value = serde_json::from_str(text(body)?.ok_or_else(|| missing("body"))?).map_err(unreadable)?;
    let Value::Object(mut members) = value else { return Err(unreadable("it is no object")) };
    let list = match members.remove("offsets") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(unreadable("`offsets` is no array")),
    };
    if let Some(unknown) = members.keys().next() {
        return Err(unreadable(format_args!("`{unknown}` is no member of it; there is offsets")));
    }
    if list.is_empty() {
        return Err(nothing());
    }
    list.into_iter().map(offset_entry).collect()
}

fn offset_entry(value: Value) -> Result<OffsetEntry, Failure> {
    let Value::Object(mut members) = value else { return Err(unreadable("an element of `offsets` is no object")) };
    let mut part = |name: &str| match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => Err(unreadable(format_args!("`{name}` is no object"))),
    };
    let entry = OffsetEntry { partition: part("partition")?, offset: part("offset")? };
    match members.keys().next() {
        Some(unknown) => {
            Err(unreadable(format_args!("`{unknown}` is no member of an offset; there are partition and offset")))
        }
        None => Ok(entry),
    }
}

/// The level in the body of `PUT /admin/loggers/{logger}`.
///
/// # Errors
/// 400 without a level; 500 when it cannot be read, as in Java.
pub(crate) fn logger_level(body: &[u8]) -> Result<String, Failure> {
    let mut config = config_map(body)?;
    config
        .remove("level")
        .flatten()
        .ok_or_else(|| Failure::new(400, "Desired 'level' parameter was not specified in request."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(result: Result<CreateRequest, Failure>) -> u16 {
        result.map_or_else(|failure| failure.code, |_| 0)
    }

    #[test]
    fn numbers_and_booleans_become_the_text_that_was_written() {
        let config =
            config_map(br#"{"a":1e3,"b":true,"c":null,"d":12345678901234567890123,"e":"x"}"#).expect("readable");
        let text = |name: &str| config[name].as_deref();
        assert_eq!((text("a"), text("b"), text("c")), (Some("1e3"), Some("true"), None));
        assert_eq!((text("d"), text("e")), (Some("12345678901234567890123"), Some("x")));
    }

    #[test]
    fn a_name_is_trimmed_and_filled_in() {
        let request = create_request(b"\xef\xbb\xbf{\"name\":\" a b\\t\",\"config\":{},\"initial_state\":\"paused\"}")
            .expect("readable");
        assert_eq!(request.name, "a b");
        assert_eq!(request.config["name"].as_deref(), Some("a b"));
        assert_eq!(request.initial_state, Some(InitialState::Paused));
    }

    #[test]
    fn wrong_bodies_fail_with_javas_codes() {
        for body in [
            "",
            "null",
            "{",
            "[]",
            "1",
            "{\"nope\":1}",
            "{\"name\":\"x\"}",
            "{\"name\":{},\"config\":{}}",
            "{\"name\":\"x\",\"config\":{}} x",
        ] {
            assert_eq!(codes(create_request(body.as_bytes())), 500, "{body}");
        }
        assert_eq!(codes(create_request(br#"{"name":"x","config":{"name":"y"}}"#)), 400);
        assert_eq!(codes(create_request(br#"{"config":{}}"#)), 0);
        assert_eq!(codes(create_request(br#"{"name":"x","name":"y","config":{}}"#)), 0);
    }

    #[test]
    fn a_patch_leaves_the_name_alone() {
        assert!(patch(br#"{"a":null}"#, "x").is_ok_and(|patch| !patch.contains_key("name")));
        assert!(patch(br#"{"name":"x"}"#, "x").is_ok());
        assert_eq!(patch(br#"{"name":"y"}"#, "x").expect_err("another").code, 400);
        assert_eq!(patch(br#"{"name":null}"#, "x").expect_err("none").code, 400);
    }

    #[test]
    fn offsets_without_entries_are_refused_and_null_is_kept() {
        for body in ["{}", r#"{"offsets":[]}"#, r#"{"offsets":null}"#] {
            assert_eq!(offsets(body.as_bytes()).expect_err("empty").code, 400);
        }
        let entries = offsets(br#"{"offsets":[{"partition":{"f":1},"offset":null},{}]}"#).expect("readable");
        assert_eq!(entries[0].offset, None);
        assert_eq!(entries[1], OffsetEntry { partition: None, offset: None });
        assert_eq!(offsets(br#"{"offsets":[{"x":1}]}"#).expect_err("unknown member").code, 500);
    }

    #[test]
    fn no_bytes_make_a_reader_panic() {
        // Pieces of JSON in every order that a linear congruential generator comes up with; the seed is the loop's number.
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            "\"name\":",
            "\"config\":",
            "\"offsets\":",
            "\"a\"",
            "null",
            "1e9",
            ",",
            "\\u",
            "\u{feff}",
            "\"",
            " ",
        ];
        for seed in 0_u64..2_000 {
            let mut state = seed;
            let mut text = String::new();
            for _ in 0..seed % 24 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[usize::try_from(state >> 33).expect("31 bits") % pieces.len()]);
            }
            let mut bytes = text.into_bytes();
            if seed % 5 == 0 {
                bytes.push(0xff);
            }
            drop((
                create_request(&bytes),
                config_maps(&bytes),
                offsets(&bytes),
                logger_level(&bytes),
                patch(&bytes, "x"),
            ));
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        assert_eq!(codes(create_request("[".repeat(100_000).as_bytes())), 500);
        let deep = format!("{{\"name\":\"x\",\"config\":{}1{}}}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
        assert_eq!(codes(create_request(deep.as_bytes())), 500);
    }
}
