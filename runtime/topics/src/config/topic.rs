//! The config topic of a running worker: followed by one task, written by another, asked through a handle.

use super::changes::Changes;
use super::fold::ConfigFold;
use super::records::{self, KeyValue, RestartRequest, SessionKey, TargetState};
use super::snapshot::ConfigSnapshot;
use super::writer::{Way, Writer};
use crate::Config;
use crate::error::TopicError;
use crate::settings::ConfigTopicSettings;
use crate::setup::{self, Role};
use crate::tail::{self, Tail, Tailed};
use oncewire_client::batch::Record;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What a whole write may take, reading it back included: 30 s, as in Java.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The config topic. Clones share everything.
#[derive(Debug, Clone)]
pub struct ConfigTopic {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    tail: Tail,
    writer: Writer,
}

/// What the following task and the handles have in common.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<ConfigSnapshot>,
    changes: Changes,
}

impl Shared {
    // No code panics while it holds the lock, and it is not held over an await.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConfigTopic {
    /// Makes or checks the topic, reads it to its end, and starts to follow it.
    ///
    /// Waits while an open transaction holds the end back (with [`Isolation::Committed`](oncewire_client::reader::Isolation)),
    /// and up to 15 minutes for a cluster that does not answer; the log says so every 10 s.
    ///
    /// # Errors
    /// [`TopicError::Config`] for a topic that is not compacted only, has more than one partition, or can't be made;
    /// [`TopicError::Client`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves at most a new topic behind.
    pub async fn start(settings: ConfigTopicSettings) -> Result<Self, TopicError> {
        let ConfigTopicSettings { topic, cluster, isolation, mut producer, leader } = settings;
        setup::ensure(&cluster, &topic, Role::Config).await?;
        let mut fold = ConfigFold::new(false);
        let reader = tail::replay(&cluster, &topic.name, isolation, |records| apply(&mut fold, &records)).await?;
        fold.go_live();
        // A write that was reported as failed should not arrive afterwards.
        producer.delivery_timeout = producer.delivery_timeout.min(WRITE_TIMEOUT);
        let writer = Writer::start(&topic.name, cluster, producer, leader);
        let state = State { snapshot: Arc::new(fold.snapshot().clone()), changes: Changes::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), news: Notify::new() });
        let published = shared.clone();
        let tail = Tail::follow(reader, move |tailed| publish(&mut fold, &published, tailed));
        Ok(Self { inner: Arc::new(Inner { shared, tail, writer }) })
    }

    /// The state that was read last.
    #[must_use]
    pub fn snapshot(&self) -> Arc<ConfigSnapshot> {
        self.inner.shared.lock().snapshot.clone()
    }

    /// Returns when there are changes to take; at once when there are some already.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped. Changes go to whoever takes them first.
    pub async fn changed(&self) {
        let shared = &self.inner.shared;
        loop {
            let mut news = std::pin::pin!(shared.news.notified());
            news.as_mut().enable();
            if !shared.lock().changes.is_empty() {
                return;
            }
            news.await;
        }
    }

    /// What has changed since the last call. Take it before [`snapshot`](Self::snapshot), so that the snapshot holds it.
    #[must_use]
    pub fn take_changes(&self) -> Changes {
        std::mem::take(&mut self.inner.shared.lock().changes)
    }

    /// Reads everything that is in the topic now, also what is in transactions that are open now.
    ///
    /// # Errors
    /// [`TopicError::Timeout`]; [`TopicError::Unreadable`] when the topic can't be followed any more; [`TopicError::Closed`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn refresh(&self, timeout: Duration) -> Result<(), TopicError> {
        self.inner.tail.refresh(timeout).await
    }

    /// Takes over the leader's transactional id and fences whoever wrote with it. `Ok` at once when this worker has it, or
    /// when leaders write without transactions.
    ///
    /// # Errors
    /// [`TopicError::Privileged`]; [`TopicError::Closed`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves the claim on its way, as do all writes below.
    pub async fn claim_write_privileges(&self) -> Result<(), TopicError> {
        self.inner.writer.claim(Instant::now() + WRITE_TIMEOUT).await
    }

    /// Creates or reconfigures a connector, in the given target state or in the one that it has. A leader's write.
    ///
    /// # Errors
    /// [`TopicError::NotPrivileged`], [`TopicError::Privileged`], and where leaders write without transactions
    /// [`TopicError::Write`]; as [`refresh`](Self::refresh) when it was written but not read back: it counts all the same.
    pub async fn put_connector(
        &self,
        name: &str,
        config: &Config,
        state: Option<TargetState>,
    ) -> Result<(), TopicError> {
        // The state first: a connector must not start for a moment in the one that it should not have (KIP-980).
        let mut batch: Vec<KeyValue> = state.map(|state| records::target_state(name, state)).into_iter().collect();
        batch.push(records::connector(name, config));
        self.write_and_read(batch).await
    }

    /// Removes a connector and its target state. A leader's write.
    ///
    /// # Errors
    /// As [`put_connector`](Self::put_connector).
    pub async fn remove_connector(&self, name: &str) -> Result<(), TopicError> {
        self.write_and_read(vec![records::connector_tombstone(name), records::target_state_tombstone(name)]).await
    }

    /// Writes the configs of all of a connector's tasks, and then that they are complete. A leader's write.
    ///
    /// # Errors
    /// As [`put_connector`](Self::put_connector). Without the second part readers keep the tasks that they knew.
    pub async fn put_task_configs(&self, connector: &str, tasks: &[Config]) -> Result<(), TopicError> {
        let deadline = Instant::now() + WRITE_TIMEOUT;
        self.read(deadline).await?;
        let numbered = (0_u32..).zip(tasks);
        let batch: Vec<KeyValue> = numbered.map(|(task, config)| records::task(connector, task, config)).collect();
        let count = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        if !batch.is_empty() {
            self.inner.writer.write(Way::Privileged, batch, deadline).await?;
            self.read(deadline).await?;
        }
        self.inner.writer.write(Way::Privileged, vec![records::commit(connector, count)], deadline).await?;
        self.read(deadline).await
    }

    /// Says what a connector should do. Any worker's write; not read back.
    ///
    /// # Errors
    /// [`TopicError::Write`], [`TopicError::Timeout`], [`TopicError::Closed`].
    pub async fn put_target_state(&self, connector: &str, state: TargetState) -> Result<(), TopicError> {
        let batch = vec![records::target_state(connector, state)];
        self.inner.writer.write(Way::Plain, batch, Instant::now() + WRITE_TIMEOUT).await
    }

    /// Says how many tasks may write from now on, after those before were fenced (KIP-618). A leader's write.
    ///
    /// # Errors
    /// As [`put_connector`](Self::put_connector).
    pub async fn put_task_count(&self, connector: &str, tasks: u32) -> Result<(), TopicError> {
        self.write_and_read(vec![records::task_count(connector, tasks)]).await
    }

    /// Gives all workers a new key for the requests among them (KIP-507). A leader's write.
    ///
    /// # Errors
    /// As [`put_connector`](Self::put_connector).
    pub async fn put_session_key(&self, key: &SessionKey) -> Result<(), TopicError> {
        self.write_and_read(vec![records::session_key(key)]).await
    }

    /// Tells all workers to restart a connector, its tasks, or both (KIP-745). A leader's write.
    ///
    /// # Errors
    /// As [`put_connector`](Self::put_connector).
    pub async fn put_restart(&self, request: &RestartRequest) -> Result<(), TopicError> {
        self.write_and_read(vec![records::restart(request)]).await
    }

    /// Tells all workers to set a logger's level (KIP-976). Any worker's write; not read back.
    ///
    /// # Errors
    /// As [`put_target_state`](Self::put_target_state).
    pub async fn put_logger_level(&self, namespace: &str, level: &str) -> Result<(), TopicError> {
        let batch = vec![records::logger_level(namespace, level)];
        self.inner.writer.write(Way::Plain, batch, Instant::now() + WRITE_TIMEOUT).await
    }

    /// Ends both tasks after the writes that wait, and waits for them.
    ///
    /// # Cancel safety
    /// Dropping the future leaves them ending.
    pub async fn close(&self) {
        self.inner.writer.close().await;
        self.inner.tail.close().await;
    }

    async fn write_and_read(&self, batch: Vec<KeyValue>) -> Result<(), TopicError> {
        let deadline = Instant::now() + WRITE_TIMEOUT;
        self.inner.writer.write(Way::Privileged, batch, deadline).await?;
        self.read(deadline).await
    }

    async fn read(&self, deadline: Instant) -> Result<(), TopicError> {
        self.refresh(deadline.saturating_duration_since(Instant::now())).await
    }
}

fn apply(fold: &mut ConfigFold, records: &[Record]) {
    for record in records {
        fold.apply(record.offset, record.key.as_deref(), record.value.as_deref());
    }
}

/// Makes what was read visible to all.
fn publish(fold: &mut ConfigFold, shared: &Shared, tailed: Tailed) {
    let changes = match tailed {
        Tailed::Records(records) => {
            apply(fold, &records);
            fold.take_changes()
        }
        Tailed::Trouble(cause) => Changes { trouble: Some(cause), ..Changes::default() },
    };
    let snapshot = Arc::new(fold.snapshot().clone());
    let mut state = shared.lock();
    state.snapshot = snapshot;
    state.changes.merge(changes);
    drop(state);
    shared.news.notify_waiters();
}
