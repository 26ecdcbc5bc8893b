//! Settings of the transactional producer. Everything that would weaken exactly-once is refused, not ignored.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ConfigError;
use super::parse::{Properties, invalid};

/// How a transactional producer batches, waits and names itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ProducerConfig {
    /// `transactional.id`: the name that fences an older producer of the same name. Never empty.
    pub transactional_id: String,
    /// `transaction.timeout.ms`: the coordinator aborts a transaction that is open longer. Default 60 s; the broker's
    /// `transaction.max.timeout.ms` (15 min by default) is its upper limit.
    pub transaction_timeout: Duration,
    /// `delivery.timeout.ms`: from append to acknowledgement of a record, waiting included. Default 120 s.
    pub delivery_timeout: Duration,
    /// `max.block.ms`: how long an append may wait for memory or metadata. Default 60 s.
    pub max_block: Duration,
    /// `max.request.size`: the largest Produce request, and so the largest record, in bytes. Default 1 MiB.
    pub max_request_bytes: usize,
    /// `batch.size`: a batch is sealed at this many bytes. Default 1,000,000 bytes (Java: 16,384): a transaction's batches are
    /// sent when they are full or at the commit, so a small batch has no latency to win.
    pub batch_bytes: usize,
    /// `buffer.memory`: bytes of batches that are not yet acknowledged. Default 32 MiB. Appends wait when it is used up.
    pub buffer_memory_bytes: usize,
    /// `linger.ms`: how long a batch that is not full may wait for more. Default 5 ms; a commit never lingers.
    pub linger: Duration,
    /// `max.in.flight.requests.per.connection`: 1 to 5. Default 5, which is what a broker remembers per partition.
    pub max_in_flight: usize,
    /// `compression.type` and its level. Default none.
    pub compression: CompressionConfig,
}

/// `compression.type` with the level of its codec, as the codecs here understand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressionConfig {
    /// Batches are sent as they are. The default, as in Java.
    #[default]
    None,
    /// `gzip`.
    Gzip {
        /// `compression.gzip.level`: 1 to 9. Default 6 (property -1).
        level: u32,
    },
    /// `snappy`, in snappy-java's framing.
    Snappy,
    /// `lz4`. `compression.lz4.level` is checked and has no effect: the codec has one level, about Java's 1.
    Lz4,
    /// `zstd`.
    Zstd {
        /// `compression.zstd.level`: default 3. The codec has -7 to 4; values beyond are its nearest.
        level: i32,
    },
}

impl CompressionConfig {
    const GZIP_LEVEL: u32 = 6;
    const ZSTD_LEVEL: i32 = 3;

    fn read(read: &mut Properties<'_>) -> Result<Self, ConfigError> {
        // -1 is zlib's own choice; all three ranges are those of Kafka's configuration (KIP-390).
        let mut gzip: i32 = -1;
        read.number("compression.gzip.level", -1, 9, &mut gzip)?;
        let mut lz4: i32 = 9;
        read.number("compression.lz4.level", 1, 17, &mut lz4)?;
        let mut zstd: i32 = Self::ZSTD_LEVEL;
        read.number("compression.zstd.level", -131_072, 22, &mut zstd)?;
        let gzip_level = match gzip {
            0 => return Err(invalid("compression.gzip.level", "0", "a whole number from 1 to 9, or -1".to_owned())),
            level => u32::try_from(level).unwrap_or(Self::GZIP_LEVEL),
        };
        let key = "compression.type";
        match read.optional(key).unwrap_or("none").to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "gzip" => Ok(Self::Gzip { level: gzip_level }),
            "snappy" => Ok(Self::Snappy),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd { level: zstd }),
            other => Err(invalid(key, other, "none, gzip, snappy, lz4 or zstd".to_owned())),
        }
    }
}

impl ProducerConfig {
    /// Defaults for one transactional id.
    ///
    /// # Errors
    /// When the id is empty.
    pub fn new(transactional_id: &str) -> Result<Self, ConfigError> {
        if transactional_id.is_empty() {
            return Err(ConfigError::Missing { key: "transactional.id".to_owned() });
        }
        Ok(Self {
            transactional_id: transactional_id.to_owned(),
            transaction_timeout: Duration::from_secs(60),
            delivery_timeout: Duration::from_secs(120),
            max_block: Duration::from_secs(60),
            max_request_bytes: 1024 * 1024,
            batch_bytes: 1_000_000,
            buffer_memory_bytes: 32 * 1024 * 1024,
            linger: Duration::from_millis(5),
            max_in_flight: 5,
            compression: CompressionConfig::None,
        })
    }

