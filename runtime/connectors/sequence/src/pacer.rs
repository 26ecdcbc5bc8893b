//! How many records are due at a rate. Pure: the time that has passed comes in as an argument.

use std::time::Duration;

/// What was missed for longer than this is not made up for, so that a worker that was stopped for a while does not flood.
const BACKLOG_MAX: Duration = Duration::from_secs(1);

/// Counts what was sent against what is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    /// Records per second; 0: no limit.
    rate: u64,
    sent: u64,
}

impl Pacer {
    pub(crate) fn new(rate: u64) -> Self {
        Self { rate, sent: 0 }
    }

    /// How many records may go now, `elapsed` after the start; counts them as sent.
    pub(crate) fn take(&mut self, elapsed: Duration, wanted: u64) -> u64 {
        if self.rate == 0 {
            return wanted;
        }
        let due = self.due_by(elapsed);
        if let Some(missed) = elapsed.checked_sub(BACKLOG_MAX) {
            self.sent = self.sent.max(self.due_by(missed));
        }
        let taken = wanted.min(due.saturating_sub(self.sent));
        self.sent += taken;
        taken
    }

    /// How long until the next record is due.
    pub(crate) fn wait(&self, elapsed: Duration) -> Duration {
        if self.rate == 0 {
            return Duration::ZERO;
        }
        let nanos = (u128::from(self.sent) * 1_000_000_000).div_ceil(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).saturating_sub(elapsed)
    }

    /// The first record is due at once, the next after a period, and so on.
    fn due_by(&self, elapsed: Duration) -> u64 {
        let due = elapsed.as_nanos() * u128::from(self.rate) / 1_000_000_000;
        u64::try_from(due).unwrap_or(u64::MAX).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn without_a_rate_everything_may_go() {
        let mut pacer = Pacer::new(0);
        assert_eq!(pacer.take(ms(0), 2000), 2000);
        assert_eq!(pacer.wait(ms(0)), Duration::ZERO);
    }

    #[test]
    fn records_are_due_one_by_one() {
        let mut pacer = Pacer::new(10);
        assert_eq!(pacer.take(ms(0), 100), 1);
        assert_eq!(pacer.take(ms(50), 100), 0);
        assert_eq!(pacer.wait(ms(50)), ms(50));
        assert_eq!(pacer.take(ms(300), 100), 3);
        assert_eq!(pacer.take(ms(600), 2), 2);
        assert_eq!(pacer.take(ms(600), 2), 1);
    }

    #[test]
    fn a_long_pause_is_made_up_for_by_one_second_only() {
        let mut pacer = Pacer::new(100);
        assert_eq!(pacer.take(ms(60_000), 10_000), 100);
        assert_eq!(pacer.take(ms(60_010), 10_000), 1);
    }
}
