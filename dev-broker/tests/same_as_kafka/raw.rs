//! A client that sends what it is told and judges nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Encodable};
use oncewire_client::wire::frame;

const ANSWER_WAIT: Duration = Duration::from_secs(30);

pub(crate) struct RawClient {
    stream: TcpStream,
    correlation_id: i32,
}

impl RawClient {
    pub(crate) fn connect(bootstrap: &str) -> Self {
        let stream = TcpStream::connect(bootstrap).expect("the broker accepts");
        stream.set_read_timeout(Some(ANSWER_WAIT)).expect("a timeout can be set");
        stream.set_nodelay(true).expect("the option exists");
        Self { stream, correlation_id: 0 }
    }

    /// Sends one request and reads its answer.
    pub(crate) fn call<A: Decodable>(&mut self, api: ApiKey, version: i16, request: &impl Encodable) -> A {
        self.send(api, version, request);
        self.receive(api, version)
    }

    /// Sends one request whose answer may take its time.
    pub(crate) fn send(&mut self, api: ApiKey, version: i16, request: &impl Encodable) {
        self.correlation_id += 1;
        let sent = frame::encode_request(api, version, self.correlation_id, "raw", request).expect("encodes");
        self.stream.write_all(&sent).expect("the broker reads");
    }

    /// Reads the answer to the request that was sent last.
    pub(crate) fn receive<A: Decodable>(&mut self, api: ApiKey, version: i16) -> A {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix).unwrap_or_else(|error| panic!("no answer to {api:?} {version}: {error}"));
        let mut body = vec![0; frame::frame_size(prefix, frame::RESPONSE_BYTES_MAX).expect("a frame")];
        self.stream.read_exact(&mut body).expect("the whole answer");
        let mut body = Bytes::from(body);
        let id = frame::decode_response_header(api, version, &mut body).expect("a header");
        assert_eq!(id, self.correlation_id);
        frame::decode_response(api, version, body).expect("an answer of this version")
    }
}
