//! `oncewire-bench`: arguments in, measurements, tables and JSON out. It fails only when something can't be measured.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use oncewire_bench::broker::Broker;
use oncewire_bench::children;
use oncewire_bench::distributed::DistributedArgs;
use oncewire_bench::file::FileArgs;
use oncewire_bench::machine::Machine;
use oncewire_bench::start::StartArgs;
use oncewire_bench::txn::TxnArgs;
use oncewire_bench::watch::WatchArgs;
use oncewire_bench::{distributed, file, start, txn, watch};
use serde_json::{Value, json};

/// Our worker and our client beside their peers, on the same real broker, in one run.
#[derive(Debug, Parser)]
#[command(
    name = "oncewire-bench",
    version,
    max_term_width = 120,
    args_conflicts_with_subcommands = true,
    after_help = "Without a subcommand it is `file`, and with --short also `distributed`. Examples:\n  oncewire-bench --short\n  \
                  oncewire-bench file --json file.json\n  oncewire-bench txn --peers\n  oncewire-bench distributed --only kill,drain\n\nThe binary is taken from ONCEWIRE_BIN, or built. Aims are printed and never fail."
)]
struct Cli {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    file: FileArgs,
    /// Write everything that was measured into this file
    #[arg(long, global = true)]
    json: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A file into Kafka: our worker and Kafka Connect (the default)
    File(FileArgs),
    /// From process start to the first committed record, and memory without work
    Start(StartArgs),
    /// Milliseconds per transaction of bare producers
    Txn(TxnArgs),
    /// Distributed workers: start, idle tasks, a killed worker, draining, a rolling restart, many connectors
    Distributed(DistributedArgs),
    #[command(hide = true)]
    Watch(WatchArgs),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oncewire-bench: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let both = cli.what.is_none() && cli.file.is_short();
    let mut all = vec![cli.what.unwrap_or(What::File(cli.file))];
    if let Some(What::Watch(args)) = all.first() {
        return watch::run(args);
    }
    children::end_with_this_process()?;
    if both {
        all.push(What::Distributed(DistributedArgs::short()));
    }
    let machine = Machine::look();
    let broker = Broker::start()?;
    txn::warm_up(&broker)?;
    let mut json = json!({ "machine": machine });
    let (mut tables, mut failures) = (Vec::new(), Vec::new());
    for what in &all {
        let measured = measure(what, &broker)?;
        tables.push(measured.tables);
        json[measured.name] = measured.json;
        failures.extend(measured.failures);
    }
    println!("{}\n\n{}", tables.join("\n\n"), machine.describe());
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(&json)? + "\n";
        std::fs::write(path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    ensure!(failures.is_empty(), "{} could not be measured, as told above", failures.len());
    Ok(())
}

/// What one subcommand measured.
struct Told {
    name: &'static str,
    tables: String,
    json: Value,
    failures: Vec<String>,
}

fn measure(what: &What, broker: &Broker) -> Result<Told> {
    let told = |name, tables, json| Told { name, tables, json, failures: Vec::new() };
    Ok(match what {
        What::File(args) => {
            let measured = file::measure(args, broker)?;
            told("file", measured.tables(), measured.to_json())
        }
        What::Start(args) => {
            let measured = start::measure(args, broker)?;
            told("start", measured.tables(), measured.to_json())
        }
        What::Txn(args) => {
            let measured = txn::measure(args, broker)?;
            told("txn", measured.tables(), measured.to_json())
        }
        What::Distributed(args) => {
            let measured = distributed::measure(args, broker)?;
            let failures = measured.failures().to_vec();
            Told { failures, ..told("distributed", measured.tables(), measured.to_json()) }
        }
        What::Watch(_) => anyhow::bail!("watch runs without a broker of the bench's"),
    })
}
