//! What a person can get wrong, and what a file can hold: one clear line that says what to change, a distinct exit code, nothing lost, no panic.

#![allow(clippy::unwrap_used, reason = "a test's own set-up, where a panic names the line")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use oncewire_audit::Report;
use oncewire_client::reader::Isolation;
use oncewire_system_tests::binary::oncewire;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::files::{LINE_BYTES, write_lines};
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::{LOOK_EVERY, Process, Signal};
use oncewire_system_tests::target::{Broker, Target, free_port};

const PATIENCE: Duration = Duration::from_secs(60);

/// Exit codes of the command line.
const TASK_FAILED: i32 = 1;
const USAGE: i32 = 2;
const NOT_STARTED: i32 = 3;

/// Nothing listens there, and what these tests check is checked before anything is connected to.
const NOWHERE: &str = "127.0.0.1:1";

/// The worker ends by itself with `code`, and exactly one of its error lines has all of `words`.
fn assert_ends(process: &mut Process, code: i32, words: &[&str]) {
    let status = process.wait(PATIENCE);
    let log = process.log();
    assert_eq!(status.code(), Some(code), "the exit code where the log should say {words:?}; it says:\n{log}");
    assert_says(&log, words);
}

fn assert_says(log: &str, words: &[&str]) {
    assert!(!log.contains("panicked"), "no panic reaches a person:\n{log}");
    let says = log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    assert!(says >= 1, "one line says all of {words:?}:\n{log}");
    assert!(says <= 2, "nobody reads a line that comes {says} times:\n{log}");
}

