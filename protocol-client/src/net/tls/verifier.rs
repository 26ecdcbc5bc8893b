//! What counts as a broker's certificate: rustls's rules, with two that are Kafka's.
//!
//! * `ssl.endpoint.identification.algorithm=` (empty): the chain must be good, the name may be any.
//! * A certificate that itself stands in the configured trust store is good as it is. That is how self-signed brokers are
//!   set up, and Java accepts them; webpki would not, if it is marked as an authority.
//!
//! Signatures made in the handshake are checked in every case.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

#[derive(Debug)]
pub(super) struct BrokerVerifier {
    chain: Arc<WebPkiServerVerifier>,
    /// Certificates that are good by themselves.
    pinned: Vec<CertificateDer<'static>>,
    verify_host_name: bool,
}

impl BrokerVerifier {
    /// Fails when no root is left, in words.
    pub(super) fn new(
        roots: RootCertStore,
        pinned: Vec<CertificateDer<'static>>,
        verify_host_name: bool,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { chain: chain.map_err(|error| error.to_string())?, pinned, verify_host_name })
    }

    fn name_matches(&self, certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
        match self.verify_host_name {
            true => verify_server_name(&ParsedCertificate::try_from(certificate)?, name),
            false => Ok(()),
        }
    }
}

impl ServerCertVerifier for BrokerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            // The name is looked at last: whoever fails by it has a good chain.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verify_host_name => Ok(ServerCertVerified::assertion()),
            Err(Error::InvalidCertificate(_)) if self.pinned.contains(end_entity) => {
                self.name_matches(end_entity, server_name).map(|()| ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
