//! Signed requests between workers (KIP-507): an HMAC over the body, under the session key that the leader keeps in the config topic.
//!
//! Left out: making and rotating keys, which is the herder's. The signature covers the body alone; an empty body is signed as zero bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::error::Failure;
use crate::herder::HerderError;

/// Header with the base64 of the HMAC.
pub const SIGNATURE_HEADER: &str = "X-Connect-Authorization";
/// Header with the algorithm's Java name.
pub const ALGORITHM_HEADER: &str = "X-Connect-Request-Signature-Algorithm";

/// A signature as it came in, decoded but not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSignature {
    /// What was signed.
    pub body: Bytes,
    /// Java's name of the algorithm, such as `HmacSHA256`.
    pub algorithm: String,
    /// The bytes of the HMAC.
    pub mac: Vec<u8>,
}

impl RequestSignature {
    /// Reads the two headers; `None` when either is missing.
    ///
    /// # Errors
    /// 400 when the algorithm is none that Java has, or the signature is no base64.
    pub(crate) fn from_headers(
        algorithm: Option<&str>,
        signature: Option<&str>,
        body: Bytes,
    ) -> Result<Option<Self>, Failure> {
        let (Some(algorithm), Some(signature)) = (algorithm, signature) else { return Ok(None) };
        if !JAVA_ALGORITHMS.iter().any(|known| known.eq_ignore_ascii_case(algorithm)) {
            return Err(Failure::new(400, format!("Algorithm {algorithm} not available")));
        }
        let mac = STANDARD.decode(signature).map_err(|_| match not_base64(signature) {
            Some(character) => Failure::new(400, format!("Illegal base64 character {:x}", u32::from(character))),
            None => Failure::new(400, "Input byte array has wrong 4-byte ending unit"),
        })?;
        Ok(Some(RequestSignature { body, algorithm: algorithm.to_owned(), mac }))
    }
}

fn not_base64(text: &str) -> Option<char> {
    text.chars().find(|character| !character.is_ascii_alphanumeric() && !matches!(character, '+' | '/' | '='))
}

/// The MACs of a Java 17 that a worker may be told to use. Those that this crate cannot compute are known, so that the answer is that they are not
/// allowed rather than unknown.
const JAVA_ALGORITHMS: [&str; 7] =
    ["HmacSHA256", "HmacSHA384", "HmacSHA512", "HmacSHA224", "HmacSHA1", "HmacMD5", "HmacSHA3-256"];

/// The algorithms that [`sign`] and [`verify`] compute.
pub const ALGORITHMS: [&str; 4] = ["HmacSHA256", "HmacSHA384", "HmacSHA512", "HmacSHA224"];

/// One HMAC: made of the body, or compared with it in constant time.
macro_rules! hmac {
    ($hash:ty, $key:expr, $body:expr) => {{
        let mut mac = <Hmac<$hash> as Mac>::new_from_slice($key).expect("an HMAC takes a key of any length");
        mac.update($body);
        mac
    }};
}

/// The base64 HMAC of `body`, or `None` when `algorithm` is none of [`ALGORITHMS`].
pub fn sign(key: &[u8], algorithm: &str, body: &[u8]) -> Option<String> {
    let bytes = match canonical(algorithm)? {
        "HmacSHA224" => hmac!(Sha224, key, body).finalize().into_bytes().to_vec(),
        "HmacSHA256" => hmac!(Sha256, key, body).finalize().into_bytes().to_vec(),
        "HmacSHA384" => hmac!(Sha384, key, body).finalize().into_bytes().to_vec(),
        _ => hmac!(Sha512, key, body).finalize().into_bytes().to_vec(),
    };
    Some(STANDARD.encode(bytes))
}

fn matches(key: &[u8], signature: &RequestSignature) -> bool {
    let RequestSignature { body, algorithm, mac } = signature;
    match canonical(algorithm) {
        Some("HmacSHA224") => hmac!(Sha224, key, body).verify_slice(mac).is_ok(),
        Some("HmacSHA256") => hmac!(Sha256, key, body).verify_slice(mac).is_ok(),
        Some("HmacSHA384") => hmac!(Sha384, key, body).verify_slice(mac).is_ok(),
        Some(_) => hmac!(Sha512, key, body).verify_slice(mac).is_ok(),
        None => false,
    }
}

