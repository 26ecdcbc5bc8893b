//! A TCP proxy between any two parties of a test: connections through it can be cut in the middle of what they carry, held still in one direction or
//! both, and slowed.
//!
//! ```text
//! client ──► link's port ── pump to the server ──► target
//!        ◄──────────────── pump to the client ◄──
//! ```
//!
//! A link is one port and one target. Its fault is in force for the connections that are there and for those that come. Requests that arrive while
//! the answer is lost (`Hold` towards the client, then `Cut`) are what exactly-once has to survive.
//!
//! Left out: half-closed connections. When either side ends, both are ended, after what was under way has been passed on.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::target::free_low_port;

/// What a pump reads at once.
const PIECE_BYTES: usize = 16 << 10;
/// The most connections through one link; a further one is closed at once.
const CONNECTIONS_MAX: usize = 1_000;
/// How many ports are tried for a link.
const PORT_TRIES_MAX: usize = 50;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Answers.
    ToClient,
    /// All.
    Both,
}

/// What a link does to its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Open,
    /// Those that are there end, each direction after so many more bytes of what it has at that moment; new ones are closed at once.
    Cut {
        /// Bytes of the last piece that still arrive, so that messages are torn.
        last_bytes: usize,
    },
    /// Connections stay and come about, but nothing arrives in that direction.
    Hold(Direction),
    /// Each piece arrives late, in both directions.
    Slow {
        /// How late.
        wait: Duration,
        /// How many bytes a piece has at most.
        piece_bytes: usize,
    },
}

/// The fault in force, and how often connections were cut: a cut that is over by the time a pump looks has still been one.
#[derive(Clone, Copy, Debug)]
struct State {
    fault: Fault,
    cuts: u64,
    last_bytes: usize,
}

/// One port that leads to one target.
#[derive(Debug)]
pub struct Link {
    name: String,
    port: u16,
    target: Arc<OnceLock<SocketAddr>>,
    state: watch::Sender<State>,
}

impl Link {
    /// What it is called in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port of 127.0.0.1 that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Names the target; before that, connections are closed at once.
    ///
    /// # Panics
    /// It is no address of a socket, or was named before.
    pub fn lead_to(&self, target: &str) {
        let target = target.parse().unwrap_or_else(|error| panic!("{target} is the address of a socket: {error}"));
        self.target.set(target).unwrap_or_else(|_| panic!("the target of {} is named once", self.name));
    }

    /// Sets the fault in force.
    pub fn set(&self, fault: Fault) {
        self.state.send_modify(|state| {
            state.fault = fault;
            if let Fault::Cut { last_bytes } = fault {
                state.cuts += 1;
                state.last_bytes = last_bytes;
            }
        });
    }
}

/// Carries the links of a test; all end with it.
#[derive(Debug)]
pub struct Proxy {
    runtime: Option<Runtime>,
}

impl Proxy {
    /// Without links.
    ///
    /// # Panics
    /// No thread can be made.
    #[expect(clippy::new_without_default, reason = "it starts threads")]
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Proxy { runtime: Some(runtime.expect("threads can be made")) }
    }

    /// A new link on a port of its own, open, without a target.
    ///
    /// # Panics
    /// No port is free.
    pub fn link(&self, name: &str) -> Link {
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        let bind = || {
            let port = free_low_port();
            runtime.block_on(TcpListener::bind(("127.0.0.1", port))).ok().map(|listener| (port, listener))
        };
        let (port, listener) = (0..PORT_TRIES_MAX).find_map(|_| bind()).expect("a port is free");
        let (state, states) = watch::channel(State { fault: Fault::Open, cuts: 0, last_bytes: 0 });
        let target = Arc::new(OnceLock::new());
        // It ends with the runtime, which is dropped with the proxy.
        runtime.spawn(accept(listener, target.clone(), states));
        Link { name: name.to_owned(), port, target, state }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, target: Arc<OnceLock<SocketAddr>>, states: watch::Receiver<State>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let state = *states.borrow();
        let refused = matches!(state.fault, Fault::Cut { .. }) || connections.len() >= CONNECTIONS_MAX;
        if let (Ok((client, _)), Some(target), false) = (accepted, target.get(), refused) {
            connections.spawn(carry(client, *target, states.clone(), state.cuts));
        }
    }
}

