//! A client of the REST interface: a request, a connection, a time limit.

use super::{PATIENCE, eventually};
use serde_json::{Value, json};
use std::fmt;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a worker answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// Null if there is none, a string if it is no JSON.
    pub body: Value,
}

impl Answer {
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// Whether the worker asks for the same request later.
    fn is_transient(&self) -> bool {
        let passing = ["Cannot complete request", "can be safely retried"];
        matches!(self.status, 409 | 500) && passing.iter().any(|words| self.message().contains(words))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.body)
    }
}

/// The interface of one worker.
#[derive(Debug, Clone)]
pub struct Rest {
    authority: String,
}

impl Rest {
    pub fn new(url: &str) -> Self {
        let authority = url.split_once("://").map_or(url, |(_, authority)| authority).trim_end_matches('/');
        Self { authority: authority.to_owned() }
    }

    /// `host:port`, which is also the worker's id.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.send_with(method, path, body.map(Value::to_string), &[]).await
    }

    /// One request; `body` is sent as it is.
    pub async fn send_with(&self, method: &str, path: &str, body: Option<String>, headers: &[(&str, &str)]) -> Answer {
        let sent = tokio::time::timeout(PATIENCE, self.exchange(method, path, body, headers)).await;
        let sent = sent.unwrap_or_else(|_| panic!("{} does not answer {method} {path}", self.authority));
        sent.unwrap_or_else(|error| panic!("{} answers {method} {path}: {error}", self.authority))
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(&self.authority).await?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.authority);
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
        parse(&String::from_utf8_lossy(&answer)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// A request that succeeds; as any client has to, it waits while a rebalance goes on.
    pub async fn must(&self, expected: u16, method: &str, path: &str, body: Option<&Value>) -> Value {
        let mut got = Value::Null;
        eventually(&format!("{method} {path}"), async || {
            let answer = self.send(method, path, body).await;
            if answer.is_transient() {
                return Err(answer.to_string());
            }
            assert_eq!(answer.status, expected, "{} to {method} {path}: {answer}", self.authority);
            got = answer.body;
            Ok(())
        })
        .await;
        got
    }

    /// The answer once no rebalance stands in its way.
    pub async fn settled(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let mut got = Answer { status: 0, body: Value::Null };
        eventually(&format!("{method} {path}"), async || {
            got = self.send(method, path, body).await;
            if got.is_transient() { Err(got.to_string()) } else { Ok(()) }
        })
        .await;
        got
    }

    pub async fn create(&self, name: &str, config: &Value) {
        self.must(201, "POST", "/connectors", Some(&json!({"name": name, "config": config}))).await;
    }

    /// Replaces a connector's configuration.
    pub async fn put(&self, name: &str, config: &Value) {
        self.must(200, "PUT", &format!("/connectors/{name}/config"), Some(config)).await;
    }

    pub async fn status(&self, name: &str) -> Value {
        self.get(&format!("/connectors/{name}/status")).await.body
    }

    /// Waits until the connector instance is `connector`, and its tasks are as listed.
    pub async fn until_states(&self, name: &str, connector: &str, tasks: &[&str]) -> Value {
        self.until_status(name, &format!("{connector} {tasks:?}"), |status| {
            let states: Vec<&str> = tasks_of(status).iter().filter_map(|task| task["state"].as_str()).collect();
            status["connector"]["state"] == connector && states == tasks
        })
        .await
    }

    /// Waits until the status satisfies `done`.
    pub async fn until_status(&self, name: &str, what: &str, done: impl Fn(&Value) -> bool) -> Value {
        let mut status = Value::Null;
        eventually(&format!("{name} {what}"), async || {
            status = self.status(name).await;
            if done(&status) { Ok(()) } else { Err(status.to_string()) }
        })
        .await;
        status
    }
}

/// The tasks of a status.
pub fn tasks_of(status: &Value) -> &[Value] {
    status["tasks"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap_or_else(|_| json!(body)) };
    Some(Answer { status, body })
}
