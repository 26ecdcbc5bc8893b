//! `oncewire check-acls`: what has to be granted on a cluster with ACLs, as commands for kafka-acls.

use crate::exit::{Exit, Stop};
use clap::Args;
use oncewire_plugins::providers::ConfigProviders;
use oncewire_validation::required_acls;
use oncewire_worker::config::properties::{read_connector, read_properties};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  oncewire check-acls worker.properties\n  \
    oncewire check-acls worker.properties file-source.json --principal User:connect")]
pub(crate) struct CheckAclsArgs {
    /// The worker's properties, as for `oncewire distributed`
    worker: PathBuf,
    /// Connectors that are to run
    connectors: Vec<PathBuf>,
    /// Whom to grant it to; without it the credentials in the properties say
    #[arg(long)]
    principal: Option<String>,
}

pub(crate) fn run(args: &CheckAclsArgs) -> Result<Exit, Stop> {
    let mut out = std::io::stdout().lock();
    for line in commands(args)? {
        // A reader that has seen enough (`| head`) is no failure.
        let _ = writeln!(out, "{line}");
    }
    Ok(Exit::Done)
}

/// What is printed, from the properties with their providers' references resolved: names of topics and credentials may be references.
fn commands(args: &CheckAclsArgs) -> Result<Vec<String>, Stop> {
    let usage = |error: &dyn std::fmt::Display| Stop::usage(error.to_string());
    let raw = read_properties(&args.worker).map_err(|error| usage(&error))?;
    let providers = ConfigProviders::from_worker(&raw).map_err(|error| usage(&error))?;
    let worker = providers.resolve_worker(&raw).map_err(|error| usage(&error))?;
    let mut connectors = BTreeMap::new();
    for path in &args.connectors {
        let file = read_connector(path).map_err(|error| usage(&error))?;
        let config = file.config.into_iter().map(|(key, value)| (key, Some(value))).collect();
        let config = providers.resolve(&config).map_err(|error| usage(&format!("{}: {error}", path.display())))?;
        connectors.insert(file.name, config);
    }
    let bootstrap = worker.get("bootstrap.servers").map_or("localhost:9092", String::as_str);
    let principal = args.principal.as_deref().unwrap_or("User:connect");
    let needs = required_acls(&worker, &connectors).into_iter();
    let lines = needs.map(|need| {
        let hint = if args.principal.is_some() { String::new() } else { format!(" ({})", need.principal_hint) };
        format!("# {}{hint}\n{}", need.why, need.command(bootstrap, principal))
    });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_config_providers_are_resolved_in_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let secrets = write("secrets.properties", "offsets=the-offsets\ntopic=the-lines\n");
        let reference = |key: &str| format!("${{file:{}:{key}}}", secrets.display());
        let class = "org.apache.kafka.common.config.provider.FileConfigProvider";
        let worker = write(
            "worker.properties",
            &format!(
                "bootstrap.servers=h:1\ngroup.id=g\nconfig.storage.topic=c\nstatus.storage.topic=s\noffset.storage.topic={}\n\
                 config.providers=file\nconfig.providers.file.class={class}\n",
                reference("offsets")
            ),
        );
        let connector = write(
            "c.properties",
            &format!("name=lines\nconnector.class=FileStreamSource\nfile=/tmp/x\ntopic={}\n", reference("topic")),
        );
        let args = |connector| CheckAclsArgs { worker: worker.clone(), connectors: vec![connector], principal: None };
        let lines = commands(&args(connector)).map_err(|_| "refused").unwrap().join("\n");
        assert!(lines.contains("the-offsets") && lines.contains("the-lines"), "{lines}");
        assert!(!lines.contains("${file"), "{lines}");
        let broken = write("d.properties", "name=d\ntopic=${file:/nowhere:x}\n");
        assert!(commands(&args(broken)).is_err());
    }
}
