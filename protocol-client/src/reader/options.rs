//! What a reader reads, from where, and how much at a time.

use std::collections::BTreeMap;
use std::time::Duration;

/// Which records are visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Records of committed transactions and those outside transactions, up to the last stable offset.
    #[default]
    Committed,
    /// Everything up to the high watermark, aborted records too.
    Uncommitted,
}

impl Isolation {
    /// The value of `isolation_level` on the wire.
    #[must_use]
    pub fn wire_value(self) -> i8 {
        match self {
            Self::Uncommitted => 0,
            Self::Committed => 1,
        }
    }
}

/// Where to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// At each partition's first offset.
    #[default]
    Beginning,
    /// After each partition's last offset.
    End,
    /// At these offsets; partitions that are not named start at their beginning.
    Offsets(BTreeMap<i32, i64>),
}

/// Options of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderOptions {
    /// Which records are visible. Default: committed.
    pub isolation: Isolation,
    /// Where to start. Default: the beginning. An offset that is out of range (the log was truncated or trimmed below us)
    /// goes on at the beginning of what is left.
    pub start: Start,
    /// Which partitions; `None`: all of the topic.
    pub partitions: Option<Vec<i32>>,
    /// How long a broker may hold a fetch back until there is something. Default 500 ms (`fetch.max.wait.ms`).
    pub max_wait: Duration,
    /// Bytes that one fetch may bring from one broker. Default 8 MiB (Java's `fetch.max.bytes`: 50 MiB).
    pub max_bytes: i32,
    /// Bytes that one fetch may bring of one partition; a larger batch still comes whole. Default 1 MiB
    /// (`max.partition.fetch.bytes`).
    pub partition_max_bytes: i32,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::Committed,
            start: Start::Beginning,
            partitions: None,
            max_wait: Duration::from_millis(500),
            max_bytes: 8 * 1024 * 1024,
            partition_max_bytes: 1024 * 1024,
        }
    }
}
