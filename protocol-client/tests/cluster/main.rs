//! The cluster handle against scripted brokers on real sockets: finding brokers, keeping off dead ones, caches and retries.

#![allow(missing_docs, unreachable_pub, reason = "a test binary has no public API")]
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod fake;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{
    ApiKey, BrokerId, FindCoordinatorRequest, FindCoordinatorResponse, InitProducerIdResponse,
};
use oncewire_client::admin::Admin;
use oncewire_client::cluster::{Cluster, CoordinatorKind, NodeId};
use oncewire_client::config::{ClientConfig, MetadataRecovery};
use oncewire_client::error::{ConnectFailure, Error};
use oncewire_client::wire::frame;
use tokio::net::TcpListener;

use fake::{FakeBroker, metadata, respond};

fn config(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new(bootstrap).unwrap();
    config.default_api_timeout = Duration::from_secs(10);
    config.retry_backoff = Duration::from_millis(1);
    config.retry_backoff_max = Duration::from_millis(5);
    config.reconnect_backoff = Duration::from_millis(1);
    config.reconnect_backoff_max = Duration::from_millis(5);
    config
}

/// An address on which nobody listens any more.
async fn dead_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A broker, node 1, that knows only itself and leads every topic.
async fn single() -> FakeBroker {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    FakeBroker::on(listener, move |head, body| Some(metadata(head, body, &[(1, address)], 1)))
}

fn found(key: &str, node: i32, address: SocketAddr, code: i16) -> FindCoordinatorResponse {
    let entry = Coordinator::default()
        .with_key(kafka_protocol::protocol::StrBytes::from_string(key.to_owned()))
        .with_node_id(BrokerId(node))
        .with_host(kafka_protocol::protocol::StrBytes::from_string(address.ip().to_string()))
        .with_port(i32::from(address.port()))
        .with_error_code(code);
    FindCoordinatorResponse::default().with_coordinators(vec![entry])
}

#[tokio::test]
async fn a_dead_bootstrap_server_is_passed_over() {
    let broker = single().await;
    let cluster = Cluster::connect(config(&format!("{},{}", dead_address().await, broker.address))).await.unwrap();
    assert_eq!(cluster.brokers()[0].id, NodeId(1));
    cluster.close().await;
}

#[tokio::test]
async fn every_dead_bootstrap_server_is_named() {
    let (one, two) = (dead_address().await, dead_address().await);
    let mut config = config(&format!("{one},{two}"));
    config.default_api_timeout = Duration::from_millis(50);
    let error = Cluster::connect(config).await.unwrap_err().to_string();
    assert!(error.contains(&one.to_string()) && error.contains(&two.to_string()), "{error}");
    assert!(error.contains("connection refused"), "{error}");
}

#[tokio::test]
async fn a_port_that_is_not_kafkas_ends_the_attempts_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut socket, &[0x15, 3, 3, 0, 2, 2, 10]).await.unwrap();
        listener.accept().await.is_ok()
    });
    match Cluster::connect(config(&address.to_string())).await.unwrap_err() {
        Error::NoBroker { attempts } => {
            assert!(matches!(&*attempts[0].1, Error::Connect { failure: ConnectFailure::TlsPort, .. }));
        }
        other => panic!("{other}"),
    }
    server.abort();
}

#[tokio::test]
async fn concurrent_look_ups_share_one_metadata_request() {
    let broker = single().await;
    let cluster = Cluster::connect(config(&broker.address.to_string())).await.unwrap();
    let before = broker.count(ApiKey::Metadata);
    let lookups: Vec<_> = (0..50)
        .map(|index| {
            let cluster = cluster.clone();
            tokio::spawn(async move { cluster.topic(&format!("t{}", index % 10)).await.unwrap().is_some() })
        })
        .collect();
    for lookup in lookups {
        assert!(lookup.await.unwrap());
    }
    let requests = broker.count(ApiKey::Metadata) - before;
    assert!(requests <= 3, "{requests} requests for 50 look-ups");
    cluster.close().await;
}

