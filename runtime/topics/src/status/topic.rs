//! The status topic of a running worker. Telling a status never waits: it is queued, and one task writes what waits.
//!
//! What is asked for is what was read from the topic, so a status that was just told is there a moment later.

use super::fold::{Removed, StatusFold, TopicStatus};
use super::outbox::{Outbox, Safe};
use super::records::{self, Status};
use super::sender;
use crate::clock::now_ms;
use crate::error::TopicError;
use crate::settings::StatusTopicSettings;
use crate::setup::{self, Role};
use crate::tail::{self, Tail, Tailed};
use oncewire_client::batch::Record;
use oncewire_client::producer::PlainProducer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long the producer may try to write one batch by itself, before the queue decides whether it still matters: 10 s.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The status topic. Clones share everything.
#[derive(Debug, Clone)]
pub struct StatusTopic {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    tail: Tail,
    stop: watch::Sender<bool>,
    sender: Mutex<Option<JoinHandle<()>>>,
}

/// What the two tasks and the handles have in common.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// The queue has changed.
    moved: Notify,
}

#[derive(Debug, Default)]
pub(super) struct State {
    fold: StatusFold,
    pub(super) outbox: Outbox,
}

impl Shared {
    // No code panics while it holds the lock, and it is not held over an await.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the queue is as wanted. Cancel safe.
    pub(super) async fn wait(&self, is_wanted: impl Fn(&Outbox) -> bool) {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if is_wanted(&self.lock().outbox) {
                return;
            }
            moved.await;
        }
    }

    /// The writes on their way have ended; those of `failed` may be tried again.
    pub(super) fn sent(&self, failed: &[String]) {
        let mut state = self.lock();
        let State { fold, outbox } = &mut *state;
        outbox.ended(failed, |key| cached(fold, key).cloned());
        drop(state);
        self.moved.notify_waiters();
    }

    fn read(&self, records: &[Record]) {
        let mut state = self.lock();
        let State { fold, outbox } = &mut *state;
        for record in records {
            match fold.take(record.key.as_deref(), record.value.as_deref()) {
                Removed::Nothing => {}
                Removed::Task(connector, task) => outbox.deleted(&records::task_key(&connector, task)),
                Removed::Connector(connector, tasks) => {
                    outbox.deleted(&records::connector_key(&connector));
                    tasks.iter().for_each(|task| outbox.deleted(&records::task_key(&connector, *task)));
                }
            }
        }
    }
}

/// What the topic says of a key.
fn cached<'a>(fold: &'a StatusFold, key: &str) -> Option<&'a Status> {
    match records::subject(key) {
        Ok(records::Subject::Connector(connector)) => fold.connector(connector),
        Ok(records::Subject::Task(connector, task)) => fold.task(connector, task),
        _ => None,
    }
}

impl StatusTopic {
    /// Makes or checks the topic, reads it to its end, and starts to follow it.
    ///
    /// # Errors
    /// [`TopicError::Config`] for a topic that is not compacted only or can't be made; [`TopicError::Client`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves at most a new topic behind.
    pub async fn start(settings: StatusTopicSettings) -> Result<Self, TopicError> {
        let StatusTopicSettings { topic, cluster, isolation, mut producer } = settings;
        setup::ensure(&cluster, &topic, Role::Status).await?;
        let shared = Arc::new(Shared::default());
        let reader = tail::replay(&cluster, &topic.name, isolation, |records| shared.read(&records)).await?;
        let followed = shared.clone();
        let tail = Tail::follow(reader, move |tailed| match tailed {
            Tailed::Records(records) => followed.read(&records),
            // Logged by the tail; statuses that grow old stop nobody.
            Tailed::Trouble(_) => {}
        });
        producer.delivery_timeout = producer.delivery_timeout.min(ATTEMPT_TIMEOUT);
        let producer = PlainProducer::new(cluster, producer);
        let (stop, stopped) = watch::channel(false);
        let sender = tokio::spawn(sender::run(topic.name.as_str().into(), producer, shared.clone(), stopped));
        Ok(Self { inner: Arc::new(Inner { shared, tail, stop, sender: Mutex::new(Some(sender)) }) })
    }

    /// Tells a connector's status.
    pub fn put_connector(&self, connector: &str, status: &Status) {
        self.put(records::connector_key(connector), status, Safe::No);
    }

    /// Tells a connector's status, unless another worker of a later generation has told one.
    pub fn put_connector_safe(&self, connector: &str, status: &Status) {
        self.put(records::connector_key(connector), status, Safe::Yes);
    }

    /// Tells a task's status.
    pub fn put_task(&self, connector: &str, task: u32, status: &Status) {
        self.put(records::task_key(connector, task), status, Safe::No);
    }

    /// Tells a task's status, unless another worker of a later generation has told one.
    pub fn put_task_safe(&self, connector: &str, task: u32, status: &Status) {
        self.put(records::task_key(connector, task), status, Safe::Yes);
    }

