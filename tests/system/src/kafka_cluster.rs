//! One Kafka cluster of several nodes, each of them broker and controller; it ends with the handle, and with this process however that ends.
//!
//! Each node has its listener in plain text for the test's own eyes, and further ones that are advertised under the ports of proxies.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::services::run;
use crate::target::free_low_port;

/// What to start.
#[derive(Clone, Copy, Debug)]
pub struct KafkaClusterOptions<'a> {
    /// The release, such as `4.3.1`.
    pub version: &'a str,
    /// Of each node's Java heap, such as `512m`.
    pub heap: &'a str,
    /// Lines for server.properties, `name=value`.
    pub properties: &'a [&'a str],
    /// Of each node, the listeners that are advertised under another port: name and port.
    pub advertised: &'a [Vec<(String, u16)>],
}

/// A running cluster.
#[derive(Debug)]
pub struct KafkaCluster {
    /// Holds everything of the nodes; removed after they were stopped.
    folder: Option<TempDir>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    folder: PathBuf,
    address: String,
    listeners: BTreeMap<String, String>,
}

impl KafkaCluster {
    /// Starts as many nodes as `advertised` has entries, and waits until all are ready.
    ///
    /// # Panics
    /// One does not start; the script's own message is on standard error.
    pub fn start(options: KafkaClusterOptions<'_>) -> Self {
        let folder =
            tempfile::Builder::new().prefix("oncewire-kafka-").tempdir().expect("a temporary folder can be made");
        let controllers: Vec<String> = options.advertised.iter().map(|_| free_low_port().to_string()).collect();
        let controllers = controllers.join(",");
        let start = |number: usize| {
            let node = folder.path().join(format!("node-{}", number + 1));
            let output = run("kafka", &text(&arguments(&options, number, &controllers, &node)), "");
            let mut lines = output.lines();
            let address = lines.next().unwrap_or_default().to_owned();
            let listeners = lines.filter_map(|line| line.split_once(' '));
            let listeners = listeners.map(|(name, address)| (name.to_owned(), address.to_owned())).collect();
            Node { folder: node, address, listeners }
        };
        // None is ready before most run.
        let nodes = std::thread::scope(|scope| {
            let starting: Vec<_> =
                (0..options.advertised.len()).map(|number| scope.spawn(move || start(number))).collect();
            starting.into_iter().map(|node| node.join().expect("the node starts")).collect()
        });
        KafkaCluster { folder: Some(folder), nodes }
    }

    /// The addresses of all nodes, past all proxies.
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<&str> = self.nodes.iter().map(|node| node.address.as_str()).collect();
        addresses.join(",")
    }

    /// `host:port` on which a node really listens for a listener that is advertised under another port.
    ///
    /// # Panics
    /// There is no such listener.
    pub fn listener(&self, node: usize, name: &str) -> &str {
        self.nodes[node].listeners.get(name).unwrap_or_else(|| panic!("a listener {name} was asked for"))
    }

    /// SIGKILL for one node; returns when the process is gone.
    ///
    /// # Panics
    /// The script fails.
    pub fn kill9(&self, node: usize) {
        self.act("kill9", node);
    }

    /// Starts a node again with its data, on its ports, and waits until it is ready.
    ///
    /// # Panics
    /// The script fails.
    pub fn restart(&self, node: usize) {
        self.act("restart", node);
    }

    /// Where each node logs.
    pub fn logs(&self) -> Vec<PathBuf> {
        self.nodes.iter().map(|node| node.folder.join("broker.log")).collect()
    }

    fn act(&self, action: &str, node: usize) {
        run("kafka", &[action, self.nodes[node].folder.to_str().expect("temporary folders have text names")], "");
    }
}

impl Drop for KafkaCluster {
    fn drop(&mut self) {
        for node in 0..self.nodes.len() {
            // No time for an orderly end: nobody writes these data again. `stop` clears what the script keeps.
            self.act("kill9", node);
            self.act("stop", node);
        }
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            println!("the brokers' files are kept in {}", folder.keep().display());
        }
    }
}

fn arguments(
    options: &KafkaClusterOptions<'_>,
    number: usize,
    controllers: &str,
    folder: &std::path::Path,
) -> Vec<String> {
    let named = [
        ("--version", options.version.to_owned()),
        ("--owner", std::process::id().to_string()),
        ("--dir", folder.display().to_string()),
        ("--heap", options.heap.to_owned()),
        ("--node", (number + 1).to_string()),
        ("--controllers", controllers.to_owned()),
    ];
    let advertised = options.advertised[number].iter().map(|(name, port)| ("--advertise", format!("{name}={port}")));
    let properties = options.properties.iter().map(|property| ("--property", (*property).to_owned()));
    let all = named.into_iter().chain(advertised).chain(properties);
    std::iter::once("start".to_owned()).chain(all.flat_map(|(name, value)| [name.to_owned(), value])).collect()
}

fn text(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
