//! How long repeated tries between workers wait.

use std::time::Duration;

/// The first wait of a repeated operation between workers: 250 ms.
const REPEAT_FIRST: Duration = Duration::from_millis(250);

/// The longest such wait: 60 s.
const REPEAT_MAX: Duration = Duration::from_secs(60);

/// The wait before try `attempt` (from 1): 250 ms, doubling, at most a minute.
pub fn repeat_wait(attempt: u32) -> Duration {
    REPEAT_FIRST.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1))).min(REPEAT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_operation_waits_a_minute_at_most() {
        assert_eq!(repeat_wait(1).as_millis(), 250);
        assert_eq!(repeat_wait(3).as_millis(), 1000);
        assert_eq!(repeat_wait(u32::MAX), REPEAT_MAX);
    }
}
