//! Trust stores and key stores from wherever the configuration says: PEM text, JKS or PKCS#12 files.
//!
//! What a file is, its first bytes say: Java opens JKS and PKCS#12 under either name, and writes PKCS#12 since version 9
//! though its default type is still called JKS. Files have a size limit; errors name the setting and the path, never the
//! content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use p12_keystore::{CertificateBag, Pkcs12Archive};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{jks, pem};
use crate::config::{ConfigError, IdentityConfig, Secret, StoreFile, StoreFormat, TrustConfig};

/// Java's cacerts is 170 kB; a store beyond this is another file.
const STORE_BYTES_MAX: u64 = 16 * 1024 * 1024;

const TRUST_LOCATION: &str = "ssl.truststore.location";
const KEY_LOCATION: &str = "ssl.keystore.location";

/// A private key and the certificates that vouch for it, our own first.
pub(super) struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// The certificates of a configured trust store; `None` for the system's.
pub(super) fn trusted(config: &TrustConfig) -> Result<Option<Vec<CertificateDer<'static>>>, ConfigError> {
    match config {
        TrustConfig::System => Ok(None),
        TrustConfig::Inline(text) => {
            let certificates = pem::certificates(text);
            certificates.map(Some).map_err(|reason| unusable("ssl.truststore.certificates", reason))
        }
        TrustConfig::File(store) => {
            let bytes = read_file(TRUST_LOCATION, &store.path)?;
            trusted_in(store, &bytes).map(Some).map_err(|reason| in_file(TRUST_LOCATION, &store.path, &reason))
        }
    }
}

fn trusted_in(store: &StoreFile, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = match Kind::of(store.format, bytes)? {
        Kind::Pem => pem::certificates(text(bytes)?)?,
        Kind::Jks => jks::read(bytes, store.password.as_ref())?.trusted,
        Kind::Pkcs12 => {
            let archive = open_pkcs12(bytes, store.password.as_ref(), "ssl.truststore.password")?;
            // Java trusts only what is marked so; a file that openssl made marks nothing and has no key.
            let marked = archive.certs.iter().any(|bag| bag.trusted);
            let wanted = |bag: &&CertificateBag| bag.trusted || (!marked && archive.keys.is_empty());
            archive.certs.iter().filter(wanted).map(|bag| certificate(bag)).collect()
        }
    };
    match certificates.is_empty() {
        true => Err("no trusted certificate is in it; add one: keytool -importcert -trustcacerts".to_owned()),
        false => Ok(certificates),
    }
}

/// Our own key and certificates.
pub(super) fn identity(config: &IdentityConfig) -> Result<Identity, ConfigError> {
    match config {
        IdentityConfig::Inline { chain, key, key_password } => {
            let chain =
                pem::certificates(chain).map_err(|reason| unusable("ssl.keystore.certificate.chain", reason))?;
            let key = pem::private_key(key.expose(), key_password.as_ref());
            Ok(Identity { chain, key: key.map_err(|reason| unusable("ssl.keystore.key", reason))? })
        }
        IdentityConfig::File { store, key_password } => {
            let bytes = read_file(KEY_LOCATION, &store.path)?;
            identity_in(store, key_password.as_ref(), &bytes)
                .map_err(|reason| in_file(KEY_LOCATION, &store.path, &reason))
        }
    }
}

fn identity_in(store: &StoreFile, key_password: Option<&Secret>, bytes: &[u8]) -> Result<Identity, String> {
    match Kind::of(store.format, bytes)? {
        Kind::Pem => {
            let text = text(bytes)?;
            Ok(Identity { chain: pem::certificates(text)?, key: pem::private_key(text, key_password)? })
        }
        Kind::Jks => {
            let password = store.password.as_ref();
            let read = jks::read(bytes, password)?;
            read.identity(key_password.or(password).ok_or("ssl.keystore.password is not set")?)
        }
        Kind::Pkcs12 => {
            if let (Some(key), Some(own)) = (key_password, &store.password)
                && key != own
            {
                return Err("in a PKCS12 store the key must have the store's password; leave ssl.key.password out, or change the key's".to_owned());
            }
            let archive = open_pkcs12(bytes, store.password.as_ref(), "ssl.keystore.password")?;
            identity_of(archive)
        }
    }
}

