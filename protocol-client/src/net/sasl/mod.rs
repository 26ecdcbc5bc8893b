//! Logging in: SaslHandshake names the mechanism, SaslAuthenticate carries its tokens.
//!
//! The same steps are taken twice: on a fresh socket before anything else, and on a connection in use before the session
//! ends (KIP-368). [`Asker`] is what differs. Source: KIP-43, KIP-152, KIP-368; RFC 4616 for PLAIN.

mod scram;

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use kafka_protocol::protocol::{Request, StrBytes};
use uuid::Uuid;

use crate::config::{SaslConfig, SaslMechanism};
use crate::error::Error;
use crate::wire::error_code::{ErrorCode, codes};
use scram::{Hash, Scram};

/// Requests of one login: the handshake and at most two tokens.
pub(super) const LOGIN_EXCHANGES_MAX: i32 = 3;

/// Sends one request of a login and waits for its answer.
pub(super) trait Asker {
    fn ask<Q: Request + Send + Sync>(&mut self, request: Q) -> impl Future<Output = Result<Q::Response, Error>> + Send;
}

/// Logs in. How long the session lasts, if it is limited.
pub(super) async fn log_in<A: Asker + Send>(
    asker: &mut A,
    config: &SaslConfig,
    peer: &str,
) -> Result<Option<Duration>, Error> {
    let failed = |reason: String| Error::Authentication {
        peer: peer.to_owned(),
        mechanism: config.mechanism.name(),
        user: config.username.clone(),
        reason,
    };
    let mechanism = StrBytes::from_static_str(config.mechanism.name());
    let welcome: SaslHandshakeResponse = asker.ask(SaslHandshakeRequest::default().with_mechanism(mechanism)).await?;
    match welcome.error_code {
        codes::NONE => {}
        codes::UNSUPPORTED_SASL_MECHANISM => {
            let offered: Vec<&str> = welcome.mechanisms.iter().map(|name| name.as_str()).collect();
            let offered =
                if offered.is_empty() { "names no other".to_owned() } else { format!("offers {}", offered.join(", ")) };
            return Err(failed(format!(
                "this listener does not take the mechanism and {offered}; change sasl.mechanism"
            )));
        }
        codes::ILLEGAL_SASL_STATE => {
            return Err(failed(
                "this listener does not use SASL; set security.protocol to PLAINTEXT or SSL, or use another port"
                    .to_owned(),
            ));
        }
        code => return Err(Error::broker("SaslHandshake", code, peer)),
    }
    let (mut exchange, mut token) = Exchange::begin(config);
    loop {
        let answer: SaslAuthenticateResponse =
            asker.ask(SaslAuthenticateRequest::default().with_auth_bytes(token)).await?;
        if answer.error_code != codes::NONE {
            return Err(refused(&answer, failed, peer));
        }
        match exchange.answer(&answer.auth_bytes).map_err(failed)? {
            Some(next) => token = next,
            None => {
                let lifetime = u64::try_from(answer.session_lifetime_ms).ok().filter(|millis| *millis > 0);
                return Ok(lifetime.map(Duration::from_millis));
            }
        }
    }
}

fn refused(answer: &SaslAuthenticateResponse, failed: impl Fn(String) -> Error, peer: &str) -> Error {
    match answer.error_code {
        codes::SASL_AUTHENTICATION_FAILED | codes::ILLEGAL_SASL_STATE => {
            let words = answer.error_message.as_ref().map(|words| words.as_str()).filter(|words| !words.is_empty());
            failed(match words {
                Some(words) => format!("the broker says: {words}"),
                None => format!("the broker answered {}", ErrorCode(answer.error_code)),
            })
        }
        code => Error::broker("SaslAuthenticate", code, peer),
    }
}

/// The tokens of one login.
enum Exchange {
    Plain,
    Scram(Scram),
}

impl Exchange {
    fn begin(config: &SaslConfig) -> (Self, Bytes) {
        let hash = match config.mechanism {
            SaslMechanism::Plain => {
                let token = format!("\0{}\0{}", config.username, config.password.expose());
                return (Self::Plain, Bytes::from(token));
            }
            SaslMechanism::ScramSha256 => Hash::Sha256,
            SaslMechanism::ScramSha512 => Hash::Sha512,
        };
        // Two random ids: 244 bits that nobody can foresee, in characters that a message may hold.
        let nonce = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let scram = Scram::new(hash, &config.username, config.password.clone(), nonce);
        let first = Bytes::from(scram.first());
        (Self::Scram(scram), first)
    }

    /// The next token, or `None` at the end.
    fn answer(&mut self, answer: &[u8]) -> Result<Option<Bytes>, String> {
        match self {
            Self::Plain => Ok(None),
            Self::Scram(scram) => Ok(scram.answer(answer)?.map(Bytes::from)),
        }
    }
}