fn wait_for_log(process: &Process, word: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !process.log().contains(word) {
        assert!(Instant::now() < deadline, "the worker says {word:?}; it says:\n{}", process.log());
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Ends the worker in order and asks the auditor.
fn end_and_audit(client: &Client, job: &Job, mut worker: Process) -> Report {
    worker.signal(Signal::Terminate);
    assert_eq!(worker.wait(PATIENCE).code(), Some(0), "an orderly end; the worker wrote:\n{}", worker.log());
    let log = worker.log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(log.trim_end().lines().last().is_some_and(|last| last.contains("stopped, after ")), "{log}");
    client.wait_until_nothing_is_open(job, &worker);
    let report = client.audit(job);
    assert!(report.is_content(), "the auditor is not content:\n{report}");
    report
}

#[test]
fn a_bad_property_is_named_with_what_is_allowed() {
    let worker = |key: &str, value: &str| Job::new("bad", NOWHERE).worker(key, value);
    let connector = |key: &str, value: &str| Job::new("bad", NOWHERE).connector(key, value);
    let cases: Vec<(Job, &[&str])> = vec![
        (worker("offset.flush.interval.ms", "soon"), &["offset.flush.interval.ms", "soon"]),
        (
            worker("exactly.once.source.support", "maybe"),
            &["exactly.once.source.support", "maybe", "enabled", "disabled"],
        ),
        (worker("bootstrap.servers", "localhost"), &["bootstrap.servers", "localhost", "host:port"]),
        (worker("value.converter", "com.example.Nothing"), &["value.converter", "com.example.Nothing"]),
        (worker("security.protocol", "SSH"), &["security.protocol", "SSH", "PLAINTEXT", "SASL_SSL"]),
        (worker("config.providers", "file"), &["config.providers.file.class", "class of the provider 'file'"]),
        (worker("rest.extension.classes", "X"), &["rest.extension.classes", "not supported"]),
        (connector("tasks.max", "0"), &["tasks.max", "0"]),
        (connector("batch.size", "many"), &["batch.size", "many"]),
        (
            connector("transaction.boundary", "sometimes"),
            &["transaction.boundary", "sometimes", "POLL", "INTERVAL", "CONNECTOR"],
        ),
        (connector("connector.class", "FileStreamSauce"), &["connector.class", "FileStreamSauce"]),
        (connector("transforms", "a"), &["transforms", "(a)", "not supported", "group of Java workers alone"]),
        (connector("topic", "no/such name"), &["topic", "no/such name", "a-z, A-Z, 0-9, '.', '_' and '-'"]),
        (Job::new("bad", NOWHERE).without_connector("file"), &["file", "standard input", "path of a file"]),
        (worker("offset.storage.topic", "no/such name"), &["offset.storage.topic", "no/such name", "'/'"]),
        (connector("producer.override.acks", "1"), &["acks", "1", "all"]),
        (
            connector("producer.override.max.in.flight.requests.per.connection", "9"),
            &["max.in.flight.requests.per.connection", "9"],
        ),
        (Job::new("bad", NOWHERE).without_connector("topic"), &["topic", "missing"]),
        (Job::new("bad", NOWHERE).without_connector("connector.class"), &["connector.class", "missing"]),
        (Job::new("bad", NOWHERE).without_connector("name"), &["connector.properties", "name"]),
    ];
    for (mut job, words) in cases {
        assert_ends(&mut job.start(), USAGE, words);
    }
}

#[test]
fn every_bad_property_is_told_at_once() {
    let job = Job::new("bad", NOWHERE).connector("tasks.max", "x").connector("transaction.boundary", "y");
    let mut job = job.connector("errors.tolerance", "z");
    let mut worker = job.start();
    assert_ends(&mut worker, USAGE, &["3 problems"]);
    for key in ["'tasks.max'", "'transaction.boundary'", "'errors.tolerance'"] {
        assert_eq!(worker.log().lines().filter(|line| line.contains(key)).count(), 1, "{key}: {}", worker.log());
    }
}

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// A distributed worker with these properties and, unless `bare`, the least that it needs.
fn distributed(folder: &Path, bootstrap: &str, bare: bool, more: Pairs<'_>) -> Process {
    let converter = "org.apache.kafka.connect.storage.StringConverter";
    let least = [
        ("group.id", "bad"),
        ("config.storage.topic", "bad-configs"),
        ("offset.storage.topic", "bad-offsets"),
        ("status.storage.topic", "bad-status"),
        ("key.converter", converter),
        ("value.converter", converter),
        ("listeners", "http://127.0.0.1:0"),
    ];
    let own = if bare { &[][..] } else { &least[..] };
    let line = |(key, value): &(&str, &str)| format!("{key}={value}\n");
    // Of a key that is there twice, the later one counts.
    let text: String = own.iter().chain(more).map(line).collect();
    let file = folder.join("worker.properties");
    fs::write(&file, format!("bootstrap.servers={bootstrap}\n{text}")).unwrap();
    let mut command = Command::new(oncewire());
    command.arg("distributed").arg(file);
    Process::start(&mut command, &folder.join("log")).unwrap()
}

#[test]
fn mistakes_of_a_distributed_worker_are_found_before_anything_is_bound_or_reached() {
    let folder = tempfile::tempdir().unwrap();
    let https = ("listeners", "https://127.0.0.1:0");
    let nowhere = ("listeners.https.ssl.keystore.location", "/nowhere.p12");
    let cases: [(Pairs<'_>, &[&str]); 5] = [
        (&[https], &["listeners.https.ssl.keystore.location", "missing"]),
        (&[https, nowhere], &["listeners.https.ssl.keystore.location", "/nowhere.p12"]),
        (&[("admin.listeners", "https://127.0.0.1:0")], &["admin.listeners.https.ssl.keystore.location", "missing"]),
        (
            &[("security.protocol", "SSL"), ("ssl.truststore.location", "/nowhere.p12")],
            &["ssl.truststore.location", "/nowhere.p12"],
        ),
        (&[("status.storage.topic", "bad topic!")], &["status.storage.topic", "bad topic!", "a-z, A-Z, 0-9"]),
    ];
    for (more, words) in cases {
        assert_ends(&mut distributed(folder.path(), NOWHERE, false, more), USAGE, words);
    }
    let mut worker = distributed(folder.path(), NOWHERE, true, &[]);
    assert_ends(&mut worker, USAGE, &["6 problems"]);
    for key in ["group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic", "key.converter"] {
        let says = worker.log().lines().filter(|line| line.contains(&format!("'{key}'"))).count();
        assert_eq!(says, 1, "{key}: {}", worker.log());
    }
}

#[test]
fn a_file_of_properties_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("worker.properties");
    fs::write(&worker, "bootstrap.servers=127.0.0.1:1\nkey.converter=x\nvalue.converter=x\n").unwrap();
    let broken = folder.path().join("broken.json");
    fs::write(&broken, "{\"name\": ").unwrap();
    let missing = folder.path().join("nowhere.properties");
    let cases: [(&Path, &Path, &[&str]); 3] = [
        (&missing, &broken, &["nowhere.properties"]),
        (&worker, &missing, &["nowhere.properties"]),
        (&worker, &broken, &["broken.json", "JSON"]),
    ];
    for (worker, connector, words) in cases {
        let mut command = Command::new(oncewire());
        command.arg("standalone").arg(worker).arg(connector);
        assert_ends(&mut Process::start(&mut command, &folder.path().join("log")).unwrap(), USAGE, words);
    }
}

#[test]
fn an_address_where_nothing_listens_is_named() {
    let address = format!("127.0.0.1:{}", free_port());
    let mut job = Job::new("nobody", &address).worker("default.api.timeout.ms", "1500");
    assert_ends(&mut job.start(), NOT_STARTED, &[&address, "refused"]);
}

#[test]
fn a_start_that_waits_for_a_broker_says_so_soon() {
    let address = format!("127.0.0.1:{}", free_port());
    let mut job = Job::new("waits", &address).worker("default.api.timeout.ms", "60000");
    let mut process = job.start();
    wait_for_log(&process, "trying for another");
    assert_says(&process.log(), &[&address, "default.api.timeout.ms", "refused"]);
    process.signal(Signal::Terminate);
    assert_eq!(process.wait(PATIENCE / 2).code(), Some(0), "it need not be waited for:\n{}", process.log());
}

#[test]
fn a_host_that_does_not_exist_is_named() {
    let mut job = Job::new("nohost", "no-such-host.invalid:9092").worker("default.api.timeout.ms", "1500");
    assert_ends(&mut job.start(), NOT_STARTED, &["no-such-host.invalid", "resolved"]);
}

/// Answers the first bytes of each connection the way a server does that expects a TLS handshake.
fn tls_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Ends with the test process; nothing else waits for it.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut hello = [0; 64];
            let _ = stream.read(&mut hello);
            // A TLS 1.2 record: alert, fatal, unexpected_message (RFC 5246, section 7.2).
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 10]);
        }
    });
    port
}

