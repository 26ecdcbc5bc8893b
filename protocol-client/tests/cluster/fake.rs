//! Brokers made of a closure: real sockets, scripted answers.
//!
//! `answer` gets each request (after ApiVersions, which is answered here) and gives the response frame, or `None` to close the
//! connection without one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{ApiKey, ApiVersionsResponse, BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::{Encodable, StrBytes};
use oncewire_client::wire::frame::{self, RequestHead};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub type Answer = dyn Fn(&RequestHead, Bytes) -> Option<Bytes> + Send + Sync;

/// The APIs that fake brokers offer, with their highest version.
const OFFERED: &[(ApiKey, i16)] = &[
    (ApiKey::ApiVersions, 4),
    (ApiKey::Metadata, 12),
    (ApiKey::FindCoordinator, 6),
    (ApiKey::InitProducerId, 4),
    (ApiKey::ListOffsets, 7),
    (ApiKey::Fetch, 12),
];

pub struct FakeBroker {
    pub address: SocketAddr,
    /// The API of every request, in order.
    pub seen: Arc<Mutex<Vec<ApiKey>>>,
    listening: Option<tokio::task::JoinHandle<()>>,
}

impl FakeBroker {
    pub async fn start(answer: impl Fn(&RequestHead, Bytes) -> Option<Bytes> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, answer)
    }

    pub fn on(
        listener: TcpListener,
        answer: impl Fn(&RequestHead, Bytes) -> Option<Bytes> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<ApiKey>>> = Arc::default();
        let (answer, noted): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&seen));
        let listening = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket, Arc::clone(&answer), Arc::clone(&noted)));
            }
        });
        Self { address, seen, listening: Some(listening) }
    }

    pub fn count(&self, api: ApiKey) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| **seen == api).count()
    }

    /// Ends it with all its connections, like a process that dies.
    pub async fn stop(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            assert!(listening.await.is_err(), "it was running");
        }
    }
}

async fn serve(mut socket: TcpStream, answer: Arc<Answer>, seen: Arc<Mutex<Vec<ApiKey>>>) {
    loop {
        let mut length = [0; 4];
        if socket.read_exact(&mut length).await.is_err() {
            return;
        }
        let mut body = BytesMut::zeroed(usize::try_from(i32::from_be_bytes(length)).unwrap());
        if socket.read_exact(&mut body).await.is_err() {
            return;
        }
        let mut body = body.freeze();
        let head = frame::decode_request_header(&mut body).unwrap();
        seen.lock().unwrap().push(head.api);
        let response = match head.api {
            ApiKey::ApiVersions => Some(api_versions(&head)),
            _ => answer(&head, body),
        };
        match response {
            Some(response) if socket.write_all(&response).await.is_ok() => {}
            _ => return,
        }
    }
}

/// A response frame in the version of its request.
pub fn respond(head: &RequestHead, response: &impl Encodable) -> Bytes {
    frame::encode_response(head.api, head.version, head.correlation_id, response).unwrap()
}

fn api_versions(head: &RequestHead) -> Bytes {
    let offered =
        OFFERED.iter().map(|(api, max)| ApiVersion::default().with_api_key(*api as i16).with_max_version(*max));
    respond(head, &ApiVersionsResponse::default().with_api_keys(offered.collect()))
}

pub fn brokers(addresses: &[(i32, SocketAddr)]) -> MetadataResponse {
    let brokers = addresses.iter().map(|(id, address)| {
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(*id))
            .with_host(StrBytes::from_string(address.ip().to_string()))
            .with_port(i32::from(address.port()))
    });
    MetadataResponse::default().with_brokers(brokers.collect()).with_controller_id(BrokerId(addresses[0].0))
}

/// Answers Metadata with these brokers and, for every topic asked for, one partition led by `leader`.
pub fn metadata(head: &RequestHead, body: Bytes, addresses: &[(i32, SocketAddr)], leader: i32) -> Bytes {
    let request: MetadataRequest = frame::decode_request(head.api, head.version, body).unwrap();
    let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
        let partition = MetadataResponsePartition::default().with_leader_id(BrokerId(leader)).with_leader_epoch(1);
        let name = topic.name.unwrap_or(TopicName(StrBytes::from_static_str("")));
        MetadataResponseTopic::default().with_name(Some(name)).with_partitions(vec![partition])
    });
    respond(head, &brokers(addresses).with_topics(topics.collect()))
}
