//! The arithmetic of producer sequence numbers: 31 bits, and after the largest comes 0 again.
//!
//! Source: KIP-98; `DefaultRecordBatch.incrementSequence` defines the same wrap.

/// The sequence number `records` places after `sequence`; after `i32::MAX` comes 0.
///
/// Negative numbers (−1 is "no sequence") stay as they are.
#[must_use]
pub fn sequence_after(sequence: i32, records: u32) -> i32 {
    if sequence < 0 {
        return sequence;
    }
    let modulus = i64::from(i32::MAX) + 1;
    let wrapped = (i64::from(sequence) + i64::from(records)) % modulus;
    i32::try_from(wrapped).expect("a remainder of 2^31 fits 31 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_largest_sequence_comes_zero() {
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 1, 5), 3);
        assert_eq!(sequence_after(0, 0), 0);
        assert_eq!(sequence_after(7, 3), 10);
    }

    #[test]
    fn no_sequence_stays_no_sequence() {
        assert_eq!(sequence_after(-1, 10), -1);
    }
}
