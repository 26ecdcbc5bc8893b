//! The first exchanges on a connection: ApiVersions, the login if there is one, and the recognition of peers that are not a
//! Kafka broker, or not in the way that was configured.
//!
//! What the answer to ApiVersions means is decided in [`crate::wire::api::read_handshake`]; a broker that does not know our
//! version is asked once more, on the same connection, in one that it named.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest};
use kafka_protocol::protocol::{Request, StrBytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::sasl::{Asker, LOGIN_EXCHANGES_MAX};
use super::tls::failure;
use super::{codec, versions};
use crate::cluster::Versions;
use crate::error::{ConnectFailure, Error};
use crate::wire::api::{API_VERSIONS_LATEST, BrokerApis, Handshake, read_handshake};
use crate::wire::{WireError, frame};

/// An answer to ApiVersions is a few kilobytes, one to a login less.
const HANDSHAKE_FRAME_BYTES_MAX: usize = 1024 * 1024;
/// ApiVersions may be asked twice.
const VERSION_EXCHANGES_MAX: i32 = 2;
/// Correlation ids below this are used up by the handshake.
pub(crate) const HANDSHAKE_EXCHANGES_MAX: i32 = VERSION_EXCHANGES_MAX + LOGIN_EXCHANGES_MAX;

/// A stream on which one question at a time is asked.
pub(crate) struct Handshaking<'a, S> {
    stream: S,
    client_id: &'a str,
    peer: &'a str,
    next_correlation_id: i32,
    apis: BrokerApis,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Handshaking<'a, S> {
    pub(crate) fn new(stream: S, client_id: &'a str, peer: &'a str) -> Self {
        Self { stream, client_id, peer, next_correlation_id: 0, apis: BrokerApis::default() }
    }

    /// Asks the broker what it speaks.
    pub(crate) async fn negotiate(&mut self) -> Result<BrokerApis, Error> {
        let mut version = API_VERSIONS_LATEST;
        for _ in 0..VERSION_EXCHANGES_MAX {
            let request = ApiVersionsRequest::default()
                .with_client_software_name(StrBytes::from_static_str("oncewire"))
                .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
            let body = self.exchange(ApiKey::ApiVersions, version, &request).await?;
            match read_handshake(version, body).map_err(|error| self.malformed(&error))? {
                Handshake::Done(apis) => {
                    self.apis = apis.clone();
                    return Ok(apis);
                }
                Handshake::Refused(code) => return Err(Error::broker("ApiVersions", code, self.peer)),
                Handshake::AskAgain(older) => {
                    tracing::debug!(peer = self.peer, version = older, "the broker is older; asking again");
                    version = older;
                }
            }
        }
        Err(Error::Malformed {
            peer: self.peer.to_owned(),
            what: "it refuses the version that it asked for".to_owned(),
        })
    }

    /// The stream, on which nothing is under way.
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    async fn exchange<Q: Request>(&mut self, api: ApiKey, version: i16, request: &Q) -> Result<Bytes, Error> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let frame = codec::encode_request(api, version, correlation_id, self.client_id, request)?;
        let failed = |failure| Error::Connect { peer: self.peer.to_owned(), failure };
        let written = async {
            self.stream.write_all(&frame).await?;
            // TLS may hold a part back until it is told that no more follows.
            self.stream.flush().await
        };
        written.await.map_err(|error| failed(closed_or_other(&error)))?;
        let mut answer = read_frame(&mut self.stream).await.map_err(failed)?;
        match frame::decode_response_header(api, version, &mut answer) {
            Ok(id) if id == correlation_id => Ok(answer),
            _ => Err(failed(ConnectFailure::NotKafka { found: "an answer to another question".to_owned() })),
        }
    }

    fn malformed(&self, error: &WireError) -> Error {
        Error::Malformed { peer: self.peer.to_owned(), what: error.to_string() }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Asker for Handshaking<'_, S> {
    async fn ask<Q: Request + Send + Sync>(&mut self, request: Q) -> Result<Q::Response, Error> {
        let api = codec::api_of::<Q>()?;
        let version = versions::choose(&self.apis, api, Q::VERSIONS, Versions::ANY)
            .map_err(|what| Error::Unsupported { api: format!("{api:?}"), peer: self.peer.to_owned(), what })?;
        let body = self.exchange(api, version, &request).await?;
        frame::decode_response(api, version, body).map_err(|error| self.malformed(&error))
    }
}

