//! The one place that decides how long to wait before a request is sent again.
//!
//! [`Backoff`] is pure: doubling from a base to a cap, with jitter of 20 % (KIP-580). [`Retry`] drives it against a deadline:
//!
//! ```text
//! let mut retry = cluster.retry("creating topic t", patience);
//! loop {
//!     match attempt().await {
//!         Err(error) if error.retriable() => retry.pause(error).await?,
//!         other => return other,
//!     }
//! }
//! ```

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// How far a pause may differ from its nominal length, in percent.
const JITTER_PERCENT: u64 = 20;
/// Doubling stops here; the cap is reached long before.
const DOUBLINGS_MAX: u32 = 30;

/// Exponential pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    max: Duration,
}

impl Backoff {
    /// From `base`, doubling, up to `max`.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max: max.max(base) }
    }

    /// The pause after `failures` failed attempts (1 or more); `random` is any number, evenly spread.
    #[must_use]
    pub fn delay(&self, failures: u32, random: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(DOUBLINGS_MAX);
        let nominal = self.base.saturating_mul(1 << doublings).min(self.max);
        let nominal_us = u64::try_from(nominal.as_micros()).unwrap_or(u64::MAX / 100);
        let jitter_us = nominal_us / 100 * JITTER_PERCENT;
        // Evenly from (100 - JITTER) % to (100 + JITTER) % of the nominal length.
        let delay_us = nominal_us - jitter_us + random % (2 * jitter_us + 1);
        Duration::from_micros(delay_us)
    }
}

/// An operation's patience: attempts so far, and the deadline that ends them.
#[derive(Debug)]
pub struct Retry {
    what: String,
    backoff: Backoff,
    started: Instant,
    deadline: Instant,
    failures: u32,
}

impl Retry {
    /// `what` names the operation in the timeout error: "finding the coordinator of transactional id x".
    #[must_use]
    pub fn new(what: impl Into<String>, backoff: Backoff, patience: Duration) -> Self {
        let started = Instant::now();
        Self { what: what.into(), backoff, started, deadline: started + patience, failures: 0 }
    }

    /// When it gives up.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// As [`Retry::failed`].
    pub async fn pause(&mut self, error: Error) -> Result<(), Error> {
        let delay = self.failed(error)?;
        tokio::time::sleep(delay).await;
        Ok(())
    }

    /// Notes a failure and says how long to wait before the next attempt.
    ///
    /// # Errors
    /// [`Error::Timeout`] with `error` inside, at once, when the pause would end after the deadline.
    pub fn failed(&mut self, error: Error) -> Result<Duration, Error> {
        self.failures = self.failures.saturating_add(1);
        let delay = self.backoff.delay(self.failures, random());
        if Instant::now() + delay >= self.deadline {
            return Err(self.timeout(Some(error)));
        }
        tracing::debug!(what = %self.what, failures = self.failures, delay_ms = delay.as_millis(), %error, "will retry");
        Ok(delay)
    }

    /// The error that says that the deadline passed.
    #[must_use]
    pub fn timeout(&self, last: Option<Error>) -> Error {
        Error::Timeout { what: self.what.clone(), after: self.started.elapsed(), last: last.map(Arc::new) }
    }
}

/// A number nobody can foresee; good enough to spread retries, and no dependency.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(1) };

    #[test]
    fn pauses_double_up_to_the_cap_within_the_jitter() {
        for (failures, nominal_ms) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (u32::MAX, 1000)] {
            for random in [0, 1, 12_345, u64::MAX] {
                let delay_ms = BACKOFF.delay(failures, random).as_millis();
                let (low, high) = (nominal_ms * 80 / 100, nominal_ms * 120 / 100);
                assert!((low..=high).contains(&delay_ms), "failure {failures}: {delay_ms} ms");
            }
        }
    }

    #[test]
    fn a_zero_base_means_no_pause() {
        assert_eq!(Backoff::new(Duration::ZERO, Duration::ZERO).delay(7, u64::MAX), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_the_pauses_and_keeps_the_last_error() {
        let mut retry = Retry::new("asking", BACKOFF, Duration::from_millis(500));
        let mut pauses = 0;
        let error = loop {
            match retry.pause(Error::broker("Metadata", 5, "t")).await {
                Ok(()) => pauses += 1,
                Err(error) => break error,
            }
        };
        assert!((1..=3).contains(&pauses), "{pauses}");
        assert_eq!(error.code(), Some(5));
        assert!(error.to_string().starts_with("asking did not succeed"), "{error}");
    }
}
