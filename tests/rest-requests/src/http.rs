//! An HTTP/1.1 client that sends a path as it is, right or wrong, one request per connection.
//!
//! No library does that: they mend or refuse the paths that the list is about. Left out: TLS, redirects, keep-alive.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than a worker's own limit of 90 s, so that its answer is what is seen.
const PATIENCE: Duration = Duration::from_secs(100);
/// Far more than any answer has.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub code: u16,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// Without transfer coding.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// Sends one request to `address` (`host:port`) and reads the answer to its end.
///
/// # Errors
/// The connection fails, or what comes back is no HTTP.
pub fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: Option<&[u8]>,
) -> io::Result<Response> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if body.is_some() || matches!(method, "POST" | "PUT" | "PATCH") {
        request.push_str(&format!("Content-Length: {}\r\n", body.map_or(0, <[u8]>::len)));
    }
    request.push_str("\r\n");
    let mut bytes = request.into_bytes();
    bytes.extend_from_slice(body.unwrap_or_default());
    stream.write_all(&bytes)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| {
        io::Error::other(format!("no HTTP answer: {:?}", String::from_utf8_lossy(&answer[..answer.len().min(200)])))
    })
}

/// Takes an answer apart; `None` when it is none.
fn parse(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let code = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let rest = &answer[end + 4..];
    let body = if chunked { unchunk(rest)? } else { rest.to_vec() };
    Some(Response { code, headers, body })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn chunks_are_put_together() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n";
        assert_eq!(parse(answer).expect("HTTP").body, b"abcd");
    }

    #[test]
    fn what_is_cut_short_is_no_answer() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
