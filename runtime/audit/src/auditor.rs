//! The thin reader behind the checkers: takes the ends of the topic, reads it at both isolation levels up to there, and asks about what is open.
//!
//! The ends are taken once, last stable offsets first, so both passes speak of the same stretch of log while others go on writing.
//! A reader at read_committed waits for open transactions; the auditor must not, so it stops at the last stable offset itself.
//! The two topics' ends are not one moment: the verdict on offsets holds only once the writer has stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use oncewire_client::admin::{Admin, OffsetSpec};
use oncewire_client::batch::Record;
use oncewire_client::cluster::Cluster;
use oncewire_client::error::Error;
use oncewire_client::reader::{Isolation, LogReader, ReaderEvent, ReaderOptions};
use tokio::time::Instant;

use crate::checker::{Check, Checker};
use crate::finding::Place;
use crate::offsets::SourceOffsets;
use crate::report::{OffsetsReport, OpenProducer, OpenTransaction, RecordCounts, Report};

/// What to audit.
#[derive(Clone, Debug)]
pub struct AuditPlan {
    /// The topic.
    pub topic: String,
    /// What its records are held against.
    pub check: Check,
    /// Whose offsets are compared with the data.
    pub offsets: Option<OffsetsPlan>,
    /// How long the whole audit may take.
    pub timeout: Duration,
}

/// Where one connector's source offsets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetsPlan {
    /// The offsets topic.
    pub topic: String,
    /// The connector's name.
    pub connector: String,
}

/// How far an audit has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditProgress {
    /// Offsets read so far, in all passes.
    pub done: u64,
    /// Offsets to read, in all passes.
    pub total: u64,
}

/// Why there is no verdict.
#[derive(Debug)]
pub enum AuditError {
    /// A broker could not be reached, or refused.
    Client {
        /// What the auditor wanted.
        wanted: String,
        /// What went wrong.
        source: Error,
    },
    /// The file that the records are held against cannot be read.
    File {
        /// Its path.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The topic could not be read to its end in time.
    TimedOut {
        /// The topic.
        topic: String,
        /// How long was allowed.
        timeout: Duration,
        /// Partition, position reached, and where it should end.
        behind: (i32, i64, i64),
    },
}

impl fmt::Display for AuditError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::Client { wanted, source } => write!(formatter, "cannot {wanted}: {source}"),
            AuditError::File { path, source } => write!(formatter, "cannot read {}: {source}", path.display()),
            AuditError::TimedOut { topic, timeout, behind: (partition, position, end) } => write!(
                formatter,
                "reading {topic} took more than {} s: partition {partition} was read to offset {position} of {end}; allow more time",
                timeout.as_secs()
            ),
        }
    }
}

impl std::error::Error for AuditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AuditError::Client { source, .. } => Some(source),
            AuditError::File { source, .. } => Some(source),
            AuditError::TimedOut { .. } => None,
        }
    }
}

/// Reads what the plan names and gives the verdict.
///
/// `on_progress` is called after each fetched stretch of records.
///
/// # Errors
/// See [`AuditError`]; a topic that does not exist is the client's [`Error::UnknownTopic`].
///
/// # Cancel safety
/// Dropping the future stops the audit; it changes nothing on the cluster.
pub async fn audit(
    cluster: &Cluster,
    plan: &AuditPlan,
    on_progress: impl FnMut(AuditProgress),
) -> Result<Report, AuditError> {
    let admin = Admin::new(cluster.clone());
    let ends = take_ends(&admin, &plan.topic).await?;
    let offsets_ends = match &plan.offsets {
        Some(offsets) => Some(take_ends(&admin, &offsets.topic).await?),
        None => None,
    };
    let offsets_total = offsets_ends.iter().flatten().map(|(_, ends)| ends.stable_span()).sum::<u64>();
    let total = ends.values().map(|ends| ends.stable_span() + ends.span()).sum::<u64>() + offsets_total;
    let deadline = Instant::now() + plan.timeout;
    let mut pass = Pass { cluster, timeout: plan.timeout, deadline, done: 0, total, on_progress };

    let partitions = i32::try_from(ends.len()).unwrap_or(i32::MAX);
    let mut checker = Checker::open(&plan.check, partitions).map_err(|source| plan.check.file_error(source))?;
    let mut counts = RecordCounts::default();
    pass.read(&plan.topic, Isolation::Committed, until(&ends, |ends| ends.last_stable), |partition, record| {
        counts.visible += 1;
        // The file is read here, between two fetches: a few hundred KiB at a time, and the auditor has nothing better to do.
        checker
            .observe(Place { partition, offset: record.offset }, record.value.as_deref())
            .map_err(|source| plan.check.file_error(source))
    })
    .await?;
    pass.read(&plan.topic, Isolation::Uncommitted, until(&ends, |ends| ends.high_watermark), |partition, record| {
        counts.in_log += 1;
        counts.undecided += u64::from(ends.get(&partition).is_some_and(|ends| record.offset >= ends.last_stable));
        Ok(())
    })
    .await?;
    counts.aborted = counts.in_log.saturating_sub(counts.undecided).saturating_sub(counts.visible);
    counts.without_record = ends.values().map(Ends::span).sum::<u64>().saturating_sub(counts.in_log);

    let content = checker.finish().map_err(|source| plan.check.file_error(source))?;
    let offsets = match (&plan.offsets, offsets_ends) {
        (Some(offsets), Some(ends)) => {
            let folded = fold_offsets(&mut pass, offsets, &ends).await?;
            Some(OffsetsReport {
                topic: offsets.topic.clone(),
                connector: offsets.connector.clone(),
                records: folded.records(),
                malformed: folded.malformed(),
                checks: folded.check(&content.progress),
            })
        }
        _ => None,
    };
    let open = open_transactions(&admin, &plan.topic, &ends).await;
    Ok(Report { topic: plan.topic.clone(), partitions, records: counts, content, open, offsets })
}

