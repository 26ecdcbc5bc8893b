//! `/connector-plugins`.

use crate::body;
use crate::call::{Call, Problem, Reply, here};
use crate::error::Failure;
use crate::herder::Plugins;

pub(super) async fn list(call: &Call) -> Result<Reply, Problem> {
    let which = if call.query.flag("connectorsOnly").unwrap_or(true) { Plugins::Connectors } else { Plugins::All };
    Ok(Reply::json(200, &call.herder.plugins(which).await.map_err(here)?))
}

pub(super) async fn config(call: &Call, plugin: &str) -> Result<Reply, Problem> {
    let version = call.query.first("version");
    Ok(Reply::json(200, &call.herder.plugin_config(plugin, version).await.map_err(here)?))
}

pub(super) async fn validate(call: &Call, plugin: &str) -> Result<Reply, Problem> {
    let config = body::config_map(&call.body)?;
    if let Some(Some(class)) = config.get("connector.class")
        && !names_the_same(class, plugin)
    {
        let message = format!("Included connector type {class} does not match request type {plugin}");
        return Err(Failure::new(400, message).into());
    }
    Ok(Reply::json(200, &call.herder.validate(config).await.map_err(here)?))
}

/// Whether the path may stand for the class: its end, each with or without `Connector`.
fn names_the_same(class: &str, plugin: &str) -> bool {
    plain(class).ends_with(plain(plugin))
}

fn plain(name: &str) -> &str {
    name.strip_suffix("Connector").filter(|rest| !rest.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::names_the_same;

    #[test]
    fn a_class_may_be_shortened_in_the_path_but_not_in_the_body() {
        let class = "org.apache.kafka.connect.file.FileStreamSourceConnector";
        for plugin in [class, "FileStreamSourceConnector", "FileStreamSource", "Source"] {
            assert!(names_the_same(class, plugin), "{plugin}");
        }
        assert!(!names_the_same(class, "FileStreamSink"));
        assert!(!names_the_same("FileStreamSource", class));
        assert!(names_the_same("Connector", "Connector"));
    }
}
