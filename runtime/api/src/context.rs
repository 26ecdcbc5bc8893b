//! What the worker hands to a connector and to a task: who they are, the stored offsets, the stop signal, transactions.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{SourceOffset, SourcePartition, TaskError, TransactionContext};

/// The side of a stop signal that asks. Dropping it asks too: a worker that is gone wants nobody to go on.
#[derive(Debug)]
pub struct StopTrigger(watch::Sender<bool>);

impl StopTrigger {
    /// Asks to stop; more than once is the same.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Another receiver of the same signal.
    pub fn signal(&self) -> StopSignal {
        StopSignal(self.0.subscribe())
    }
}

/// The side of a stop signal that is asked.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    /// Whether stop was asked for.
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until stop is asked for; returns at once when it was already.
    ///
    /// # Cancel safety
    /// May be dropped at any time, so it is right in a `select!`.
    pub async fn stopped(&self) {
        let mut receiver = self.0.clone();
        // An error says that the trigger is gone, which asks to stop too.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }
}

/// A stop signal: who asks, and who is asked.
pub fn stop_signal() -> (StopTrigger, StopSignal) {
    let (sender, receiver) = watch::channel(false);
    (StopTrigger(sender), StopSignal(receiver))
}

/// Reads the offsets that were committed for a connector; the worker implements it.
#[async_trait]
pub trait OffsetReader: Send + Sync {
    /// The stored offset of each partition, in the same order; `None` where there is none.
    ///
    /// # Errors
    /// [`TaskError`] when the store cannot be read, or the task is being stopped.
    async fn offsets(&self, partitions: &[SourcePartition]) -> Result<Vec<Option<SourceOffset>>, TaskError>;
}

/// What a task is given at its start.
#[derive(Clone)]
pub struct TaskContext {
    connector: Arc<str>,
    task: u32,
    offsets: Arc<dyn OffsetReader>,
    stop: StopSignal,
    transaction: Option<TransactionContext>,
}

impl TaskContext {
    /// For the worker, and for the tests of a connector.
    pub fn new(
        connector: impl Into<Arc<str>>,
        task: u32,
        offsets: Arc<dyn OffsetReader>,
        stop: StopSignal,
        transaction: Option<TransactionContext>,
    ) -> Self {
        Self { connector: connector.into(), task, offsets, stop, transaction }
    }

    /// The name of the connector.
    pub fn connector(&self) -> &str {
        &self.connector
    }

    /// The number of the task, from 0.
    pub fn task(&self) -> u32 {
        self.task
    }

    /// The signal on which `poll` must return soon. A `poll` that waits for its source waits for this as well.
    pub fn stop(&self) -> &StopSignal {
        &self.stop
    }

    /// Present when `transaction.boundary=connector`.
    pub fn transaction(&self) -> Option<&TransactionContext> {
        self.transaction.as_ref()
    }

    /// The stored offset of one partition; `None` when there is none.
    ///
    /// # Errors
    /// As [`OffsetReader::offsets`].
    pub async fn offset(&self, partition: &SourcePartition) -> Result<Option<SourceOffset>, TaskError> {
        let mut offsets = self.offsets.offsets(std::slice::from_ref(partition)).await?;
        Ok(offsets.pop().flatten())
    }

    /// The stored offset of each partition, in the same order.
    ///
    /// # Errors
    /// As [`OffsetReader::offsets`].
    pub async fn offsets(&self, partitions: &[SourcePartition]) -> Result<Vec<Option<SourceOffset>>, TaskError> {
        self.offsets.offsets(partitions).await
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskContext({}-{})", self.connector, self.task)
    }
}

/// What a connector may ask of its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectorRequest {
    /// The source has changed: ask for task configurations again.
    ReconfigureTasks,
    /// The connector cannot go on; the text is shown to the operator.
    Fail(String),
}

/// What a connector is given at its start.
#[derive(Clone)]
pub struct ConnectorContext {
    connector: Arc<str>,
    request: Arc<dyn Fn(ConnectorRequest) + Send + Sync>,
}

impl ConnectorContext {
    /// For the worker; `request` must not block.
    pub fn new(connector: impl Into<Arc<str>>, request: impl Fn(ConnectorRequest) + Send + Sync + 'static) -> Self {
        Self { connector: connector.into(), request: Arc::new(request) }
    }

    /// The name of the connector.
    pub fn connector(&self) -> &str {
        &self.connector
    }

    /// Asks something of the worker.
    pub fn request(&self, request: ConnectorRequest) {
        (self.request)(request);
    }
}

impl fmt::Debug for ConnectorContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectorContext({})", self.connector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_reaches_those_who_wait_and_those_who_come_later() {
        let (trigger, signal) = stop_signal();
        assert!(!signal.is_stopped());
        let waiting = signal.clone();
        let ((), ()) = tokio::join!(waiting.stopped(), async { trigger.stop() });
        assert!(signal.is_stopped());
        signal.stopped().await;
    }

    #[tokio::test]
    async fn a_trigger_that_is_gone_asks_to_stop() {
        let (trigger, signal) = stop_signal();
        drop(trigger);
        signal.stopped().await;
        assert!(signal.is_stopped());
    }
}
