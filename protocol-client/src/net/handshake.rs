//! The first exchange on a connection: ApiVersions, and the recognition of peers that are not a Kafka broker in plain text.
//!
//! What the answer means is decided in [`crate::wire::api::read_handshake`]; a broker that does not know our version is asked
//! once more, on the same connection, in one that it named.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest};
use kafka_protocol::protocol::StrBytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::codec;
use crate::error::{ConnectFailure, Error};
use crate::wire::api::{API_VERSIONS_LATEST, BrokerApis, Handshake, read_handshake};
use crate::wire::{WireError, frame};

/// An answer to ApiVersions is a few kilobytes.
const HANDSHAKE_FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Correlation ids below this are used up by the handshake.
pub(crate) const HANDSHAKE_EXCHANGES_MAX: i32 = 2;

/// Asks the broker what it speaks.
pub(crate) async fn negotiate<S>(stream: &mut S, client_id: &str, peer: &str) -> Result<BrokerApis, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let malformed = |error: WireError| Error::Malformed { peer: peer.to_owned(), what: error.to_string() };
    let mut version = API_VERSIONS_LATEST;
    for correlation_id in 0..HANDSHAKE_EXCHANGES_MAX {
        let body = exchange(stream, client_id, peer, correlation_id, version).await?;
        match read_handshake(version, body).map_err(malformed)? {
            Handshake::Done(apis) => return Ok(apis),
            Handshake::Refused(code) => return Err(Error::broker("ApiVersions", code, peer)),
            Handshake::AskAgain(older) => {
                tracing::debug!(peer, version = older, "the broker is older; asking again");
                version = older;
            }
        }
    }
    Err(Error::Malformed { peer: peer.to_owned(), what: "it refuses the version that it asked for".to_owned() })
}

async fn exchange<S>(
    stream: &mut S,
    client_id: &str,
    peer: &str,
    correlation_id: i32,
    version: i16,
) -> Result<Bytes, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("oncewire"))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
    let frame = codec::encode_request(ApiKey::ApiVersions, version, correlation_id, client_id, &request)?;
    let failed = |failure| Error::Connect { peer: peer.to_owned(), failure };
    stream.write_all(&frame).await.map_err(|error| failed(closed_or_other(&error)))?;
    let mut answer = read_frame(stream).await.map_err(failed)?;
    match frame::decode_response_header(ApiKey::ApiVersions, version, &mut answer) {
        Ok(id) if id == correlation_id => Ok(answer),
        _ => Err(failed(ConnectFailure::NotKafka { found: "an answer to another question".to_owned() })),
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
        let apis = negotiate(&mut ours, "c", "p").await.unwrap();
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
            match negotiate(&mut ours, "c", "p").await {
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
        assert!(matches!(negotiate(&mut ours, "c", "p").await, Err(Error::Malformed { .. })));
    }
}
