//! One file per resource. Each turns a call into questions to the herder, and its answers into a reply.

mod connector;
mod connectors;
mod internal;
mod loggers;
mod offsets;
mod plugins;
mod root;
mod tasks;
mod worker;

use crate::call::{Call, Problem, Reply};
use crate::route::{OfConnector, Route};

pub(crate) use root::{OPENAPI, starting};

/// Whether the method of this resource reads the body.
pub(crate) fn takes_body(route: &Route, method: &str) -> bool {
    match route {
        Route::Connectors => method == "POST",
        Route::Connector(_, OfConnector::Config) => matches!(method, "PUT" | "PATCH"),
        Route::Connector(_, OfConnector::Offsets) => method == "PATCH",
        Route::Connector(_, OfConnector::Tasks) => method == "POST",
        Route::Validate(_) => true,
        Route::Logger(_) => method == "PUT",
        _ => false,
    }
}

/// Sends a call to its resource. The method is one that the route takes.
pub(crate) async fn dispatch(route: &Route, call: &Call) -> Result<Reply, Problem> {
    match route {
        Route::Root => Ok(root::info(call)),
        Route::Health => Ok(root::health(call).await),
        Route::OpenApi => Ok(root::openapi()),
        Route::Drain => worker::drain(call).await,
        Route::Connectors if call.method == "POST" => connectors::create(call).await,
        Route::Connectors => connectors::list(call).await,
        Route::Connector(name, OfConnector::TaskStatus(task)) => tasks::status(call, name, *task).await,
        Route::Connector(name, OfConnector::TaskRestart(task)) => tasks::restart(call, name, *task).await,
        Route::Connector(name, OfConnector::Tasks) if call.method == "POST" => internal::put_tasks(call, name).await,
        Route::Connector(name, OfConnector::Tasks) => tasks::list(call, name).await,
        Route::Connector(name, OfConnector::Fence) => internal::fence(call, name).await,
        Route::Connector(name, OfConnector::Offsets) => offsets::any(call, name).await,
        Route::Connector(name, resource) => connector::any(call, name, *resource).await,
        Route::Plugins => plugins::list(call).await,
        Route::PluginConfig(plugin) => plugins::config(call, plugin).await,
        Route::Validate(plugin) => plugins::validate(call, plugin).await,
        Route::Loggers => loggers::list(call).await,
        Route::Logger(name) if call.method == "PUT" => loggers::set(call, name).await,
        Route::Logger(name) => loggers::one(call, name).await,
    }
}
