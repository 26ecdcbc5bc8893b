//! The driver of a reader: keeps one fetch under way at each leader and turns their answers into events.
//!
//! Everything that waits (fetches, the refresh of metadata, the look-up of an offset that fell out of range) is a boxed future in
//! `work`, so that no leader holds another back, and dropping `next` loses nothing.
//!
//! Between two calls of `next` nobody polls `work`, perhaps for hours. A fetch can stand so: its connection is the reader's alone. What
//! takes turns with others (one request for metadata at a time, one attempt to connect) is a task of its own, see [`apart`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kafka_protocol::messages::{FetchRequest, FetchResponse};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::committed::{VisibleRecords, next_fetch_offset};
use super::fetch::{self, Asked, Fetched, Refused, Told};
use super::options::{ReaderOptions, Start};
use super::partition::{Partition, earliest, fetch_timeout};
use super::{Isolation, ReaderEvent};
use crate::admin::{OffsetSpec, Question};
use crate::batch::Record;
use crate::cluster::{Call, Cluster, NodeId, Purpose, Reply, Retry, Target, TopicMetadata, Versions};
use crate::error::Error;
use crate::wire::error_code::codes;

type Work = Pin<Box<dyn Future<Output = Done> + Send>>;

/// What became of a piece of work.
enum Done {
    Fetched { node: NodeId, asked: Vec<Asked>, outcome: Result<Reply<FetchResponse>, Error> },
    Refreshed(Result<(), Error>),
    OutOfRange { partition: i32, start: Result<i64, Error> },
}

/// Fetched bytes of one partition, being given out batch by batch.
struct Buffered {
    partition: i32,
    bytes: usize,
    records: VisibleRecords,
}

/// Reads all or some partitions of one topic.
pub struct LogReader {
    cluster: Cluster,
    topic: Arc<TopicMetadata>,
    options: ReaderOptions,
    purpose: Purpose,
    partitions: BTreeMap<i32, Partition>,
    work: Vec<Work>,
    /// Work that was done before anybody waited for it; no more than one entry for each piece of work.
    done: VecDeque<Done>,
    buffered: VecDeque<Buffered>,
    buffered_bytes: usize,
    refreshing: bool,
    /// The end that was taken last was not yet reported as reached.
    end_is_due: bool,
    /// A fetch came back and nothing visible was given out since.
    quiet: bool,
}

