//! Two whole workers whose REST interface is https with passwords: what strangers get, what a browser's page gets, and what the
//! workers say to each other.

use crate::support::{Group, Node, PATIENCE, eventually, tasks_of};
use oncewire_rest::RestConfig;
use serde_json::{Value, json};
use std::io;
use std::net::TcpListener;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// ann:secret, and with another password.
const ANN: (&str, &str) = ("Authorization", "Basic YW5uOnNlY3JldA==");
const WRONG: (&str, &str) = ("Authorization", "Basic YW5uOndyb25n");

const PAGE: &str = "http://page";

fn store(name: &str) -> String {
    format!("{}/../rest/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What came back, its head in lower case.
struct Heard {
    code: u16,
    head: String,
    body: Value,
}

struct Client(TlsConnector);

impl Client {
    /// One that trusts the workers' authority.
    fn new() -> Self {
        let properties =
            [("ssl.truststore.type", "PEM".to_owned()), ("ssl.truststore.location", store("ca.pem"))].into_iter();
        let properties = properties.map(|(key, value)| (key.to_owned(), value)).collect();
        let (config, _) = RestConfig::from_properties(&properties).unwrap();
        Self(TlsConnector::from(config.tls.client_config().unwrap()))
    }

    async fn send(
        &self,
        authority: &str,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Heard {
        let exchange = self.exchange(authority, (method, path), headers, body.map(Value::to_string));
        let answer = tokio::time::timeout(PATIENCE, exchange).await.expect("it answers in time").expect("over TLS");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        Heard { code, head: head.to_ascii_lowercase(), body }
    }

    async fn exchange(
        &self,
        authority: &str,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> io::Result<String> {
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let mut stream = self.0.connect(name, TcpStream::connect(authority).await?).await?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
        if body.is_some() {
            head.push_str("Content-Type: application/json\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = body.unwrap_or_default();
        head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    async fn get(&self, authority: &str, path: &str, headers: &[(&str, &str)]) -> Heard {
        self.send(authority, ("GET", path), headers, None).await
    }
}

/// A port that was free a moment ago: an admin listener's own is told to nobody.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

async fn secured(group: &Group, client: &Client, jaas: &str) -> (Node, String) {
    let admin = format!("127.0.0.1:{}", free_port());
    let (server, ca, own) = (store("server.pem"), store("ca.pem"), format!("https://{admin}"));
    let keys = ["keystore.type", "keystore.location", "truststore.type", "truststore.location"];
    let values = ["PEM", server.as_str(), "PEM", ca.as_str()];
    let mut names = Vec::new();
    for prefix in ["listeners.https.ssl.", "admin.listeners.https.ssl."] {
        names.extend(keys.iter().zip(values).map(|(key, value)| (format!("{prefix}{key}"), value)));
    }
    let mut properties = vec![
        ("listeners", "https://127.0.0.1:0"),
        ("admin.listeners", own.as_str()),
        ("access.control.allow.origin", PAGE),
        ("access.control.allow.methods", "GET,PUT"),
        ("rest.extension.classes", "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"),
        ("rest.basic.auth.jaas.config", jaas),
    ];
    properties.extend(names.iter().map(|(key, value)| (key.as_str(), *value)));
    let node = group.start(&properties).await.expect("the worker starts");
    eventually("the worker joins", async || {
        let health = client.get(node.id(), "/health", &[ANN]).await;
        if health.code == 200 { Ok(()) } else { Err(format!("{} {}", health.code, health.body)) }
    })
    .await;
    (node, admin)
}

/// G91, on whole workers: what the follower sends on would be refused without the password.
#[tokio::test]
async fn https_with_passwords_pages_and_admin_listeners_on_whole_workers() {
    let folder = tempfile::tempdir().unwrap();
    let (users, jaas) = (folder.path().join("users.properties"), folder.path().join("jaas.conf"));
    std::fs::write(&users, "ann=secret\n").unwrap();
    let module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule";
    let login = format!("KafkaConnect {{\n  {module} required\n  file=\"{}\";\n}};\n", users.display());
    std::fs::write(&jaas, login).unwrap();
    let (group, client) = (Group::new().await, Client::new());
    let (leader, admin) = secured(&group, &client, jaas.to_str().unwrap()).await;
    let (follower, _) = secured(&group, &client, jaas.to_str().unwrap()).await;

    for strangers in [&[][..], &[WRONG]] {
        for (authority, path) in [(leader.id(), "/connectors"), (&admin, "/admin/loggers"), (leader.id(), "/health")] {
            let heard = client.get(authority, path, strangers).await;
            assert!(heard.code == 401 && heard.head.contains("www-authenticate: basic"), "{path}: {}", heard.head);
        }
    }
    assert_eq!(client.get(&admin, "/admin/loggers", &[ANN]).await.code, 200);
    assert_eq!(client.get(&admin, "/connectors", &[ANN]).await.code, 404);
    assert_eq!(client.get(leader.id(), "/admin/loggers", &[ANN]).await.code, 404);

    let heard = client.get(follower.id(), "/connectors", &[ANN, ("Origin", PAGE)]).await;
    assert!(heard.head.contains("access-control-allow-origin: http://page"), "{}", heard.head);
    let heard = client.get(follower.id(), "/connectors", &[ANN, ("Origin", "http://other")]).await;
    assert!(!heard.head.contains("access-control-allow-origin"), "{}", heard.head);

    // The follower sends it on, over https, with the password; what the leader answers comes back as the follower's.
    let create = json!({"name": "c", "config": group.scripted(&[("tasks", "4")])});
    let heard = client.send(follower.id(), ("POST", "/connectors"), &[], Some(&create)).await;
    assert_eq!(heard.code, 401);
    let heard = client.send(follower.id(), ("POST", "/connectors"), &[ANN], Some(&create)).await;
    assert_eq!(heard.code, 201, "{}", heard.body);
    let location = format!("location: https://{}/connectors/c", follower.id());
    assert!(heard.head.contains(&location), "{}", heard.head);
    // Tasks of both run: the follower's asked the leader, over https, to fence their predecessors; workers have no passwords.
    eventually("tasks on both workers", async || {
        let status = client.get(leader.id(), "/connectors/c/status", &[ANN]).await.body;
        let on = |node: &Node| {
            tasks_of(&status).iter().filter(|task| task["state"] == "RUNNING" && task["worker_id"] == node.id()).count()
        };
        if on(&leader) == 2 && on(&follower) == 2 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    group.until_delivered(4, 2).await;
    let heard = client.send(follower.id(), ("DELETE", "/connectors/none"), &[ANN], None).await;
    assert_eq!((heard.code, &heard.body["message"]), (404, &json!("Connector none not found")), "the leader's words");
    let heard = client.send(follower.id(), ("DELETE", "/connectors/c"), &[ANN], None).await;
    assert_eq!(heard.code, 204, "{}", heard.body);
    group.close([follower, leader]).await;
}
