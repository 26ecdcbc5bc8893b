//! From a request's path to the resource it means. Pure.
//!
//! A path is split at its raw slashes and each segment decoded once, so that a connector's name may hold every character: `a%2Fb` is one segment.
//! A trailing slash and matrix parameters (`;x=y`) are ignored, as Java's JAX-RS does. Dot segments are names like any other.

use crate::path::{PathError, segments};

/// A resource, with what its path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`
    Root,
    /// `/health`
    Health,
    /// `/openapi.json`
    OpenApi,
    /// `/worker/drain`
    Drain,
    /// `/connectors`
    Connectors,
    /// Below `/connectors/{name}`.
    Connector(String, OfConnector),
    /// `/connector-plugins`
    Plugins,
    /// `/connector-plugins/{plugin}/config`
    PluginConfig(String),
    /// `/connector-plugins/{plugin}/config/validate`
    Validate(String),
    /// `/admin/loggers`
    Loggers,
    /// `/admin/loggers/{logger}`
    Logger(String),
}

/// A resource of one connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfConnector {
    /// `/connectors/{name}`
    Itself,
    /// `…/config`
    Config,
    /// `…/status`
    Status,
    /// `…/tasks`
    Tasks,
    /// `…/tasks/{task}/status`
    TaskStatus(i32),
    /// `…/tasks/{task}/restart`
    TaskRestart(i32),
    /// `…/restart`
    Restart,
    /// `…/pause`
    Pause,
    /// `…/resume`
    Resume,
    /// `…/stop`
    Stop,
    /// `…/topics`
    Topics,
    /// `…/topics/reset`
    TopicsReset,
    /// `…/offsets`
    Offsets,
    /// `…/fence`
    Fence,
}

/// Why a path names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// 404.
    NotFound,
    /// 400.
    Malformed(PathError),
}

/// Every path as the OpenAPI document writes it, with the methods that it takes. `HEAD` goes with `GET`; `OPTIONS` is answered everywhere.
pub(crate) const TABLE: &[(&str, &[&str])] = &[
    ("/", &["GET"]),
    ("/health", &["GET"]),
    ("/openapi.json", &["GET"]),
    ("/worker/drain", &["POST"]),
    ("/connectors", &["GET", "POST"]),
    ("/connectors/{connector}", &["GET", "DELETE"]),
    ("/connectors/{connector}/config", &["GET", "PUT", "PATCH"]),
    ("/connectors/{connector}/status", &["GET"]),
    ("/connectors/{connector}/tasks", &["GET", "POST"]),
    ("/connectors/{connector}/tasks/{task}/status", &["GET"]),
    ("/connectors/{connector}/tasks/{task}/restart", &["POST"]),
    ("/connectors/{connector}/restart", &["POST"]),
    ("/connectors/{connector}/pause", &["PUT"]),
    ("/connectors/{connector}/resume", &["PUT"]),
    ("/connectors/{connector}/stop", &["PUT"]),
    ("/connectors/{connector}/topics", &["GET"]),
    ("/connectors/{connector}/topics/reset", &["PUT"]),
    ("/connectors/{connector}/offsets", &["GET", "PATCH", "DELETE"]),
    ("/connectors/{connector}/fence", &["PUT"]),
    ("/connector-plugins", &["GET"]),
    ("/connector-plugins/{plugin}/config", &["GET"]),
    ("/connector-plugins/{plugin}/config/validate", &["PUT"]),
    ("/admin/loggers", &["GET"]),
    ("/admin/loggers/{logger}", &["GET", "PUT"]),
];

impl Route {
    /// Finds the resource of a raw path (without its query).
    ///
    /// # Errors
    /// No resource has that path, or it cannot be read.
    pub(crate) fn of(path: &str) -> Result<Self, NoRoute> {
        let segments = segments(path).map_err(NoRoute::Malformed)?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments[..] {
            [] => Ok(Route::Root),
            ["health"] => Ok(Route::Health),
            ["openapi.json"] => Ok(Route::OpenApi),
            ["worker", "drain"] => Ok(Route::Drain),
            ["connectors"] => Ok(Route::Connectors),
            ["connectors", name, ref rest @ ..] => {
                of_connector(rest).map(|resource| Route::Connector(name.to_owned(), resource)).ok_or(NoRoute::NotFound)
            }
            ["connector-plugins"] => Ok(Route::Plugins),
            ["connector-plugins", plugin, "config"] => Ok(Route::PluginConfig(plugin.to_owned())),
            ["connector-plugins", plugin, "config", "validate"] => Ok(Route::Validate(plugin.to_owned())),
            ["admin", "loggers"] => Ok(Route::Loggers),
            ["admin", "loggers", logger] => Ok(Route::Logger(logger.to_owned())),
            _ => Err(NoRoute::NotFound),
        }
    }

