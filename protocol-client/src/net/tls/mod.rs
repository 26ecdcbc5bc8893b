//! TLS: rustls over graviola's cryptography, set up once for a cluster from `ssl.*`.
//!
//! Nothing is installed for the whole process: the provider is handed to each configuration, so two libraries in one
//! process cannot get into each other's way. The processor is looked at first, because graviola would panic where an
//! instruction is missing. Left out: session resumption across processes, client-side revocation lists, early data.
//!
//! Why graviola and what it costs: `docs/decisions/0006-tls-by-graviola.md`.

mod cpu;
pub(super) mod failure;
mod jks;
mod pem;
mod stores;
mod verifier;

use std::sync::Arc;

use rustls::client::ClientConfig as RustlsConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, SupportedCipherSuite, SupportedProtocolVersion, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::{ConfigError, IdentityConfig, TlsConfig, TrustConfig};
use crate::error::ConnectFailure;
use verifier::BrokerVerifier;

/// The cryptography for a use of TLS, with the suites that `config` wants.
///
/// # Errors
/// What the processor lacks, or that no suite is left.
pub fn provider(config: &TlsConfig) -> Result<CryptoProvider, ConfigError> {
    cpu::check().map_err(|reason| unusable("security.protocol", reason))?;
    with_suites(rustls_graviola::default_provider(), config)
}

/// What a client needs to speak TLS as `config` says. Reads the stores, and blocks while it does.
///
/// # Errors
/// The setting that cannot be used, and why.
pub fn client_config(config: &TlsConfig) -> Result<RustlsConfig, ConfigError> {
    let provider = Arc::new(provider(config)?);
    let (roots, pinned) = roots(config)?;
    let verifier = BrokerVerifier::new(roots, pinned, config.verify_host_name, Arc::clone(&provider))
        .map_err(|reason| unusable("ssl.truststore.location", reason))?;
    let builder = RustlsConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(config))
        .map_err(|error| unusable("ssl.enabled.protocols", error.to_string()))?
        .dangerous() // rustls's word for a verifier of one's own; ours adds two cases to its
        .with_custom_certificate_verifier(Arc::new(verifier));
    let Some(from) = &config.identity else { return Ok(builder.with_no_client_auth()) };
    let identity = stores::identity(from)?;
    builder.with_client_auth_cert(identity.chain, identity.key).map_err(|error| mismatched(from, &error))
}

/// What a server needs to speak TLS as `config` says. Reads the stores, and blocks while it does. Whose certificates clients may show has to be
/// said: the system's authorities vouch for anybody.
///
/// # Errors
/// The setting that is missing or cannot be used, and why.
pub fn server_config(config: &TlsConfig, clients: ClientCertificates) -> Result<ServerConfig, ConfigError> {
    let provider = Arc::new(provider(config)?);
    let from = config.identity.as_ref().ok_or(ConfigError::Missing { key: "ssl.keystore.location".to_owned() })?;
    let identity = stores::identity(from)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(config))
        .map_err(|error| unusable("ssl.enabled.protocols", error.to_string()))?;
    let builder = match clients {
        ClientCertificates::NotAsked => builder.with_no_client_auth(),
        ClientCertificates::Requested | ClientCertificates::Required if config.trust == TrustConfig::System => {
            return Err(ConfigError::Missing { key: "ssl.truststore.location".to_owned() });
        }
        ClientCertificates::Requested | ClientCertificates::Required => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(config)?.0), provider);
            let verifier = match clients {
                ClientCertificates::Required => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            let verifier = verifier.build().map_err(|error| unusable("ssl.truststore.location", error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    builder.with_single_cert(identity.chain, identity.key).map_err(|error| mismatched(from, &error))
}

/// The certificates of a configured trust store; `None` when nothing is configured, which means the system's.
///
/// # Errors
/// The setting that cannot be used, and why.
pub fn trusted_certificates(config: &TrustConfig) -> Result<Option<Vec<CertificateDer<'static>>>, ConfigError> {
    stores::trusted(config)
}

/// The certificate chain and private key of a configured key store.
///
/// # Errors
/// The setting that cannot be used, and why.
pub fn identity(
    config: &IdentityConfig,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConfigError> {
    stores::identity(config).map(|identity| (identity.chain, identity.key))
}

/// `ssl.client.auth`: what a server does about its clients' certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificates {
    /// None is asked for.
    NotAsked,
    /// One is asked for, and checked when it comes.
    Requested,
    /// None, no connection.
    Required,
}

/// Makes TLS out of open sockets.
#[derive(Clone)]
pub(crate) struct TlsDialer {
    connector: TlsConnector,
}

impl std::fmt::Debug for TlsDialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsDialer")
    }
}

