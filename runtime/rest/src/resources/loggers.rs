//! `/admin/loggers` (KIP-495, KIP-976).

use serde_json::{Map, json};

use crate::body;
use crate::call::{Call, Problem, Reply, here};
use crate::error::Failure;
use crate::loggers::level;

pub(super) async fn list(call: &Call) -> Result<Reply, Problem> {
    let loggers = call.herder.loggers().await.map_err(here)?;
    let all: Map<_, _> = loggers.into_iter().map(|(name, level)| (name, json!(level))).collect();
    Ok(Reply::json(200, &all))
}

pub(super) async fn one(call: &Call, name: &str) -> Result<Reply, Problem> {
    match call.herder.logger(name).await.map_err(here)? {
        Some(level) => Ok(Reply::json(200, &level)),
        None => Err(Failure::new(404, format!("Logger {name} not found.")).into()),
    }
}

pub(super) async fn set(call: &Call, name: &str) -> Result<Reply, Problem> {
    let wanted = body::logger_level(&call.body)?;
    let level = level(&wanted).ok_or_else(|| Failure::new(404, format!("invalid log level '{wanted}'.")))?;
    if call.query.first("scope").is_some_and(|scope| scope.eq_ignore_ascii_case("cluster")) {
        call.herder.set_cluster_logger_level(name, level).await.map_err(here)?;
        return Ok(Reply::empty(204));
    }
    Ok(Reply::json(200, &call.herder.set_logger_level(name, level).await.map_err(here)?))
}
