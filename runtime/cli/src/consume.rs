//! `oncewire consume`: the values of a topic as bytes on standard output, one a line.
//!
//! Left out: groups, stored positions, deserializers. What a record holds is printed as it is; a null value is printed as `null`.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use clap::{Args, ValueEnum};
use oncewire_client::batch::Record;
use oncewire_client::cluster::Cluster;
use oncewire_client::error::Error;
use oncewire_client::reader::{Isolation, LogReader, ReaderEvent, ReaderOptions, Start};
use tokio::time::Instant;

use crate::exit::{Exit, Stop};
use crate::reach::ReachArgs;

/// What to print, and when to stop.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    oncewire consume --bootstrap-server localhost:9092 --topic lines \\\n    --from-beginning --max-messages 10\n  \
    oncewire consume --bootstrap-server localhost:9092 --topic lines \\\n    --isolation read_uncommitted --offsets\n  \
    oncewire consume --bootstrap-server broker:9093 --topic lines \\\n    --command-config client.properties\n\n\
    Exit codes: 0 done or interrupted; 1 fewer records than --max-messages, or the\nbroker went away; 2 wrong arguments; 3 cannot reach or read")]
pub(crate) struct ConsumeArgs {
    #[command(flatten)]
    at: ReachArgs,
    /// The topic to read
    #[arg(long)]
    topic: String,
    /// Start at the first record instead of at the next one that is written
    #[arg(long)]
    from_beginning: bool,
    /// Whether records of open and aborted transactions are printed
    #[arg(long, value_name = "LEVEL", default_value = "read_committed")]
    isolation: IsolationArg,
    /// Stop after so many records
    #[arg(long, value_name = "N")]
    max_messages: Option<u64>,
    /// Stop when no record came for so long (default: wait for ever)
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// Print partition and offset before each record, as `0:42` and a tab
    #[arg(long)]
    offsets: bool,
    /// Print the key and a tab before each value
    #[arg(long)]
    keys: bool,
}

/// Kafka's names for the isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IsolationArg {
    /// Only what committed transactions wrote
    #[value(name = "read_committed")]
    Committed,
    /// Everything, aborted records too
    #[value(name = "read_uncommitted")]
    Uncommitted,
}

/// Prints until there is a reason to stop.
pub(crate) async fn run(args: ConsumeArgs) -> Result<Exit, Stop> {
    let cluster = args.at.reach().await?;
    let ended = tokio::select! {
        ended = print(&cluster, &args) => ended,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map(|()| Exit::Done).map_err(|error| Stop::failed(format!("cannot wait for Ctrl-C: {error}")))
        }
    };
    cluster.close().await;
    ended
}

async fn print(cluster: &Cluster, args: &ConsumeArgs) -> Result<Exit, Stop> {
    let options = ReaderOptions {
        isolation: match args.isolation {
            IsolationArg::Committed => Isolation::Committed,
            IsolationArg::Uncommitted => Isolation::Uncommitted,
        },
        start: if args.from_beginning { Start::Beginning } else { Start::End },
        ..ReaderOptions::default()
    };
    let not_opened = |error: Error| Stop::not_started(format!("cannot read topic {}: {error}", args.topic));
    let mut reader = LogReader::open(cluster, &args.topic, options).await.map_err(not_opened)?;
    let mut printer = Printer { out: BufWriter::new(io::stdout()), offsets: args.offsets, keys: args.keys };
    let mut left = args.max_messages.unwrap_or(u64::MAX);
    let mut last_record = Instant::now();
    while left > 0 {
        let event = match args.timeout_ms {
            None => reader.next().await,
            Some(idle_ms) => {
                let deadline = last_record + Duration::from_millis(idle_ms);
                match tokio::time::timeout_at(deadline, reader.next()).await {
                    Ok(event) => event,
                    Err(_) => return idle_end(args, left, idle_ms),
                }
            }
        };
        let event = event.map_err(|error| Stop::failed(format!("cannot read topic {} on: {error}", args.topic)))?;
        let ReaderEvent::Records { partition, records } = event else {
            continue;
        };
        last_record = Instant::now();
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(records.len());
        match printer.print(partition, &records[..wanted]) {
            Ok(()) => left -= wanted as u64,
            // Whoever read our output (say `head`) has enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
            Err(error) => return Err(Stop::failed(format!("cannot write to standard output: {error}"))),
        }
    }
    Ok(Exit::Done)
}

fn idle_end(args: &ConsumeArgs, left: u64, idle_ms: u64) -> Result<Exit, Stop> {
    match args.max_messages {
        None => Ok(Exit::Done),
        Some(wanted) => {
            let came = wanted - left;
            Err(Stop::failed(format!(
                "{came} of {wanted} records came; no further one within {idle_ms} ms (--timeout-ms)"
            )))
        }
    }
}

struct Printer<W> {
    out: W,
    offsets: bool,
    keys: bool,
}

impl<W: Write> Printer<W> {
    fn print(&mut self, partition: i32, records: &[Record]) -> io::Result<()> {
        for record in records {
            if self.offsets {
                write!(self.out, "{partition}:{}\t", record.offset)?;
            }
            if self.keys {
                self.out.write_all(record.key.as_deref().unwrap_or(b"null"))?;
                self.out.write_all(b"\t")?;
            }
            self.out.write_all(record.value.as_deref().unwrap_or(b"null"))?;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_their_bytes() {
        let record = |offset, key: Option<&'static [u8]>, value: Option<&'static [u8]>| Record {
            offset,
            timestamp_ms: 0,
            key: key.map(bytes::Bytes::from_static),
            value: value.map(bytes::Bytes::from_static),
            headers: Vec::new(),
        };
        let records = [record(7, None, Some(b"\xff\x00")), record(8, Some(b"k"), None)];
        let mut plain = Printer { out: Vec::new(), offsets: false, keys: false };
        plain.print(2, &records).unwrap();
        assert_eq!(plain.out, b"\xff\x00\nnull\n");
        let mut full = Printer { out: Vec::new(), offsets: true, keys: true };
        full.print(2, &records).unwrap();
        assert_eq!(full.out, b"2:7\tnull\t\xff\x00\n2:8\tk\tnull\n");
    }
}
