//! From a TLS error to what an operator reads: which side said no, why, and what to change.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use crate::error::{ConnectFailure, TlsSide};

/// The TLS error inside a socket's error, if there is one.
pub(in crate::net) fn in_io(error: &io::Error) -> Option<ConnectFailure> {
    error.get_ref()?.downcast_ref::<Error>().map(failure)
}

/// What went wrong while shaking hands.
pub(super) fn in_handshake(error: &io::Error) -> ConnectFailure {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match in_io(error) {
        Some(failure) => failure,
        None if matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe) => ConnectFailure::ClosedInTls,
        None => ConnectFailure::Socket { reason: format!("the TLS handshake failed: {error}") },
    }
}

fn failure(error: &Error) -> ConnectFailure {
    match error {
        Error::AlertReceived(alert) => {
            let reason = format!("{}{}", name(*alert), advice_on_alert(*alert));
            ConnectFailure::Tls { refused_by: TlsSide::Broker, reason }
        }
        Error::InvalidMessage(_) => ConnectFailure::NotTls,
        Error::InvalidCertificate(error) => ours(certificate_reason(error)),
        other => ours(other.to_string()),
    }
}

fn ours(reason: String) -> ConnectFailure {
    ConnectFailure::Tls { refused_by: TlsSide::Client, reason }
}

fn certificate_reason(error: &CertificateError) -> String {
    use CertificateError as C;
    match error {
        C::NotValidForName => "the broker's certificate is for another host name than the one that was dialled".to_owned(),
        C::NotValidForNameContext { expected, presented } => format!(
            "the broker's certificate is for {}, not for {}; use a name that is in it for bootstrap.servers and the broker's advertised.listeners, \
             have the certificate made anew, or turn the check off by an empty ssl.endpoint.identification.algorithm",
            if presented.is_empty() { "no host at all".to_owned() } else { presented.join(", ") },
            expected.to_str(),
        ),
        C::UnknownIssuer => "the broker's certificate was signed by nobody whom we trust; put the certificate of its authority into ssl.truststore.location".to_owned(),
        C::Expired | C::ExpiredContext { .. } => format!("the broker's certificate has expired ({error}); renew it, or set this machine's clock"),
        C::NotValidYet | C::NotValidYetContext { .. } => format!("the broker's certificate is not valid yet ({error}); set this machine's clock"),
        C::BadSignature => "a signature on the broker's certificate is wrong; ssl.truststore.location may hold an older authority of the same name".to_owned(),
        other => format!("the broker's certificate is not good: {other}"),
    }
}

/// Alerts by the words of RFC 8446.
fn name(alert: AlertDescription) -> String {
    match alert.as_str() {
        Some(name) => format!("the alert {name}"),
        None => format!("the alert {}", u8::from(alert)),
    }
}

fn advice_on_alert(alert: AlertDescription) -> &'static str {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired | A::NoCertificate => "; it wants a client's certificate: set ssl.keystore.location",
        // Java's answer to a client that has none.
        A::BadCertificate => {
            "; it wants a client's certificate, or does not like ours: set ssl.keystore.location, and have its certificate signed by an authority in the broker's trust store"
        }
        A::UnknownCA | A::CertificateUnknown | A::UnsupportedCertificate => {
            "; our certificate (ssl.keystore.location) must be signed by an authority in the broker's trust store"
        }
        A::CertificateExpired => "; our certificate (ssl.keystore.location) has expired: renew it",
        A::CertificateRevoked => "; our certificate (ssl.keystore.location) was revoked: use another",
        A::ProtocolVersion => "; it speaks no TLS version of ours: set ssl.enabled.protocols to what the broker has",
        A::HandshakeFailure | A::InsufficientSecurity => {
            "; it shares no cipher suite or key exchange with us, or wants a client's certificate: see ssl.cipher.suites, ssl.enabled.protocols and ssl.keystore.location"
        }
        A::UnrecognisedName => "; it knows no host of the name that we dialled: check bootstrap.servers",
        _ => "",
    }
}
