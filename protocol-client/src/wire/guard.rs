//! Walks a message by its table before kafka-protocol decodes it.
//!
//! kafka-protocol reserves memory for as many elements as an array declares, so ten bytes from a
//! peer could ask for hundreds of gigabytes and end the process. The walk reads every length and
//! count against the bytes that are really there, and adds up what the decoded message will take.
//! It allocates nothing, goes no deeper than the tables do, and takes time in proportion to the bytes.
//!
//! Invariant: what passes decodes into at most [`MEMORY_PER_BYTE`] × its own size +
//! [`MEMORY_ALLOWANCE_BYTES`], and never more than [`MEMORY_BYTES_MAX`]. Strings and record bytes
//! are slices of the frame and cost nothing; a message at the multiple is one of tiny elements.
//!
//! Refused too, as no honest peer writes them: varints wider than 32 bits, tags out of order or
//! twice, a tagged field longer or shorter than it says, bytes after the message.
//!
//! Source: KIP-482 for compact lengths and tagged fields ("in order of tag, each at most once").

use kafka_protocol::messages::ApiKey;

use super::error::{Problem, WireError};
use super::shape::{Field, Kind, Message, Shape};
use super::shapes;

/// Bytes of memory that each byte on the wire may become.
pub const MEMORY_PER_BYTE: usize = 16;

/// Memory that a message may take whatever its size: small honest ones (an ApiVersions response
/// with a tag in each of its elements) exceed any multiple.
pub const MEMORY_ALLOWANCE_BYTES: usize = 64 * 1024;

/// Memory for one decoded message at most: room for the metadata of about a million partitions.
pub const MEMORY_BYTES_MAX: usize = 256 << 20;

/// What a tag unknown to the tables costs: kafka-protocol keeps it in a map whose first node has
/// room for eleven.
const UNKNOWN_TAG_MEMORY_BYTES: usize = 448;

/// What the allocator adds to each vector.
const VECTOR_MEMORY_BYTES: usize = 16;

/// What a string takes beside its bytes.
const STRING_MEMORY_BYTES: usize = size_of::<bytes::Bytes>();

/// A tag that no table knows is kept as bytes; Kafka's own schemas have fewer than ten per struct.
const UNKNOWN_TAGS_MAX: usize = 1_000;

/// Checks a response's body (without its header) against the table of its API and version.
///
/// # Errors
/// [`WireError::Malformed`] with the field that doesn't fit; [`WireError::UnsupportedVersion`] when
/// there is no table for it.
pub fn check_response(api: ApiKey, version: i16, body: &[u8]) -> Result<(), WireError> {
    check(shapes::response(api), api, version, body)
}

/// Checks a request's body (without its header) against the table of its API and version.
///
/// # Errors
/// As [`check_response`].
pub fn check_request(api: ApiKey, version: i16, body: &[u8]) -> Result<(), WireError> {
    check(shapes::request(api), api, version, body)
}

fn check(message: Option<&'static Message>, api: ApiKey, version: i16, body: &[u8]) -> Result<(), WireError> {
    let message = message
        .filter(|message| (message.versions.0..=message.versions.1).contains(&version))
        .ok_or(WireError::UnsupportedVersion { api, version })?;
    let mut walk = Walk::new(body, version, version >= message.flexible_since);
    let result = walk.structure(&message.body).and_then(|()| match walk.remaining() {
        0 => Ok(()),
        left => Err(Problem::BytesAfterTheEnd { left }),
    });
    result.map_err(|problem| WireError::Malformed { message: message.name, version, field: walk.field, problem })
}

