//! `txn`: milliseconds per transaction and records per second of bare producers, ours and others, taking turns.
//!
//! All write records of 84 bytes without compression to one partition of a fresh topic, one transaction after the other, as each client comes.
//! The two rows of ours: *in turn* fills a transaction when the one before is committed, as a program does that knows nothing of us; *ahead*
//! fills it while the one before commits, as our worker does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::producer::{Stage, StagedBatch, TransactionalProducer};
use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::client::Client;
use crate::lines::LINE_BYTES;
use crate::peer_programs::Peer;
use crate::report::{Aim, number, number_or_dash, table};
use crate::run::count;
use crate::statistics::{median, quantile};
use crate::{now_ms, progress};

/// How long each client runs before it is measured: connections, metadata, and Java's compiler.
pub const WARM_UP: Duration = Duration::from_secs(1);

/// How long the broker gets small transactions, and again as long large ones, before anything is measured.
const BROKER_WARM_UP: Duration = Duration::from_secs(2);

/// How long closing a producer may take.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Milliseconds per transaction that the project wants with transactions V2, by records in it.
const AIMS_MS: [(u32, f64); 2] = [(1, 1.3), (100, 1.5)];

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct TxnArgs {
    /// Records in each transaction
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 2_000, 20_000])]
    sizes: Vec<u32>,
    /// Runs of each client with each size
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds of each run, after a second to warm up
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Also franz-go (needs Go) and Java's producer
    #[arg(long)]
    peers: bool,
}

/// What one client did in one run; what a peer's program prints.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Committed transactions.
    pub transactions: u64,
    /// In this time.
    pub seconds: f64,
    /// Half of the transactions took no longer.
    pub p50_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
}

/// Who wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Writer {
    OursInTurn,
    OursAhead,
    FranzGo,
    Java,
}

impl Writer {
    fn name(self) -> &'static str {
        match self {
            Self::OursInTurn => "oncewire-client, in turn",
            Self::OursAhead => "oncewire-client, ahead",
            Self::FranzGo => "franz-go",
            Self::Java => "Java's KafkaProducer",
        }
    }

    fn is_ours(self) -> bool {
        matches!(self, Self::OursInTurn | Self::OursAhead)
    }
}

#[derive(Debug, Serialize)]
struct Entry {
    round: u32,
    records: u32,
    writer: Writer,
    #[serde(flatten)]
    timing: Timing,
}

/// All runs.
#[derive(Debug, Default, Serialize)]
pub struct Timings {
    runs: Vec<Entry>,
}

/// Measures everything.
///
/// # Errors
/// A producer, the broker or a peer's program fails.
pub fn measure(args: &TxnArgs, broker: &Broker) -> Result<Timings> {
    let peers = if args.peers { Some((Peer::franz_go()?, Peer::java()?)) } else { None };
    let client = Client::connect(broker.bootstrap())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let length = Duration::from_secs(u64::from(args.seconds.max(1)));
    let mut timings = Timings::default();
    for round in 1..=args.rounds.max(1) {
        for &records in &args.sizes {
            let mut writers = vec![Writer::OursInTurn, Writer::OursAhead];
            if peers.is_some() {
                writers.extend([Writer::FranzGo, Writer::Java]);
            }
            // Whoever comes first finds the broker rested; that should not always be the same.
            let first = round as usize % writers.len();
            writers.rotate_left(first);
            for writer in writers {
                let topic = format!("txn-{records}-{round}-{writer:?}");
                client.make_topic(&topic)?;
                let run = Load { bootstrap: broker.bootstrap(), topic: &topic, records, length };
                let timing = match (writer, &peers) {
                    (Writer::FranzGo, Some((franz_go, _))) => franz_go.run(&run)?,
                    (Writer::Java, Some((_, java))) => java.run(&run)?,
                    _ => runtime.block_on(ours(&run, writer == Writer::OursAhead))?,
                };
                progress(&format!(
                    "round {round} of {}, {records} records, {}: {} ms",
                    args.rounds,
                    writer.name(),
                    number(timing.mean_ms())
                ));
                timings.runs.push(Entry { round, records, writer, timing });
                client.delete_topics(&[topic])?;
            }
        }
    }
    Ok(timings)
}

/// Commits transactions for a while: the broker makes its transaction log, and Java compiles what everybody is about to use. Otherwise
/// whoever is measured first pays for it.
///
/// # Errors
/// The broker refuses.
pub fn warm_up(broker: &Broker) -> Result<()> {
    progress("warming the broker up");
    let topic = "warm-up";
    let client = Client::connect(broker.bootstrap())?;
    client.make_topic(topic)?;
    for records in [1, 2_000] {
        let load = Load { bootstrap: broker.bootstrap(), topic, records, length: BROKER_WARM_UP };
        client.block_on(ours(&load, false))?;
    }
    client.delete_topics(&[topic.to_owned()])
}

/// One run of one client.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// `host:port`.
    pub bootstrap: &'a str,
    /// An empty topic with one partition; its name is the transactional id too.
    pub topic: &'a str,
    /// Records in each transaction.
    pub records: u32,
    /// How long.
    pub length: Duration,
}

async fn ours(load: &Load<'_>, ahead: bool) -> Result<Timing> {
    let cluster = Cluster::connect(ClientConfig::new(load.bootstrap)?).await?;
    let producer = TransactionalProducer::new(cluster.clone(), ProducerConfig::new(load.topic)?);
    producer.init().await?;
    let topic: Arc<str> = load.topic.into();
    let mut stage = producer.stage();
    let mut measured = Measured::begin(Instant::now(), load.length);
    let mut ready = Vec::new();
    while measured.goes_on(Instant::now()) {
        let batches =
            if ready.is_empty() { fill(&mut stage, &topic, load.records)? } else { std::mem::take(&mut ready) };
        producer.begin().await?;
        producer.send(batches).await?;
        if ahead {
            let (committed, filled) = tokio::join!(producer.commit(), async { fill(&mut stage, &topic, load.records) });
            committed?;
            ready = filled?;
        } else {
            producer.commit().await?;
        }
        measured.transaction(Instant::now());
    }
    producer.close(CLOSE_MAX).await?;
    cluster.close().await;
    Ok(measured.timing())
}

