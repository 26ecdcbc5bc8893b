//! Java's own key store format, JKS, for reading.
//!
//! ```text
//! FEEDFEED version count { 1 alias time sealed-key chain | 2 alias time certificate }* SHA-1
//! ```
//!
//! Numbers are big-endian; texts and types are Java's modified UTF-8 behind two bytes of length. The last 20 bytes are SHA-1
//! over the password, a phrase and all before. A key is hidden under SHA-1 of its password, chained: weak, but it is what
//! the files hold. Without a password certificates are read unchecked, as Java does. Left out: JCEKS, writing.
//!
//! Source: `JavaKeyStore` and `KeyProtector` of OpenJDK describe the format in their comments.

use pkcs8::der::asn1::{AnyRef, ObjectIdentifier, OctetStringRef};
use pkcs8::der::{self, Decode, Reader, SliceReader};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha1::{Digest, Sha1};

use super::stores::Identity;
use crate::config::Secret;

pub(super) const MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];
/// JCEKS: Java's own as well, with a stronger key protection that needs more than SHA-1.
pub(super) const MAGIC_JCEKS: [u8; 4] = [0xce, 0xce, 0xce, 0xce];

const DIGEST_BYTES: usize = 20;
const PHRASE: &[u8] = b"Mighty Aphrodite";
/// Entries and certificates of a chain; a real store has tens, Java's own cacerts has 150.
const ENTRIES_MAX: u32 = 10_000;
/// Sun's private key protection.
const KEY_PROTECTOR: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.42.2.17.1.1");

pub(super) struct Store {
    pub(super) trusted: Vec<CertificateDer<'static>>,
    keys: Vec<SealedKey>,
}

struct SealedKey {
    sealed: Vec<u8>,
    chain: Vec<CertificateDer<'static>>,
}

/// Reads a store whole. With a password its integrity is checked.
pub(super) fn read(bytes: &[u8], password: Option<&Secret>) -> Result<Store, String> {
    let Some(split) = bytes.len().checked_sub(DIGEST_BYTES) else { return Err(cut_off()) };
    let (content, digest) = bytes.split_at(split);
    if let Some(password) = password {
        let mut sha1 = Sha1::new();
        sha1.update(java_bytes(password));
        sha1.update(PHRASE);
        sha1.update(content);
        if sha1.finalize().as_slice() != digest {
            return Err("its password is wrong, or it was changed".to_owned());
        }
    }
    let mut cursor = Cursor { rest: content };
    let magic = cursor.number()?;
    let version = cursor.number()?;
    if magic.to_be_bytes() != MAGIC || !(1..=2).contains(&version) {
        return Err("it is not a JKS store of version 1 or 2".to_owned());
    }
    let count = cursor.count()?;
    let mut store = Store { trusted: Vec::new(), keys: Vec::new() };
    for _ in 0..count {
        let tag = cursor.number()?;
        cursor.text()?; // alias
        cursor.take(8)?; // when it was made
        match tag {
            1 => {
                let sealed = cursor.block()?.to_vec();
                let certificates = cursor.count()?;
                let mut chain = Vec::new();
                for _ in 0..certificates {
                    chain.push(cursor.certificate(version)?);
                }
                store.keys.push(SealedKey { sealed, chain });
            }
            2 => store.trusted.push(cursor.certificate(version)?),
            other => return Err(format!("it has an entry of the unknown kind {other}")),
        }
    }
    Ok(store)
}

impl Store {
    /// Its first private key with the chain.
    pub(super) fn identity(self, password: &Secret) -> Result<Identity, String> {
        let entry = self.keys.into_iter().next().ok_or("no private key is in it")?;
        let key = open_key(&entry.sealed, password)?;
        Ok(Identity { chain: entry.chain, key })
    }
}

/// Undoes Sun's key protection: salt, the key under a chain of digests, and a digest of the key to check by.
fn open_key(sealed: &[u8], password: &Secret) -> Result<PrivateKeyDer<'static>, String> {
    let unreadable = || {
        "its private key cannot be read; keytool -importkeystore -deststoretype PKCS12 converts the store".to_owned()
    };
    let hidden = protected_bytes(sealed).ok_or_else(unreadable)?;
    if hidden.len() < 2 * DIGEST_BYTES {
        return Err(unreadable());
    }
    let (salt, rest) = hidden.split_at(DIGEST_BYTES);
    let (body, check) = rest.split_at(rest.len() - DIGEST_BYTES);
    let password = java_bytes(password);
    let mut key = Vec::with_capacity(body.len());
    let mut digest = Sha1::new_with_prefix(&password).chain_update(salt).finalize();
    for block in body.chunks(DIGEST_BYTES) {
        key.extend(block.iter().zip(digest.iter()).map(|(hidden, mask)| hidden ^ mask));
        digest = Sha1::new_with_prefix(&password).chain_update(digest).finalize();
    }
    if Sha1::new_with_prefix(&password).chain_update(&key).finalize().as_slice() != check {
        return Err("its private key does not open; check ssl.key.password".to_owned());
    }
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)))
}

