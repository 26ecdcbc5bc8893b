//! Changes of the config topic that call for a round come in waves: a person makes hundreds of connectors, one request after the other, and then
//! each of them gets its tasks. While a round goes on nothing can be written, and with several workers a round takes until the last one's heartbeat. So
//! one round answers a wave: when nothing more has come for a moment and no task configurations are on their way, or after a second.

use std::time::Duration;
use tokio::time::Instant;

/// Nothing more has come for so long: 25 ms, more than a client takes between two requests.
const QUIET: Duration = Duration::from_millis(25);

/// A wave that does not end is answered all the same: 1 s after its beginning.
const WAVE_MAX: Duration = Duration::from_secs(1);

/// Changes that no round has answered yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wave(Option<Changes>);

#[derive(Debug, Clone, Copy)]
struct Changes {
    first: Instant,
    last: Instant,
}

impl Wave {
    /// Something changed.
    pub(super) fn note(&mut self, now: Instant) {
        let first = self.0.map_or(now, |changes| changes.first);
        self.0 = Some(Changes { first, last: now });
    }

    /// When the round is due; `more`: task configurations are on their way.
    pub(super) fn due(&self, more: bool) -> Option<Instant> {
        let changes = self.0?;
        let latest = changes.first + WAVE_MAX;
        Some(if more { latest } else { latest.min(changes.last + QUIET) })
    }

    /// A round begins, from a snapshot with all changes.
    pub(super) fn answered(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_waits_for_the_end_of_a_wave_but_not_for_ever() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut wave = Wave::default();
        assert_eq!(wave.due(false), None);
        wave.note(at(0));
        assert_eq!(wave.due(false), Some(at(25)));
        wave.note(at(20));
        assert_eq!(wave.due(false), Some(at(45)));
        assert_eq!(wave.due(true), Some(at(1_000)));
        wave.note(at(990));
        assert_eq!(wave.due(false), Some(at(1_000)));
        wave.answered();
        assert_eq!(wave.due(true), None);
    }
}
