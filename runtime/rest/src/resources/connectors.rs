//! `/connectors`: the list, and creating.

use serde_json::{Map, Value};

use crate::body;
use crate::call::{Call, Problem, Reply, anywhere, here};
use crate::herder::{HerderError, Replace};

pub(super) async fn list(call: &Call) -> Result<Reply, Problem> {
    let names = call.herder.connectors().await.map_err(here)?;
    let mut expand: Vec<&str> = Vec::new();
    for wanted in call.query.all("expand") {
        if !expand.contains(&wanted) {
            expand.push(wanted);
        }
    }
    if expand.is_empty() {
        return Ok(Reply::json(200, &names));
    }
    let mut all = Map::new();
    for name in names {
        match expanded(call, &name, &expand).await {
            Ok(value) => {
                all.insert(name, value);
            }
            // It was deleted after the list was made.
            Err(HerderError::NotFound(_)) => {}
            Err(error) => return Err(here(error)),
        }
    }
    Ok(Reply::json(200, &all))
}

async fn expanded(call: &Call, name: &str, expand: &[&str]) -> Result<Value, HerderError> {
    let json =
        |value: Result<Value, serde_json::Error>| value.map_err(|error| HerderError::Internal(error.to_string()));
    let mut parts = Map::new();
    for wanted in expand {
        let part = match *wanted {
            "status" => json(serde_json::to_value(call.masked_states(call.herder.connector_status(name).await?)))?,
            "info" => json(serde_json::to_value(call.herder.connector_info(name).await?))?,
            _ => continue,
        };
        parts.insert((*wanted).to_owned(), part);
    }
    Ok(Value::Object(parts))
}

pub(super) async fn create(call: &Call) -> Result<Reply, Problem> {
    let request = body::create_request(&call.body)?;
    let put =
        call.herder.put_connector_config(&request.name, request.config, request.initial_state, Replace::Forbidden);
    let put = put.await.map_err(anywhere)?;
    Ok(Reply::json(201, &put.connector).located(&call.base, &request.name))
}
