//! `oncewire check-acls`: what has to be granted on a cluster with ACLs, as commands for kafka-acls.

use crate::exit::{Exit, Stop};
use clap::Args;
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
    let usage = |error: &dyn std::fmt::Display| Stop::usage(error.to_string());
    let worker = read_properties(&args.worker).map_err(|error| usage(&error))?;
    let mut connectors = BTreeMap::new();
    for path in &args.connectors {
        let file = read_connector(path).map_err(|error| usage(&error))?;
        connectors.insert(file.name, file.config);
    }
    let bootstrap = worker.get("bootstrap.servers").map_or("localhost:9092", String::as_str);
    let mut out = std::io::stdout().lock();
    let principal = args.principal.as_deref().unwrap_or("User:connect");
    for need in required_acls(&worker, &connectors) {
        let hint = if args.principal.is_some() { String::new() } else { format!(" ({})", need.principal_hint) };
        let line = format!("# {}{hint}\n{}", need.why, need.command(bootstrap, principal));
        // A reader that has seen enough (`| head`) is no failure.
        let _ = writeln!(out, "{line}");
    }
    Ok(Exit::Done)
}
