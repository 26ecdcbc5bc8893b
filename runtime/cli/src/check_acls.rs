//! `oncewire check-acls`: what has to be granted on a cluster with ACLs, as commands for kafka-acls.

use crate::exit::{Exit, Stop};
use crate::worker_file::read_worker;
use clap::Args;
use oncewire_plugins::providers::ConfigProviders;
use oncewire_validation::{AclCommand, render_acls, required_acls};
use oncewire_worker::config::properties::read_connector;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  oncewire check-acls worker.properties\n  \
    oncewire check-acls worker.properties lines.json --principal User:connect\n  \
    oncewire check-acls worker.properties --command-config admin.properties | sh\n\n\
    The commands are for kafka-acls of a Kafka installation (kafka-acls.sh in\nApache's). No broker is asked.")]
pub(crate) struct CheckAclsArgs {
    /// The worker's properties, as for `oncewire distributed` or `standalone`
    worker: PathBuf,
    /// Connectors that are to run
    connectors: Vec<PathBuf>,
    /// Whom to grant everything to; without it the credentials in the properties say
    #[arg(long, value_name = "User:NAME")]
    principal: Option<String>,
    /// For the commands: the properties with which an administrator reaches the brokers
    #[arg(long, value_name = "FILE")]
    command_config: Option<String>,
}

pub(crate) fn run(args: &CheckAclsArgs) -> Result<Exit, Stop> {
    let principal = args.principal.as_deref().map(principal).transpose()?;
    if principal.as_deref() != args.principal.as_deref() {
        eprintln!("oncewire: --principal is taken as {}", principal.as_deref().unwrap_or_default());
    }
    let text = commands(args, principal.as_deref())?;
    // A reader that has seen enough (`| head`) is no failure.
    let _ = write!(std::io::stdout().lock(), "{text}");
    Ok(Exit::Done)
}

/// As kafka-acls wants it: a type, a colon and a name. Without a type it is a user.
fn principal(given: &str) -> Result<String, Stop> {
    match given.split_once(':') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(given.to_owned()),
        None if !given.is_empty() => Ok(format!("User:{given}")),
        _ => Err(Stop::usage(format!("--principal {given:?} has no type or no name; write it as User:alice"))),
    }
}

/// What is printed, from the properties with their providers' references resolved: names of topics and credentials may be references.
fn commands(args: &CheckAclsArgs, principal: Option<&str>) -> Result<String, Stop> {
    let usage = |error: &dyn std::fmt::Display| Stop::usage(error.to_string());
    let raw = read_worker(&args.worker)?;
    let providers = ConfigProviders::from_worker(&raw).map_err(|error| usage(&error))?;
    let worker = providers.resolve_worker(&raw).map_err(|error| usage(&error))?;
    let mut connectors = BTreeMap::new();
    for path in &args.connectors {
        let file = read_connector(path).map_err(|error| usage(&error))?;
        let config = file.config.into_iter().map(|(key, value)| (key, Some(value))).collect();
        let config = providers.resolve(&config).map_err(|error| usage(&format!("{}: {error}", path.display())))?;
        connectors.insert(file.name, config);
    }
    let how = AclCommand {
        bootstrap: worker.get("bootstrap.servers").map_or("localhost:9092", String::as_str),
        principal,
        command_config: args.command_config.as_deref(),
    };
    let text = render_acls(&required_acls(&worker, &connectors), &how).map_err(|whose| {
        Stop::usage(format!(
            "whom to grant it to is not in the properties ({whose}); add --principal User:NAME, for a certificate its subject: \
             --principal 'User:CN=…' (openssl x509 -noout -subject -nameopt RFC2253 shows it)"
        ))
    })?;
    let wants_login =
        worker.get("security.protocol").is_some_and(|name| !name.trim().eq_ignore_ascii_case("PLAINTEXT"));
    let note = match wants_login && args.command_config.is_none() {
        true => {
            "# The brokers want a login: --command-config FILE, an administrator's properties, has to be added to each command.\n"
        }
        false => "",
    };
    Ok(format!("{note}{text}"))
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
        let args = |connector| CheckAclsArgs {
            worker: worker.clone(),
            connectors: vec![connector],
            principal: None,
            command_config: None,
        };
        let lines = commands(&args(connector), None).map_err(|_| "refused").unwrap();
        assert!(lines.contains("the-offsets") && lines.contains("the-lines"), "{lines}");
        assert!(!lines.contains("${file"), "{lines}");
        let broken = write("d.properties", "name=d\ntopic=${file:/nowhere:x}\n");
        assert!(commands(&args(broken), None).is_err());
    }

    #[test]
    fn a_principal_has_a_type_and_a_name() {
        assert_eq!(principal("alice").unwrap(), "User:alice");
        assert_eq!(principal("User:alice").unwrap(), "User:alice");
        assert_eq!(principal("CN=a,O=b").unwrap(), "User:CN=a,O=b");
        for wrong in ["", "User:", ":alice"] {
            assert!(principal(wrong).unwrap_err().message.contains("User:alice"), "{wrong}");
        }
    }

    #[test]
    fn with_a_certificate_the_principal_has_to_be_said_and_a_login_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let worker = folder.path().join("worker.properties");
        std::fs::write(
            &worker,
            "group.id=g\nconfig.storage.topic=c\nsecurity.protocol=SSL\nssl.keystore.location=/k\n",
        )
        .unwrap();
        let mut args = CheckAclsArgs { worker, connectors: Vec::new(), principal: None, command_config: None };
        let refused = commands(&args, None).unwrap_err();
        assert!(refused.message.contains("--principal") && refused.exit.code() == 2, "{refused:?}");
        assert!(commands(&args, Some("User:a")).unwrap().starts_with("# The brokers want a login: --command-config"));
        args.command_config = Some("admin.properties".to_owned());
        let text = commands(&args, Some("User:a")).unwrap();
        assert!(
            text.lines().all(|line| line.starts_with('#') || line.contains(" --command-config admin.properties ")),
            "{text}"
        );
    }
}
