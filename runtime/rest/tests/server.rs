//! The server over real sockets: forwarding between workers, admin listeners, passwords, TLS, limits, and what it says before there is a herder.

mod memory;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use memory::{KEY, MemoryHerder, SECRET};
use oncewire_rest::{Herder as _, HerderError, RestClient, RestConfig, RestServer, SigningKey};
use oncewire_rest_requests::http::{self, Response};

const PATIENCE: Duration = Duration::from_secs(5);

fn config(pairs: &[(&str, &str)]) -> RestConfig {
    let mut properties: BTreeMap<String, String> = [("listeners".to_owned(), "http://127.0.0.1:0".to_owned())].into();
    properties.extend(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    RestConfig::from_properties(&properties).expect("a configuration").0
}

async fn start(pairs: &[(&str, &str)]) -> (RestServer, String) {
    let server = RestServer::bind(config(pairs)).await.expect("free ports");
    let address = server.addresses()[0].to_string();
    (server, address)
}

/// Sends one request away from the runtime's threads.
async fn send(
    address: &str,
    method: &'static str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Vec<u8>>,
) -> Response {
    let (address, path) = (address.to_owned(), path.to_owned());
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let sent = tokio::task::spawn_blocking(move || http::send(&address, method, &path, &headers, body.as_deref()));
    sent.await.expect("no panic").expect("an answer")
}

async fn get(address: &str, path: &str) -> Response {
    send(address, "GET", path, &[], None).await
}

fn text(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

/// A connector that is good for the memory herder.
fn create(name: &str) -> Option<Vec<u8>> {
    let config =
        r#""config":{"connector.class":"org.apache.kafka.connect.file.FileStreamSourceConnector","topic":"t"}"#;
    Some(format!("{{\"name\":\"{name}\",{config}}}").into_bytes())
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_there_is_a_herder_the_server_says_so() {
    let (server, address) = start(&[]).await;
    assert_eq!(server.advertised_url(), format!("http://{address}/"));
    let health = get(&address, "/health").await;
    assert_eq!((health.code, text(&health).contains("starting")), (503, true));
    assert_eq!(get(&address, "/connectors").await.code, 503);
    assert_eq!(get(&address, "/nope").await.code, 404);
    server.serve(Arc::new(MemoryHerder::new(&address)));
    assert_eq!(get(&address, "/health").await.code, 200);
    server.close(PATIENCE).await;
}

/// Whatever a connector or another worker has worded goes out by the herder's mask; what a person gave comes back as it was given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_traces_and_task_configurations_are_masked() {
    let (leader, leader_address) = start(&[]).await;
    leader.serve(Arc::new(MemoryHerder::new(&leader_address)));
    let (follower, follower_address) = start(&[]).await;
    follower.serve(Arc::new(MemoryHerder::following(&follower_address, leader.advertised_url())));
    let config = r#""connector.class":"org.apache.kafka.connect.file.FileStreamSourceConnector","topic":"t","producer.override.acks":"nonsense""#;
    let body = format!(r#"{{"name":"c","config":{{{config},"file":"{SECRET}"}}}}"#);
    assert_eq!(send(&leader_address, "POST", "/connectors", &[JSON], Some(body.into())).await.code, 201);
    let by_leader = [
        ("GET", "/connectors/c/status", 200, "it failed with [hidden]"),
        ("GET", "/connectors?expand=status", 200, "it failed with [hidden]"),
        ("GET", "/connectors/c/tasks/0/status", 200, "it failed with [hidden]"),
        ("GET", "/connectors/c/tasks", 200, "\"file\":\"[hidden]\""),
        ("POST", "/connectors/c/restart?onlyFailed=true", 202, "[hidden]"),
        ("GET", "/connectors/hunter2", 404, "Connector [hidden] not found"),
        ("GET", "/connectors/hunter2/status", 404, "[hidden]"),
        ("DELETE", "/connectors/hunter2", 404, "[hidden]"),
    ];
    for (method, path, code, part) in by_leader {
        let answer = send(&leader_address, method, path, &[], None).await;
        let body = text(&answer);
        assert_eq!(answer.code, code, "{method} {path}: {body}");
        assert!(body.contains(part) && !body.contains(SECRET), "{method} {path}: {body}");
    }
    let forwarded = send(&follower_address, "DELETE", "/connectors/hunter2", &[], None).await;
    assert_eq!((forwarded.code, text(&forwarded).contains(SECRET)), (404, false), "{}", text(&forwarded));
    assert!(text(&get(&leader_address, "/connectors/c/config").await).contains(SECRET));
    leader.close(PATIENCE).await;
    follower.close(PATIENCE).await;
}

/// G91 forward-keeps-status-and-authorization
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_forwarded_to_the_leader_and_its_answer_comes_back_unchanged() {
    let (leader, leader_address) = start(&[]).await;
    leader.serve(Arc::new(MemoryHerder::new(&leader_address)));
    let (follower, address) = start(&[]).await;
    follower.serve(Arc::new(MemoryHerder::following(&address, leader.advertised_url())));

    let made = send(&address, "POST", "/connectors", &[JSON], create("a/b %þ")).await;
    assert_eq!(made.code, 201, "{}", text(&made));
    let location = format!("http://{address}/connectors/a%2Fb%20%25%C3%BE");
    assert_eq!(made.header("location"), Some(location.as_str()));
    let again = send(&address, "POST", "/connectors", &[JSON], create("a/b %þ")).await;
    assert_eq!((again.code, text(&again).contains("already exists")), (409, true));
    let restart = send(&address, "POST", "/connectors/a%2Fb%20%25%C3%BE/restart?includeTasks=true", &[], None).await;
    assert_eq!((restart.code, text(&restart).contains("RESTARTING")), (202, true));
    let gone = send(&address, "DELETE", "/connectors/a%2Fb%20%25%C3%BE", &[], None).await;
    assert_eq!((gone.code, gone.body.len()), (204, 0));
    let unknown = send(&address, "DELETE", "/connectors/a%2Fb%20%25%C3%BE", &[], None).await;
    assert_eq!((unknown.code, text(&unknown).contains("not found")), (404, true));
    follower.close(PATIENCE).await;
    leader.close(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_goes_over_two_hops_at_most() {
    let (first, first_address) = start(&[]).await;
    let (second, second_address) = start(&[]).await;
    // Each thinks that the other is the leader.
    first.serve(Arc::new(MemoryHerder::following(&first_address, second.advertised_url())));
    second.serve(Arc::new(MemoryHerder::following(&second_address, first.advertised_url())));
    let lost = send(&first_address, "DELETE", "/connectors/a", &[], None).await;
    assert_eq!((lost.code, text(&lost).contains("conflicting operation")), (409, true), "{}", text(&lost));
    first.close(PATIENCE).await;
    second.close(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_gone_is_named_in_the_error() {
    let (follower, address) = start(&[]).await;
    // Port 1 is nobody's.
    follower.serve(Arc::new(MemoryHerder::following(&address, "http://127.0.0.1:1/")));
    let lost = send(&address, "DELETE", "/connectors/a", &[], None).await;
    assert_eq!(lost.code, 500);
    assert!(
        text(&lost).contains("IO Error trying to forward REST request: http://127.0.0.1:1/connectors/a"),
        "{}",
        text(&lost)
    );
    follower.close(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn internal_requests_are_signed_and_verified() {
    let (leader, address) = start(&[]).await;
    let herder = Arc::new(MemoryHerder::new(&address));
    leader.serve(herder.clone());
    let made = send(&address, "POST", "/connectors", &[JSON], create("a/b")).await;
    // Java's server would refuse this path; here even internal requests reach such a connector.
    assert_eq!(made.code, 201);
    let client = leader.client();
    let key = |key| Some(SigningKey { algorithm: "HmacSHA256", key });
    let code = |result: Result<(), HerderError>| match result {
        Ok(()) => 204,
        Err(HerderError::Status { code, .. }) => code,
        Err(other) => panic!("{other:?}"),
    };
    let configs = [herder.connector_config("a/b").await.expect("it is there")];
    let url = leader.advertised_url();
    assert_eq!(code(client.put_task_configs(url, "a/b", &configs, key(KEY)).await), 204);
    assert_eq!(code(client.put_task_configs(url, "a/b", &configs, key(b"an old key")).await), 403);
    assert_eq!(code(client.put_task_configs(url, "a/b", &configs, None).await), 400);
    assert_eq!(code(client.fence(url, "a/b", key(KEY)).await), 204);
    assert_eq!(code(client.fence(url, "other", key(KEY)).await), 404);
    leader.close(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_listeners_serve_loggers_and_nothing_else() {
    let (server, main) = start(&[("admin.listeners", "http://127.0.0.1:0")]).await;
    let admin = server.addresses()[1].to_string();
    server.serve(Arc::new(MemoryHerder::new(&main)));
    assert_eq!(get(&main, "/admin/loggers").await.code, 404);
    assert_eq!(get(&main, "/connectors").await.code, 200);
    assert_eq!(get(&admin, "/admin/loggers").await.code, 200);
    assert_eq!(get(&admin, "/connectors").await.code, 404);
    server.close(PATIENCE).await;

    let (server, main) = start(&[("admin.listeners", "")]).await;
    server.serve(Arc::new(MemoryHerder::new(&main)));
    assert_eq!(get(&main, "/admin/loggers").await.code, 404);
    server.close(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_headers_and_origins_are_looked_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let users = folder.path().join("users.properties");
    std::fs::write(&users, "ann=secret\n").expect("a file");
    let module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule";
    let jaas = folder.path().join("jaas.conf");
    std::fs::write(&jaas, format!("KafkaConnect {{\n  {module} required\n  file=\"{}\";\n}};\n", users.display()))
        .expect("a file");
    let (server, address) = start(&[
        ("rest.extension.classes", "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"),
        ("rest.basic.auth.jaas.config", jaas.to_str().expect("text")),
        ("access.control.allow.origin", "http://page"),
        ("response.http.headers.config", "set X-Frame-Options: DENY"),
    ])
    .await;
    server.serve(Arc::new(MemoryHerder::new(&address)));
    let stranger = get(&address, "/connectors").await;
    assert_eq!((stranger.code, stranger.header("www-authenticate").is_some()), (401, true));
    assert_eq!(stranger.header("x-frame-options"), Some("DENY"));
    // ann:secret
    let known = send(
        &address,
        "GET",
        "/connectors",
        &[("Authorization", "Basic YW5uOnNlY3JldA=="), ("Origin", "http://page")],
        None,
    )
    .await;
    assert_eq!(known.code, 200);
    assert_eq!(known.header("access-control-allow-origin"), Some("http://page"));
    // Workers have no passwords; they are told apart by their signatures.
    assert_eq!(send(&address, "PUT", "/connectors/a/fence", &[], None).await.code, 400);
    server.close(PATIENCE).await;
}

/// `listeners` over TLS with a store of the tests, asking for certificates.
fn over_tls(kind: &str, identity: &str, trust_kind: &str, trust: &str) -> Vec<(&'static str, String)> {
    let file = |name: &str| format!("{}/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut keys = vec![
        ("listeners", "https://127.0.0.1:0".to_owned()),
        ("ssl.keystore.type", kind.to_owned()),
        ("ssl.keystore.location", file(identity)),
        ("ssl.truststore.type", trust_kind.to_owned()),
        ("ssl.truststore.location", file(trust)),
        ("ssl.client.auth", "required".to_owned()),
    ];
    for (password, kind) in [("ssl.keystore.password", kind), ("ssl.truststore.password", trust_kind)] {
        if kind != "PEM" {
            keys.push((password, "changeit".to_owned()));
        }
    }
    keys
}

fn borrowed<'a>(keys: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    keys.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_reach_each_other_over_tls_with_every_kind_of_store_and_strangers_do_not() {
    let key = Some(SigningKey { algorithm: "HmacSHA256", key: KEY });
    let servers =
        [over_tls("PEM", "server.pem", "PEM", "ca.pem"), over_tls("PKCS12", "server.p12", "JKS", "trust.jks")];
    for keys in servers {
        let server = RestServer::bind(config(&borrowed(&keys))).await.expect("a free port");
        server.serve(Arc::new(MemoryHerder::new("w:1")));
        assert!(server.advertised_url().starts_with("https://127.0.0.1:"));
        for keys in [over_tls("PEM", "client.pem", "PEM", "ca.pem"), over_tls("JKS", "client.jks", "JKS", "trust.jks")]
        {
            let friend = RestClient::new(&config(&borrowed(&keys))).expect("a client");
            let answer = friend.fence(server.advertised_url(), "a", key).await;
            assert!(matches!(answer, Err(HerderError::Status { code: 404, .. })), "{answer:?}");
        }
        // One that shows no certificate, and one that trusts the system's authorities only.
        let mut silent = borrowed(&keys);
        silent.retain(|(name, _)| name.starts_with("ssl.truststore"));
        for keys in [silent, vec![("listeners", "https://127.0.0.1:0")]] {
            let stranger = RestClient::new(&config(&keys)).expect("a client");
            let answer = stranger.fence(server.advertised_url(), "a", key).await;
            assert!(matches!(answer, Err(HerderError::Status { code: 500, .. })), "{answer:?}");
        }
        server.close(PATIENCE).await;
    }
}

#[tokio::test]
async fn a_wrong_store_password_stops_the_start_and_names_its_key() {
    let mut keys = over_tls("PKCS12", "server.p12", "JKS", "trust.jks");
    keys.retain(|(name, _)| *name != "ssl.keystore.password");
    let mut wrong = borrowed(&keys);
    wrong.push(("ssl.keystore.password", "guess"));
    let error = RestServer::bind(config(&wrong)).await.expect_err("refused");
    assert!(error.contains("server.p12") && error.contains("ssl.keystore.password"), "{error}");
    assert!(!error.contains("guess"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_refused() {
    let (server, address) = start(&[]).await;
    server.serve(Arc::new(MemoryHerder::new(&address)));
    let long = send(&address, "PUT", "/connectors/a/config", &[JSON], Some(vec![b' '; (10 << 20) + 1])).await;
    assert_eq!(long.code, 413);
    let name = "x".repeat(200_000);
    let head = send(&address, "GET", "/connectors", &[("X-Long", &name)], None).await;
    assert_eq!(head.code, 431);
    let address = address.clone();
    let garbage = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(b"\x16\x03\x01\x00\xff\x00\r\n\r\n").expect("written");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("read to the end");
        String::from_utf8_lossy(&answer).into_owned()
    });
    assert!(garbage.await.expect("no panic").starts_with("HTTP/1.1 400"));
    server.close(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_cuts_a_client_that_says_nothing() {
    let (server, address) = start(&[]).await;
    let silent = TcpStream::connect(&address).expect("a connection");
    server.close(Duration::from_millis(200)).await;
    assert!(TcpStream::connect(&address).is_err());
    drop(silent);
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_with_its_key() {
    let (_server, address) = start(&[]).await;
    let error = RestServer::bind(config(&[("listeners", &format!("http://{address}"))])).await.expect_err("taken");
    assert!(error.starts_with("listeners: cannot listen on 127.0.0.1:"), "{error}");
}

/// A worker that only remembers the one request that it gets; the answer is 204.
fn listening_leader() -> (String, std::thread::JoinHandle<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let (mut request, mut part) = (Vec::new(), [0; 4096]);
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = stream.read(&mut part).expect("a request");
            assert_ne!(count, 0, "the request is whole");
            request.extend_from_slice(&part[..count]);
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").expect("an answer");
        String::from_utf8_lossy(&request).into_owned()
    });
    (url, heard)
}

/// G91: of the user's headers only `Authorization` reaches the leader, unchanged; the rest are the worker's own, as Java's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_users_headers_the_leader_gets_authorization_alone() {
    let (leader_url, heard) = listening_leader();
    let (follower, address) = start(&[("access.control.allow.origin", "http://page")]).await;
    follower.serve(Arc::new(MemoryHerder::following(&address, &leader_url)));
    let headers = [
        ("Authorization", "Basic YW5uOnNlY3JldA=="),
        ("Cookie", "session=1"),
        ("Origin", "http://page"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("Accept", "text/html, application/json"),
        ("Accept-Language", "de"),
        ("User-Agent", "browser"),
        ("X-Own", "own"),
    ];
    let answer = send(&address, "DELETE", "/connectors/a", &headers, None).await;
    assert_eq!(answer.code, 204, "{}", text(&answer));
    let request = heard.join().expect("no panic");
    let mut lines = request.lines();
    assert_eq!(lines.next(), Some("DELETE /connectors/a?forward=true HTTP/1.1"));
    let mut sent: Vec<String> = lines.take_while(|line| !line.is_empty()).map(str::to_ascii_lowercase).collect();
    sent.sort();
    let host = leader_url.trim_start_matches("http://").trim_end_matches('/');
    let wanted = [
        "accept: application/json".to_owned(),
        "authorization: basic yw5uonnly3jlda==".to_owned(),
        "content-type: application/json".to_owned(),
        format!("host: {host}"),
        "user-agent: kafka-connect".to_owned(),
    ];
    assert_eq!(sent, wanted);
    assert!(request.contains("Basic YW5uOnNlY3JldA=="), "letter by letter");
    follower.close(PATIENCE).await;
}