/// All brokers that could lead it were away. Nobody tells when one is back, and `metadata.max.age.ms` is minutes.
#[tokio::test]
async fn a_topic_without_a_leader_is_asked_for_again_long_before_its_metadata_is_old() {
    let leader = Arc::new(AtomicI32::new(-1));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let told = Arc::clone(&leader);
    let broker = FakeBroker::on(listener, move |head, body| {
        Some(metadata(head, body, &[(1, address)], told.load(Ordering::Relaxed)))
    });
    let cluster = Cluster::connect(config(&address.to_string())).await.unwrap();
    for _ in 0..100 {
        assert!(cluster.topic("t").await.unwrap().is_some());
    }
    assert!(broker.count(ApiKey::Metadata) < 10, "it is not asked for each time");
    assert_eq!(cluster.leader("t", 0), None);
    leader.store(1, Ordering::Relaxed);
    let found = tokio::time::timeout(Duration::from_secs(10), async {
        while cluster.topic("t").await.unwrap().is_some() && cluster.leader("t", 0).is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    found.await.expect("the leader is found");
    assert_eq!(cluster.leader("t", 0).map(|(node, _)| node), Some(NodeId(1)));
    cluster.close().await;
}

#[tokio::test]
async fn without_recovery_the_bootstrap_servers_are_asked_once_only() {
    let alive = Arc::new(Mutex::new(None::<SocketAddr>));
    let mut first = single().await;
    let second_knows = Arc::clone(&alive);
    let second = FakeBroker::start(move |head, body| {
        let address = second_knows.lock().unwrap().unwrap();
        Some(metadata(head, body, &[(2, address)], 2))
    })
    .await;
    *alive.lock().unwrap() = Some(second.address);
    let mut config = config(&format!("{},{}", first.address, second.address));
    config.metadata_recovery = MetadataRecovery::None;
    let cluster = Cluster::connect(config).await.unwrap();
    first.stop().await;
    let mut retry = cluster.retry("refreshing", Duration::from_millis(300));
    let error = loop {
        let Err(error) = cluster.refresh(&[]).await else { panic!("somebody else was asked") };
        if let Err(error) = retry.pause(error).await {
            break error;
        }
    };
    assert!(!error.to_string().contains(&second.address.to_string()), "{error}");
    assert_eq!((cluster.brokers()[0].id, second.count(ApiKey::Metadata)), (NodeId(1), 0));
    cluster.close().await;
}

#[tokio::test]
async fn when_the_known_broker_dies_the_bootstrap_servers_are_asked() {
    let alive = Arc::new(Mutex::new(None::<SocketAddr>));
    // Node 1 knows only itself; the second bootstrap server tells of node 2.
    let mut first = single().await;
    let second_knows = Arc::clone(&alive);
    let second = FakeBroker::start(move |head, body| {
        let address = second_knows.lock().unwrap().unwrap();
        Some(metadata(head, body, &[(2, address)], 2))
    })
    .await;
    *alive.lock().unwrap() = Some(second.address);
    let cluster = Cluster::connect(config(&format!("{},{}", first.address, second.address))).await.unwrap();
    assert_eq!(cluster.brokers()[0].id, NodeId(1));
    first.stop().await;
    let mut retry = cluster.retry("refreshing", Duration::from_secs(5));
    while let Err(error) = cluster.refresh(&[]).await {
        retry.pause(error).await.unwrap();
    }
    assert_eq!(cluster.brokers()[0].id, NodeId(2));
    cluster.close().await;
}

#[tokio::test]
async fn a_broker_that_stops_answering_does_not_hold_metadata_back() {
    let frozen = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (one, two) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let both = [(1, one.local_addr().unwrap()), (2, two.local_addr().unwrap())];
    let is_frozen = Arc::clone(&frozen);
    let first = FakeBroker::on(one, move |head, body| {
        // An empty frame is no answer: the client goes on waiting.
        let silent = is_frozen.load(Ordering::SeqCst);
        Some(if silent { bytes::Bytes::new() } else { metadata(head, body, &both, 1) })
    });
    let second = FakeBroker::on(two, move |head, body| Some(metadata(head, body, &both, 2)));
    let mut config = config(&first.address.to_string());
    config.request_timeout = Duration::from_millis(20);
    let cluster = Cluster::connect(config).await.unwrap();
    frozen.store(true, Ordering::SeqCst);
    assert!(cluster.topic("t").await.unwrap().is_some());
    assert_eq!(second.count(ApiKey::Metadata), 1);
    cluster.close().await;
}

#[tokio::test]
async fn a_group_and_a_transactional_id_of_one_name_find_their_own_coordinators() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let broker = FakeBroker::on(listener, move |head, body| match head.api {
        ApiKey::FindCoordinator => {
            let request: FindCoordinatorRequest = frame::decode_request(head.api, head.version, body).unwrap();
            let node = i32::from(request.key_type) + 1;
            Some(respond(head, &found("orders", node, address, 0)))
        }
        _ => Some(metadata(head, body, &[(1, address)], 1)),
    });
    let cluster = Cluster::connect(config(&broker.address.to_string())).await.unwrap();
    for _ in 0..2 {
        assert_eq!(cluster.coordinator(CoordinatorKind::Group, "orders").await.unwrap(), NodeId(1));
        assert_eq!(cluster.coordinator(CoordinatorKind::Transaction, "orders").await.unwrap(), NodeId(2));
    }
    assert_eq!(broker.count(ApiKey::FindCoordinator), 2, "the second round comes from the cache");
    cluster.forget_coordinator(CoordinatorKind::Group, "orders");
    cluster.coordinator(CoordinatorKind::Group, "orders").await.unwrap();
    assert_eq!(broker.count(ApiKey::FindCoordinator), 3);
    cluster.close().await;
}

#[tokio::test]
async fn a_coordinator_that_is_not_there_yet_is_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = AtomicUsize::new(0);
    let broker = FakeBroker::on(listener, move |head, body| match head.api {
        ApiKey::FindCoordinator => {
            let code = [15, 14, 0][asked.fetch_add(1, Ordering::SeqCst).min(2)];
            Some(respond(head, &found("x", 1, address, code)))
        }
        _ => Some(metadata(head, body, &[(1, address)], 1)),
    });
    let cluster = Cluster::connect(config(&broker.address.to_string())).await.unwrap();
    assert_eq!(cluster.coordinator(CoordinatorKind::Transaction, "x").await.unwrap(), NodeId(1));
    assert_eq!(broker.count(ApiKey::FindCoordinator), 3);
    cluster.close().await;
}

