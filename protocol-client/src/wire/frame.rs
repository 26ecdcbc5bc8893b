//! Frames: a four-byte length, a header, a body; both sides of the conversation.
//!
//! Which header goes with which version is kafka-protocol's table (`ApiKey::request_header_version`):
//! flexible versions carry tagged fields, and an ApiVersions response never does, because the client
//! reads it before it knows what the broker speaks.
//!
//! Left out: sockets. A caller reads four bytes, asks [`frame_size`] how many follow, reads those into
//! one buffer, and hands them over as [`Bytes`]; messages then are slices of that buffer.
//!
//! Source: "Request header" and "Response header" of the protocol guide, KIP-482, KIP-511.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Encodable};

use super::error::{Problem, WireError};
use super::guard;

/// Bytes of a frame's length.
pub const LENGTH_PREFIX_BYTES: usize = 4;

/// The largest response that the client reads, 128 MiB: a Fetch response is at most `fetch.max.bytes`
/// (50 MiB by default) and one batch beyond it.
pub const RESPONSE_BYTES_MAX: usize = 128 << 20;

/// The largest request that the dev broker reads, 100 MiB: a broker's `socket.request.max.bytes`.
pub const REQUEST_BYTES_MAX: usize = 100 << 20;

/// A correlation id: the least that a response holds.
const RESPONSE_BYTES_MIN: usize = 4;

/// API key, version, correlation id and the client id's length: the least that a request holds.
const REQUEST_BYTES_MIN: usize = 10;

/// How many bytes follow a length prefix.
///
/// # Errors
/// When there are more than `limit` or too few for any header; when the four bytes are the start of
/// a TLS record or an HTTP response, which is what a wrong port answers.
pub fn frame_size(prefix: [u8; LENGTH_PREFIX_BYTES], limit: usize) -> Result<usize, WireError> {
    let looks_like = match &prefix {
        // A TLS alert or handshake record, version 3.x.
        [0x15 | 0x16, 0x03, ..] => Some("TLS"),
        b"HTTP" => Some("HTTP"),
        _ => None,
    };
    if let Some(looks_like) = looks_like {
        return Err(WireError::NotKafka { looks_like });
    }
    let declared = i32::from_be_bytes(prefix);
    let size = usize::try_from(declared)
        .ok()
        .filter(|size| *size >= RESPONSE_BYTES_MIN)
        .ok_or(WireError::FrameTooShort { size: declared })?;
    if size > limit {
        return Err(WireError::FrameTooLarge { size: declared.unsigned_abs(), limit });
    }
    Ok(size)
}

/// Writes a request as one frame, length prefix included.
///
/// # Errors
/// [`WireError::Unencodable`] when a field is set that the version doesn't have: our bug.
pub fn encode_request(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: &str,
    body: &impl Encodable,
) -> Result<Bytes, WireError> {
    let unencodable = |reason: String| WireError::Unencodable { api, version, reason };
    let client_id_len =
        i16::try_from(client_id.len()).map_err(|_| unencodable(format!("client id of {} bytes", client_id.len())))?;
    let body_size = body.compute_size(version).map_err(|error| unencodable(error.to_string()))?;
    let tags_len = usize::from(api.request_header_version(version) >= 2);
    let size = REQUEST_BYTES_MIN + client_id.len() + tags_len + body_size;

    let mut frame = start_frame(size).map_err(unencodable)?;
    frame.put_i16(api as i16);
    frame.put_i16(version);
    frame.put_i32(correlation_id);
    frame.put_i16(client_id_len);
    frame.put_slice(client_id.as_bytes());
    frame.put_bytes(0, tags_len); // no tagged fields
    body.encode(&mut frame, version).map_err(|error| unencodable(error.to_string()))?;
    debug_assert_eq!(frame.len(), LENGTH_PREFIX_BYTES + size, "compute_size is what encode writes");
    Ok(frame.freeze())
}

/// Writes a response as one frame, length prefix included.
///
/// # Errors
/// As [`encode_request`].
pub fn encode_response(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    body: &impl Encodable,
) -> Result<Bytes, WireError> {
    let unencodable = |reason: String| WireError::Unencodable { api, version, reason };
    let body_size = body.compute_size(version).map_err(|error| unencodable(error.to_string()))?;
    let tags_len = usize::from(api.response_header_version(version) >= 1);
    let size = RESPONSE_BYTES_MIN + tags_len + body_size;

    let mut frame = start_frame(size).map_err(unencodable)?;
    frame.put_i32(correlation_id);
    frame.put_bytes(0, tags_len); // no tagged fields
    body.encode(&mut frame, version).map_err(|error| unencodable(error.to_string()))?;
    debug_assert_eq!(frame.len(), LENGTH_PREFIX_BYTES + size, "compute_size is what encode writes");
    Ok(frame.freeze())
}

