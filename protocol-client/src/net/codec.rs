//! Frames to and from message bodies: [`crate::wire`] with the client's error type.

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Request};

use crate::error::Error;
use crate::wire::{WireError, frame};

/// The API of a request type; an error only if kafka-protocol's own tables disagree with each other.
pub(crate) fn api_of<Q: Request>() -> Result<ApiKey, Error> {
    ApiKey::try_from(Q::KEY)
        .map_err(|()| Error::Encode { api: format!("API {}", Q::KEY), what: "its key is not in the table".to_owned() })
}

pub(crate) fn encode_request<Q: Request>(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: &str,
    request: &Q,
) -> Result<Bytes, Error> {
    frame::encode_request(api, version, correlation_id, client_id, request)
        .map_err(|error| Error::Encode { api: format!("{api:?}"), what: error.to_string() })
}

/// Decodes a whole response frame, correlation id included.
pub(crate) fn decode_response<R: Decodable>(api: ApiKey, version: i16, mut frame: Bytes) -> Result<R, WireError> {
    frame::decode_response_header(api, version, &mut frame)?;
    frame::decode_response(api, version, frame)
}
