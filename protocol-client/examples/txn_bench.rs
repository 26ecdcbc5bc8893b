//! Milliseconds per transaction and records per second of the transactional producer against a real cluster.
//!
//! ```text
//! cargo run --release -p oncewire-client --example txn_bench -- 127.0.0.1:9092 [--partitions 1] [--seconds 4]
//! ```
//!
//! Records of 84 bytes go to fresh topics, with 1, 100, 2,000 and 20,000 records in each transaction, with and without waiting
//! for the markers. As in a source task, the next transaction's records are encoded while the last one commits.

use oncewire_client::admin::{Admin, NewTopic};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::producer::{Stage, StagedBatch, TransactionalProducer};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const RECORD_BYTES: usize = 84;

struct Options {
    bootstrap: String,
    partitions: u32,
    seconds: u64,
    sizes: Vec<u32>,
    batch_bytes: Option<usize>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let cluster = Cluster::connect(ClientConfig::new(&options.bootstrap)?).await?;
    println!(
        "{:>8} {:>8} {:>10} {:>10} {:>10} {:>12} {:>8} {:>9}",
        "records", "settle", "ms/txn", "p50 ms", "p99 ms", "records/s", "polls", "hold ms"
    );
    for records in &options.sizes {
        for settle in [true, false] {
            measure(&cluster, &options, *records, settle).await?;
        }
    }
    cluster.close().await;
    Ok(())
}

async fn measure(cluster: &Cluster, options: &Options, records: u32, settle: bool) -> Result<(), Box<dyn Error>> {
    let name = format!("txn-bench-{}-{records}-{settle}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis());
    let partitions = Some(i32::try_from(options.partitions)?);
    let topic = NewTopic { name: name.clone(), partitions, replication_factor: Some(1), configs: BTreeMap::new() };
    Admin::new(cluster.clone()).create_topic(&topic).await?;
    let mut config = ProducerConfig::new(&name)?;
    if let Some(bytes) = options.batch_bytes {
        config.batch_bytes = bytes;
    }
    let mut producer = TransactionalProducer::new(cluster.clone(), config);
    if !settle {
        producer = producer.without_marker_settling();
    }
    producer.init().await?;
    let topic: Arc<str> = name.as_str().into();
    let mut stage = producer.stage();
    let mut times = Vec::new();
    let begun = Instant::now();
    let mut next = fill(&mut stage, &topic, options.partitions, records)?;
    let mut last = Instant::now();
    while begun.elapsed() < Duration::from_secs(options.seconds) {
        producer.begin().await?;
        producer.send(std::mem::take(&mut next)).await?;
        // Poll ahead: the commit is under way while the next batch is encoded.
        let (committed, filled) = tokio::join!(producer.commit(), async {
            tokio::task::yield_now().await;
            fill(&mut stage, &topic, options.partitions, records)
        });
        committed?;
        next = filled?;
        times.push(last.elapsed());
        last = Instant::now();
    }
    let elapsed = begun.elapsed().as_secs_f64();
    times.sort();
    let at = |quantile: f64| times[((times.len() - 1) as f64 * quantile) as usize].as_secs_f64() * 1e3;
    let metrics = producer.metrics();
    let transactions = times.len() as f64;
    println!(
        "{records:>8} {settle:>8} {:>10.3} {:>10.3} {:>10.3} {:>12.0} {:>8.1} {:>9.3}",
        elapsed * 1e3 / transactions,
        at(0.5),
        at(0.99),
        transactions * f64::from(records) / elapsed,
        metrics.marker_polls as f64 / transactions,
        metrics.marker_hold_time.as_secs_f64() * 1e3 / transactions,
    );
    producer.close(Duration::from_secs(5)).await?;
    Ok(())
}

fn fill(
    stage: &mut Stage,
    topic: &Arc<str>,
    partitions: u32,
    records: u32,
) -> Result<Vec<StagedBatch>, Box<dyn Error>> {
    let value = [b'x'; RECORD_BYTES];
    for record in 0..records {
        stage.append(topic, record % partitions, 1_700_000_000_000, None, Some(&value), &[])?;
    }
    Ok(stage.seal())
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let bootstrap = arguments.next().ok_or("the first argument is the bootstrap server, such as 127.0.0.1:9092")?;
    let mut options =
        Options { bootstrap, partitions: 1, seconds: 4, sizes: vec![1, 100, 2_000, 20_000], batch_bytes: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--partitions" => options.partitions = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--sizes" => options.sizes = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--batch-bytes" => options.batch_bytes = Some(value.parse()?),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}
