//! The `oncewire` command line: arguments in, one subcommand, one exit code. Everything else lives in the crates below.

mod check_acls;
mod consume;
mod demo;
mod dev_broker;
mod distributed;
mod exit;
mod log_line;
mod logging;
mod plugins;
mod reach;
mod registry;
mod standalone;
mod verify;
mod worker_file;

use clap::{Parser, Subcommand};
use exit::{Exit, Stop};
use oncewire_plugins::providers::Secrets;
use std::process::ExitCode;

/// Exactly-once delivery from any source into Apache Kafka.
#[derive(Debug, Parser)]
#[command(
    name = "oncewire",
    version,
    max_term_width = 120,
    after_help = "Examples:\n  oncewire demo\n  oncewire distributed worker.properties\n  \
                  oncewire standalone worker.properties connector.properties\n  \
                  oncewire consume --bootstrap-server localhost:9092 --topic t --from-beginning\n\n\
                  `oncewire COMMAND --help` has more examples. ONCEWIRE_LOG=debug says more.\n\n\
                  Exit codes:\n  0 done\n  1 a task failed\n  2 wrong arguments or configuration\n  \
                  3 could not start\n  4 the auditor is not content\n  5 superseded by a newer worker"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch a file arrive exactly once while its worker is killed again and again
    Demo(demo::DemoArgs),
    /// Run a worker of a group, with Java workers or without (the counterpart of connect-distributed)
    Distributed(distributed::DistributedArgs),
    /// Run connectors in this one process, exactly-once (the counterpart of connect-standalone)
    Standalone(standalone::StandaloneArgs),
    /// Run the embedded broker on its own; data is in memory, never for production
    DevBroker(dev_broker::DevBrokerArgs),
    /// Print the records of a topic
    Consume(consume::ConsumeArgs),
    /// Audit a topic: gaps, duplicates, order, open transactions, stored offsets
    Verify(verify::VerifyArgs),
    /// Print what has to be granted on a cluster with ACLs, as kafka-acls commands
    CheckAcls(check_acls::CheckAclsArgs),
    /// List the connectors and converters in this binary
    Plugins(plugins::PluginsArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let secrets = Secrets::default();
    logging::start(&secrets);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(Stop::not_started(format!("can't start the threads: {error}"))), &secrets),
    };
    let ended = runtime.block_on(async {
        match cli.command {
            Command::Demo(args) => demo::run(args).await,
            Command::Distributed(args) => distributed::run(args, &secrets).await,
            Command::CheckAcls(args) => check_acls::run(&args),
            Command::Standalone(args) => standalone::run(args, &secrets).await,
            Command::DevBroker(args) => dev_broker::run(args).await,
            Command::Consume(args) => consume::run(args).await,
            Command::Verify(args) => verify::run(args).await,
            Command::Plugins(args) => plugins::run(&args),
        }
    });
    // An abandoned task may sit in a blocking read for ever; the process must not wait for it.
    runtime.shutdown_background();
    end(ended, &secrets)
}

fn end(ended: Result<Exit, Stop>, secrets: &Secrets) -> ExitCode {
    match ended {
        Ok(exit) => exit.into(),
        Err(stop) => {
            eprintln!("oncewire: {}", log_line::paragraph(&secrets.redact(&stop.message)));
            stop.exit.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The narrowest terminal that a person is likely to have.
    const COLUMNS: usize = 80;

    #[test]
    fn no_example_of_a_help_text_is_wrapped() {
        let mut cli = Cli::command().term_width(COLUMNS);
        cli.build();
        let names: Vec<String> = cli.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        assert!(names.len() > 8, "{names:?}");
        let check = |command: &mut clap::Command| {
            let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let rendered = command.clone().term_width(COLUMNS).render_long_help().to_string();
            for line in own.lines() {
                assert!(line.chars().count() <= COLUMNS, "{}: {line:?}", command.get_name());
                assert!(rendered.lines().any(|shown| shown.trim_end() == line.trim_end()), "{line:?} in\n{rendered}");
            }
        };
        check(&mut cli.clone());
        for name in names.iter().filter(|name| *name != "help") {
            let command = cli.find_subcommand_mut(name).expect("it was listed");
            assert!(command.get_after_help().is_some(), "{name} has no example");
            check(command);
        }
    }
}
