//! A real Apache Kafka broker for one test, run by `tests/services/kafka`. It ends with the handle, and with this process however that ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// What to start.
#[derive(Clone, Copy, Debug)]
pub struct KafkaOptions<'a> {
    /// The release, such as `4.3.1`.
    pub version: &'a str,
    /// The feature level `transaction.version` that the data are formatted with; `None` for the release's own.
    pub transaction_version: Option<u32>,
    /// Lines for server.properties, `name=value`.
    pub properties: &'a [&'a str],
}

/// How a broker is protected, beside its listener in plain text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Protection<'a> {
    /// More listeners: `SSL`, `SASL_PLAINTEXT`, `SASL_SSL`.
    pub listeners: &'a [&'a str],
    /// Who may log in on the SASL listeners, as `name=password`.
    pub users: &'a [&'a str],
    /// Whom ACLs do not bind, such as `alice`; `None` for a broker without authorizer.
    pub super_users: Option<&'a [&'a str]>,
}

/// A running broker.
#[derive(Debug)]
pub struct RealKafka {
    /// Holds everything of the broker; removed after it was stopped.
    folder: TempDir,
    address: String,
    listeners: BTreeMap<String, String>,
}

impl RealKafka {
    /// Installs the release if need be, starts it, and waits until it is ready.
    ///
    /// # Panics
    /// It does not start; the script's own message is on standard error.
    pub fn start(options: KafkaOptions<'_>) -> Self {
        Self::start_protected(options, Protection::default())
    }

    /// The same with more listeners.
    ///
    /// # Panics
    /// It does not start.
    pub fn start_protected(options: KafkaOptions<'_>, protection: Protection<'_>) -> Self {
        let folder =
            tempfile::Builder::new().prefix("oncewire-kafka-").tempdir().expect("a temporary folder can be made");
        let owner = std::process::id().to_string();
        let mut arguments = vec!["start", "--version", options.version, "--owner", &owner];
        let level = options.transaction_version.map(|level| level.to_string());
        if let Some(level) = &level {
            arguments.extend(["--transaction-version", level]);
        }
        for property in options.properties {
            arguments.extend(["--property", property]);
        }
        for listener in protection.listeners {
            arguments.extend(["--listener", listener]);
        }
        for user in protection.users {
            arguments.extend(["--user", user]);
        }
        if let Some(super_users) = protection.super_users {
            arguments.push("--authorizer");
            arguments.extend(super_users.iter().flat_map(|user| ["--super-user", user]));
        }
        let dir = folder.path().join("broker");
        let dir_text = dir.to_str().expect("temporary folders have text names");
        arguments.extend(["--dir", dir_text]);
        let output = run("kafka", &arguments, "");
        let mut lines = output.lines();
        let address = lines.next().unwrap_or_default().to_owned();
        let listeners = lines.filter_map(|line| line.split_once(' '));
        let listeners = listeners.map(|(name, address)| (name.to_owned(), address.to_owned())).collect();
        RealKafka { folder, address, listeners }
    }

    /// `host:port` of one of the listeners that were asked for.
    ///
    /// # Panics
    /// It was not asked for.
    pub fn listener(&self, name: &str) -> &str {
        self.listeners.get(name).unwrap_or_else(|| panic!("a listener {name} was asked for"))
    }

    /// The folder of its log segments.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("broker/data")
    }

    /// `host:port`.
    pub fn bootstrap(&self) -> &str {
        &self.address
    }

    /// SIGKILL; returns when the process is gone.
    ///
    /// # Panics
    /// The script fails.
    pub fn kill9(&self) {
        self.act("kill9");
    }

    /// SIGTERM: it hands its leaderships over, if anybody is there to take them; returns when the process is gone.
    ///
    /// # Panics
    /// The script fails.
    pub fn stop(&self) {
        self.act("stop");
    }

    /// Starts the broker again with its data, on its port, and waits until it is ready.
    ///
    /// # Panics
    /// The script fails.
    pub fn restart(&self) {
        self.act("restart");
    }

    fn act(&self, action: &str) {
        let dir = self.folder.path().join("broker");
        script(&[action, dir.to_str().expect("temporary folders have text names")]);
    }
}

impl Drop for RealKafka {
    fn drop(&mut self) {
        // No time for an orderly end: nobody reads these data again. `stop` clears what the script keeps.
        self.act("kill9");
        self.act("stop");
    }
}

fn script(arguments: &[&str]) {
    run("kafka", arguments, "");
}

/// Where the certificates for TLS are that the brokers have; `tests/services/certificates.sh` describes them.
///
/// # Panics
/// They cannot be made.
pub fn certificates() -> PathBuf {
    PathBuf::from(run("kafka", &["certificates"], "").trim_end())
}

/// Runs one of Java's command-line classes with `input` on its standard input; returns its standard output.
///
/// # Panics
/// It fails.
pub fn java_tool(version: &str, class: &str, arguments: &[&str], input: &str) -> String {
    run("kafka", &[&["tool", version, class], arguments].concat(), input)
}

/// Runs librdkafka's producer or consumer; see `tests/services/librdkafka`.
///
/// # Panics
/// It fails.
pub fn librdkafka(arguments: &[&str], input: &str) -> String {
    run("librdkafka", arguments, input)
}

/// Runs a script of `tests/services` and returns its standard output.
pub(crate) fn run(name: &str, arguments: &[&str], input: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../services").join(name);
    let mut command = Command::new(&script);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{} runs: {error}", script.display()));
    let mut stdin = child.stdin.take().expect("it was asked for");
    let input = input.to_owned();
    // Beside the reading of the output, so that neither waits for the other; a script that does not read its input is no failure.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{} runs: {error}", script.display()));
    writer.join().expect("the writer does not panic");
    assert!(output.status.success(), "{} {} ended with {}", script.display(), arguments.join(" "), output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