    /// Removes a connector's status, and for readers those of its tasks; their records need [`delete_task`](Self::delete_task).
    pub fn delete_connector(&self, connector: &str) {
        self.queue(|outbox| outbox.delete(records::connector_key(connector)));
    }

    /// Removes a task's status.
    pub fn delete_task(&self, connector: &str, task: u32) {
        self.queue(|outbox| outbox.delete(records::task_key(connector, task)));
    }

    /// A connector's status.
    #[must_use]
    pub fn connector(&self, connector: &str) -> Option<Status> {
        self.inner.shared.lock().fold.connector(connector).cloned()
    }

    /// A task's status.
    #[must_use]
    pub fn task(&self, connector: &str, task: u32) -> Option<Status> {
        self.inner.shared.lock().fold.task(connector, task).cloned()
    }

    /// The statuses of a connector's tasks.
    #[must_use]
    pub fn tasks(&self, connector: &str) -> BTreeMap<u32, Status> {
        self.inner.shared.lock().fold.tasks(connector).map(|(task, status)| (task, status.clone())).collect()
    }

    /// Whether the last worker that had a task told that it has stopped it; see [`StatusFold::is_given_up`].
    #[must_use]
    pub fn is_given_up(&self, connector: &str, task: u32) -> bool {
        self.inner.shared.lock().fold.is_given_up(connector, task)
    }

    /// The connectors that have a status.
    #[must_use]
    pub fn connectors(&self) -> BTreeSet<String> {
        self.inner.shared.lock().fold.connectors().map(str::to_owned).collect()
    }

    /// Tells that a connector uses a topic (KIP-558). Nothing is written when that is known, so it may be called often.
    pub fn put_topic(&self, connector: &str, task: u32, topic: &str) {
        let key = records::topic_key(connector, topic);
        let mut state = self.inner.shared.lock();
        let is_known = match state.outbox.newest(&key) {
            Some(write) => write.value.is_some(),
            None => state.fold.topic(connector, topic).is_some(),
        };
        if !is_known {
            let value = records::topic(connector, task, topic, now_ms());
            state.outbox.put_topic(key, Some(value));
            drop(state);
            self.inner.shared.moved.notify_waiters();
        }
    }

    /// The topics that a connector has used, with the task that did so first.
    #[must_use]
    pub fn topics(&self, connector: &str) -> BTreeMap<String, TopicStatus> {
        self.inner.shared.lock().fold.topics(connector).map(|(topic, status)| (topic.to_owned(), status)).collect()
    }

    /// Forgets the topics of a connector.
    pub fn delete_topics(&self, connector: &str) {
        let mut state = self.inner.shared.lock();
        let State { fold, outbox } = &mut *state;
        for (topic, _) in fold.topics(connector) {
            outbox.put_topic(records::topic_key(connector, topic), None);
        }
        drop(state);
        self.inner.shared.moved.notify_waiters();
    }

    /// Waits until everything that was told is in the topic, or was given up.
    ///
    /// # Errors
    /// [`TopicError::Timeout`]; what waits goes on waiting.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn flush(&self, patience: Duration) -> Result<(), TopicError> {
        let late = |_| TopicError::Timeout { what: "writing the statuses that wait".to_owned(), after: patience };
        timeout(patience, self.inner.shared.wait(Outbox::is_empty)).await.map_err(late)
    }

    /// Reads everything that is in the topic now.
    ///
    /// # Errors
    /// As [`ConfigTopic::refresh`](crate::ConfigTopic::refresh).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn refresh(&self, timeout: Duration) -> Result<(), TopicError> {
        self.inner.tail.refresh(timeout).await
    }

    /// Writes what waits, within `patience`; then ends both tasks and waits for them.
    ///
    /// # Cancel safety
    /// Dropping the future leaves them ending, or running when it still wrote.
    pub async fn close(&self, patience: Duration) {
        if let Err(error) = self.flush(patience).await {
            tracing::warn!("statuses are left unwritten at the end: {error}");
        }
        self.inner.stop.send_replace(true);
        let sender = self.inner.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender
            && let Err(error) = sender.await
        {
            tracing::error!("the task that writes to the status topic ended badly: {error}");
        }
        self.inner.tail.close().await;
    }

    fn put(&self, key: String, status: &Status, safe: Safe) {
        let mut state = self.inner.shared.lock();
        let State { fold, outbox } = &mut *state;
        let value = Some(records::status(status));
        let known = cached(fold, &key);
        outbox.put(key, value, status, known, safe);
        drop(state);
        self.inner.shared.moved.notify_waiters();
    }

    fn queue(&self, change: impl FnOnce(&mut Outbox)) {
        change(&mut self.inner.shared.lock().outbox);
        self.inner.shared.moved.notify_waiters();
    }
}
