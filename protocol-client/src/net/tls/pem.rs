//! Certificates and keys in PEM text.
//!
//! Kafka's PEM may stand on one line with blanks for line ends, as properties files make it; so the text is put back into
//! lines before a parser sees it. Other sections (parameters, requests) are passed over, as Java does.
//!
//! Source: KIP-651; RFC 7468.

use pkcs8::{EncryptedPrivateKeyInfoRef, der::Decode, pkcs5::EncryptionScheme, pkcs5::pbes2::Kdf};
use rustls_pki_types::pem::{self, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::config::Secret;

/// Rounds of a key's password that we are ready to compute: about a second.
const ITERATIONS_MAX: u32 = 10_000_000;

/// What to do about a key that cannot be opened.
const CONVERT: &str = "convert it: openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY -out NEW";

/// The certificates in a text, in their order.
pub(super) fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut found = Vec::new();
    for (kind, der) in sections(text)? {
        if kind == SectionKind::Certificate {
            found.push(CertificateDer::from(der));
        }
    }
    match found.is_empty() {
        true => Err("no BEGIN CERTIFICATE section is in it".to_owned()),
        false => Ok(found),
    }
}

/// The one private key in a text, decrypted if need be.
pub(super) fn private_key(text: &str, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
        return encrypted_key(text, password);
    }
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(format!("its key is encrypted in the way before PKCS#8; {CONVERT}"));
    }
    for (kind, der) in sections(text)? {
        match kind {
            SectionKind::PrivateKey => return Ok(PrivateKeyDer::Pkcs8(der.into())),
            SectionKind::RsaPrivateKey => return Ok(PrivateKeyDer::Pkcs1(der.into())),
            SectionKind::EcPrivateKey => return Ok(PrivateKeyDer::Sec1(der.into())),
            _ => {}
        }
    }
    Err("no BEGIN PRIVATE KEY section is in it".to_owned())
}

fn encrypted_key(text: &str, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    // The PEM parser does not know this label; its content is read under one that it knows.
    let renamed = text.replace("ENCRYPTED PRIVATE KEY", "PRIVATE KEY");
    let der = sections(&renamed)?.into_iter().find(|(kind, _)| *kind == SectionKind::PrivateKey).map(|(_, der)| der);
    let der = der.ok_or("its encrypted key cannot be read")?;
    let password = password.ok_or("its key is encrypted; set ssl.key.password")?;
    decrypt_key(&der, password)
}

/// Opens a PKCS#8 key that is encrypted by a password (PBES2 with AES or 3DES).
pub(super) fn decrypt_key(der: &[u8], password: &Secret) -> Result<PrivateKeyDer<'static>, String> {
    let sealed = EncryptedPrivateKeyInfoRef::from_der(der)
        .map_err(|_| format!("its encrypted key cannot be read; {CONVERT}"))?;
    match &sealed.encryption_algorithm {
        EncryptionScheme::Pbes2(parameters) => match &parameters.kdf {
            Kdf::Pbkdf2(kdf) if kdf.iteration_count <= ITERATIONS_MAX => {}
            _ => return Err(format!("its key is encrypted under a key derivation that is not supported; {CONVERT}")),
        },
        _ => return Err(format!("its key is encrypted in a way that is not supported; {CONVERT}")),
    }
    let opened =
        sealed.decrypt(password.expose()).map_err(|_| "its key does not open; check ssl.key.password".to_owned())?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(opened.as_bytes().to_vec())))
}

fn sections(text: &str) -> Result<Vec<(SectionKind, Vec<u8>)>, String> {
    let lines = in_lines(text);
    let mut rest = lines.as_bytes();
    let mut found = Vec::new();
    loop {
        match pem::from_buf(&mut rest) {
            Ok(Some(section)) => found.push(section),
            Ok(None) => return Ok(found),
            Err(_) => return Err("it is not valid PEM".to_owned()),
        }
    }
}

/// Each marker on a line of its own, and no blanks within what stands between.
fn in_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(begin) = rest.find("-----BEGIN ") {
        let (Some(body_at), from_begin) = (rest[begin + 11..].find("-----"), &rest[begin..]) else { break };
        let marker_end = 11 + body_at + 5;
        let Some(end) = from_begin.find("-----END ") else { break };
        let Some(close) = from_begin[end + 9..].find("-----") else { break };
        let after = end + 9 + close + 5;
        if end < marker_end {
            break;
        }
        lines.push_str(&from_begin[..marker_end]);
        lines.push('\n');
        for word in from_begin[marker_end..end].split_whitespace() {
            lines.push_str(word);
            lines.push('\n');
        }
        lines.push_str(&from_begin[end..after]);
        lines.push('\n');
        rest = &from_begin[after..];
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAEC\nAwQF\n-----END CERTIFICATE-----\n";

    #[test]
    fn certificates_are_found_among_other_text_and_on_one_line() {
        let several = format!("subject=x\n{CERTIFICATE}\nissuer\n{CERTIFICATE}");
        for text in [several.clone(), several.replace('\n', " "), several.replace('\n', "\r\n")] {
            let found = certificates(&text).unwrap();
            assert_eq!(found.len(), 2, "{text}");
            assert_eq!(found[0].as_ref(), [0, 1, 2, 3, 4, 5]);
        }
    }

    #[test]
    fn what_is_no_pem_is_refused_in_words() {
        for text in
            ["", "garbage", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE----- % -----END CERTIFICATE-----"]
        {
            assert!(certificates(text).is_err(), "{text}");
            assert!(private_key(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn an_encrypted_key_asks_for_its_password_by_name() {
        let text = CERTIFICATE.replace("CERTIFICATE", "ENCRYPTED PRIVATE KEY");
        assert!(private_key(&text, None).unwrap_err().contains("ssl.key.password"));
        assert!(private_key(&text, Some(&Secret::new("p"))).unwrap_err().contains("openssl pkcs8"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(-----(BEGIN|END) [A-Z ]{0,12}(-----)?|[a-zA-Z0-9+/= \n]{0,8}|-){0,12}") {
            let _ = certificates(&text);
            let _ = private_key(&text, Some(&Secret::new("p")));
        }
    }
}
