//! From a host name to an open socket: every address of the name is tried (KIP-602), and the name is looked up anew each time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use crate::config::{BrokerAddress, ClientConfig};
use crate::error::ConnectFailure;

/// A name with more addresses than this is a mistake or an attack; the rest is not tried.
const ADDRESSES_MAX: usize = 16;

/// Socket sizes, apart from the configuration they come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketBuffers {
    send: Option<u32>,
    receive: Option<u32>,
}

impl SocketBuffers {
    pub(crate) fn of(config: &ClientConfig) -> Self {
        Self { send: config.send_buffer_bytes, receive: config.receive_buffer_bytes }
    }
}

/// Opens a TCP connection; `patience` is for the look-up and for each address.
pub(crate) async fn dial(
    address: &BrokerAddress,
    buffers: SocketBuffers,
    patience: Duration,
) -> Result<TcpStream, ConnectFailure> {
    let lookup = timeout(patience, lookup_host((address.host.as_str(), address.port))).await;
    let found: Vec<SocketAddr> = match lookup {
        Err(_) => return Err(ConnectFailure::TimedOut { after: patience }),
        Ok(Err(error)) => return Err(name_not_found(&error)),
        Ok(Ok(found)) => found.take(ADDRESSES_MAX).collect(),
    };
    let mut failure = ConnectFailure::NameNotFound { reason: "the name has no address".to_owned() };
    for socket_address in found {
        match timeout(patience, open(socket_address, buffers)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = socket_failure(&error),
            Err(_) => failure = ConnectFailure::TimedOut { after: patience },
        }
        tracing::debug!(%address, %socket_address, %failure, "address failed");
    }
    Err(failure)
}

async fn open(address: SocketAddr, buffers: SocketBuffers) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(bytes) = buffers.send {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = buffers.receive {
        socket.set_recv_buffer_size(bytes)?;
    }
    // Requests are written whole; waiting for more to send would only add latency to small ones.
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

fn name_not_found(error: &io::Error) -> ConnectFailure {
    ConnectFailure::NameNotFound { reason: error.to_string() }
}

fn socket_failure(error: &io::Error) -> ConnectFailure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectFailure::Refused,
        _ => ConnectFailure::Socket { reason: error.to_string() },
    }
}
