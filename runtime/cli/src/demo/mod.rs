//! `oncewire demo`: a file arrives exactly once while its worker is killed again and again.
//!
//! Everything is real: worker processes of this very binary, SIGKILL, the Kafka protocol over TCP, a read_committed reader,
//! the auditor that `oncewire verify` uses. Only the broker may be the embedded one; `--bootstrap-server` replaces it.

mod killer;
mod reader;
mod story;

use crate::exit::{Exit, Stop};
use clap::Args;
use std::time::Duration;
use story::Story;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  oncewire demo\n  oncewire demo --lines 3000000 --kills 30\n  \
    oncewire demo --bootstrap-server localhost:9092    the same on your cluster\n  \
    oncewire demo --seed 7                             the same kills again\n\n\
    Exit code 0 only when the auditor is content.")]
pub(crate) struct DemoArgs {
    /// Lines in the file
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    lines: u64,
    /// How often a worker is killed
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    kills: u64,
    /// Lines per transaction (the connector's batch.size)
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch_size: u64,
    /// Use this cluster in place of the embedded broker
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap_server: Option<String>,
    /// Repeats the moments of an earlier run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Leave the topics and the working folder behind
    #[arg(long)]
    keep: bool,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

pub(crate) async fn run(args: DemoArgs) -> Result<Exit, Stop> {
    let timeout = Duration::from_secs(args.timeout);
    let mut story = Story::prepare(args).await?;
    let told = tokio::time::timeout(timeout, story.tell()).await;
    let told = told.unwrap_or_else(|_| {
        Err(Stop::failed(format!("the demo did not end in {timeout:?}; allow more with --timeout")))
    });
    story.clean_up().await;
    told
}
