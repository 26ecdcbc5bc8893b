//! Pure exponential back-off, and the seeded jitter that spreads it.
//!
//! There is no count of allowed attempts: what ends a retry is always a deadline, because the number of tries that a
//! coordinator needs to write its markers is unknown (librdkafka gave up after three CONCURRENT_TRANSACTIONS and broke
//! healthy transactions). Each kind of wait owns its own [`Backoff`], so that one cannot slow the other down.

use crate::ids::Span;

/// A seeded sequence of numbers for spreading waits (splitmix64). Equal seeds give equal runs.
#[derive(Debug, Clone)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Jitter {
        Jitter(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between four fifths of `span` and all of it, so that a maximum stays a maximum.
    fn spread(&mut self, span: Span) -> Span {
        let fifth = span.0 / 5;
        if fifth == 0 {
            return span;
        }
        Span(span.0 - self.next() % (fifth + 1))
    }
}

/// Waits that double from `first` up to `max`, until progress resets them.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Span,
    max: Span,
    attempts: u32,
}

impl Backoff {
    pub(crate) fn new(first: Span, max: Span) -> Backoff {
        Backoff { first, max, attempts: 0 }
    }

    /// How long to wait before the next try. Never zero, so that a loop of tries always lets time pass.
    pub(crate) fn next(&mut self, jitter: &mut Jitter) -> Span {
        let doubled = self.first.0.saturating_mul(1_u64.checked_shl(self.attempts.min(32)).unwrap_or(u64::MAX));
        self.attempts = self.attempts.saturating_add(1);
        jitter.spread(Span(doubled.min(self.max.0).max(1)))
    }

    /// Whether no wait was asked for since the last progress.
    pub(crate) fn is_fresh(&self) -> bool {
        self.attempts == 0
    }

    /// There was progress: the next wait is the first one again.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum_and_never_beyond() {
        let mut jitter = Jitter::new(1);
        let mut backoff = Backoff::new(Span::from_millis(1), Span::from_millis(20));
        let waits: Vec<u64> = (0..40).map(|_| backoff.next(&mut jitter).0).collect();
        assert!((800..=1_000).contains(&waits[0]), "{waits:?}");
        assert!((1_600..=2_000).contains(&waits[1]), "{waits:?}");
        assert!(waits[5..].iter().all(|wait| (16_000..=20_000).contains(wait)), "{waits:?}");
    }

    #[test]
    fn progress_starts_the_waits_over() {
        let mut jitter = Jitter::new(1);
        let mut backoff = Backoff::new(Span(100), Span(10_000));
        for _ in 0..5 {
            backoff.next(&mut jitter);
        }
        backoff.reset();
        assert!(backoff.next(&mut jitter).0 <= 100);
    }

    #[test]
    fn equal_seeds_give_equal_waits() {
        let waits = |seed| {
            let mut jitter = Jitter::new(seed);
            let mut backoff = Backoff::new(Span(1_000), Span(1_000_000));
            (0..10).map(|_| backoff.next(&mut jitter)).collect::<Vec<_>>()
        };
        assert_eq!(waits(7), waits(7));
        assert_ne!(waits(7), waits(8));
    }

    #[test]
    fn wait_is_never_zero() {
        let mut backoff = Backoff::new(Span(0), Span(0));
        assert_eq!(backoff.next(&mut Jitter::new(1)), Span(1));
    }
}
