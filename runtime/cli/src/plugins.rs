//! `oncewire plugins`: what can stand in `connector.class` and in the converter properties.

use crate::exit::{Exit, Stop};
use crate::registry::registry;
use clap::Args;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use std::io::Write;

/// How wide the table of a plug-in's properties is: each has a sentence or two, which would not fit a terminal in one line.
const COLUMNS: u16 = 100;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  oncewire plugins\n  oncewire plugins FileStreamSource     the properties of one plug-in\n  oncewire plugins --json"
)]
pub(crate) struct PluginsArgs {
    /// Show the properties of this one (class name or alias)
    plugin: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &PluginsArgs) -> Result<Exit, Stop> {
    let registry = registry();
    let text = match &args.plugin {
        None if args.json => listing_json(&registry),
        None => listing(&registry),
        Some(name) => properties(&registry, name, args.json)?,
    };
    // A reader that has seen enough (`| head`) is no failure.
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(Exit::Done)
}

fn listing(registry: &oncewire_api::plugin::PluginRegistry) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["kind", "alias", "class", "what it does"]);
    for plugin in registry.plugins() {
        let alias = plugin.aliases().pop().unwrap_or(plugin.class);
        table.add_row([plugin.kind().name(), alias, plugin.class, plugin.summary]);
    }
    table.to_string()
}

fn listing_json(registry: &oncewire_api::plugin::PluginRegistry) -> String {
    let all: Vec<serde_json::Value> = registry
        .plugins()
        .iter()
        .map(|plugin| {
            serde_json::json!({
                "class": plugin.class, "type": plugin.kind().name(), "version": plugin.version, "aliases": plugin.aliases(),
                "summary": plugin.summary,
            })
        })
        .collect();
    format!("{:#}", serde_json::Value::Array(all))
}

fn properties(registry: &oncewire_api::plugin::PluginRegistry, name: &str, json: bool) -> Result<String, Stop> {
    let plugin = registry
        .plugins()
        .iter()
        .find(|plugin| plugin.class == name || plugin.aliases().contains(&name))
        .ok_or_else(|| Stop::usage(format!("no plug-in is named {name:?}; `oncewire plugins` lists them")))?;
    let def = plugin.config_def();
    if json {
        let keys: Vec<serde_json::Value> = def
            .keys()
            .iter()
            .map(|key| {
                serde_json::json!({
                    "name": key.name, "type": key.config_type.name(), "default": key.default_text(), "allowed": key.allowed(),
                    "importance": key.importance.name(), "documentation": key.doc,
                })
            })
            .collect();
        return Ok(format!("{:#}", serde_json::Value::Array(keys)));
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["property", "default", "allowed", "meaning"]);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    for key in def.keys() {
        table.add_row([key.name.clone(), key.default_text(), key.allowed(), key.doc.clone()]);
    }
    Ok(format!("{} {} ({})\n{}\n{table}", plugin.class, plugin.version, plugin.kind(), plugin.summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_of_every_plug_in_fit_a_terminal() {
        let registry = registry();
        for plugin in registry.plugins() {
            let text = properties(&registry, plugin.class, false).unwrap();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(COLUMNS), "{widest} columns:\n{text}");
        }
    }
}
