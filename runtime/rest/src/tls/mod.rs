//! TLS of the listeners and of the client, by rustls over graviola.
//!
//! Java's keys are kept, its formats are not: certificates and keys are PEM (KIP-651). A keystore of another type is refused with the command that
//! converts it. Left out: cipher suites and providers by name.

mod settings;

use std::fs;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

pub use settings::{ClientAuth, Pem, TlsSettings};

/// Far more than any file of certificates has.
const PEM_BYTES_MAX: u64 = 4 << 20;

/// The processor features that graviola cannot do without.
fn missing_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let features = [
        ("aes", std::arch::is_x86_feature_detected!("aes")),
        ("ssse3", std::arch::is_x86_feature_detected!("ssse3")),
        ("avx", std::arch::is_x86_feature_detected!("avx")),
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("adx", std::arch::is_x86_feature_detected!("adx")),
        ("bmi2", std::arch::is_x86_feature_detected!("bmi2")),
        ("pclmulqdq", std::arch::is_x86_feature_detected!("pclmulqdq")),
    ];
    #[cfg(target_arch = "aarch64")]
    let features = [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("aes", std::arch::is_aarch64_feature_detected!("aes")),
        ("sha2", std::arch::is_aarch64_feature_detected!("sha2")),
        ("pmull", std::arch::is_aarch64_feature_detected!("pmull")),
    ];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let features = [("x86_64 or aarch64", false)];
    features.into_iter().filter(|(_, present)| !present).map(|(name, _)| name).collect()
}

fn provider() -> Result<Arc<CryptoProvider>, String> {
    let missing = missing_features();
    if !missing.is_empty() {
        // graviola would panic at its first use.
        return Err(format!("TLS needs processor features that are missing here: {}", missing.join(", ")));
    }
    Ok(Arc::new(rustls_graviola::default_provider()))
}

/// What a listener with `settings` needs.
///
/// # Errors
/// What is wrong, by the name of the key.
pub fn server_config(settings: &TlsSettings) -> Result<Arc<ServerConfig>, String> {
    let provider = provider()?;
    let (chain, key) = identity(settings)?.ok_or_else(|| {
        settings.missing("ssl.keystore.location", "a PEM file with the private key and its certificates")
    })?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(settings.versions())
        .map_err(|error| format!("{}: {error}", settings.name("ssl.enabled.protocols")))?;
    let builder = match settings.client_auth {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Requested | ClientAuth::Required => {
            let trust = roots(settings)?.ok_or_else(|| {
                settings.missing(
                    "ssl.truststore.location",
                    "a PEM file with the authorities that sign the clients' certificates",
                )
            })?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trust), provider);
            let verifier =
                if settings.client_auth == ClientAuth::Requested { verifier.allow_unauthenticated() } else { verifier };
            let verifier =
                verifier.build().map_err(|error| format!("{}: {error}", settings.name("ssl.truststore.location")))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, key);
    config.map(Arc::new).map_err(|error| format!("{}: {error}", settings.name("ssl.keystore.location")))
}

/// What requests to other workers need.
///
/// # Errors
/// What is wrong, by the name of the key.
pub fn client_config(settings: &TlsSettings) -> Result<Arc<ClientConfig>, String> {
    // Without a truststore no other worker can be trusted over https; that is told when one is asked.
    let trust = roots(settings)?.unwrap_or_else(RootCertStore::empty);
    let builder = ClientConfig::builder_with_provider(provider()?)
        .with_protocol_versions(settings.versions())
        .map_err(|error| format!("{}: {error}", settings.name("ssl.enabled.protocols")))?
        .with_root_certificates(trust);
    let config = match identity(settings)? {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| format!("{}: {error}", settings.name("ssl.keystore.location")))?,
        None => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(settings: &TlsSettings) -> Result<Option<Identity>, String> {
    let (Some(chain), Some(key)) = (&settings.certificates, &settings.key) else { return Ok(None) };
    let (chain_text, key_text) = (text(chain)?, text(key)?);
    if key_text.contains("ENCRYPTED PRIVATE KEY") {
        return Err(format!(
            "{}: the private key is encrypted; decrypt it with: openssl pkey -in encrypted.pem -out key.pem",
            key.name
        ));
    }
    let chain = certificates(chain, &chain_text)?;
    let key = PrivateKeyDer::from_pem_slice(key_text.as_bytes())
        .map_err(|error| format!("{}: no private key in it: {error}", key.name))?;
    Ok(Some((chain, key)))
}

fn roots(settings: &TlsSettings) -> Result<Option<RootCertStore>, String> {
    let Some(pem) = &settings.trust else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, &text(pem)?)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", pem.name))?;
    }
    Ok(Some(roots))
}

fn certificates(pem: &Pem, text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let all = all.map_err(|error| format!("{}: {error}", pem.name))?;
    if all.is_empty() { Err(format!("{}: no certificate in it", pem.name)) } else { Ok(all) }
}

fn text(pem: &Pem) -> Result<String, String> {
    let Some(path) = &pem.path else { return Ok(pem.inline.clone()) };
    let told = |error: std::io::Error| format!("{}: {}: {error}", pem.name, path.display());
    if fs::metadata(path).map_err(told)?.len() > PEM_BYTES_MAX {
        return Err(format!("{}: {} is longer than {PEM_BYTES_MAX} bytes", pem.name, path.display()));
    }
    fs::read_to_string(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::InvalidData {
            format!("{}: {} is no PEM file; {}", pem.name, path.display(), settings::CONVERT)
        } else {
            told(error)
        }
    })
}