async fn read_frame<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Bytes, ConnectFailure> {
    let mut prefix = [0_u8; frame::LENGTH_PREFIX_BYTES];
    stream.read_exact(&mut prefix).await.map_err(|error| closed_or_other(&error))?;
    let size = frame::frame_size(prefix, HANDSHAKE_FRAME_BYTES_MAX).map_err(|error| recognise(prefix, &error))?;
    let mut received = BytesMut::new();
    let mut limited = stream.take(size as u64);
    while received.len() < size {
        match limited.read_buf(&mut received).await {
            Ok(0) => return Err(ConnectFailure::ClosedAtOnce),
            Ok(_) => {}
            Err(error) => return Err(closed_or_other(&error)),
        }
    }
    Ok(received.freeze())
}

/// What speaks when the first four bytes are no frame length.
fn recognise(prefix: [u8; frame::LENGTH_PREFIX_BYTES], error: &WireError) -> ConnectFailure {
    match error {
        WireError::NotKafka { looks_like: "TLS" } => ConnectFailure::TlsPort,
        WireError::NotKafka { looks_like } => ConnectFailure::NotKafka { found: (*looks_like).to_owned() },
        _ => ConnectFailure::NotKafka { found: format!("'{}…'", prefix.escape_ascii()) },
    }
}

fn closed_or_other(error: &std::io::Error) -> ConnectFailure {
    use std::io::ErrorKind;
    // In TLS 1.3 a broker's verdict on our certificate comes after our side of the handshake is done.
    if let Some(failure) = failure::in_io(error) {
        return failure;
    }
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ConnectFailure::ClosedAtOnce,
        _ => ConnectFailure::Socket { reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::ApiVersionsResponse;
    use kafka_protocol::messages::api_versions_response::ApiVersion;
    use tokio::io::duplex;

    fn answer(correlation_id: i32, version: i16, response: &ApiVersionsResponse) -> Bytes {
        frame::encode_response(ApiKey::ApiVersions, version, correlation_id, response).unwrap()
    }

    fn range(api: ApiKey, max: i16) -> ApiVersion {
        ApiVersion::default().with_api_key(api as i16).with_max_version(max)
    }

    #[tokio::test]
    async fn an_older_broker_is_asked_again_in_a_version_that_it_named() {
        let (mut ours, mut theirs) = duplex(4096);
        let refusal =
            ApiVersionsResponse::default().with_error_code(35).with_api_keys(vec![range(ApiKey::ApiVersions, 3)]);
        let full = ApiVersionsResponse::default()
            .with_api_keys(vec![range(ApiKey::ApiVersions, 3), range(ApiKey::Produce, 9)]);
        theirs.write_all(&answer(0, 0, &refusal)).await.unwrap();
        theirs.write_all(&answer(1, 3, &full)).await.unwrap();
        let apis = Handshaking::new(&mut ours, "c", "p").negotiate().await.unwrap();
        assert_eq!(apis.range(ApiKey::Produce).unwrap().max, 9);
    }

    #[tokio::test]
    async fn peers_that_are_not_a_plain_text_broker_are_told_apart() {
        type Expected = fn(&ConnectFailure) -> bool;
        let cases: [(&[u8], Expected); 5] = [
            (&[0x15, 3, 3, 0, 2, 2, 10], |failure| *failure == ConnectFailure::TlsPort),
            (
                b"HTTP/1.1 400 Bad Request\r\n",
                |failure| matches!(failure, ConnectFailure::NotKafka { found } if found.contains("HTTP")),
            ),
            (
                b"SSH-2.0-x\r\n",
                |failure| matches!(failure, ConnectFailure::NotKafka { found } if found.contains("SSH")),
            ),
            (&[0, 0], |failure| *failure == ConnectFailure::ClosedAtOnce),
            (&[0, 0, 0, 4, 0, 0, 0, 77], |failure| matches!(failure, ConnectFailure::NotKafka { .. })),
        ];
        for (sent, expected) in cases {
            let (mut ours, mut theirs) = duplex(4096);
            theirs.write_all(sent).await.unwrap();
            theirs.shutdown().await.unwrap();
            match Handshaking::new(&mut ours, "c", "p").negotiate().await {
                Err(Error::Connect { failure, .. }) => assert!(expected(&failure), "{sent:?}: {failure:?}"),
                other => panic!("{sent:?}: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_hostile_answer_is_an_error() {
        let (mut ours, mut theirs) = duplex(4096);
        let mut frame = vec![0, 0, 0, 11, 0, 0, 0, 0, 0, 0];
        frame.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        theirs.write_all(&frame).await.unwrap();
        assert!(matches!(Handshaking::new(&mut ours, "c", "p").negotiate().await, Err(Error::Malformed { .. })));
    }
}
