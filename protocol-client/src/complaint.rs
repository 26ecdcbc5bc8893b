//! A failure that goes on, told as a person wants to read of it: when it begins, once a minute while it lasts, and when it is
//! over. For loops that try the same thing again and again.
//!
//! ```text
//! failed "a" ──► told          failed "b" ──► told at once              over ──► how long it was
//!            failed "a" … ──► nothing      a minute later: failed "a" ──► told again, with how long it lasts
//! ```
//!
//! Pure: time comes in, and the log is the caller's. Two failures are the same when their texts differ in digits alone (durations,
//! partitions, ports). However the texts vary, no more than [`KINDS_MAX`] lines come of a minute.

use std::fmt;
use std::time::{Duration, Instant};

/// How often a failure that lasts is told again: 60 s.
pub const REMIND_EVERY: Duration = Duration::from_secs(60);

/// Failures that are told apart at a time: 8; further ones are not told before one of these may be told again.
pub const KINDS_MAX: usize = 8;

/// How much of a text is compared, digits not counted: 300 characters.
const COMPARED_CHARS_MAX: usize = 300;

/// What was told of the failures of one operation since it last succeeded.
#[derive(Debug, Clone, Default)]
pub struct Complaint {
    since: Option<Instant>,
    /// By what is compared: when it was told last.
    told: Vec<(String, Instant)>,
}

/// A failure is to be told. Shown, it is empty at first, and `, for 61 s already` in a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telling {
    lasting: Option<Duration>,
}

impl Complaint {
    /// The operation failed. `Some`: say so now.
    #[must_use]
    pub fn failed(&mut self, now: Instant, text: &str) -> Option<Telling> {
        let since = *self.since.get_or_insert(now);
        let is_old = |told: Instant| now.saturating_duration_since(told) >= REMIND_EVERY;
        let kind = kind(text);
        if let Some((_, told)) = self.told.iter_mut().find(|(known, _)| *known == kind) {
            if !is_old(*told) {
                return None;
            }
            *told = now;
            return Some(Telling { lasting: Some(now.saturating_duration_since(since)) });
        }
        if self.told.len() >= KINDS_MAX {
            let oldest = self.told.iter().enumerate().min_by_key(|(_, (_, told))| *told);
            let (at, _) = oldest.filter(|(_, (_, told))| is_old(*told))?;
            self.told.swap_remove(at);
        }
        self.told.push((kind, now));
        Some(Telling { lasting: None })
    }

    /// The operation succeeded. `Some`: it had failed, for so long.
    #[must_use]
    pub fn over(&mut self, now: Instant) -> Option<Duration> {
        self.told.clear();
        Some(now.saturating_duration_since(self.since.take()?))
    }

    /// Whether it failed since it last succeeded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }
}

fn kind(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit()).take(COMPARED_CHARS_MAX).collect()
}

impl fmt::Display for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lasting {
            None => Ok(()),
            Some(lasting) => write!(f, ", for {} s already", lasting.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(3);

    /// What is said of one failure each 3 s, and when.
    fn said(complaint: &mut Complaint, start: Instant, steps: u32, text: impl Fn(u32) -> String) -> Vec<(u32, String)> {
        let told = (0..steps).filter_map(|step| {
            let telling = complaint.failed(start + STEP * step, &text(step))?;
            Some((step * 3, telling.to_string()))
        });
        told.collect()
    }

    #[test]
    fn a_failure_that_lasts_is_told_once_and_then_each_minute_with_its_length() {
        let (mut complaint, start) = (Complaint::default(), Instant::now());
        let told = said(&mut complaint, start, 50, |step| format!("nothing after {step} ms"));
        let expected = [(0, ""), (60, ", for 60 s already"), (120, ", for 120 s already")];
        assert_eq!(told, expected.map(|(at, text)| (at, text.to_owned())));
        assert_eq!(complaint.over(start + STEP * 50), Some(STEP * 50));
        assert_eq!(complaint.over(start + STEP * 51), None, "its end is told once");
    }

    #[test]
    fn another_failure_is_told_at_once_and_two_in_turns_are_no_flood() {
        let (mut complaint, start) = (Complaint::default(), Instant::now());
        let told =
            said(&mut complaint, start, 40, |step| if step % 2 == 0 { "refused" } else { "no answer" }.to_owned());
        let times: Vec<u32> = told.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 3, 60, 63]);
    }

    #[test]
    fn after_a_success_the_same_failure_is_news_again() {
        let (mut complaint, start) = (Complaint::default(), Instant::now());
        assert!(complaint.failed(start, "a").is_some() && complaint.is_on());
        assert_eq!(complaint.over(start + STEP), Some(STEP));
        assert!(!complaint.is_on());
        assert_eq!(complaint.failed(start + STEP, "a"), Some(Telling { lasting: None }));
    }

    #[test]
    fn texts_that_never_repeat_are_bounded_in_number_and_in_length() {
        let (mut complaint, start) = (Complaint::default(), Instant::now());
        let letters = |number: u32| -> String {
            let letter = |digit: char| char::from(b'a' + u8::try_from(digit.to_digit(10).unwrap_or(0)).unwrap_or(0));
            number.to_string().chars().map(letter).collect()
        };
        // 100 different ones a second, for two minutes.
        let told = (0..12_000_u32)
            .filter(|nth| complaint.failed(start + Duration::from_millis(10) * *nth, &letters(*nth)).is_some())
            .count();
        assert_eq!(told, 2 * KINDS_MAX);
        assert!(complaint.told.len() <= KINDS_MAX);
        assert!(complaint.failed(start + REMIND_EVERY * 9, &"x".repeat(100_000)).is_some());
        assert!(complaint.told.iter().all(|(kind, _)| kind.len() <= COMPARED_CHARS_MAX));
    }
}