/// The octets in `SEQUENCE { SEQUENCE { OID, parameters }, OCTET STRING }`, if the OID is Sun's.
fn protected_bytes(der: &[u8]) -> Option<Vec<u8>> {
    let mut reader = SliceReader::new(der).ok()?;
    reader
        .sequence(|outer: &mut SliceReader<'_>| {
            let algorithm = outer.sequence(|inner: &mut SliceReader<'_>| {
                let oid = ObjectIdentifier::decode(inner)?;
                while !inner.is_finished() {
                    AnyRef::decode(inner)?;
                }
                Ok::<_, der::Error>(oid)
            })?;
            let octets = <&OctetStringRef>::decode(outer)?;
            Ok::<_, der::Error>((algorithm == KEY_PROTECTOR).then(|| octets.as_bytes().to_vec()))
        })
        .ok()
        .flatten()
}

/// As `char[]` becomes bytes in Java's store: two for each UTF-16 unit.
fn java_bytes(password: &Secret) -> Vec<u8> {
    password.expose().encode_utf16().flat_map(u16::to_be_bytes).collect()
}

fn cut_off() -> String {
    "it is cut off".to_owned()
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, String> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*taken))
    }

    fn count(&mut self) -> Result<u32, String> {
        match self.number()? {
            count if count <= ENTRIES_MAX => Ok(count),
            count => Err(format!("it declares {count} entries, more than {ENTRIES_MAX}")),
        }
    }

    fn text(&mut self) -> Result<&'a [u8], String> {
        let (length, rest) = self.rest.split_first_chunk().ok_or_else(cut_off)?;
        self.rest = rest;
        self.take(usize::from(u16::from_be_bytes(*length)))
    }

    fn block(&mut self) -> Result<&'a [u8], String> {
        let length = self.number()? as usize;
        self.take(length)
    }

    fn certificate(&mut self, version: u32) -> Result<CertificateDer<'static>, String> {
        if version == 2 && self.text()? != b"X.509" {
            return Err("it has a certificate that is not X.509".to_owned());
        }
        Ok(CertificateDer::from(self.block()?.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(password: &str, entries: &[u8], count: u32) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &2_u32.to_be_bytes(), &count.to_be_bytes(), entries].concat();
        let digest =
            Sha1::new_with_prefix(java_bytes(&Secret::new(password))).chain_update(PHRASE).chain_update(&bytes);
        bytes.extend_from_slice(&digest.finalize());
        bytes
    }

    fn certificate_entry() -> Vec<u8> {
        [&2_u32.to_be_bytes()[..], b"\0\x02ca", &[0; 8], b"\0\x05X.509", &3_u32.to_be_bytes(), b"der"].concat()
    }

    #[test]
    fn certificates_are_read_with_the_right_password_or_with_none() {
        let bytes = store("pass", &certificate_entry(), 1);
        for password in [None, Some(Secret::new("pass"))] {
            let read = read(&bytes, password.as_ref()).map(|store| store.trusted).unwrap();
            assert_eq!(read[0].as_ref(), b"der");
        }
        assert!(read(&bytes, Some(&Secret::new("wrong"))).is_err());
    }

    #[test]
    fn stores_cut_anywhere_and_hostile_counts_are_refused() {
        let bytes = store("pass", &certificate_entry(), 1);
        let content = bytes.len() - DIGEST_BYTES;
        for end in 0..content {
            let cut = [&bytes[..end], &[0; DIGEST_BYTES]].concat();
            assert!(read(&cut, None).is_err(), "cut at {end}");
        }
        assert!(read(&store("pass", &[], u32::MAX), None).is_err());
        assert!(read(&store("pass", &[], 1), None).is_err());
    }

    #[test]
    fn hostile_keys_are_refused() {
        let password = Secret::new("p");
        for sealed in [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x02, 0x30, 0x00]] {
            assert!(open_key(sealed, &password).is_err(), "{sealed:?}");
        }
    }
}