/// One connection, until either side or a cut ends it.
async fn carry(client: TcpStream, target: SocketAddr, states: watch::Receiver<State>, born_at: u64) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    for stream in [&client, &server] {
        // A connection that is just being closed has no options any more; its pumps will see that.
        let _ = stream.set_nodelay(true);
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let pump = |direction| Pump { direction, states: states.clone(), born_at };
    tokio::select! {
        () = pump(Direction::ToServer).run(from_client, to_server) => {}
        () = pump(Direction::ToClient).run(from_server, to_client) => {}
    }
}

/// Passes on what comes in one direction.
struct Pump {
    direction: Direction,
    states: watch::Receiver<State>,
    born_at: u64,
}

impl Pump {
    async fn run(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = tokio::select! {
                read = from.read(&mut piece) => read,
                () = self.cut() => from.try_read(&mut piece),
            };
            let Ok(count @ 1..) = read else { return };
            if self.deliver(&piece[..count], &mut to).await.is_err() {
                return;
            }
        }
    }

    /// Waits for a cut.
    async fn cut(&mut self) {
        let born_at = self.born_at;
        if self.states.wait_for(|state| state.cuts != born_at).await.is_err() {
            // The link is gone but not the proxy: no cut will come.
            std::future::pending::<()>().await;
        }
    }

    /// Passes bytes on as the fault allows; an error when the connection is to end.
    async fn deliver(&mut self, mut bytes: &[u8], to: &mut OwnedWriteHalf) -> Result<(), ()> {
        while !bytes.is_empty() {
            let state = *self.states.borrow_and_update();
            if state.cuts != self.born_at {
                // Whether the torn piece arrives does not matter: the connection ends in any case.
                let _ = to.write_all(&bytes[..bytes.len().min(state.last_bytes)]).await;
                return Err(());
            }
            let count = match state.fault {
                Fault::Hold(held) if held == self.direction || held == Direction::Both => {
                    self.states.changed().await.map_err(drop)?;
                    continue;
                }
                Fault::Slow { wait, piece_bytes } => {
                    tokio::time::sleep(wait).await;
                    piece_bytes.clamp(1, bytes.len())
                }
                Fault::Open | Fault::Hold(_) | Fault::Cut { .. } => bytes.len(),
            };
            tokio::select! {
                written = to.write_all(&bytes[..count]) => written.map_err(drop)?,
                () = self.cut() => return Err(()),
            }
            bytes = &bytes[count..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    /// Answers each byte with the same byte.
    fn echo() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
                });
            }
        });
        address
    }

    fn linked() -> (Proxy, Link) {
        let proxy = Proxy::new();
        let link = proxy.link("echo");
        link.lead_to(&echo());
        (proxy, link)
    }

    fn connect(link: &Link) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", link.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn ask(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
        stream.write_all(text)?;
        let mut answer = vec![0; text.len()];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn an_open_link_and_a_slow_one_carry_everything() {
        let (_proxy, link) = linked();
        let mut stream = connect(&link);
        assert_eq!(ask(&mut stream, b"hello").unwrap(), b"hello");
        link.set(Fault::Slow { wait: Duration::from_millis(1), piece_bytes: 2 });
        assert_eq!(ask(&mut stream, b"slowly").unwrap(), b"slowly");
    }

    #[test]
    fn a_cut_ends_what_is_there_and_refuses_what_comes_until_it_is_over() {
        let (_proxy, link) = linked();
        let mut stream = connect(&link);
        assert_eq!(ask(&mut stream, b"a").unwrap(), b"a");
        link.set(Fault::Cut { last_bytes: 0 });
        assert!(ask(&mut stream, b"b").is_err());
        assert!(ask(&mut connect(&link), b"c").is_err());
        link.set(Fault::Open);
        assert!(ask(&mut stream, b"d").is_err(), "what was cut stays cut");
        assert_eq!(ask(&mut connect(&link), b"e").unwrap(), b"e");
    }

    #[test]
    fn held_answers_come_when_the_link_opens_and_never_after_a_cut() {
        let (_proxy, link) = linked();
        let mut stream = connect(&link);
        assert_eq!(ask(&mut stream, b"a").unwrap(), b"a");
        link.set(Fault::Hold(Direction::ToClient));
        stream.write_all(b"b").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut byte = [0];
        assert!(stream.read_exact(&mut byte).is_err());
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        link.set(Fault::Open);
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"b");
        link.set(Fault::Hold(Direction::ToClient));
        stream.write_all(b"c").unwrap();
        link.set(Fault::Cut { last_bytes: 0 });
        assert!(stream.read_exact(&mut byte).is_err());
    }
}
