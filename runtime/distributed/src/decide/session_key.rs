//! When the leader makes a new key for requests between workers (KIP-507).

use std::time::Duration;

/// The key that was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known<'a> {
    /// Its algorithm.
    pub algorithm: &'a str,
    /// Its length in bytes.
    pub bytes: usize,
    /// When it was made, ms since 1970.
    pub created_ms: i64,
}

/// The leader's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// `inter.worker.key.generation.algorithm`.
    pub algorithm: &'a str,
    /// `inter.worker.key.size` in bytes.
    pub bytes: usize,
    /// `inter.worker.key.ttl.ms`; zero: never rotated.
    pub ttl: Duration,
}

/// Whether a new key is due.
pub fn is_due(known: Option<Known<'_>>, wanted: Wanted<'_>, now_ms: i64) -> bool {
    let Some(known) = known else { return true };
    if known.algorithm != wanted.algorithm || known.bytes != wanted.bytes {
        return true;
    }
    expires_at(known.created_ms, wanted.ttl).is_some_and(|expires| now_ms >= expires)
}

/// When a key made at `created_ms` has to be replaced; `None`: never.
pub fn expires_at(created_ms: i64, ttl: Duration) -> Option<i64> {
    (!ttl.is_zero()).then(|| created_ms.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted<'_> = Wanted { algorithm: "HmacSHA256", bytes: 32, ttl: Duration::from_secs(3600) };
    const KNOWN: Known<'_> = Known { algorithm: "HmacSHA256", bytes: 32, created_ms: 1000 };

    /// G93
    #[test]
    fn key_rotation() {
        assert!(is_due(None, WANTED, 0));
        assert!(!is_due(Some(KNOWN), WANTED, 3_600_999));
        assert!(is_due(Some(KNOWN), WANTED, 3_601_000));
        assert!(is_due(Some(Known { bytes: 16, ..KNOWN }), WANTED, 1000));
        assert!(!is_due(Some(KNOWN), Wanted { ttl: Duration::ZERO, ..WANTED }, i64::MAX));
    }
}
