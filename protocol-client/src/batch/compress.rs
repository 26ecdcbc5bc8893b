//! The codecs of compressed batches: reading with a limit on what comes out, and writing in the frames that Java reads.
//!
//! A declared size is never believed: output grows as it is made, and ends at the limit. Snappy's raw
//! blocks are the exception, whose size must be known before; there the format itself bounds what so
//! many bytes can become.
//!
//! Written are gzip members, snappy blocks of 32 KiB behind snappy-java's header, LZ4 frames of independent 64 KiB blocks
//! without checksums or sizes (Java's reader knows no linked blocks), and one zstd frame. Left out: dictionaries, LZ4's
//! high compression, zstd levels above 4.
//!
//! Source: "Message Format" of the Kafka documentation (bits 0 to 2 of a batch's attributes); the
//! framing of snappy-java ("xerial"), in which Kafka's producers wrap snappy.

use std::fmt;
use std::io::{self, Read, Write};

use crate::config::CompressionConfig;

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
    /// What batches that are written under a configuration are compressed by.
    #[must_use]
    pub fn of(config: CompressionConfig) -> Self {
        match config {
            CompressionConfig::None => Self::None,
            CompressionConfig::Gzip { .. } => Self::Gzip,
            CompressionConfig::Snappy => Self::Snappy,
            CompressionConfig::Lz4 => Self::Lz4,
            CompressionConfig::Zstd { .. } => Self::Zstd,
        }
    }

    /// Its bits in a batch's attributes.
    pub(super) fn attributes(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
            Self::Unknown(number) => i16::from(number) & super::layout::COMPRESSION_MASK,
        }
    }

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

/// What snappy-java writes: its version, and the oldest that can read it.
const XERIAL_VERSIONS: &[u8] = &[0, 0, 0, 1, 0, 0, 0, 1];

/// snappy-java's own block size, which its reader makes room for.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;

/// The levels that the codec has; what a person asks for beyond them becomes the nearest.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -7..=4;

/// Appends `input`, compressed, to `output`.
///
/// An error means that a codec failed over bytes in memory, which none should; the caller sends the batch as it is.
pub(super) fn compress(config: CompressionConfig, input: &[u8], output: &mut Vec<u8>) -> io::Result<()> {
    match config {
        CompressionConfig::None => output.extend_from_slice(input),
        CompressionConfig::Gzip { level } => {
            let mut encoder = flate2::write::GzEncoder::new(output, flate2::Compression::new(level));
            encoder.write_all(input)?;
            encoder.finish()?;
        }
        CompressionConfig::Snappy => compress_snappy(input, output)?,
        CompressionConfig::Lz4 => {
            let info = lz4_flex::frame::FrameInfo::new()
                .block_mode(lz4_flex::frame::BlockMode::Independent)
                .block_size(lz4_flex::frame::BlockSize::Max64KB);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, output);
            encoder.write_all(input)?;
            encoder.finish().map_err(io::Error::other)?;
        }
        CompressionConfig::Zstd { level } => {
            let level = level.clamp(*ZSTD_LEVELS.start(), *ZSTD_LEVELS.end());
            // The codec's own 0 is another level than zstd's, where it means the default of 3.
            let level = if level == 0 { 3 } else { level };
            let start = output.len();
            output.resize(start + zrip::compress_bound(input.len()), 0);
            let written = zrip::compress_into(input, &mut output[start..], level).map_err(io::Error::other)?;
            output.truncate(start + written);
        }
    }
    Ok(())
}

fn compress_snappy(input: &[u8], output: &mut Vec<u8>) -> io::Result<()> {
    output.extend_from_slice(XERIAL_MAGIC);
    output.extend_from_slice(XERIAL_VERSIONS);
    let mut encoder = snap::raw::Encoder::new();
    for block in input.chunks(XERIAL_BLOCK_BYTES) {
        let start = output.len() + size_of::<u32>();
        output.resize(start + snap::raw::max_compress_len(block.len()), 0);
        let written = encoder.compress(block, &mut output[start..]).map_err(io::Error::other)?;
        output.truncate(start + written);
        output[start - size_of::<u32>()..start].copy_from_slice(&(written as u32).to_be_bytes());
    }
    Ok(())
}

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

    fn every_codec() -> [CompressionConfig; 7] {
        use CompressionConfig::{Gzip, Lz4, None, Snappy, Zstd};
        [None, Gzip { level: 1 }, Gzip { level: 9 }, Snappy, Lz4, Zstd { level: -131_072 }, Zstd { level: 22 }]
    }

    #[test]
    fn what_is_written_is_read_again_at_every_size_around_the_blocks() {
        let block = 64 * 1024;
        for config in every_codec() {
            for size in [0, 1, 7, XERIAL_BLOCK_BYTES, XERIAL_BLOCK_BYTES + 1, block, block + 5] {
                let input: Vec<u8> =
                    (0..size as u32).flat_map(|number| (number / 5).to_le_bytes()).take(size).collect();
                let mut output = b"before".to_vec();
                compress(config, &input, &mut output).unwrap();
                assert!(output.starts_with(b"before"), "{config:?}");
                let read = decompress(Compression::of(config), &output[6..], LIMIT).unwrap();
                assert!(read == input, "{config:?} of {size} bytes");
            }
        }
    }

    /// Java's readers look at these bytes: `SnappyInputStream`, and `Lz4BlockInputStream` with its flags.
    #[test]
    fn frames_carry_the_flags_that_java_asks_for() {
        let mut snappy = Vec::new();
        compress(CompressionConfig::Snappy, b"text", &mut snappy).unwrap();
        assert_eq!(&snappy[..20], b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x06");
        let mut lz4 = Vec::new();
        compress(CompressionConfig::Lz4, b"text", &mut lz4).unwrap();
        // The magic; version 1, independent blocks, no checksums, no size; blocks of 64 KiB; the header's checksum.
        assert_eq!(&lz4[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn any_bytes_survive_every_codec(input in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..3000)) {
            for config in every_codec() {
                let mut output = Vec::new();
                compress(config, &input, &mut output).unwrap();
                proptest::prop_assert_eq!(&decompress(Compression::of(config), &output, LIMIT).unwrap(), &input);
            }
        }
    }

    #[test]
    fn noise_is_refused_by_each_codec() {
        for compression in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
            refused(compression, &[0x5a; 100]);
        }
        assert_eq!(decompress(Compression::Unknown(5), &[], LIMIT), Err(DecompressError::Unknown));
    }
}
