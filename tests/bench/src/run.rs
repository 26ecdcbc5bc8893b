//! One copy of the file, by one side, under one boundary: what it took. The field names are those of `java/run`.

use serde::{Deserialize, Serialize};

/// Where a transaction ends (`transaction.boundary`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// After each poll.
    Poll,
    /// After an interval.
    Interval,
}

impl Boundary {
    /// As Connect spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Interval => "interval",
        }
    }
}

/// Who copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// `oncewire standalone`.
    Oncewire,
    /// Java Kafka Connect.
    Java,
}

impl Side {
    /// For tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Oncewire => "oncewire",
            Self::Java => "Kafka Connect",
        }
    }
}

/// The same settings for both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `transaction.boundary`.
    pub boundary: Boundary,
    /// `batch.size` of the file source: lines in a poll.
    pub batch_size: u32,
    /// `transaction.boundary.interval.ms`.
    pub interval_ms: u32,
}

/// What one run took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Between the first and the last commit that became visible: the steady rate.
    pub records_per_s: f64,
    /// All lines, from the moment the connector was submitted (ours: from the process's start) to the last visible commit.
    pub records_per_s_from_submit: f64,
    /// User and system time of the process, all of it.
    pub cpu_s: f64,
    /// The most resident memory, in MB of 10^6 bytes.
    pub peak_rss_mb: f64,
    /// From the process's start until the first records were visible to read_committed.
    pub start_to_first_commit_s: f64,
    /// Java alone: from the process's start until REST lists connectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_to_rest_s: Option<f64>,
}

/// When things happened in a run, in milliseconds since 1970, and where the committed data ended then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The connector was submitted.
    pub submitted_ms: u64,
    /// First visible commit.
    pub first: crate::watch::Sight,
    /// Last visible commit.
    pub last: crate::watch::Sight,
}

impl Times {
    /// Lines per second between the first and the last commit: the offsets in between, without the share of transaction markers.
    /// 0 when everything became visible at once.
    #[must_use]
    pub fn steady_rate(&self, lines: f64) -> f64 {
        let seconds = seconds_between(self.first.at_ms, self.last.at_ms);
        if seconds > 0.0 && self.last.end > 0 {
            lines * count(self.last.end.saturating_sub(self.first.end)) / count(self.last.end) / seconds
        } else {
            0.0
        }
    }

    /// Lines per second from the connector's submission to the last commit.
    #[must_use]
    pub fn rate_from_submit(&self, lines: f64) -> f64 {
        lines / seconds_between(self.submitted_ms, self.last.at_ms).max(0.001)
    }
}

/// Seconds from one time in milliseconds to another.
#[must_use]
pub fn seconds_between(from_ms: u64, to_ms: u64) -> f64 {
    count(to_ms.saturating_sub(from_ms)) / 1000.0
}

/// A count as a number to divide by.
#[must_use]
#[allow(clippy::cast_precision_loss)] // counts of a bench are far below 2^53
pub fn count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Sight;

    #[test]
    fn the_steady_rate_leaves_out_the_first_commit_and_the_markers() {
        // 1,000 lines and 100 markers; the first 110 offsets were there at the start of the second.
        let times = Times {
            submitted_ms: 500,
            first: Sight { at_ms: 1_000, end: 110 },
            last: Sight { at_ms: 2_000, end: 1_100 },
        };
        assert!((times.steady_rate(1_000.0) - 900.0).abs() < 1e-9);
        assert!((times.rate_from_submit(1_000.0) - 1_000.0 / 1.5).abs() < 1e-9);
    }

    #[test]
    fn one_commit_has_no_steady_rate() {
        let sight = Sight { at_ms: 1_000, end: 110 };
        let times = Times { submitted_ms: 500, first: sight, last: sight };
        assert!(times.steady_rate(100.0).abs() < f64::EPSILON);
    }

    #[test]
    fn what_the_java_script_prints_is_a_run() {
        let text = r#"{"peer":"kafka-connect-4.3.1","boundary":"poll","batch_size":2000,"interval_ms":1000,"lines":3,"bytes":9,
            "records_per_s":238000,"records_per_s_from_submit":200000,"cpu_s":15.70,"cpu_copy_s":9.0,"peak_rss_mb":1390.0,
            "start_to_rest_s":6.80,"start_to_first_commit_s":7.90,"first_to_last_commit_s":12.00}"#;
        let run: Run = serde_json::from_str(text).unwrap();
        assert_eq!(run.start_to_rest_s, Some(6.8));
        assert!((run.cpu_s - 15.7).abs() < 1e-9);
    }
}
