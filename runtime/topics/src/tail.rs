//! Following a topic from its beginning for as long as the worker runs.
//!
//! One task owns the reader and gives all records to a sink, in order. Who needs to know what was written until now asks for a
//! fresh end: the log's present one at READ_UNCOMMITTED, so that an open transaction makes everybody wait instead of being
//! overlooked. Several who ask at once share one look-up.
//!
//! Connections that were lost are made again by the reader. What it cannot mend (permission lost, topic deleted, corrupt
//! records) is told to the sink and to all who ask, and tried again at a slow pace.

use crate::error::TopicError;
use oncewire_client::batch::Record;
use oncewire_client::cluster::Cluster;
use oncewire_client::complaint::Complaint;
use oncewire_client::error::Error;
use oncewire_client::reader::{Isolation, LogReader, ReaderEvent, ReaderOptions};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long the start waits for a cluster that does not answer: 15 minutes, as Java's.
const START_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The pause between two such attempts.
const START_PAUSE: Duration = Duration::from_secs(10);
/// While the first read waits, the log says for what, this often.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after what the reader could not mend.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
/// Requests for a fresh end that wait in the channel; further ones wait outside.
const ASKS_MAX: usize = 64;
/// How long an idle topic's fetch may be held back by the broker.
const FETCH_WAIT: Duration = Duration::from_millis(500);

/// What the sink is given.
pub(crate) enum Tailed {
    /// Records of one partition.
    Records(Vec<Record>),
    /// It cannot be read any further, for this reason.
    Trouble(String),
}

/// The answer to one who asked for a fresh end: the reason why there is none.
type Ask = oneshot::Sender<Result<(), String>>;

/// A topic that is being followed.
#[derive(Debug)]
pub(crate) struct Tail {
    topic: String,
    asks: mpsc::Sender<Ask>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Opens the topic and reads what is in it.
pub(crate) async fn replay(
    cluster: &Cluster,
    topic: &str,
    isolation: Isolation,
    mut on_records: impl FnMut(Vec<Record>),
) -> Result<LogReader, TopicError> {
    let started = Instant::now();
    let mut reader = loop {
        let options = ReaderOptions { isolation, max_wait: FETCH_WAIT, ..ReaderOptions::default() };
        match LogReader::open(cluster, topic, options).await {
            Ok(reader) => break reader,
            Err(error) if error.retriable() && started.elapsed() + START_PAUSE < START_PATIENCE => {
                tracing::warn!(topic, "topic can't be opened yet: {error}");
                sleep(START_PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    };
    loop {
        let deadline = Instant::now() + REPORT_INTERVAL;
        match reader.read_to_end(deadline, |_partition, records| on_records(records)).await {
            Ok(()) => break,
            // Its words say which partition waits, and whether an open transaction holds it back.
            Err(error) if error.retriable() => tracing::warn!("still waiting: {error}"),
            Err(error) => return Err(error.into()),
        }
        // A connection whose patience is used up fails at once.
        sleep_until(deadline.min(Instant::now() + TROUBLE_PAUSE)).await;
    }
    tracing::info!(topic, after_ms = started.elapsed().as_millis(), "topic was read to its end");
    Ok(reader)
}

impl Tail {
    /// Starts the task that goes on where the replay ended.
    pub(crate) fn follow(reader: LogReader, sink: impl FnMut(Tailed) + Send + 'static) -> Self {
        let topic = reader.topic().name.clone();
        let (asks, receiver) = mpsc::channel(ASKS_MAX);
        let (stop, stopped) = watch::channel(false);
        let following = Following {
            reader,
            sink,
            waiting: Vec::new(),
            queued: Vec::new(),
            trouble: Complaint::default(),
            pause: None,
        };
        let task = tokio::spawn(run(following, receiver, stopped));
        Self { topic, asks, stop, task: Mutex::new(Some(task)) }
    }

    /// Returns when everything that is in the log now was given to the sink. Cancel safe.
    pub(crate) async fn refresh(&self, patience: Duration) -> Result<(), TopicError> {
        let asked = async {
            let (ask, answer) = oneshot::channel();
            self.asks.send(ask).await.map_err(|_| TopicError::Closed)?;
            match answer.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(cause)) => Err(TopicError::Unreadable { topic: self.topic.clone(), cause }),
                Err(_) => Err(TopicError::Closed),
            }
        };
        let late =
            |_| TopicError::Timeout { what: format!("reading topic {:?} to its end", self.topic), after: patience };
        timeout(patience, asked).await.map_err(late)?
    }

    /// Ends the task and waits for it.
    pub(crate) async fn close(&self) {
        self.stop.send_replace(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(topic = self.topic, "the task that follows the topic ended badly: {error}");
        }
    }
}

struct Following<S> {
    reader: LogReader,
    sink: S,
    /// They wait for the end that was taken.
    waiting: Vec<Ask>,
    /// They came after it was taken, and wait for the next one.
    queued: Vec<Ask>,
    /// Why it can't be read, as far as that was told.
    trouble: Complaint,
    /// When the next attempt is due after a failure.
    pause: Option<Instant>,
}

/// What one step came to.
enum Step {
    Marked(Result<(), Error>),
    Read(Result<ReaderEvent, Error>),
}

async fn run<S: FnMut(Tailed)>(
    mut following: Following<S>,
    mut asks: mpsc::Receiver<Ask>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let takes_end = following.takes_end();
        tokio::select! {
            biased;
            // Also when the handle is gone.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            ask = asks.recv(), if !takes_end && following.queued.len() < ASKS_MAX => match ask {
                Some(ask) => following.queued.push(ask),
                None => return,
            },
            step = following.step(takes_end) => following.stepped(step),
        }
    }
}

