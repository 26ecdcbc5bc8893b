//! From an address to a connection that may be used: dial, TLS, ApiVersions, login. In this order, within one time limit
//! each for dialling and for all the rest.
//!
//! [`Security`] is what all connections of a cluster share; it is made once, because it reads files.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::dial::{SocketBuffers, dial};
use super::handshake::Handshaking;
use super::sasl;
use super::stream::Stream;
use super::tls::TlsDialer;
use crate::config::{BrokerAddress, ClientConfig, ConfigError, SaslConfig};
use crate::error::{ConnectFailure, Error};
use crate::wire::api::BrokerApis;

/// The part of the session after which it is renewed, in percent; Java draws from 85 to 95.
const RENEW_PERCENT: u32 = 85;

/// How every connection of a cluster is protected.
#[derive(Debug, Default)]
pub(crate) struct Security {
    tls: Option<TlsDialer>,
    sasl: Option<SaslConfig>,
}

impl Security {
    /// Reads trust and key stores, away from the threads that serve connections.
    pub(crate) async fn load(config: &ClientConfig) -> Result<Self, ConfigError> {
        let sasl = config.security.sasl.clone();
        let Some(tls) = config.security.tls.clone() else { return Ok(Self { tls: None, sasl }) };
        match tokio::task::spawn_blocking(move || TlsDialer::new(&tls)).await {
            Ok(dialer) => Ok(Self { tls: Some(dialer?), sasl }),
            Err(error) => Err(ConfigError::Unusable {
                key: "security.protocol".to_owned(),
                reason: format!("reading its files failed ({error})"),
            }),
        }
    }
}

/// A stream that is ready for requests, and what was learnt on the way.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) stream: Stream,
    pub(crate) apis: BrokerApis,
    pub(crate) session: Option<Session>,
}

/// A login, and when it has to be renewed if it ends by itself.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) login: SaslConfig,
    renew_at: Option<Instant>,
}

impl Session {
    pub(super) fn new(login: SaslConfig, lifetime: Option<Duration>) -> Self {
        // A century is no limit, and keeps the sum in range.
        let lifetime = lifetime.filter(|lifetime| *lifetime < LIFETIME_MAX);
        Self { login, renew_at: lifetime.map(|lifetime| Instant::now() + lifetime * RENEW_PERCENT / 100) }
    }

    pub(super) fn is_due(&self) -> bool {
        self.renew_at.is_some_and(|renew_at| renew_at <= Instant::now())
    }
}

const LIFETIME_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Makes a connection ready. `name` is how errors call the peer.
pub(crate) async fn establish(
    address: &BrokerAddress,
    config: &ClientConfig,
    security: &Security,
    patience: Duration,
    name: &str,
) -> Result<Established, Error> {
    let failed = |failure| Error::Connect { peer: name.to_owned(), failure };
    let socket = dial(address, SocketBuffers::of(config), patience).await.map_err(failed)?;
    let ready = async {
        let stream = match &security.tls {
            None => Stream::Plain(socket),
            Some(tls) => Stream::Tls(Box::new(tls.connect(socket, &address.host).await.map_err(failed)?)),
        };
        let mut shaking = Handshaking::new(stream, &config.client_id, name);
        let apis = shaking.negotiate().await?;
        let session = match &security.sasl {
            None => None,
            Some(login) => {
                let lifetime = sasl::log_in(&mut shaking, login, name).await?;
                Some(Session::new(login.clone(), lifetime))
            }
        };
        Ok(Established { stream: shaking.into_stream(), apis, session })
    };
    match timeout(patience, ready).await {
        Ok(result) => result,
        Err(_) => Err(failed(ConnectFailure::NoAnswer { after: patience })),
    }
}