    /// Reads Kafka's property names. The second value lists the keys that are not the producer's.
    ///
    /// # Errors
    /// A missing or malformed value, named with what is allowed; a value that would give up exactly-once.
    pub fn from_properties(properties: &BTreeMap<String, String>) -> Result<(Self, Vec<String>), ConfigError> {
        let mut read = Properties::new(properties);
        let mut config = Self::new(read.required("transactional.id")?)?;
        let i32_max = i32::MAX.unsigned_abs() as usize;
        read.millis("transaction.timeout.ms", 1, &mut config.transaction_timeout)?;
        read.millis("delivery.timeout.ms", 1, &mut config.delivery_timeout)?;
        read.millis("max.block.ms", 0, &mut config.max_block)?;
        read.millis("linger.ms", 0, &mut config.linger)?;
        read.number("max.request.size", 1, i32_max, &mut config.max_request_bytes)?;
        read.number("batch.size", 0, i32_max, &mut config.batch_bytes)?;
        read.number("buffer.memory", 1, usize::MAX, &mut config.buffer_memory_bytes)?;
        read.number("max.in.flight.requests.per.connection", 1, 5, &mut config.max_in_flight)?;
        read.only("acks", &["all", "-1"], "a transaction needs the acknowledgement of all in-sync replicas")?;
        read.only("enable.idempotence", &["true"], "a transactional producer is always idempotent")?;
        config.compression = CompressionConfig::read(&mut read)?;
        // Retries are bounded by the delivery timeout alone, as Kafka advises; the count is accepted and has no effect
        // except that 0 would forbid what exactly-once needs.
        let mut retries = i32::MAX;
        read.number("retries", 1, i32::MAX, &mut retries)?;
        Ok((config, read.unknown()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<(ProducerConfig, Vec<String>), ConfigError> {
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ProducerConfig::from_properties(&map)
    }

    #[test]
    fn defaults_are_kafkas_where_the_field_does_not_say_otherwise() {
        let (config, unknown) = read(&[("transactional.id", "t"), ("x", "y")]).unwrap();
        assert_eq!(config.max_request_bytes, 1_048_576);
        assert_eq!(config.buffer_memory_bytes, 33_554_432);
        assert_eq!(config.delivery_timeout, Duration::from_secs(120));
        assert_eq!(unknown, vec!["x".to_owned()]);
    }

    #[test]
    fn settings_that_give_up_exactly_once_are_refused() {
        for (key, value) in [("acks", "1"), ("enable.idempotence", "false"), ("retries", "0")] {
            let error = read(&[("transactional.id", "t"), (key, value)]).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
        assert!(read(&[("transactional.id", "t"), ("acks", "-1"), ("enable.idempotence", "TRUE")]).is_ok());
    }

    #[test]
    fn compression_is_read_with_its_level_and_checked() {
        let compression = |pairs: &[(&str, &str)]| {
            read(&[&[("transactional.id", "t")], pairs].concat()).map(|(config, _)| config.compression)
        };
        assert_eq!(compression(&[]), Ok(CompressionConfig::None));
        assert_eq!(compression(&[("compression.type", "GZIP")]), Ok(CompressionConfig::Gzip { level: 6 }));
        let nine = [("compression.type", "gzip"), ("compression.gzip.level", "9")];
        assert_eq!(compression(&nine), Ok(CompressionConfig::Gzip { level: 9 }));
        let zstd = [("compression.type", "zstd"), ("compression.zstd.level", "-5")];
        assert_eq!(compression(&zstd), Ok(CompressionConfig::Zstd { level: -5 }));
        for bad in [("compression.type", "brotli"), ("compression.gzip.level", "0"), ("compression.lz4.level", "18")] {
            assert!(compression(&[bad]).unwrap_err().to_string().contains(bad.0));
        }
    }

    #[test]
    fn java_long_max_as_a_timeout_is_accepted() {
        let (config, _) = read(&[("transactional.id", "t"), ("max.block.ms", "9223372036854775807")]).unwrap();
        assert!(std::time::Instant::now().checked_add(config.max_block).is_some());
    }

    #[test]
    fn more_than_five_requests_in_flight_are_refused() {
        assert!(read(&[("transactional.id", "t"), ("max.in.flight.requests.per.connection", "6")]).is_err());
    }
}