fn canonical(algorithm: &str) -> Option<&'static str> {
    ALGORITHMS.into_iter().find(|known| known.eq_ignore_ascii_case(algorithm))
}

/// Checks a request as a worker with session keys does; `allowed` is `inter.worker.verification.algorithms`, `key` the raw session key last read.
///
/// # Errors
/// In this order: no signature, an algorithm not allowed (400); no key yet (503); a mismatch (403).
pub fn verify(signature: Option<&RequestSignature>, allowed: &[String], key: Option<&[u8]>) -> Result<(), HerderError> {
    let Some(signature) = signature else {
        return Err(HerderError::BadRequest("Internal request missing required signature".to_owned()));
    };
    if !allowed.contains(&signature.algorithm) {
        return Err(HerderError::BadRequest(format!(
            "This worker does not support the '{}' key signing algorithm used by other workers. This worker is currently configured to use: \
             [{}]. Check that all workers' configuration files permit the same set of signature algorithms, and correct any misconfigured \
             worker and restart it.",
            signature.algorithm,
            allowed.join(", ")
        )));
    }
    let Some(key) = key else {
        return Err(HerderError::Unavailable(
            "This worker is still starting up and has not been able to read a session key from the config topic yet"
                .to_owned(),
        ));
    };
    if !matches(key, signature) {
        return Err(HerderError::Forbidden("Internal request contained invalid signature.".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(key: &[u8], algorithm: &str, body: &'static [u8]) -> RequestSignature {
        let signature = sign(key, algorithm, body).expect("a known algorithm");
        let read = RequestSignature::from_headers(Some(algorithm), Some(&signature), Bytes::from_static(body));
        read.expect("readable").expect("both headers")
    }

    fn code(result: Result<(), HerderError>) -> u16 {
        match result {
            Ok(()) => 200,
            Err(HerderError::BadRequest(_)) => 400,
            Err(HerderError::Forbidden(_)) => 403,
            Err(HerderError::Unavailable(_)) => 503,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_published_vector_of_rfc_4231_holds() {
        // Test case 2: key "Jefe".
        let expected = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
        assert_eq!(sign(b"Jefe", "HmacSHA256", b"what do ya want for nothing?").as_deref(), Some(expected));
    }

    #[test]
    fn signatures_are_checked_in_javas_order() {
        let allowed = ["HmacSHA256".to_owned()];
        let good = signed(b"key", "HmacSHA256", b"[]");
        assert_eq!(code(verify(None, &allowed, None)), 400);
        assert_eq!(code(verify(Some(&signed(b"key", "HmacSHA512", b"[]")), &allowed, None)), 400);
        assert_eq!(code(verify(Some(&good), &allowed, None)), 503);
        assert_eq!(code(verify(Some(&good), &allowed, Some(b"other"))), 403);
        assert_eq!(code(verify(Some(&good), &allowed, Some(b"key"))), 200);
        let other_body = RequestSignature { body: Bytes::from_static(b"[{}]"), ..good };
        assert_eq!(code(verify(Some(&other_body), &allowed, Some(b"key"))), 403);
        assert_eq!(code(verify(Some(&signed(b"key", "HmacSHA256", b"")), &allowed, Some(b"key"))), 200);
    }

    #[test]
    fn every_algorithm_verifies_what_it_signed() {
        for algorithm in ALGORITHMS {
            assert_eq!(code(verify(Some(&signed(b"k", algorithm, b"x")), &[algorithm.to_owned()], Some(b"k"))), 200);
        }
    }

    #[test]
    fn headers_that_cannot_be_read_are_told() {
        let read = |algorithm, signature| RequestSignature::from_headers(algorithm, signature, Bytes::new());
        assert_eq!(read(None, Some("AAAA")), Ok(None));
        assert_eq!(read(Some("HmacSHA256"), None), Ok(None));
        assert_eq!(
            read(Some("HmacNope"), Some("AAAA")).expect_err("unknown").message,
            "Algorithm HmacNope not available"
        );
        assert_eq!(
            read(Some("HmacSHA256"), Some("%%%")).expect_err("no base64").message,
            "Illegal base64 character 25"
        );
        assert!(read(Some("HmacSHA1"), Some("AAAA")).expect("known").is_some());
    }
}
