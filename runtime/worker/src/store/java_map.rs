//! The one Java object that a standalone worker keeps in its offsets file: a serialized `HashMap<byte[], byte[]>`. Pure.
//!
//! ```text
//! aced 0005                                   stream header
//! 73 72 "java.util.HashMap" … 78 70           the object and its class
//! <load factor> <threshold>                   fields
//! 77 08 <buckets> <size>                      what HashMap writes by itself
//! size × (key, value)                         75 72 "[B" … <length> <bytes>, later 75 71 <handle> <length> <bytes>; 70 is null
//! 78                                          end
//! ```
//!
//! Any such stream is read, whatever its load factor; written is the form that a Java worker writes. Source: the Java Object
//! Serialization Specification, chapter 6; vectors from a 4.3.1 worker are in the tests. Lengths are checked against what is
//! there before anything is allocated.

use bytes::Bytes;
use std::fmt;

/// Keys with their values, in the order of the stream; a null value is a tombstone.
pub type Entries = Vec<(Bytes, Option<Bytes>)>;

/// Why the bytes are not such a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAMap {
    /// Where reading stopped, in bytes from the start.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl fmt::Display for NotAMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: expected {}", self.at, self.expected)
    }
}

impl std::error::Error for NotAMap {}

const HEADER: &[u8] = &[0xac, 0xed, 0x00, 0x05];
const MAP_CLASS: &[u8] =
    b"\x73\x72\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02\x46\x00\x0aloadFactor\x49\x00\x09threshold\x78\x70";
const ARRAY_CLASS: &[u8] = b"\x72\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00\x78\x70";

const ARRAY: u8 = 0x75;
const REFERENCE: u8 = 0x71;
const NULL: u8 = 0x70;
const BLOCK: &[u8] = &[0x77, 0x08];
const END: u8 = 0x78;

/// Handles count from here: the map's class, the map, the array class, then each array.
const HANDLE_BASE: u32 = 0x007e_0000;
const ARRAY_CLASS_HANDLE: u32 = HANDLE_BASE + 2;

/// Reads a map. An empty input is an empty map, as Java has it.
///
/// # Errors
/// [`NotAMap`] with the place.
pub fn read(bytes: &Bytes) -> Result<Entries, NotAMap> {
    if bytes.is_empty() {
        return Ok(Entries::new());
    }
    let mut reader = Reader { bytes, at: 0, class_seen: false, arrays: Vec::new() };
    reader.exactly(HEADER, "a Java serialization stream")?;
    reader.exactly(MAP_CLASS, "an object of java.util.HashMap")?;
    reader.take(8, "load factor and threshold")?;
    reader.exactly(BLOCK, "the map's size")?;
    reader.number("number of buckets")?;
    let size = reader.number("number of entries")?;
    let mut entries = Entries::new();
    for _ in 0..size {
        let key = reader.array()?.ok_or(NotAMap { at: reader.at, expected: "a key that is not null" })?;
        entries.push((key, reader.array()?));
    }
    reader.exactly(&[END], "the end of the map")?;
    Ok(entries)
}

struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
    class_seen: bool,
    arrays: Vec<Bytes>,
}

impl Reader<'_> {
    fn take(&mut self, count: usize, expected: &'static str) -> Result<Bytes, NotAMap> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(NotAMap { at: self.at, expected })?;
        let taken = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(taken)
    }

    fn exactly(&mut self, wanted: &[u8], expected: &'static str) -> Result<(), NotAMap> {
        let at = self.at;
        if self.take(wanted.len(), expected)? == wanted { Ok(()) } else { Err(NotAMap { at, expected }) }
    }

    fn number(&mut self, expected: &'static str) -> Result<u32, NotAMap> {
        let bytes = self.take(4, expected)?;
        let mut number = [0; 4];
        number.copy_from_slice(&bytes);
        Ok(u32::from_be_bytes(number))
    }

    fn array(&mut self) -> Result<Option<Bytes>, NotAMap> {
        let at = self.at;
        match self.take(1, "an array or null")?[0] {
            NULL => Ok(None),
            REFERENCE => {
                let place = self.number("a handle")?.checked_sub(ARRAY_CLASS_HANDLE + 1).map(|place| place as usize);
                let known = place.and_then(|place| self.arrays.get(place)).cloned();
                known.map(Some).ok_or(NotAMap { at, expected: "the handle of an array" })
            }
            ARRAY => {
                self.array_class()?;
                let length = self.number("an array's length")?;
                let array = self.take(length as usize, "an array's bytes")?;
                self.arrays.push(array.clone());
                Ok(Some(array))
            }
            _ => Err(NotAMap { at, expected: "an array or null" }),
        }
    }

    fn array_class(&mut self) -> Result<(), NotAMap> {
        if self.class_seen {
            let at = self.at;
            self.exactly(&[REFERENCE], "the class of a byte array")?;
            let handle = self.number("the class of a byte array")?;
            return if handle == ARRAY_CLASS_HANDLE {
                Ok(())
            } else {
                Err(NotAMap { at, expected: "the class of a byte array" })
            };
        }
        self.class_seen = true;
        self.exactly(ARRAY_CLASS, "the class of a byte array")
    }
}