fn fill(stage: &mut Stage, topic: &Arc<str>, records: u32) -> Result<Vec<StagedBatch>> {
    let value = [b'x'; LINE_BYTES];
    let at_ms = i64::try_from(now_ms())?;
    for _ in 0..records {
        stage.append(topic, 0, at_ms, None, Some(&value), &[])?;
    }
    Ok(stage.seal())
}

/// Times of transactions, without those of the warm-up. Pure.
struct Measured {
    warm: Instant,
    end: Instant,
    /// The end of the first transaction after the warm-up, in which it began.
    first: Option<Instant>,
    last: Option<Instant>,
    times_ms: Vec<f64>,
}

impl Measured {
    fn begin(now: Instant, length: Duration) -> Self {
        let warm = now + WARM_UP;
        Self { warm, end: warm + length, first: None, last: None, times_ms: Vec::new() }
    }

    fn goes_on(&self, now: Instant) -> bool {
        now < self.end
    }

    /// One was committed.
    fn transaction(&mut self, now: Instant) {
        match self.last {
            Some(last) => self.times_ms.push((now - last).as_secs_f64() * 1000.0),
            None if now < self.warm => return,
            None => self.first = Some(now),
        }
        self.last = Some(now);
    }

    fn timing(mut self) -> Timing {
        self.times_ms.sort_by(f64::total_cmp);
        let span = self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first);
        Timing {
            transactions: self.times_ms.len() as u64,
            seconds: span.as_secs_f64(),
            p50_ms: quantile(&self.times_ms, 0.5).unwrap_or(0.0),
            p99_ms: quantile(&self.times_ms, 0.99).unwrap_or(0.0),
        }
    }
}

impl Timing {
    fn mean_ms(&self) -> f64 {
        self.seconds * 1000.0 / count(self.transactions.max(1))
    }

    fn records_per_s(&self, records: u32) -> f64 {
        count(self.transactions) * f64::from(records) / self.seconds.max(0.001)
    }
}

impl Timings {
    fn median(&self, records: u32, writer: Writer, of: impl Fn(&Timing) -> f64) -> Option<f64> {
        let runs = self.runs.iter().filter(|entry| entry.records == records && entry.writer == writer);
        median(runs.map(|entry| of(&entry.timing)).collect())
    }

    fn rows(&self) -> Vec<(u32, Writer)> {
        let mut rows: Vec<(u32, Writer)> = self.runs.iter().map(|entry| (entry.records, entry.writer)).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// One table.
    #[must_use]
    pub fn tables(&self) -> String {
        let mut table =
            table(&["records, client", "ms/transaction", "p50 ms", "p99 ms", "records/s", "what the project wants"]);
        for (records, writer) in self.rows() {
            let mean = self.median(records, writer, Timing::mean_ms);
            let aim = AIMS_MS.iter().find(|(size, _)| *size == records && writer.is_ours());
            let verdict = mean.zip(aim).map(|(mean, (_, most))| Aim::AtMost(*most).verdict(mean)).unwrap_or_default();
            table.add_row([
                format!("{} {}", number(f64::from(records)), writer.name()),
                number_or_dash(mean),
                number_or_dash(self.median(records, writer, |timing| timing.p50_ms)),
                number_or_dash(self.median(records, writer, |timing| timing.p99_ms)),
                number_or_dash(self.median(records, writer, |timing| timing.records_per_s(records))),
                verdict,
            ]);
        }
        let rounds = self.runs.iter().map(|entry| entry.round).max().unwrap_or(0);
        format!(
            "one transactional producer, one partition, records of {LINE_BYTES} bytes, medians of {rounds}\n{table}"
        )
    }

    /// Runs and medians.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut medians: BTreeMap<String, serde_json::Value> = BTreeMap::new();
        for (records, writer) in self.rows() {
            let figures = serde_json::json!({
                "ms_per_transaction": self.median(records, writer, Timing::mean_ms),
                "p99_ms": self.median(records, writer, |timing| timing.p99_ms),
                "records_per_s": self.median(records, writer, |timing| timing.records_per_s(records)),
            });
            medians.insert(format!("{records} {}", writer.name()), figures);
        }
        serde_json::json!({ "runs": self.runs, "medians": medians })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_and_the_transaction_that_began_in_it_do_not_count() {
        let start = Instant::now();
        let mut measured = Measured::begin(start, Duration::from_secs(3));
        for at_ms in [400, 900, 1_100, 1_102, 1_106] {
            measured.transaction(start + Duration::from_millis(at_ms));
        }
        assert!(measured.goes_on(start + Duration::from_millis(3_999)));
        assert!(!measured.goes_on(start + Duration::from_secs(4)));
        let timing = measured.timing();
        assert_eq!(timing.transactions, 2);
        assert!((timing.mean_ms() - 3.0).abs() < 1e-6, "{timing:?}");
        assert!((timing.records_per_s(100) - 200.0 / 0.006).abs() < 1e-3, "{timing:?}");
    }

    #[test]
    fn nothing_measured_is_no_division_by_zero() {
        let timing = Measured::begin(Instant::now(), WARM_UP).timing();
        assert_eq!(timing.transactions, 0);
        assert!(timing.mean_ms().is_finite() && timing.records_per_s(1).is_finite());
    }
}
