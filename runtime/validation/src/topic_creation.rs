//! What is wrong with `topic.creation.*` (KIP-158).
//!
//! Java looks at these properties only when a task starts, and fails it then; here an error is named before, in an entry of its own. What
//! Java accepts is accepted, and then not listed, as in Java.

use oncewire_api::config_def::{CheckedValue, ConfigValue, NullableProperties};
use regex::Regex;

use crate::infos::ConfigInfo;

const PREFIX: &str = "topic.creation.";
const DEFAULT: &str = "default";
/// More groups are not looked at.
const GROUPS_MAX: usize = 1000;

/// One entry for each property with an error.
pub(crate) fn topic_creation_infos(config: &NullableProperties) -> Vec<ConfigInfo> {
    if !config.iter().any(|(key, value)| key.starts_with(PREFIX) && value.is_some()) {
        return Vec::new();
    }
    let mut infos = Vec::new();
    let listed = config.get("topic.creation.groups").and_then(Option::as_deref).unwrap_or_default();
    let named = listed.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != DEFAULT);
    for group in std::iter::once(DEFAULT).chain(named).take(GROUPS_MAX) {
        let counts = [("replication.factor", i64::from(i16::MAX), "SHORT"), ("partitions", i64::from(i32::MAX), "INT")];
        for (what, max, kind) in counts {
            let key = format!("{PREFIX}{group}.{what}");
            let given = config.get(&key).and_then(Option::as_deref);
            infos.extend(count_error(&key, given, group == DEFAULT, max, kind).map(|error| info(&key, given, error)));
        }
        for what in ["include", "exclude"].into_iter().filter(|_| group != DEFAULT) {
            let key = format!("{PREFIX}{group}.{what}");
            let given = config.get(&key).and_then(Option::as_deref);
            infos.extend(given.and_then(|text| pattern_error(&key, text)).map(|error| info(&key, given, error)));
        }
    }
    infos
}

fn info(key: &str, given: Option<&str>, error: String) -> ConfigInfo {
    let value = given.map_or(ConfigValue::Null, |text| ConfigValue::Text(text.into()));
    let value = CheckedValue { value, errors: vec![error], ..CheckedValue::new(key) };
    ConfigInfo { definition: None, value: Some(value) }
}

fn count_error(key: &str, given: Option<&str>, is_required: bool, max: i64, kind: &str) -> Option<String> {
    let Some(given) = given else {
        return is_required.then(|| {
            format!(
                "Missing required configuration \"{key}\" which has no default value: it must be set once any topic.creation.* is; \
                 -1 stands for the broker's default"
            )
        });
    };
    let invalid = |why: &str| Some(format!("Invalid value {given} for configuration {key}: {why}"));
    match given.trim().parse::<i64>() {
        Ok(count) if count > max || count < -max => invalid(&format!("Not a number of type {kind}")),
        Ok(count) if count == -1 || count > 0 => None,
        Ok(_) => invalid("it must be 1 or more, or -1 for the broker's default"),
        Err(_) => invalid(&format!("Not a number of type {kind}")),
    }
}

fn pattern_error(key: &str, list: &str) -> Option<String> {
    let wrong = |text: &&str| Regex::new(&format!("^(?:{text})$")).is_err();
    let text = list.split(',').map(str::trim).filter(|text| !text.is_empty()).find(wrong)?;
    Some(format!(
        "Invalid value {list} for configuration {key}: '{text}' is no regular expression that can be used here"
    ))
}
