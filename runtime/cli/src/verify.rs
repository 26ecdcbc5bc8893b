//! `oncewire verify`: the exactly-once auditor as a command. The audit itself is the crate `oncewire-audit`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use oncewire_audit::{AuditError, AuditPlan, Check, OffsetsPlan, Repeats, Report, audit};

use crate::exit::{Exit, Stop};
use crate::reach::ReachArgs;

/// What to audit, and against what.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    oncewire verify --bootstrap-server localhost:9092 --topic lines --file in.txt\n  \
    oncewire verify --bootstrap-server localhost:9092 --topic lines \\\n    \
    --file in.txt --offsets-topic my-worker-offsets --connector lines --json\n  \
    oncewire verify --bootstrap-server localhost:9092 --topic numbers --sequence\n\n\
    The worker must have stopped before its offsets are compared: while it writes,\ntopic and offsets are read at two moments.\n\n\
    Exit codes: 0 content, 4 not content, 2 wrong arguments, 3 cannot reach or read")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    at: ReachArgs,
    /// The topic to audit
    #[arg(long)]
    topic: String,
    /// The topic must hold every line of this file once and in order
    #[arg(long, group = "against")]
    file: Option<PathBuf>,
    /// The topic must hold the numbers of the sequence connector
    #[arg(long, group = "against")]
    sequence: bool,
    /// No two records of the topic may have the same value
    #[arg(long, group = "against")]
    distinct: bool,
    /// The topic with the source offsets
    #[arg(long, value_name = "TOPIC", requires = "connector")]
    offsets_topic: Option<String>,
    /// The connector whose source offsets are compared with the data
    #[arg(long, value_name = "NAME", requires = "offsets_topic")]
    connector: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

/// Audits and prints the report.
pub(crate) async fn run(args: VerifyArgs) -> Result<Exit, Stop> {
    let plan = AuditPlan {
        topic: args.topic,
        check: match (args.file, args.sequence, args.distinct) {
            (Some(file), _, _) => Check::Lines(file),
            (None, true, _) => Check::Sequence,
            (None, false, true) => Check::Plain(Repeats::Count),
            (None, false, false) => Check::Plain(Repeats::Ignore),
        },
        offsets: args.offsets_topic.zip(args.connector).map(|(topic, connector)| OffsetsPlan { topic, connector }),
        timeout: Duration::from_secs(args.timeout),
    };
    let cluster = args.at.reach().await?;
    let bar = progress_bar();
    let audited = audit(&cluster, &plan, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    })
    .await;
    bar.finish_and_clear();
    cluster.close().await;
    let report = audited.map_err(stop)?;
    match print(&report, args.json) {
        // Whoever read it (say `head`) has enough; the exit code tells the rest.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        printed => printed.map_err(|error| Stop::failed(format!("cannot write to standard output: {error}")))?,
    }
    Ok(if report.is_content() { Exit::Done } else { Exit::NotContent })
}

/// On a terminal only: a log file wants no moving bar.
fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} offsets, {per_sec}, {eta} left");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout();
    if json { writeln!(out, "{:#}", report.to_json()) } else { writeln!(out, "{report}") }
}

fn stop(error: AuditError) -> Stop {
    match error {
        AuditError::File { .. } => Stop::usage(format!("--file: {error}")),
        AuditError::Client { .. } | AuditError::TimedOut { .. } => Stop::not_started(error.to_string()),
    }
}