impl TlsDialer {
    /// Reads the stores. Blocks while it does.
    pub(crate) fn new(config: &TlsConfig) -> Result<Self, ConfigError> {
        Ok(Self { connector: TlsConnector::from(Arc::new(client_config(config)?)) })
    }

    /// Shakes hands. The caller limits the time.
    pub(crate) async fn connect(&self, socket: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, ConnectFailure> {
        let name = ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| ConnectFailure::Socket {
            reason: format!("'{host}' is no name that a certificate can hold"),
        })?;
        self.connector.connect(name, socket).await.map_err(|error| failure::in_handshake(&error))
    }
}

fn mismatched(identity: &IdentityConfig, error: &rustls::Error) -> ConfigError {
    let key = match identity {
        IdentityConfig::Inline { .. } => "ssl.keystore.key",
        IdentityConfig::File { .. } => "ssl.keystore.location",
    };
    let reason = "its key and certificate cannot be used together";
    unusable(key, format!("{reason} ({error}); RSA, P-256 and P-384 keys are known"))
}

/// Whom to trust, and which of them may also be a broker's own certificate.
fn roots(config: &TlsConfig) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), ConfigError> {
    let mut roots = RootCertStore::empty();
    if let Some(certificates) = stores::trusted(&config.trust)? {
        let (added, ignored) = roots.add_parsable_certificates(certificates.iter().cloned());
        if ignored > 0 {
            tracing::warn!(added, ignored, "some certificates of the trust store are not X.509 as TLS knows it");
        }
        return Ok((roots, certificates));
    }
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    if roots.is_empty() {
        tracing::info!("the system has no trusted certificates; using Mozilla's, as of this build");
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Ok((roots, Vec::new()))
}

fn versions(config: &TlsConfig) -> Vec<&'static SupportedProtocolVersion> {
    let chosen = [(config.tls13, &version::TLS13), (config.tls12, &version::TLS12)];
    chosen.into_iter().filter(|(wanted, _)| *wanted).map(|(_, version)| version).collect()
}

/// Keeps the suites that `ssl.cipher.suites` names, by their IANA names.
fn with_suites(mut provider: CryptoProvider, config: &TlsConfig) -> Result<CryptoProvider, ConfigError> {
    if config.cipher_suites.is_empty() {
        return Ok(provider);
    }
    let known: Vec<String> = provider.cipher_suites.iter().map(iana_name).collect();
    provider.cipher_suites.retain(|suite| config.cipher_suites.contains(&iana_name(suite)));
    match provider.cipher_suites.is_empty() {
        true => Err(unusable("ssl.cipher.suites", format!("it names none of {}", known.join(", ")))),
        false => Ok(provider),
    }
}

fn iana_name(suite: &SupportedCipherSuite) -> String {
    // rustls writes TLS13_ in front of what IANA and Java call TLS_.
    suite.suite().as_str().unwrap_or_default().replacen("TLS13_", "TLS_", 1)
}

fn unusable(key: &str, reason: String) -> ConfigError {
    ConfigError::Unusable { key: key.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cipher_suites_are_chosen_by_their_iana_names() {
        let suites = |names: &[&str]| {
            let config = TlsConfig {
                cipher_suites: names.iter().map(|name| (*name).to_owned()).collect(),
                ..TlsConfig::default()
            };
            with_suites(rustls_graviola::default_provider(), &config).map(|provider| provider.cipher_suites.len())
        };
        assert_eq!(suites(&[]), Ok(9));
        assert_eq!(
            suites(&["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_RC4_128_MD5"]),
            Ok(2)
        );
        assert!(suites(&["TLS_RSA_WITH_RC4_128_MD5"]).unwrap_err().to_string().contains("TLS_AES_128_GCM_SHA256"));
    }
}
