//! The brokers that every story is told on.
//!
//! A test that holds a broker is alone: `cargo test` runs tests in parallel, and two real brokers with their workers on a machine of two cores would
//! measure each other's hunger. The guard is process-wide; cargo runs one test program after the other.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binary::oncewire;
use crate::process::{LOOK_EVERY, Process};
use crate::services::{KafkaOptions, RealKafka};

/// A kind of broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Apache Kafka 4.3.1: transactions V2.
    Kafka431,
    /// Apache Kafka 4.3.1, formatted for the transaction protocol before V2.
    Kafka431Tv1,
    /// Apache Kafka 3.9.2: transactions V1 only.
    Kafka392,
    /// The embedded broker, as a process of its own.
    DevBroker,
    /// The embedded broker with the transaction protocol before V2.
    DevBrokerTv1,
}

impl Target {
    /// Starts a broker of this kind, empty, with no other of this process beside it.
    ///
    /// # Panics
    /// It does not start.
    pub fn start(self) -> Broker {
        self.start_with(&[])
    }

    /// Starts with additional lines of server.properties; the embedded broker has none and starts as it is.
    ///
    /// # Panics
    /// It does not start.
    pub fn start_with(self, properties: &[&str]) -> Broker {
        let alone = alone();
        let kafka = |version, transaction_version| {
            Running::Kafka(RealKafka::start(KafkaOptions { version, transaction_version, properties }))
        };
        let running = match self {
            Target::Kafka431 => kafka("4.3.1", None),
            Target::Kafka431Tv1 => kafka("4.3.1", Some(1)),
            Target::Kafka392 => kafka("3.9.2", None),
            Target::DevBroker => Running::Dev(DevBroker::start("2")),
            Target::DevBrokerTv1 => Running::Dev(DevBroker::start("1")),
        };
        Broker { running, _alone: alone }
    }
}

/// A running broker of any kind.
#[derive(Debug)]
pub struct Broker {
    running: Running,
    _alone: MutexGuard<'static, ()>,
}

#[derive(Debug)]
enum Running {
    Kafka(RealKafka),
    Dev(DevBroker),
}

impl Broker {
    /// `host:port`.
    pub fn bootstrap(&self) -> &str {
        match &self.running {
            Running::Kafka(kafka) => kafka.bootstrap(),
            Running::Dev(dev) => &dev.address,
        }
    }

    /// SIGKILL.
    ///
    /// # Panics
    /// For the embedded broker: it keeps everything in memory.
    pub fn kill9(&self) {
        self.kafka().kill9();
    }

    /// SIGTERM.
    ///
    /// # Panics
    /// For the embedded broker: it keeps everything in memory.
    pub fn stop(&self) {
        self.kafka().stop();
    }

    /// Starts the broker again after [`Broker::stop`] or [`Broker::kill9`], with its data.
    ///
    /// # Panics
    /// For the embedded broker: it keeps everything in memory.
    pub fn restart(&self) {
        self.kafka().restart();
    }

    fn kafka(&self) -> &RealKafka {
        match &self.running {
            Running::Kafka(kafka) => kafka,
            Running::Dev(_) => panic!("the embedded broker does not survive a kill"),
        }
    }
}

/// Waits for the tests of this process that hold a broker.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has left nothing behind that would hurt the next one.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A port of 127.0.0.1 on which nothing listens at this moment.
///
/// # Panics
/// There is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// The ports of [`free_low_port`]: below the range from which Linux takes outgoing ports.
const LOW_PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port of 127.0.0.1 on which nothing listens, and that no outgoing connection takes while its listener is restarted.
///
/// # Panics
/// There is none.
pub fn free_low_port() -> u16 {
    // The process id sets runs apart that begin together; a port is only a hint, so that two threads may try the same.
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let span = u32::from(LOW_PORTS.end - LOW_PORTS.start);
    let first = std::process::id().wrapping_mul(97);
    (0..span)
        .map(|_| {
            let step = first.wrapping_add(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
            LOW_PORTS.start + u16::try_from(step % span).expect("the span fits a port")
        })
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a port is free")
}

#[derive(Debug)]
struct DevBroker {
    address: String,
    _process: Process,
    _folder: TempDir,
}

impl DevBroker {
    fn start(transaction_version: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new(oncewire());
        command.args(["dev-broker", "--auto-create-topics", "--listen", &address]);
        command.args(["--transaction-version", transaction_version]);
        let mut process = Process::start(&mut command, &folder.path().join("broker.log")).expect("oncewire starts");
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(&address).is_err() {
            assert!(
                process.ended().is_none() && Instant::now() < deadline,
                "the embedded broker listens: {}",
                process.log()
            );
            std::thread::sleep(LOOK_EVERY);
        }
        DevBroker { address, _process: process, _folder: folder }
    }
}
