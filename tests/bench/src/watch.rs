//! Watches how far a topic with one partition is committed. A process of its own, the same for every side of a comparison.
//!
//! ```text
//! oncewire-bench watch HOST:PORT TOPIC LINES      prints, with times in milliseconds since 1970:
//!   ready
//!   first TIME END_OFFSET     the first committed records
//!   last TIME END_OFFSET      the end of the data: at least LINES offsets (transaction markers take offsets too), then quiet
//! ```
//!
//! It makes the topic, and asks for the last stable offset at fixed intervals, which takes less than 1 % of a core. It is ready before the
//! measured process starts, so that this one answers no questions.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;

use crate::children;
use crate::client::Client;
use crate::now_ms;

/// How long the end must not move before it is the end.
const QUIET: Duration = Duration::from_secs(3);

/// How long one run may take.
const WATCH_MAX: Duration = Duration::from_secs(600);

/// What to watch.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The broker's HOST:PORT
    bootstrap: String,
    /// The topic, which must hold nothing
    topic: String,
    /// How many records will come
    lines: u64,
    /// How often to ask, in milliseconds
    #[arg(long, default_value_t = 20)]
    every_ms: u64,
}

/// Runs the program described above.
///
/// # Errors
/// The topic holds records already, the broker does not answer, or the records do not come.
pub fn run(args: &WatchArgs) -> Result<()> {
    let client = Client::connect(&args.bootstrap)?;
    client.make_topic(&args.topic)?;
    let mut end = client.committed_end(&args.topic)?;
    ensure!(end == 0, "topic {} already holds records; give a fresh one", args.topic);
    say("ready")?;
    let start = Instant::now();
    let (mut changed, mut changed_ms) = (start, now_ms());
    while end < args.lines || changed.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(args.every_ms));
        if start.elapsed() > WATCH_MAX {
            bail!("only {end} offsets of {} were committed in {WATCH_MAX:?}", args.topic);
        }
        let asked_ms = now_ms();
        let next = client.committed_end(&args.topic)?;
        if next == end {
            continue;
        }
        if end == 0 {
            say(&format!("first {asked_ms} {next}"))?;
        }
        (end, changed, changed_ms) = (next, Instant::now(), asked_ms);
    }
    say(&format!("last {changed_ms} {end}"))
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("nobody reads what the watcher says")
}

/// Something that the watcher saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Where the committed data ended.
    pub end: u64,
}

/// A watcher that runs as a process. Dropping it ends it.
#[derive(Debug)]
pub struct Watcher {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Watcher {
    /// Starts it on a fresh topic and waits until it is ready.
    ///
    /// # Errors
    /// It ends early; its own words are on standard error.
    pub fn start(bootstrap: &str, topic: &str, lines: u64, every: Duration) -> Result<Self> {
        let mut command = Command::new(program()?);
        command.args(["watch", bootstrap, topic, &lines.to_string(), "--every-ms", &every.as_millis().to_string()]);
        let child = children::start(command.stdin(Stdio::null()).stdout(Stdio::piped()));
        let mut child = child.context("the watcher can't be started")?;
        let out = child.stdout.take().ok_or_else(|| anyhow!("the watcher has no standard output"))?;
        let mut watcher = Self { child, out: BufReader::new(out) };
        let line = watcher.line()?;
        ensure!(line == "ready", "the watcher says {line:?}, not that it is ready");
        Ok(watcher)
    }

    /// Waits for the first committed records.
    ///
    /// # Errors
    /// As [`Watcher::start`].
    pub fn first(&mut self) -> Result<Sight> {
        let line = self.line()?;
        sight(&line, "first")
    }

    /// Waits for the end of the data; after [`Watcher::first`].
    ///
    /// # Errors
    /// As [`Watcher::start`].
    pub fn last(&mut self) -> Result<Sight> {
        let line = self.line()?;
        sight(&line, "last")
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.out.read_line(&mut line).context("the watcher can't be read")?;
        ensure!(read > 0, "the watcher ended early");
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // It may have ended by itself, which is no error.
        let _ = children::kill(&mut self.child);
    }
}

/// The program that has `watch` as its first argument.
///
/// # Errors
/// The system does not know where this program came from.
pub fn program() -> Result<std::path::PathBuf> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    debug_assert!(Path::new(&program).is_absolute(), "current_exe is absolute on Linux");
    Ok(program)
}

fn sight(line: &str, word: &str) -> Result<Sight> {
    let parse = || {
        let mut fields = line.strip_prefix(word)?.split_ascii_whitespace();
        Some(Sight { at_ms: fields.next()?.parse().ok()?, end: fields.next()?.parse().ok()? })
    };
    parse().ok_or_else(|| anyhow!("the watcher says {line:?}, not what it saw {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_watcher_says_is_read_back() {
        let seen = sight("first 1700000000123 2001", "first").unwrap();
        assert_eq!(seen, Sight { at_ms: 1_700_000_000_123, end: 2001 });
        assert!(sight("last 1 2", "first").is_err());
        assert!(sight("first 1", "first").is_err());
    }
}