#[test]
fn a_tls_port_is_told_as_such_and_at_once() {
    let address = format!("127.0.0.1:{}", tls_port());
    let began = Instant::now();
    assert_ends(&mut Job::new("tls", &address).start(), NOT_STARTED, &[&address, "TLS", "PLAINTEXT"]);
    assert!(began.elapsed() < Duration::from_secs(10), "waiting does not make it a PLAINTEXT port");
}

#[test]
fn a_port_of_something_else_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let mut job = Job::new("http", &address).worker("default.api.timeout.ms", "1500");
    assert_ends(&mut job.start(), NOT_STARTED, &[&address, "Kafka"]);
}

fn cannot_be_made(broker: &Broker) {
    let bootstrap = broker.bootstrap();
    let three = |job: Job| {
        job.connector("topic.creation.default.partitions", "1")
            .connector("topic.creation.default.replication.factor", "3")
    };
    let mut job = three(Job::new("replicas", bootstrap));
    write_lines(&job.file(), 10, LINE_BYTES).unwrap();
    assert_ends(&mut job.start(), TASK_FAILED, &["replicas-topic", "topic.creation.*.replication.factor is 3"]);

    let mut job = Job::new("offsets", bootstrap).worker("offset.storage.replication.factor", "3");
    write_lines(&job.file(), 10, LINE_BYTES).unwrap();
    let words = ["offsets-offsets", "offset.storage.replication.factor is 3", "1 for a single broker"];
    assert_ends(&mut job.start(), NOT_STARTED, &words);

    let folder = tempfile::tempdir().unwrap();
    let words = ["\"bad-configs\"", "config.storage.replication.factor is 3", "-1 for the brokers' default"];
    assert_ends(&mut distributed(folder.path(), bootstrap, false, &[]), NOT_STARTED, &words);
    let one = ("config.storage.replication.factor", "1");
    let words = ["\"bad-status\"", "status.storage.replication.factor is 3", "1 for a single broker"];
    assert_ends(&mut distributed(folder.path(), bootstrap, false, &[one]), NOT_STARTED, &words);
}

