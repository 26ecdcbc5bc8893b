//! Newtypes for everything the machine counts or names, so that no two numbers can be swapped.
//!
//! All arithmetic on them is checked or wraps the way Kafka wraps it; none of them owns bytes.

/// Microseconds since an origin that the driver chooses. Never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Time(pub u64);

/// A span of time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Span(pub u64);

/// A topic partition, as a small index that the driver handed out. The machine never sees names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionIndex(pub u32);

/// One sealed record batch. The driver keeps its bytes; the machine keeps its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// One request that the machine asked the driver to send. Replies carry it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The producer id and epoch that a broker gave us. Only a broker makes or bumps one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerIdentity {
    /// Producer id, 0 or more.
    pub id: i64,
    /// Producer epoch, 0 or more.
    pub epoch: i16,
}

/// A Kafka error code as it stood in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);
