//! The codecs of compressed batches, each with a limit on what comes out.
//!
//! A declared size is never believed: output grows as it is made, and ends at the limit. Snappy's raw
//! blocks are the exception, whose size must be known before; there the format itself bounds what so
//! many bytes can become.
//!
//! Left out: compressing. What this client writes is not compressed.
//!
//! Source: "Message Format" of the Kafka documentation (bits 0 to 2 of a batch's attributes); the
//! framing of snappy-java ("xerial"), in which Kafka's producers wrap snappy.

use std::fmt;
use std::io::Read;

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

/// Why records didn't come out of a compressed batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecompressError {
    /// More would come out than the limit allows.
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The bytes are not what the codec writes.
    Corrupt(String),
    /// A codec that this client doesn't know.
    Unknown,
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit } => write!(f, "more than {limit} bytes would come out"),
            Self::Corrupt(reason) => write!(f, "{reason}"),
            Self::Unknown => write!(f, "this codec is not known"),
        }
    }
}

/// What `input` becomes, at most `limit` bytes of it.
pub(super) fn decompress(compression: Compression, input: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
    match compression {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => read_limited(flate2::bufread::MultiGzDecoder::new(input), limit),
        Compression::Snappy => snappy(input, limit),
        Compression::Lz4 => read_limited(lz4_flex::frame::FrameDecoder::new(input), limit),
        Compression::Zstd => zrip::decompress_with_limit(input, limit).map_err(|error| match error {
            zrip::DecompressError::OutputTooSmall => DecompressError::TooLarge { limit },
            other => DecompressError::Corrupt(other.to_string()),
        }),
        Compression::Unknown(_) => Err(DecompressError::Unknown),
    }
}

fn read_limited(decoder: impl Read, limit: usize) -> Result<Vec<u8>, DecompressError> {
    let mut output = Vec::new();
    // One byte beyond the limit tells a full output from one that goes on.
    let mut limited = decoder.take(limit as u64 + 1);
    limited.read_to_end(&mut output).map_err(|error| DecompressError::Corrupt(error.to_string()))?;
    match output.len() > limit {
        true => Err(DecompressError::TooLarge { limit }),
        false => Ok(output),
    }
}

/// Start of the header that snappy-java writes: the magic, then two versions of four bytes.
const XERIAL_MAGIC: &[u8] = b"\x82SNAPPY\0";
const XERIAL_HEADER_BYTES: usize = 16;

/// A copy of 64 bytes takes three bytes of input, and nothing in the format expands further.
const SNAPPY_EXPANSION_MAX: usize = 22;

/// Blocks behind their lengths after a header, which may come again where streams were joined; bytes
/// without the header are one raw block, as producers other than Java's write it.
fn snappy(input: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
    let mut output = Vec::new();
    if !input.starts_with(XERIAL_MAGIC) {
        snappy_block(input, limit, &mut output)?;
        return Ok(output);
    }
    let mut rest = input;
    while !rest.is_empty() {
        if rest.starts_with(XERIAL_MAGIC) {
            rest = rest.get(XERIAL_HEADER_BYTES..).ok_or_else(|| corrupt("snappy header is cut off"))?;
            continue;
        }
        let (len, after) = rest.split_first_chunk().ok_or_else(|| corrupt("snappy block length is cut off"))?;
        let len = u32::from_be_bytes(*len) as usize;
        let block = after.get(..len).ok_or_else(|| corrupt("snappy block is cut off"))?;
        snappy_block(block, limit, &mut output)?;
        rest = &after[len..];
    }
    Ok(output)
}

fn snappy_block(block: &[u8], limit: usize, output: &mut Vec<u8>) -> Result<(), DecompressError> {
    let declared = snap::raw::decompress_len(block).map_err(|error| corrupt(&error.to_string()))?;
    if declared > block.len().saturating_mul(SNAPPY_EXPANSION_MAX) {
        return Err(corrupt("snappy block declares more than its bytes can become"));
    }
    let start = output.len();
    if declared > limit - start {
        return Err(DecompressError::TooLarge { limit });
    }
    output.resize(start + declared, 0);
    let written = snap::raw::Decoder::new()
        .decompress(block, &mut output[start..])
        .map_err(|error| corrupt(&error.to_string()))?;
    output.truncate(start + written);
    Ok(())
}