fn time_limit_above_the_brokers(broker: &Broker) {
    let mut job =
        Job::new("limit", broker.bootstrap()).connector("producer.override.transaction.timeout.ms", "3600000");
    write_lines(&job.file(), 10, LINE_BYTES).unwrap();
    assert_ends(&mut job.start(), TASK_FAILED, &["transaction.timeout.ms", "transaction.max.timeout.ms"]);
}

fn empty_file_that_grows(broker: &Broker, client: &Client) {
    let mut job = Job::new("empty", broker.bootstrap());
    fs::write(job.file(), "").unwrap();
    let mut worker = job.start();
    wait_for_log(&worker, "running");
    let mut file = fs::OpenOptions::new().append(true).open(job.file()).unwrap();
    file.write_all(b"first\nunfinished").unwrap();
    client.wait_for_visible(&job.topic(), 1, &mut worker, PATIENCE);
    file.write_all(b", now whole\n").unwrap();
    client.wait_for_visible(&job.topic(), 2, &mut worker, PATIENCE);
    assert_eq!(end_and_audit(client, &job, worker).records.visible, 2);
}

fn file_that_comes_later(broker: &Broker, client: &Client) {
    let mut job = Job::new("later", broker.bootstrap());
    let mut worker = job.start();
    wait_for_log(&worker, &job.file().display().to_string());
    write_lines(&job.file(), 1_000, LINE_BYTES).unwrap();
    client.wait_for_visible(&job.topic(), 1_000, &mut worker, PATIENCE);
    end_and_audit(client, &job, worker);
}

fn lines_that_are_no_text(broker: &Broker, client: &Client) {
    let mut job = Job::new("binary", broker.bootstrap());
    let mut bytes = Vec::new();
    for number in 0..2_000_u32 {
        bytes.extend(
            (0..=255_u8).filter(|byte| !b"\r\n".contains(byte)).map(|byte| byte.wrapping_add(14).max(14)).take(100),
        );
        bytes.extend([0, 0xff, 0xfe, 0x80, 0xc3]);
        bytes.extend(number.to_string().as_bytes());
        bytes.extend(if number % 2 == 0 { &b"\n"[..] } else { b"\r\n" });
    }
    fs::write(job.file(), &bytes).unwrap();
    let mut worker = job.start();
    client.wait_for_visible(&job.topic(), 2_000, &mut worker, PATIENCE);
    end_and_audit(client, &job, worker);
}

fn directory_for_a_file(broker: &Broker) {
    let mut job = Job::new("directory", broker.bootstrap());
    fs::create_dir(job.file()).unwrap();
    let file = job.file().display().to_string();
    assert_ends(&mut job.start(), TASK_FAILED, &[&file, "is a directory"]);
}

