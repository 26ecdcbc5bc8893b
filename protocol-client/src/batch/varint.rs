//! Variable-length integers of records: zigzag, least significant seven bits first.
//!
//! Writing goes straight to the record's place in the batch, whose size was computed before: gathering
//! the numbers elsewhere first costs more than it saves, as the copy has to wait for the single bytes.
//! Reading refuses a number that runs past its width: Kafka's own reader does the same, and a
//! lenient one gives two readers of one batch different lengths.
//!
//! Source: "Varint" and "Varlong" among the protocol guide's primitive types.

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Bytes that `value` takes as a varint or varlong: both encodings agree where both apply.
#[inline]
pub(super) fn encoded_len(value: i64) -> usize {
    let rest = zigzag(value);
    if rest < 0x80 {
        return 1;
    }
    let bits = 64 - rest.leading_zeros() as usize;
    bits.div_ceil(7)
}

/// A length or −1, as varints carry it.
pub(super) fn length_or_null(bytes: Option<&[u8]>) -> i64 {
    // A slice never holds more than `isize::MAX` bytes.
    bytes.map_or(-1, |bytes| bytes.len() as i64)
}

/// Writes into a slice that has room for everything to come: the length was computed before.
pub(super) struct Writer<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) at: usize,
}

impl Writer<'_> {
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    #[inline]
    pub(super) fn varint(&mut self, value: i64) {
        let mut rest = zigzag(value);
        while rest >= 0x80 {
            self.byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.byte(rest as u8);
    }

    /// A length and its bytes, or −1 for null.
    #[inline]
    pub(super) fn nullable_bytes(&mut self, bytes: Option<&[u8]>) {
        self.varint(length_or_null(bytes));
        if let Some(bytes) = bytes {
            let end = self.at + bytes.len();
            self.bytes[self.at..end].copy_from_slice(bytes);
            self.at = end;
        }
    }
}

/// A place in a slice of records, moved on by each read.
///
/// Every read says `None` where the bytes end or the number is too wide; the caller knows which
/// record it was and makes the error.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A 32-bit varint: five bytes at most, and no bit beyond the 32nd.
    #[inline]
    pub(super) fn varint(&mut self) -> Option<i32> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(unzigzag(u64::from(first)) as i32);
        }
        let mut value = u64::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return (value <= u64::from(u32::MAX)).then(|| unzigzag(value) as i32);
            }
        }
        None
    }

    /// A 64-bit varlong: ten bytes at most, and no bit beyond the 64th.
    #[inline]
    pub(super) fn varlong(&mut self) -> Option<i64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(unzigzag(u64::from(first)));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in [7, 14, 21, 28, 35, 42, 49, 56] {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(unzigzag(value));
            }
        }
        let last = self.byte()?;
        (last <= 1).then(|| unzigzag(value | u64::from(last) << 63))
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// A length and its bytes; −1 is null, a lesser length is `None` (an error).
    #[inline]
    pub(super) fn nullable_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match self.varint()? {
            -1 => Some(None),
            len => Some(Some(self.take(usize::try_from(len).ok()?)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: i64) -> Vec<u8> {
        let mut bytes = [0; 10];
        let mut writer = Writer { bytes: &mut bytes, at: 0 };
        writer.varint(value);
        let len = writer.at;
        bytes[..len].to_vec()
    }

    fn cursor(bytes: &[u8]) -> Cursor<'_> {
        Cursor { bytes, at: 0 }
    }

    proptest! {
        #[test]
        fn varlong_reads_back_with_the_length_that_was_computed(value: i64) {
            let bytes = encoded(value);
            prop_assert_eq!(bytes.len(), encoded_len(value));
            let mut cursor = cursor(&bytes);
            prop_assert_eq!(cursor.varlong(), Some(value));
            prop_assert_eq!(cursor.remaining(), 0);
        }

        #[test]
        fn varint_reads_back(value: i32) {
            prop_assert_eq!(cursor(&encoded(i64::from(value))).varint(), Some(value));
        }
    }

    #[test]
    fn lengths_at_the_edges_of_each_byte() {
        for (value, len) in [(0, 1), (-64, 1), (64, 2), (-65, 2), (8191, 2), (8192, 3), (i64::MIN, 10)] {
            assert_eq!(encoded_len(value), len, "{value}");
        }
    }

    #[test]
    fn number_wider_than_its_type_is_refused() {
        assert_eq!(cursor(&[0xff; 5]).varint(), None, "never ends");
        assert_eq!(cursor(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint(), None, "a 33rd bit");
        assert_eq!(cursor(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varint(), Some(i32::MIN));
        assert_eq!(cursor(&[0xff; 11]).varlong(), None, "never ends");
        let mut wide = [0xff; 10];
        wide[9] = 2;
        assert_eq!(cursor(&wide).varlong(), None, "a 65th bit");
    }

    #[test]
    fn length_below_null_is_refused() {
        assert_eq!(cursor(&encoded(-2)).nullable_bytes(), None);
        assert_eq!(cursor(&encoded(-1)).nullable_bytes(), Some(None));
        assert_eq!(cursor(&encoded(3)).nullable_bytes(), None, "past the end");
    }
}