fn corrupt(reason: &str) -> DecompressError {
    DecompressError::Corrupt(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LIMIT: usize = 1 << 20;

    fn too_large(compression: Compression, bomb: &[u8]) {
        assert!(bomb.len() < LIMIT / 50, "a bomb is small: {}", bomb.len());
        assert_eq!(decompress(compression, bomb, LIMIT), Err(DecompressError::TooLarge { limit: LIMIT }));
    }

    fn refused(compression: Compression, bytes: &[u8]) {
        let result = decompress(compression, bytes, LIMIT);
        assert!(matches!(result, Err(DecompressError::Corrupt(_))), "{result:?}");
    }

    fn xerial(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = [XERIAL_MAGIC, &[0, 0, 0, 1, 0, 0, 0, 1]].concat();
        for block in blocks {
            bytes.extend_from_slice(&(block.len() as u32).to_be_bytes());
            bytes.extend_from_slice(block);
        }
        bytes
    }

    #[test]
    fn gzip_bomb_ends_at_the_limit() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![0; 8 * LIMIT]).unwrap();
        too_large(Compression::Gzip, &encoder.finish().unwrap());
    }

    #[test]
    fn lz4_bomb_ends_at_the_limit() {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(&vec![0; 2 * LIMIT]).unwrap();
        too_large(Compression::Lz4, &encoder.finish().unwrap());
    }

    #[test]
    fn zstd_bomb_ends_at_the_limit() {
        too_large(Compression::Zstd, &zrip::compress(&vec![0; 8 * LIMIT], 1).unwrap());
    }

    #[test]
    fn snappy_blocks_that_add_up_beyond_the_limit_are_refused() {
        let block = snap::raw::Encoder::new().compress_vec(&[0; 60_000]).unwrap();
        let bytes = xerial(&vec![&block[..]; 20]);
        let result = decompress(Compression::Snappy, &bytes, LIMIT);
        assert_eq!(result, Err(DecompressError::TooLarge { limit: LIMIT }));
    }

    /// Both declare 4 GiB in a few bytes.
    #[test]
    fn snappy_block_that_declares_more_than_it_can_hold_is_refused_unread() {
        let block = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        refused(Compression::Snappy, &block);
        refused(Compression::Snappy, &xerial(&[&block]));
    }

    #[test]
    fn snappy_frames_cut_anywhere_are_refused() {
        let block = snap::raw::Encoder::new().compress_vec(b"some text, some text").unwrap();
        let bytes = xerial(&[&block, &block]);
        assert_eq!(decompress(Compression::Snappy, &bytes, LIMIT).unwrap(), b"some text, some text".repeat(2));
        let whole = [XERIAL_HEADER_BYTES, XERIAL_HEADER_BYTES + 4 + block.len()];
        for len in (1..bytes.len()).filter(|len| !whole.contains(len)) {
            refused(Compression::Snappy, &bytes[..len]);
        }
    }

    #[test]
    fn joined_snappy_streams_and_raw_blocks_are_read() {
        let block = snap::raw::Encoder::new().compress_vec(b"text").unwrap();
        let joined = [xerial(&[&block]), xerial(&[&block])].concat();
        assert_eq!(decompress(Compression::Snappy, &joined, LIMIT).unwrap(), b"texttext");
        assert_eq!(decompress(Compression::Snappy, &block, LIMIT).unwrap(), b"text");
    }

    #[test]
    fn noise_is_refused_by_each_codec() {
        for compression in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
            refused(compression, &[0x5a; 100]);
        }
        assert_eq!(decompress(Compression::Unknown(5), &[], LIMIT), Err(DecompressError::Unknown));
    }
}
