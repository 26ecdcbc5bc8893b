//! The codecs of compressed batches, each with a limit on what comes out.
//!
//! Left out for now: the codecs themselves; a compressed batch is refused by name.
//!
//! Source: "Message Format" of the Kafka documentation (bits 0 to 2 of a batch's attributes).

use std::fmt;

/// What one batch may hold after decompression: 64 MiB. A broker limits the compressed size only
/// (`message.max.bytes`), so without a limit of our own a small batch could fill the memory.
pub const DECOMPRESSED_BYTES_MAX: usize = 64 << 20;

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952, possibly in several members.
    Gzip,
    /// Snappy blocks in the xerial framing.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard frames.
    Zstd,
    /// A number that this client doesn't know (5 to 7).
    Unknown(u8),
}

impl Compression {
    pub(super) fn from_attributes(attributes: i16) -> Self {
        match attributes & super::layout::COMPRESSION_MASK {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            other => Self::Unknown(other as u8),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Gzip => write!(f, "gzip"),
            Self::Snappy => write!(f, "snappy"),
            Self::Lz4 => write!(f, "lz4"),
            Self::Zstd => write!(f, "zstd"),
            Self::Unknown(number) => write!(f, "codec {number}"),
        }
    }
}
