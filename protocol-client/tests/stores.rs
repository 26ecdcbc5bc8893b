//! Key stores and trust stores as keytool and OpenSSL write them, old ways included; and what becomes of damaged ones.

use std::path::PathBuf;

use oncewire_client::config::{IdentityConfig, Secret, StoreFile, StoreFormat, TrustConfig};
use oncewire_client::net::tls::{identity, trusted_certificates};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect("the fixture is there")
}

fn secret(password: &str) -> Option<Secret> {
    (!password.is_empty()).then(|| Secret::new(password))
}

fn store(path: PathBuf, format: StoreFormat, password: &str) -> StoreFile {
    StoreFile { path, format, password: secret(password) }
}

/// Certificates in the chain and the first bytes of the key, or the error's text.
fn opened(config: &IdentityConfig) -> Result<(usize, Vec<u8>), String> {
    let (chain, key) = identity(config).map_err(|error| error.to_string())?;
    Ok((chain.len(), key.secret_der().to_vec()))
}

fn key_store(name: &str, password: &str, key_password: &str) -> Result<(usize, Vec<u8>), String> {
    let store = store(path(name), StoreFormat::Java, password);
    opened(&IdentityConfig::File { store, key_password: secret(key_password) })
}

fn pem(key: &str, password: &str) -> Result<(usize, Vec<u8>), String> {
    let (chain, key) = (text("chain.pem"), Secret::new(text(key)));
    opened(&IdentityConfig::Inline { chain, key, key_password: secret(password) })
}

#[test]
fn every_key_store_holds_the_same_key_and_its_chain() {
    let expected = pem("key.pem", "").unwrap();
    assert_eq!(expected.0, 2);
    for name in ["keytool.p12", "keytool.jks", "openssl.p12", "openssl-legacy.p12"] {
        assert!(key_store(name, "oncewire", "").unwrap() == expected, "{name}");
        assert!(key_store(name, "oncewire", "oncewire").unwrap() == expected, "{name}");
    }
    for key in ["key-java.pem", "key-des3.pem"] {
        assert!(pem(key, "oncewire").unwrap() == expected, "{key}");
    }
    assert_eq!(pem("key-pkcs1.pem", "").unwrap().0, 2);
}

#[test]
fn every_trust_store_holds_the_same_authority() {
    let trusted = |name: &str, format, password: &str| {
        trusted_certificates(&TrustConfig::File(store(path(name), format, password))).unwrap().unwrap()
    };
    let expected = trusted("ca.pem", StoreFormat::Pem, "");
    assert_eq!(expected.len(), 1);
    for name in ["trust-keytool.p12", "trust-keytool.jks", "trust-openssl.p12"] {
        assert_eq!(trusted(name, StoreFormat::Java, "oncewire"), expected, "{name}");
    }
    assert_eq!(trusted("trust-keytool.jks", StoreFormat::Java, ""), expected);
    let on_one_line = TrustConfig::Inline(text("ca.pem").replace('\n', " "));
    assert_eq!(trusted_certificates(&on_one_line).unwrap().unwrap(), expected);
}

#[test]
fn what_cannot_be_opened_says_what_to_do_and_shows_no_password() {
    let cases = [
        (key_store("keytool.p12", "wrong-secret", ""), "ssl.keystore.password"),
        (key_store("keytool.p12", "", ""), "set ssl.keystore.password"),
        (key_store("keytool.p12", "oncewire", "wrong-secret"), "ssl.key.password"),
        (key_store("keytool.jks", "wrong-secret", ""), "password is wrong"),
        (key_store("keytool.jks", "oncewire", "wrong-secret"), "ssl.key.password"),
        (key_store("keytool.jks", "", ""), "ssl.keystore.password"),
        (key_store("trust-keytool.p12", "oncewire", ""), "no private key"),
        (key_store("trust-keytool.jks", "oncewire", ""), "no private key"),
        (key_store("key.pem", "oncewire", ""), "PEM"),
        (key_store("nowhere.p12", "oncewire", ""), "cannot be read"),
        (pem("key-java.pem", ""), "ssl.key.password"),
        (pem("key-java.pem", "wrong-secret"), "ssl.key.password"),
        (pem("key-pbe1.pem", "oncewire"), "openssl pkcs8"),
        (pem("key-scrypt.pem", "oncewire"), "openssl pkcs8"),
        (pem("key-traditional.pem", "oncewire"), "openssl pkcs8"),
        (pem("ca.pem", ""), "BEGIN PRIVATE KEY"),
    ];
    for (index, (result, words)) in cases.into_iter().enumerate() {
        let error = result.expect_err(words);
        assert!(error.contains(words) && !error.contains("wrong-secret"), "case {index}, {words}: {error}");
    }
}

/// Cut, or with one byte changed, at places spread over the file: an error or a store, never a panic.
#[test]
fn damaged_stores_are_refused_in_words() {
    let folder = std::env::temp_dir().join(format!("oncewire-stores-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["keytool.p12", "openssl-legacy.p12", "keytool.jks"] {
        let whole = std::fs::read(path(name)).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 40) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            for bytes in [&whole[..at], &changed] {
                let file = folder.join(name);
                std::fs::write(&file, bytes).unwrap();
                let store = store(file, StoreFormat::Java, "oncewire");
                let result = opened(&IdentityConfig::File { store, key_password: None });
                // A friendly name or a part outside of the checksum may change without harm; a cut may not.
                assert!(result.is_err() || bytes.len() == whole.len(), "{name} cut at {at}");
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
