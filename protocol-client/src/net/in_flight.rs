//! The requests of one connection that were sent and not yet answered, oldest first.
//!
//! A broker answers a connection's requests in their order, so this is a queue and not a map: an answer that does not carry
//! the oldest request's correlation id means that the two sides no longer agree on anything, and the connection must end.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::error::Error;

/// What the answer to a request is handed to.
pub(super) type Answer = oneshot::Sender<Result<Bytes, Error>>;

/// One request that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) correlation_id: i32,
    pub(super) api: ApiKey,
    pub(super) version: i16,
    /// The connection ends when the answer is not there by then.
    pub(super) deadline: Instant,
    pub(super) answer: Answer,
    /// Gives the caller's place among the requests in flight back when the answer came. The connection's own requests have none.
    pub(super) _place: Option<OwnedSemaphorePermit>,
}

/// Shared by the two halves of a connection, which run in one task: the lock is never contended.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    queue: Mutex<VecDeque<Waiting>>,
    /// Rung when the queue stops being empty: from then on the oldest request's deadline counts.
    pub(super) started: Notify,
}

impl InFlight {
    pub(super) fn push(&self, waiting: Waiting) {
        let mut queue = self.lock();
        queue.push_back(waiting);
        if queue.len() == 1 {
            self.started.notify_one();
        }
    }

    pub(super) fn pop(&self) -> Option<Waiting> {
        self.lock().pop_front()
    }

    pub(super) fn oldest_deadline(&self) -> Option<Instant> {
        self.lock().front().map(|waiting| waiting.deadline)
    }

    pub(super) fn drain(&self) -> VecDeque<Waiting> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting>> {
        // No code panics while it holds the lock; if one did, the queue would still be whole.
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