fn start_frame(size: usize) -> Result<BytesMut, String> {
    let prefix = i32::try_from(size).map_err(|_| format!("frame of {size} bytes"))?;
    let mut frame = BytesMut::with_capacity(LENGTH_PREFIX_BYTES + size);
    frame.put_i32(prefix);
    Ok(frame)
}

/// The correlation id at the start of a response (without its length prefix): it says which request
/// is answered, and so which header and body follow.
///
/// # Errors
/// When the frame is shorter than that.
pub fn correlation_id(frame: &[u8]) -> Result<i32, WireError> {
    match frame.first_chunk() {
        Some(bytes) => Ok(i32::from_be_bytes(*bytes)),
        None => Err(WireError::FrameTooShort { size: frame.len() as i32 }),
    }
}

/// Takes the header off a response (without its length prefix), which leaves the body, and gives
/// the correlation id.
///
/// # Errors
/// When the header is cut off or its tagged fields are malformed.
pub fn decode_response_header(api: ApiKey, version: i16, frame: &mut Bytes) -> Result<i32, WireError> {
    let id = correlation_id(frame)?;
    frame.advance(RESPONSE_BYTES_MIN);
    if api.response_header_version(version) >= 1 {
        skip_tags("ResponseHeader", 1, frame)?;
    }
    Ok(id)
}

/// What a request's header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The API.
    pub api: ApiKey,
    /// The version in which the client asks, not yet checked against what is supported.
    pub version: i16,
    /// To be repeated in the response.
    pub correlation_id: i32,
    /// The name that the client gave itself.
    pub client_id: Option<String>,
}

/// Takes the header off a request (without its length prefix), which leaves the body.
///
/// # Errors
/// When the API is unknown (a broker then closes the connection) or the header is malformed.
pub fn decode_request_header(frame: &mut Bytes) -> Result<RequestHead, WireError> {
    let size = frame.len() as i32;
    if frame.len() < REQUEST_BYTES_MIN {
        return Err(WireError::FrameTooShort { size });
    }
    let key = frame.get_i16();
    let api = ApiKey::try_from(key).map_err(|()| WireError::UnknownApi { key })?;
    let version = frame.get_i16();
    let correlation_id = frame.get_i32();
    let malformed = |problem| WireError::Malformed {
        message: "RequestHeader",
        version: api.request_header_version(version),
        field: "ClientId",
        problem,
    };
    let client_id = match frame.get_i16() {
        -1 => None,
        declared => {
            let len = usize::try_from(declared)
                .map_err(|_| malformed(Problem::NegativeLength { declared: declared.into() }))?;
            if len > frame.len() {
                return Err(malformed(Problem::Truncated));
            }
            // A name for logs: odd bytes in it are no reason to refuse the client.
            Some(String::from_utf8_lossy(&frame.split_to(len)).into_owned())
        }
    };
    if api.request_header_version(version) >= 2 {
        skip_tags("RequestHeader", 2, frame)?;
    }
    Ok(RequestHead { api, version, correlation_id, client_id })
}

fn skip_tags(message: &'static str, version: i16, frame: &mut Bytes) -> Result<(), WireError> {
    let len = guard::header_tags_len(frame).map_err(|problem| WireError::Malformed {
        message,
        version,
        field: "tagged fields",
        problem,
    })?;
    frame.advance(len);
    Ok(())
}

/// Decodes a response's body: the guard first, then kafka-protocol.
///
/// # Errors
/// When the body isn't exactly a message of that API and version.
pub fn decode_response<T: Decodable>(api: ApiKey, version: i16, body: Bytes) -> Result<T, WireError> {
    guard::check_response(api, version, &body)?;
    decode(api, version, body)
}

/// Decodes a request's body: the guard first, then kafka-protocol.
///
/// # Errors
/// As [`decode_response`].
pub fn decode_request<T: Decodable>(api: ApiKey, version: i16, body: Bytes) -> Result<T, WireError> {
    guard::check_request(api, version, &body)?;
    decode(api, version, body)
}

fn decode<T: Decodable>(api: ApiKey, version: i16, mut body: Bytes) -> Result<T, WireError> {
    let undecodable = |reason| WireError::Undecodable { api, version, reason };
    let message = T::decode(&mut body, version).map_err(|error| undecodable(error.to_string()))?;
    // The guard has seen the same bytes end with the message: two readings differ only if a table is wrong.
    if !body.is_empty() {
        return Err(undecodable(format!("{} bytes after the message", body.len())));
    }
    Ok(message)
}