/// The first key, its certificate (the one that carries the key's id), and what leads from there to a root.
fn identity_of(archive: Pkcs12Archive) -> Result<Identity, String> {
    let key = archive.keys.into_iter().next().ok_or("no private key is in it")?;
    let certificates = archive.certs;
    let id = key.local_key_id.as_ref().map(|id| id.0.as_slice());
    let own = certificates.iter().find(|bag| id.is_some() && bag.local_key_id.as_deref() == id);
    let mut bag = own.or(certificates.first()).ok_or("its private key has no certificate")?;
    let mut chain = vec![certificate(bag)];
    // Each step adds a certificate that was not there, so it ends.
    while let Some(issuer) = certificates.iter().find(|other| other.cert.subject() == bag.cert.issuer()) {
        let next = certificate(issuer);
        if chain.contains(&next) {
            break;
        }
        chain.push(next);
        bag = issuer;
    }
    Ok(Identity { chain, key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.key.as_der().to_vec())) })
}

fn certificate(bag: &CertificateBag) -> CertificateDer<'static> {
    CertificateDer::from(bag.cert.as_der().to_vec())
}

/// What a file holds.
#[derive(Debug, PartialEq)]
enum Kind {
    Pem,
    Jks,
    Pkcs12,
}

impl Kind {
    fn of(format: StoreFormat, bytes: &[u8]) -> Result<Self, String> {
        let convert = "convert it: keytool -importkeystore -srckeystore FILE -destkeystore NEW -deststoretype PKCS12";
        match (format, bytes.first_chunk::<4>()) {
            (StoreFormat::Pem, _) => Ok(Self::Pem),
            (StoreFormat::Java, Some(&jks::MAGIC)) => Ok(Self::Jks),
            (StoreFormat::Java, Some(&jks::MAGIC_JCEKS)) => {
                Err(format!("it is a JCEKS store, which is not supported; {convert}"))
            }
            // A DER sequence of more than 127 bytes, or of unknown length.
            (StoreFormat::Java, Some(&[0x30, length, ..])) if length >= 0x80 => Ok(Self::Pkcs12),
            (StoreFormat::Java, _) if bytes.trim_ascii_start().starts_with(b"-----") => {
                Err("it is PEM text; set the store's type to PEM".to_owned())
            }
            (StoreFormat::Java, _) => {
                Err("it is neither a PKCS12 nor a JKS store; check the path and the store's type".to_owned())
            }
        }
    }
}

fn open_pkcs12(bytes: &[u8], password: Option<&Secret>, key: &str) -> Result<Pkcs12Archive, String> {
    let given = password.map_or("", Secret::expose);
    Pkcs12Archive::from_pkcs12(bytes, given).map_err(|error| match error {
        p12_keystore::error::Error::MacError(_) => match password {
            Some(_) => format!("its password is wrong, or it was changed; check {key}"),
            None => format!("it has a password; set {key}"),
        },
        // The library's words are about structure; none carries content.
        other => format!("it cannot be read as PKCS12 ({other})"),
    })
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "it is not PEM text; check the store's type".to_owned())
}

fn read_file(key: &str, path: &Path) -> Result<Vec<u8>, ConfigError> {
    let failed = |error: std::io::Error| unusable(key, format!("{} cannot be read ({error})", path.display()));
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(STORE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > STORE_BYTES_MAX {
        true => Err(unusable(key, format!("{} is larger than {STORE_BYTES_MAX} bytes", path.display()))),
        false => Ok(bytes),
    }
}

fn in_file(key: &str, path: &Path, reason: &str) -> ConfigError {
    unusable(key, format!("{}: {reason}", path.display()))
}

fn unusable(key: &str, reason: String) -> ConfigError {
    ConfigError::Unusable { key: key.to_owned(), reason }
}
