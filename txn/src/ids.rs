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

impl Time {
    /// This much later. Stops at the end of time instead of wrapping: a deadline that far away never passes.
    #[must_use]
    pub fn after(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000))
    }
}

impl ProducerIdentity {
    /// Whether a broker can have meant this as an identity: it writes -1 where it has none.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.id >= 0 && self.epoch >= 0
    }
}

impl ErrorCode {
    /// No error.
    pub const NONE: ErrorCode = ErrorCode(0);

    /// Whether this is success. Only 0 is.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// A record's sequence number: 0 to 2147483647, and then 0 again.
///
/// Kafka brokers refuse a negative one, so this is not the wrapping of an `i32` (KAFKA-7693).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sequence(i32);

impl Sequence {
    /// The sequence of the record after `records` more records.
    pub(crate) fn advance(self, records: u32) -> Sequence {
        let sum = (i64::from(self.0) + i64::from(records)) & i64::from(i32::MAX);
        Sequence(i32::try_from(sum).expect("masked to 31 bits"))
    }

    /// As it stands in a batch header.
    pub(crate) fn on_wire(self) -> i32 {
        self.0
    }

    /// Start somewhere else than 0, for tests of the wrap.
    #[cfg(test)]
    pub(crate) fn at(value: i32) -> Sequence {
        Sequence(value & i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_wraps_to_zero_after_the_largest() {
        assert_eq!(Sequence::at(i32::MAX).advance(1).on_wire(), 0);
    }

    #[test]
    fn batch_across_the_wrap_leaves_the_next_base_modulo_two_to_the_31() {
        // Records 2147483640..=2147483647 are eight; twelve more are 0..=11; the next base is 12.
        assert_eq!(Sequence::at(2_147_483_640).advance(20).on_wire(), 12);
    }

    #[test]
    fn sequence_never_turns_negative_even_for_the_largest_batch() {
        assert!(Sequence::at(i32::MAX).advance(u32::MAX).on_wire() >= 0);
    }

    #[test]
    fn deadline_at_the_end_of_time_does_not_wrap() {
        assert_eq!(Time(5).after(Span(u64::MAX)), Time(u64::MAX));
        assert_eq!(Time(5).since(Time(9)), Span(0));
    }
}
