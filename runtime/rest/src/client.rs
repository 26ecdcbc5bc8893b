//! Requests from this worker to another one: forwarded requests, and signed internal ones.
//!
//! One connection per request: such requests are few, and a pooled connection to a worker that was restarted would fail the first of them.
//! Redirects are not followed. Everything is bounded: the time, and the bytes of the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::config::{RestConfig, Scheme};
use crate::error::Failure;
use crate::herder::HerderError;
use crate::model::{ConfigMap, ErrorMessage};
use crate::negotiate::JSON;
use crate::path::encode_segment;
use crate::sign::{ALGORITHM_HEADER, SIGNATURE_HEADER, sign};

/// Of a connection, with its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Of a whole request; the same as a worker's own limit for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);
/// More than any answer has: a list of a thousand connectors with everything is a tenth of it.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// What Java's worker calls itself.
const AGENT: &str = "kafka-connect";

/// The session key as the config topic holds it, and the algorithm to sign with (`inter.worker.signature.algorithm`).
#[derive(Clone, Copy)]
pub struct SigningKey<'a> {
    /// Java's name, such as `HmacSHA256`.
    pub algorithm: &'a str,
    /// Raw bytes.
    pub key: &'a [u8],
}

impl std::fmt::Debug for SigningKey<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key itself must not get into a log.
        write!(formatter, "SigningKey({})", self.algorithm)
    }
}

/// An HTTP client with the worker's TLS settings. Cheap to clone.
#[derive(Clone)]
pub struct RestClient {
    tls: Option<Arc<ClientConfig>>,
}

impl std::fmt::Debug for RestClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RestClient(tls: {})", self.tls.is_some())
    }
}

/// A request to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// What came back, below 300.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) code: u16,
    pub(crate) body: Bytes,
}

impl RestClient {
    /// A client for workers reached by `http` and `https`.
    ///
    /// # Errors
    /// A certificate cannot be used; the text names the key.
    pub fn new(config: &RestConfig) -> Result<Self, String> {
        // TLS is set up only where it is asked for: it needs a processor that plain HTTP does not.
        let wanted =
            config.tls.trusts_someone() || config.listeners.iter().any(|listener| listener.scheme == Scheme::Https);
        let tls = if wanted { Some(config.tls.client_config()?) } else { None };
        Ok(RestClient { tls })
    }

    /// Sends task configurations to the leader, signed when there is a key.
    ///
    /// # Errors
    /// The other worker's answer ([`HerderError::Status`]), or [`HerderError::Internal`] when it cannot be reached.
    ///
    /// # Cancel safety
    /// The request may or may not have arrived.
    pub async fn put_task_configs(
        &self,
        leader_url: &str,
        connector: &str,
        configs: &[ConfigMap],
        key: Option<SigningKey<'_>>,
    ) -> Result<(), HerderError> {
        let body = serde_json::to_vec(configs).map_err(|error| HerderError::Internal(error.to_string()))?;
        self.internal("POST", leader_url, connector, "tasks", body.into(), key).await
    }

    /// Asks the leader for a round of zombie fencing.
    ///
    /// # Errors
    /// As [`RestClient::put_task_configs`].
    ///
    /// # Cancel safety
    /// The request may or may not have arrived.
    pub async fn fence(
        &self,
        leader_url: &str,
        connector: &str,
        key: Option<SigningKey<'_>>,
    ) -> Result<(), HerderError> {
        self.internal("PUT", leader_url, connector, "fence", Bytes::new(), key).await
    }

    async fn internal(
        &self,
        method: &str,
        leader_url: &str,
        connector: &str,
        resource: &str,
        body: Bytes,
        key: Option<SigningKey<'_>>,
    ) -> Result<(), HerderError> {
        let mut headers = Vec::new();
        if let Some(SigningKey { algorithm, key }) = key {
            let signature = sign(key, algorithm, &body).ok_or_else(|| {
                HerderError::Internal(format!("inter.worker.signature.algorithm {algorithm} cannot be computed here"))
            })?;
            headers.push((SIGNATURE_HEADER.to_owned(), signature));
            headers.push((ALGORITHM_HEADER.to_owned(), algorithm.to_owned()));
        }
        let url = format!("{}/connectors/{}/{resource}", leader_url.trim_end_matches('/'), encode_segment(connector));
        let sent = self.send(Outgoing { method: method.to_owned(), url, headers, body }).await;
        sent.map(|_| ()).map_err(|failure| HerderError::Status { code: failure.code, message: failure.message })
    }

