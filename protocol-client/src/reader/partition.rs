//! One partition of a reader: where it stands, what was fetched ahead, and what trouble it is in. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::Isolation;
use super::fetch::Fetched;
use crate::cluster::Retry;
use crate::error::Error;

/// After this many answers without data, asked for alone, the offsets up to the stable end are taken for empty: compaction
/// or retention removed everything in a closed segment, and nothing will ever be there.
const EMPTY_ANSWERS_MAX: u32 = 3;
/// How long a partition rests after its patience was used up: 1 s.
const GAVE_UP_PAUSE: Duration = Duration::from_secs(1);
/// Bytes asked for grow to this when one batch does not fit; no broker takes larger ones than a request may be.
const MAX_BYTES_LIMIT: i32 = 100 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Partition {
    /// The next offset for the caller: everything before it was given out, or hidden.
    pub(super) position: i64,
    /// The next offset to fetch; ahead of `position` by what is buffered.
    pub(super) fetch_offset: i64,
    /// The end to read to.
    pub(super) end: i64,
    pub(super) last_stable_offset: i64,
    pub(super) max_bytes: i32,
    /// A fetch or a look-up of its offset is under way.
    pub(super) busy: bool,
    /// Fetch it in a request of its own: its emptiness then cannot come from the request's limit.
    pub(super) alone: bool,
    empty_answers: u32,
    trouble: Option<Retry>,
    pub(super) not_before: Option<Instant>,
}

impl Partition {
    pub(super) fn new(position: i64, end: i64, max_bytes: i32) -> Self {
        Self {
            position,
            fetch_offset: position,
            end,
            last_stable_offset: -1,
            max_bytes,
            busy: false,
            alone: false,
            empty_answers: 0,
            trouble: None,
            not_before: None,
        }
    }

    pub(super) fn reached_end(&self) -> bool {
        self.position >= self.end
    }

    /// Whether a fetch may be sent now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        !self.busy && self.not_before.is_none_or(|not_before| not_before <= now)
    }

    /// A leader answered: what is known of the log's ends, and whether the trouble is over.
    pub(super) fn answered(&mut self, fetched: &Fetched) {
        self.last_stable_offset = fetched.last_stable_offset;
        self.trouble = None;
        self.not_before = None;
    }

    /// The answer held no whole batch. True when the position moved over offsets that are empty for ever.
    pub(super) fn empty_answer(&mut self, fetched: &Fetched, isolation: Isolation) -> bool {
        if !fetched.records.is_empty() {
            // The start of a batch that did not fit.
            self.max_bytes = self.max_bytes.saturating_mul(2).clamp(1, MAX_BYTES_LIMIT);
            return false;
        }
        let visible_end = match isolation {
            Isolation::Committed => fetched.last_stable_offset,
            Isolation::Uncommitted => fetched.high_watermark,
        };
        if visible_end <= self.fetch_offset {
            self.data_came();
            return false;
        }
        self.empty_answers += 1;
        self.alone = true;
        if self.empty_answers < EMPTY_ANSWERS_MAX {
            return false;
        }
        tracing::debug!(from = self.fetch_offset, to = visible_end, "no records are left between these offsets");
        self.data_came();
        self.move_to(visible_end);
        true
    }

    pub(super) fn data_came(&mut self) {
        self.empty_answers = 0;
        self.alone = false;
    }

    /// Goes on at another offset; what was fetched ahead must be thrown away by the caller.
    pub(super) fn move_to(&mut self, offset: i64) {
        self.position = offset;
        self.fetch_offset = offset;
    }

    /// Notes a failure; it is tried again after a pause, or at once if a new leader was told.
    ///
    /// # Errors
    /// When it is none that may pass, or its patience is used up. With the latter it is told once, and the partition goes on with new
    /// patience, for a caller who does not give up.
    pub(super) fn failed(&mut self, error: Error, new_retry: impl FnOnce() -> Retry) -> Result<(), Error> {
        if !error.retriable() {
            return Err(error);
        }
        let outcome = self.trouble.get_or_insert_with(new_retry).failed(error);
        let pause = outcome.as_ref().copied().unwrap_or(GAVE_UP_PAUSE);
        self.not_before = Some(Instant::now() + pause);
        if outcome.is_err() {
            self.trouble = None;
        }
        outcome.map(drop)
    }

    pub(super) fn retry_at_once(&mut self) {
        self.not_before = None;
    }

    /// How far it is behind, in words, with the reason where it is known.
    pub(super) fn lag(&self, index: i32, isolation: Isolation) -> String {
        let mut words = format!("partition {index} stands at {} of {}", self.position, self.end);
        let held_back = isolation == Isolation::Committed && (0..self.end).contains(&self.last_stable_offset);
        if held_back && self.position >= self.last_stable_offset {
            words.push_str(", held back by an open transaction");
        }
        words
    }
}

/// The wait until the first of some moments; `None` when there is none.
pub(super) fn earliest(moments: impl Iterator<Item = Instant>) -> Option<Instant> {
    moments.min()
}

/// A fetch may take as long as the broker may hold it back, and then as long as any request.
pub(super) fn fetch_timeout(max_wait: Duration, request_timeout: Duration) -> Duration {
    max_wait.saturating_add(request_timeout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn fetched(last_stable_offset: i64, high_watermark: i64) -> Fetched {
        Fetched { records: Bytes::new(), aborted: vec![], last_stable_offset, high_watermark }
    }

    #[test]
    fn offsets_that_stay_empty_below_the_stable_end_are_stepped_over() {
        let mut partition = Partition::new(5, 9, 100);
        assert!(!partition.empty_answer(&fetched(9, 9), Isolation::Committed));
        assert!(partition.alone, "it must be asked for alone before its emptiness counts");
        assert!(!partition.empty_answer(&fetched(9, 9), Isolation::Committed));
        assert!(partition.empty_answer(&fetched(9, 9), Isolation::Committed));
        assert!(partition.reached_end());
    }

    #[test]
    fn an_open_transaction_is_waited_for_and_named() {
        let mut partition = Partition::new(5, 9, 100);
        for _ in 0..10 {
            let answer = fetched(5, 9);
            partition.answered(&answer);
            assert!(!partition.empty_answer(&answer, Isolation::Committed));
        }
        assert!(!partition.reached_end());
        let words = partition.lag(3, Isolation::Committed);
        assert!(words.contains("partition 3") && words.contains("open transaction"), "{words}");
    }

    #[test]
    fn a_batch_that_does_not_fit_doubles_what_is_asked_for() {
        let mut partition = Partition::new(0, 9, 100);
        let mut answer = fetched(9, 9);
        answer.records = Bytes::from_static(b"cut");
        assert!(!partition.empty_answer(&answer, Isolation::Committed));
        assert_eq!(partition.max_bytes, 200);
    }
}