/// Checks the tagged fields of a header and says how many bytes they take.
pub(super) fn header_tags_len(bytes: &[u8]) -> Result<usize, Problem> {
    let mut walk = Walk::new(bytes, 0, true);
    walk.tags(&[])?;
    Ok(walk.at)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    version: i16,
    flexible: bool,
    memory_left: usize,
    /// The field being read, for the error.
    field: &'static str,
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8], version: i16, flexible: bool) -> Self {
        let memory = bytes.len().saturating_mul(MEMORY_PER_BYTE);
        Self {
            bytes,
            at: 0,
            version,
            flexible,
            memory_left: memory.saturating_add(MEMORY_ALLOWANCE_BYTES).min(MEMORY_BYTES_MAX),
            field: "the first field",
        }
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn structure(&mut self, shape: &'static Shape) -> Result<(), Problem> {
        for field in shape.fields {
            if (field.since..=field.until).contains(&self.version) {
                self.field(field)?;
            }
        }
        match self.flexible {
            true => self.tags(shape.tagged),
            false => Ok(()),
        }
    }

    fn field(&mut self, field: &'static Field) -> Result<(), Problem> {
        self.field = field.name;
        match field.kind {
            Kind::Fixed(width) => self.skip(width),
            Kind::String => self.string(),
            Kind::Bytes => {
                let len = self.count(LengthWidth::Int32)?;
                self.skip(len)
            }
            Kind::Fixeds(width) => {
                let count = self.elements(width)?;
                // No overflow: there are at most as many elements as bytes left.
                self.skip(count.checked_mul(width).ok_or(Problem::Truncated)?)
            }
            Kind::Strings => {
                for _ in 0..self.elements(STRING_MEMORY_BYTES)? {
                    self.string()?;
                }
                Ok(())
            }
            Kind::Array(element) => {
                for _ in 0..self.elements(element.memory_bytes)? {
                    self.structure(element)?;
                    self.field = field.name;
                }
                Ok(())
            }
            Kind::Struct(shape) => self.structure(shape),
        }
    }

    /// An array's count, checked against the bytes left, its memory charged.
    fn elements(&mut self, element_memory_bytes: usize) -> Result<usize, Problem> {
        let declared = self.count(LengthWidth::Int32)?;
        // Each element of any kind takes at least one byte.
        if declared > self.remaining() {
            return Err(Problem::TooManyElements { declared, left: self.remaining() });
        }
        if declared > 0 {
            let elements = declared.saturating_mul(element_memory_bytes);
            self.charge(elements.saturating_add(VECTOR_MEMORY_BYTES))?;
        }
        Ok(declared)
    }

    fn string(&mut self) -> Result<(), Problem> {
        let len = self.count(LengthWidth::Int16)?;
        self.skip(len)
    }

    /// A length or a count; null counts as 0.
    fn count(&mut self, width: LengthWidth) -> Result<usize, Problem> {
        if self.flexible {
            return Ok((self.unsigned_varint()? as usize).saturating_sub(1));
        }
        let declared = match width {
            LengthWidth::Int16 => i32::from(i16::from_be_bytes(self.take()?)),
            LengthWidth::Int32 => i32::from_be_bytes(self.take()?),
        };
        match declared {
            -1 => Ok(0),
            _ => usize::try_from(declared).map_err(|_| Problem::NegativeLength { declared }),
        }
    }

    fn tags(&mut self, known: &'static [super::shape::Tagged]) -> Result<(), Problem> {
        let count = self.unsigned_varint()? as usize;
        let mut unknown = 0;
        let mut least_tag = 0_u64;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            if u64::from(tag) < least_tag {
                return Err(Problem::TagOutOfOrder { tag });
            }
            least_tag = u64::from(tag) + 1;
            let size = self.unsigned_varint()? as usize;
            if size > self.remaining() {
                return Err(Problem::Truncated);
            }
            let end = self.at + size;
            let version = self.version;
            match known.iter().find(|known| known.tag == tag && version >= known.field.since) {
                Some(known) => {
                    self.field(&known.field)?;
                    if self.at != end {
                        return Err(Problem::TagSize { tag });
                    }
                }
                None => {
                    unknown += 1;
                    if unknown > UNKNOWN_TAGS_MAX {
                        return Err(Problem::TooManyTags { limit: UNKNOWN_TAGS_MAX });
                    }
                    self.charge(UNKNOWN_TAG_MEMORY_BYTES)?;
                    self.at = end;
                }
            }
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Problem> {
        self.memory_left = self.memory_left.checked_sub(bytes).ok_or(Problem::TooMuchMemory)?;
        Ok(())
    }

    fn skip(&mut self, len: usize) -> Result<(), Problem> {
        if len > self.remaining() {
            return Err(Problem::Truncated);
        }
        self.at += len;
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let taken = self.bytes[self.at..].first_chunk().ok_or(Problem::Truncated)?;
        self.at += N;
        Ok(*taken)
    }

    /// Five bytes at most and no bit beyond the 32nd: kafka-protocol would read on where others stop.
    fn unsigned_varint(&mut self) -> Result<u32, Problem> {
        let mut value = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.take()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| Problem::OverlongVarint);
            }
        }
        Err(Problem::OverlongVarint)
    }
}

/// How wide a length is where it isn't compact.
#[derive(Clone, Copy)]
enum LengthWidth {
    Int16,
    Int32,
}