/// A copy of the binary and a job that an ordinary user may run; root is refused nothing.
fn file_without_permission(broker: &Broker) {
    let mut job = Job::new("permission", broker.bootstrap());
    write_lines(&job.file(), 10, LINE_BYTES).unwrap();
    fs::set_permissions(job.file(), fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::File::open(job.file()).is_ok();
    let mut worker = if is_root { job.start_as_nobody() } else { job.start() };
    let file = job.file().display().to_string();
    assert_ends(&mut worker, TASK_FAILED, &[&file, "Permission denied"]);
}

fn line_of_2_mb(broker: &Broker, client: &Client) {
    let write = |job: &Job| {
        let mut file = fs::File::create(job.file()).unwrap();
        file.write_all(b"before\n").unwrap();
        file.write_all(&vec![b'x'; 2_000_000]).unwrap();
        file.write_all(b"\nafter\n").unwrap();
    };
    let mut job = Job::new("large", broker.bootstrap()).connector("batch.size", "1");
    write(&job);
    assert_ends(&mut job.start(), TASK_FAILED, &["max.request.size"]);
    assert_eq!(
        client.records(&job.topic(), Isolation::Committed).len(),
        1,
        "the line before is there, the one after is not"
    );

    // What the line said to change, changed on both sides: the same job goes on where it stopped.
    let mut job = Job::new("large-ok", broker.bootstrap()).connector("producer.override.max.request.size", "4000000");
    client.make_topic(&job.topic(), 1, &[("max.message.bytes", "4000000")]);
    write(&job);
    let mut worker = job.start();
    client.wait_for_visible(&job.topic(), 3, &mut worker, PATIENCE);
    end_and_audit(client, &job, worker);
}

/// A job whose thousand lines have arrived, with its worker still running.
fn followed(name: &str, broker: &Broker, client: &Client) -> (Job, Process) {
    let mut job = Job::new(name, broker.bootstrap());
    write_lines(&job.file(), 1_000, LINE_BYTES).unwrap();
    let mut worker = job.start();
    client.wait_for_visible(&job.topic(), 1_000, &mut worker, PATIENCE);
    (job, worker)
}

fn file_that_is_truncated(broker: &Broker, client: &Client) {
    let (mut job, mut worker) = followed("truncated", broker, client);
    fs::OpenOptions::new().write(true).open(job.file()).unwrap().set_len(LINE_BYTES as u64 * 10).unwrap();
    let file = job.file().display().to_string();
    assert_ends(&mut worker, TASK_FAILED, &[&file, "truncated", "offset"]);
    assert_ends(&mut job.start(), TASK_FAILED, &[&file, "truncated", "offset"]);
    // Restored, as the message says, it goes on without a gap or a repeat.
    write_lines(&job.file(), 1_200, LINE_BYTES).unwrap();
    let mut worker = job.start();
    client.wait_for_visible(&job.topic(), 1_200, &mut worker, PATIENCE);
    end_and_audit(client, &job, worker);
}

fn file_that_is_replaced(broker: &Broker, client: &Client) {
    let (mut job, mut worker) = followed("replaced", broker, client);
    fs::rename(job.file(), job.path("in.txt.1")).unwrap();
    write_lines(&job.file(), 2_000, LINE_BYTES + 1).unwrap();
    let file = job.file().display().to_string();
    assert_ends(&mut worker, TASK_FAILED, &[&file, "replaced", "offset"]);
    assert_ends(&mut job.start(), TASK_FAILED, &[&file, "not the start of a line", "offset"]);
    assert_eq!(client.records(&job.topic(), Isolation::Committed).len(), 1_000, "nothing of the new file was written");
}

fn stories(target: Target) {
    let broker = target.start();
    let client = Client::connect(broker.bootstrap());
    cannot_be_made(&broker);
    time_limit_above_the_brokers(&broker);
    empty_file_that_grows(&broker, &client);
    file_that_comes_later(&broker, &client);
    lines_that_are_no_text(&broker, &client);
    directory_for_a_file(&broker);
    file_without_permission(&broker);
    line_of_2_mb(&broker, &client);
    file_that_is_truncated(&broker, &client);
    file_that_is_replaced(&broker, &client);
}

#[test]
fn a_group_that_refuses_a_worker_for_its_properties_ends_it() {
    let broker = Target::DevBroker.start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("worker.properties");
    let text = format!(
        "bootstrap.servers={}\ngroup.id=short\nsession.timeout.ms=1000\nheartbeat.interval.ms=300\nlisteners=http://127.0.0.1:0\n\
         key.converter=String\nvalue.converter=String\nconfig.storage.topic=c\noffset.storage.topic=o\nstatus.storage.topic=s\n\
         config.storage.replication.factor=1\noffset.storage.replication.factor=1\nstatus.storage.replication.factor=1\n",
        broker.bootstrap()
    );
    fs::write(&file, text).unwrap();
    let mut command = Command::new(oncewire());
    command.arg("distributed").arg(&file);
    let mut process = Process::start(&mut command, &folder.path().join("log")).unwrap();
    assert_ends(&mut process, NOT_STARTED, &["\"short\"", "INVALID_SESSION_TIMEOUT", "group.min.session.timeout.ms"]);
}

#[test]
fn bad_input_is_survived_on_the_embedded_broker() {
    stories(Target::DevBroker);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn bad_input_is_survived_on_kafka_4_3_1() {
    stories(Target::Kafka431);
}
