//! `/connectors/{name}` and what is below it, apart from tasks and offsets.

use serde_json::json;

use crate::body;
use crate::call::{Call, Problem, Reply, anywhere, here};
use crate::error::Failure;
use crate::herder::Replace;
use crate::model::RestartRequest;
use crate::route::OfConnector;

pub(super) async fn any(call: &Call, name: &str, resource: OfConnector) -> Result<Reply, Problem> {
    let herder = &call.herder;
    match (resource, call.method.as_str()) {
        (OfConnector::Itself, "DELETE") => {
            herder.delete_connector(name).await.map_err(anywhere)?;
            Ok(Reply::empty(204))
        }
        (OfConnector::Config, "PUT") => put_config(call, name).await,
        (OfConnector::Config, "PATCH") => patch_config(call, name).await,
        (OfConnector::Config, _) => Ok(Reply::json(200, &herder.connector_config(name).await.map_err(here)?)),
        (OfConnector::Status, _) => {
            let states = herder.connector_status(name).await.map_err(here)?;
            Ok(Reply::json(200, &call.masked_states(states)))
        }
        (OfConnector::Restart, _) => restart(call, name).await,
        (OfConnector::Pause, _) => {
            herder.pause_connector(name).await.map_err(here)?;
            Ok(Reply::empty(202))
        }
        (OfConnector::Resume, _) => {
            herder.resume_connector(name).await.map_err(here)?;
            Ok(Reply::empty(202))
        }
        (OfConnector::Stop, _) => {
            herder.stop_connector(name).await.map_err(anywhere)?;
            Ok(Reply::empty(204))
        }
        (OfConnector::Topics, _) => topics(call, name).await,
        (OfConnector::TopicsReset, _) => reset_topics(call, name).await,
        _ => Ok(Reply::json(200, &herder.connector_info(name).await.map_err(here)?)),
    }
}

async fn put_config(call: &Call, name: &str) -> Result<Reply, Problem> {
    let config = body::named(body::config_map(&call.body)?, name)?;
    let put = call.herder.put_connector_config(name, config, None, Replace::Allowed).await.map_err(anywhere)?;
    if put.created {
        return Ok(Reply::json(201, &put.connector).located(&call.base, name));
    }
    Ok(Reply::json(200, &put.connector))
}

async fn patch_config(call: &Call, name: &str) -> Result<Reply, Problem> {
    if body::is_absent(&call.body) {
        // As in Java, a connector that is not there is missed before the patch is.
        call.herder.connector_config(name).await.map_err(here)?;
    }
    let patch = body::patch(&call.body, name)?;
    let info = call.herder.patch_connector_config(name, patch).await.map_err(anywhere)?;
    Ok(Reply::json(200, &info))
}

async fn restart(call: &Call, name: &str) -> Result<Reply, Problem> {
    let request = RestartRequest {
        connector: name.to_owned(),
        only_failed: call.query.flag("onlyFailed").unwrap_or(false),
        include_tasks: call.query.flag("includeTasks").unwrap_or(false),
    };
    if !request.only_failed && !request.include_tasks {
        call.herder.restart_connector(name).await.map_err(anywhere)?;
        return Ok(Reply::empty(204));
    }
    let plan = call.herder.restart_connector_and_tasks(request).await.map_err(anywhere)?;
    Ok(Reply::json(202, &call.masked_states(plan)))
}

async fn topics(call: &Call, name: &str) -> Result<Reply, Problem> {
    if !call.config.topic_tracking {
        return Err(Failure::new(403, "Topic tracking is disabled.").into());
    }
    let topics = call.herder.connector_topics(name).await.map_err(here)?;
    Ok(Reply::json(200, &json!({ name: { "topics": topics } })))
}

async fn reset_topics(call: &Call, name: &str) -> Result<Reply, Problem> {
    if !call.config.topic_tracking {
        return Err(Failure::new(403, "Topic tracking is disabled.").into());
    }
    if !call.config.topic_tracking_reset {
        return Err(Failure::new(403, "Topic tracking reset is disabled.").into());
    }
    call.herder.reset_connector_topics(name).await.map_err(here)?;
    Ok(Reply::empty(202))
}