/// Writes a map as a Java worker does. More than 2^28 entries don't occur: the file would be larger than any worker reads.
pub fn write<'a>(entries: impl ExactSizeIterator<Item = (&'a Bytes, Option<&'a Bytes>)>) -> Vec<u8> {
    let size = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let buckets = (size.saturating_add(size / 3).saturating_add(1)).next_power_of_two().clamp(16, 1 << 30);
    let threshold = buckets / 4 * 3;
    let mut out = Vec::new();
    out.extend_from_slice(HEADER);
    out.extend_from_slice(MAP_CLASS);
    out.extend_from_slice(&0.75_f32.to_be_bytes());
    out.extend_from_slice(&threshold.to_be_bytes());
    out.extend_from_slice(BLOCK);
    out.extend_from_slice(&buckets.to_be_bytes());
    out.extend_from_slice(&size.to_be_bytes());
    let mut class_written = false;
    for (key, value) in entries {
        write_array(key, &mut class_written, &mut out);
        match value {
            Some(value) => write_array(value, &mut class_written, &mut out),
            None => out.push(NULL),
        }
    }
    out.push(END);
    out
}

fn write_array(array: &[u8], class_written: &mut bool, out: &mut Vec<u8>) {
    out.push(ARRAY);
    if std::mem::replace(class_written, true) {
        out.push(REFERENCE);
        out.extend_from_slice(&ARRAY_CLASS_HANDLE.to_be_bytes());
    } else {
        out.extend_from_slice(ARRAY_CLASS);
    }
    out.extend_from_slice(&u32::try_from(array.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(array);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// {"K" → "VV", "L" → null}, written by Kafka Connect 4.3.1 on Java 17.
    const FROM_JAVA: &str = "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900\
        097468726573686f6c6478703f4000000000000c77080000001000000002757200025b42acf317f8060854e00200007870000000014b7571007e000200\
        00000256567571007e0002000000014c7078";

    fn unhex(text: &str) -> Bytes {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn entries() -> Entries {
        vec![(Bytes::from_static(b"K"), Some(Bytes::from_static(b"VV"))), (Bytes::from_static(b"L"), None)]
    }

    /// H108 file-offsets-compatibility
    #[test]
    fn what_java_wrote_is_read_and_written_back_byte_for_byte() {
        let java = unhex(FROM_JAVA);
        assert_eq!(read(&java).unwrap(), entries());
        let again = write(entries().iter().map(|(key, value)| (key, value.as_ref())));
        assert_eq!(again, java);
    }

    #[test]
    fn a_back_reference_to_an_array_is_that_array() {
        let mut bytes = unhex(FROM_JAVA).to_vec();
        let length = bytes.len();
        // The null value of "L" becomes a reference to the array "VV", the second one after the class.
        bytes.splice(length - 2..length - 1, [0x71, 0x00, 0x7e, 0x00, 0x04]);
        assert_eq!(read(&bytes.into()).unwrap()[1].1, Some(Bytes::from_static(b"VV")));
    }

    #[test]
    fn each_cut_is_an_error_and_none_allocates_by_a_declared_length() {
        let java = unhex(FROM_JAVA);
        for end in 1..java.len() {
            assert!(read(&java.slice(..end)).is_err(), "cut at {end}");
        }
        assert_eq!(read(&Bytes::new()).unwrap(), Entries::new());
        let mut huge = java.to_vec();
        let size_at = HEADER.len() + MAP_CLASS.len() + 8 + 2 + 4;
        huge[size_at..size_at + 4].fill(0xff);
        assert!(read(&huge.into()).is_err());
    }

    #[test]
    fn many_entries_survive_the_journey() {
        let many: Entries = (0..1000_u32)
            .map(|n| (Bytes::copy_from_slice(&n.to_be_bytes()), Some(Bytes::from(n.to_string()))))
            .collect();
        let written = write(many.iter().map(|(key, value)| (key, value.as_ref())));
        assert_eq!(read(&written.into()).unwrap(), many);
    }
}
