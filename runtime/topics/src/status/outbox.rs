//! Statuses that wait to be written: of each key the newest, so that no burst and no outage makes the queue longer than the
//! cluster has connectors and tasks. Pure.
//!
//! Safe writes (failures, and what a worker tells when it gives something up) must not hide what a later owner says: they are
//! left out when another worker of a later generation has spoken. The same is asked again before a write that failed is tried
//! once more, and an obsolete one is dropped then: the status was deleted, the group has moved on, or something newer waits.

use super::records::Status;
use std::collections::{BTreeMap, HashMap};

/// What a write is about, beyond its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A connector's or a task's status, or its tombstone.
    Status {
        /// The generation of the group when it was told.
        generation: i32,
        /// For a safe write, whom it must not contradict.
        safe: Option<Status>,
    },
    /// A topic's record; never obsolete.
    Topic,
}

/// One record to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) origin: Origin,
    /// How many statuses of its key had been deleted when it was told.
    deletions: u64,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: BTreeMap<String, Write>,
    /// Keys of the writes on their way.
    sending: BTreeMap<String, Write>,
    /// The generation told last.
    generation: i32,
    /// Counts the tombstones that were read, by key; only for keys in `waiting` or `sending`.
    deletions: HashMap<String, u64>,
}

impl Outbox {
    /// Queues a status; `cached` is what the topic says now.
    pub(crate) fn put(
        &mut self,
        key: String,
        value: Option<Vec<u8>>,
        status: &Status,
        cached: Option<&Status>,
        safe: Safe,
    ) {
        self.generation = status.generation;
        if safe == Safe::Yes && !may_write(cached, status) {
            tracing::debug!(key, "status not written: another worker of a later generation has spoken");
            return;
        }
        let safe = (safe == Safe::Yes).then(|| status.clone());
        self.queue(key, value, Origin::Status { generation: status.generation, safe });
    }

    /// Queues a status' tombstone.
    pub(crate) fn delete(&mut self, key: String) {
        let generation = self.generation;
        self.queue(key, None, Origin::Status { generation, safe: None });
    }

    /// Queues a topic's record.
    pub(crate) fn put_topic(&mut self, key: String, value: Option<Vec<u8>>) {
        self.queue(key, value, Origin::Topic);
    }

    /// The write of this key that is not in the topic yet, if there is one.
    pub(crate) fn newest(&self, key: &str) -> Option<&Write> {
        self.waiting.get(key).or_else(|| self.sending.get(key))
    }

    /// Whether nothing waits and nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sending.is_empty()
    }

    /// Takes all that waits as the writes on their way; nothing may be on its way yet.
    pub(crate) fn start(&mut self) -> Vec<(String, Option<Vec<u8>>)> {
        self.sending = std::mem::take(&mut self.waiting);
        self.sending.iter().map(|(key, write)| (key.clone(), write.value.clone())).collect()
    }

    /// Whether something is to be sent.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The writes on their way have ended: they are in the topic or were refused for good, but those of `failed` may be tried
    /// again, and wait if they still matter. `cached` tells what the topic says now of a key.
    pub(crate) fn ended(&mut self, failed: &[String], mut cached: impl FnMut(&str) -> Option<Status>) {
        let mut sent = std::mem::take(&mut self.sending);
        for key in failed {
            let Some(write) = sent.remove(key) else { continue };
            if !self.waiting.contains_key(key) && self.matters(key, &write, &mut cached) {
                self.waiting.insert(key.clone(), write);
            }
        }
        self.deletions.retain(|key, _| self.waiting.contains_key(key));
    }

    /// A tombstone of this key was read.
    pub(crate) fn deleted(&mut self, key: &str) {
        if self.newest(key).is_some() {
            *self.deletions.entry(key.to_owned()).or_default() += 1;
        }
    }

    fn matters(&self, key: &str, write: &Write, cached: &mut impl FnMut(&str) -> Option<Status>) -> bool {
        match &write.origin {
            Origin::Topic => true,
            Origin::Status { generation, safe } => {
                self.deletions.get(key).copied().unwrap_or(0) == write.deletions
                    && *generation == self.generation
                    && safe.as_ref().is_none_or(|status| may_write(cached(key).as_ref(), status))
            }
        }
    }

    fn queue(&mut self, key: String, value: Option<Vec<u8>>, origin: Origin) {
        let deletions = self.deletions.get(&key).copied().unwrap_or(0);
        self.waiting.insert(key, Write { value, origin, deletions });
    }
}

/// Whether a write gives way to other workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safe {
    Yes,
    No,
}

/// Whether nobody else of a later generation has spoken.
fn may_write(cached: Option<&Status>, status: &Status) -> bool {
    cached.is_none_or(|cached| cached.worker_id == status.worker_id || cached.generation <= status.generation)
}