/// The ends of one partition.
#[derive(Clone, Copy, Debug)]
struct Ends {
    log_start: i64,
    last_stable: i64,
    high_watermark: i64,
}

impl Ends {
    fn span(&self) -> u64 {
        u64::try_from(self.high_watermark - self.log_start).unwrap_or(0)
    }

    fn stable_span(&self) -> u64 {
        u64::try_from(self.last_stable - self.log_start).unwrap_or(0)
    }
}

async fn take_ends(admin: &Admin, topic: &str) -> Result<BTreeMap<i32, Ends>, AuditError> {
    let list = async |spec, isolation| {
        admin.list_offsets(topic, None, spec, isolation).await.map_err(|source| {
            let wanted = format!("look up the ends of topic {topic}");
            AuditError::Client { wanted, source }
        })
    };
    // In this order each figure is at least the one before it, whatever is written meanwhile.
    let log_start = list(OffsetSpec::Earliest, Isolation::Uncommitted).await?;
    let last_stable = list(OffsetSpec::Latest, Isolation::Committed).await?;
    let high_watermark = list(OffsetSpec::Latest, Isolation::Uncommitted).await?;
    let ends = log_start.into_iter().filter_map(|(partition, log_start)| {
        let last_stable = last_stable.get(&partition)?.offset;
        let high_watermark = high_watermark.get(&partition)?.offset;
        Some((partition, Ends { log_start: log_start.offset, last_stable, high_watermark }))
    });
    Ok(ends.collect())
}

/// Where to stop, for each partition that holds anything.
fn until(ends: &BTreeMap<i32, Ends>, end: impl Fn(&Ends) -> i64) -> BTreeMap<i32, i64> {
    ends.iter()
        .map(|(&partition, ends)| (partition, ends.log_start, end(ends)))
        .filter(|(_, start, end)| start < end)
        .map(|(partition, _, end)| (partition, end))
        .collect()
}

/// One audit's passes over topics share a deadline and a progress count.
struct Pass<'a, F> {
    cluster: &'a Cluster,
    timeout: Duration,
    deadline: Instant,
    done: u64,
    total: u64,
    on_progress: F,
}

impl<F: FnMut(AuditProgress)> Pass<'_, F> {
    /// Reads each partition of `ends` from its start up to its end, exclusive.
    async fn read(
        &mut self,
        topic: &str,
        isolation: Isolation,
        ends: BTreeMap<i32, i64>,
        mut on_record: impl FnMut(i32, Record) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        if ends.is_empty() {
            return Ok(());
        }
        let failed = |source| AuditError::Client { wanted: format!("read topic {topic}"), source };
        let options =
            ReaderOptions { isolation, partitions: Some(ends.keys().copied().collect()), ..ReaderOptions::default() };
        let mut reader = LogReader::open(self.cluster, topic, options).await.map_err(failed)?;
        let before = self.done;
        let starts = reader.positions();
        loop {
            let positions = reader.positions();
            let position = |partition| positions.get(partition).copied().unwrap_or(0);
            let read = ends.iter().map(|(partition, &end)| {
                let start = starts.get(partition).copied().unwrap_or(0);
                u64::try_from(position(partition).min(end) - start).unwrap_or(0)
            });
            self.done = before + read.sum::<u64>();
            (self.on_progress)(AuditProgress { done: self.done.min(self.total), total: self.total });
            let Some((&partition, &end)) = ends.iter().find(|&(partition, &end)| position(partition) < end) else {
                return Ok(());
            };
            let Ok(event) = tokio::time::timeout_at(self.deadline, reader.next()).await else {
                let behind = (partition, position(&partition), end);
                return Err(AuditError::TimedOut { topic: topic.to_owned(), timeout: self.timeout, behind });
            };
            if let ReaderEvent::Records { partition, records } = event.map_err(failed)? {
                let end = ends.get(&partition).copied().unwrap_or(i64::MIN);
                for record in records.into_iter().filter(|record| record.offset < end) {
                    on_record(partition, record)?;
                }
            }
        }
    }
}

async fn fold_offsets<F: FnMut(AuditProgress)>(
    pass: &mut Pass<'_, F>,
    plan: &OffsetsPlan,
    ends: &BTreeMap<i32, Ends>,
) -> Result<SourceOffsets, AuditError> {
    let mut folded = SourceOffsets::new(&plan.connector);
    pass.read(&plan.topic, Isolation::Committed, until(ends, |ends| ends.last_stable), |_, record| {
        folded.apply(record.key.as_deref(), record.value.as_deref());
        Ok(())
    })
    .await?;
    Ok(folded)
}

/// The partitions whose readers wait, with the producers that make them wait where the broker tells.
async fn open_transactions(admin: &Admin, topic: &str, ends: &BTreeMap<i32, Ends>) -> Vec<OpenTransaction> {
    let mut open = Vec::new();
    for (&partition, ends) in ends.iter().filter(|(_, ends)| ends.last_stable < ends.high_watermark) {
        // Asking needs a permission of its own and a broker of 2.8 or later: without an answer the report names offsets only.
        let active = admin.describe_producers(topic, partition).await.unwrap_or_default();
        let producers = active.into_iter().filter_map(|producer| {
            let first_offset = producer.txn_start_offset?;
            Some(OpenProducer { producer_id: producer.producer_id, producer_epoch: producer.epoch, first_offset })
        });
        open.push(OpenTransaction {
            partition,
            last_stable_offset: ends.last_stable,
            high_watermark: ends.high_watermark,
            producers: producers.collect(),
        });
    }
    open
}