impl<S: FnMut(Tailed)> Following<S> {
    /// Whether the next step is to take a fresh end.
    fn takes_end(&mut self) -> bool {
        self.waiting.retain(|ask| !ask.is_closed());
        self.queued.retain(|ask| !ask.is_closed());
        self.waiting.is_empty() && !self.queued.is_empty()
    }

    async fn step(&mut self, takes_end: bool) -> Step {
        if let Some(pause) = self.pause {
            sleep_until(pause).await;
        }
        self.pause = None;
        if takes_end { Step::Marked(self.reader.mark_end().await) } else { Step::Read(self.reader.next().await) }
    }

    fn stepped(&mut self, step: Step) {
        match step {
            Step::Marked(Ok(())) => self.waiting.append(&mut self.queued),
            // Those who wait have a patience of their own.
            Step::Marked(Err(error)) if error.retriable() => {
                tracing::debug!(topic = self.reader.topic().name, "the end of the topic is not known: {error}");
                self.pause = Some(Instant::now() + TROUBLE_PAUSE);
            }
            Step::Marked(Err(error)) | Step::Read(Err(error)) => self.failed(&error),
            Step::Read(Ok(ReaderEvent::Records { records, .. })) => {
                self.mended();
                (self.sink)(Tailed::Records(records));
            }
            Step::Read(Ok(ReaderEvent::Idle)) => self.mended(),
            // No sign that anything can be read: there may be nothing to read.
            Step::Read(Ok(ReaderEvent::ReachedEnd)) => self.answer(&Ok(())),
        }
    }

    fn failed(&mut self, error: &Error) {
        self.pause = Some(Instant::now() + TROUBLE_PAUSE);
        let cause = error.to_string();
        self.waiting.append(&mut self.queued);
        self.answer(&Err(cause.clone()));
        let is_news = !self.trouble.is_on();
        if let Some(told) = self.trouble.failed(Instant::now().into_std(), &cause) {
            tracing::error!(
                topic = self.reader.topic().name,
                "the topic can't be followed{told}, trying again: {cause}"
            );
        }
        if is_news {
            (self.sink)(Tailed::Trouble(cause));
        }
    }

    fn mended(&mut self) {
        if let Some(after) = self.trouble.over(Instant::now().into_std()) {
            let (topic, after) = (&self.reader.topic().name, after.as_secs_f32());
            tracing::info!(topic, "the topic can be followed again after {after:.1} s");
        }
    }

    fn answer(&mut self, answer: &Result<(), String>) {
        for ask in self.waiting.drain(..) {
            // Who asked may have given up.
            let _ = ask.send(answer.clone());
        }
    }
}
