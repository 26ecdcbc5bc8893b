//! A blocking HTTP client for a worker's REST interface: one request, one connection, a time limit. No TLS, no redirects.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::LOOK_EVERY;

/// A worker answers late when it waits for its herder: Java gives up on that after 90 s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(100);
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// No answer of a test is longer.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// How long a worker may answer 409 because of a rebalance.
const REBALANCE_PATIENCE: Duration = Duration::from_secs(60);

/// What a worker answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body; null if there is none, a string if it is no JSON.
    pub body: Value,
}

impl Answer {
    /// Whether the worker asks for the same request later.
    fn is_transient(&self) -> bool {
        let message = self.body["message"].as_str().unwrap_or_default();
        self.status == 409 || (self.status == 500 && message.contains("can be safely retried"))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.body)
    }
}

/// The REST interface of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// `host:port`, which is also the worker's id.
    authority: String,
}

impl Rest {
    /// The interface at `host:port`.
    pub fn new(authority: &str) -> Self {
        Rest { authority: authority.to_owned() }
    }

    /// `host:port`: the id under which the worker writes states.
    pub fn worker_id(&self) -> &str {
        &self.authority
    }

    /// One request with a JSON body.
    ///
    /// # Errors
    /// There is no connection, or it ends or rests before the answer is complete.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        let address = self.authority.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let content = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\n{content}Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.authority,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        parse(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is cut short or no HTTP"))
    }

    /// A request that must succeed. As any client has to, it waits while a rebalance goes on, and repeats what a leader that has just been replaced, or
    /// fenced by a worker that woke up, could not write.
    ///
    /// # Panics
    /// Another answer comes than `expected`.
    pub fn must(&self, expected: u16, method: &str, path: &str, body: Option<&Value>) -> Value {
        let deadline = Instant::now() + REBALANCE_PATIENCE;
        loop {
            let answer = self.request(method, path, body);
            let answer = answer.unwrap_or_else(|error| panic!("{} answers {method} {path}: {error}", self.authority));
            if answer.is_transient() && Instant::now() < deadline {
                std::thread::sleep(LOOK_EVERY * 50);
                continue;
            }
            assert_eq!(answer.status, expected, "{} to {method} {path}: {answer}", self.authority);
            return answer.body;
        }
    }

    /// Creates a connector of `config`.
    ///
    /// # Panics
    /// The worker refuses.
    pub fn create(&self, name: &str, config: &Value) {
        self.must(201, "POST", "/connectors", Some(&json!({"name": name, "config": config})));
    }

    /// What runs of a connector; `None` if the worker doesn't answer, or not with 200.
    pub fn status(&self, connector: &str) -> Option<Status> {
        let answer = self.request("GET", &format!("/connectors/{connector}/status"), None).ok()?;
        (answer.status == 200).then(|| Status::of(&answer.body))
    }
}

/// A connector's states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// State and worker of the instance.
    pub connector: (String, String),
    /// State and worker of each task, in their order.
    pub tasks: Vec<(String, String)>,
    /// The traces of what failed.
    pub traces: Vec<String>,
}

impl Status {
    fn of(body: &Value) -> Self {
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let one = |value: &Value| (text(value, "state"), text(value, "worker_id"));
        let tasks: Vec<&Value> = body["tasks"].as_array().into_iter().flatten().collect();
        let all = std::iter::once(&body["connector"]).chain(tasks.iter().copied());
        Status {
            connector: one(&body["connector"]),
            traces: all.map(|value| text(value, "trace")).filter(|trace| !trace.is_empty()).collect(),
            tasks: tasks.into_iter().map(one).collect(),
        }
    }

    /// Whether the instance and exactly so many tasks are in `state`.
    pub fn all_are(&self, state: &str, tasks: usize) -> bool {
        self.connector.0 == state && self.tasks.len() == tasks && self.tasks.iter().all(|task| task.0 == state)
    }

    /// How many tasks that worker has.
    pub fn tasks_on(&self, worker_id: &str) -> usize {
        self.tasks.iter().filter(|task| task.1 == worker_id).count()
    }
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |wanted: &str| {
        lines.clone().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let body = &answer[end + 4..];
    let body = match (header("transfer-encoding"), header("content-length")) {
        (Some((_, coding)), _) if coding.trim().eq_ignore_ascii_case("chunked") => unchunk(body)?,
        (_, Some((_, length))) => body.get(..length.trim().parse().ok()?)?.to_vec(),
        _ => body.to_vec(),
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    let body = match text.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    Some(Answer { status, body })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[line + 2..];
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_both_framings() {
        let plain = parse(b"HTTP/1.1 404 Not Found\r\nContent-Length: 16\r\n\r\n{\"error_code\":4}").unwrap();
        assert_eq!(plain, Answer { status: 404, body: json!({"error_code": 4}) });
        let chunked =
            parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[\"a\r\n2\r\n\"]\r\n0\r\n\r\n").unwrap();
        assert_eq!(chunked.body, json!(["a"]));
        assert_eq!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().body, Value::Null);
    }

    #[test]
    fn a_cut_answer_is_none() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1"), None);
    }
}
