//! One connection: read a frame, have it handled, write the answer; until the peer, an error or the shutdown ends it.
//!
//! A frame is read into a buffer of just its size, because the log keeps slices of it; the buffer grows with the
//! bytes that arrive, so that a length alone costs nothing.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use oncewire_client::wire::WireError;
use oncewire_client::wire::frame::{self, LENGTH_PREFIX_BYTES};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

use super::Shared;
use crate::api::{Call, Response};
use crate::broker::{ConnectionId, Handled};

/// Small requests and their length come in one read; larger ones go past this buffer.
const READ_BUFFER_BYTES: usize = 8 * 1024;
/// The most that a declared length may reserve before its bytes arrive.
const RESERVE_AHEAD_BYTES: usize = 2 << 20;

/// Why a connection ended.
enum End {
    /// The peer closed it, or an API says to close it.
    Closed,
    Io(io::Error),
    /// Bytes that are no request of ours.
    Wire(WireError),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Io(error)
    }
}

impl From<WireError> for End {
    fn from(error: WireError) -> Self {
        End::Wire(error)
    }
}

/// Serves one connection to its end.
pub(super) async fn serve(
    stream: TcpStream,
    id: ConnectionId,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let peer = stream.peer_addr().map_or_else(|_| "unknown".to_owned(), |address| address.to_string());
    let end = tokio::select! {
        end = converse(stream, id, &shared) => end,
        _ = stopped.wait_for(|stop| *stop) => End::Closed,
    };
    {
        let mut core = shared.lock();
        core.waiting.remove(&id);
        core.broker.disconnect(id);
    }
    match end {
        End::Closed => {}
        End::Io(error) => tracing::debug!(peer, %error, "connection ended"),
        End::Wire(error) => tracing::warn!(peer, %error, "connection closed for a request that cannot be served"),
    }
}

async fn converse(stream: TcpStream, id: ConnectionId, shared: &Shared) -> End {
    // Answers are written whole, so waiting to fill a segment would only delay them; failing to say so is harmless.
    let _ = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, reader);
    loop {
        let step = async {
            let Some(request) = read_frame(&mut reader, shared).await? else { return Err(End::Closed) };
            let Some(answer) = answer(request, id, shared, &mut reader).await? else { return Ok(()) };
            writer.write_all(&answer).await?;
            Ok(())
        };
        if let Err(end) = step.await {
            return end;
        }
    }
}

/// The next request without its length; `None` when the peer closed between two.
async fn read_frame(reader: &mut (impl AsyncRead + Unpin), shared: &Shared) -> Result<Option<Bytes>, End> {
    let mut prefix = [0; LENGTH_PREFIX_BYTES];
    let waited = tokio::time::timeout(shared.idle_max, reader.read_exact(&mut prefix)).await;
    match waited {
        Err(_idle) => return Ok(None),
        Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Ok(read) => read?,
    };
    let size = frame::frame_size(prefix, shared.request_bytes_max)?;
    let mut body = BytesMut::with_capacity(size.min(RESERVE_AHEAD_BYTES));
    while body.len() < size {
        if body.len() == body.capacity() {
            body.reserve((size - body.len()).min(body.len()));
        }
        let mut rest = (&mut *reader).take(u64::try_from(size - body.len()).unwrap_or(u64::MAX));
        if rest.read_buf(&mut body).await? == 0 {
            return Err(End::Io(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    Ok(Some(body.freeze()))
}

/// Has a request handled; `None` when it asks for no answer.
async fn answer(
    mut request: Bytes,
    id: ConnectionId,
    shared: &Shared,
    reader: &mut (impl AsyncBufRead + Unpin),
) -> Result<Option<Bytes>, End> {
    let head = frame::decode_request_header(&mut request)?;
    let call = Call::decode(&head, request)?;
    let (api, version) = (call.api, call.version);
    let handled = match begin(call, id, shared) {
        Ok(handled) => handled,
        Err(parked) => tokio::select! {
            // A sender that is dropped unused means that the broker goes away.
            handled = parked => handled.unwrap_or(Handled::Close),
            () = peer_closed(reader) => Handled::Close,
        },
    };
    match handled {
        Handled::Reply(response) => encode(&response, api, version, head.correlation_id).map(Some),
        Handled::NoReply => Ok(None),
        Handled::Close | Handled::Park => Err(End::Closed),
    }
}

/// Ends when the peer has closed its side; never when it has sent the next request already.
async fn peer_closed(reader: &mut (impl AsyncBufRead + Unpin)) {
    match reader.fill_buf().await {
        Ok([]) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

fn begin(call: Call, id: ConnectionId, shared: &Shared) -> Result<Handled, oneshot::Receiver<Handled>> {
    let mut core = shared.lock();
    let now = shared.now();
    let deadline_before = core.broker.next_deadline();
    let handled = core.broker.handle(now, id, call);
    let parked = (handled == Handled::Park).then(|| {
        let (sender, receiver) = oneshot::channel();
        core.waiting.insert(id, sender);
        receiver
    });
    core.deliver();
    let deadline = core.broker.next_deadline();
    drop(core);
    if deadline != deadline_before {
        shared.retime.notify_one();
    }
    parked.map_or(Ok(handled), Err)
}

fn encode(response: &Response, api: ApiKey, version: i16, correlation_id: i32) -> Result<Bytes, End> {
    Ok(response.encode(api, version, correlation_id)?)
}
