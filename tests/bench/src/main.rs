//! `oncewire-bench`: arguments in, measurements, tables and JSON out. It fails only when something can't be measured.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use oncewire_bench::broker::Broker;
use oncewire_bench::file::FileArgs;
use oncewire_bench::machine::Machine;
use oncewire_bench::start::StartArgs;
use oncewire_bench::txn::TxnArgs;
use oncewire_bench::watch::WatchArgs;
use oncewire_bench::{file, start, txn, watch};

/// Our worker and our client beside their peers, on the same real broker, in one run.
#[derive(Debug, Parser)]
#[command(
    name = "oncewire-bench",
    version,
    max_term_width = 120,
    args_conflicts_with_subcommands = true,
    after_help = "Without a subcommand it is `file`. Examples:\n  oncewire-bench --short\n  oncewire-bench file --json file.json\n  \
                  oncewire-bench txn --peers\n\nThe binary is taken from ONCEWIRE_BIN, or built. Aims are printed and never fail."
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
    let what = cli.what.unwrap_or(What::File(cli.file));
    if let What::Watch(args) = &what {
        return watch::run(args);
    }
    let machine = Machine::look();
    let broker = Broker::start()?;
    txn::warm_up(&broker)?;
    let (name, tables, measured) = match &what {
        What::File(args) => {
            let measured = file::measure(args, &broker)?;
            ("file", measured.tables(), measured.to_json())
        }
        What::Start(args) => {
            let measured = start::measure(args, &broker)?;
            ("start", measured.tables(), measured.to_json())
        }
        What::Txn(args) => {
            let measured = txn::measure(args, &broker)?;
            ("txn", measured.tables(), measured.to_json())
        }
        What::Watch(_) => return Ok(()),
    };
    println!("{tables}\n\n{}", machine.describe());
    if let Some(path) = &cli.json {
        let json = serde_json::json!({ "machine": machine, name: measured });
        let text = serde_json::to_string_pretty(&json)? + "\n";
        std::fs::write(path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}
