//! `consume` and `verify` as a person or a script uses them: what they print, and how they end.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use oncewire_system_tests::binary::oncewire;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::job::Job;
use oncewire_system_tests::process::Signal;
use oncewire_system_tests::target::{Target, free_port};

const PATIENCE: Duration = Duration::from_secs(60);

const CONTENT: i32 = 0;
const FEWER: i32 = 1;
const USAGE: i32 = 2;
const CANNOT_REACH: i32 = 3;
const NOT_CONTENT: i32 = 4;

fn tool(command: &str, bootstrap: &str, arguments: &[&str]) -> Output {
    let output = Command::new(oncewire()).args([command, "--bootstrap-server", bootstrap]).args(arguments).output();
    let output = output.expect("oncewire starts");
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn assert_ends(output: &Output, code: i32, words: &[&str]) {
    let told = text(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(code),
        "where it should say {words:?}; it says:\n{told}{}",
        text(&output.stdout)
    );
    assert!(words.iter().all(|word| told.contains(word)), "it says {words:?}; it says:\n{told}");
}

/// Streams five lines and ends the worker.
fn five_lines(bootstrap: &str) -> Job {
    let client = Client::connect(bootstrap);
    let mut job = Job::new("tools", bootstrap);
    fs::write(job.file(), b"one\ntwo\n\xff\xfe\nfour\nfive\n").expect("the file can be written");
    let mut worker = job.start();
    client.wait_for_visible(&job.topic(), 5, &mut worker, PATIENCE);
    worker.signal(Signal::Terminate);
    assert_eq!(worker.wait(PATIENCE).code(), Some(0), "{}", worker.log());
    client.wait_until_nothing_is_open(&job, &worker);
    job
}

fn consume_prints_values(job: &Job) {
    let topic = job.topic();
    let read = |more: &[&str]| {
        let mut arguments = vec!["--topic", &topic, "--from-beginning"];
        arguments.extend(more);
        tool("consume", job.bootstrap(), &arguments)
    };
    let output = read(&["--max-messages", "5"]);
    assert_ends(&output, CONTENT, &[]);
    assert_eq!(output.stdout, b"one\ntwo\n\xff\xfe\nfour\nfive\n");
    assert_eq!(read(&["--max-messages", "2", "--offsets", "--keys"]).stdout, b"0:0\tnull\tone\n0:1\tnull\ttwo\n");
    assert_ends(&read(&["--timeout-ms", "300"]), CONTENT, &[]);
    assert_ends(&read(&["--timeout-ms", "300", "--max-messages", "9"]), FEWER, &["5 of 9"]);
    assert_ends(&tool("consume", job.bootstrap(), &["--topic", "no-such"]), CANNOT_REACH, &["no-such"]);
}

fn verify_says_what_is_wrong(job: &Job) {
    let topic = job.topic();
    let (file, other) = (job.file().display().to_string(), job.path("other.txt").display().to_string());
    let (offsets, connector) = (job.offsets_topic(), job.connector_name());
    let verify = |more: &[&str]| {
        let mut arguments = vec!["--topic", &topic, "--offsets-topic", &offsets, "--connector", &connector];
        arguments.extend(more);
        tool("verify", job.bootstrap(), &arguments)
    };
    let output = verify(&["--file", &file]);
    assert_ends(&output, CONTENT, &[]);
    assert!(text(&output.stdout).contains("verdict"), "{}", text(&output.stdout));

    let output = verify(&["--file", &file, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert_eq!(json["content"], true);
    assert_eq!(json["records"]["visible"], 5);
    assert_eq!(json["offsets"]["checks"][0]["committed"], r#"{"position":21}"#);

    fs::write(&other, b"one\ntwo\nthree\n\xff\xfe\nfour\nfive\n").expect("the file can be written");
    let output = verify(&["--file", &other]);
    assert_ends(&output, NOT_CONTENT, &[]);
    assert!(text(&output.stdout).contains("line 3 is missing"), "{}", text(&output.stdout));

    assert_ends(&verify(&["--file", "/no/such/file"]), USAGE, &["/no/such/file"]);
    assert_ends(&verify(&["--file", &file, "--sequence"]), USAGE, &["--sequence"]);
    assert_ends(&verify(&["--sequence"]), NOT_CONTENT, &[]);
    assert_ends(&tool("verify", job.bootstrap(), &["--topic", "no-such"]), CANNOT_REACH, &["no-such"]);
}

#[test]
fn the_tools_tell_what_is_there_on_the_embedded_broker() {
    let broker = Target::DevBroker.start();
    let job = five_lines(broker.bootstrap());
    consume_prints_values(&job);
    verify_says_what_is_wrong(&job);
}

fn address_is_named(command: &str) {
    let address = format!("127.0.0.1:{}", free_port());
    assert_ends(&tool(command, &address, &["--topic", "t"]), CANNOT_REACH, &[&address]);
    assert_ends(&tool(command, "localhost", &["--topic", "t"]), USAGE, &["localhost"]);
}

#[test]
fn consume_names_an_address_where_nothing_listens() {
    address_is_named("consume");
}

#[test]
fn verify_names_an_address_where_nothing_listens() {
    address_is_named("verify");
}
