//! The listeners: binding, accepting, and ending in order.
//!
//! Bounded: connections, the bytes and the number of headers, the time for a head, a handshake, a body and an answer that is not read. What a
//! request passes then is in `answer`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use oncewire_client::complaint::Complaint;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::answer::{Door, Serves, Shared};
use crate::auth::Users;
use crate::client::RestClient;
use crate::config::{Admin, Listener, NOT_LISTENED_TO, RestConfig, Scheme, advertised_url};
use crate::herder::Herder;
use crate::patient::Patient;

/// Of all listeners together. Another one waits in the kernel's queue.
const CONNECTIONS_MAX: usize = 1_000;
/// Of a request's line and headers.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 100;
/// For a request's line and headers, and between two requests of one connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// After an accept that failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A worker's REST interface. Bound before the herder exists, so that the advertised URL is known to it; until [`RestServer::serve`] requests get
/// 503.
pub struct RestServer {
    advertised_url: String,
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    accepting: JoinSet<()>,
}

impl std::fmt::Debug for RestServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RestServer").field("advertised_url", &self.advertised_url).finish_non_exhaustive()
    }
}

struct BoundListener {
    socket: TcpListener,
    door: Door,
    tls: Option<Arc<ServerConfig>>,
}

impl RestServer {
    /// Binds every listener and begins to accept.
    ///
    /// # Errors
    /// A listener cannot be bound, or a file cannot be used; the text names the key.
    ///
    /// # Cancel safety
    /// Nothing stays bound.
    pub async fn bind(config: RestConfig) -> Result<Self, String> {
        let users = config.basic_auth_jaas.as_deref().map(Users::read).transpose()?;
        let client = RestClient::new(&config)?;
        let serves = if config.admin == Admin::OnMain { Serves::All } else { Serves::WithoutAdmin };
        let mut bound = Vec::new();
        let mut listeners = config.listeners.clone();
        for listener in &mut listeners {
            let tls = (listener.scheme == Scheme::Https).then(|| config.tls.server_config()).transpose()?;
            bound.push(bind("listeners", listener, serves, tls).await?);
        }
        if let Admin::Own(admin) = &config.admin {
            for listener in admin {
                let tls = (listener.scheme == Scheme::Https).then(|| config.admin_tls.server_config()).transpose()?;
                bound.push(bind("admin.listeners", &mut listener.clone(), Serves::AdminOnly, tls).await?);
            }
        }
        let advertised_url = advertised_url(&config.advertised, &listeners, &local_address()).ok_or(NOT_LISTENED_TO)?;
        let authority = advertised_url.trim_end_matches('/').split("://").nth(1).unwrap_or_default().to_owned();
        let shared = Shared {
            config: Arc::new(config),
            users,
            client,
            advertised_authority: authority,
            herder: OnceLock::new(),
        };
        Ok(Self::accept(advertised_url, bound, Arc::new(shared)))
    }

    fn accept(advertised_url: String, bound: Vec<BoundListener>, shared: Arc<Shared>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let addresses = bound.iter().filter_map(|listener| listener.socket.local_addr().ok()).collect();
        let mut accepting = JoinSet::new();
        for listener in bound {
            accepting.spawn(accept(listener, Arc::clone(&shared), Arc::clone(&connections), stopped.clone()));
        }
        RestServer { advertised_url, addresses, shared, stop, accepting }
    }

    /// What other workers and clients reach this worker by, ending in `/`.
    pub fn advertised_url(&self) -> &str {
        &self.advertised_url
    }

    /// Where it listens: the main listeners first, then the admin listeners, each in the order of its key.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// A client with this worker's TLS settings.
    pub fn client(&self) -> RestClient {
        self.shared.client.clone()
    }

    /// From now on requests reach `herder`. A later call changes nothing.
    pub fn serve(&self, herder: Arc<dyn Herder>) {
        if self.shared.herder.set(herder).is_err() {
            tracing::warn!("the REST server serves a herder already");
        }
    }

    /// Stops accepting, lets running requests end for `patience`, then cuts them off.
    ///
    /// # Cancel safety
    /// What still runs is cut off.
    pub async fn close(mut self, patience: Duration) {
        self.stop.send_replace(true);
        let ended = async { while self.accepting.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, ended).await.is_err() {
            tracing::warn!("requests still ran after {patience:?}; their connections are cut");
            self.accepting.shutdown().await;
        }
    }
}

async fn bind(
    key: &str,
    listener: &mut Listener,
    serves: Serves,
    tls: Option<Arc<ServerConfig>>,
) -> Result<BoundListener, String> {
    let told = |error: std::io::Error| format!("{key}: cannot listen on {}:{}: {error}", listener.host, listener.port);
    let host = if listener.host.is_empty() { "0.0.0.0" } else { &listener.host };
    let socket = TcpListener::bind((host, listener.port)).await.map_err(told)?;
    listener.port = socket.local_addr().map_err(told)?.port();
    Ok(BoundListener { socket, door: Door { scheme: listener.scheme, serves }, tls })
}

/// The address that this machine would use towards others; no packet is sent for it.
fn local_address() -> String {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        // An address for documentation (RFC 5737): the route to it is the default route.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    });
    socket.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip()).to_string()
}

/// Accepts until told to stop, then waits for its connections.
async fn accept(
    listener: BoundListener,
    shared: Arc<Shared>,
    limit: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let (on, mut complaint) = (stopped.clone(), Complaint::default());
    loop {
        tokio::select! {
            // An error means that the server is gone.
            _ = stopped.changed() => break,
            Some(_) = connections.join_next() => {}
            (permit, accepted) = next(&listener.socket, &limit) => match accepted {
                Ok((stream, _)) => {
                    if let Some(after) = complaint.over(Instant::now()) {
                        tracing::info!("connections are accepted again after {:.1} s", after.as_secs_f32());
                    }
                    let connection = connection(stream, listener.tls.clone(), listener.door, Arc::clone(&shared), on.clone(), permit);
                    connections.spawn(connection);
                }
                Err(error) => {
                    if let Some(told) = complaint.failed(Instant::now(), &error.to_string()) {
                        tracing::warn!("connections can't be accepted{told}: {error}");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener.socket);
    while connections.join_next().await.is_some() {}
}

async fn next(
    socket: &TcpListener,
    limit: &Arc<Semaphore>,
) -> (Option<OwnedSemaphorePermit>, std::io::Result<(TcpStream, SocketAddr)>) {
    let permit = Arc::clone(limit).acquire_owned().await.ok();
    (permit, socket.accept().await)
}

async fn connection(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    door: Door,
    shared: Arc<Shared>,
    stopped: watch::Receiver<bool>,
    _permit: Option<OwnedSemaphorePermit>,
) {
    // Best effort: without it answers are late, not wrong.
    let _ = stream.set_nodelay(true);
    let stream = Patient::new(stream);
    let Some(tls) = tls else { return converse(stream, door, shared, stopped).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, door, shared, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn converse<S>(stream: S, door: Door, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, std::convert::Infallible>(shared.answer(door, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // The borrowed value must not live over the await that follows.
    let told = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let result = tokio::select! {
        result = &mut connection => result,
        () = told => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