impl LogReader {
    /// Looks up the topic, its start offsets and its present end.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; what the broker refuses; [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn open(cluster: &Cluster, topic: &str, options: ReaderOptions) -> Result<Self, Error> {
        let unknown = |topic: String| Error::UnknownTopic { topic };
        let metadata = cluster.topic(topic).await?.ok_or_else(|| unknown(topic.to_owned()))?;
        let wanted: BTreeSet<i32> = match &options.partitions {
            None => metadata.partitions.keys().copied().collect(),
            Some(partitions) => partitions.iter().copied().collect(),
        };
        if let Some(missing) = wanted.iter().find(|partition| !metadata.partitions.contains_key(partition)) {
            return Err(unknown(format!("{topic}-{missing}")));
        }
        let mut reader = Self {
            cluster: cluster.clone(),
            topic: metadata,
            purpose: cluster.fetch_purpose(),
            partitions: BTreeMap::new(),
            work: Vec::new(),
            done: VecDeque::new(),
            buffered: VecDeque::new(),
            buffered_bytes: 0,
            refreshing: false,
            end_is_due: true,
            quiet: false,
            options,
        };
        let earliest = reader.offsets(&wanted, OffsetSpec::Earliest).await?;
        let latest = reader.offsets(&wanted, OffsetSpec::Latest).await?;
        let bytes = reader.options.partition_max_bytes;
        for partition in wanted {
            let (first, end) = (offset(&earliest, partition), offset(&latest, partition));
            let position = match &reader.options.start {
                Start::Beginning => first,
                Start::End => end,
                Start::Offsets(offsets) => offsets.get(&partition).copied().unwrap_or(first),
            };
            reader.partitions.insert(partition, Partition::new(position, end, bytes));
        }
        Ok(reader)
    }

    /// The next thing that happens. Waits up to the options' `max_wait` when there is nothing.
    ///
    /// # Errors
    /// What retrying cannot mend: the topic was deleted or made anew, no permission, corrupt records. Lost connections and
    /// moved leaders are retried within `default.api.timeout.ms`; then the error is told, and whoever calls again has the reader go
    /// on as long once more. Other errors come again at the next call.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped: fetches in flight live in the reader.
    pub async fn next(&mut self) -> Result<ReaderEvent, Error> {
        loop {
            if let Some(event) = self.next_buffered()? {
                // While the caller handles these records the next fetch is under way.
                self.start_work()?;
                self.nudge().await;
                return Ok(event);
            }
            if self.end_is_due && self.reached_end() {
                self.end_is_due = false;
                return Ok(ReaderEvent::ReachedEnd);
            }
            if std::mem::take(&mut self.quiet) {
                return Ok(ReaderEvent::Idle);
            }
            self.start_work()?;
            if let Some(done) = self.wait().await {
                self.finish(done)?;
            }
        }
    }

    /// Takes the present end of every partition as the next [`ReaderEvent::ReachedEnd`].
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub async fn mark_end(&mut self) -> Result<(), Error> {
        let all: BTreeSet<i32> = self.partitions.keys().copied().collect();
        let ends = self.offsets(&all, OffsetSpec::Latest).await?;
        for (index, partition) in &mut self.partitions {
            partition.end = offset(&ends, *index);
        }
        self.end_is_due = true;
        Ok(())
    }

    /// Reads until every partition reached the end that was taken last; each batch of records goes to `on_records`.
    /// Call [`LogReader::mark_end`] first to read up to now.
    ///
    /// # Errors
    /// As [`LogReader::next`]; [`Error::Timeout`] at the deadline, naming the partitions that are behind and, where an open
    /// transaction holds them back, saying so. What was read until then was given to `on_records`; it may be called again.
    ///
    /// # Cancel safety
    /// As [`LogReader::next`]: it goes on where it stopped.
    pub async fn read_to_end(
        &mut self,
        deadline: Instant,
        mut on_records: impl FnMut(i32, Vec<Record>),
    ) -> Result<(), Error> {
        let started = Instant::now();
        while !self.reached_end() {
            match timeout_at(deadline, self.next()).await {
                Ok(Ok(ReaderEvent::Records { partition, records })) => on_records(partition, records),
                Ok(Ok(ReaderEvent::ReachedEnd | ReaderEvent::Idle)) => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let what = format!("reading topic {} to its end ({})", self.topic.name, self.lag());
                    return Err(Error::Timeout { what, after: started.elapsed(), last: None });
                }
            }
        }
        self.end_is_due = false;
        Ok(())
    }

    /// Per partition the offset that is read next; control, aborted and compacted records count as read.
    #[must_use]
    pub fn positions(&self) -> BTreeMap<i32, i64> {
        self.partitions.iter().map(|(index, partition)| (*index, partition.position)).collect()
    }

    /// Per partition the end that was taken last (READ_UNCOMMITTED).
    #[must_use]
    pub fn end_offsets(&self) -> BTreeMap<i32, i64> {
        self.partitions.iter().map(|(index, partition)| (*index, partition.end)).collect()
    }

    /// Per partition the last stable offset that the last fetch told; -1 before the first.
    #[must_use]
    pub fn last_stable_offsets(&self) -> BTreeMap<i32, i64> {
        self.partitions.iter().map(|(index, partition)| (*index, partition.last_stable_offset)).collect()
    }

    /// What it reads.
    #[must_use]
    pub fn topic(&self) -> &TopicMetadata {
        &self.topic
    }

    fn reached_end(&self) -> bool {
        self.partitions.values().all(Partition::reached_end)
    }

    fn lag(&self) -> String {
        let behind = self.partitions.iter().filter(|(_, partition)| !partition.reached_end());
        let words: Vec<String> =
            behind.map(|(index, partition)| partition.lag(*index, self.options.isolation)).collect();
        words.join("; ")
    }

    /// Ends are taken at READ_UNCOMMITTED whatever the reader's isolation: see the module above.
    async fn offsets(&mut self, partitions: &BTreeSet<i32>, spec: OffsetSpec) -> Result<BTreeMap<i32, i64>, Error> {
        let question = Question { topic: self.topic.name.clone(), spec, isolation: Isolation::Uncommitted };
        let listed = question.ask(&self.cluster, partitions.clone(), self.cluster.patience()).await?;
        Ok(listed.into_iter().map(|(partition, listed)| (partition, listed.offset)).collect())
    }

    fn next_buffered(&mut self) -> Result<Option<ReaderEvent>, Error> {
        while let Some(front) = self.buffered.front_mut() {
            let index = front.partition;
            let chunk = match front.records.next() {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => {
                    self.discard(index);
                    let peer = format!("the leader of {}-{index}", self.topic.name);
                    return Err(Error::Malformed { peer, what: error.to_string() });
                }
                None => {
                    self.buffered_bytes -= front.bytes;
                    self.buffered.pop_front();
                    continue;
                }
            };
            if let Some(partition) = self.partitions.get_mut(&index) {
                partition.position = chunk.next_offset;
            }
            if !chunk.records.is_empty() {
                self.quiet = false;
                return Ok(Some(ReaderEvent::Records { partition: index, records: chunk.records }));
            }
        }
        Ok(None)
    }

    /// Throws away what was fetched ahead of one partition; it is fetched again from its position.
    fn discard(&mut self, index: i32) {
        self.buffered.retain(|buffered| buffered.partition != index);
        self.buffered_bytes = self.buffered.iter().map(|buffered| buffered.bytes).sum();
        if let Some(partition) = self.partitions.get_mut(&index) {
            partition.fetch_offset = partition.position;
        }
    }

    /// Starts a fetch at each leader that has partitions to fetch and no fetch yet, unless enough is buffered.
    fn start_work(&mut self) -> Result<(), Error> {
        if self.buffered_bytes >= self.options.max_bytes.unsigned_abs() as usize {
            return Ok(());
        }
        let now = Instant::now();
        let mut by_leader: BTreeMap<NodeId, Vec<Asked>> = BTreeMap::new();
        let mut alone: Vec<(NodeId, Asked)> = Vec::new();
        let mut leaderless = Vec::new();
        for (&index, partition) in self.partitions.iter().filter(|(_, partition)| partition.is_ready(now)) {
            let Some((leader, leader_epoch)) = self.cluster.leader(&self.topic.name, index) else {
                leaderless.push(index);
                continue;
            };
            let (offset, max_bytes) = (partition.fetch_offset, partition.max_bytes);
            let asked = Asked { partition: index, offset, leader_epoch, max_bytes };
            match partition.alone {
                true => alone.push((leader, asked)),
                false => by_leader.entry(leader).or_default().push(asked),
            }
        }
        for (leader, asked) in by_leader {
            self.fetch(leader, asked);
        }
        for (leader, asked) in alone {
            self.fetch(leader, vec![asked]);
        }
        if !leaderless.is_empty() {
            self.refresh();
        }
        self.all_failed(
            leaderless.into_iter().map(|index| (index, self.refused(index, codes::LEADER_NOT_AVAILABLE))).collect(),
        )
    }

    fn fetch(&mut self, node: NodeId, asked: Vec<Asked>) {
        for one in &asked {
            if let Some(partition) = self.partitions.get_mut(&one.partition) {
                partition.busy = true;
            }
        }
        let (cluster, topic, options) = (self.cluster.clone(), Arc::clone(&self.topic), self.options.clone());
        let by_name = if topic.topic_id.is_nil() { fetch::VERSION_TOPIC_ID - 1 } else { i16::MAX };
        let call = Call {
            target: Target::Node(node),
            purpose: self.purpose,
            versions: Versions::at_most(by_name),
            timeout: Some(fetch_timeout(options.max_wait, cluster.config().request_timeout)),
        };
        self.work.push(Box::pin(async move {
            let build = |version| fetch::request(version, &topic.name, topic.topic_id, &asked, &options);
            let outcome = cluster.call::<FetchRequest, _>(call, build).await;
            Done::Fetched { node, asked, outcome }
        }));
    }

    fn refresh(&mut self) {
        if std::mem::replace(&mut self.refreshing, true) {
            return;
        }
        let (cluster, topic) = (self.cluster.clone(), self.topic.name.clone());
        self.work.push(apart(async move { Done::Refreshed(cluster.refresh(&[&topic]).await) }));
    }

    /// Lets all work run as far as it can now, so that requests are sent; never waits.
    async fn nudge(&mut self) {
        poll_fn(|context| {
            while let Poll::Ready(done) = poll_work(&mut self.work, context) {
                self.done.push_back(done);
            }
            Poll::Ready(())
        })
        .await;
    }

    /// The next piece of work that is done; `None` when a pause is over instead.
    async fn wait(&mut self) -> Option<Done> {
        if let Some(done) = self.done.pop_front() {
            return Some(done);
        }
        let pauses = self.partitions.values().filter(|partition| !partition.busy).filter_map(|one| one.not_before);
        let until = earliest(pauses).unwrap_or_else(|| Instant::now() + self.options.max_wait);
        if self.work.is_empty() {
            sleep_until(until).await;
            // Without partitions there is never any work: say so instead of turning for ever.
            self.quiet |= self.partitions.is_empty();
            return None;
        }
        let work = &mut self.work;
        timeout_at(until, poll_fn(|context| poll_work(work, context))).await.ok()
    }

    fn finish(&mut self, done: Done) -> Result<(), Error> {
        match done {
            Done::Fetched { node, asked, outcome } => self.fetched(node, &asked, outcome),
            Done::Refreshed(outcome) => {
                self.refreshing = false;
                self.refreshed(outcome)
            }
            Done::OutOfRange { partition, start } => match start {
                Ok(offset) => {
                    tracing::warn!(topic = %self.topic.name, partition, offset, "offset out of range; going on at the log start");
                    self.settle(partition);
                    if let Some(partition) = self.partitions.get_mut(&partition) {
                        partition.move_to(offset);
                    }
                    Ok(())
                }
                Err(error) => {
                    self.settle(partition);
                    self.failed(partition, error)
                }
            },
        }
    }

    fn refreshed(&mut self, outcome: Result<(), Error>) -> Result<(), Error> {
        match outcome {
            // Retried by the partitions that need it, each with its own patience.
            Err(error) if error.retriable() => return Ok(()),
            other => other?,
        }
        let id = self.topic.topic_id;
        match self.cluster.known_topic(&self.topic.name) {
            // Said twice by the brokers, so not a glitch of one that just started.
            None => Err(Error::UnknownTopic { topic: self.topic.name.clone() }),
            // The same name, another log: our offsets mean nothing in it.
            Some(now) if now.topic_id != id => {
                let topic = format!("{} (it was deleted and made anew while it was read)", self.topic.name);
                Err(Error::UnknownTopic { topic })
            }
            _ => Ok(()),
        }
    }

    fn fetched(
        &mut self,
        node: NodeId,
        asked: &[Asked],
        outcome: Result<Reply<FetchResponse>, Error>,
    ) -> Result<(), Error> {
        asked.iter().for_each(|one| self.settle(one.partition));
        let read = outcome.and_then(|reply| {
            fetch::read(reply.body, &self.topic.name, self.topic.topic_id)
                .map_err(|code| Error::broker("Fetch", code, self.topic.name.clone()))
        });
        let told = match read {
            Ok(told) => told,
            Err(error) => {
                tracing::debug!(%node, %error, "fetch failed");
                self.refresh();
                return self.all_failed(asked.iter().map(|one| (one.partition, error.clone())).collect());
            }
        };
        self.quiet = true;
        let mut outcome = Ok(());
        for Told { partition, result } in told {
            let Some(one) = asked.iter().find(|one| one.partition == partition) else { continue };
            match result {
                Ok(fetched) => self.take(one, fetched),
                Err(refused) => outcome = outcome.and(self.refuse(one, refused)),
            }
        }
        outcome
    }

    fn take(&mut self, asked: &Asked, fetched: Fetched) {
        let isolation = self.options.isolation;
        let Some(partition) = self.partitions.get_mut(&asked.partition) else { return };
        partition.answered(&fetched);
        if partition.fetch_offset != asked.offset {
            return; // It was moved while the fetch was under way.
        }
        let Some(next) = next_fetch_offset(&fetched.records).filter(|next| *next > asked.offset) else {
            if next_fetch_offset(&fetched.records).is_none() && self.is_drained(asked.partition) {
                self.empty(asked.partition, &fetched, isolation);
            }
            return;
        };
        partition.data_came();
        partition.fetch_offset = next;
        let bytes = fetched.records.len();
        let records = VisibleRecords::new(&fetched.records, asked.offset, isolation, fetched.aborted);
        self.buffered_bytes += bytes;
        self.buffered.push_back(Buffered { partition: asked.partition, bytes, records });
    }

    fn empty(&mut self, index: i32, fetched: &Fetched, isolation: Isolation) {
        if let Some(partition) = self.partitions.get_mut(&index) {
            partition.empty_answer(fetched, isolation);
        }
    }

    fn is_drained(&self, index: i32) -> bool {
        self.buffered.iter().all(|buffered| buffered.partition != index)
    }

    fn refuse(&mut self, asked: &Asked, refused: Refused) -> Result<(), Error> {
        let index = asked.partition;
        if refused.code == codes::OFFSET_OUT_OF_RANGE {
            let is_current = self.partitions.get(&index).is_some_and(|one| one.fetch_offset == asked.offset);
            // What was fetched ahead is still good and given out first; the fetch after it comes to the same end.
            if is_current && self.is_drained(index) {
                self.look_up_start(index);
            }
            return Ok(());
        }
        let outcome = self.failed(index, self.refused(index, refused.code));
        let is_news = refused.hint.is_some_and(|hint| self.cluster.leader_hint(&self.topic.name, index, &hint));
        match self.partitions.get_mut(&index) {
            Some(partition) if is_news => partition.retry_at_once(),
            _ => self.refresh(),
        }
        outcome
    }

    fn look_up_start(&mut self, index: i32) {
        if let Some(partition) = self.partitions.get_mut(&index) {
            partition.busy = true;
        }
        let (cluster, topic) = (self.cluster.clone(), self.topic.name.clone());
        self.work.push(apart(async move {
            let question = Question { topic, spec: OffsetSpec::Earliest, isolation: Isolation::Uncommitted };
            let asked = question.ask(&cluster, BTreeSet::from([index]), cluster.patience()).await;
            let start = asked.map(|listed| listed.get(&index).map_or(0, |listed| listed.offset));
            Done::OutOfRange { partition: index, start }
        }));
    }

    fn settle(&mut self, index: i32) {
        if let Some(partition) = self.partitions.get_mut(&index) {
            partition.busy = false;
        }
    }

    fn failed(&mut self, index: i32, error: Error) -> Result<(), Error> {
        let what = format!("reading {}-{index}", self.topic.name);
        let cluster = &self.cluster;
        let new_retry = || -> Retry { cluster.retry(what, cluster.patience()) };
        match self.partitions.get_mut(&index) {
            Some(partition) => partition.failed(error, new_retry),
            None => Ok(()),
        }
    }

    /// Each is noted, whatever becomes of the others; the first error that its partition's patience does not cover.
    fn all_failed(&mut self, failures: Vec<(i32, Error)>) -> Result<(), Error> {
        let mut outcome = Ok(());
        for (index, error) in failures {
            outcome = outcome.and(self.failed(index, error));
        }
        outcome
    }

    fn refused(&self, index: i32, code: i16) -> Error {
        self.cluster.with_user(Error::broker("Fetch", code, format!("{}-{index}", self.topic.name)))
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        self.cluster.release(self.purpose);
    }
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("topic", &self.topic.name)
            .field("partitions", &self.partitions)
            .field("buffered_bytes", &self.buffered_bytes)
            .finish_non_exhaustive()
    }
}

fn offset(offsets: &BTreeMap<i32, i64>, partition: i32) -> i64 {
    offsets.get(&partition).copied().unwrap_or(0)
}

/// Work that goes on while nobody polls it, so that it never stops with a turn in its hands. It ends with the reader.
fn apart(work: impl Future<Output = Done> + Send + 'static) -> Work {
    // The set aborts its task when it is dropped.
    let mut task = JoinSet::new();
    task.spawn(work);
    Box::pin(async move {
        match task.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime ends, and with it whoever waits here.
            _ => std::future::pending().await,
        }
    })
}

fn poll_work(work: &mut Vec<Work>, context: &mut Context<'_>) -> Poll<Done> {
    for index in 0..work.len() {
        if let Poll::Ready(done) = work[index].as_mut().poll(context) {
            // Dropping a finished future is what `swap_remove` leaves us to do.
            drop(work.swap_remove(index));
            return Poll::Ready(done);
        }
    }
    Poll::Pending
}
