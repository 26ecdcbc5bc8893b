//! A worker's answer with everything taken out that differs from run to run: worker ids, ports, folders, versions, traces, times, documentation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::Response;

/// What is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The request's id.
    pub id: String,
    /// The status.
    pub code: u16,
    /// `Content-Type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// `Allow`, sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// `Location`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// A JSON value; text that is no JSON is a string; null when there is no body.
    pub body: Value,
}

/// What is particular to one run.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// The worker's `host:port`.
    pub address: &'a str,
    /// Those of the others of its group; they are written as its own is.
    pub others: &'a [&'a str],
    /// The folder that `${dir}` stands for.
    pub dir: &'a str,
}

impl Answer {
    /// Takes a response down to what can be compared.
    pub fn normal(id: &str, response: &Response, place: &Place<'_>) -> Self {
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let body = match serde_json::from_str(&text) {
            _ if text.is_empty() => Value::Null,
            Ok(value) => value,
            Err(_) => Value::String(text),
        };
        let allow = response.header("allow").map(|allow| {
            let mut methods: Vec<String> = allow.split(',').map(|method| method.trim().to_owned()).collect();
            methods.sort();
            methods
        });
        Answer {
            id: id.to_owned(),
            code: response.code,
            content_type: response.header("content-type").map(str::to_owned),
            allow,
            location: response.header("location").map(|location| plain(location, place)),
            body: normal(None, body, place),
        }
    }
}

fn plain(text: &str, place: &Place<'_>) -> String {
    // Java lists all plug-ins of its machine, with their folders.
    let text = match text.split_once("PluginDesc{") {
        Some((before, _)) => &format!("{before}${{plugins}}"),
        None => text,
    };
    let workers = place.others.iter().chain([&place.address]);
    workers.fold(text.to_owned(), |text, worker| text.replace(worker, "${worker}")).replace(place.dir, "${dir}")
}

/// Three numbers with dots between them.
fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

/// Members whose values are a run's own.
fn normal(member: Option<&str>, value: Value, place: &Place<'_>) -> Value {
    match (member, value) {
        (Some("version" | "commit"), Value::String(_)) => Value::from("${version}"),
        (Some("trace"), Value::String(_)) => Value::from("${trace}"),
        (Some("documentation"), Value::String(_)) => Value::from("${documentation}"),
        (Some("last_modified"), Value::Number(_)) => Value::from("${time}"),
        // The default of every `…plugin.version`.
        (Some("default_value" | "value"), Value::String(text)) if is_version(&text) => Value::from("${version}"),
        (Some("recommended_values"), Value::Array(list)) => {
            let one =
                |value: Value| if value.as_str().is_some_and(is_version) { Value::from("${version}") } else { value };
            list.into_iter().map(one).collect()
        }
        (_, Value::String(text)) => Value::from(plain(&text, place)),
        (member, Value::Array(list)) => {
            let mut list: Vec<Value> = list.into_iter().map(|value| normal(None, value, place)).collect();
            // Java takes them from hash maps.
            if member == Some("offsets") || list.iter().all(Value::is_string) {
                list.sort_by_cached_key(Value::to_string);
            }
            Value::from(list)
        }
        (_, Value::Object(map)) => {
            map.into_iter().map(|(name, value)| (name.clone(), normal(Some(&name), value, place))).collect()
        }
        (_, value) => value,
    }
}
