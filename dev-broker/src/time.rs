//! The broker's notion of time: a point handed in by whoever drives the core.
//!
//! The core never reads a clock. The server takes the wall clock once at its start and adds a monotonic duration, so
//! time in here never goes back; a simulation hands in whatever it likes, as long as it does not go back either.

use std::ops::Add;
use std::time::Duration;

/// A point in time, counted from the Unix epoch. Finer than Kafka's milliseconds, because markers take less than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    since_epoch: Duration,
}

impl Timestamp {
    /// A point this long after the Unix epoch.
    pub const fn from_epoch(since_epoch: Duration) -> Self {
        Self { since_epoch }
    }

    /// A point this many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_epoch(Duration::from_millis(millis))
    }

    /// Milliseconds since the Unix epoch, as Kafka's fields carry them.
    pub fn millis(self) -> i64 {
        i64::try_from(self.since_epoch.as_millis()).unwrap_or(i64::MAX)
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Timestamp) -> Duration {
        self.since_epoch.saturating_sub(earlier.since_epoch)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, delay: Duration) -> Timestamp {
        Self::from_epoch(self.since_epoch.saturating_add(delay))
    }
}