    /// Sends a request; an answer of 300 or more is a failure, as Java raises it.
    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<Incoming, Failure> {
        let url = outgoing.url.clone();
        let exchange = tokio::time::timeout(REQUEST_TIMEOUT, self.exchange(outgoing));
        let answer = match exchange.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(unreachable(&url, &error)),
            Err(_) => return Err(unreachable(&url, &format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()))),
        };
        judge(answer, &url)
    }

    async fn exchange(&self, outgoing: Outgoing) -> Result<Incoming, String> {
        let uri: Uri = outgoing.url.parse().map_err(|error| format!("'{}' is no URL: {error}", outgoing.url))?;
        let host = uri.host().ok_or_else(|| format!("'{uri}' has no host"))?.to_owned();
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, self.connect(&uri, &host))
            .await
            .map_err(|_| format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))??;
        let authority = uri.authority().map_or(host, |authority| authority.as_str().to_owned());
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(outgoing.method.as_str())
            .uri(target)
            .header(HOST, authority)
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, JSON)
            .header(USER_AGENT, AGENT);
        for (name, value) in outgoing.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(outgoing.body)).map_err(|error| error.to_string())?;
        converse(stream, request).await
    }

    async fn connect(&self, uri: &Uri, host: &str) -> Result<Box<dyn Stream>, String> {
        let https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let bare = host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, port)).await.map_err(|error| error.to_string())?;
        if !https {
            return Ok(Box::new(stream));
        }
        let config = self
            .tls
            .as_ref()
            .ok_or("a worker without an https listener or an ssl.truststore.location cannot reach workers by https")?;
        let name = ServerName::try_from(bare.to_owned()).map_err(|error| error.to_string())?;
        let stream =
            TlsConnector::from(Arc::clone(config)).connect(name, stream).await.map_err(|error| error.to_string())?;
        Ok(Box::new(stream))
    }
}

/// Plain or over TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn converse(stream: Box<dyn Stream>, request: Request<Full<Bytes>>) -> Result<Incoming, String> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let code = response.status().as_u16();
        let body =
            Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
        Ok(Incoming { code, body: body.to_bytes() })
    };
    tokio::pin!(connection, exchange);
    // The connection has to be driven while the exchange waits; it ends first when the other side closes behind its answer.
    tokio::select! {
        result = &mut exchange => result,
        _ = &mut connection => exchange.await,
    }
}

fn unreachable(url: &str, error: &str) -> Failure {
    Failure::new(500, format!("IO Error trying to forward REST request: {url}: {error}"))
}

/// Re-raises another worker's error with its code.
fn judge(answer: Incoming, url: &str) -> Result<Incoming, Failure> {
    match answer.code {
        200..300 => Ok(answer),
        400.. => Err(match serde_json::from_slice::<ErrorMessage>(&answer.body) {
            Ok(error) => Failure::new(answer.code, error.message),
            Err(_) => Failure::new(
                answer.code,
                format!("{url} answered with code {} and no error that can be read", answer.code),
            ),
        }),
        code => Err(Failure::new(500, format!("Unexpected status code when handling forwarded request: {code}"))),
    }
}

/// The headers of a request that go with it when it is forwarded: the user's credentials, and the signature of an internal request, which covers
/// the body alone and so stays true.
pub(crate) fn forwarded_headers(headers: &hyper::HeaderMap) -> Vec<(String, String)> {
    [AUTHORIZATION.as_str(), SIGNATURE_HEADER, ALGORITHM_HEADER]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), headers.get(name)?.to_str().ok()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: u16, body: &'static str) -> Result<u16, (u16, String)> {
        let answer = Incoming { code, body: Bytes::from_static(body.as_bytes()) };
        judge(answer, "http://x/").map(|answer| answer.code).map_err(|failure| (failure.code, failure.message))
    }

    #[test]
    fn an_error_is_raised_again_with_its_code_and_text() {
        assert_eq!(judged(204, ""), Ok(204));
        assert_eq!(judged(409, r#"{"error_code":409,"message":"busy"}"#), Err((409, "busy".to_owned())));
        assert_eq!(judged(400, "<html>").map_err(|(code, _)| code), Err(400));
        assert_eq!(judged(302, "").map_err(|(code, _)| code), Err(500));
    }
}