/// Fencing has to get through everything that a coordinator in motion answers.
#[tokio::test]
async fn fencing_survives_a_moving_coordinator_and_a_lost_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = AtomicUsize::new(0);
    let broker = FakeBroker::on(listener, move |head, body| match head.api {
        ApiKey::FindCoordinator => Some(respond(head, &found("x", 1, address, 0))),
        ApiKey::InitProducerId => {
            let code = match asked.fetch_add(1, Ordering::SeqCst) {
                0 => 16, // NOT_COORDINATOR
                1 => 14, // COORDINATOR_LOAD_IN_PROGRESS
                2 => 51, // CONCURRENT_TRANSACTIONS
                3 => return None,
                _ => 0,
            };
            Some(respond(head, &InitProducerIdResponse::default().with_error_code(code).with_producer_epoch(4)))
        }
        _ => Some(metadata(head, body, &[(1, address)], 1)),
    });
    let cluster = Cluster::connect(config(&broker.address.to_string())).await.unwrap();
    let admin = Admin::new(cluster.clone());
    let minute = Duration::from_secs(60);
    let fenced = admin.fence_producers(&["x".to_owned()], minute, Duration::from_secs(10)).await;
    assert_eq!(fenced["x"].as_ref().unwrap().epoch, 4);
    assert_eq!(broker.count(ApiKey::InitProducerId), 5);
    // After NOT_COORDINATOR and after the lost connection it was looked up again.
    assert_eq!(broker.count(ApiKey::FindCoordinator), 3);
    cluster.close().await;
}

#[tokio::test]
async fn fencing_that_is_refused_or_never_ends_says_why() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let broker = FakeBroker::on(listener, move |head, body| match head.api {
        ApiKey::FindCoordinator => Some(respond(head, &found("x", 1, address, 0))),
        ApiKey::InitProducerId => Some(respond(head, &InitProducerIdResponse::default().with_error_code(51))),
        _ => Some(metadata(head, body, &[(1, address)], 1)),
    });
    let cluster = Cluster::connect(config(&broker.address.to_string())).await.unwrap();
    let admin = Admin::new(cluster.clone());
    let fenced = admin.fence_producers(&["x".to_owned()], Duration::from_secs(60), Duration::from_millis(60)).await;
    let error = fenced["x"].as_ref().unwrap_err();
    assert_eq!(error.code(), Some(51));
    assert!(error.to_string().contains("fencing transactional id 'x'"), "{error}");
    cluster.close().await;
}

#[tokio::test]
async fn a_closed_cluster_says_so() {
    let broker = single().await;
    let cluster = Cluster::connect(config(&broker.address.to_string())).await.unwrap();
    cluster.close().await;
    assert!(matches!(cluster.refresh(&[]).await, Err(Error::Closed)));
    assert!(matches!(cluster.topic("t").await, Err(Error::Closed)));
    cluster.close().await;
}

#[tokio::test]
async fn closing_does_not_wait_for_a_silent_broker() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let silent = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let quiet = Arc::clone(&silent);
    let broker = FakeBroker::on(listener, move |head, body| {
        // An empty frame is no answer: the client goes on waiting.
        if quiet.load(Ordering::SeqCst) {
            return Some(bytes::Bytes::new());
        }
        Some(metadata(head, body, &[(1, address)], 1))
    });
    let cluster = Cluster::connect(config(&broker.address.to_string())).await.unwrap();
    silent.store(true, Ordering::SeqCst);
    let waiting = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.topic("t").await }
    });
    while broker.count(ApiKey::Metadata) < 2 {
        tokio::task::yield_now().await;
    }
    cluster.close().await;
    assert!(matches!(waiting.await.unwrap(), Err(Error::Closed)));
}