#[cfg(test)]
mod tests {
    use super::super::records::State;
    use super::*;

    fn status(worker: &str, generation: i32) -> Status {
        Status { state: State::Unassigned, trace: None, worker_id: worker.into(), generation, version: None }
    }

    fn text(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    fn put(outbox: &mut Outbox, value: &str, told: &Status, cached: Option<&Status>, safe: Safe) {
        outbox.put("k".into(), text(value), told, cached, safe);
    }

    /// C38 safe-write-rules
    #[test]
    fn a_safe_write_gives_way_to_another_worker_of_a_later_generation() {
        let cases = [
            (None, true),
            (Some(status("other", 6)), false),
            (Some(status("other", 5)), true),
            (Some(status("other", 4)), true),
            (Some(status("me", 6)), true),
        ];
        for (cached, is_written) in cases {
            let mut outbox = Outbox::default();
            put(&mut outbox, "v", &status("me", 5), cached.as_ref(), Safe::Yes);
            assert_eq!(!outbox.is_empty(), is_written, "{cached:?}");
            let mut outbox = Outbox::default();
            put(&mut outbox, "v", &status("me", 5), cached.as_ref(), Safe::No);
            assert!(!outbox.is_empty(), "other writes always count");
        }
    }

    #[test]
    fn the_newest_of_a_key_is_sent_once() {
        let mut outbox = Outbox::default();
        put(&mut outbox, "1", &status("me", 5), None, Safe::No);
        put(&mut outbox, "2", &status("me", 5), None, Safe::No);
        assert_eq!(outbox.start(), [("k".to_owned(), text("2"))]);
        assert!(!outbox.is_empty(), "it is on its way");
        outbox.ended(&[], |_| None);
        assert!(outbox.is_empty() && outbox.start().is_empty());
    }

    #[test]
    fn a_failed_write_is_sent_again() {
        let mut outbox = Outbox::default();
        put(&mut outbox, "1", &status("me", 5), None, Safe::Yes);
        outbox.start();
        outbox.ended(&["k".to_owned()], |_| None);
        assert_eq!(outbox.start(), [("k".to_owned(), text("1"))]);
    }

    /// C40 retry-obsolete-status
    #[test]
    fn an_obsolete_write_is_not_sent_again() {
        // Something newer of its key waits.
        let mut outbox = Outbox::default();
        put(&mut outbox, "1", &status("me", 5), None, Safe::No);
        outbox.start();
        put(&mut outbox, "2", &status("me", 5), None, Safe::No);
        outbox.ended(&["k".to_owned()], |_| None);
        assert_eq!(outbox.start(), [("k".to_owned(), text("2"))]);
        // The group has moved on.
        let mut outbox = Outbox::default();
        put(&mut outbox, "1", &status("me", 5), None, Safe::No);
        outbox.start();
        outbox.put("other".into(), text("x"), &status("me", 6), None, Safe::No);
        outbox.ended(&["k".to_owned()], |_| None);
        assert_eq!(outbox.start(), [("other".to_owned(), text("x"))]);
        // Another worker of a later generation has spoken, and the write is a safe one.
        let mut outbox = Outbox::default();
        put(&mut outbox, "1", &status("me", 5), None, Safe::Yes);
        outbox.start();
        outbox.ended(&["k".to_owned()], |_| Some(status("other", 6)));
        assert!(outbox.is_empty());
        // It was deleted since.
        let mut outbox = Outbox::default();
        put(&mut outbox, "1", &status("me", 5), None, Safe::No);
        outbox.start();
        outbox.deleted("k");
        outbox.ended(&["k".to_owned()], |_| None);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_status_told_after_the_deletion_is_sent_again() {
        let mut outbox = Outbox::default();
        put(&mut outbox, "1", &status("me", 5), None, Safe::No);
        outbox.start();
        outbox.deleted("k");
        put(&mut outbox, "2", &status("me", 5), None, Safe::No);
        outbox.ended(&["k".to_owned()], |_| None);
        outbox.start();
        outbox.ended(&["k".to_owned()], |_| None);
        assert_eq!(outbox.start(), [("k".to_owned(), text("2"))]);
        outbox.ended(&[], |_| None);
        assert!(outbox.deletions.is_empty(), "nothing is kept of keys that have nothing to send");
    }

    #[test]
    fn topics_are_never_obsolete() {
        let mut outbox = Outbox::default();
        outbox.put_topic("status-topic-t:connector-c".into(), text("t"));
        outbox.start();
        put(&mut outbox, "1", &status("me", 6), None, Safe::No);
        outbox.ended(&["status-topic-t:connector-c".to_owned()], |_| None);
        assert_eq!(outbox.start().len(), 2);
    }
}