    /// The path of [`TABLE`] that it is.
    pub(crate) fn template(&self) -> &'static str {
        match self {
            Route::Root => "/",
            Route::Health => "/health",
            Route::OpenApi => "/openapi.json",
            Route::Drain => "/worker/drain",
            Route::Connectors => "/connectors",
            Route::Connector(_, resource) => resource.template(),
            Route::Plugins => "/connector-plugins",
            Route::PluginConfig(_) => "/connector-plugins/{plugin}/config",
            Route::Validate(_) => "/connector-plugins/{plugin}/config/validate",
            Route::Loggers => "/admin/loggers",
            Route::Logger(_) => "/admin/loggers/{logger}",
        }
    }

    /// The methods that it takes, without `HEAD` and `OPTIONS`.
    pub(crate) fn methods(&self) -> &'static [&'static str] {
        let template = self.template();
        TABLE.iter().find(|(path, _)| *path == template).map_or(&[], |(_, methods)| methods)
    }

    /// What `Allow` says, in the order of Java's worker, whose `OPTIONS` shows it as the body.
    pub(crate) fn allow(&self) -> String {
        let methods = self.methods();
        let allowed = |method: &&str| match *method {
            "HEAD" => methods.contains(&"GET"),
            "OPTIONS" => true,
            method => methods.contains(&method),
        };
        let all = ["HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT", "PATCH"];
        all.into_iter().filter(allowed).collect::<Vec<_>>().join(", ")
    }

    /// Whether it belongs to the admin listeners.
    pub(crate) fn is_admin(&self) -> bool {
        matches!(self, Route::Loggers | Route::Logger(_))
    }
}

impl OfConnector {
    fn template(self) -> &'static str {
        match self {
            OfConnector::Itself => "/connectors/{connector}",
            OfConnector::Config => "/connectors/{connector}/config",
            OfConnector::Status => "/connectors/{connector}/status",
            OfConnector::Tasks => "/connectors/{connector}/tasks",
            OfConnector::TaskStatus(_) => "/connectors/{connector}/tasks/{task}/status",
            OfConnector::TaskRestart(_) => "/connectors/{connector}/tasks/{task}/restart",
            OfConnector::Restart => "/connectors/{connector}/restart",
            OfConnector::Pause => "/connectors/{connector}/pause",
            OfConnector::Resume => "/connectors/{connector}/resume",
            OfConnector::Stop => "/connectors/{connector}/stop",
            OfConnector::Topics => "/connectors/{connector}/topics",
            OfConnector::TopicsReset => "/connectors/{connector}/topics/reset",
            OfConnector::Offsets => "/connectors/{connector}/offsets",
            OfConnector::Fence => "/connectors/{connector}/fence",
        }
    }
}

fn of_connector(rest: &[&str]) -> Option<OfConnector> {
    Some(match rest {
        [] => OfConnector::Itself,
        ["config"] => OfConnector::Config,
        ["status"] => OfConnector::Status,
        ["tasks"] => OfConnector::Tasks,
        ["tasks", task, "status"] => OfConnector::TaskStatus(task.parse().ok()?),
        ["tasks", task, "restart"] => OfConnector::TaskRestart(task.parse().ok()?),
        ["restart"] => OfConnector::Restart,
        ["pause"] => OfConnector::Pause,
        ["resume"] => OfConnector::Resume,
        ["stop"] => OfConnector::Stop,
        ["topics"] => OfConnector::Topics,
        ["topics", "reset"] => OfConnector::TopicsReset,
        ["offsets"] => OfConnector::Offsets,
        ["fence"] => OfConnector::Fence,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_the_table_is_found_and_knows_itself() {
        for (template, methods) in TABLE {
            let path = template.replace("{task}", "7").replace(['{', '}'], "");
            let route = Route::of(&path).expect(template);
            assert_eq!(route.template(), *template);
            assert_eq!(route.methods(), *methods);
        }
    }

    #[test]
    fn the_openapi_document_has_every_route() {
        let document: serde_json::Value = serde_json::from_str(crate::resources::OPENAPI).expect("JSON");
        let described: Vec<_> = document["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
        let known: Vec<_> = TABLE.iter().map(|(path, _)| *path).collect();
        assert_eq!(described, known);
    }

    #[test]
    fn a_name_may_hold_every_character() {
        for (segment, name) in
            [("a%2Fb", "a/b"), ("a%252Fb", "a%2Fb"), ("a+b", "a+b"), ("..", ".."), ("%2e%2e", ".."), ("a%3Bb", "a;b")]
        {
            let expected = Route::Connector(name.to_owned(), OfConnector::Status);
            assert_eq!(Route::of(&format!("/connectors/{segment}/status")), Ok(expected));
        }
    }

    #[test]
    fn trailing_slashes_and_matrix_parameters_are_ignored() {
        assert_eq!(Route::of("/connectors/"), Ok(Route::Connectors));
        assert_eq!(Route::of("/connectors;a=b"), Ok(Route::Connectors));
        assert_eq!(Route::of("/connectors/a;v=1/status/"), Ok(Route::Connector("a".to_owned(), OfConnector::Status)));
    }

    #[test]
    fn a_task_is_an_int() {
        assert!(Route::of("/connectors/a/tasks/-1/status").is_ok());
        assert!(Route::of("/connectors/a/tasks/+1/status").is_ok());
        assert_eq!(Route::of("/connectors/a/tasks/x/status"), Err(NoRoute::NotFound));
        assert_eq!(Route::of("/connectors/a/tasks/99999999999/status"), Err(NoRoute::NotFound));
    }

    #[test]
    fn allow_tells_head_and_options_as_well() {
        assert_eq!(Route::Connectors.allow(), "HEAD, POST, GET, OPTIONS");
        assert_eq!(Route::Drain.allow(), "POST, OPTIONS");
    }
}
